// SPDX-License-Identifier: BSD-3-Clause
//
// Packing and unpacking of GPU memory, beside what the hardware allows and what programs do without it. Three tables:
//
//   seed    1 MiB out of a cube of 1 GiB, 11 shapes in 4 descriptions (C. Pearson, 2020): wall clock from the call to
//           the end of a device synchronise, trimean of 5, caches warm and cold; beside one blocking copy per block
//           (of some of the blocks, for the others take as long), one cudaMemcpy3D, and the launch of an empty kernel
//   rows    rows of 1 byte to 4 KiB, at two pitches, aligned or not, payloads that take the memory's whole bandwidth:
//           by events; beside the limit (atoms.hpp)
//   types   the types of J. Jenkins et al. (2012), by events, beside cudaMemcpy2D, cudaMemcpy3D, one copy per block,
//           and CUB's batched copy
//
// CCCL's copy between strided arrays (cudax::copy) has rows that say why it has no time: no toolkit up to 13.0
// contains it.
#include <cub/device/device_memcpy.cuh>
#include <mpi.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/bench/atoms.hpp"
#include "tests/bench/command_line.hpp"
#include "tests/bench/pack_clock.cuh"
#include "tests/bench/pack_types.hpp"

using namespace bench;

namespace {

// ---- the copy engine --------------------------------------------------------------------------------------------

cudaError_t copy_cube(const context &c, int x, int y, int z, int64_t side, bool unpack) {
    cudaMemcpy3DParms p{};
    const auto n = static_cast<std::size_t>(side);
    const cudaPitchedPtr strided = make_cudaPitchedPtr(c.array, n, n, n);
    const cudaPitchedPtr dense = make_cudaPitchedPtr(c.packed, static_cast<std::size_t>(x), static_cast<std::size_t>(x),
                                                     static_cast<std::size_t>(y));
    p.srcPtr = unpack ? dense : strided;
    p.dstPtr = unpack ? strided : dense;
    p.extent = make_cudaExtent(static_cast<std::size_t>(x), static_cast<std::size_t>(y), static_cast<std::size_t>(z));
    p.kind = cudaMemcpyDeviceToDevice;
    return cudaMemcpy3DAsync(&p, c.stream);
}

// One blocking copy per block, as MPI libraries do, of as many as take reasonable time.
double blocking_copies_us(const context &c, int64_t blocks, int64_t block, int64_t pitch) {
    const int64_t tried = std::min<int64_t>(blocks, 500);
    const double us = wall_us(c, false, [&] {
        for (int64_t b = 0; b < tried; ++b) {
            check(cudaMemcpyAsync(c.packed + b * block, c.array + b * pitch, static_cast<std::size_t>(block),
                                  cudaMemcpyDeviceToDevice, c.stream),
                  "cudaMemcpyAsync");
            check(cudaStreamSynchronize(c.stream), "cudaStreamSynchronize");
        }
    });
    return us * static_cast<double>(blocks) / static_cast<double>(tried);
}

#if __has_include(<cuda/experimental/copy.cuh>)
constexpr const char *cudax_copy = "cudax::copy (not measured)";
#else
constexpr const char *cudax_copy = "cudax::copy (not in this toolkit)";
#endif

// ---- the tables -------------------------------------------------------------------------------------------------

void seed_table(const context &c) {
    constexpr int64_t side = 1024;
    constexpr int bytes = 1 << 20;
    for (int x = 1; x <= 1024; x *= 2) {
        const int y = 1024, z = 1024 / x;
        const std::string shape = std::to_string(x) + "/" + std::to_string(y) + "/" + std::to_string(z);
        const traffic t = traffic_of(int64_t{y} * z, x, side, 0);
        // With each shape anew, for it to be of the same minute.
        for (const bool cold : {false, true})
            print(c, {"seed", shape, "empty kernel", "none", cold ? "wall cold" : "wall warm", 0,
                      empty_kernel_us(c, cold), 0});
        for (const bool unpack : {false, true}) {
            const char *const way = unpack ? "unpack" : "pack";
            const double limit = (unpack ? unpack_bytes(t, bytes) : pack_bytes(t, bytes)) / c.bandwidth;
            for (int d = 0; d < 4; ++d) {
                MPI_Datatype type = cube(d, x, y, z, side);
                for (const bool cold : {false, true}) {
                    const double us = wall_us(c, cold, [&] { call_now(c, type, bytes, unpack); });
                    print(c, {"seed", shape, std::string("mpix ") + cube_descriptions[d], way,
                              cold ? "wall cold" : "wall warm", bytes, us, limit});
                }
                MPI_Type_free(&type);
            }
            if (copy_cube(c, x, y, z, side, unpack) == cudaSuccess) {
                const double us =
                    wall_us(c, false, [&] { check(copy_cube(c, x, y, z, side, unpack), "cudaMemcpy3D"); });
                print(c, {"seed", shape, "cudaMemcpy3D", way, "wall warm", bytes, us, limit});
            }
            (void)cudaGetLastError();
            print(c, {"seed", shape, cudax_copy, way, "wall warm", bytes, 0, limit});
        }
        print(c, {"seed", shape, "blocking copies", "pack", "wall warm", bytes,
                  blocking_copies_us(c, x == 1024 ? 1 : int64_t{y} * z, x == 1024 ? bytes : x, side), 0});
    }
}

void row_table(const context &c) {
    for (const int run : {1,  2,  3,  4,  5,   6,   7,   8,   10,  12,  15,  16,  17,   20,   24,   31,
                          32, 33, 48, 64, 100, 128, 200, 256, 333, 384, 512, 768, 1000, 1024, 2048, 4096})
        for (const bool near : {true, false})
            for (const int skew : {0, 1}) {
                // Near: rows as far apart as they are long. Far: no atom has bytes of two rows.
                int64_t pitch = near ? 2 * run : (run + 63) / 64 * 64 + 64;
                if (skew != 0) ++pitch;
                const int64_t rows = std::min((c.array_bytes - 64) / pitch, (c.packed_bytes - 64) / run);
                const int64_t bytes = rows * run;
                MPI_Datatype one, type;
                MPI_Type_contiguous(run, MPI_BYTE, &one);
                MPI_Type_create_resized(one, 0, pitch, &type);
                MPI_Type_commit(&type);
                const traffic t = traffic_of(rows, run, pitch, skew);
                for (const bool unpack : {false, true}) {
                    const double limit = (unpack ? unpack_bytes(t, static_cast<double>(bytes))
                                                 : pack_bytes(t, static_cast<double>(bytes))) /
                                         c.bandwidth;
                    const double us = event_us(c, [&] { call_in_stream(c, type, rows, bytes, unpack, skew); });
                    print(c, {"rows", std::to_string(run) + "/" + std::to_string(pitch),
                              skew != 0 ? "mpix unaligned" : "mpix aligned", unpack ? "unpack" : "pack", "events",
                              static_cast<double>(bytes), us, limit});
                }
                MPI_Type_free(&one);
                MPI_Type_free(&type);
            }
}

// What CUB wants: one source, target and size a block, in device memory.
class batch {
public:
    batch(const context &c, const bench_type &t) : c_(c), blocks_(static_cast<int64_t>(t.at.size())) {
        std::vector<char *> memory, packed;
        std::vector<uint32_t> sizes;
        int64_t at = 0;
        for (std::size_t b = 0; b < t.at.size(); ++b) {
            memory.push_back(c.array + t.at[b]);
            packed.push_back(c.packed + at);
            sizes.push_back(static_cast<uint32_t>(t.length[b]));
            at += t.length[b];
        }
        memory_ = upload(memory);
        packed_ = upload(packed);
        sizes_ = upload(sizes);
        check(submit(false), "cub::DeviceMemcpy::Batched");  // asks for its working memory
        check(cudaMalloc(&working_, working_bytes_), "cudaMalloc");
    }
    ~batch() {
        for (void *p :
             {static_cast<void *>(memory_), static_cast<void *>(packed_), static_cast<void *>(sizes_), working_})
            check(cudaFree(p), "cudaFree");
    }
    batch(const batch &) = delete;
    batch &operator=(const batch &) = delete;

