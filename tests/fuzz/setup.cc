// SPDX-License-Identifier: BSD-3-Clause
//
// World rank 1 is hostile: it sends any control messages in any order, and writes whatever it likes into the words,
// rings and flags that it can reach. Its own memory, for single copies, is that of another process. We have requests
// with it, and a pair with ourselves that must never notice. The input is a program of both sides' steps.
#include <mpix/detail/order.h>
#include <dirent.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <memory>
#include <vector>

#include "host/config.h"
#include "host/control/peers.h"
#include "host/progress.h"
#include "host/transfer/receive.h"
#include "host/transfer/send.h"
#include "host/wireup/wireup.h"
#include "tests/fuzz/fake_mpi.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/landmark.h"

using namespace mpix;

namespace {

int open_files() {
    int n = 0;
    DIR *const dir = opendir("/proc/self/fd");
    while (readdir(dir) != nullptr) ++n;
    closedir(dir);
    return n;
}

constexpr std::uint64_t world_name = 99;
constexpr int own_tag = 7;
constexpr char sent_byte = 0x5a;
constexpr std::uint64_t sizes_offered[] = {128, 1024, 65536, 4u << 20};

// Without a network: UCX is not ours to fuzz.
const bool shared_memory_only = transport::use_only("shm,cuda_ipc").ok();

// The process of world rank 1: it does nothing, so that nothing becomes of it however its memory is written to. Its
// receive buffers are seen here as well; we may write to the first half of each.
class peer_process {
public:
    peer_process() {
        for (const std::uint64_t bytes : sizes_offered) {
            void *const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
            FUZZ_CHECK(at != MAP_FAILED);
            buffers_.push_back(static_cast<char *>(at));
        }
        process_table::neighbour itself{};
        itself.own = transport::probe_of_this_process();
        const pid_t pid = fork();
        FUZZ_CHECK(pid >= 0);
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) pause();
        }
        itself.own.pid = pid;
        itself.world_rank = 1;
        transport::region shared;  // never released
        FUZZ_CHECK(transport::node_memory().allocate(1, transport::on_host, shared).ok());
        FUZZ_CHECK(transport::node_memory().describe(shared, itself.inbox).ok());
        fake_mpi::neighbours.emplace_back(reinterpret_cast<const char *>(&itself), sizeof itself);
        transport::peer_memory reached;
        why_not_ = transport::reach_memory(itself.own, reached);
    }
    const status &why_not() const { return why_not_; }
    char *buffer(unsigned i) const { return buffers_[i]; }
    char *other_half(unsigned i) const { return buffers_[i] + sizes_offered[i] / 2; }

private:
    std::vector<char *> buffers_;
    status why_not_;
};
const peer_process hostile;

fuzz::landmark agreed("a single copy that both sides have agreed on", hostile.why_not().message());
fuzz::landmark written("bytes in the other process by a single copy", hostile.why_not().message());
fuzz::landmark refused("a single copy that the system refuses", hostile.why_not().message());
fuzz::landmark with_oneself("a single copy within the process", hostile.why_not().message());

struct owned {
    std::vector<char> buffer;
    std::shared_ptr<request> r;
    bool is_send() const { return r->kind == MPIX_KIND_SEND; }
    send_request &send() const { return static_cast<send_request &>(*r); }
    receive_request &receive() const { return static_cast<receive_request &>(*r); }
};

template <class Kind>
std::unique_ptr<owned> make(int peer, int tag, int partitions, std::uint64_t bytes) {
    static const auto members = [] {
        auto made = std::make_shared<communicator>();
        made->name = world_name;
        made->peers = {0, 1, 2};
        return made;
    }();
    static status problem;
    static const auto one_byte = make_plan({{{0, 0, 1, {}}}, 1, 1}, problem);
    static const auto with_gaps = make_plan({{{0, 0, 1, {}}, {2, 1, 1, {}}}, 2, 3}, problem);
    const bool gaps = peer != 0 && bytes % 2 == 0 && partitions % 2 == 0;
    auto o = std::make_unique<owned>();
    operation op;
    op.type = gaps ? with_gaps : one_byte;
    op.count = bytes / static_cast<std::uint64_t>(op.type->size);
    op.partitions = partitions;
    op.peer = peer;
    op.tag = tag;
    op.members = members;
    o->buffer.resize(static_cast<std::size_t>(op.count) * static_cast<std::size_t>(partitions) *
                     static_cast<std::size_t>(op.type->extent));
    op.buffer = o->buffer.data();
    o->r = std::make_shared<Kind>(op);
    FUZZ_CHECK(o->r->prepare().ok());
    join(o->r);
    return o;
}

