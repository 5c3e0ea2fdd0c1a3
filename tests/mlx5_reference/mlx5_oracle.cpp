// SPDX-License-Identifier: BSD-3-Clause
//
// The vendor's code is asked what our bytes have to be. What it posts is compared with what our device code posts, byte
// by byte, and what the software HCA writes is polled by it. It takes the place of a ConnectX no further than that:
// whether the hardware does what it is told is not seen here.
#include "tests/mlx5_reference/mlx5_provider.h"

#include <dlfcn.h>
#include <mpix/impl/work_queue/queue.cuh>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/queue_memory.hpp"
#include "transport/ib/mlx5/export.h"
#include "transport/workqueue/software_hca.h"

using namespace mpix::detail;
using namespace mpix::transport;

namespace {

const provider_code &provider() {
    static const provider_code *const one = [] {
        const char *const file = std::getenv("MPIX_TEST_MLX5_PROVIDER");
        // Lazily: what receives is not in it.
        void *const handle = file == nullptr ? nullptr : dlopen(file, RTLD_LAZY | RTLD_LOCAL);
        void *const made = handle == nullptr ? nullptr : dlsym(handle, "mlx5_provider");
        if (made == nullptr) {
            std::fprintf(stderr, "MPIX_TEST_MLX5_PROVIDER: %s\n", file == nullptr ? "is not set" : dlerror());
            std::exit(1);
        }
        return reinterpret_cast<mlx5_provider_function *>(made)();
    }();
    return *one;
}

struct tally {
    std::uint64_t entries = 0, doorbells = 0, good = 0, failed = 0;
    ~tally() {
        std::printf(
            "compared with the provider's: %llu entries and %llu doorbells; polled by it: %llu good completions, "
            "%llu failed ones\n",
            static_cast<unsigned long long>(entries), static_cast<unsigned long long>(doorbells),
            static_cast<unsigned long long>(good), static_cast<unsigned long long>(failed));
    }
};
tally compared;

std::uint64_t address(const void *at) { return reinterpret_cast<std::uint64_t>(at); }

// The same queue twice: one that the provider posts to and polls, and the software HCA serves; and ours, to which our
// code posts the same. Completions are copied from the one to the other.
struct pair_of_queues {
    explicit pair_of_queues(const provider_shape &s)
        : shape(s),
          theirs(provider().open(&s), provider().close),
          memory(std::aligned_alloc(64, (queue_test::queue_memory::bytes(s.log_sq, s.log_cq) + 63) & ~std::size_t{63}),
                 &std::free),
          words(queue_test::queue_memory::make(memory.get(), s.log_sq, s.log_cq, s.first_block, s.first_entry)),
          ours(words->queue),
          out(16384),
          in(16384),
          from_key(local.add(out.data(), out.size(), may_read_locally)),
          to_key(remote.add(in.data(), in.size(), may_write_remotely)),
          to_memory(remote) {
        ours.rings.qpn = s.qpn;
        mlx5dv_qp queue{};
        mlx5dv_cq completions{};
        provider().describe(theirs.get(), &queue, &completions);
        REQUIRE(mlx5::check_export(queue, completions).ok());
        vendor = mlx5::rings_of(queue, completions, s.qpn);
        REQUIRE((vendor.log_sq == s.log_sq && vendor.log_cq == s.log_cq));
        // As a real one is taken over: no completion is there for the provider either.
        std::vector<std::uint64_t> filled(std::size_t{1} << s.log_sq);
        make_queue(vendor, filled.data(), nullptr, s.first_block, s.first_entry);
        REQUIRE(poll_theirs().empty());
        hca = std::make_unique<hca_queue>(vendor, local, to_memory, s.first_block, s.first_entry);
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<unsigned char>(i * 7);
    }

    wqe &their_slot(std::uint64_t index) const { return vendor.sq[index & ((1ull << shape.log_sq) - 1)]; }

    // The provider leaves what it does not use of a slot as it was.
    void clear(std::uint64_t first, std::uint64_t count) {
        for (std::uint64_t i = first; i < first + count; ++i)
            std::memset(static_cast<void *>(&their_slot(i)), 0, sizeof(wqe));
    }

