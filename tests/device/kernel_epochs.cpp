// SPDX-License-Identifier: BSD-3-Clause
//
// Kernels that run the epochs: the host starts the requests once, and a kernel of many blocks ends each epoch and starts
// the next one, by wait, start and next_epoch of different groups, one request after another or lists. Activations of
// many epochs, of one, and epochs of the host alone take turns. Data are fresh in every epoch.
#include "tests/device/grid_barrier.hpp"
#include "tests/device/workload.hpp"

using namespace device_test;

namespace {

// How the first block goes from one epoch to the next.
enum class by : int { list, next_list, threads, each, handles, late, last };

struct body {
    workload work;
    MPIX_Prequest requests[2 * most_ports];  // in memory that the device reads: a kernel argument
    grid_barrier meet;
    std::uint64_t seed;
    int rank, peer;
    long epochs;
    bool waits_at_end;

    template <class Group>
    DEVICE_FN void expect(const Group &group, int code, int step) const {
        if (group.thread_rank() == 0) work.ports[0].expect(step, MPI_SUCCESS, code);
    }

    template <class Block>
    DEVICE_FN void end(const Block &block, by how) const {
        const int n = 2 * work.count;
        if (how == by::threads) {
            for (int i = static_cast<int>(block.thread_rank()); i < n; i += static_cast<int>(block.num_threads()))
                expect(mpix::this_thread(), mpix::wait(mpix::this_thread(), requests[i], patience_ns), 100 + i);
        } else if (how == by::each) {
            for (int i = 0; i < n; ++i) expect(block, mpix::wait(block, requests[i], patience_ns), 100 + i);
        } else {
            expect(block, mpix::wait(block, n, requests, patience_ns), 100);
        }
    }
    template <class Block>
    DEVICE_FN void begin(const Block &block, by how) const {
        const int n = 2 * work.count;
        if (how == by::threads) {
            for (int i = static_cast<int>(block.thread_rank()); i < n; i += static_cast<int>(block.num_threads()))
                expect(mpix::this_thread(), mpix::start(mpix::this_thread(), requests[i]), 200 + i);
        } else if (how == by::each) {
            for (int i = n - 1; i >= 0; --i) expect(block, mpix::start(block, requests[i]), 200 + i);
        } else {
            expect(block, mpix::start(block, n, requests), 200);
        }
    }

    template <class Block>
    DEVICE_FN void poison(const Block &block, int index, int blocks) const {
        for (int i = 0; i < work.count; ++i) {
            const port &p = work.ports[i];
            const std::uint64_t threads = static_cast<std::uint64_t>(block.num_threads());
            const std::uint64_t step = static_cast<std::uint64_t>(blocks) * threads;
            for (std::uint64_t at =
                     static_cast<std::uint64_t>(index) * threads + static_cast<std::uint64_t>(block.thread_rank());
                 at < p.bytes; at += step)
                p.in[at] = static_cast<char>(exchange::fresh);
        }
    }

    // The epoch handles of the first block, which sends and waits by them.
    template <class Block>
    DEVICE_FN void next_by_handles(const Block &block) const {
        for (int i = 0; i < work.count; ++i) {
            mpix::prepared_send out = mpix::prepare_send(block, work.ports[i].send);
            mpix::prepared_receive in = mpix::prepare_receive(block, work.ports[i].receive);
            expect(block, mpix::next_epoch(block, out, patience_ns), 300 + i);
            expect(block, mpix::next_epoch(block, in, patience_ns), 350 + i);
        }
    }

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int index, int blocks) const {
        const std::uint64_t first = work.ports[0].epoch;
        for (long k = 0; k < epochs; ++k) {
            const std::uint64_t epoch = first + static_cast<std::uint64_t>(k);
            port now[most_ports] = {};
            for (int i = 0; i < work.count; ++i) {
                now[i] = work.ports[i];
                now[i].epoch = epoch;
                now[i].out_key = message_key(seed, rank, i, epoch);
                now[i].in_key = message_key(seed, peer, i, epoch);
            }
            work.epoch(block, index, blocks, now);
            if (k + 1 == epochs && !waits_at_end) return;
            const by how = static_cast<by>(epoch * 7 % 11 % static_cast<int>(by::last));
            meet(block);
            if (how == by::next_list || how == by::handles) {
                if (index == 0 && k + 1 < epochs) {
                    if (how == by::handles)
                        next_by_handles(block);
                    else
                        expect(block, mpix::next_epoch(block, 2 * work.count, requests, patience_ns), 400);
                } else if (index == 0) {
                    end(block, how);
                }
            } else {
                if (index == 0) end(block, how);
                meet(block);
                // What has been waited for can still be asked for.
                for (int i = 0; i < work.count; ++i) {
                    const int part = index % work.ports[i].receives;
                    now[i].expect(part, MPI_SUCCESS,
                                  mpix::wait_arrived(block, work.ports[i].receive, part, patience_ns));
                    now[i].verify(block, part);
                }
                meet(block);
                if (k + 1 < epochs) poison(block, index, blocks);
                meet(block);
                if (how == by::late && index == 0 && rank == 0) pass_time();  // the peer finds no clear-to-send
                if (index == 0 && k + 1 < epochs) begin(block, how);
            }
            meet(block);
        }
    }