// Memory of the peer's, the first half of which it offers. The other half is not ours to write.
class offered_memory {
public:
    offered_memory() {
        for (const std::uint64_t bytes : sizes_offered) {
            auto &r = regions_.emplace_back();
            FUZZ_CHECK(transport::node_memory().allocate(bytes, transport::on_host, r).ok());
            std::memset(other_half(r), 0x66, 64);
        }
        for (unsigned i = 0; i < 4; ++i) {
            *hostile.buffer(i) = 0;
            std::memset(hostile.other_half(i), 0x66, 64);
        }
    }
    ~offered_memory() {
        for (auto &r : regions_) {
            for (int i = 0; i < 64 && !altered_; ++i) FUZZ_CHECK(other_half(r)[i] == 0x66);
            transport::node_memory().release(r);
        }
        for (unsigned i = 0; i < 4; ++i) {
            for (int j = 0; j < 64 && !altered_; ++j) FUZZ_CHECK(hostile.other_half(i)[j] == 0x66);
            if (*hostile.buffer(i) == sent_byte) written.reach();
        }
    }
    // `own`: a receive buffer in the process's own memory.
    void describe(fuzz::input &in, transport::wire_region &wire, bool own = false) {
        const unsigned i = in.below(4);
        if (own)
            transport::describe_buffer(hostile.buffer(i), sizes_offered[i], wire);
        else
            FUZZ_CHECK(transport::node_memory().describe(regions_[i], wire).ok());
        wire.bytes /= 2;
        if (!in.one_in(8)) return;
        altered_ = true;
        const unsigned at = in.below(80);
        in.bytes(reinterpret_cast<char *>(&wire) + at, 1 + in.below(8));
    }

private:
    static char *other_half(const transport::region &r) { return static_cast<char *>(r.address) + r.bytes / 2; }
    std::vector<transport::region> regions_;
    bool altered_ = false;  // a description points who knows where
};

class session {
public:
    explicit session(fuzz::input &in) : in_(in) {
        const unsigned knobs = in_.below(4);
        config().eager_bytes = (knobs & 1) != 0 ? 0 : 1u << 20;
        config().single_copy_bytes = (knobs & 2) != 0 ? 1 : 32768;
        start_setup({});
        own_send_ = make<send_request>(0, own_tag, 3, 24);
        own_receive_ = make<receive_request>(0, own_tag, 2, 36);
    }

    ~session() {
        own_epoch();
        for (auto &o : requests_)
            if (o->r->active()) retire(*o);
        progress_poll();
        stop_setup();
        requests_.clear();
        fake_mpi::inbox.clear();
    }

    void step() {
        switch (in_.below(14)) {
            case 0:
                create<send_request>();
                break;
            case 1:
                create<receive_request>();
                break;
            case 2:
                if (owned *o = any(); o != nullptr && !o->r->active()) o->r->start();
                break;
            case 3:
                if (owned *o = any(); o != nullptr && o->is_send()) o->send().ready(static_cast<int>(in_.below(7)) - 1);
                break;
            case 4:
                if (owned *o = any(); o != nullptr && o->r->active() && is_done(*o)) retire(*o);
                break;
            case 5:
                if (owned *o = any(); o != nullptr && !o->is_send()) {
                    bool flag = false;
                    static_cast<void>(o->receive().arrived(static_cast<int>(in_.below(7)) - 1, flag));
                }
                break;
            case 6:
                release(in_.below(12));
                break;
            case 7:
                if (owned *o = any(); o != nullptr) {
                    inquire(*o->r);
                    o->r->describe_stall();
                    o->r->path();
                    o->r->prepared();
                }
                break;
            case 8:
                own_epoch();
                break;
            case 9:
                corrupt();
                break;
            case 10:
                progress_poll();
                break;
            default:
                message();
        }
    }

private:
    static void retire(owned &o) {
        if (o.r->home->far != nullptr) agreed.reach();
        const status told = o.r->retire(MPI_STATUS_IGNORE);
        if (told.message().find("cannot be written") != std::string::npos) refused.reach();
    }

