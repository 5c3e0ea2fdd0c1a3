// SPDX-License-Identifier: BSD-3-Clause
//
// Packing and unpacking of the application types of ddtbench in GPU memory. One table, in pack.cu's columns:
//
//   ddt     each type by events (MPIX_*_enqueue), and by wall clock from the call of MPI_Pack or MPI_Unpack to the
//           end of a device synchronise, caches warm and cold; beside the limit (atoms.hpp) and the launch of an empty
//           kernel
//
// Most of the types are small, so that the launch is what counts. Before it is timed, each type is packed and unpacked
// once and compared with its runs, written out on the host.
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/bench/atoms.hpp"
#include "tests/bench/ddtbench_types.hpp"
#include "tests/bench/pack_clock.cuh"

using namespace bench;

namespace {

constexpr unsigned char poison = 0x5a;

// The array's byte at an offset. Differs between neighbours, rows and planes.
__host__ __device__ unsigned char content(int64_t at) {
    uint64_t x = static_cast<uint64_t>(at) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    return static_cast<unsigned char>(x >> 56);
}

__global__ void fill(char *array, int64_t bytes) {
    const int64_t step = int64_t{gridDim.x} * blockDim.x;
    for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < bytes; i += step)
        array[i] = static_cast<char>(content(i));
}

int64_t end_of(const bench_type &t) {
    int64_t end = 0;
    for (std::size_t r = 0; r < t.at.size(); ++r) end = std::max(end, t.at[r] + t.length[r]);
    return end;
}

void compare(const std::string &name, const char *what, const std::vector<unsigned char> &expected,
             const char *found_on_gpu) {
    std::vector<unsigned char> found(expected.size());
    check(cudaMemcpy(found.data(), found_on_gpu, found.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (std::memcmp(found.data(), expected.data(), found.size()) == 0) return;
    std::size_t at = 0;
    while (found[at] == expected[at]) ++at;
    std::fprintf(stderr, "%s: %s: byte %zu of %zu is %02x, not %02x\n", name.c_str(), what, at, found.size(), found[at],
                 expected[at]);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

void verify(const context &c, const application_type &a) {
    const bench_type &t = a.t;
    const int64_t bytes = t.bytes(), span = end_of(t);
    int size = 0;
    MPI_Type_size(t.type, &size);
    if (size != bytes || span + 64 > c.array_bytes || bytes + 64 > c.packed_bytes) {
        std::fprintf(stderr, "%s: a type of %d bytes, runs of %lld up to %lld\n", a.name.c_str(), size,
                     static_cast<long long>(bytes), static_cast<long long>(span));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    // Beyond the end as well: nothing may be written there.
    std::vector<unsigned char> packed, memory(static_cast<std::size_t>(span) + 64, poison);
    for (std::size_t r = 0; r < t.at.size(); ++r)
        for (int64_t i = t.at[r]; i < t.at[r] + t.length[r]; ++i) {
            packed.push_back(content(i));
            memory[static_cast<std::size_t>(i)] = content(i);
        }
    packed.resize(packed.size() + 64, poison);

    fill<<<1024, 512, 0, c.stream>>>(c.array, span);
    check(cudaGetLastError(), "fill");
    check(cudaMemsetAsync(c.packed, poison, packed.size(), c.stream), "cudaMemsetAsync");
    call_in_stream(c, t.type, 1, bytes, false, 0);
    check(cudaStreamSynchronize(c.stream), "MPIX_Pack_enqueue");
    compare(a.name, "MPIX_Pack_enqueue", packed, c.packed);
    check(cudaMemsetAsync(c.packed, poison, packed.size(), c.stream), "cudaMemsetAsync");
    check(cudaStreamSynchronize(c.stream), "cudaMemsetAsync");
    call_now(c, t.type, size, false);
    compare(a.name, "MPI_Pack", packed, c.packed);

    check(cudaMemsetAsync(c.array, poison, memory.size(), c.stream), "cudaMemsetAsync");
    call_in_stream(c, t.type, 1, bytes, true, 0);
    check(cudaStreamSynchronize(c.stream), "MPIX_Unpack_enqueue");
    compare(a.name, "MPIX_Unpack_enqueue", memory, c.array);
    check(cudaMemsetAsync(c.array, poison, memory.size(), c.stream), "cudaMemsetAsync");
    check(cudaStreamSynchronize(c.stream), "cudaMemsetAsync");
    call_now(c, t.type, size, true);
    compare(a.name, "MPI_Unpack", memory, c.array);
}

}  // namespace

int main(int argc, char **argv) {
    if (without_gpu()) return 77;
    MPI_Init(&argc, &argv);
    context c;
    // The largest array, of NAS MG, is 274 MB; the copy that the limits are computed from wants more.
    open(c, "application types", "-", int64_t{4} << 30, int64_t{64} << 20);
    for (application_type &a : application_types()) {
        verify(c, a);
        const int64_t bytes = a.t.bytes();
        const auto payload = static_cast<double>(bytes);
        const traffic t = traffic_of(a.t.at, a.t.length);
        for (const bool cold : {false, true})
            print(c, {"ddt", a.name, "empty kernel", "none", cold ? "wall cold" : "wall warm", 0,
                      empty_kernel_us(c, cold), 0});
        for (const bool unpack : {false, true}) {
            const double limit = (unpack ? unpack_bytes(t, payload) : pack_bytes(t, payload)) / c.bandwidth;
            const auto tell = [&](const char *clock, double us) {
                print(c, {"ddt", a.name, "mpix", unpack ? "unpack" : "pack", clock, payload, us, limit});
            };
            tell("events", event_us(c, [&] { call_in_stream(c, a.t.type, 1, bytes, unpack, 0); }));
            for (const bool cold : {false, true})
                tell(cold ? "wall cold" : "wall warm",
                     wall_us(c, cold, [&] { call_now(c, a.t.type, static_cast<int>(bytes), unpack); }));
        }
        a.t.free();
    }
    close(c);
    MPI_Finalize();
    return 0;
}
