// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Start forgotten before a kernel: wait_arrived and pready fail, and the host's next call, whichever it is, raises
// the error of that time, not of a later epoch. A late call is no error: the host may complete an epoch before its
// kernel makes its last call. After the first epoch only host threads can tell the two apart, by the thread that
// launched them.
#include "tests/device/harness.hpp"

using namespace device_test;

namespace {

const int threads = executor::is_gpu ? 64 : 2;

// No MPI_Start before it.
struct forgotten {
    port p;
    bool sending;
    int waiting;  // what waits answer
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        if (sending) {
            p.expect(0, MPI_ERR_REQUEST, mpix::pready(block, 0, p.send));
            p.expect(0, MPI_ERR_REQUEST, mpix::pready(block, 0, mpix::prepare_send(block, p.send)));
            p.expect(0, MPI_ERR_REQUEST, mpix::pready_range(block, 0, 1, p.send));
        }
        p.expect(1, waiting, mpix::wait_arrived(block, p.receive, 1, patience_ns));
        p.expect(1, waiting, mpix::wait_arrived(block, p.receive, 1));
        p.expect(1, waiting, mpix::wait_arrived(block, p.receive, 1, 0));
        p.expect(1, waiting, mpix::wait_arrived(mpix::this_thread(), p.receive, 1));
        const mpix::prepared_receive prepared = mpix::prepare_receive(block, p.receive);
        p.expect(1, waiting, mpix::wait_arrived(block, prepared, 1));
        // As in MPI.
        int flag = 0;
        p.expect(1, MPI_SUCCESS, MPI_Parrived(p.receive, 1, &flag));
        if (!flag || !mpix::parrived(block, p.receive, 1) || !mpix::parrived(block, prepared, 1))
            complain(p.errors, wrong::answer, p.epoch, 1, 0, 1, 0);
    }
};

// Whether a wait before which MPI_Start was forgotten is found out.
// Behind an epoch it might be a late one, since the executor launches from a thread of its own.
bool finds(const exchange &x) { return x.epoch == 0; }
forgotten body(const exchange &x, bool sending = true) {
    return {x.view(), sending, finds(x) ? MPI_ERR_REQUEST : MPI_SUCCESS};
}

// Every call that could hear of it, of one request.
struct way {
    const char *call;
    int (*ask)(MPI_Request *request);
};
const way ways[] = {
    {"MPI_Start", [](MPI_Request *r) { return MPI_Start(r); }},
    {"MPI_Startall", [](MPI_Request *r) { return MPI_Startall(1, r); }},
    {"MPI_Wait", [](MPI_Request *r) { return MPI_Wait(r, MPI_STATUS_IGNORE); }},
    {"MPI_Test",
     [](MPI_Request *r) {
         int flag = 0;
         return MPI_Test(r, &flag, MPI_STATUS_IGNORE);
     }},
    {"MPI_Request_get_status",
     [](MPI_Request *r) {
         int flag = 0;
         return MPI_Request_get_status(*r, &flag, MPI_STATUS_IGNORE);
     }},
    {"MPI_Waitall", [](MPI_Request *r) { return MPI_Waitall(1, r, MPI_STATUSES_IGNORE); }},
    {"MPI_Testall",
     [](MPI_Request *r) {
         int flag = 0;
         return MPI_Testall(1, r, &flag, MPI_STATUSES_IGNORE);
     }},
    {"MPI_Waitany",
     [](MPI_Request *r) {
         int index = 0;
         return MPI_Waitany(1, r, &index, MPI_STATUS_IGNORE);
     }},
    {"MPI_Testany",
     [](MPI_Request *r) {
         int flag = 0, index = 0;
         return MPI_Testany(1, r, &index, &flag, MPI_STATUS_IGNORE);
     }},
    {"MPI_Waitsome",
     [](MPI_Request *r) {
         int count = 0, index = 0;
         return MPI_Waitsome(1, r, &count, &index, MPI_STATUSES_IGNORE);
     }},
    {"MPI_Testsome",
     [](MPI_Request *r) {
         int count = 0, index = 0;
         return MPI_Testsome(1, r, &count, &index, MPI_STATUSES_IGNORE);
     }},
};

void must_tell(int code, const way &w, const std::string &what, std::uint64_t before_epoch) {
    int error_class = MPI_SUCCESS;
    MPI_Error_class(code, &error_class);
    REQUIRE(error_class == MPI_ERR_REQUEST || error_class == MPI_ERR_IN_STATUS, "%s gave %s", w.call,
            error_name(code).c_str());
    for (const std::string &part : {what, "before epoch " + std::to_string(before_epoch) + " was started",
                                    std::string("the request is not active; call MPI_Start before the kernel")})
        REQUIRE(error_name(code).find(part) != std::string::npos, "%s does not say \"%s\": %s", w.call, part.c_str(),
                error_name(code).c_str());
}

