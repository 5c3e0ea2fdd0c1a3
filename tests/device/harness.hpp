// SPDX-License-Identifier: BSD-3-Clause
//
// What the device tests share: the program's frame, data that is fresh in every epoch, the device's report of
// what it found wrong, and a pair of exported requests, one in each direction.
//
// Any failure ends the program at once, for the peer could not go on alone.
#ifndef MPIX_TESTS_DEVICE_HARNESS_HPP
#define MPIX_TESTS_DEVICE_HARNESS_HPP

#include <getopt.h>
#include <mpi.h>

#include <algorithm>
#include <cstdarg>
#include <optional>
#include <string>
#include <vector>

#include "tests/device/executor.hpp"

namespace device_test {

constexpr std::uint64_t patience_ns = 20'000'000'000u;  // for what must come

// ---- data --------------------------------------------------------------------------------------------

MPIX_FN std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// What the message of one sender in one epoch is made from, and the byte at an offset in it.
MPIX_FN std::uint64_t message_key(std::uint64_t seed, int source, int tag, std::uint64_t epoch) {
    const std::uint64_t who = static_cast<std::uint64_t>(source) << 32 | static_cast<std::uint32_t>(tag);
    return mix(seed + mix(who) + epoch * 0x9e3779b97f4a7c15u);
}
MPIX_FN unsigned char message_byte(std::uint64_t key, std::uint64_t offset) {
    return static_cast<unsigned char>(mix(key + (offset >> 3)) >> (8 * (offset & 7)));
}

// ---- the device's report --------------------------------------------------------------------------------

enum class wrong : std::uint64_t { byte, code, timeout, answer, guard, path };
inline const char *wrong_name(wrong w) {
    constexpr const char *names[] = {"wrong byte",   "wrong return code",          "nothing within the deadline",
                                     "wrong answer", "byte outside of the buffer", "another path"};
    return names[static_cast<int>(w)];
}

struct report {
    std::uint64_t errors;
    // Of the first one.
    wrong what;
    std::uint64_t epoch, partition, offset, expected, found;
};

DEVICE_FN void complain(report *r, wrong what, std::uint64_t epoch, int partition, std::uint64_t offset,
                        std::uint64_t expected, std::uint64_t found) {
    if (add_one(&r->errors) != 0) return;
    r->what = what;
    r->epoch = epoch;
    r->partition = static_cast<std::uint64_t>(partition);
    r->offset = offset;
    r->expected = expected;
    r->found = found;
}

DEVICE_FN void expect_code(report *r, std::uint64_t epoch, int partition, int expected, int found) {
    if (expected != found)
        complain(r, found == MPI_ERR_PENDING ? wrong::timeout : wrong::code, epoch, partition, 0,
                 static_cast<std::uint64_t>(expected), static_cast<std::uint64_t>(found));
}

// ---- what a kernel sees of an exchange ------------------------------------------------------------------

// One side's view: a message out in `sends` partitions, a message of the same size in, in `receives`.
struct port {
    MPIX_Prequest send, receive;
    char *out, *in;
    int sends, receives;
    std::uint64_t bytes;  // of a message
    std::uint64_t out_key, in_key;
    std::uint64_t epoch;
    report *errors;

    DEVICE_FN std::uint64_t send_bytes() const { return bytes / static_cast<std::uint64_t>(sends); }
    DEVICE_FN std::uint64_t receive_bytes() const { return bytes / static_cast<std::uint64_t>(receives); }

    // The bytes from `at` on of the message to be sent, by all threads of the group.
    template <class Group>
    DEVICE_FN void fill(const Group &group, std::uint64_t at, std::uint64_t count) const {
        const std::uint64_t step = static_cast<std::uint64_t>(group.num_threads());
        for (std::uint64_t i = at + static_cast<std::uint64_t>(group.thread_rank()); i < at + count; i += step)
            out[i] = static_cast<char>(message_byte(out_key, i));
    }
    template <class Group>
    DEVICE_FN void fill(const Group &group, int partition) const {
        fill(group, static_cast<std::uint64_t>(partition) * send_bytes(), send_bytes());
    }