    // Posted by the provider, when our code has posted the same.
    void post_theirs(std::uint64_t first, const std::vector<provider_request> &requests, provider_posting by) {
        clear(first, requests.size());
        REQUIRE(provider().post(theirs.get(), requests.data(), static_cast<int>(requests.size()), by) == 0);
        for (std::uint64_t i = 0; i < requests.size(); ++i) {
            const wqe &slot = ours.rings.sq[(first + i) & (queue_blocks(&ours) - 1)];
            INFO("index " << first + i);
            REQUIRE(bytes(slot) == bytes(their_slot(first + i)));
            ++compared.entries;
        }
        compare_doorbells(first + requests.size(), requests.size() == 1);
    }

    // The records agree. The stores into the register are of two forms, each by its rule.
    void compare_doorbells(std::uint64_t next, bool alone) {
        REQUIRE(*ours.rings.sq_record == *vendor.sq_record);
        std::uint64_t their_bell;
        const char *bell = reinterpret_cast<const char *>(vendor.doorbell);
        // With lines the halves of the register take turns.
        if (shape.lines != 0 && bells++ % 2 != 0) bell += 256;
        std::memcpy(&their_bell, bell, sizeof their_bell);
        const wqe &last = their_slot(next - 1);
        REQUIRE(std::memcmp(&their_bell, &last, sizeof their_bell) == 0);
        const bool line = shape.lines != 0 && alone && (from_be(last.data.bytes) & wqe_inline_bit) != 0;
        if (line) REQUIRE(std::memcmp(bell, &last, sizeof last) == 0);
        const std::uint64_t our_bell = *ours.rings.doorbell;
        REQUIRE(static_cast<std::uint32_t>(our_bell) == to_be32(static_cast<std::uint32_t>(next & 0xffff) << 8).raw);
        REQUIRE(static_cast<std::uint32_t>(our_bell >> 32) == to_be32(shape.qpn << 8).raw);
        // The HCA is to take either form.
        std::memcpy(vendor.doorbell, compared.doorbells++ % 2 == 0 ? &our_bell : &their_bell, sizeof our_bell);
    }

    static std::vector<unsigned char> bytes(const wqe &w) {
        std::vector<unsigned char> b(sizeof w);
        std::memcpy(b.data(), &w, sizeof w);
        return b;
    }

    std::vector<provider_completion> poll_theirs() {
        std::vector<provider_completion> all(1u << shape.log_cq);
        const int n = provider().poll(theirs.get(), all.data(), static_cast<int>(all.size()));
        REQUIRE(n >= 0);
        all.resize(static_cast<std::size_t>(n));
        return all;
    }

    // Our poll of the same bytes; the two consumer's records agree afterwards.
    void poll_ours() {
        std::memcpy(static_cast<void *>(ours.rings.cq), vendor.cq, std::size_t{64} << shape.log_cq);
        poll_queue(&ours);
        REQUIRE(*ours.rings.cq_record == *vendor.cq_record);
    }

