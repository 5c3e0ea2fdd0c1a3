// SPDX-License-Identifier: BSD-3-Clause
//
// GPU memory of every kind, as send and as receive buffer: also what the sender cannot map. Buffers begin anywhere in
// their allocations, may lie in several, and may have gaps; memory is freed and allocated anew at the same address.
//
//   gpu_memory_kinds [--only KIND]    plain, pool, managed, mapped or shareable, beside memory of cudaMalloc
#include <mpix/mpix.h>

#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include "tests/gpu_memory.hpp"
#include "tests/gpu_program.hpp"

namespace {

using gpu_memory::kind;

constexpr int partitions = 4;
constexpr std::size_t around = 61;  // bytes before the buffer and behind it
int rank = -1, tag = 0;

unsigned char value(int of, int epoch, std::size_t at) {
    return static_cast<unsigned char>((at ^ at >> 8 ^ at >> 16) * 7 +
                                      static_cast<std::size_t>(epoch * 31 + of * 5 + tag));
}

struct buffer {
    buffer(kind k, std::size_t n) : bytes(n), all(static_cast<char *>(gpu_memory::allocate(k, n + 2 * around))) {}
    ~buffer() { gpu_memory::release(all); }
    buffer(const buffer &) = delete;
    buffer &operator=(const buffer &) = delete;
    void *begin() const { return all + around; }

    void fill(int epoch) const {
        std::vector<unsigned char> here(bytes);
        for (std::size_t at = 0; at < bytes; ++at) here[at] = value(rank, epoch, at);
        require(cudaMemcpy(begin(), here.data(), bytes, cudaMemcpyDefault) == cudaSuccess, "cudaMemcpy");
    }
    void poison() const {
        require(cudaMemset(all, 0x5a, bytes + 2 * around) == cudaSuccess, "cudaMemset");
        require(cudaDeviceSynchronize() == cudaSuccess, "cudaDeviceSynchronize");
    }
    // With gaps, a block of `used` bytes begins every `step` bytes.
    bool right(int epoch, std::size_t used = 1, std::size_t step = 1) const {
        std::vector<unsigned char> here(bytes + 2 * around);
        require(cudaMemcpy(here.data(), all, here.size(), cudaMemcpyDefault) == cudaSuccess, "cudaMemcpy");
        bool good = true;
        for (std::size_t at = 0; at < here.size(); ++at)
            good = good && here[at] == (at < around || at >= around + bytes || (at - around) % step >= used
                                            ? 0x5a
                                            : value(1 - rank, epoch, at - around));
        return good;
    }

