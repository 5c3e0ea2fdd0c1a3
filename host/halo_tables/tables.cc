// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_tables/tables.h"

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "device/halo/stream_args.h"
#include "host/format.h"
#include "host/halo_tables/copies.h"
#include "host/halo_tables/split_copies.h"
#include "host/halo_tables/device_memory.h"
#include "host/halo_tables/tiles.h"

namespace mpix::halo {
namespace {

using detail::device_copies;
using detail::device_copy;
using detail::device_ghosts;
using detail::device_parcel;
using detail::device_reach;
using detail::device_tile;

// Makes the tables of one rank.
class planner {
public:
    explicit planner(const kernel_fields &x) : x_(x) {
        std::int64_t tiles = 0;
        for (const int number : x.grid.mine) {
            tilings_.emplace_back(x.grid.domain.boxes[number], x.tile);
            first_tile_.push_back(static_cast<int>(tiles));
            tiles += tilings_.back().count();
            // Some for parcels and copies, of which a tile has several.
            if (tiles > std::numeric_limits<int>::max() / 64)
                throw error(MPI_ERR_COUNT, format("options.tile: {} tiles; use larger ones", tiles));
        }
        of_tile_.resize(static_cast<std::size_t>(tiles));
    }

    kernel_plan make() {
        const grid_state &g = x_.grid;
        const bool by_library = x_.waiters == ghost_waiters::library;
        for (const auto &[rank, from] : parcels_received(g.domain, g.mine, x_.tile, x_.fields)) {
            if (rank != g.rank)
                add_receive(rank, from);
            else if (!by_library)
                add_own(from);
        }
        // Whole, for split_own_cells.
        if (by_library)
            for (const auto &[rank, from] : parcels_received(g.domain, g.mine, {0, 0, 0}, x_.fields))
                if (rank == g.rank) add_own(from);
        for (const auto &[rank, to] : parcels_sent(g.domain, g.mine, x_.tile, x_.fields))
            if (rank != g.rank) add_send(rank, to);
        write_tables();
        made_.set_bytes = layout_.bytes();
        return std::move(made_);
    }

private:
    // A parcel that one of this rank's tiles sends, or waits for some parts of.
    struct of_parcel {
        device_parcel parcel;
        int number;      // of the parcel, among those of the peer
        int first_part;  // of these copies
        std::vector<device_copy> copies;
        std::vector<device_ghosts> ghosts = {};  // of these, if boxes wait
    };
    struct tile_parcels {
        std::vector<of_parcel> sends, waits;
    };

    void place(peer_message &m) { m.at = layout_.place_bytes(static_cast<std::uint64_t>(m.bytes())); }

    void add_send(int peer, const parcels &to) {
        const int message = static_cast<int>(made_.sends.size());
        made_.sends.push_back({.peer = peer, .cut = to.cut});
        place(made_.sends.back());
        for (std::size_t i = 0; i < to.all.size(); ++i) {
            const parcel &p = to.all[i];
            of_parcel one{
                {.message = message, .first = p.first, .last = p.last, .copies = {}}, static_cast<int>(i), 0, {}};
            const int owner = position_of(p.owner);
            for (const part &cells : p.parts) {
                made_.sends.back().by_direction[static_cast<std::size_t>(opposite(cells.direction))] += bytes_of(cells);
                one.copies.push_back(copy_between_message(
                    in_memory(view_of(cells.field).of(static_cast<std::size_t>(owner), cells.source), cells.field,
                              owner),
                    in_message(made_.sends.back(), cells), -1));
            }
            of_tile_[static_cast<std::size_t>(first_tile_[static_cast<std::size_t>(owner)] + p.tile)].sends.push_back(
                std::move(one));
        }
    }

    void add_receive(int peer, const parcels &from) {
        const int message = static_cast<int>(made_.receives.size());
        made_.receives.push_back({.peer = peer, .cut = from.cut});
        place(made_.receives.back());
        bool one_reader = true;
        for (std::size_t i = 0; i < from.all.size(); ++i) {
            const parcel &p = from.all[i];
            const device_parcel as_device{.message = message, .first = p.first, .last = p.last, .copies = {}};
            one_reader = add_waits(p, as_device, static_cast<int>(i)) <= 1 && one_reader;
            for (const part &cells : p.parts)
                made_.receives.back().by_direction[static_cast<std::size_t>(cells.direction)] += bytes_of(cells);
        }
        made_.receives.back().one_reader = one_reader;
    }

    void add_own(const parcels &own) {
        for (std::size_t i = 0; i < own.all.size(); ++i) {
            add_waits(own.all[i], {.message = -1, .first = 0, .last = -1, .copies = {}}, static_cast<int>(i));
            for (const part &cells : own.all[i].parts) made_.own_bytes += bytes_of(cells);
        }
    }

