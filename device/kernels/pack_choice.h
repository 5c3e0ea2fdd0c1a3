// SPDX-License-Identifier: BSD-3-Clause
//
// Which way a message is packed or unpacked on a GPU: what each way should take, by the constants of the GPU, and the
// quickest. Arithmetic only; the constants are measured in device/kernels/pack_calibration.cc. Not for kernels.
#ifndef MPIX_DEVICE_KERNELS_PACK_CHOICE_H
#define MPIX_DEVICE_KERNELS_PACK_CHOICE_H

#include <mpix/detail/typemap.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace mpix::gpu {

enum class pack_way {
    copy,    // in one piece: the copy engine
    kernel,  // one kernel, which reads and writes in place
    rows,    // the copy engine, a row at a time: cudaMemcpy2DAsync or 3D
    staged   // the kernel, and the copy engine between device memory and where no kernel can reach
};

// Where the packed bytes are, as the GPU with the elements sees it.
enum class packed_place { same_gpu, other_gpu, mapped_host, unreachable };

// What kernels move at once: bytes, words joined from two runs, or aligned words of 4, 8 and 16 bytes. Where runs are
// long only the joining still costs: something for each byte, and for each run's ends.
enum word_class { single_bytes = 0, joined_words, words_of_4, words_of_8, words_of_16, long_joined, word_classes };
constexpr std::int64_t long_run = 64;

// Of one GPU. Times in microseconds from the call to its return, rates in bytes per microsecond. As they are here:
// of an H200 (docs/results), until it has been measured.
struct pack_costs {
    bool measured = false;
    double kernel = 10, copy = 8.6;         // a message of no size
    double cache_bytes = 30e6;              // what is read and written stays in the cache up to here
    double cached = 4.6e6, memory = 3.6e6;  // read and written by kernels
    // The copy engine within a GPU: bytes read and written, and time for each row; of rows made of words, and of others.
    double copied_rows[2] = {1.6e6, 1.3e6}, row[2] = {2.2e-4, 6.5e-4};
    double host = 5.3e4;  // kernels, page-locked memory
    double copied_host = 5.5e4, host_row = 1.3e-3;
    // Packing, unpacking: packed bytes, and time for each long run that is joined.
    double moved[2][word_classes] = {{3.4e4, 1.5e5, 4e5, 7e5, 4e6, 1.8e6}, {1.6e4, 1e5, 2.5e5, 4e5, 4e6, 1.6e6}};
    double joined_run[2] = {4e-5, 1.8e-4};
};

// One message: packed bytes [begin, begin + bytes), bytes at least 1.
struct pack_shape {
    const mpix_typemap *type;
    std::int64_t begin, bytes;
    bool unpack;
    int word;  // that its kernel would take (kernel_word)
    packed_place packed;
};

// A message as cudaMemcpy3D can say it: `depth` slices of `height` rows of `width` bytes, which begin at `offset` in
// the memory of the elements. The packed side is dense.
struct pitched_rows {
    std::int64_t offset, width, pitch, height, depth;
    std::int64_t slice;  // rows from one slice to the next
};
// False if it cannot.
bool as_rows(const pack_shape &shape, pitched_rows &out);

// Of the next messages, where it is possible; none: by what they should take.
enum class pack_mode { none, kernel, rows };

struct pack_candidate {
    pack_way way;
    const char *why_not;  // null if it is possible
    double us;            // predicted, where it is
};
struct pack_choice {
    std::array<pack_candidate, 4> candidates;
    pack_way taken;
    double us() const { return candidates[static_cast<std::size_t>(taken)].us; }
};
pack_choice consider(const pack_shape &shape, const pack_costs &costs, pack_mode mode);

const char *name_of(pack_way way);

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_KERNELS_PACK_CHOICE_H
