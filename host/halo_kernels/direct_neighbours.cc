// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_kernels/direct_neighbours.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <type_traits>
#include <utility>

#include "host/config.h"
#include "host/halo/collective.h"
#include "host/halo_tables/copies.h"
#include "host/halo_tables/tiles.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

using detail::device_copies;
using detail::device_copy;
using transport::region;
using transport::wire_region;

constexpr int offer_tag = 2, answer_tag = 3, end_tag = 4;

// Runs this short travel better packed: each store of a warp would be split into packets of the link. Not measured between two GPUs.
constexpr std::int64_t least_run_bytes = 64;

// What a rank tells a neighbour. Behind it come: of each of its allocations two regions; of each parcel that it receives from this
// neighbour the place of a word; of each part of these a ghost_place.
struct offer {
    wire_region words;
    std::uint64_t opened_at;   // where the neighbour says that its ghost cells are open, in bytes from the words on
    std::int32_t has_words;    // else nothing of this is valid
    std::int32_t allocations;  // 0: its fields cannot be mapped
    std::int32_t parcels, parts;
};
// Ghost cells, in an allocation of a field.
struct ghost_place {
    std::int64_t allocation, at;
    std::array<std::int64_t, 3> stride;
};

using bytes = std::vector<std::byte>;

template <class T>
void append(bytes &to, const T *values, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto *const first = reinterpret_cast<const std::byte *>(values);
    to.insert(to.end(), first, first + count * sizeof(T));
}

// Reads what append() has written. After the end it gives nothing, and is not whole.
class reader {
public:
    explicit reader(const bytes &all) : all_(all) {}
    template <class T>
    std::vector<T> take(std::int64_t count) {
        std::vector<T> values;
        const std::size_t left = all_.size() - at_;
        if (count < 0 || static_cast<std::uint64_t>(count) > left / sizeof(T)) {
            at_ = all_.size();
            whole_ = false;
            return values;
        }
        values.resize(static_cast<std::size_t>(count));
        if (count != 0) std::memcpy(values.data(), all_.data() + at_, values.size() * sizeof(T));
        at_ += values.size() * sizeof(T);
        return values;
    }
    bool whole() const { return whole_ && at_ == all_.size(); }

private:
    const bytes &all_;
    std::size_t at_ = 0;
    bool whole_ = true;
};

// Which of these ranks are on this node.
std::vector<bool> on_this_node(MPI_Comm comm, const std::vector<int> &ranks) {
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Group all = MPI_GROUP_NULL, here = MPI_GROUP_NULL;
    demand(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
    MPI_Comm_group(comm, &all);
    MPI_Comm_group(node, &here);
    std::vector<int> there(ranks.size());
    MPI_Group_translate_ranks(all, static_cast<int>(ranks.size()), ranks.data(), here, there.data());
    MPI_Group_free(&all);
    MPI_Group_free(&here);
    MPI_Comm_free(&node);
    std::vector<bool> are(ranks.size());
    std::transform(there.begin(), there.end(), are.begin(), [](int rank) { return rank != MPI_UNDEFINED; });
    return are;
}

}  // namespace

// Fills one in.
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
        const std::vector<bool> here = on_this_node(x_.grid->comm, neighbours);
        for (std::size_t i = 0; i < neighbours.size(); ++i)
            if (here[i]) peers_.push_back({.rank = neighbours[i]});

        // Whatever fails here, the neighbours wait for an offer.
        bool may = false;
        const status shared = outcome_of([&] { may = wanted && share_memory(); });
        exchange_offers(may);
        for (peer &p : peers_)
            if (may) accept(p);
        exchange_answers();
        if (!shared.ok()) throw error(class_of(shared), shared.message());
        if (may) write_tables();
    }

