// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_exchange/node_exchange.h"

#include <mpix/device.cuh>
#include <mpix/mpix.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "host/config.h"
#include "host/format.h"
#include "host/halo/collective.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

// On the grid's communicator; exchanges are constructed in one order on all ranks.
constexpr int node_message_tag = 1;

// Whether the flag has been set in this exchange, or a later one.
bool is_set(const std::uint64_t *flag, std::uint64_t epoch) {
    return mpix::detail::load_acquire(flag) >= epoch;  // pairs: S1, S2
}

// Moves the message with this peer out of a list. `packed`: as long as it is at the other end.
message take_out(std::vector<message> &messages, int peer, std::int64_t packed) {
    std::vector<message> rest;  // a message can be constructed from another one, not assigned to
    std::optional<message> taken;
    for (message &m : messages) {
        if (m.peer() == peer)
            taken.emplace(std::move(m));
        else
            rest.push_back(std::move(m));
    }
    messages.swap(rest);
    if (!taken || taken->packed_bytes() != packed)
        throw error(MPI_ERR_INTERN, format("rank {} has no message of {} packed bytes for this rank", peer, packed));
    taken->give_up_memory();
    return std::move(*taken);
}

}  // namespace

node_exchange::~node_exchange() { free_requests(); }

std::uint64_t *node_exchange::taken_flag(int place) const {
    return reinterpret_cast<std::uint64_t *>(memory_.at(static_cast<std::size_t>(place) * node_line));
}

void node_exchange::take_over(MPI_Comm comm, const node_map &nodes, const node_plan &plan,
                              const std::vector<node_message> &sent, std::vector<message> &receives,
                              std::vector<message> &sends) {
    place_ = nodes.place_of(nodes.rank());
    neighbours_ = nodes.ranks_of(nodes.node_of(nodes.rank()));
    for (const node_message &m : sent) {
        outgoing &o = out_.emplace_back();
        o.packed = std::make_unique<std::byte[]>(static_cast<std::size_t>(m.bytes));
        for (std::vector<MPI_Request> &requests : sending_) {
            requests.push_back(MPI_REQUEST_NULL);
            demand(MPI_Psend_init(o.packed.get(), 1, m.bytes, MPI_BYTE, m.carrier, node_message_tag, comm,
                                  MPI_INFO_NULL, &requests.back()),
                   "MPI_Psend_init");
        }
        for (const node_part &p : m.parts) {
            o.parts.push_back({take_out(sends, p.reader, p.bytes), m.carrier, sending_[1].back()});
            o.at.push_back(p.at);
        }
    }
    for (const node_message &m : plan.received) {
        MPI_Request first = MPI_REQUEST_NULL;
        auto *const flag = reinterpret_cast<std::uint64_t *>(memory_.at(m.flag_at));
        if (m.carrier == nodes.rank()) {
            for (std::size_t turn = 0; turn < 2; ++turn) {
                receiving_[turn].push_back(MPI_REQUEST_NULL);
                demand(MPI_Precv_init(memory_.at(m.room_at[turn]), 1, m.bytes, MPI_BYTE, m.sender, node_message_tag,
                                      comm, MPI_INFO_NULL, &receiving_[turn].back()),
                       "MPI_Precv_init");
            }
            first = receiving_[1].back();
            carried &c = carried_.emplace_back();
            c.sender = m.sender;
            c.flag = flag;
            for (const node_part &p : m.parts) c.readers.push_back(nodes.place_of(p.reader));
        }
        for (const node_part &p : m.parts) {
            if (p.reader != nodes.rank()) continue;
            parts_.push_back({take_out(receives, m.sender, p.bytes), m.carrier, first});
            sources_.push_back({.sender = m.sender,
                                .flag = flag,
                                .room = {memory_.at(m.room_at[0]) + p.at, memory_.at(m.room_at[1]) + p.at}});
        }
    }
}

void node_exchange::begin() {
    ++epoch_;
    for (source &s : sources_) s.taken = false;
    for (carried &c : carried_) c.started = false;
    // Does not wait: what cannot be received yet is started by finish().
    for (std::size_t i = 0; i < carried_.size(); ++i)
        if (may_start(carried_[i])) start(i);
    start_all(sending_[turn()].size(), sending_[turn()].data());
}

bool node_exchange::may_start(const carried &c) const {
    return epoch_ <= 2 || std::all_of(c.readers.begin(), c.readers.end(),
                                      [&](int place) { return is_set(taken_flag(place), epoch_ - 2); });
}

void node_exchange::start(std::size_t i) {
    demand(MPI_Start(&receiving_[turn()][i]), "MPI_Start");
    carried_[i].started = true;
}

void node_exchange::pack(int field) const {
    for (const outgoing &o : out_)
        for (std::size_t i = 0; i < o.parts.size(); ++i) o.parts[i].cells.pack_field(field, o.packed.get() + o.at[i]);
}

void node_exchange::send() {
    for (const MPI_Request request : sending_[turn()]) demand(MPI_Pready(0, request), "MPI_Pready");
}