    DEVICE_FN void pass_time() const {
#ifdef __CUDACC__
        std::uint64_t begin, now;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
        do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        while (now - begin < 100000);
#endif
    }
};

// MPI_Wait that raises an error of a kernel, and completes the request.
int failed_wait(MPI_Request &request, const char *what) {
    const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    must_refuse(code, MPI_ERR_REQUEST, what);
    return code;
}

std::string message_of(int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return text;
}

struct one_request {
    report *errors;
    MPIX_Prequest request;
    int wait_code, start_code;

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        if (wait_code >= 0) expect_code(errors, 0, 1, wait_code, mpix::wait(block, request, patience_ns));
        if (start_code >= 0) expect_code(errors, 0, 2, start_code, mpix::start(block, request));
    }
};

// No lists.
struct no_lists {
    report *errors;

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        const MPIX_Prequest null = MPIX_PREQUEST_NULL;
        for (const MPIX_Prequest *const list : {static_cast<const MPIX_Prequest *>(nullptr), &null}) {
            const int n = list == nullptr ? 2 : -1;
            expect_code(errors, 0, 1, MPI_ERR_ARG, mpix::wait(block, n, list, patience_ns));
            expect_code(errors, 0, 2, MPI_ERR_ARG, mpix::start(block, n, list));
            expect_code(errors, 0, 3, MPI_ERR_ARG, mpix::next_epoch(block, n, list, patience_ns));
        }
        expect_code(errors, 0, 4, MPI_SUCCESS,
                    mpix::wait(block, 0, static_cast<const MPIX_Prequest *>(nullptr), patience_ns));
    }
};

// A receive and a send of MPI_PROC_NULL, whose epochs end at once.
struct null_peer {
    report *errors;
    MPIX_Prequest send, receive;

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        const MPIX_Prequest both[] = {send, receive};
        for (int epoch = 0; epoch < 5; ++epoch) {
            for (int p = 0; p < 3; ++p) expect_code(errors, 0, p, MPI_SUCCESS, mpix::pready(block, p, send));
            for (int p = 0; p < 3; ++p)
                expect_code(errors, 0, p, MPI_SUCCESS, mpix::wait_arrived(block, receive, p, patience_ns));
            expect_code(errors, 0, 10 + epoch, MPI_SUCCESS,
                        epoch < 4 ? mpix::next_epoch(block, 2, both, patience_ns) : mpix::wait(block, 2, both));
        }
    }
};

// An error in the first epoch, and so many more epochs.
struct error_long_ago {
    report *errors;
    MPIX_Prequest receive;
    int epochs;

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        expect_code(errors, 0, 0, MPI_ERR_REQUEST, mpix::start(block, receive));  // not waited for
        for (int i = 0; i < epochs; ++i) expect_code(errors, 0, 1, MPI_SUCCESS, mpix::next_epoch(block, receive));
    }
};

void null_peers(session &s) {
    s.what = "MPI_PROC_NULL";
    char *const buffer = static_cast<char *>(s.device->allocate(48));
    MPI_Request requests[2];
    must(MPI_Psend_init(buffer, 3, 8, MPI_BYTE, MPI_PROC_NULL, 5, s.comm, MPI_INFO_NULL, &requests[0]),
         "MPI_Psend_init");
    must(MPI_Precv_init(buffer + 24, 3, 8, MPI_BYTE, MPI_PROC_NULL, 5, s.comm, MPI_INFO_NULL, &requests[1]),
         "MPI_Precv_init");
    MPIX_Prequest handles[2];
    for (int i = 0; i < 2; ++i)
        must(MPIX_Prequest_create(requests[i], MPI_INFO_NULL, &handles[i]), "MPIX_Prequest_create");
    for (int activation = 0; activation < 2; ++activation) {
        must(MPI_Startall(2, requests), "MPI_Startall");
        s.run(1, executor::is_gpu ? 64 : 2, null_peer{s.errors, handles[0], handles[1]});
        MPI_Status statuses[2];
        must(MPI_Waitall(2, requests, statuses), "MPI_Waitall");
        REQUIRE(statuses[1].MPI_SOURCE == MPI_PROC_NULL, "the receive's source is %d", statuses[1].MPI_SOURCE);
    }
    // The word by which the host hears of an error has 16 bits of its epoch, and of whether it was active.
    must(MPI_Start(&requests[1]), "MPI_Start");
    s.run(1, 1, error_long_ago{s.errors, handles[1], s.quick ? 10 : 40000});
    const std::string error = message_of(failed_wait(requests[1], "MPI_Wait after an error long ago"));
    REQUIRE(error.find("epoch 11: start") != std::string::npos, "the error is \"%s\"", error.c_str());
    for (int i = 0; i < 2; ++i) {
        must(MPIX_Prequest_free(&handles[i]), "MPIX_Prequest_free");
        must(MPI_Request_free(&requests[i]), "MPI_Request_free");
    }
    s.device->release(buffer);
}