private:
    struct peer {
        int rank;
        bytes told = {}, heard = {};
        std::int32_t attached_words = 0, has_attached_ours = 0;
        // What it has offered.
        std::byte *words = nullptr;
        offer offered{};
        std::vector<std::uint64_t> stored_at{};
        std::vector<ghost_place> ghosts{};
        std::vector<std::array<std::byte *, 2>> allocations{};  // none: its ghost cells are out of reach
    };

    static int message_to(const std::vector<report_data::message> &all, int rank) {
        for (std::size_t i = 0; i < all.size(); ++i)
            if (all[i].peer == rank) return static_cast<int>(i);
        return -1;
    }
    std::uint64_t word_at(std::uint64_t number) const { return number * sizeof(std::uint64_t); }
    std::int32_t parcels_received_count() const { return x_.device.received_end_ - own_end_; }

    // Memory for the words that neighbours write, and all allocations, as they map them. False: others cannot map the words.
    bool share_memory() {
        const auto opened = static_cast<std::uint64_t>(x_.device.sends_),
                   stored = static_cast<std::uint64_t>(parcels_received_count());
        const std::uint64_t size = word_at(std::max<std::uint64_t>(opened + stored, 1));
        if (const status s = found_.words_.allocate(x_.where, size); !s.ok()) throw error(class_of(s), s.message());
        transport::transport &gpus = *x_.where.owner;
        found_.gpus_ = &gpus;
        if (!gpus.adopt(found_.words_.address(), size, found_.own_words_).ok() ||
            !gpus.describe(found_.own_words_, words_).ok())
            return false;
        const std::size_t boxes = x_.grid->mine.size();
        for (std::size_t i = 0; i < x_.data.size(); ++i) {
            const std::int64_t size_of_field = x_.views[i / boxes].bytes(i % boxes);
            for (void *const memory : x_.data[i]) {
                wire_region described{};
                if (size_of_field != 0) {
                    region &own = found_.adopted_.emplace_back();
                    if (!gpus.adopt(memory, static_cast<std::uint64_t>(size_of_field), own).ok() ||
                        !gpus.describe(own, described).ok()) {
                        allocations_.clear();
                        return true;
                    }
                }
                allocations_.push_back(described);
            }
        }
        return true;
    }

    void exchange_offers(bool may) {
        std::vector<MPI_Request> requests;
        for (peer &p : peers_) {
            p.told = offer_to(p.rank, may);
            demand(MPI_Isend(p.told.data(), static_cast<int>(p.told.size()), MPI_BYTE, p.rank, offer_tag, x_.grid->comm,
                             &requests.emplace_back()),
                   "MPI_Isend");
        }
        for (peer &p : peers_) {
            MPI_Status s;
            int size = 0;
            demand(MPI_Probe(p.rank, offer_tag, x_.grid->comm, &s), "MPI_Probe");
            demand(MPI_Get_count(&s, MPI_BYTE, &size), "MPI_Get_count");
            p.heard.resize(static_cast<std::size_t>(size));
            demand(MPI_Recv(p.heard.data(), size, MPI_BYTE, p.rank, offer_tag, x_.grid->comm, MPI_STATUS_IGNORE),
                   "MPI_Recv");
        }
        demand(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }

    bytes offer_to(int rank, bool may) const {
        offer o{};
        std::vector<std::uint64_t> stored_at;
        std::vector<ghost_place> places;
        if (may) {
            o.words = words_;
            o.has_words = 1;
            o.opened_at = word_at(static_cast<std::uint64_t>(std::max(message_to(x_.report.sends, rank), 0)));
            o.allocations = static_cast<std::int32_t>(allocations_.size() / 2);
            if (const auto from = received_.find(rank); o.allocations != 0 && from != received_.end()) {
                stored_at.resize(from->second.all.size());
                for (std::int32_t i = 0; i < parcels_received_count(); ++i)
                    if (const parcel_origin &known = x_.parcels[static_cast<std::size_t>(own_end_ + i)];
                        known.peer == rank)
                        stored_at[static_cast<std::size_t>(known.parcel)] =
                            word_at(static_cast<std::uint64_t>(x_.device.sends_ + i));
                for (const parcel &p : from->second.all)
                    for (const part &cells : p.parts) places.push_back(place_of(cells));
            }
            o.parcels = static_cast<std::int32_t>(stored_at.size());
            o.parts = static_cast<std::int32_t>(places.size());
        }
        bytes all;
        append(all, &o, 1);
        if (o.has_words != 0) append(all, allocations_.data(), allocations_.size());
        append(all, stored_at.data(), stored_at.size());
        append(all, places.data(), places.size());
        return all;
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

    // Attaches what a neighbour offers, as far as that goes.
    void accept(peer &p) {
        reader from(p.heard);
        const std::vector<offer> head = from.take<offer>(1);
        if (head.empty() || head[0].has_words == 0) return;
        p.offered = head[0];
        const std::vector<wire_region> allocations = from.take<wire_region>(2 * std::int64_t{p.offered.allocations});
        p.stored_at = from.take<std::uint64_t>(p.offered.parcels);
        p.ghosts = from.take<ghost_place>(p.offered.parts);
        if (!from.whole()) return;
        p.words = attach(p.offered.words);
        p.attached_words = p.words != nullptr;
        if (p.words == nullptr || p.stored_at.empty()) return;
        for (std::size_t i = 0; i < allocations.size(); ++i) {
            if (i % 2 == 0) p.allocations.push_back({nullptr, nullptr});
            if (allocations[i].bytes == 0) continue;  // of an empty box
            std::byte *const there = attach(allocations[i]);
            if (there == nullptr) {
                p.allocations.clear();
                return;
            }
            p.allocations.back()[i % 2] = there;
        }
    }
    std::byte *attach(const wire_region &offered) {
        region &there = found_.attached_.emplace_back();
        if (offered.transport != found_.gpus_->id() || !found_.gpus_->attach(offered, x_.where.device, there).ok()) {
            found_.attached_.pop_back();
            return nullptr;
        }
        return static_cast<std::byte *>(there.address);
    }

    // A neighbour that cannot say that its ghost cells are open is not stored to.
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
        std::vector<std::uint64_t *> to_open;
        for (const peer &p : peers_) {
            if (p.words != nullptr || p.has_attached_ours != 0) found_.mapped_.push_back(p.rank);
            if (p.words != nullptr && message_to(x_.report.receives, p.rank) >= 0)
                to_open.push_back(reinterpret_cast<std::uint64_t *>(p.words + p.offered.opened_at));
            if (p.has_attached_ours == 0 || p.allocations.empty()) continue;
            const std::size_t before = copies.size();
            add_sends(p, sends, copies);
            if (copies.size() != before) found_.stored_to_.push_back(p.rank);
        }
        memory_layout layout;
        const std::uint64_t sends_at = layout.place<direct_send>(sends.size()),
                            copies_at = layout.place<device_copy>(copies.size()),
                            to_open_at = layout.place<std::uint64_t *>(to_open.size());
        const auto write = [&](std::uint64_t at, const auto &values) {
            if (values.empty()) return;
            if (const status s = found_.tables_.write(at, values.data(), values.size() * sizeof values[0]); !s.ok())
                throw error(class_of(s), s.message());
        };
        if (const status s = found_.tables_.allocate(x_.where, layout.bytes()); !s.ok())
            throw error(class_of(s), s.message());
        write(sends_at, sends);
        write(copies_at, copies);
        write(to_open_at, to_open);
        std::byte *const tables = found_.tables_.address();
        const auto *const words = reinterpret_cast<const std::uint64_t *>(found_.words_.address());
        found_.stores_ = {.sends = copies.empty() ? nullptr : reinterpret_cast<const direct_send *>(tables + sends_at),
                          .copies = reinterpret_cast<const device_copy *>(tables + copies_at),
                          .opened = words,
                          .to_open = reinterpret_cast<std::uint64_t *const *>(tables + to_open_at),
                          .to_open_count = static_cast<std::int32_t>(to_open.size()),
                          .stored = to_open.empty() ? nullptr : words + x_.device.sends_};
    }

    void add_sends(const peer &p, std::vector<direct_send> &sends, std::vector<device_copy> &copies) const {
        const auto to = sent_.find(p.rank);
        if (to == sent_.end() || to->second.all.size() != p.stored_at.size()) return;
        // Where the places of each parcel's parts begin.
        std::vector<std::size_t> first_place;
        std::size_t places = 0;
        for (const parcel &one : to->second.all) {
            first_place.push_back(places);
            places += one.parts.size();
        }
        if (places != p.ghosts.size()) return;
        for (std::size_t i = 0; i < sends.size(); ++i) {
            const parcel_origin &known = x_.parcels[i];
            if (known.peer != p.rank) continue;
            const auto number = static_cast<std::size_t>(known.parcel);
            std::vector<device_copy> its = copies_of(to->second.all[number], p, first_place[number]);
            const auto small = std::stable_partition(its.begin(), its.end(), [&](const device_copy &c) {
                return its.size() == 1 || is_for_group(c, its.size());
            });
            const auto begin = static_cast<std::int32_t>(copies.size());
            sends[i] = {.copies = {.begin = begin,
                                   .small = begin + static_cast<std::int32_t>(small - its.begin()),
                                   .end = begin + static_cast<std::int32_t>(its.size())},
                        .message = known.message,
                        .stored = reinterpret_cast<std::uint64_t *>(p.words + p.stored_at[number])};
            copies.insert(copies.end(), its.begin(), its.end());
        }
    }

    // None, if the runs are too short.
    std::vector<device_copy> copies_of(const parcel &one, const peer &p, std::size_t place) const {
        std::vector<device_copy> all;
        std::int64_t total = 0, count = 0;
        for (const part &cells : one.parts) {
            const ghost_place &at = p.ghosts[place++];
            if (at.allocation < 0 || static_cast<std::size_t>(at.allocation) >= p.allocations.size()) return {};
            const std::array<std::byte *, 2> &there = p.allocations[static_cast<std::size_t>(at.allocation)];
            const int owner = x_.grid->position_of(cells.owner);
            const runs own = rows(cells.field, owner, cells.source);
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
    std::vector<wire_region> allocations_;  // two for each; none: others cannot map them
};

direct_neighbours::~direct_neighbours() {
    if (gpus_ == nullptr) return;
    for (region &there : attached_) gpus_->detach(there);
    for (region &own : adopted_) gpus_->release(own);
    if (own_words_) gpus_->release(own_words_);
}

void direct_neighbours::find(const kernel_exchange_state &x, std::int32_t own_end, bool wanted) {
    wanted = wanted && x.where.owner != nullptr && x.device.tiles_count_ != 0;
    int mine = wanted, some = 0;
    demand(MPI_Allreduce(&mine, &some, 1, MPI_INT, MPI_MAX, x.grid->comm), "MPI_Allreduce");
    if (some == 0) return;
    direct_search(*this, x, own_end).run(wanted);
}

void direct_neighbours::wait_for_neighbours(MPI_Comm comm) const {
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

}  // namespace mpix::halo