    const provider_shape shape;
    const std::unique_ptr<provider_queue, void (*)(provider_queue *)> theirs;
    std::unique_ptr<void, void (*)(void *)> memory;
    queue_test::queue_memory *words;
    mpix_work_queue &ours;
    mpix_queue_rings vendor{};  // of the provider, as it exports them
    std::vector<unsigned char> out, in;
    key_table local, remote;
    std::uint32_t from_key, to_key;
    memory_backend to_memory;
    std::unique_ptr<hca_queue> hca;
    std::uint64_t bells = 0;
};

// One request, as the provider gets it and as our functions build it.
struct request {
    provider_request theirs;
    wqe ours;                 // prebuilt
    std::uint32_t flags = 0;  // to be put into it
    std::uint64_t epoch = 0;
};

request write(const pair_of_queues &p, std::uint64_t id, std::uint64_t offset, std::uint32_t bytes, bool signalled,
              std::uint8_t pieces = 1) {
    const remote_place to{address(p.in.data()) + offset, p.to_key};
    const local_place from{address(p.out.data()) + offset / 2, p.from_key};
    return {{id, to.address, from.address, to.key, from.key, bytes, 0, signalled, pieces},
            make_write(p.shape.qpn, to, from, bytes, signalled)};
}

// One to three flags of the same epoch. The values have to stay where they are until the provider has posted them.
request flags(const pair_of_queues &p, std::uint64_t id, std::uint64_t offset, std::uint32_t count, bool signalled,
              const std::vector<std::uint64_t> &values) {
    const remote_place to{address(p.in.data()) + offset, p.to_key};
    return {{id, to.address, address(values.data()), to.key, 0, 8 * count, 1, signalled, 1},
            make_flag_write(p.shape.qpn, to, 0, true),
            count,
            values[0]};
}

// Both post; in one piece, with one doorbell.
void post(pair_of_queues &p, const std::vector<request> &requests, provider_posting by) {
    std::uint64_t first = 0;
    REQUIRE(reserve_now(&p.ours, requests.size(), &first) == room::reserved);
    std::vector<provider_request> list;
    for (std::uint64_t i = 0; i < requests.size(); ++i) {
        const request &r = requests[i];
        if (r.flags != 0)
            put_flags(&p.ours, first + i, &r.ours, r.epoch, r.flags, r.theirs.signalled != 0);
        else
            put_prebuilt(&p.ours, first + i, &r.ours);
        list.push_back(r.theirs);
    }
    publish_blocks(&p.ours, first, requests.size());
    p.post_theirs(first, list, by);
}

const std::vector<provider_shape> &shapes() {
    static const std::vector<provider_shape> all = {
        {3, 3, 0x12f, 0, 0, 0, 0},                   // small, and from the beginning
        {3, 4, 0xabcdef, 0xfffb, 0xfffffb, 1, 0},    // the 16 bits and the 24 bits run over at once
        {2, 2, 0x000001, 0x1fffe, 0x2000001, 0, 0},  // the smallest that holds a flag and its payload, and a bit more
        {5, 6, 0xffffff, 0x7ff0, 0x7ffff0, 1, 1},    // BlueFlame
        {10, 10, 0x00012f, 0xff00, 0xffff00, 0, 1},
    };
    return all;
}

}  // namespace

TEST_CASE("one entry of each kind") {
    for (const provider_shape &s : shapes())
        for (const provider_posting by : {provider_post_send, provider_wr_calls}) {
            pair_of_queues p(s);
            const std::vector<std::uint64_t> epochs(wqe_flags, 0x1122334455667788);
            std::uint64_t id = 0;
            const auto alone = [&](const request &r) {
                post(p, {r}, by);
                p.hca->run();
                const auto seen = p.poll_theirs();
                p.poll_ours();
                REQUIRE(seen.size() == (r.theirs.signalled ? 1 : 0));
                if (!seen.empty()) {
                    REQUIRE((seen[0].id == r.theirs.id && seen[0].status == provider().statuses.success));
                    REQUIRE((seen[0].opcode == provider().statuses.opcode_write && seen[0].qpn == s.qpn));
                    REQUIRE(p.ours.completed == p.ours.ready);
                    ++compared.good;
                }
                ++id;
            };
            // Slots of unsignalled ones come back with the next signalled one.
            for (const bool signalled : {false, true}) {
                for (const std::uint32_t bytes : {0u, 1u, 8u, 4096u}) {
                    alone(write(p, id, 16, bytes, signalled));
                    alone(write(p, id, 0, 0, true, 0));
                }
                for (const std::uint32_t count : {1u, 2u, 3u}) {
                    alone(flags(p, id, 64, count, signalled, epochs));
                    alone(write(p, id, 0, 8, true));
                }
            }
            REQUIRE(p.hca->counts.strange_kicks == 0);
            REQUIRE(p.hca->counts.bad_records == 0);
            REQUIRE(p.ours.error == 0);
        }
}

TEST_CASE("entries that are not executed here: long ones, and extreme addresses and keys") {
    for (const provider_posting by : {provider_post_send, provider_wr_calls}) {
        pair_of_queues p({4, 4, 0xc0ffee, 0xfffe, 0, 0, 0});
        std::vector<request> all;
        for (const std::uint32_t bytes : {1u << 30, (1u << 30) - 1, 0x01020304u})
            for (const std::uint64_t at : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{0x0123456789abcdef}}) {
                const auto key = static_cast<std::uint32_t>(at >> 3);
                all.push_back({{1, at, ~at, key, ~key, bytes, 0, 1, 1},
                               make_write(p.shape.qpn, {at, key}, {~at, ~key}, bytes, true)});
            }
        post(p, all, by);
    }
}

