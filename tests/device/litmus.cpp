// SPDX-License-Identifier: BSD-3-Clause
//
// The memory order of a hand-over, tried very often: small and large partitions at all alignments, by threads, parts of
// warps, warps and blocks, on each path. Two ranks, each with a GPU of its own, run the same kernel: each of its groups
// fills a partition, marks it ready, waits for one of the peer's, and compares every byte. So on both sides most of the
// waiting is for something that is just being stored.
//
// What is counted is one *hand-over*: a partition of the receiver's, in one epoch, whose sender's kernel wrote fresh
// data to all of its bytes, that a group of the receiver's kernel waited for, and all of whose bytes that group found
// right. An epoch of MPI has some thousand of them. Every second one a group of another block sees arrive as well, by
// parrived, and compares.
//
// So that a wrong byte cannot pass for a right one, each byte of a receive buffer is the complement of what is to come,
// until it comes; and both readers have just looked at the partition, so that it lies in their multiprocessor's
// first-level cache.
//
// The path is looked up after each epoch: who takes a partition out of the inline buffer leaves a word.
// MPIX_INLINE_BYTES=0 in the environment makes the small ones direct too; another number is a limit, and without one it
// is 8192.
//
// With MPIX_RGET_BYTES=1 half of the blocks send and the other half waits, so that the receiver's groups mostly ask
// before a partition is ready, and read it; in every second epoch one thread marks it, after its group has filled it.
// What is read is chance each time; who reads leaves a word too, and those are counted. What is no whole words of 8
// bytes is not read, and not tried.
#include <unistd.h>

#include <array>
#include <csignal>

#include "tests/device/harness.hpp"
#include "tests/device/workload.hpp"

using namespace device_test;

namespace {

constexpr int epochs_between_looks = 16, most_idle = 20;
constexpr unsigned watchdog_seconds = 300;  // for so many epochs; a wait in a kernel ends after patience_ns
constexpr std::uint64_t most_polls = executor::is_gpu ? 1u << 24 : 1u << 20;  // some twenty seconds

// What the groups of a kernel have found right.
struct seen {
    std::uint64_t hand_overs, watched;
    std::uint64_t read;  // of the sender's partitions, by groups of the receiver's
};

// f(offset, byte) for a group's share of the bytes that belong from `at` on.
template <class Group, class F>
DEVICE_FN void each_byte(const Group &group, std::uint64_t key, std::uint64_t at, std::uint64_t count, const F &f) {
    const std::uint64_t end = at + count, threads = static_cast<std::uint64_t>(group.num_threads());
    for (std::uint64_t word = at / 8 + static_cast<std::uint64_t>(group.thread_rank()); word * 8 < end;
         word += threads) {
        const std::uint64_t first = word * 8 < at ? at : word * 8, last = word * 8 + 8 < end ? word * 8 + 8 : end;
        const std::uint64_t all = mix(key + word);  // as message_byte
        for (std::uint64_t i = first; i < last; ++i) f(i, static_cast<unsigned char>(all >> (8 * (i & 7))));
    }
}

// The receive buffer before an epoch.
struct complement {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        const std::uint64_t index = static_cast<std::uint64_t>(block_index), all = static_cast<std::uint64_t>(blocks);
        const std::uint64_t begin = p.bytes * index / all, end = p.bytes * (index + 1) / all;
        each_byte(block, p.in_key, begin, end - begin, [&](std::uint64_t i, unsigned char byte) {
            p.in[i] = static_cast<char>(~static_cast<unsigned>(byte));
        });
    }
};

struct hand_over {
    port p;
    scope by;
    bool apart;           // groups either send or wait
    std::uint64_t order;  // who does what in this epoch
    seen *found;

    // In every second epoch the calls are with what the group has prepared.
    DEVICE_FN bool by_request() const { return p.epoch % 2 != 0; }

    // Ordinary loads of a partition that may not have come yet; what they find is of no interest.
    template <class Group>
    DEVICE_FN void glance(const Group &group, int j) const {
#ifdef __CUDACC__
        constexpr std::uint64_t sector = 32;
        const std::uint64_t bytes = p.receive_bytes(), threads = static_cast<std::uint64_t>(group.num_threads());
        const char *const at = p.in + static_cast<std::uint64_t>(j) * bytes;
        const std::uint64_t end = (bytes + 2 * sector - 1) / sector;
        for (std::uint64_t i = static_cast<std::uint64_t>(group.thread_rank()); bytes != 0 && i < end; i += threads) {
            unsigned byte;
            const char *const from = at + (i * sector < bytes ? i * sector : bytes - 1);
            asm volatile("ld.global.u8 %0, [%1];" : "=r"(byte) : "l"(from) : "memory");
        }
#else
        (void)group, (void)j;
#endif
    }

