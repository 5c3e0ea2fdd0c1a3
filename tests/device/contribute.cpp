// SPDX-License-Identifier: BSD-3-Clause
//
// Partitions that many groups contribute uneven shares to, in an order that is new in every epoch, before and behind
// the receiver's Start; and shares of which there are too many.
#include "tests/device/harness.hpp"
#include "tests/device/workload.hpp"

using namespace device_test;

namespace {

// A partition in `cuts` shares; some of two have no bytes.
DEVICE_FN std::uint64_t cut_at(const port &p, int partition, int cut, int cuts) {
    const std::uint64_t bytes = p.send_bytes(), n = static_cast<std::uint64_t>(cut),
                        all = static_cast<std::uint64_t>(cuts);
    if (cut == cuts) return bytes;
    std::uint64_t draw = 0;
    for (std::uint64_t k = 0; k < 3; ++k)
        draw = draw << 8 | message_byte(p.out_key ^ static_cast<std::uint64_t>(partition), 3 * n + k);
    if (cut % 2 == 1 && draw % 3 == 0) return cut_at(p, partition, cut - 1, cuts);
    return cut == 0 ? 0 : bytes * n / all + ((bytes / all) * draw >> 24);
}

// The shares of all partitions from the `first`-th of `of` parts on to before the `end`-th.
struct contribute {
    port p;
    scope by;
    int cuts, first, end, of;
    bool receiving;

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        as_group(block, by, [&](const auto &group, int index, int groups) {
            const int mine = block_index * groups + index, all = blocks * groups, shares = p.sends * cuts;
            for (int k = shares * first / of + mine; k < shares * end / of; k += all) {
                const int share = shuffled(k, shares, p.out_key), i = share / cuts, n = share % cuts;
                const std::uint64_t begin = cut_at(p, i, n, cuts), bytes = cut_at(p, i, n + 1, cuts) - begin;
                p.fill(group, static_cast<std::uint64_t>(i) * p.send_bytes() + begin, bytes);
                p.expect(i, MPI_SUCCESS, mpix::pready_contribute(group, i, p.send, begin, bytes));
            }
            for (int j = mine; receiving && j < p.receives; j += all) {
                p.expect(j, MPI_SUCCESS, mpix::wait_arrived(group, p.receive, j, patience_ns));
                p.verify(group, j);
            }
        });
    }
};

struct launch {
    scope by;
    int blocks, threads;
};

void epochs(session &s, exchange &x, const launch &l, int cuts, int way) {
    const auto shares = [&](int first, int end, int of, bool receiving) {
        s.run(l.blocks, l.threads, contribute{x.view(), l.by, cuts, first, end, of, receiving});
    };
    const std::string by = std::string(" by ") + scope_name(l.by) + ", " + std::to_string(l.blocks) + " x " +
                           std::to_string(l.threads) + ", " + std::to_string(cuts) + " shares";
    if (way == 0) {
        s.what = "at once" + by;
        x.start();
        shares(0, 1, 1, true);
    } else if (way == 1) {
        s.what = "all before the receiver's Start" + by;
        x.next_epoch();
        x.start_send();
        shares(0, 1, 1, false);
        s.meet();
        x.start_receive();
        s.run(1, l.threads, transfer{x.view(), scope::block, false, true});
        s.meet();
    } else if (way == 2) {
        s.what = "some before the receiver's Start" + by;
        x.next_epoch();
        x.start_send();
        const int before = static_cast<int>(x.epoch % 5);
        shares(0, before, 5, false);
        s.meet();
        x.start_receive();
        for (MPI_Request r : x.requests) must(MPIX_Pbuf_prepare(r), "MPIX_Pbuf_prepare");
        shares(before, 5, 5, true);
    } else {
        s.what = "an ordinary epoch" + by;
        x.start();
        s.run(l.blocks, l.threads, transfer{x.view()});
    }
    x.wait();
    x.verify_received(2, 32);
}

// ---- more than there is ------------------------------------------------------------------------------------