void node_exchange::await(const std::uint64_t *flag, std::uint64_t epoch, wait_clock::time_point since,
                          const std::function<std::string()> &what) const {
    bool noticed = false;
    for (unsigned look = 0; !is_set(flag, epoch); ++look) {
        if (look < 64) continue;
        progress_poll();  // what this rank sends, and carries for others in other exchanges, has to get on
        if (look % 16 != 15) continue;
        const double waited = mpix::seconds_since(since), limit = config().stall_seconds;
        if (limit > 0 && waited > limit) {
            const std::string sentence =
                format("{}::finish: no completion after {:.1f} s: {}", exchange_call, waited, what());
            say("STALL in " + sentence);
            throw error(MPI_ERR_PENDING, sentence);
        }
        if (!noticed && waited > notice_seconds()) {
            noticed = true;
            say(format("WAITING in {}::finish for {:.1f} s: {}", exchange_call, waited, what()));
        }
        mpix::detail::pause_waiting(waited * 1e9 > static_cast<double>(mpix::detail::long_wait_ns));
    }
}

void node_exchange::carry() {
    const auto since = wait_clock::now();
    for (std::size_t i = 0; i < carried_.size(); ++i) {
        const carried &c = carried_[i];
        if (c.started) continue;
        for (const int place : c.readers)
            await(taken_flag(place), epoch_ - 2, since, [&] {
                return format("rank {} of this node is still to finish the exchange two before this one",
                              neighbours_[static_cast<std::size_t>(place)]);
            });
        start(i);
    }
    std::vector<MPI_Request> &requests = receiving_[turn()];
    for (std::size_t i = 0; i < carried_.size(); ++i) {
        int which = MPI_UNDEFINED, error_class = MPI_SUCCESS;
        const int code = MPI_Waitany(static_cast<int>(requests.size()), requests.data(), &which, MPI_STATUS_IGNORE);
        MPI_Error_class(code, &error_class);
        demand_completion(code, error_class, "MPI_Waitany");
        if (which == MPI_UNDEFINED) break;  // an earlier finish() has completed some, and failed
        mpix::detail::store_release(carried_[static_cast<std::size_t>(which)].flag, epoch_);  // pairs: S1
    }
}

void node_exchange::take(const std::function<void(part &)> &found) {
    if (parts_.empty()) return;
    const auto since = wait_clock::now();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        source &s = sources_[i];
        if (s.taken) continue;
        await(s.flag, epoch_, since, [&] {
            return format("what rank {} has sent to this node is received by rank {}, in its finish() of this exchange",
                          s.sender, parts_[i].carrier);
        });
        found(parts_[i]);
        parts_[i].cells.unpack(s.room[turn()]);
        s.taken = true;
    }
    mpix::detail::store_release(taken_flag(place_), epoch_);  // pairs: S2
}

void node_exchange::complete_sends() {
    std::vector<MPI_Request> &requests = sending_[turn()];
    if (requests.empty()) return;
    int error_class = MPI_SUCCESS;
    const int code = wait_all(static_cast<int>(requests.size()), requests.data(), error_class);
    demand_completion(code, error_class, "MPI_Waitall");
}

void node_exchange::swap(int field) {
    for (outgoing &o : out_)
        for (part &p : o.parts) p.cells.swap(field);
    for (part &p : parts_) p.cells.swap(field);
}

bool node_exchange::free_requests() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized) return true;
    bool all = true;
    for (auto *const list : {&receiving_, &sending_})
        for (std::vector<MPI_Request> &requests : *list) {
            // It refuses those that are active.
            std::erase_if(requests, [](MPI_Request &r) { return MPI_Request_free(&r) == MPI_SUCCESS; });
            all = all && requests.empty();
        }
    return all;
}

std::vector<const node_exchange::part *> node_exchange::parts_sent() const {
    std::vector<const part *> all;
    for (const outgoing &o : out_)
        for (const part &p : o.parts) all.push_back(&p);
    return all;
}

std::unique_ptr<node_exchange> make_node_exchange(MPI_Comm comm, const node_map &nodes, node_messages how,
                                                  std::vector<message> &receives, std::vector<message> &sends) {
    const node_comm here(comm, nodes);
    std::vector<candidate> candidates;
    for (const message &m : sends)
        if (!m.typed()) candidates.push_back({m.peer(), m.bytes(), m.packed_bytes()});
    const std::vector<node_message> sent = plan_node_messages(nodes, candidates, how);
    bool any = false;
    const node_plan plan = exchange_plans(comm, here.get(), nodes, sent, any);
    if (!any) return nullptr;
    auto made = std::make_unique<node_exchange>();
    status s = made->make_memory(here.get(), plan);
    int all_have = s.ok();
    demand(MPI_Allreduce(MPI_IN_PLACE, &all_have, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
    if (all_have == 0 && how == node_messages::automatic) return nullptr;
    made->all_have_memory();
    if (s.ok()) s = outcome_of([&] { made->take_over(comm, nodes, plan, sent, receives, sends); });
    check_collectively(comm, exchange_call, s);
    return made;
}

}  // namespace mpix::halo