// Calls that are errors, and what the host says of them.
void errors(session &s) {
    s.what = "errors";
    s.run(1, 1, one_request{s.errors, MPIX_PREQUEST_NULL, MPI_SUCCESS, MPI_ERR_REQUEST});
    s.run(1, executor::is_gpu ? 64 : 2, no_lists{s.errors});
    exchange x(s, {}, 77);
    // Before the host's Start.
    s.run(1, 1, one_request{s.errors, x.send, MPI_SUCCESS, MPI_ERR_REQUEST});
    must_refuse(MPI_Start(&x.requests[0]), MPI_ERR_REQUEST, "MPI_Start after start of an inactive request");
    x.start();
    s.run(1, 1, one_request{s.errors, x.receive, -1, MPI_ERR_REQUEST});  // not waited for
    s.run(2, executor::is_gpu ? 64 : 2, transfer{x.view()});
    s.run(1, 1, one_request{s.errors, x.send, MPI_SUCCESS, MPI_SUCCESS});
    s.run(1, 1, one_request{s.errors, x.send, -1, MPI_ERR_REQUEST});
    const port first = x.view();
    x.epoch = 2;
    s.run(2, executor::is_gpu ? 64 : 2, transfer{x.view(), scope::block, true, false});
    s.run(1, 1, transfer{first, scope::block, false, true});  // nothing has overwritten the first epoch's bytes
    failed_wait(x.requests[1], "MPI_Wait of the receive");
    // The peer's second epoch.
    x.start_receive();
    s.run(2, executor::is_gpu ? 64 : 2, transfer{x.view(), scope::block, false, true});
    x.wait_receive();
    const int code = failed_wait(x.requests[0], "MPI_Wait of the send");
    REQUIRE(message_of(code).find("epoch 2: start") != std::string::npos, "the error is \"%s\"",
            message_of(code).c_str());
    // After the host has completed what a kernel had waited for, and in the next activation before the kernel's wait.
    const auto run_epoch = [&](int start_code) {
        x.start();
        s.run(1, 1, one_request{s.errors, x.receive, -1, start_code});
        s.run(2, executor::is_gpu ? 64 : 2, transfer{x.view()});
    };
    run_epoch(MPI_ERR_REQUEST);
    for (const MPIX_Prequest request : {x.send, x.receive})
        s.run(1, 1, one_request{s.errors, request, MPI_SUCCESS, -1});
    x.wait_send();
    failed_wait(x.requests[1], "MPI_Wait of the receive");
    for (int i = 0; i < 2; ++i) {
        s.run(1, 1, one_request{s.errors, i == 0 ? x.send : x.receive, -1, MPI_ERR_REQUEST});
        must_refuse(MPI_Start(&x.requests[i]), MPI_ERR_REQUEST, "MPI_Start after start of a completed request");
    }
    run_epoch(MPI_ERR_REQUEST);
    x.wait_send();
    failed_wait(x.requests[1], "MPI_Wait of the receive");
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device kernel epochs");
    const long usual = executor::is_gpu ? 2000 : 200;
    const long most = s.epochs != 0 ? s.epochs : s.quick ? 40 : usual;
    const int blocks = executor::is_gpu ? 13 : 2;
    null_peers(s);
    errors(s);
    s.what = "activations";
    {
        exchanges all(s);
        auto *const arrived = static_cast<std::uint64_t *>(s.device->allocate(sizeof(std::uint64_t)));
        s.device->set(arrived, 0, sizeof(std::uint64_t));
        const long counts[] = {1, 2, 1, 7, 1, 1, most, 3};
        for (std::size_t a = 0; a < std::size(counts); ++a) {
            const long epochs = counts[a];
            all.start();
            const workload work = all.view();
            body kernel{work, {}, {arrived, blocks}, s.seed, s.rank, s.peer, epochs, a % 3 != 1};
            for (int i = 0; i < work.count; ++i) {
                kernel.requests[2 * i] = work.ports[i].receive;
                kernel.requests[2 * i + 1] = work.ports[i].send;
            }
            s.device->launch_cooperative(blocks, executor::is_gpu ? 128 : 2, kernel);
            s.settle();
            if (a % 2 == 0)
                all.wait();
            else
                all.poll();
            all.count_epochs(epochs - 1);
            all.check_guards();
        }
        s.device->release(arrived);
    }
    return s.finish();
}