    // How many groups may wait for a partition of the parcel.
    int add_waits(const parcel &p, const device_parcel &as_device, int number) {
        std::vector<int> waiting;
        of_parcel whole{as_device, number, 0, {}};
        const bool by_boxes = x_.waiters == ghost_waiters::tiles_and_boxes;
        for (std::size_t n = 0; n < p.parts.size(); ++n) {
            const part &cells = p.parts[n];
            const auto receiver = static_cast<std::size_t>(position_of(cells.receiver));
            std::vector<int> readers;
            if (x_.waiters != ghost_waiters::library)
                readers = readers_of(x_.grid.domain, tilings_[receiver], cells.ghosts,
                                     x_.fields[static_cast<std::size_t>(cells.field)]);
            const int claim = readers.size() > 1 || by_boxes ? made_.for_device.claims++ : -1;
            const device_copy copy = as_device.message < 0
                                         ? own_copy_of(cells, claim)
                                         : copy_in(cells, in_message(made_.receives.back(), cells), claim);
            if (x_.waiters != ghost_waiters::tiles) whole.copies.push_back(copy);
            if (by_boxes) whole.ghosts.push_back(ghosts_of_copy(cells));
            for (const int reader : readers) {
                const int t = first_tile_[receiver] + reader;
                std::vector<of_parcel> &waits = of_tile_[static_cast<std::size_t>(t)].waits;
                if (std::find(waiting.begin(), waiting.end(), t) == waiting.end()) {
                    waiting.push_back(t);
                    waits.push_back({as_device, number, static_cast<int>(n), {}});
                }
                waits.back().copies.push_back(copy);
            }
        }
        if (x_.waiters == ghost_waiters::tiles) return static_cast<int>(waiting.size());
        received_.push_back(std::move(whole));
        return by_boxes ? std::numeric_limits<int>::max() : 1;
    }

    device_ghosts ghosts_of_copy(const part &cells) const {
        const exchanged_field &field = x_.fields[static_cast<std::size_t>(cells.field)];
        return {.points = cells.ghosts,
                .near = intersection(x_.grid.domain.boxes[cells.receiver], near(cells.ghosts, field)),
                .field = cells.field};
    }

    static device_reach reach_of(const exchanged_field &field) {
        device_reach reach{};
        for (int number = 0; number < directions; ++number)
            reach.depth[number] = number == no_direction ? 0 : field.radius.cells[number];
        return reach;
    }

    std::int64_t bytes_of(const part &cells) const {
        return cells.source.cells() * x_.fields[static_cast<std::size_t>(cells.field)].cell_bytes;
    }
    const field_view &view_of(int field) const { return x_.views[static_cast<std::size_t>(field)]; }
    int position_of(int number) const { return x_.grid.position_of(number); }
    int allocation_number(int field, int box) const { return field * static_cast<int>(x_.grid.mine.size()) + box; }
    static std::int64_t in_message(const peer_message &m, const part &cells) {
        return static_cast<std::int64_t>(m.at) + cells.packed;
    }

    // Of a box of this rank, by its position.
    cells_in_memory in_memory(const runs &r, int field, int box) const {
        return halo::in_memory(r, x_.data[static_cast<std::size_t>(allocation_number(field, box))]);
    }
    device_copy copy_in(const part &cells, std::int64_t at, int claim) const {
        const int receiver = position_of(cells.receiver);
        return copy_between_message(
            in_memory(view_of(cells.field).of(static_cast<std::size_t>(receiver), cells.ghosts), cells.field, receiver),
            at, claim);
    }
    device_copy own_copy_of(const part &cells, int claim) const {
        const field_view &field = view_of(cells.field);
        const int owner = position_of(cells.owner), receiver = position_of(cells.receiver);
        return copy_between_fields(
            in_memory(field.rows_of(static_cast<std::size_t>(owner), cells.source), cells.field, owner),
            in_memory(field.rows_of(static_cast<std::size_t>(receiver), cells.ghosts), cells.field, receiver), claim);
    }

