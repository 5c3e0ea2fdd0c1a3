// SPDX-License-Identifier: BSD-3-Clause
//
// Many threads, warps or blocks post to one small queue at once: fresh data in every epoch, partitions as Pready posts
// them and ranges in an order that is new in every epoch, every byte checked. The software HCA consumes the queue, and
// says what it found wrong with it. On a GPU a full run posts at least a million times.
#include <mpix/impl/work_queue/post.cuh>

#include <memory>

#include "tests/device/workload.hpp"
#include "tests/queue_memory.hpp"
#include "transport/workqueue/software_hca.h"

using namespace device_test;
using namespace mpix::detail;
using namespace mpix::transport;
using queue_test::queue_memory;

namespace {

constexpr int most_range = 9;           // three entries of three flags each
constexpr double longest_seconds = 30;  // that host threads take for one of the five cases

// All in memory that host and kernels reach.
struct stream {
    const mpix_posting *posting;
    char *out;
    const char *in;
    const std::uint64_t *flags;
    std::uint64_t epoch, key, partition_bytes;
    int partitions, range;
    report *errors;
    std::uint64_t *posts;  // counted, in the device's own memory

    // One partition or several; those that were posted, or what is wrong.
    DEVICE_FN posted post(int low, int count) const {
        if (count > 1)
            return post_range(posting, static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(count), epoch);
        const wqe *const blocks = partition_blocks(posting, static_cast<std::uint64_t>(low));
        const std::uint64_t end = post_prebuilt(posting->queue, blocks, posting->payload_blocks + 1, 1, epoch);
        const bool broken = load_relaxed(&posting->queue->error) != 0;
        return {end != 0 ? room::reserved : broken ? room::broken : room::full, end != 0 ? 1u : 0u, end};
    }

    // The bytes of the message are to be there; false if nothing comes.
    template <class Group>
    DEVICE_FN bool send(const Group &group, int low, int count) const {
        const std::uint64_t at = static_cast<std::uint64_t>(low) * partition_bytes;
        const std::uint64_t bytes = static_cast<std::uint64_t>(count) * partition_bytes;
        const auto rank = static_cast<std::uint64_t>(group.thread_rank());
        const auto step = static_cast<std::uint64_t>(group.num_threads());
        for (std::uint64_t i = at + rank; i < at + bytes; i += step) out[i] = static_cast<char>(message_byte(key, i));
        group.sync();
        bool all = true;
        if (rank == 0) {
            const std::uint64_t end = now_ns() + patience_ns;
            int done = 0;
            std::uint64_t times = 0;
            do {
                const posted p = post(low + done, count - done);
                done += static_cast<int>(p.count);
                times += p.count != 0;
                if (p.what == room::broken) break;
                if (p.what == room::full) poll_pause();
            } while (done < count && now_ns() < end);
            fetch_add_acq_rel_gpu(posts, times);
            all = done == count;
            if (!all)
                complain(errors, wrong::timeout, epoch, low, static_cast<std::uint64_t>(done), 0,
                         posting->queue->error);
        }
        return broadcast_bool(group, all);
    }

    template <class Group>
    DEVICE_FN void receive(const Group &group, int low, int count) const {
        const auto rank = static_cast<std::uint64_t>(group.thread_rank());
        const auto step = static_cast<std::uint64_t>(group.num_threads());
        for (int p = low; p < low + count; ++p) {
            bool here = true;
            if (rank == 0) {
                const std::uint64_t end = now_ns() + patience_ns;
                while (load_acquire(&flags[p]) != epoch && now_ns() < end) poll_pause();
                here = load_acquire(&flags[p]) == epoch;
                if (!here) complain(errors, wrong::timeout, epoch, p, 1, epoch, load_acquire(&flags[p]));
            }
            if (!broadcast_bool(group, here)) return;
            const std::uint64_t at = static_cast<std::uint64_t>(p) * partition_bytes;
            for (std::uint64_t i = at + rank; i < at + partition_bytes; i += step) {
                const auto found = static_cast<unsigned char>(in[i]);
                if (found != message_byte(key, i))
                    complain(errors, wrong::byte, epoch, p, i, message_byte(key, i), found);
            }
        }
    }

    // Every thread of its own, warps, or the block together, by turns of the epoch.
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        constexpr scope own[] = {scope::thread, executor::is_gpu ? scope::warp : scope::thread, scope::block};
        as_group(block, own[epoch % 3], [&](const auto &group, int index, int groups) {
            const int mine = block_index * groups + index, all = blocks * groups;
            const int pieces = (partitions + range - 1) / range;
            const auto of = [&](int piece) {
                return partitions - piece * range < range ? partitions - piece * range : range;
            };
            for (int k = mine; k < pieces; k += all) {
                const int piece = shuffled(k, pieces, key);
                if (!send(group, piece * range, of(piece))) return;
            }
            for (int k = mine; k < pieces; k += all) {
                const int piece = shuffled(k, pieces, key ^ 0x5555);
                receive(group, piece * range, of(piece));
            }
        });
    }
};

void *aligned_shared(session &s, std::size_t bytes, std::vector<void *> &all) {
    all.push_back(s.device->allocate_shared(bytes + 64));
    return reinterpret_cast<void *>((reinterpret_cast<std::uintptr_t>(all.back()) + 63) & ~std::uintptr_t{63});
}