void every_call(session &s, std::uint64_t bytes) {
    exchange x(s, {.sends = 2, .receives = 2, .bytes = bytes}, 1);
    for (const way &w : ways) {
        s.what = std::string(w.call) + ", " + std::to_string(bytes) + " bytes";
        s.run(1, threads, body(x));
        must_tell(w.ask(&x.requests[0]), w, "send to rank " + std::to_string(s.peer) + ", tag 1", x.epoch + 1);
        if (finds(x)) must_tell(w.ask(&x.requests[1]), w, "wait_arrived of partition 1", x.epoch + 1);
        // Told once, and of no other epoch.
        must(MPI_Waitall(2, x.requests, MPI_STATUSES_IGNORE), "MPI_Waitall of inactive requests");
        x.start();
        s.run(1, threads, transfer{x.view()});
        x.wait();
        x.verify_received(1, threads);
    }
    // The host's is the next of both in one call: the first is told, then the other, and nothing is started by that.
    s.run(1, threads, body(x));
    must_refuse(MPI_Startall(2, x.requests), MPI_ERR_REQUEST, "MPI_Startall");
    if (finds(x)) must_refuse(MPI_Startall(2, x.requests), MPI_ERR_REQUEST, "MPI_Startall, the second");
    x.start();
    s.run(1, threads, transfer{x.view()});
    x.wait();
    s.run(1, threads, body(x));
    must_refuse(MPIX_Prequest_free(&x.send), MPI_ERR_REQUEST, "MPIX_Prequest_free");
    if (finds(x))
        must_refuse(MPIX_Prequest_free(&x.receive), MPI_ERR_REQUEST, "MPIX_Prequest_free");
    else
        must(MPIX_Prequest_free(&x.receive), "MPIX_Prequest_free");
    REQUIRE(x.send == MPIX_PREQUEST_NULL && x.receive == MPIX_PREQUEST_NULL, "freed all the same");
}

// Waits when the host says so: at go[0] == 1, and again at 2.
struct late {
    port p;
    std::uint64_t *go;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        for (std::uint64_t turn = 1; turn <= 2; ++turn) {
            if (block.thread_rank() == 0)
                while (mpix::detail::load_acquire(go) < turn) poll_pause();
            block.sync();
            for (int j = 0; j < p.receives; ++j) {
                p.expect(j, MPI_SUCCESS, mpix::wait_arrived(block, p.receive, j, patience_ns));
                p.verify(block, j);
            }
        }
    }
};

// turn: of the kernel's two waits, the host completes the epoch before the first, or before the second.
void late_kernel(session &s, std::uint64_t first_late_turn) {
    exchange x(s, {.sends = 2, .receives = 2, .bytes = 2000}, 2);
    auto *const go = static_cast<std::uint64_t *>(s.device->allocate_shared(sizeof(std::uint64_t)));
    for (int round = 0; round < 4; ++round) {
        s.what = "late in turn " + std::to_string(first_late_turn) + ", round " + std::to_string(round);
        *go = 0;
        x.start();
        s.run(1, threads, transfer{x.view(), scope::block, true, false});
        s.device->launch(1, threads, late{x.view(), go});
        mpix::detail::store_release(go, first_late_turn - 1);
        x.wait();
        mpix::detail::store_release(go, 2);
        s.settle();
        // What is launched behind that is not late.
        if (round % 2 == 0) continue;
        s.run(1, threads, body(x, false));
        if (finds(x))
            must_tell(MPI_Wait(&x.requests[1], MPI_STATUS_IGNORE), ways[2], "wait_arrived of partition 1", x.epoch + 1);
    }
    s.device->release_shared(go);
}

#if !defined(__CUDACC__)
// The thread that completed the last epoch launches: the wait cannot be a late one. Another thread's may be.
void launched_afterwards(session &s) {
    exchange x(s, {.sends = 2, .receives = 2, .bytes = 2000}, 3);
    for (int round = 0; round < 3; ++round) {
        s.what = "launched by the thread that has completed the epoch, round " + std::to_string(round);
        x.start();
        s.run(1, threads, transfer{x.view()});
        x.wait();
        const auto waits = [&](int expected) {
            mpix::host_launch(2, threads, [&](const mpix::host_group &block) {
                x.view().expect(1, expected, mpix::wait_arrived(block, x.receive, 1));
            });
        };
        std::thread([&] { waits(MPI_SUCCESS); }).join();
        waits(MPI_ERR_REQUEST);
        must_tell(MPI_Wait(&x.requests[1], MPI_STATUS_IGNORE), ways[2], "wait_arrived of partition 1", x.epoch + 1);
    }
}
#endif

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "MPI_Start forgotten");
    every_call(s, 2 * 1000);
    every_call(s, 2 * 64);
    late_kernel(s, 1);
    late_kernel(s, 2);
#if !defined(__CUDACC__)
    launched_afterwards(s);
#endif
    return s.finish();
}