    template <class Group>
    DEVICE_FN void verify(const Group &group, int j) const {
        each_byte(group, p.in_key, static_cast<std::uint64_t>(j) * p.receive_bytes(), p.receive_bytes(),
                  [&](std::uint64_t i, unsigned char expected) {
                      const unsigned char got = static_cast<unsigned char>(p.in[i]);
                      if (expected != got) complain(p.errors, wrong::byte, p.epoch, j, i, expected, got);
                  });
    }

    template <class Group>
    DEVICE_FN int mark(const Group &group, const mpix::prepared_send &send, int i) const {
        if (!by_request()) return mpix::pready(group, i, send);
        if (!apart) return mpix::pready(group, i, p.send);
        group.sync();  // the members' writes are the leader's
        return group.thread_rank() == 0 ? MPI_Pready(i, p.send) : MPI_SUCCESS;
    }

    template <class Group>
    DEVICE_FN bool await(const Group &group, const mpix::prepared_receive &receive, int j) const {
        glance(group, j);
        const int code = by_request() ? mpix::wait_arrived(group, p.receive, j, patience_ns)
                                      : mpix::wait_arrived(group, receive, j, patience_ns);
        p.expect(j, MPI_SUCCESS, code);
        if (code != MPI_SUCCESS) return false;
        verify(group, j);
        return true;
    }

    // The same beside the group that waits. The members count alike, so they give up alike.
    template <class Group>
    DEVICE_FN bool watch(const Group &group, const mpix::prepared_receive &receive, int j) const {
        glance(group, j);
        const auto there = [&] {
            return by_request() ? mpix::parrived(group, p.receive, j) : mpix::parrived(group, receive, j);
        };
        for (std::uint64_t polls = 0; !there(); ++polls) {
            if (polls == most_polls) {
                complain(p.errors, wrong::timeout, p.epoch, j, 0, 1, 0);
                return false;
            }
            poll_pause();
        }
        verify(group, j);
        return true;
    }

    // In turn t the groups take as many partitions of the receive as there are groups, one each, after all those of the
    // send have been marked that the peer's groups wait for in their turn t. So nobody waits for who waits. Who takes
    // which is new in every epoch.
    template <class Group>
    DEVICE_FN void play(const Group &group, int me, int all, bool sending, bool receiving) const {
        const std::uint64_t sends = static_cast<std::uint64_t>(p.sends),
                            receives = static_cast<std::uint64_t>(p.receives);
        const auto turned = [&](std::uint64_t places) {
            return static_cast<int>((static_cast<std::uint64_t>(me) + (places & 0xffffffffu)) %
                                    static_cast<std::uint64_t>(all));
        };
        const int sender = turned(order), receiver = turned(order >> 32);
        const int neighbour = (receiver + all / 2) % all;  // of another block
        std::uint64_t right = 0, watched = 0;
        bool good = true;
        int sent = 0;
        mpix::prepared_send send{};
        mpix::prepared_receive receive{};
        if (!by_request()) {
            send = mpix::prepare_send(group, p.send);
            receive = mpix::prepare_receive(group, p.receive);
        }
        for (int turn = 0; good && turn < p.receives; turn += all) {
            const std::uint64_t last = static_cast<std::uint64_t>(turn) + static_cast<std::uint64_t>(all);
            const int due = static_cast<int>(((last < receives ? last : receives) * sends + receives - 1) / receives);
            for (; sending && sent + sender < due; sent += all) {
                const int i = sent + sender;
                each_byte(group, p.out_key, static_cast<std::uint64_t>(i) * p.send_bytes(), p.send_bytes(),
                          [&](std::uint64_t at, unsigned char byte) { p.out[at] = static_cast<char>(byte); });
                p.expect(i, MPI_SUCCESS, mark(group, send, i));
            }
            const std::uint64_t chance = mix(order + last + static_cast<std::uint64_t>(me));
            const bool watches = receiving && turn + neighbour < p.receives && (chance & 1) != 0;
            const bool watches_first = (chance & 2) != 0;
            if (watches && watches_first) good = watch(group, receive, turn + neighbour);
            if (good && receiving && turn + receiver < p.receives) {
                good = await(group, receive, turn + receiver);
                right += good;
            }
            if (good && watches && !watches_first) good = watch(group, receive, turn + neighbour);
            watched += good && watches;
        }
        if (group.thread_rank() != 0) return;
        add_to(&found->hand_overs, right);
        add_to(&found->watched, watched);
    }

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        as_group(block, by, [&](const auto &group, int index, int groups) {
            if (apart)
                play(group, block_index / 2 * groups + index, blocks / 2 * groups, block_index % 2 == 0,
                     block_index % 2 != 0);
            else
                play(group, block_index * groups + index, blocks * groups, true, true);
        });
    }
};