    template <class Group>
    DEVICE_FN void verify(const Group &group, int partition) const {
        const std::uint64_t step = static_cast<std::uint64_t>(group.num_threads());
        const std::uint64_t at = static_cast<std::uint64_t>(partition) * receive_bytes();
        const std::uint64_t end = at + receive_bytes();
        for (std::uint64_t i = at + static_cast<std::uint64_t>(group.thread_rank()); i < end; i += step) {
            const unsigned char expected = message_byte(in_key, i), found = static_cast<unsigned char>(in[i]);
            if (expected != found) complain(errors, wrong::byte, epoch, partition, i, expected, found);
        }
    }
    DEVICE_FN void expect(int partition, int expected, int found) const {
        expect_code(errors, epoch, partition, expected, found);
    }
};

// The usual kernel: group g of G fills and readies its share of the partitions first to last, then waits for
// its share of the incoming ones and checks them.
struct transfer {
    port p;
    scope by = scope::block;
    bool sending = true, receiving = true;
    int first = 0, last = -1;  // partitions to ready; -1: to the end

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        as_group(block, by, [&](const auto &group, int index, int groups) {
            const int mine = block_index * groups + index, all = blocks * groups;
            const int end = last < 0 ? p.sends : last + 1;
            for (int i = first + mine; sending && i < end; i += all) {
                p.fill(group, i);
                p.expect(i, MPI_SUCCESS, mpix::pready(group, i, p.send));
            }
            for (int j = mine; receiving && j < p.receives; j += all) {
                p.expect(j, MPI_SUCCESS, mpix::wait_arrived(group, p.receive, j, patience_ns));
                p.verify(group, j);
            }
        });
    }
};

// ---- the program's frame ---------------------------------------------------------------------------------

inline int world_rank = -1;

[[noreturn, gnu::format(printf, 1, 2)]] inline void fail(const char *format, ...) {
    char text[512];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "rank %d: %s\n", world_rank, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}
#define REQUIRE(condition, ...) ((condition) ? void() : ::device_test::fail(__VA_ARGS__))

inline std::string error_name(int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return text;
}

inline void must(int code, const char *call) { REQUIRE(code == MPI_SUCCESS, "%s: %s", call, error_name(code).c_str()); }
// `code` is that of a call that has to fail in this way.
inline void must_refuse(int code, int error_class, const char *call) {
    int found = MPI_SUCCESS;
    MPI_Error_class(code, &found);
    REQUIRE(found == error_class, "%s gave class %d (%s), not %d", call, found, error_name(code).c_str(), error_class);
}

class session {
public:
    session(int argc, char **argv, const char *title) : title_(title) {
        static const option known[] = {{"seed", required_argument, nullptr, 's'},
                                       {"epochs", required_argument, nullptr, 'e'},
                                       {"quick", no_argument, nullptr, 'q'},
                                       {"large", no_argument, nullptr, 'l'},
                                       {"match-first", no_argument, nullptr, 'm'},
                                       {"seconds", required_argument, nullptr, 't'},
                                       {nullptr, 0, nullptr, 0}};
        for (int c; (c = getopt_long(argc, argv, "", known, nullptr)) != -1;) switch (c) {
                case 's':
                    seed = std::strtoull(optarg, nullptr, 0);
                    break;
                case 'e':
                    epochs = std::atol(optarg);
                    break;
                case 'q':
                    quick = true;
                    break;
                case 'l':
                    large = true;
                    break;
                case 'm':
                    match_first = true;
                    break;
                case 't':
                    seconds = std::strtod(optarg, nullptr);
                    break;
                default:
                    std::fprintf(
                        stderr, "usage: %s [--seed N] [--epochs N] [--seconds N] [--quick] [--large] [--match-first]\n",
                        argv[0]);
                    std::exit(2);
            }
        if (!executor::available()) {
            std::puts("skipped: no GPU");
            std::exit(77);
        }
        int provided = 0;
        MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
        int ranks = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        REQUIRE(ranks == 1 || ranks % 2 == 0, "this test takes one rank, or pairs of them");
        // The first rank and the last are a pair, and so on inwards.
        MPI_Comm_split(MPI_COMM_WORLD, std::min(world_rank, ranks - 1 - world_rank), world_rank, &comm);
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        peer = size - 1 - rank;
        MPI_Comm node;
        int local_rank = 0;
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
        MPI_Comm_rank(node, &local_rank);
        MPI_Comm_free(&node);
        device.emplace(local_rank);
        errors = static_cast<report *>(device->allocate(sizeof(report)));
        device->set(errors, 0, sizeof(report));
        if (rank == 0) std::printf("%s: %s, %d ranks, seed %#llx\n", title_, executor::name(), ranks, as_ull(seed));
        seed += static_cast<std::uint64_t>(std::min(world_rank, ranks - 1 - world_rank))
                << 32;  // each pair has its own data
    }
    session(const session &) = delete;
    session &operator=(const session &) = delete;

