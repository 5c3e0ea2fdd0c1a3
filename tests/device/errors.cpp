// SPDX-License-Identifier: BSD-3-Clause
//
// Erroneous device calls: the code that the kernel gets, the class that the host's MPI_Wait raises, and that the
// epoch can be completed and the next one is clean.
#include <type_traits>

#include "tests/device/harness.hpp"

using namespace device_test;

namespace {

// A handle has a type: nothing else can be passed for it.
static_assert(!std::is_convertible_v<void *, MPIX_Prequest> && !std::is_convertible_v<MPI_Request, MPIX_Prequest>);

const int threads = executor::is_gpu ? 64 : 2;

enum class misuse {
    // kept with the send
    below,
    above,
    range_reversed,
    range_below,
    range_above,
    list_length,
    list_null,
    contribute_above,
    share_above,
    share_beyond,
    share_far_beyond,
    share_twice,
    twice,
    range_twice,
    group_above,
    asked_send,
    waited_send,
    // kept with the receive
    readied_receive,
    group_readied_receive,
    shared_receive,
    asked_above,
    asked_below,
    waited_above,
    flag_null,
    // kept nowhere, for there is no request
    null_ready,
    null_range,
    null_list,
    null_group,
    null_share,
    count
};
constexpr const char *misuse_names[] = {"MPI_Pready(-1)",
                                        "MPI_Pready(partitions)",
                                        "MPI_Pready_range(1, 0)",
                                        "MPI_Pready_range(-1, 0)",
                                        "MPI_Pready_range(0, partitions)",
                                        "MPI_Pready_list of length -1",
                                        "MPI_Pready_list(null)",
                                        "mpix::pready_contribute(partitions)",
                                        "mpix::pready_contribute(partitions, a share)",
                                        "mpix::pready_contribute of a share that ends behind the partition",
                                        "mpix::pready_contribute of a share of 2^64 - 1 bytes",
                                        "mpix::pready_contribute of a share of a partition that is ready",
                                        "MPI_Pready twice",
                                        "mpix::pready_range of one that is ready",
                                        "mpix::pready(partitions)",
                                        "MPI_Parrived of a send",
                                        "mpix::wait_arrived of a send",
                                        "MPI_Pready of a receive",
                                        "mpix::pready of a receive",
                                        "mpix::pready_contribute of a share of a receive",
                                        "MPI_Parrived(partitions)",
                                        "MPI_Parrived(-1)",
                                        "mpix::wait_arrived(partitions)",
                                        "MPI_Parrived with a null flag",
                                        "MPI_Pready(null)",
                                        "MPI_Pready_range(null)",
                                        "MPI_Pready_list(null request)",
                                        "mpix::pready(null)",
                                        "mpix::pready_contribute(null, a share)"};
// What the host's error says.
constexpr const char *misuse_sentences[] = {
    "pready: the index is not within 0 to 2",
    "pready of partition 3: the index is not within 0 to 2",
    "pready_range of partition 0: the range is empty, or not within 0 to 2",
    "pready_range: the range is empty, or not within 0 to 2",
    "pready_range of partition 3: the range is empty, or not within 0 to 2",
    "MPI_Pready_list: the length is negative, or the list a null pointer",
    "MPI_Pready_list: the length is negative, or the list a null pointer",
    "pready_contribute of partition 3: the index is not within 0 to 2",
    "pready_contribute of partition 3: the index is not within 0 to 2",
    "pready_contribute of partition 0: the share ends beyond the partition",
    "pready_contribute of partition 0: the share ends beyond the partition",
    "pready_contribute of partition 0: it is ready already in this epoch",
    "pready of partition 0: it is ready already in this epoch",
    "pready_range of partition 0: it is ready already in this epoch",
    "pready of partition 3: the index is not within 0 to 2",
    "parrived of partition 0: the request is a send, and the call takes receives",
    "wait_arrived of partition 0: the request is a send, and the call takes receives",
    "pready of partition 0: the request is a receive, and the call takes sends",
    "pready of partition 0: the request is a receive, and the call takes sends",
    "pready_contribute of partition 0: the request is a receive, and the call takes sends",
    "parrived of partition 3: the index is not within 0 to 2",
    "parrived: the index is not within 0 to 2",
    "wait_arrived of partition 3: the index is not within 0 to 2",
    "parrived of partition 0: flag is a null pointer"};
static_assert(std::size(misuse_sentences) == static_cast<std::size_t>(misuse::null_ready));
static_assert(std::size(misuse_names) == static_cast<std::size_t>(misuse::count));

bool of_send(misuse m) { return m < misuse::readied_receive; }
bool of_receive(misuse m) { return !of_send(m) && m < misuse::null_ready; }
MPIX_FN int expected_class(misuse m) {
    return m == misuse::asked_send || m == misuse::waited_send || m == misuse::readied_receive ||
                   m == misuse::group_readied_receive || m == misuse::shared_receive || m >= misuse::null_ready
               ? MPI_ERR_REQUEST
               : MPI_ERR_ARG;
}

// One block that errs, before or after it does all that the epoch needs.
struct body {
    port p;
    misuse first, second;  // count: none
    bool err_first;