TEST_CASE("random requests, many laps of every queue") {
    for (const provider_shape &s : shapes())
        for (const provider_posting by : {provider_post_send, provider_wr_calls}) {
            pair_of_queues p(s);
            std::mt19937 random(s.qpn);
            const auto below = [&](std::uint64_t n) { return random() % n; };
            const std::uint64_t size = std::uint64_t{1} << s.log_sq, rounds = 40 * size;
            std::uint64_t id = 0;
            for (std::uint64_t posted = 0; posted < rounds;) {
                const std::uint64_t count = 1 + below(size);
                std::vector<request> all;
                std::vector<std::vector<std::uint64_t>> values;
                std::vector<std::uint64_t> expected;
                for (std::uint64_t i = 0; i < count; ++i, ++id) {
                    const bool signalled = i + 1 == count || below(3) == 0;
                    if (signalled) expected.push_back(id);
                    if (below(2) == 0) {
                        values.emplace_back(wqe_flags, std::uint64_t{random()} << 32 | random());
                        all.push_back(flags(p, id, 8 * below(1000), static_cast<std::uint32_t>(1 + below(wqe_flags)),
                                            signalled, values.back()));
                    } else {
                        all.push_back(write(p, id, below(4096), static_cast<std::uint32_t>(below(4097)), signalled));
                    }
                }
                post(p, all, by);
                p.hca->run();
                const auto seen = p.poll_theirs();
                REQUIRE(seen.size() == expected.size());
                for (std::size_t i = 0; i < seen.size(); ++i)
                    REQUIRE((seen[i].id == expected[i] && seen[i].status == provider().statuses.success &&
                             seen[i].opcode == provider().statuses.opcode_write && seen[i].qpn == s.qpn));
                p.poll_ours();
                REQUIRE((p.ours.completed == p.ours.ready && p.ours.error == 0));
                compared.good += seen.size();
                posted += count;
            }
            REQUIRE(p.hca->counts.executed == id);
            REQUIRE((p.hca->counts.strange_kicks == 0 && p.hca->counts.bad_records == 0));
        }
}

TEST_CASE("what post_range posts of a request, one partition or many") {
    for (const std::uint64_t gap : {0u, 24u}) {
        pair_of_queues p({6, 6, 0x12f, 0xffc0, 0, 0, 0});
        const partition_layout layout{p.shape.qpn, 10,
                                      200,         {address(p.out.data()), p.from_key},
                                      200 + gap,   {address(p.in.data()), p.to_key},
                                      200,         {address(p.in.data()) + 8192, p.to_key}};
        const std::vector<wqe> blocks = make_blocks(layout);
        const mpix_posting posting = describe_posting(layout, &p.ours, blocks.data());
        std::uint64_t id = 0, epoch = 0x100000001;
        for (std::uint32_t low = 0; low < layout.partitions; ++low)
            for (std::uint32_t count = 1; low + count <= layout.partitions; ++count, ++epoch) {
                const std::vector<std::uint64_t> values(wqe_flags, epoch);
                std::vector<provider_request> expected;
                const bool together = gap == 0 || count == 1;
                for (std::uint64_t i = low; i < low + count; i += together ? count : 1)
                    expected.push_back({id++, layout.to.address + i * layout.to_stride,
                                        layout.from.address + i * layout.from_stride, p.to_key, p.from_key,
                                        static_cast<std::uint32_t>(layout.bytes * (together ? count : 1)), 0, 0, 1});
                for (std::uint64_t i = 0; i < count; i += wqe_flags)
                    expected.push_back({id++, layout.flags.address + 8 * (low + i), address(values.data()), p.to_key, 0,
                                        static_cast<std::uint32_t>(8 * std::min<std::uint64_t>(wqe_flags, count - i)),
                                        1, i + wqe_flags >= count, 1});
                const std::uint64_t first = p.ours.head;
                const posted done = post_range(&posting, low, count, epoch);
                REQUIRE((done.what == room::reserved && done.complete == first + expected.size()));
                p.post_theirs(first, expected, provider_post_send);
                p.hca->run();
                const auto seen = p.poll_theirs();
                REQUIRE((seen.size() == 1 && seen[0].id == id - 1 && seen[0].status == provider().statuses.success));
                p.poll_ours();
                REQUIRE(p.ours.completed == done.complete);
                ++compared.good;
            }
    }
}

