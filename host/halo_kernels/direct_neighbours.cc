// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_kernels/direct_neighbours.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>

#include "host/config.h"
#include "host/halo/collective.h"
#include "host/halo_kernels/direct_description.h"
#include "host/halo_tables/copies.h"
#include "host/halo_tables/tiles.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

using detail::device_copies;
using detail::device_copy;
using transport::region;
using transport::wire_region;

constexpr int description_tag = 2, answer_tag = 3, end_tag = 4;

// Shorter runs are packed: a store of a warp to scattered addresses takes several transfers on the link.
constexpr std::int64_t least_run_bytes = 64;

}  // namespace

// Makes the tables of a direct_neighbours: exchanges descriptions of memory with the neighbours on this node, and maps
// theirs.
class direct_search {
public:
    direct_search(direct_neighbours &found, const kernel_exchange_state &x, std::int32_t own_end)
        : found_(found),
          x_(x),
          own_end_(own_end),
          sent_(parcels_sent(x.grid->domain, x.grid->mine, x.tile, x.fields)),
          received_(parcels_received(x.grid->domain, x.grid->mine, x.tile, x.fields)) {}

    void run(bool wanted) {
        std::vector<int> neighbours;
        for (const auto &messages : {x_.report.receives, x_.report.sends})
            for (const report_data::message &m : messages) neighbours.push_back(m.peer);
        std::sort(neighbours.begin(), neighbours.end());
        neighbours.erase(std::unique(neighbours.begin(), neighbours.end()), neighbours.end());
        for (const int rank : neighbours)
            if (x_.grid->nodes.is_here(rank)) peers_.push_back({.rank = rank});

        // Whatever fails here, the neighbours wait for a description.
        bool may = false;
        const status shared = outcome_of([&] { may = wanted && share_memory(); });
        exchange_descriptions(may);
        for (peer &p : peers_)
            if (may) attach_memory_of(p);
        exchange_answers();
        if (!shared.ok()) throw error(class_of(shared), shared.message());
        if (may) write_tables();
    }

private:
    struct peer {
        int rank;
        std::vector<std::byte> sent = {}, received = {};
        std::int32_t attached_words = 0, has_attached_ours = 0;
        // What it has described, and is mapped here.
        std::byte *words = nullptr;
        direct_description described{};
        std::vector<std::array<std::byte *, 2>> allocations{};  // none: its ghost cells are out of reach
    };

    static int message_to(const std::vector<report_data::message> &all, int rank) {
        for (std::size_t i = 0; i < all.size(); ++i)
            if (all[i].peer == rank) return static_cast<int>(i);
        return -1;
    }
    std::uint64_t word_at(std::uint64_t number) const { return number * sizeof(std::uint64_t); }
    std::int32_t parcels_received_count() const { return x_.device.received_end_ - own_end_; }

    // Memory for the words that neighbours write, and all allocations, as they map them. False: others cannot map the
    // words.
    bool share_memory() {
        const auto count = static_cast<std::uint64_t>(x_.device.sends_ + parcels_received_count());
        const std::uint64_t size = word_at(std::max<std::uint64_t>(count, 1));
        if (const status s = found_.words_.allocate(x_.where, size); !s.ok()) throw error(class_of(s), s.message());
        transport::transport &gpus = *x_.where.owner;
        found_.gpus_ = &gpus;
        found_.device_ = x_.where.device;
        if (!gpus.adopt(found_.words_.address(), size, found_.own_words_).ok() ||
            !gpus.describe(found_.own_words_, words_).ok())
            return false;
        const std::size_t boxes = x_.grid->mine.size();
        for (std::size_t i = 0; i < x_.data.size(); ++i) {
            const std::int64_t size_of_field = x_.views[i / boxes].bytes(i % boxes);
            std::array<wire_region, 2> both{};
            for (std::size_t turn = 0; turn < both.size(); ++turn) {
                if (size_of_field == 0) continue;
                region &own = found_.adopted_.emplace_back();
                if (!gpus.adopt(x_.data[i][turn], static_cast<std::uint64_t>(size_of_field), own).ok() ||
                    !gpus.describe(own, both[turn]).ok()) {
                    allocations_.clear();
                    return true;
                }
            }
            allocations_.push_back(both);
        }
        return true;
    }