    int partitions() { return 1 + static_cast<int>(in_.below(6)); }

    template <class Kind>
    void create() {
        static constexpr std::uint64_t sizes[] = {0, 1, 8, 40, 30000, 1u << 20};
        const int peer = in_.one_in(8) ? 2 : 1, tag = static_cast<int>(in_.below(2)), n = partitions();
        const std::uint64_t bytes = sizes[in_.below(6)];
        if (requests_.size() >= 12) return;
        requests_.push_back(make<Kind>(peer, tag, n, bytes));
        if (requests_.back()->is_send()) requests_.back()->buffer.assign(requests_.back()->buffer.size(), sent_byte);
    }

    owned *any() { return requests_.empty() ? nullptr : requests_[in_.below(12) % requests_.size()].get(); }

    void release(std::size_t i) {
        if (i >= requests_.size() || requests_[i]->r->active()) return;
        leave(requests_[i]->r);
        requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(i));
    }

    // With ourselves: all of it arrives, and right, whatever else is going on.
    void own_epoch() {
        ++own_epochs_;
        for (std::size_t i = 0; i < own_send_->buffer.size(); ++i)
            own_send_->buffer[i] = static_cast<char>(own_epochs_ * 37 + i * 11);
        std::memset(own_receive_->buffer.data(), 0x44, own_receive_->buffer.size());
        own_send_->r->start();
        own_receive_->r->start();
        for (int p = 0; p < 3; ++p) FUZZ_CHECK(!own_send_->send().ready(p));
        int rounds = 0;
        for (owned *o : {own_send_.get(), own_receive_.get()}) {
            while (!o->r->done_exactly()) {
                FUZZ_CHECK(++rounds < 1000);
                progress_poll();
            }
            FUZZ_CHECK(o->r->retire(MPI_STATUS_IGNORE).ok());
        }
        FUZZ_CHECK(own_send_->buffer == own_receive_->buffer);
        if (own_send_->r->home->far != nullptr) with_oneself.reach();
    }

    std::uint64_t value() {
        switch (in_.below(4)) {
            case 0:
                return in_.below(32);
            case 1:
                return ~std::uint64_t{0} - in_.below(2);
            case 2:  // a ring entry, maybe
                return in_.number<std::uint16_t>() % 4 * 0x100000000u + in_.below(32);
            default:
                return in_.number<std::uint64_t>();
        }
    }

    // In a single copy, a send waits some time for its receiver before it writes, counted from one of the first looks.
    // The last look comes after that time, even if this process did not run meanwhile.
    static bool is_done(const owned &o) {
        auto since = wait_clock::now();
        for (int looks = 0;; ++looks) {
            const bool last = looks > 5 && seconds_since(since) > 50e-6;
            if (o.r->done_exactly()) return true;
            if (last || !o.is_send() || o.r->home->far == nullptr) return false;
            if (looks < 5) since = wait_clock::now();
        }
    }

    // What lies in shared memory.
    void corrupt() {
        owned *const o = any();
        if (o == nullptr) return;
        const unsigned which = in_.below(3), place = in_.below(32);
        if (which == 0) {
            detail::store_relaxed(reinterpret_cast<std::uint64_t *>(o->r->words) + place, value());
        } else if (which == 1) {
            if (o->is_send())
                detail::store_relaxed(&o->r->home->ring[place % static_cast<unsigned>(o->r->op.partitions)], value());
        } else if (!o->is_send() && o->r->home->flags != nullptr) {
            detail::store_relaxed(&o->r->home->flags[place % (o->r->home->peer_partitions + 1)], value());
        }
    }

    // A message whose fields are mostly possible ones, and sometimes any bytes.
    void message() {
        const auto kind = static_cast<control>(1 + in_.below(6));
        control_message m{.from = 1 + in_.below(6)};
        owned *const o = any();
        const std::uint64_t number = o == nullptr ? 0 : o->r->number;
        const std::int32_t tag = o == nullptr ? 0 : o->r->op.tag, n = partitions();
        std::uint64_t bytes = o == nullptr ? 0 : o->r->total_bytes();
        bytes -= bytes % static_cast<std::uint64_t>(n);
        const unsigned bits = in_.below(32);
        const refusal_reason refusal = in_.one_in(6) ? static_cast<refusal_reason>(in_.below(4)) : refused_not;
        accept_body accept{
            .refusal = refusal, .partitions = n, .bytes = bytes, .slots = bits & 3, .flags = {bits >> 2}};
        if (bits == 31) {  // of what no message has, what one may have
            accept.slots = 1;
            accept.flags = {static_cast<std::uint32_t>(accept_flag::rget)};
        }
        transport::wire_region words, landing, arrival;
        memory_.describe(in_, words);
        memory_.describe(in_, landing, kind == control::accept && accept.flags.has(accept_flag::in_place));
        memory_.describe(in_, arrival);
        control_text reason;
        reason.assign(std::string(sizeof reason.characters, 'x'));

        if (bits == 29) {
            m.to = number;
            m.body =
                inquire_body{.communicator = world_name, .by = tag % 2 != 0 ? pair_side::send : pair_side::receive};
        } else if (bits == 30) {
            m = {.to = number, .body = answer_body{.state = reason}};
        } else if (kind == control::offer) {
            m.body = offer_body{.communicator = world_name,
                                .tag = tag,
                                .partitions = n,
                                .bytes = bytes,
                                .flags = {bits},
                                .words = words,
                                .send_buffer = landing,
                                .kernel_words = arrival,
                                .no_network = reason};
        } else if (kind == control::accept) {
            accept.words = words;
            accept.landing = landing;
            accept.arrival = arrival;
            accept.reason = reason;
            m.to = number;
            m.body = accept;
        } else if (kind == control::connect) {
            m.to = number;
            m.body = connect_body{.refusal = refusal, .reason = reason};
        } else if (kind == control::started) {
            m.body = started_body{};
        } else if (kind == control::withdraw) {
            m.to = number;
            m.body = withdraw_body{.by = bits == 0 ? pair_side::send : pair_side::receive};
        } else {
            m.to = number;
            m.body = detach_body{};
        }
        control_packet packet = encode_control(m);
        if (in_.one_in(6)) {  // anywhere before the regions, whose changes are counted
            constexpr std::size_t before_regions = sizeof(control_header) + offsetof(accept_body, words);
            const unsigned at = in_.below(before_regions);
            in_.bytes(packet.bytes + at, 1 + in_.below(8));
        }
        bound_memory(packet);
        std::string sent(reinterpret_cast<const char *>(&packet), sizeof packet);
        if (in_.one_in(16)) sent.resize(in_.number<std::uint16_t>() % 1024);
        fake_mpi::inbox.push_back({1, sent});
        poll_setup();
    }

    // An empty message of very many partitions is good, and takes memory accordingly.
    static void bound_memory(control_packet &packet) {
        control_message m;
        if (!check_control(&packet, sizeof packet, m).ok()) return;
        const auto bound = [](auto &body) {
            if (body.bytes == 0) body.partitions = std::min(body.partitions, 1000);
        };
        if (auto *const offer = std::get_if<offer_body>(&m.body); offer != nullptr) bound(*offer);
        if (auto *const accept = std::get_if<accept_body>(&m.body); accept != nullptr) bound(*accept);
        packet = encode_control(m);
    }

    fuzz::input &in_;
    offered_memory memory_;
    std::unique_ptr<owned> own_send_, own_receive_;
    std::uint64_t own_epochs_ = 0;
    std::vector<std::unique_ptr<owned>> requests_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    const auto once = [&](const std::uint8_t *from, std::size_t n) {
        fuzz::input in(from, n);
        session s(in);
        for (int steps = 0; steps < 200 && !in.empty(); ++steps) s.step();
    };
    static const int at_first = [&] {
        once(nullptr, 0);
        return open_files();
    }();
    once(data, size);
    FUZZ_CHECK(open_files() <= at_first + 8);  // what small regions are cut from is kept, as much as was ever in use
    return 0;
}