    template <class Block>
    DEVICE_FN void err(const Block &block, misuse m) const {
        if (m == misuse::count) return;
        const int end = p.sends;
        int code = MPI_SUCCESS, flag = 0, list[2] = {0, 1};
        block.sync();
        if (m == misuse::group_above) code = mpix::pready(block, end, p.send);
        if (m == misuse::range_twice) code = mpix::pready_range(block, 0, end - 1, p.send);
        if (m == misuse::contribute_above) code = mpix::pready_contribute(block, end, p.send);
        if (m == misuse::share_above) code = mpix::pready_contribute(block, end, p.send, 0, 1);
        if (m == misuse::share_beyond) code = mpix::pready_contribute(block, 0, p.send, 1, p.send_bytes());
        if (m == misuse::share_far_beyond) code = mpix::pready_contribute(block, 0, p.send, 1, ~std::uint64_t{0});
        if (m == misuse::share_twice) code = mpix::pready_contribute(block, 0, p.send, 0, 1);
        if (m == misuse::shared_receive) code = mpix::pready_contribute(block, 0, p.receive, 0, 1);
        if (m == misuse::null_share) code = mpix::pready_contribute(block, 0, MPIX_PREQUEST_NULL, 0, 1);
        if (m == misuse::waited_send) code = mpix::wait_arrived(block, p.send, 0, patience_ns);
        if (m == misuse::group_readied_receive) code = mpix::pready(block, 0, p.receive);
        if (m == misuse::waited_above) code = mpix::wait_arrived(block, p.receive, p.receives, patience_ns);
        if (m == misuse::null_group) code = mpix::pready(block, 0, MPIX_PREQUEST_NULL);
        if (code == MPI_SUCCESS && block.thread_rank() == 0) {
            if (m == misuse::below) code = MPI_Pready(-1, p.send);
            if (m == misuse::above) code = MPI_Pready(p.send, end);
            if (m == misuse::range_reversed) code = MPI_Pready_range(1, 0, p.send);
            if (m == misuse::range_below) code = MPI_Pready_range(-1, 0, p.send);
            if (m == misuse::range_above) code = MPI_Pready_range(0, end, p.send);
            if (m == misuse::list_length) code = MPI_Pready_list(-1, list, p.send);
            if (m == misuse::list_null) code = MPI_Pready_list(2, nullptr, p.send);
            if (m == misuse::twice) code = MPI_Pready(0, p.send);
            if (m == misuse::asked_send) code = MPI_Parrived(p.send, 0, &flag);
            if (m == misuse::readied_receive) code = MPI_Pready(0, p.receive);
            if (m == misuse::asked_above) code = MPI_Parrived(p.receive, p.receives, &flag);
            if (m == misuse::asked_below) code = MPI_Parrived(p.receive, -1, &flag);
            if (m == misuse::flag_null) code = MPI_Parrived(p.receive, 0, nullptr);
            if (m == misuse::null_ready) code = MPI_Pready(0, MPIX_PREQUEST_NULL);
            if (m == misuse::null_range) code = MPI_Pready_range(0, 1, MPIX_PREQUEST_NULL);
            if (m == misuse::null_list) code = MPI_Pready_list(2, list, MPIX_PREQUEST_NULL);
            if (flag) complain(p.errors, wrong::answer, p.epoch, 0, 0, 0, 1);
            p.expect(static_cast<int>(m), expected_class(m), code);
        } else if (block.thread_rank() != 0 && code != MPI_SUCCESS) {
            p.expect(static_cast<int>(m), expected_class(m), code);  // the same for all threads
        }
        block.sync();
    }

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        const auto again = [](misuse m) {
            return m == misuse::twice || m == misuse::range_twice || m == misuse::share_twice;
        };
        const bool repeats = again(first) || again(second);
        for (int i = 0; i < p.sends; ++i) p.fill(block, i);
        if (repeats) p.expect(0, MPI_SUCCESS, mpix::pready(block, 0, p.send));
        if (err_first) {
            err(block, first);
            err(block, second);
        }
        for (int i = repeats ? 1 : 0; i < p.sends; ++i) p.expect(i, MPI_SUCCESS, mpix::pready(block, i, p.send));
        for (int j = 0; j < p.receives; ++j) {
            p.expect(j, MPI_SUCCESS, mpix::wait_arrived(block, p.receive, j, patience_ns));
            p.verify(block, j);
        }
        if (!err_first) {
            err(block, first);
            err(block, second);
        }
    }
};