    bool alone() const { return size == 1; }

    // Wait for the launched kernel and look at what it reports.
    void settle() {
        device->synchronise();
        report r;
        device->download(&r, errors, sizeof r);
        REQUIRE(r.errors == 0,
                "%llu errors with seed %#llx%s%s; the first: %s, epoch %llu, partition %llu, offset %llu: "
                "expected %llu, found %llu",
                as_ull(r.errors), as_ull(seed), what.empty() ? "" : ", ", what.c_str(), wrong_name(r.what),
                as_ull(r.epoch), as_ull(r.partition), as_ull(r.offset), as_ull(r.expected), as_ull(r.found));
    }
    template <class Body>
    void run(int blocks, int threads, const Body &body) {
        device->launch(blocks, threads, body);
        settle();
    }

    // Ordinary messages, to hold one side back.
    void tell(int to, int tag = 900) { must(MPI_Send(nullptr, 0, MPI_BYTE, to, tag, comm), "MPI_Send"); }
    void hear(int from, int tag = 900) {
        must(MPI_Recv(nullptr, 0, MPI_BYTE, from, tag, comm, MPI_STATUS_IGNORE), "MPI_Recv");
    }
    // Whether it is so in any of the processes; they all ask.
    bool anywhere(bool here) {
        int any = here;
        must(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, comm), "MPI_Allreduce");
        return any != 0;
    }
    void meet() { must(MPI_Barrier(comm), "MPI_Barrier"); }

    int finish() {
        settle();
        const int elsewhere = device->context_elsewhere();
        REQUIRE(elsewhere < 0, "there is a context on GPU %d as well", elsewhere);
        meet();
        if (rank == 0) std::printf("%s: passed\n", title_);
        device->release(errors);
        device.reset();
        MPI_Comm_free(&comm);
        MPI_Finalize();
        return 0;
    }

    static unsigned long long as_ull(std::uint64_t value) { return value; }

    std::uint64_t seed = 0x6d706978;
    long epochs = 0;     // 0: the test's own number
    double seconds = 0;  // at least, where a test knows how to go on
    bool quick = false, large = false;
    // No kernel before the peer's memory is mapped: compute-sanitizer knows of a running kernel only what was mapped
    // when it was launched.
    bool match_first = false;
    // With more than two ranks, pairs of them run the same test at the same time; all here is of the caller's pair.
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0, size = 1, peer = 0;
    std::string what;  // the case that is running, for messages
    std::optional<executor> device;
    report *errors = nullptr;

private:
    const char *title_;
};

// Until a request has met its partner.
inline void await_match(MPI_Request request) {
    const double deadline = MPI_Wtime() + 20;
    for (char path[32] = "unmatched"; std::string(path) == "unmatched" && MPI_Wtime() < deadline;)
        must(MPIX_Request_path(request, path, sizeof path), "MPIX_Request_path");
    REQUIRE(MPI_Wtime() < deadline, "the requests have not met");
}

// ---- one request in each direction ----------------------------------------------------------------------

struct shape {
    int sends = 4, receives = 4;
    std::uint64_t bytes = 4096;           // of a message; a multiple of both
    int send_skew = 0, receive_skew = 0;  // of the buffers, from a 256-byte boundary
    int contributors = 1;
    bool sole_waiter = false;  // "mpix_waiters" is 1
};

class exchange {
public:
    // Bytes on both sides of a buffer that nothing may touch.
    static constexpr std::uint64_t guard = 256;
    static constexpr int fresh = 0xa5, stale = 0x5a;  // poison of the receive and of the send buffer

    enum class made { send_only, unexported, exported };

    exchange(session &s, const shape &shape, int tag = 0, made how = made::exported) : s_(s), shape_(shape), tag_(tag) {
        out_ = static_cast<char *>(s.device->allocate(room()));
        in_ = static_cast<char *>(s.device->allocate(room()));
        poison();
        init_send();
        if (how != made::send_only) init_receive();
        if (how == made::exported) export_both();
        if (how == made::exported && s.match_first) await_match(requests[0]);
    }
    ~exchange() {
        unexport_both();
        for (MPI_Request &r : requests)
            if (r != MPI_REQUEST_NULL) must(MPI_Request_free(&r), "MPI_Request_free");
        // The peer may still have our memory mapped; CUDA wants it unmapped before it is freed.
        s_.meet();
        s_.device->release(out_);
        s_.device->release(in_);
    }
    exchange(const exchange &) = delete;
    exchange &operator=(const exchange &) = delete;