    const std::size_t bytes;
    char *const all;
};

MPI_Request begin_send(const buffer &from, MPI_Datatype type = MPI_BYTE, std::size_t extent = 1) {
    MPI_Request request = MPI_REQUEST_NULL;
    require(MPI_Psend_init(from.begin(), partitions, static_cast<MPI_Count>(from.bytes / partitions / extent), type,
                           1 - rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request) == MPI_SUCCESS,
            "MPI_Psend_init");
    return request;
}
MPI_Request begin_receive(const buffer &to, MPI_Datatype type = MPI_BYTE, std::size_t extent = 1) {
    MPI_Request request = MPI_REQUEST_NULL;
    require(MPI_Precv_init(to.begin(), partitions, static_cast<MPI_Count>(to.bytes / partitions / extent), type,
                           1 - rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request) == MPI_SUCCESS,
            "MPI_Precv_init");
    return request;
}

void exchange(const buffer &from, const buffer &to, MPI_Request (&both)[2], const char *what, std::size_t used = 1,
              std::size_t step = 1) {
    for (int epoch = 1; epoch <= 3; ++epoch) {
        from.fill(epoch);
        to.poison();
        require(MPI_Startall(2, both) == MPI_SUCCESS, what, "MPI_Startall");
        require(MPI_Pready_range(0, partitions - 1, both[0]) == MPI_SUCCESS, what, "MPI_Pready_range");
        const int code = MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        char text[MPI_MAX_ERROR_STRING] = "";
        int length = 0;
        MPI_Error_string(code, text, &length);
        require(code == MPI_SUCCESS, what, text);
        require(to.right(epoch, used, step), what, "wrong bytes");
    }
}

void between(kind of_sends, kind of_receives, std::size_t bytes) {
    ++tag;
    const buffer from(of_sends, bytes), to(of_receives, bytes);
    MPI_Request both[2] = {begin_send(from), begin_receive(to)};
    exchange(from, to, both, gpu_memory::names[of_receives]);
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
}

void with_gaps(kind k) {
    ++tag;
    constexpr std::size_t used = 12, step = 20;
    MPI_Datatype block, spaced;
    MPI_Type_contiguous(used, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, step, &spaced);
    MPI_Type_commit(&spaced);
    const buffer from(k, partitions * 1000 * step), to(k, partitions * 1000 * step);
    MPI_Request both[2] = {begin_send(from, spaced, step), begin_receive(to, spaced, step)};
    exchange(from, to, both, gpu_memory::names[k], used, step);
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
    MPI_Type_free(&spaced);
    MPI_Type_free(&block);
}

// The receive and its buffer are freed, and the next one is at the same address, where CUDA gives it. `late`: the sender
// frees its requests only at the end, so that what was freed is mapped there yet.
void allocate_anew(kind k, bool late) {
    constexpr std::size_t bytes = std::size_t{3} << 20;
    std::set<void *> addresses;
    std::vector<MPI_Request> sends;
    const buffer from(gpu_memory::plain, bytes);
    constexpr int turns = 8;
    for (int turn = 0; turn < turns; ++turn) {
        ++tag;
        const buffer to(k, bytes);
        addresses.insert(to.all);
        MPI_Request both[2] = {begin_send(from), begin_receive(to)};
        exchange(from, to, both, late ? "allocated anew, freed late" : "allocated anew");
        MPI_Request_free(&both[1]);
        if (late)
            sends.push_back(both[0]);
        else
            MPI_Request_free(&both[0]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (MPI_Request &send : sends) MPI_Request_free(&send);
    std::printf("rank %d: %s%s: %zu addresses of %d buffers\n", rank, gpu_memory::names[k], late ? ", freed late" : "",
                addresses.size(), turns);
}

// A clear error, and no request. Of other memory the driver may not tell where it ends.
void beyond_the_end(kind k) {
    constexpr std::size_t bytes = std::size_t{8} << 20;
    void *const memory = gpu_memory::allocate(k, bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Precv_init(memory, partitions, 128 * bytes, MPI_BYTE, 1 - rank, ++tag, MPI_COMM_WORLD,
                                    MPI_INFO_NULL, &request);
    if (code == MPI_SUCCESS) {
        require(k != gpu_memory::plain, gpu_memory::names[k], "has no end");
        std::printf("rank %d: %s: the driver does not tell where it ends\n", rank, gpu_memory::names[k]);
        MPI_Request_free(&request);
        return gpu_memory::release(memory);
    }
    char text[MPI_MAX_ERROR_STRING] = "";
    int error_class = MPI_SUCCESS, length = 0;
    MPI_Error_class(code, &error_class);
    MPI_Error_string(code, text, &length);
    require(error_class == MPI_ERR_BUFFER && std::strstr(text, "beyond the end of its memory") != nullptr,
            gpu_memory::names[k], text);
    gpu_memory::release(memory);
}

}  // namespace

int main(int argc, char **argv) {
    const int devices = demand_gpus();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    cudaSetDevice(rank % devices);
    std::string_view only;
    for (int i = 1; i + 1 < argc; ++i)
        if (argv[i] == std::string_view("--only")) only = argv[i + 1];
    bool ran = false;
    for (const kind k : gpu_memory::kinds) {
        if (!gpu_memory::there_is(k) || (!only.empty() && gpu_memory::short_names[k] != only)) continue;
        ran = true;
        for (const std::size_t bytes : {std::size_t{4}, std::size_t{1} << 16, std::size_t{5} << 20}) {
            between(gpu_memory::plain, k, bytes);
            between(k, gpu_memory::plain, bytes);
            between(k, k, bytes);
        }
        with_gaps(k);
        allocate_anew(k, false);
        allocate_anew(k, true);
        beyond_the_end(k);
    }
    MPI_Finalize();
    if (!ran) std::puts("skipped: there is no such memory");
    return ran ? 0 : 77;
}