enum class path { inline_, fence, rget, host };  // fence: direct
constexpr const char *path_names[] = {"inline", "direct", "rget", "host"};
constexpr int paths = 4;

// Which way the sender's partitions came in the epoch that is not completed yet.
struct audit {
    port p;
    int senders;
    path expected;
    seen *found;

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        const mpix_prequest *const r = mpix::detail::request_of(p.receive);
        const std::uint64_t *const told = r->told;
        const int threads = static_cast<int>(block.num_threads());
        for (int i = block_index * threads + static_cast<int>(block.thread_rank()); i < senders;
             i += blocks * threads) {
            const bool sent_inline = told != nullptr && mpix::detail::load_relaxed(&told[i]) == p.epoch;
            if (sent_inline != (expected == path::inline_))
                complain(p.errors, wrong::path, p.epoch, i, 0, expected == path::inline_, sent_inline);
            if (expected != path::rget) continue;
            if (p.epoch > 1 && r->wanted == nullptr) complain(p.errors, wrong::path, p.epoch, i, 0, 1, 0);
            const std::uint64_t *const taken =
                mpix::detail::taken_of(r->flags, static_cast<std::uint64_t>(senders)) + i;
            if (r->wanted != nullptr && mpix::detail::load_relaxed(taken) == 2 * p.epoch - 1) add_to(&found->read, 1);
        }
    }
};

// ---- the cases --------------------------------------------------------------------------------------------

struct ratio {
    int sends, receives;
};

// All blocks are resident together: there are no more than multiprocessors.
struct trial {
    scope by;
    int threads, blocks, turns;
    std::uint64_t bytes;  // of a partition of the sender
    ratio parts;
    int send_skew, receive_skew;
    bool apart;

    int group_threads() const {
        return by == scope::block ? threads : by == scope::warp ? 32 : by == scope::tile4 ? 4 : 1;
    }
    int groups() const { return blocks * (threads / group_threads()); }
    // Whole multiples of those that send, or receive.
    int receives() const { return groups() / (apart ? 2 : 1) * turns * parts.receives; }
    int sends() const { return groups() / (apart ? 2 : 1) * turns * parts.sends; }
};

// As docs/dev/paths.md has it: eight bytes a line, at most four lines for each thread, no more partitions than
// the receiver has.
std::uint64_t inline_limit() { return std::strtoull(std::getenv("MPIX_INLINE_BYTES"), nullptr, 0); }
bool by_rget() {
    const char *const least = std::getenv("MPIX_RGET_BYTES");
    return executor::is_gpu && least != nullptr && std::strtoull(least, nullptr, 0) == 1;
}
path expected_path(const trial &t) {
    if (!executor::is_gpu) return path::host;
    if (t.apart) return path::rget;
    std::uint64_t threads = 1;
    while (threads * 32 < t.bytes) threads *= 2;
    const bool enough = static_cast<std::uint64_t>(t.group_threads()) >= threads && t.sends() <= t.receives();
    return t.bytes != 0 && t.bytes <= inline_limit() && enough ? path::inline_ : path::fence;
}

