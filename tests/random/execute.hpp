// SPDX-License-Identifier: BSD-3-Clause
//
// One rank's part of a program, through the public interface, held against the reference at every step.
#ifndef MPIX_TESTS_RANDOM_EXECUTE_HPP
#define MPIX_TESTS_RANDOM_EXECUTE_HPP

#include <mpix/mpix.h>

#include <functional>
#include <thread>

#include "tests/random/kernel.hpp"
#include "tests/random/program.hpp"
#include "tests/random/reference.hpp"

namespace random_test {

struct totals {
    std::uint64_t programs = 0, requests = 0, epochs = 0, kernel_epochs = 0, stream_epochs = 0, partitions = 0,
                  bytes = 0;
};

class execution {
public:
    execution(const program &p, device &d, int rank, bool several_threads, totals &done);
    void run();

private:
    // A request of this rank's.
    struct live {
        MPI_Request handle = MPI_REQUEST_NULL;
        MPIX_Prequest exported = MPIX_PREQUEST_NULL;
        memory host;                      // the request's memory; of an exported one a copy
        char *on_device = nullptr;        // of an exported one, the memory itself
        unsigned char *packed = nullptr;  // the same for kernels: the message as it has to be
        std::int64_t *places = nullptr;   // and where its bytes lie in the memory, unless one behind the other
        memory expected;                  // after the running epoch
        int epoch = 0, started = 0;       // the running one, and when the host started the activation
        bool active = false;              // it may have become complete before its step
    };
    struct own {
        MPI_Request handle = MPI_REQUEST_NULL;
        memory buffer;
        bool active = false;
    };
    // An element of an array of requests.
    struct place {
        enum { ours, null, send, receive } what;
        int number;
    };

    // communicators.cpp
    void construct(const construction &c);
    void free_comm(int index);
    void free_own(int comm);

    // execute.cpp
    void carry_out(const step &s);
    void checkpoint(const step &s);
    void make(int request);
    void free(int request);
    void start(const step &s);
    void begin_epoch(int request);
    void fill(int request, int partition);
    void ready(const step &s);
    void ready_beside(const step &s);
    void join_threads();
    void launch(const step &s);
    void join_kernel();
    // With the message of a request as it has to be.
    using packed_message = std::function<const unsigned char *(int request)>;
    std::vector<kernel_task> tasks_of(const std::vector<part> &parts, const step &s, const packed_message &packed);
    void arrived(const step &s);
    bool parrived(const part &one);
    void prepare(const step &s);
    void post_send(int message);
    void post_receive(int message);
    void check_partition(int request, int partition);
    void check_memory(int request);
    void finish();

    // activations.cpp
    class kernel_writer;
    void launch_epochs(const step &s);

    // complete.cpp
    std::vector<place> places_of(const step &s);
    void complete(const step &s);
    void look(const step &s);
    MPI_Request &handle(const place &at);
    bool active(const place &at);
    bool any_active(const std::vector<place> &all);
    void attempt(const step &s, const std::vector<place> &all);
    void singly(const step &s, const place &at);
    void all_at_once(const step &s, const std::vector<place> &all);
    void any_of_them(const step &s, const std::vector<place> &all);
    void some_of_them(const step &s, const std::vector<place> &all);
    void settle(const place &at, MPI_Request now, const MPI_Status *status);
    int error_of(const place &at) const;
    void check_status(const place &at, bool was_active, const MPI_Status &status);
    void check_source(const expected_status &expected, const MPI_Status &status);
    void check_own_message(int receive, const MPI_Status *status);

    bool mine(int request) const { return p_.end_of(request).made && p_.end_of(request).rank == rank_; }
    live &of(int request) { return lives_[program::at(request)]; }
    const pair &with(int request) const { return p_.pairs[program::at(pair_of(request))]; }
    // Where a partition's bytes begin in the message.
    std::int64_t offset(const part &one) const { return one.partition * p_.partition_bytes(one.request); }

    const program &p_;
    device &device_;
    const int rank_;
    const bool several_threads_;
    totals &done_;
    std::vector<live> lives_;
    std::vector<own> sends_, receives_;
    std::vector<bool> seen_;  // messages that have been received
    std::vector<MPI_Comm> comms_;
    std::vector<std::thread> threads_;
    std::vector<char *> device_memory_;
    std::vector<unsigned char *> shared_memory_, memory_of_kernel_;
};

// Says what is wrong, in which rank, and how to see it again; ends all ranks.
[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char *format, ...);
void must(int code, const char *call);
std::string error_text(int code);
// What fail() names: the program that is running, and the step.
void set_replay(const std::string &command);
void set_step(int step);

}  // namespace random_test

#endif  // MPIX_TESTS_RANDOM_EXECUTE_HPP
