// SPDX-License-Identifier: BSD-3-Clause
//
// Ranges that profilers show on their time line, by NVTX: calls that take time. Where mpix is built without CUDA's
// toolkit, or no tool listens, each costs a look at a variable.
#ifndef MPIX_HOST_PROFILED_RANGE_H
#define MPIX_HOST_PROFILED_RANGE_H

namespace mpix {

// The names in the domain "mpix".
#define MPIX_RANGES(range)                                                                                          \
    range(psend_init, "MPI_Psend_init") range(precv_init, "MPI_Precv_init") range(start, "MPI_Start")               \
        range(startall, "MPI_Startall") range(wait, "MPI_Wait") range(waitall, "MPI_Waitall")                       \
            range(waitany, "MPI_Waitany") range(waitsome, "MPI_Waitsome")                                           \
                range(prequest_create, "MPIX_Prequest_create") range(prequest_free, "MPIX_Prequest_free")           \
                    range(pbuf_prepare, "MPIX_Pbuf_prepare") range(pbuf_prepare_all, "MPIX_Pbuf_prepare_all")       \
                        range(halo_begin, "halo::exchange::begin") range(halo_ready, "halo::exchange::ready")       \
                            range(halo_start, "halo::exchange::start") range(halo_finish, "halo::exchange::finish") \
                                range(halo_pack, "halo pack") range(halo_unpack, "halo unpack")                     \
                                    range(halo_combine, "halo combine")                                             \
                                        range(halo_compare_transfers, "halo::compare_transfers")                    \
                                            range(halo_kernel_start, "halo::kernel_exchange::start")                \
                                                range(halo_kernel_finish, "halo::kernel_exchange::finish")          \
                                                    range(halo_stream_start, "halo::stream_exchange::start")        \
                                                        range(halo_stream_finish, "halo::stream_exchange::finish")  \
                                                            range(halo_stream_run, "halo::stream_exchange::run")

enum class range_name : unsigned {
#define MPIX_RANGE_NAME(name, text) name,
    MPIX_RANGES(MPIX_RANGE_NAME)
#undef MPIX_RANGE_NAME
        number_of_names
};

// Whether a tool listens; set once, by MPI_Init, before any range.
extern bool ranges_are_shown;
void open_ranges();

// From its construction to its destruction, in one thread. Of partitioned calls and halo exchanges only: the library's
// other calls are the MPI library's to show.
class profiled_range {
public:
    explicit profiled_range(range_name name) : shown_(ranges_are_shown) {
        if (shown_) [[unlikely]]
            push(name);
    }
    ~profiled_range() {
        if (shown_) [[unlikely]]
            pop();
    }
    profiled_range(const profiled_range &) = delete;
    profiled_range &operator=(const profiled_range &) = delete;

private:
    static void push(range_name name);
    static void pop();

    const bool shown_;
};

}  // namespace mpix

#endif  // MPIX_HOST_PROFILED_RANGE_H
