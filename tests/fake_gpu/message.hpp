// SPDX-License-Identifier: BSD-3-Clause
//
// A message from the first rank to the last, on one rank or two, between buffers in the memory of fake GPUs, and what
// fails a test of it.
#ifndef MPIX_TESTS_FAKE_GPU_MESSAGE_HPP
#define MPIX_TESTS_FAKE_GPU_MESSAGE_HPP

#include <mpi.h>
#include <mpix/mpix.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/fake_gpu/node_gpu.hpp"

namespace fake_kernels {

inline int rank = -1, ranks = 0;
inline bool sends() { return rank == 0; }
inline bool receives() { return rank == ranks - 1; }

[[noreturn]] inline void give_up(const std::string &what) {
    std::printf("rank %d: %s\n", rank, what.c_str());
    std::fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}
inline std::string text_of(int code) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    return text;
}
inline void must(int code, const char *what) {
    if (code != MPI_SUCCESS) give_up(std::string(what) + ": " + text_of(code));
}
inline void must(bool good, const char *what) {
    if (!good) give_up(what);
}

inline void begin(int argc, char **argv) {
    tr::play_gpus(gpu());
    int provided = 0;
    must(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    must(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    must(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
    must(MPI_Comm_size(MPI_COMM_WORLD, &ranks), "MPI_Comm_size");
}
inline void end() {
    must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    std::printf("rank %d came through\n", rank);
    MPI_Finalize();
    must(gpu().attached == 0, "what was mapped is mapped yet");
    must(gpu().views == 0, "a view was not given back");
}

inline char byte_of(int test, std::uint64_t epoch, std::size_t at) {
    std::uint64_t x =
        (at >> 3) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(test) * 1000 + epoch * 0x94d049bb133111ebu;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    return static_cast<char>((x ^ (x >> 27)) >> (8 * (at & 7)));
}

inline MPIX_Prequest exported(MPI_Request request) {
    MPIX_Prequest out = MPIX_PREQUEST_NULL;
    must(MPIX_Prequest_create(request, MPI_INFO_NULL, &out), "MPIX_Prequest_create");
    return out;
}
inline void take_back(MPIX_Prequest &export_of) { must(MPIX_Prequest_free(&export_of), "MPIX_Prequest_free"); }

// A send of this rank's, a receive, or both, exported.
class message {
public:
    message(int test, int sends_in, int receives_in, std::size_t bytes)
        : test_(test), receivers_(receives_in), bytes_(bytes) {
        if (sends()) {
            make(out_);
            must(MPI_Psend_init(at(out_), sends_in, static_cast<MPI_Count>(bytes) / sends_in, MPI_BYTE, ranks - 1, test,
                                MPI_COMM_WORLD, MPI_INFO_NULL, &send),
                 "MPI_Psend_init");
            sending = exported(send);
        }
        if (receives()) {
            make(in_);
            must(MPI_Precv_init(at(in_), receives_in, static_cast<MPI_Count>(bytes) / receives_in, MPI_BYTE, 0, test,
                                MPI_COMM_WORLD, MPI_INFO_NULL, &receive),
                 "MPI_Precv_init");
            receiving = exported(receive);
        }
    }
    ~message() {
        if (sends()) {
            take_back(sending);
            must(MPI_Request_free(&send), "MPI_Request_free");
        }
        if (receives()) {
            take_back(receiving);
            must(MPI_Request_free(&receive), "MPI_Request_free");
        }
        if (sends()) gpu().release(out_);
        if (receives()) gpu().release(in_);
    }
    message(const message &) = delete;
    message &operator=(const message &) = delete;

    void start() {
        ++epoch;
        if (receives()) {
            poison_in();
            must(MPI_Start(&receive), "MPI_Start");
        }
        if (sends()) {
            fill_out(epoch);
            must(MPI_Start(&send), "MPI_Start");
        }
    }
    void fill_out(std::uint64_t of) {
        for (std::size_t i = 0; i < bytes_; ++i) at(out_)[i] = byte_of(test_, of, i);
    }
    void poison_out() { std::memset(out_.address, 0x77, bytes_); }
    void poison_in() { std::memset(in_.address, 0x5a, bytes_ + behind); }
    bool right(int j, std::uint64_t of) const {
        const std::size_t each = bytes_ / static_cast<std::size_t>(receivers_),
                          first = static_cast<std::size_t>(j) * each;
        for (std::size_t i = first; i < first + each; ++i)
            if (at(in_)[i] != byte_of(test_, of, i)) return false;
        return true;
    }
    bool all_right(std::uint64_t of) const {
        for (int j = 0; j < receivers_; ++j)
            if (!right(j, of)) return false;
        for (std::size_t i = 0; i < behind; ++i)
            if (at(in_)[bytes_ + i] != 0x5a) return false;
        return true;
    }
    MPI_Request send = MPI_REQUEST_NULL, receive = MPI_REQUEST_NULL;
    MPIX_Prequest sending = MPIX_PREQUEST_NULL, receiving = MPIX_PREQUEST_NULL;
    std::uint64_t epoch = 0;

private:
    static constexpr std::size_t behind = 16;  // that nobody may write
    void make(tr::region &r) const {
        const mpix::status bad = gpu().allocate(bytes_ + behind, 0, r);
        must(bad.ok(), bad.message().c_str());
    }
    static char *at(const tr::region &r) { return static_cast<char *>(r.address); }
    const int test_, receivers_;
    const std::size_t bytes_;
    tr::region out_, in_;
};

}  // namespace fake_kernels

#endif  // MPIX_TESTS_FAKE_GPU_MESSAGE_HPP