    void exchange_descriptions(bool may) {
        std::vector<MPI_Request> requests;
        for (peer &p : peers_) {
            p.sent = description_for(p.rank, may);
            demand(MPI_Isend(p.sent.data(), static_cast<int>(p.sent.size()), MPI_BYTE, p.rank, description_tag,
                             x_.grid->comm, &requests.emplace_back()),
                   "MPI_Isend");
        }
        for (peer &p : peers_) {
            MPI_Status s;
            int size = 0;
            demand(MPI_Probe(p.rank, description_tag, x_.grid->comm, &s), "MPI_Probe");
            demand(MPI_Get_count(&s, MPI_BYTE, &size), "MPI_Get_count");
            p.received.resize(static_cast<std::size_t>(size));
            demand(
                MPI_Recv(p.received.data(), size, MPI_BYTE, p.rank, description_tag, x_.grid->comm, MPI_STATUS_IGNORE),
                "MPI_Recv");
        }
        demand(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }

    std::vector<std::byte> description_for(int rank, bool may) const {
        if (!may) return to_bytes(nullptr);
        direct_description o{
            .words = words_,
            .clear_at = word_at(static_cast<std::uint64_t>(std::max(message_to(x_.report.sends, rank), 0))),
            .allocations = allocations_};
        if (const auto from = received_.find(rank); !o.allocations.empty() && from != received_.end()) {
            o.direct_number_at.resize(from->second.all.size());
            for (std::int32_t i = 0; i < parcels_received_count(); ++i)
                if (const parcel_origin &known = x_.parcels[static_cast<std::size_t>(own_end_ + i)]; known.peer == rank)
                    o.direct_number_at[static_cast<std::size_t>(known.parcel)] =
                        word_at(static_cast<std::uint64_t>(x_.device.sends_ + i));
            for (const parcel &p : from->second.all)
                for (const part &cells : p.parts) o.ghosts.push_back(place_of(cells));
        }
        std::vector<std::byte> all = to_bytes(&o);
        // Of too many parts for a message: they are packed.
        return all.size() <= std::numeric_limits<int>::max() ? all : to_bytes(nullptr);
    }

    ghost_place place_of(const part &cells) const {
        const int where = x_.grid->position_of(cells.receiver);
        const std::size_t allocation =
            static_cast<std::size_t>(cells.field) * x_.grid->mine.size() + static_cast<std::size_t>(where);
        const runs ghosts = rows(cells.field, where, cells.ghosts);
        return {static_cast<std::int64_t>(allocation),
                ghosts.first - static_cast<std::byte *>(x_.data[allocation][0]),
                {ghosts.stride[0], ghosts.stride[1], ghosts.stride[2]}};
    }
    runs rows(int field, int position, const box &cells) const {
        return x_.views[static_cast<std::size_t>(field)].rows_of(static_cast<std::size_t>(position), cells);
    }

    // As far as that goes.
    void attach_memory_of(peer &p) {
        if (!parse(p.received, p.described)) return;
        p.words = attach(p.described.words);
        p.attached_words = p.words != nullptr;
        if (p.words == nullptr || p.described.direct_number_at.empty()) return;
        for (const std::array<wire_region, 2> &both : p.described.allocations) {
            p.allocations.push_back({nullptr, nullptr});
            for (std::size_t turn = 0; turn < both.size(); ++turn) {
                if (both[turn].bytes == 0) continue;  // of an empty box
                p.allocations.back()[turn] = attach(both[turn]);
                if (p.allocations.back()[turn] != nullptr) continue;
                p.allocations.clear();
                return;
            }
        }
    }
    std::byte *attach(const wire_region &memory) {
        region &there = found_.attached_.emplace_back();
        if (memory.transport != found_.gpus_->id() || !found_.gpus_->attach(memory, x_.where.device, there).ok()) {
            found_.attached_.pop_back();
            return nullptr;
        }
        return static_cast<std::byte *>(there.address);
    }

    // A neighbour that cannot give clear-to-store is not stored to.
    void exchange_answers() {
        std::vector<MPI_Request> requests;
        for (peer &p : peers_) {
            demand(MPI_Irecv(&p.has_attached_ours, 1, MPI_INT32_T, p.rank, answer_tag, x_.grid->comm,
                             &requests.emplace_back()),
                   "MPI_Irecv");
            demand(MPI_Isend(&p.attached_words, 1, MPI_INT32_T, p.rank, answer_tag, x_.grid->comm,
                             &requests.emplace_back()),
                   "MPI_Isend");
        }
        demand(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }

    void write_tables() {
        std::vector<direct_send> sends(static_cast<std::size_t>(sends_end(x_.device)));
        std::vector<device_copy> copies;
        std::vector<std::uint64_t *> &peers = found_.peers_clear_to_store_;
        for (const peer &p : peers_) {
            if (p.words != nullptr || p.has_attached_ours != 0) found_.mapped_.push_back(p.rank);
            if (p.words != nullptr && message_to(x_.report.receives, p.rank) >= 0)
                peers.push_back(reinterpret_cast<std::uint64_t *>(p.words + p.described.clear_at));
            if (p.has_attached_ours == 0 || p.allocations.empty()) continue;
            const std::size_t before = copies.size();
            add_sends(p, sends, copies);
            if (copies.size() != before) found_.sends_directly_to_.push_back(p.rank);
        }
        memory_layout layout;
        const std::uint64_t sends_at = layout.place<direct_send>(sends.size()),
                            copies_at = layout.place<device_copy>(copies.size()),
                            peers_at = layout.place<std::uint64_t *>(peers.size());
        const auto write = [&](std::uint64_t at, const auto &values) {
            if (values.empty()) return;
            if (const status s = found_.tables_.write(at, values.data(), values.size() * sizeof values[0]); !s.ok())
                throw error(class_of(s), s.message());
        };
        if (const status s = found_.tables_.allocate(x_.where, layout.bytes()); !s.ok())
            throw error(class_of(s), s.message());
        write(sends_at, sends);
        write(copies_at, copies);
        write(peers_at, peers);
        std::byte *const tables = found_.tables_.address();
        const auto *const words = reinterpret_cast<const std::uint64_t *>(found_.words_.address());
        found_.stores_ = {.sends = copies.empty() ? nullptr : reinterpret_cast<const direct_send *>(tables + sends_at),
                          .copies = reinterpret_cast<const device_copy *>(tables + copies_at),
                          .clear_to_store = words,
                          .peers_clear_to_store = reinterpret_cast<std::uint64_t *const *>(tables + peers_at),
                          .peers_count = static_cast<std::int32_t>(peers.size()),
                          .received_directly = peers.empty() ? nullptr : words + x_.device.sends_};
    }

    void add_sends(const peer &p, std::vector<direct_send> &sends, std::vector<device_copy> &copies) const {
        const auto to = sent_.find(p.rank);
        if (to == sent_.end() || to->second.all.size() != p.described.direct_number_at.size()) return;
        // Where the places of each parcel's parts begin.
        std::vector<std::size_t> first_place;
        std::size_t places = 0;
        for (const parcel &one : to->second.all) {
            first_place.push_back(places);
            places += one.parts.size();
        }
        if (places != p.described.ghosts.size()) return;
        for (std::size_t i = 0; i < sends.size(); ++i) {
            const parcel_origin &known = x_.parcels[i];
            if (known.peer != p.rank) continue;
            const auto number = static_cast<std::size_t>(known.parcel);
            std::vector<device_copy> its = copies_of(to->second.all[number], p, first_place[number]);
            const auto small = std::stable_partition(its.begin(), its.end(), [&](const device_copy &c) {
                return its.size() == 1 || is_for_group(c, its.size());
            });
            const auto begin = static_cast<std::int32_t>(copies.size());
            sends[i] = {
                .copies = {.begin = begin,
                           .small = begin + static_cast<std::int32_t>(small - its.begin()),
                           .end = begin + static_cast<std::int32_t>(its.size())},
                .message = known.message,
                .direct_number = reinterpret_cast<std::uint64_t *>(p.words + p.described.direct_number_at[number])};
            copies.insert(copies.end(), its.begin(), its.end());
        }
    }

    // None, if the runs are too short.
    std::vector<device_copy> copies_of(const parcel &one, const peer &p, std::size_t place) const {
        std::vector<device_copy> all;
        std::int64_t total = 0, count = 0;
        for (const part &cells : one.parts) {
            const ghost_place &at = p.described.ghosts[place++];
            const int owner = x_.grid->position_of(cells.owner);
            const runs own = rows(cells.field, owner, cells.source);
            // Only what the neighbour has described; and words are numbered in 32 bits.
            if (!are_within(at, own, p.described) || own.total() > std::numeric_limits<std::int32_t>::max()) return {};
            const std::array<std::byte *, 2> &there = p.allocations[static_cast<std::size_t>(at.allocation)];
            const std::size_t allocation =
                static_cast<std::size_t>(cells.field) * x_.grid->mine.size() + static_cast<std::size_t>(owner);
            cells_in_memory ghosts{own, {there[0] + at.at, there[1] + at.at}};
            ghosts.shape.stride = at.stride;
            all.push_back(copy_between_fields(in_memory(own, x_.data[allocation]), ghosts, -1));
            total += own.total();
            count += own.count[0] * own.count[1] * own.count[2];
        }
        if (total < count * least_run_bytes) all.clear();
        return all;
    }

    direct_neighbours &found_;
    const kernel_exchange_state &x_;
    const std::int32_t own_end_;
    const std::map<int, parcels> sent_, received_;
    std::vector<peer> peers_;
    wire_region words_{};
    std::vector<std::array<wire_region, 2>> allocations_;  // none: others cannot map them
};

void direct_neighbours::find(const kernel_exchange_state &x, std::int32_t own_end, bool wanted) {
    wanted = wanted && x.where.owner != nullptr && x.device.tiles_count_ != 0;
    int mine = wanted, some = 0;
    demand(MPI_Allreduce(&mine, &some, 1, MPI_INT, MPI_MAX, x.grid->comm), "MPI_Allreduce");
    if (some == 0) return;
    direct_search(*this, x, own_end).run(wanted);
}

void direct_neighbours::unmap() {
    for (region &there : attached_) gpus_->detach(there);
    attached_.clear();
    peers_clear_to_store_.clear();
    for (region &own : adopted_) gpus_->release(own);
    adopted_.clear();
    if (own_words_) gpus_->release(own_words_);
}

void direct_neighbours::leave(MPI_Comm comm) {
    if (gpus_ == nullptr) return;
    unmap();
    gpus_->close_unused();
    std::vector<MPI_Request> requests;
    for (const int rank : mapped_) {
        demand(MPI_Irecv(nullptr, 0, MPI_BYTE, rank, end_tag, comm, &requests.emplace_back()), "MPI_Irecv");
        demand(MPI_Isend(nullptr, 0, MPI_BYTE, rank, end_tag, comm, &requests.emplace_back()), "MPI_Isend");
    }
    const double begin = MPI_Wtime();
    for (int all = 0; all == 0;) {
        demand(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all, MPI_STATUSES_IGNORE),
               "MPI_Testall");
        if (all == 0 && config().stall_seconds > 0 && MPI_Wtime() - begin > config().stall_seconds)
            throw error(MPI_ERR_PENDING,
                        "a neighbour has not destroyed its exchange, and its kernels may still store to this rank");
    }
}

void direct_neighbours::withdraw_clear_to_store() {
    const std::uint64_t none = 0;
    for (std::uint64_t *const word : peers_clear_to_store_)
        static_cast<void>(gpus_->write(word, &none, sizeof none, device_));
}

}  // namespace mpix::halo