// A Wait that raises a device error completes the request: the next Start says so.
void wait_raises(MPI_Request &request, int error_class, const std::string &what, const std::string &sentence = "") {
    if (error_class != MPI_SUCCESS) {
        const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        must_refuse(code, error_class, ("MPI_Wait after " + what).c_str());
        REQUIRE(error_name(code).find(sentence) != std::string::npos, "MPI_Wait after %s does not say \"%s\": %s",
                what.c_str(), sentence.c_str(), error_name(code).c_str());
    } else {
        must(MPI_Wait(&request, MPI_STATUS_IGNORE), ("MPI_Wait after " + what).c_str());
    }
}

void misuses(session &s) {
    exchange x(s, {.sends = 3, .receives = 3, .bytes = 300}, 1);
    const auto epoch = [&](misuse first, misuse second, bool err_first) {
        s.what = first == misuse::count ? "no error" : misuse_names[static_cast<int>(first)];
        const int code = first == misuse::count ? MPI_SUCCESS : expected_class(first);
        x.start();
        s.run(1, threads, body{x.view(), first, second, err_first});
        // Late in an epoch a partition is ready, which is looked at before a share's end.
        const bool late_share = !err_first && (first == misuse::share_beyond || first == misuse::share_far_beyond);
        const misuse told = late_share ? misuse::share_twice : first;
        const std::string sentence = told < misuse::null_ready ? "epoch " + std::to_string(x.epoch) + ": " +
                                                                     misuse_sentences[static_cast<int>(told)]
                                                               : "";
        wait_raises(x.requests[0], of_send(first) ? code : MPI_SUCCESS, s.what, sentence);
        wait_raises(x.requests[1], of_receive(first) ? code : MPI_SUCCESS, s.what, sentence);
    };
    for (int m = 0; m < static_cast<int>(misuse::count); ++m) {
        // Late in one epoch, then early in the next: each has an error of its own to raise.
        epoch(static_cast<misuse>(m), misuse::count, false);
        epoch(static_cast<misuse>(m), misuse::count, true);
        epoch(misuse::count, misuse::count, true);
    }
    // The first of two is raised.
    epoch(misuse::above, misuse::asked_send, true);
    epoch(misuse::asked_send, misuse::above, true);
    epoch(misuse::readied_receive, misuse::asked_above, false);
    epoch(misuse::asked_above, misuse::readied_receive, false);
    epoch(misuse::count, misuse::count, false);
}

// ---- inactive and null ----------------------------------------------------------------------------------

struct inactive_body {
    port p;
    int waiting;  // what waits of the receive answer
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        for (const MPIX_Prequest r : {p.receive, MPIX_PREQUEST_NULL}) {
            const int code = r == MPIX_PREQUEST_NULL ? MPI_SUCCESS : waiting;
            if (!mpix::parrived(block, r, 0)) complain(p.errors, wrong::answer, p.epoch, 0, 0, 1, 0);
            p.expect(0, code, mpix::wait_arrived(block, r, 0, patience_ns));
            p.expect(0, code, mpix::wait_arrived(block, r, 0));
            int flag = 0;
            p.expect(0, MPI_SUCCESS, MPI_Parrived(r, 0, &flag));
            if (!flag) complain(p.errors, wrong::answer, p.epoch, 0, 0, 1, 0);
        }
        p.expect(0, MPI_ERR_REQUEST, mpix::pready(block, 0, p.send));
        p.expect(0, MPI_ERR_REQUEST, mpix::pready_contribute(block, 0, p.send, 0, 1));
        p.expect(0, MPI_SUCCESS, mpix::pready_contribute(block, 0, p.send, 1, 0));  // nothing is contributed
        if (block.thread_rank() == 0) p.expect(0, MPI_ERR_REQUEST, MPI_Pready(0, p.send));
        if (block.thread_rank() == 0) p.expect(0, MPI_ERR_REQUEST, MPI_Pready_range(0, 1, p.send));
    }
};