std::vector<trial> trials(bool quick, int most_blocks) {
    using alignments = std::vector<std::array<int, 2>>;
    const alignments skews = by_rget() ? alignments{{0, 0}, {8, 0}, {0, 8}, {8, 8}}
                                       : alignments{{0, 0}, {1, 3}, {3, 1}, {4, 8}, {8, 4}, {0, 1}, {3, 0}, {8, 8}};
    constexpr ratio odd[] = {{1, 1}, {3, 1}}, even[] = {{1, 1}, {3, 2}, {1, 2}};
    struct kind {
        scope by;
        int threads, blocks, turns;
        std::vector<std::uint64_t> sizes;
    };
    // Inline each up to what its number of threads may; then direct ones.
    std::vector<kind> kinds = {
        {scope::thread, 128, 32, 3, {0, 1, 3, 4, 8, 15, 16, 32}},
        {scope::tile4, 128, 48, 3, {1, 8, 64, 128}},
        {scope::warp, 256, 64, 6, {0, 1, 3, 4, 8, 16, 100, 512, 1024}},
        {scope::block, 256, 96, 6, {0, 1, 3, 4, 8, 16, 1000, 4096}},
        {scope::block, 512, 96, 4, {8192}},
        {scope::thread, 128, 32, 2, {40, 64, 100, 1000}},
        {scope::warp, 256, 64, 4, {1040, 2048, 8200}},
        {scope::block, 256, 96, 4, {8200, 16384, 65537}},
        {scope::block, 1024, 96, 2, {262144}},
    };
    if (!executor::is_gpu)
        kinds = {{scope::thread, 2, 3, 3, {0, 1, 3, 8, 16, 100}},
                 {scope::block, 2, 3, 3, {0, 1, 3, 8, 16, 1000, 8200}}};
    if (by_rget())
        kinds = {{scope::warp, 256, 64, 2, {32, 112, 512, 1008, 4096, 8208, 16384}},
                 {scope::block, 256, 96, 2, {256, 1008, 4096, 16384, 65552}},
                 {scope::block, 1024, 96, 2, {262144}}};
    std::vector<trial> all;
    std::size_t turn = 0;
    for (const kind &k : kinds)
        for (const std::uint64_t bytes : k.sizes)
            for (const auto &skew : skews) {
                ++turn;
                // One alignment of each size, another one for each.
                if (quick && (turn - 1) % std::size(skews) != (turn - 1) / std::size(skews) % std::size(skews))
                    continue;
                const ratio parts = bytes == 0       ? ratio{1, 1}
                                    : bytes % 2 == 0 ? even[turn % std::size(even)]
                                                     : odd[turn % std::size(odd)];
                all.push_back({k.by, k.threads, std::min(k.blocks, quick ? 16 : most_blocks / 2 * 2),
                               quick ? 1 : k.turns, bytes, parts, skew[0], skew[1], by_rget()});
            }
    return all;
}

// ---- the run ------------------------------------------------------------------------------------------------

void give_up(int) {
    constexpr char text[] = "no end within the time limit\n";
    _exit(write(2, text, sizeof text - 1) < 0 ? 4 : 3);
}

struct outcome {
    seen both;  // of both ranks
    std::uint64_t epochs;
    double seconds;
};

outcome run(session &s, const trial &t, std::uint64_t wanted, double seconds) {
    const path way = expected_path(t);
    const std::uint64_t sends = static_cast<std::uint64_t>(t.sends());
    s.what = std::string(path_names[static_cast<int>(way)]) + ", by " + scope_name(t.by) + ", " +
             std::to_string(sends) + " partitions of " + std::to_string(t.bytes) + " bytes to " +
             std::to_string(t.receives()) + ", buffers misaligned by " + std::to_string(t.send_skew) + " and " +
             std::to_string(t.receive_skew);
    alarm(watchdog_seconds);
    auto *const found = static_cast<seen *>(s.device->allocate(sizeof(seen)));
    s.device->set(found, 0, sizeof(seen));
    seen each{}, both{};
    std::uint64_t epochs = 0, read_before = 0;
    const bool by_reads = way == path::rget && s.epochs == 0;
    int idle = 0;  // rounds in which nothing was read
    const double start = MPI_Wtime();
    {
        exchange x(s, {t.sends(), t.receives(), sends * t.bytes, t.send_skew, t.receive_skew});
        for (int go_on = 1; go_on != 0;) {
            for (int e = 0; e < epochs_between_looks && !(s.quick && e == 3); ++e) {
                ++x.epoch;
                const port p = x.view();
                s.device->launch(t.blocks, t.threads, complement{p});
                s.device->synchronise();
                must(MPI_Startall(2, x.requests), "MPI_Startall");
                must(MPIX_Pbuf_prepare_all(2, x.requests),
                     "MPIX_Pbuf_prepare_all");  // nothing is deferred but what is offered
                // The peer's receives and our sends are shared out by different orders.
                s.device->launch(t.blocks, t.threads, hand_over{p, t.by, t.apart, mix(p.out_key ^ s.seed), found});
                if (executor::is_gpu) s.device->launch(t.blocks, t.threads, audit{p, t.sends(), way, found});
                s.settle();
                x.wait();
                ++epochs;
            }
            alarm(watchdog_seconds);
            s.device->download(&each, found, sizeof each);
            REQUIRE(each.hand_overs == epochs * static_cast<std::uint64_t>(t.receives()),
                    "%s: %llu hand-overs in %llu epochs", s.what.c_str(), s.as_ull(each.hand_overs), s.as_ull(epochs));
            must(MPI_Allreduce(&each, &both, 3, MPI_UINT64_T, MPI_SUM, s.comm), "MPI_Allreduce");
            idle = both.read == read_before ? idle + 1 : 0;
            read_before = both.read;
            REQUIRE(!by_reads || idle < most_idle, "%s: nothing was read in %d times %d epochs", s.what.c_str(), idle,
                    epochs_between_looks);
            go_on = (by_reads ? both.read : both.hand_overs) < wanted || MPI_Wtime() - start < seconds;
            must(MPI_Bcast(&go_on, 1, MPI_INT, 0, s.comm), "MPI_Bcast");
        }
        x.check_guards();
    }
    s.device->release(found);
    return {both, epochs, MPI_Wtime() - start};
}

