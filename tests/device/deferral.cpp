// SPDX-License-Identifier: BSD-3-Clause
//
// Partitions that are ready before the receiver is: the kernel goes on, and the progress engine moves them later,
// with the sender's host in calls that have nothing to do with partitions.
#include "tests/device/harness.hpp"

using namespace device_test;

namespace {

const int threads = executor::is_gpu ? 128 : 3;

transfer sending(const exchange &x, int first = 0, int last = -1) {
    return {x.view(), scope::block, true, false, first, last};
}
transfer receiving(const exchange &x) { return {x.view(), scope::block, false, true}; }

// The receiver starts only when told that the sender's kernel is through. Until the receiver has everything, the
// sender's host sits in MPI_Recv.
void one_way(session &s, exchange &x, int sender) {
    x.next_epoch();
    if (s.rank == sender) {
        x.start_send();
        s.run(2, threads, sending(x));
        if (!s.alone()) s.tell(s.peer);
    }
    if (s.rank != sender || s.alone()) {
        if (!s.alone()) s.hear(s.peer);
        x.start_receive();
        s.run(2, threads, receiving(x));
        if (!s.alone()) s.tell(s.peer);
        x.wait_receive();
    }
    if (s.rank == sender) {
        if (!s.alone()) s.hear(s.peer);
        x.wait_send();
    }
}

void both_ways(session &s, exchange &x) {
    x.next_epoch();
    x.start_send();
    s.run(3, threads, sending(x));
    s.meet();
    x.start_receive();
    s.run(2, threads, receiving(x));  // the progress engines are on their own
    s.meet();
    x.wait();
}

// Some partitions before, the others after the receiver's start, which the sender makes sure of.
void in_two_parts(session &s, exchange &x, int before) {
    x.next_epoch();
    x.start_send();
    if (before > 0) s.run(1, threads, sending(x, 0, before - 1));
    s.meet();
    x.start_receive();
    must(MPIX_Pbuf_prepare(x.requests[0]), "MPIX_Pbuf_prepare");
    must(MPIX_Pbuf_prepare(x.requests[1]), "MPIX_Pbuf_prepare");
    s.run(2, threads, sending(x, before, -1));
    s.run(2, threads, receiving(x));
    x.wait();
}

struct nothing_arrived {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        for (int j = 0; j < p.receives; ++j)
            if (mpix::parrived(block, p.receive, j)) complain(p.errors, wrong::answer, p.epoch, j, 0, 0, 1);
    }
};

struct look_once {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        (void)mpix::parrived(block, p.receive, 0);
    }
};

// A message that kernel and progress engine have moved between them, completed by MPI_Test as soon as that says
// so: what is known of its end must not pass for the next epoch's. Without a progress thread the sender moves the first
// partition when it is asked whether it is done, and then sits in a barrier: of what it writes at the end of the
// message, its engine's share is still to come when the receiver goes on.
void tested(session &s, exchange &x, int sender, bool by_thread) {
    const bool sends = s.rank == sender, receives = !sends || s.alone();
    x.next_epoch();
    if (sends) {
        x.start_send();
        s.run(1, threads, sending(x, 0, 0));
    }
    s.meet();
    if (receives) {
        x.start_receive();
        s.run(1, threads, look_once{x.view()});  // knows of the epoch
        if (!by_thread) {
            for (int there = 0; !there; host_poll_pause()) must(MPI_Parrived(x.requests[1], 0, &there), "MPI_Parrived");
            s.tell(sender);
        }
    }
    if (sends) {
        must(MPIX_Pbuf_prepare(x.requests[0]), "MPIX_Pbuf_prepare");
        for (int told = by_thread; !told;) {
            int done = 0;
            must(MPI_Test(&x.requests[0], &done, MPI_STATUS_IGNORE), "MPI_Test");
            REQUIRE(!done, "MPI_Test: a send is done of which one partition is ready");
            must(MPI_Iprobe(s.peer, MPI_ANY_TAG, s.comm, &told, MPI_STATUS_IGNORE), "MPI_Iprobe");
            host_poll_pause();
        }
        if (!by_thread) s.hear(s.peer);
        s.run(1, threads, sending(x, 1, -1));
    }
    if (receives) {
        for (int done = 0; !done; host_poll_pause())
            must(MPI_Test(&x.requests[1], &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (s.alone()) x.wait_send();
        port before = x.view();
        x.start_receive();
        s.run(1, threads, nothing_arrived{x.view()});
        before.receive = MPIX_PREQUEST_NULL;  // arrived by definition; the peer's next bytes come after the barrier
        s.run(1, threads, transfer{before, scope::block, false, true});
        x.next_epoch();
    }
    s.meet();
    if (sends) {
        if (!s.alone()) {
            x.wait_send();
            x.next_epoch();
        }
        x.start_send();
        s.run(1, threads, sending(x));
    }
    if (receives) {
        s.run(1, threads, receiving(x));
        x.wait_receive();
    }
    if (sends) x.wait_send();
}

// The peer does not even know of the receive yet.
void unmatched(session &s, const shape &shape, int tag) {
    s.what = "before MPI_Precv_init";
    exchange x(s, shape, tag, exchange::made::send_only);
    x.export_one(x.requests[0], x.send);
    x.next_epoch();
    x.start_send();
    s.run(2, threads, sending(x));
    s.meet();
    x.init_receive();
    x.export_one(x.requests[1], x.receive);
    x.start_receive();
    s.run(2, threads, receiving(x));
    s.meet();
    x.wait();
    x.start();
    s.run(2, threads, transfer{x.view()});
    x.wait();
    x.verify_received(2, threads);
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device deferral");
    // The second one is larger than what gets room for two epochs in node memory.
    const shape shapes[] = {{.sends = 5, .receives = 5, .bytes = 5 * 1000},
                            {.sends = 3, .receives = 4, .bytes = 12 * 100000, .send_skew = 1, .receive_skew = 2},
                            {.sends = 8, .receives = 2, .bytes = 8 * 16}};
    // Without a progress thread nothing moves unless the host asks.
    const char *const progress = std::getenv("MPIX_PROGRESS");
    const bool by_thread = progress == nullptr || std::string(progress) != "never";
    const int rounds = s.epochs != 0 ? static_cast<int>(s.epochs) : s.quick ? 2 : 8;
    int tag = 0;
    for (const shape &shape : shapes) {
        if (!by_thread && shape.receives < shape.sends) continue;
        {
            exchange x(s, shape, ++tag);
            for (int i = 0; i < rounds; ++i) {
                if (by_thread) {
                    s.what = "one way";
                    one_way(s, x, i % s.size);
                    s.what = "both ways";
                    both_ways(s, x);
                    s.what = "some before";
                    in_two_parts(s, x, i % (shape.sends + 1));
                }
                s.what = "completed by MPI_Test";
                tested(s, x, i % s.size, by_thread);
                s.what = "an ordinary epoch";
                x.start();
                s.run(2, threads, transfer{x.view()});
                x.wait();
            }
            x.check_guards();
        }
        if (by_thread) unmatched(s, shape, ++tag);
    }
    return s.finish();
}
