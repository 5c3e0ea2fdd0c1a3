// SPDX-License-Identifier: BSD-3-Clause
//
// World rank 1 is hostile: it sends any control messages in any order, and writes whatever it likes into the words, rings
// and flags that it can reach. We have requests with it, and a pair with ourselves that must never notice. The input is a
// program of both sides' steps.
#include <mpix/detail/order.h>
#include <dirent.h>

#include <memory>
#include <vector>

#include "host/config.h"
#include "host/progress.h"
#include "host/request/receive.h"
#include "host/request/send.h"
#include "host/request/setup.h"
#include "tests/fuzz/fake_mpi.h"
#include "tests/fuzz/input.h"

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

// Without a network: UCX is not ours to fuzz.
const bool shared_memory_only = transport::use_only("shm,cuda_ipc").empty();

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
    static std::string problem;
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
    FUZZ_CHECK(!o->r->prepare());
    join(o->r);
    return o;
}

// Memory of the peer's, the first half of which it offers. The other half is not ours to write.
class offered_memory {
public:
    offered_memory() {
        static constexpr std::uint64_t sizes[] = {128, 1024, 65536, 4u << 20};
        for (const std::uint64_t bytes : sizes) {
            auto &r = regions_.emplace_back();
            FUZZ_CHECK(transport::node_memory().allocate(bytes, transport::on_host, r).empty());
            std::memset(other_half(r), 0x66, 64);
        }
    }
    ~offered_memory() {
        for (auto &r : regions_) {
            for (int i = 0; i < 64 && !altered_; ++i) FUZZ_CHECK(other_half(r)[i] == 0x66);
            transport::node_memory().release(r);
        }
    }
    void describe(fuzz::input &in, transport::wire_region &wire) {
        FUZZ_CHECK(transport::node_memory().describe(regions_[in.below(4)], wire).empty());
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
        config().eager_bytes = in_.one_in(2) ? 0 : 1u << 20;
        start_setup(false, false);
        own_send_ = make<send_request>(0, own_tag, 3, 24);
        own_receive_ = make<receive_request>(0, own_tag, 2, 36);
    }

    ~session() {
        own_epoch();
        for (auto &o : requests_)
            if (o->r->active()) o->r->retire(MPI_STATUS_IGNORE);
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
                if (owned *o = any(); o != nullptr && o->r->active() && o->r->done_exactly())
                    o->r->retire(MPI_STATUS_IGNORE);
                break;
            case 5:
                if (owned *o = any(); o != nullptr && !o->is_send()) {
                    bool flag = false;
                    o->receive().arrived(static_cast<int>(in_.below(7)) - 1, flag);
                }
                break;
            case 6:
                release(in_.below(12));
                break;
            case 7:
                if (owned *o = any(); o != nullptr) {
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
    int partitions() { return 1 + static_cast<int>(in_.below(6)); }

    template <class Kind>
    void create() {
        static constexpr std::uint64_t sizes[] = {0, 1, 8, 40, 30000, 1u << 20};
        const int peer = in_.one_in(8) ? 2 : 1, tag = static_cast<int>(in_.below(2)), n = partitions();
        const std::uint64_t bytes = sizes[in_.below(6)];
        if (requests_.size() < 12) requests_.push_back(make<Kind>(peer, tag, n, bytes));
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
            FUZZ_CHECK(!o->r->retire(MPI_STATUS_IGNORE));
        }
        FUZZ_CHECK(own_send_->buffer == own_receive_->buffer);
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

    // What lies in shared memory.
    void corrupt() {
        owned *const o = any();
        if (o == nullptr) return;
        const unsigned which = in_.below(3), place = in_.below(32);
        if (which == 0) {
            detail::poke(reinterpret_cast<std::uint64_t *>(o->r->words) + place, value());
        } else if (which == 1) {
            if (o->is_send())
                detail::poke(&o->r->home->ring[place % static_cast<unsigned>(o->r->op.partitions)], value());
        } else if (!o->is_send() && o->r->home->flags != nullptr) {
            detail::poke(&o->r->home->flags[place % (o->r->home->peer_partitions + 1)], value());
        }
    }

    void message() {
        const auto kind = static_cast<control>(1 + in_.below(6));
        control_message m = make_control(kind, 1 + in_.below(6), 0);
        owned *const o = any();
        if (o != nullptr) {
            if (kind != control::offer) m.to = o->r->number;
            m.bytes = o->r->total_bytes();
            m.tag = o->r->op.tag;
        }
        m.communicator = world_name;
        m.partitions = partitions();
        m.bytes -= m.bytes % static_cast<std::uint64_t>(m.partitions);
        m.flags = in_.below(32);
        m.refusal = in_.one_in(6) ? in_.below(4) : 0;
        memory_.describe(in_, m.words);
        memory_.describe(in_, m.landing);
        memory_.describe(in_, m.arrival);
        std::memset(m.reason, 'x', sizeof m.reason);
        if (in_.one_in(6)) {  // anywhere before the regions, whose changes are counted
            const unsigned at = in_.below(offsetof(control_message, words));
            in_.bytes(reinterpret_cast<char *>(&m) + at, 1 + in_.below(8));
        }
        // An empty message of so many partitions is good, and takes memory accordingly.
        if (m.bytes == 0 && m.partitions > 1000) m.partitions = 1000;
        std::string sent(reinterpret_cast<const char *>(&m), sizeof m);
        if (in_.one_in(16)) sent.resize(in_.number<std::uint16_t>() % 1024);
        fake_mpi::inbox.push_back({1, sent});
        poll_setup();
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