// 0: there are not two GPUs.
int processors() {
#ifdef __CUDACC__
    int devices = 0, count = 0;
    const bool found = cudaGetDeviceCount(&devices) == cudaSuccess && devices >= 2 &&
                       cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0) == cudaSuccess;
    (void)cudaGetLastError();
    return found ? count : 0;
#else
    return 1 << 10;
#endif
}

}  // namespace

int main(int argc, char **argv) {
    const int most_blocks = processors();
    if (most_blocks == 0) {
        std::puts("skipped: there are not two GPUs");
        return 77;
    }
    setenv("MPIX_INLINE_BYTES", by_rget() ? "0" : "8192", 0);
    REQUIRE(!by_rget() || inline_limit() == 0, "MPIX_RGET_BYTES=1 takes MPIX_INLINE_BYTES=0");
    session s(argc, argv, "device litmus");
    REQUIRE(s.size == 2, "this test takes two ranks");
    std::signal(SIGALRM, give_up);
    const std::vector<trial> all = trials(s.quick, most_blocks);
    std::uint64_t of_path[paths] = {}, read = 0;
    if (s.rank == 0)
        std::printf("%-7s %-10s %7s %7s %8s %8s %9s %8s %12s %12s %12s %6s %8s\n", "path", "scope", "threads", "sends",
                    "receives", "bytes", "misalign", "epochs", "hand-overs", "watched", "read", "wrong", "seconds");
    for (const trial &t : all) {
        const path way = expected_path(t);
        // Of both ranks. In all of them far more than is asked for below.
        std::uint64_t wanted = way == path::inline_ ? 400000 : t.bytes <= 8200 ? 100000 : 20000;
        if (way == path::rget) wanted = 80000;  // read; more than a million in all
        if (s.quick || !executor::is_gpu) wanted = 1;
        if (s.epochs != 0) wanted = 2 * static_cast<std::uint64_t>(s.epochs) * static_cast<std::uint64_t>(t.receives());
        const outcome o = run(s, t, wanted, s.seconds / static_cast<double>(all.size()));
        of_path[static_cast<int>(way)] += o.both.hand_overs;
        read += o.both.read;
        if (s.rank != 0) continue;
        std::printf("%-7s %-10s %7d %7d %8d %8llu %4d,%-4d %8llu %12llu %12llu %12llu %6d %8.2f\n",
                    path_names[static_cast<int>(way)], scope_name(t.by), t.group_threads(), t.sends(), t.receives(),
                    s.as_ull(t.bytes), t.send_skew, t.receive_skew, s.as_ull(o.epochs), s.as_ull(o.both.hand_overs),
                    s.as_ull(o.both.watched), s.as_ull(o.both.read), 0, o.seconds);
        std::fflush(stdout);
    }
    for (int i = 0; s.rank == 0 && i < paths; ++i)
        std::printf("%s: %llu hand-overs, 0 wrong bytes\n", path_names[i], s.as_ull(of_path[i]));
    if (s.rank == 0 && by_rget()) {
        std::printf("%llu partitions were read\n", s.as_ull(read));
    } else if (executor::is_gpu && !s.quick && s.epochs == 0 && s.rank == 0) {
        REQUIRE(inline_limit() != 8192 || of_path[0] >= 10000000, "too few hand-overs inline");
        REQUIRE(of_path[1] >= 1000000, "too few direct hand-overs");
    }
    alarm(0);
    return s.finish();
}