// How often was posted.
std::uint64_t run_case(session &s, long epochs, std::uint32_t log_sq, int partitions, std::uint64_t bytes,
                       std::uint64_t start) {
    s.what = std::to_string(1u << log_sq) + " slots, " + std::to_string(partitions) + " partitions of " +
             std::to_string(bytes) + " bytes, from " + std::to_string(start);
    const auto n = static_cast<std::uint64_t>(partitions);
    std::vector<void *> all;
    queue_memory *const m =
        queue_memory::make(aligned_shared(s, queue_memory::bytes(log_sq, log_sq), all), log_sq, log_sq, start, start);
    auto *const out = static_cast<char *>(aligned_shared(s, n * bytes, all));
    auto *const in = static_cast<char *>(aligned_shared(s, n * bytes, all));
    auto *const flags = static_cast<std::uint64_t *>(aligned_shared(s, 8 * (n + 1), all));
    key_table local, remote;
    const auto place = [](const void *at, std::uint32_t key) {
        return std::pair(reinterpret_cast<std::uint64_t>(at), key);
    };
    const auto [from, from_key] = place(out, local.add(out, n * bytes, may_read_locally));
    const auto [to, to_key] = place(in, remote.add(in, n * bytes, may_write_remotely));
    const auto [flag, flag_key] = place(flags, remote.add(flags, 8 * n, may_write_remotely));
    const partition_layout layout{
        queue_memory::qpn, static_cast<std::uint32_t>(n), bytes, {from, from_key}, bytes, {to, to_key}, bytes,
        {flag, flag_key}};
    const auto built = make_blocks(layout);
    auto *const blocks = static_cast<wqe *>(aligned_shared(s, built.size() * sizeof(wqe), all));
    std::copy(built.begin(), built.end(), blocks);
    auto *const posting = static_cast<mpix_posting *>(aligned_shared(s, sizeof(mpix_posting), all));
    *posting = describe_posting(layout, &m->queue, blocks);
    memory_backend backend(remote);
    const auto queue = std::make_shared<hca_queue>(m->queue.rings, local, backend, start, start);
    queue->faults.poison = true;
    software_hca hca;
    hca.add(queue);
    auto *const counter = static_cast<std::uint64_t *>(s.device->allocate(sizeof(std::uint64_t)));
    s.device->set(counter, 0, sizeof *counter);
    std::uint64_t blocks_then = start;
    const bool limited = !executor::is_gpu && s.epochs == 0;
    const double begin = MPI_Wtime();
    long e = 1;
    // A machine that others keep busy takes the threads in turns, some of them in every epoch: so it does fewer.
    for (; e <= epochs && (!limited || MPI_Wtime() - begin < longest_seconds); ++e) {
        const auto epoch = static_cast<std::uint64_t>(e);
        stream kernel{posting,  out,        in,
                      flags,    epoch,      message_key(s.seed, s.rank, 0, epoch),
                      bytes,    partitions, 1 + static_cast<int>(e % most_range),
                      s.errors, counter};
        // Now and then the queue runs full because nobody looks at the doorbell.
        queue->faults.stall_doorbell = e % 16 == 0;
        s.device->launch(executor::is_gpu ? 1 + static_cast<int>(e % 13) : 1 + static_cast<int>(e % 3),
                         executor::is_gpu ? 128 : 2, kernel);
        if (e % 16 == 0) {
            host_poll_pause();
            queue->faults.stall_doorbell = false;
        }
        s.settle();
        REQUIRE(m->queue.publishing == 0, "%s: somebody is still in charge", s.what.c_str());
        REQUIRE(m->queue.ready == m->queue.head, "%s: not all was handed over", s.what.c_str());
        blocks_then = m->queue.head;
    }
    poll_queue(&m->queue);
    const hca_counts &c = queue->counts;
    REQUIRE(m->queue.error == 0 && c.torn == 0 && c.strange_kicks == 0 && c.bad_records == 0 && c.overruns == 0,
            "%s: error %llx, %llu torn, %llu strange kicks, %llu bad records, %llu overruns", s.what.c_str(),
            session::as_ull(m->queue.error), session::as_ull(c.torn), session::as_ull(c.strange_kicks),
            session::as_ull(c.bad_records), session::as_ull(c.overruns));
    REQUIRE(flags[n] == 0, "%s: a word behind the flags was written", s.what.c_str());
    hca.remove(queue.get());
    std::uint64_t posts = 0;
    s.device->download(&posts, counter, sizeof posts);
    s.device->release(counter);
    std::printf("%s: %ld epochs, %llu posts, %llu entries\n", s.what.c_str(), e - 1, session::as_ull(posts),
                session::as_ull(blocks_then - start));
    for (void *memory : all) s.device->release_shared(memory);
    s.what.clear();
    return posts;
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "work queue");
    const bool full = s.epochs == 0 && !s.quick && executor::is_gpu;
    const auto epochs = [&](long on_gpu) { return s.epochs != 0 ? s.epochs : s.quick ? 40 : full ? on_gpu : 500; };
    std::uint64_t posts = run_case(s, epochs(6000), 3, 23, 24, 0xfff0);
    posts += run_case(s, epochs(4000), 1, 7, 100, 0xfffffffd);
    posts += run_case(s, epochs(2000), 3, 12, 4096 + 5, 0);
    posts += run_case(s, epochs(4000), 6, 64, 8, 0xffffff);
    // So many posters that they fill the queue many times in each epoch.
    posts += run_case(s, epochs(2800), 4, 600, 8, 0xfffffff0);
    std::printf("%llu posts\n", session::as_ull(posts));
    REQUIRE(!full || posts >= 1'000'000, "only %llu posts", session::as_ull(posts));
    return s.finish();
}