void inactive(session &s) {
    exchange x(s, {.sends = 3, .receives = 3, .bytes = 300}, 2);
    for (int round = 0; round < 3; ++round) {
        s.what = "inactive requests";
        // Behind an epoch a wait may be a late one of that epoch.
        const bool finds = x.epoch == 0;
        s.run(1, threads, inactive_body{x.view(), finds ? MPI_ERR_REQUEST : MPI_SUCCESS});
        for (MPI_Request &request : x.requests) {
            if (finds || &request == &x.requests[0])
                must_refuse(MPI_Start(&request), MPI_ERR_REQUEST, "MPI_Start");  // nor is it started
            must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait of an inactive request");
        }
        x.start();
        s.run(1, threads, transfer{x.view()});
        x.wait();
    }
}

// ---- pairs that cannot work --------------------------------------------------------------------------------

// Nothing will ever come: device code is not to wait for it.
struct hopeless_body {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        for (int i = 0; i < p.sends; ++i) p.expect(i, MPI_SUCCESS, mpix::pready(block, i, p.send));
        for (int j = 0; j < p.receives; ++j) {
            p.expect(j, MPI_SUCCESS, mpix::wait_arrived(block, p.receive, j, patience_ns));
            if (!mpix::parrived(block, p.receive, j)) complain(p.errors, wrong::answer, p.epoch, j, 0, 1, 0);
        }
    }
};

void refused(session &s) {
    exchange x(s, {.sends = 4, .receives = 2, .bytes = 400}, 5, exchange::made::send_only);
    must(MPI_Precv_init(x.in(), 2, 100, MPI_BYTE, s.peer, 5, s.comm, MPI_INFO_NULL, &x.requests[1]), "MPI_Precv_init");
    x.export_both();
    for (int round = 0; round < 3; ++round) {
        s.what = "a receive that is too short";
        x.start();
        s.run(1, threads, hopeless_body{x.view()});
        must_refuse(MPI_Wait(&x.requests[1], MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "MPI_Wait of the receive");
        x.wait_send();
    }
}

struct fill_body {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        p.fill(block, 0, p.bytes);
    }
};

// The host's erroneous Pready reports its error itself; what a kernel did wrong is Wait's to report, all the same.
struct beyond_body {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        p.expect(99, MPI_ERR_ARG, mpix::pready(block, 99, p.send));
    }
};
void beside_the_host(session &s) {
    exchange x(s, {.sends = 3, .receives = 3, .bytes = 300}, 6);
    for (int round = 0; round < 3; ++round) {
        s.what = "errors of the host and of a kernel";
        x.start();
        s.run(1, threads, fill_body{x.view()});
        must(MPI_Pready(0, x.requests[0]), "MPI_Pready");
        if (round == 1) must_refuse(MPI_Pready(0, x.requests[0]), MPI_ERR_ARG, "MPI_Pready, the second");
        s.run(1, threads, beyond_body{x.view()});
        if (round == 2) must_refuse(MPI_Pready(0, x.requests[0]), MPI_ERR_ARG, "MPI_Pready, the second");
        must(MPI_Pready_range(1, 2, x.requests[0]), "MPI_Pready_range");
        x.wait_receive();
        x.verify_received(1, threads);
        wait_raises(x.requests[0], MPI_ERR_ARG, s.what);
    }
}

// A send of which a call has failed is completed as any other, however late the receiver is.
struct ready_again_body {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        for (int i = 0; i < p.sends; ++i) {
            p.fill(block, i);
            p.expect(i, MPI_SUCCESS, mpix::pready(block, i, p.send));
        }
        p.expect(0, MPI_ERR_ARG, mpix::pready(block, 0, p.send));
    }
};
void before_the_receive(session &s) {
    exchange x(s, {.sends = 3, .receives = 3, .bytes = 300}, 7, exchange::made::send_only);
    s.what = "an error before there is a receive";
    x.export_one(x.requests[0], x.send);
    x.next_epoch();
    x.start_send();
    s.run(1, threads, ready_again_body{x.view()});
    int flag = 1;
    must(MPI_Test(&x.requests[0], &flag, MPI_STATUS_IGNORE), "MPI_Test of what can be completed yet");
    REQUIRE(!flag, "a send without a receiver is complete");
    s.meet();
    must(MPI_Precv_init(x.in(), 3, 100, MPI_BYTE, s.peer, 7, s.comm, MPI_INFO_NULL, &x.requests[1]), "MPI_Precv_init");
    x.start_receive();
    MPI_Status statuses[2];
    must_refuse(MPI_Waitall(2, x.requests, statuses), MPI_ERR_IN_STATUS, "MPI_Waitall");
    REQUIRE(statuses[0].MPI_ERROR == MPI_ERR_ARG && statuses[1].MPI_ERROR == MPI_SUCCESS,
            "MPI_Waitall gives the classes %d and %d", statuses[0].MPI_ERROR, statuses[1].MPI_ERROR);
    must(MPIX_Prequest_free(&x.send), "MPIX_Prequest_free of a request that MPI_Waitall has completed");
    x.verify_received(1, threads);
}