    cudaError_t submit(bool unpack) {
        return cub::DeviceMemcpy::Batched(working_, working_bytes_, unpack ? packed_ : memory_,
                                          unpack ? memory_ : packed_, sizes_, blocks_, c_.stream);
    }

private:
    template <class T>
    static T *upload(const std::vector<T> &from) {
        T *to = nullptr;
        check(cudaMalloc(&to, from.size() * sizeof(T)), "cudaMalloc");
        check(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
        return to;
    }
    const context &c_;
    int64_t blocks_;
    char **memory_ = nullptr, **packed_ = nullptr;
    uint32_t *sizes_ = nullptr;
    void *working_ = nullptr;
    std::size_t working_bytes_ = 0;
};

void type_table(const context &c) {
    struct maker {
        const char *name;
        bench_type (*make)(int64_t);
    };
    constexpr maker makers[] = {
        {"vector 2-D", vector_2d}, {"subarray 4-D", subarray_4d}, {"indexed", indexed}, {"struct", structs}};
    for (const maker &m : makers)
        for (const int64_t wanted : {int64_t{64} << 10, int64_t{1} << 20, int64_t{16} << 20}) {
            bench_type t = m.make(wanted);
            const int64_t bytes = t.bytes();
            batch cub_batch(c, t);
            for (const bool unpack : {false, true}) {
                const auto tell = [&](const char *how, double us) {
                    print(c, {"types", std::string(m.name) + " " + std::to_string(wanted >> 10) + " KiB", how,
                              unpack ? "unpack" : "pack", "events", static_cast<double>(bytes), us, 0});
                };
                tell("mpix", event_us(c, [&] { call_in_stream(c, t.type, 1, bytes, unpack, 0); }));
                tell("cub batched",
                     event_us(c, [&] { check(cub_batch.submit(unpack), "cub::DeviceMemcpy::Batched"); }));
                if (m.make == vector_2d) {
                    const auto rows = static_cast<std::size_t>(bytes / 512);
                    tell("cudaMemcpy2D", event_us(c, [&] {
                             check(unpack ? cudaMemcpy2DAsync(c.array, 2048, c.packed, 512, 512, rows,
                                                              cudaMemcpyDeviceToDevice, c.stream)
                                          : cudaMemcpy2DAsync(c.packed, 512, c.array, 2048, 512, rows,
                                                              cudaMemcpyDeviceToDevice, c.stream),
                                   "cudaMemcpy2DAsync");
                         }));
                }
                if (m.make == subarray_4d) {
                    std::size_t n = 1;
                    while (64 * n * n * n < static_cast<std::size_t>(bytes)) ++n;
                    tell("cudaMemcpy3D iterated", event_us(c, [&] {
                             for (std::size_t i = 0; i < n; ++i) {
                                 cudaMemcpy3DParms p{};
                                 const auto strided =
                                     make_cudaPitchedPtr(c.array + i * 2 * n * 2 * n * 128, 128, 128, 2 * n);
                                 const auto dense = make_cudaPitchedPtr(c.packed + i * n * n * 64, 64, 64, n);
                                 p.srcPtr = unpack ? dense : strided;
                                 p.dstPtr = unpack ? strided : dense;
                                 p.extent = make_cudaExtent(64, n, n);
                                 p.kind = cudaMemcpyDeviceToDevice;
                                 check(cudaMemcpy3DAsync(&p, c.stream), "cudaMemcpy3DAsync");
                             }
                         }));
                }
                if (m.make == vector_2d || m.make == subarray_4d) tell(cudax_copy, 0);
                // One copy a block, not waiting for each; of some of the blocks where there are many.
                const std::size_t tried = std::min<std::size_t>(t.at.size(), 2000);
                int64_t at = 0;
                const double us = event_us(c, [&] {
                    at = 0;
                    for (std::size_t b = 0; b < tried; ++b) {
                        char *const memory = c.array + t.at[b], *const packed = c.packed + at;
                        check(
                            cudaMemcpyAsync(unpack ? memory : packed, unpack ? packed : memory,
                                            static_cast<std::size_t>(t.length[b]), cudaMemcpyDeviceToDevice, c.stream),
                            "cudaMemcpyAsync");
                        at += t.length[b];
                    }
                });
                tell("copies per block", us * static_cast<double>(t.at.size()) / static_cast<double>(tried));
            }
            t.free();
        }
}

}  // namespace

int main(int argc, char **argv) {
    std::string only;
    const char *csv = nullptr;
    command_line line("", "[--table seed|rows|types] [--csv FILE|-]");
    line.value("table", only);
    line.value("csv", csv);
    if (!line.read(argc, argv, [&] { return only.empty() || only == "seed" || only == "rows" || only == "types"; }))
        return 2;
    if (without_gpu()) return 77;
    MPI_Init(&argc, &argv);
    context c;
    // Room for 64 MiB in rows of one byte 128 bytes apart, and for 256 MiB in rows of 4 and more.
    open(c, "packing and unpacking of GPU memory", csv, int64_t{8} << 30, (int64_t{256} << 20) + 64);
    if (only.empty() || only == "seed") seed_table(c);
    if (only.empty() || only == "rows") row_table(c);
    if (only.empty() || only == "types") type_table(c);
    close(c);
    MPI_Finalize();
    return 0;
}