TEST_CASE("failed and flushed completions") {
    const provider_statuses &known = provider().statuses;
    const std::vector<std::pair<syndrome, std::uint32_t>> causes = {
        {syndrome_local_length, known.local_length},         {syndrome_local_operation, known.local_operation},
        {syndrome_local_protection, known.local_protection}, {syndrome_remote_access, known.remote_access},
        {syndrome_remote_operation, known.remote_operation}, {syndrome_retries_exceeded, known.retries_exceeded},
    };
    for (const provider_shape &s : shapes()) {
        if (s.log_sq > 5) continue;
        const std::uint64_t size = std::uint64_t{1} << s.log_sq;
        for (const auto &[cause, status] : causes)
            for (std::uint64_t good = 0; good < 3 * size; ++good) {
                pair_of_queues p(s);
                std::uint64_t id = 0;
                p.hca->faults.fail_at = s.first_block + good;
                p.hca->faults.fail_with = cause;
                // Unsignalled ones, and laps of the ring before the failure and behind it.
                while (id < good + 2 * size) {
                    const std::uint64_t count = std::min<std::uint64_t>(1 + id % size, size), first = p.ours.head;
                    std::vector<request> all;
                    for (std::uint64_t i = 0; i < count; ++i)
                        all.push_back(write(p, id++, 0, 8, i + 1 == count || i % 2));
                    const std::uint64_t before = p.ours.error;
                    if (before == 0) {
                        post(p, all, provider_post_send);
                    } else {
                        // A queue that has failed takes nothing more from us; the provider goes on.
                        std::vector<provider_request> list;
                        for (const request &r : all) list.push_back(r.theirs);
                        REQUIRE(provider().post(p.theirs.get(), list.data(), static_cast<int>(count),
                                                provider_post_send) == 0);
                        p.ours.head += count;
                    }
                    p.hca->run();
                    const auto seen = p.poll_theirs();
                    p.poll_ours();
                    REQUIRE(p.ours.completed == first + count);
                    std::size_t at = 0;
                    for (std::uint64_t i = 0; i < count; ++i) {
                        const std::uint64_t number = all[i].theirs.id;
                        if (number < good && !all[i].theirs.signalled) continue;
                        REQUIRE(at < seen.size());
                        const provider_completion &c = seen[at++];
                        REQUIRE((c.id == number && c.qpn == s.qpn));
                        REQUIRE(c.status == (number < good ? known.success : number == good ? status : known.flushed));
                        if (number >= good) REQUIRE(c.vendor == (number == good ? 0x5a : 0xf9));
                        ++(number < good ? compared.good : compared.failed);
                    }
                    REQUIRE(at == seen.size());
                }
                REQUIRE(p.ours.error == queue_error(cause, 0x5a, s.first_block + good));
            }
    }
}

TEST_CASE("the provider believes an entry of this lap only") {
    // Without the HCA: every value of the last byte, at the beginning of a lap and at its end.
    for (const provider_shape &s : shapes()) {
        if (s.log_sq > 5) continue;
        for (int op_own = 0; op_own < 256; ++op_own) {
            const int kind = op_own >> 4;
            if (kind != cqe_requester && kind != cqe_requester_error && kind != cqe_invalid) continue;
            if ((op_own & 0x0c) != 0) continue;  // data within the entry, which nobody asks for
            pair_of_queues p(s);
            post(p, {write(p, 77, 0, 8, true)}, provider_post_send);
            cqe &entry = p.vendor.cq[s.first_entry & ((1u << s.log_cq) - 1)];
            entry.opcode_qpn = to_be32(std::uint32_t{wqe_rdma_write} << 24 | s.qpn);
            entry.syndrome = kind == cqe_requester_error ? syndrome_flushed : syndrome_none;
            entry.last_word = (cqe_last_word(s.first_block, 0, false) & 0xffffff) | static_cast<std::uint32_t>(op_own)
                                                                                        << 24;
            const bool valid = !p.poll_theirs().empty();
            REQUIRE(valid == cqe_valid(entry.last_word, s.first_entry, s.log_cq));
            p.poll_ours();
            REQUIRE((p.ours.completed == s.first_block + 1) == valid);
            ++(kind == cqe_requester_error ? compared.failed : compared.good);
        }
    }
}