// A send that nobody can complete, since partitions are missing, is pending; the error is also that of its end.
void with_missing_partitions(session &s) {
    exchange x(s, {.sends = 3, .receives = 3, .bytes = 300}, 8);
    const std::string sentence = "pready of partition 99: the index is not within 0 to 2";
    const auto says = [&](const char *call, const std::string &words) {
        const std::string said = error_name(MPI_ERR_PENDING);
        REQUIRE(said.find(words) != std::string::npos, "%s does not say \"%s\": %s", call, words.c_str(), said.c_str());
    };
    for (int round = 0; round < 2; ++round) {
        s.what = "an error in place of partitions";
        x.start();
        s.run(1, threads, fill_body{x.view()});
        s.run(1, threads, beyond_body{x.view()});
        const char *const call = round == 0 ? "MPI_Wait" : "MPI_Waitall";
        MPI_Status status;
        if (round == 0)
            must_refuse(MPI_Wait(&x.requests[0], MPI_STATUS_IGNORE), MPI_ERR_PENDING, call);
        else
            must_refuse(MPI_Waitall(1, x.requests, &status), MPI_ERR_IN_STATUS, call);
        REQUIRE(round == 0 || status.MPI_ERROR == MPI_ERR_PENDING, "%s gives the class %d", call, status.MPI_ERROR);
        says(call, sentence);
        says(call, "the request is active still");
        if (!executor::is_gpu) says(call, "3 of 3 partitions not ready");
        int flag = 1;
        must(MPI_Test(&x.requests[0], &flag, MPI_STATUS_IGNORE), "MPI_Test after the error has been told");
        REQUIRE(!flag, "a send is complete without its partitions");
        must(MPI_Pready_range(0, 2, x.requests[0]), "MPI_Pready_range");
        x.wait_receive();
        x.verify_received(1, threads);
        wait_raises(x.requests[0], MPI_ERR_ARG, s.what, sentence);
    }
}

// ---- several that ready the same partition ---------------------------------------------------------------

struct racing_body {
    port p;
    scope by;
    std::uint64_t *tally;  // successes, MPI_ERR_ARG

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        as_group(block, by, [&](const auto &group, int, int) {
            for (int i = 0; i < p.sends; ++i) {
                const int code = mpix::pready(group, i, p.send);
                if (group.thread_rank() != 0) continue;
                if (code == MPI_SUCCESS)
                    add_one(&tally[0]);
                else if (code == MPI_ERR_ARG)
                    add_one(&tally[1]);
                else
                    p.expect(i, MPI_ERR_ARG, code);
            }
        });
    }
};

void races(session &s) {
    exchange x(s, {.sends = 4, .receives = 4, .bytes = 4 * 3000}, 3);
    auto *const tally = static_cast<std::uint64_t *>(s.device->allocate(2 * sizeof(std::uint64_t)));
    const int rounds = s.epochs != 0 ? static_cast<int>(s.epochs) : s.quick ? 20 : 300;
    for (int round = 0; round < rounds; ++round) {
        const scope by = round % 2 == 0 ? scope::block : executor::is_gpu ? scope::warp : scope::thread;
        s.what = std::string("racing groups: ") + scope_name(by);
        const int racers = by == scope::block ? 2 : executor::is_gpu ? 2 * (threads / 32) : 2 * threads;
        x.start();
        s.device->set(tally, 0, 2 * sizeof(std::uint64_t));
        s.run(1, threads, fill_body{x.view()});
        s.run(2, threads, racing_body{x.view(), by, tally});
        std::uint64_t found[2];
        s.device->download(found, tally, sizeof found);
        REQUIRE(found[0] == 4 && found[1] == static_cast<std::uint64_t>(4 * (racers - 1)),
                "%s: %llu successes, %llu times MPI_ERR_ARG", s.what.c_str(), session::as_ull(found[0]),
                session::as_ull(found[1]));
        // A loser may have been writing the same bytes again: not beyond this epoch.
        s.meet();
        wait_raises(x.requests[0], MPI_ERR_ARG, s.what);
        wait_raises(x.requests[1], MPI_SUCCESS, s.what);
        x.verify_received(1, threads);
    }
    s.device->release(tally);
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device errors");
    misuses(s);
    inactive(s);
    races(s);
    refused(s);
    beside_the_host(s);
    before_the_receive(s);
    with_missing_partitions(s);
    return s.finish();
}