    void write_tables() {
        device_tables &t = made_.for_device;
        for (std::size_t box = 0; box < tilings_.size(); ++box)
            for (int i = 0; i < tilings_[box].count(); ++i) {
                const int number = first_tile_[box] + i;
                tile_parcels &p = of_tile_[static_cast<std::size_t>(number)];
                device_tile tile{.cells = tilings_[box].at(i),
                                 .box_position = static_cast<std::int32_t>(box),
                                 .sends_begin = parcels_written(),
                                 .sends_end = 0,
                                 .waits_begin = 0,
                                 .waits_end = 0,
                                 .ghosts = {},
                                 .has_claims = 0};
                for (of_parcel &sent : p.sends) write_parcel(sent, number, true);
                tile.sends_end = tile.waits_begin = parcels_written();
                write_waits(p.waits, tile, number);
                t.tiles.push_back(tile);
            }
        if (x_.waiters == ghost_waiters::library) split_own_cells();
        t.received = parcels_written();
        t.received_copies = copies_written();
        for (of_parcel &whole : received_) write_parcel(whole, -1, false);
        t.received_end = parcels_written();
        t.received_copies_end = copies_written();
        for (const exchanged_field &f : x_.fields) t.reach.push_back(reach_of(f));
        for (std::size_t i = 0; i < of_tile_.size(); ++i) t.order.push_back(static_cast<std::int32_t>(i));
        t.boundary = static_cast<int>(std::stable_partition(t.order.begin(), t.order.end(),
                                                            [&](std::int32_t i) {
                                                                const tile_parcels &p =
                                                                    of_tile_[static_cast<std::size_t>(i)];
                                                                return !p.sends.empty() || !p.waits.empty();
                                                            }) -
                                      t.order.begin());
    }
    // The parcels of own cells, split anew, come before those of messages: start() copies the former, finish() waits
    // for the latter (stream_exchange_args::own_end).
    void split_own_cells() {
        // One parcel for each block, or several if one would have more than most_words. A parcel has at least a word
        // for each thread.
        constexpr std::uint64_t least_words = 256, most_words = 4096;
        std::vector<device_copy> own;
        std::vector<of_parcel> parcels;
        for (const of_parcel &whole : received_)
            if (whole.parcel.message < 0) own.insert(own.end(), whole.copies.begin(), whole.copies.end());
        std::uint64_t words = 0;
        for (const device_copy &c : own) words += words_of(c);
        const auto divide_up = [](std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; };
        const std::uint64_t passes = std::max(divide_up(words, most_parcel_blocks * most_words), std::uint64_t{1});
        const auto each = std::max(divide_up(words, most_parcel_blocks * passes), least_words);
        for (std::vector<device_copy> &some : split_copies(std::move(own), static_cast<std::uint32_t>(each)))
            parcels.push_back({{.message = -1, .first = 0, .last = -1, .copies = {}}, 0, 0, std::move(some)});
        for (of_parcel &whole : received_)
            if (whole.parcel.message >= 0) parcels.push_back(std::move(whole));
        received_ = std::move(parcels);
    }
    std::int32_t parcels_written() const { return static_cast<std::int32_t>(made_.for_device.parcels.size()); }
    std::int32_t copies_written() const { return static_cast<std::int32_t>(made_.for_device.copies.size()); }

    // A parcel with its copies.
    void write_parcel(of_parcel &p, int tile, bool is_sent) {
        p.parcel.copies = write_copies({&p, 1}, parcels_written());
        add_parcel(p, tile, is_sent);
    }
    // Those of messages come first. The tile has the copies of all of them.
    void write_waits(std::vector<of_parcel> &waits, device_tile &tile, int number) {
        const auto own =
            std::stable_partition(waits.begin(), waits.end(), [](const of_parcel &p) { return p.parcel.message >= 0; });
        tile.waits_end = tile.waits_begin + static_cast<std::int32_t>(own - waits.begin());
        tile.ghosts = write_copies(waits, tile.waits_begin);
        for (const of_parcel &p : waits) {
            for (const device_copy &c : p.copies) tile.has_claims |= c.claim >= 0;
            add_parcel(p, number, false);
        }
    }
    void add_parcel(const of_parcel &p, int tile, bool is_sent) {
        made_.for_device.parcels.push_back(p.parcel);
        const int message = p.parcel.message;
        const std::vector<peer_message> &messages = is_sent ? made_.sends : made_.receives;
        made_.for_device.known.push_back(
            {.tile = tile,
             .is_sent = is_sent,
             .peer = message < 0 ? x_.grid.rank : messages[static_cast<std::size_t>(message)].peer,
             .message = message,
             .parcel = p.number,
             .part = p.first_part});
    }
    // The copies of parcels, of which the first one has that number.
    device_copies write_copies(std::span<of_parcel> all, std::int32_t number) {
        struct described_copy {
            device_copy copy;
            device_ghosts ghosts;
        };
        std::vector<described_copy> copies;
        bool described = false;
        for (of_parcel &p : all) {
            described = described || !p.ghosts.empty();
            for (std::size_t i = 0; i < p.copies.size(); ++i) {
                p.copies[i].message = p.parcel.message;
                p.copies[i].parcel = number;
                copies.push_back({p.copies[i], p.ghosts.empty() ? device_ghosts{} : p.ghosts[i]});
            }
            ++number;
        }
        const auto small = copies.size() == 1
                               ? copies.end()
                               : std::stable_partition(copies.begin(), copies.end(), [&](const described_copy &c) {
                                     return is_for_group(c.copy, copies.size());
                                 });
        device_tables &t = made_.for_device;
        device_copies written{.begin = copies_written(), .small = 0, .end = 0};
        written.small = written.begin + static_cast<std::int32_t>(small - copies.begin());
        for (const described_copy &c : copies) {
            t.copies.push_back(c.copy);
            if (described) t.ghosts.push_back(c.ghosts);
        }
        written.end = copies_written();
        return written;
    }

    const kernel_fields &x_;
    std::vector<tiling> tilings_;  // of this rank's boxes
    std::vector<int> first_tile_;  // likewise: the number of its first tile
    std::vector<tile_parcels> of_tile_;
    std::vector<of_parcel> received_;  // all of them, unless only tiles wait
    memory_layout layout_;             // of the messages of a set
    kernel_plan made_;
};

}  // namespace

kernel_plan plan_kernel_exchange(const kernel_fields &x) { return planner(x).make(); }

}  // namespace mpix::halo