// Two blocks, whose shares overlap in the middle, where they have the same bytes.
struct overlap {
    port p;
    std::uint64_t *tally;  // successes, MPI_ERR_ARG
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int) const {
        const std::uint64_t bytes = p.send_bytes() * 3 / 5, begin = block_index == 0 ? 0 : p.send_bytes() - bytes;
        for (int i = 0; i < p.sends; ++i) {
            const int code = mpix::pready_contribute(block, i, p.send, begin, bytes);
            p.expect(i, MPI_ERR_ARG, code == MPI_SUCCESS ? MPI_ERR_ARG : code);
            if (block.thread_rank() == 0) add_one(&tally[code != MPI_SUCCESS]);
            // There is nothing left to contribute to once one was refused.
            if (code != MPI_SUCCESS)
                p.expect(i, MPI_ERR_ARG, mpix::pready_contribute(block, i, p.send, 0, p.send_bytes()));
        }
    }
};

struct fill_body {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        p.fill(block, 0, p.bytes);
    }
};

void too_many(session &s, const shape &shape, int tag) {
    exchange x(s, shape, tag);
    const int threads = executor::is_gpu ? 64 : 2;
    auto *const tally = static_cast<std::uint64_t *>(s.device->allocate(2 * sizeof(std::uint64_t)));
    for (int round = 0; round < (s.quick ? 10 : 60); ++round) {
        s.what = "shares that overlap";
        x.start();
        s.device->set(tally, 0, 2 * sizeof(std::uint64_t));
        s.run(1, threads, fill_body{x.view()});
        s.run(2, threads, overlap{x.view(), tally});
        std::uint64_t found[2];
        s.device->download(found, tally, sizeof found);
        const auto expected = static_cast<std::uint64_t>(shape.sends);
        REQUIRE(found[0] == expected && found[1] == expected, "%llu successes, %llu times MPI_ERR_ARG",
                session::as_ull(found[0]), session::as_ull(found[1]));
        must_refuse(MPI_Wait(&x.requests[0], MPI_STATUS_IGNORE), MPI_ERR_ARG, "MPI_Wait after shares that overlap");
        x.wait_receive();
        x.verify_received(1, threads);
        s.meet();  // what was moved again is not of the next epoch
        for (int way = 0; way < 3; ++way) epochs(s, x, {scope::block, 2, threads}, 3, way);
    }
    x.check_guards();
    s.device->release(tally);
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device contribute");
    const shape shapes[] = {{.sends = 3, .receives = 3, .bytes = 3 * 1000},
                            {.sends = 1, .receives = 1, .bytes = std::uint64_t{1} << 20},
                            {.sends = 8, .receives = 2, .bytes = 8 * 16},
                            {.sends = 2, .receives = 3, .bytes = 6 * 50001, .send_skew = 1, .receive_skew = 6},
                            {.sends = 5, .receives = 5, .bytes = 0}};
    std::vector<launch> launches;
    if (executor::is_gpu)
        launches = {{scope::block, 16, 256}, {scope::warp, 3, 96},   {scope::block, 1, 64},
                    {scope::thread, 1, 64},  {scope::block, 7, 100}, {scope::tile4, 2, 32}};
    else
        launches = {{scope::block, 3, 2}, {scope::thread, 2, 3}, {scope::block, 1, 1}};
    const int rounds = s.epochs != 0 ? static_cast<int>(s.epochs) : s.quick ? 4 : 40;
    int tag = 0;
    for (const shape &shape : shapes) {
        exchange x(s, shape, ++tag);
        for (int round = 0; round < rounds; ++round) {
            const launch &l = launches[static_cast<std::size_t>(round) % launches.size()];
            const int cuts = 1 + round * 7 % 23;
            for (int way = 0; way < 4; ++way) epochs(s, x, l, cuts, (way + round) % 4);
        }
        x.check_guards();
    }
    too_many(s, shapes[0], ++tag);
    too_many(s, shapes[3], ++tag);
    return s.finish();
}