    void export_both() {
        export_one(requests[0], send);
        export_one(requests[1], receive);
    }
    void export_one(MPI_Request request, MPIX_Prequest &handle) {
        MPI_Info info;
        must(MPI_Info_create(&info), "MPI_Info_create");
        must(MPI_Info_set(info, "mpix_contributors", std::to_string(shape_.contributors).c_str()), "MPI_Info_set");
        if (shape_.sole_waiter) must(MPI_Info_set(info, "mpix_waiters", "1"), "MPI_Info_set");
        must(MPIX_Prequest_create(request, info, &handle), "MPIX_Prequest_create");
        must(MPI_Info_free(&info), "MPI_Info_free");
    }
    void unexport_both() {
        must(MPIX_Prequest_free(&send), "MPIX_Prequest_free");
        must(MPIX_Prequest_free(&receive), "MPIX_Prequest_free");
    }

    // Poison both buffers, and count the epoch. Then start_send and start_receive, in any order.
    void next_epoch() {
        ++epoch;
        poison();
    }
    void start_send() { must(MPI_Start(&requests[0]), "MPI_Start of the send"); }
    void start_receive() { must(MPI_Start(&requests[1]), "MPI_Start of the receive"); }
    void start() {
        next_epoch();
        must(MPI_Startall(2, requests), "MPI_Startall");
    }
    void wait_send() { must(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), "MPI_Wait of the send"); }
    void wait_receive() { must(MPI_Wait(&requests[1], MPI_STATUS_IGNORE), "MPI_Wait of the receive"); }
    void wait() { must(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), "MPI_Waitall"); }

    // All of a received message, without Parrived. On the host one thread looks: to start many takes longer than the
    // rest of an epoch.
    void verify_received(int blocks, int threads) {
        if (!executor::is_gpu) blocks = threads = 1;
        port p = view();
        p.receive = MPIX_PREQUEST_NULL;  // arrived by definition
        s_.run(blocks, threads, transfer{p, scope::block, false, true});
    }

    void check_guards() {
        check_guard(out_, shape_.send_skew, stale);
        check_guard(in_, shape_.receive_skew, fresh);
    }

    char *out() const { return out_ + guard + shape_.send_skew; }
    char *in() const { return in_ + guard + shape_.receive_skew; }
    port view() const {
        return {send,
                receive,
                out(),
                in(),
                shape_.sends,
                shape_.receives,
                shape_.bytes,
                message_key(s_.seed, s_.rank, tag_, epoch),
                message_key(s_.seed, s_.peer, tag_, epoch),
                epoch,
                s_.errors};
    }

    void init_send() {
        must(MPI_Psend_init(out(), shape_.sends, count(shape_.sends), MPI_BYTE, s_.peer, tag_, s_.comm, MPI_INFO_NULL,
                            &requests[0]),
             "MPI_Psend_init");
    }
    void init_receive() {
        must(MPI_Precv_init(in(), shape_.receives, count(shape_.receives), MPI_BYTE, s_.peer, tag_, s_.comm,
                            MPI_INFO_NULL, &requests[1]),
             "MPI_Precv_init");
    }

    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};  // send, receive
    MPIX_Prequest send = MPIX_PREQUEST_NULL, receive = MPIX_PREQUEST_NULL;
    std::uint64_t epoch = 0;

private:
    MPI_Count count(int partitions) const {
        return static_cast<MPI_Count>(shape_.bytes / static_cast<std::uint64_t>(partitions));
    }
    void poison() {
        s_.device->set(out_, stale, room());
        s_.device->set(in_, fresh, room());
    }
    std::uint64_t room() const { return shape_.bytes + 2 * guard; }
    void check_guard(const char *memory, int skew, int poison) {
        std::vector<unsigned char> low(guard + static_cast<std::uint64_t>(skew));
        std::vector<unsigned char> high(guard - static_cast<std::uint64_t>(skew));
        s_.device->download(low.data(), memory, low.size());
        s_.device->download(high.data(), memory + low.size() + shape_.bytes, high.size());
        for (const auto &part : {low, high})
            for (const unsigned char byte : part)
                REQUIRE(byte == poison, "%s: a byte outside of the buffer was written", s_.what.c_str());
    }

    session &s_;
    const shape shape_;
    const int tag_;
    char *out_ = nullptr, *in_ = nullptr;
};

}  // namespace device_test

#endif  // MPIX_TESTS_DEVICE_HARNESS_HPP
