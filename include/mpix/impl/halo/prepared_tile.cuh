// SPDX-License-Identifier: BSD-3-Clause
//
// Prepared tiles of <mpix/halo.cuh>: what calls on a tile would have to look up in each step, one trip to memory after the
// other. And with it, small partitions go from the field's cells into packets, and from packets into ghost cells, without a
// stop in the messages' buffers.
#ifndef MPIX_IMPL_HALO_PREPARED_TILE_CUH
#define MPIX_IMPL_HALO_PREPARED_TILE_CUH

#include <mpix/device.cuh>
#include <mpix/halo/device_exchange.hpp>

#include <mpix/impl/halo/copy.cuh>
#include <mpix/impl/halo/exchange.cuh>
#include <mpix/impl/inline/packet.cuh>
#include <mpix/impl/inline/take.cuh>
#include <mpix/impl/send/store.cuh>

namespace mpix::halo {
namespace detail {

// A tile with more, or an exchange with more sets, is not kept: calls look it up.
inline constexpr int most_kept_parcels = 2, most_kept_copies = 2, most_kept_sets = 4;

// A parcel that is one partition, and consists of whole words of eight bytes.
template <class Handle>
struct kept_parcel {
    std::int32_t number;  // among the exchange's
    std::int32_t message, partition;
    std::int32_t copies_count;
    std::uint32_t begin[most_kept_copies], end[most_kept_copies];  // of the copies, in bytes of the partition
    device_copy copies[most_kept_copies];
    stored_handle<Handle> handles[most_kept_sets];  // for the next exchange of each set, if they have its number
};

}  // namespace detail

// In shared memory, so without constructors.
struct prepared_tile {
    /** Of the tile, as in device_exchange. */
    MPIX_FN int number() const { return number_; }
    MPIX_FN box cells() const { return {lo_, hi_}; }

    // The members that end in _ are the library's.
    index3 lo_, hi_;
    std::int32_t number_;
    std::int32_t sends_, waits_;  // so many parcels are kept; -1: calls look them up
    std::uint64_t begun_;         // the number of the latest exchange that the group has seen begun
    detail::kept_parcel<prepared_send> sent_[detail::most_kept_parcels];
    detail::kept_parcel<prepared_receive> awaited_[detail::most_kept_parcels];
};

namespace detail {

#if MPIX_ON_GPU && !defined(MPIX_CHECK)
// Adds a copy to a kept parcel, whose partition is in `buffer` in the first set. False: it can't be kept.
template <class Handle>
MPIX_FN bool keep_copy(kept_parcel<Handle> &kept, const device_exchange &x, const device_copy &c, const char *buffer,
                       std::uint64_t partition_bytes) {
    const std::int64_t partition = reinterpret_cast<const std::byte *>(buffer) - x.messages_ +
                                   kept.partition * static_cast<std::int64_t>(partition_bytes),
                       begin = c.in_message - partition,
                       bytes = static_cast<std::int64_t>(c.words) * c.word_bytes * c.count[0] * c.count[1] * c.count[2];
    if (kept.copies_count == most_kept_copies || c.word_bytes < 4 || ((begin | bytes) & 7) != 0 || c.claim >= 0 ||
        begin < 0 || begin + bytes > static_cast<std::int64_t>(partition_bytes) || partition_bytes >> 31 != 0)
        return false;
    const int at = kept.copies_count++;
    kept.begin[at] = static_cast<std::uint32_t>(begin);
    kept.end[at] = static_cast<std::uint32_t>(begin + bytes);
    kept.copies[at] = c;
    return true;
}
template <class Handle>
MPIX_FN void begin_kept(kept_parcel<Handle> &kept, int number, const device_parcel &p) {
    kept.number = number;
    kept.message = p.message;
    kept.partition = p.first;
    kept.copies_count = 0;
    for (auto &handle : kept.handles) handle.number = 0;
}

// By one thread. -1: they can't be kept.
MPIX_FN int keep_sends(prepared_tile &tile, const device_exchange &x, const device_tile &t) {
    const int count = t.sends_end - t.sends_begin;
    if (count > most_kept_parcels || x.sets_ > most_kept_sets) return -1;
    for (int k = 0; k < count; ++k) {
        const device_parcel &p = x.parcels_[t.sends_begin + k];
        if (p.first != p.last) return -1;
        const mpix_prequest *const r = mpix::detail::request_of(requests_of(x, 0)[x.receives_ + p.message]);
        begin_kept(tile.sent_[k], t.sends_begin + k, p);
        for (int c = p.copies.begin; c < p.copies.end; ++c)
            if (!keep_copy(tile.sent_[k], x, x.copies_[c], r->buffer, r->partition_bytes)) return -1;
    }
    return count;
}
MPIX_FN int keep_waits(prepared_tile &tile, const device_exchange &x, const device_tile &t) {
    const int count = t.waits_end - t.waits_begin;
    if (count > most_kept_parcels || x.sets_ > most_kept_sets) return -1;
    for (int k = 0; k < count; ++k) {
        const device_parcel &p = x.parcels_[t.waits_begin + k];
        const MPIX_Prequest handle = requests_of(x, 0)[p.message];
        // With one reader, this tile reads all of the partition that anybody reads.
        if (p.first != p.last || mpix::detail::waiters_of(handle) != mpix::detail::waiters::sole) return -1;
        begin_kept(tile.awaited_[k], t.waits_begin + k, p);
    }
    for (int c = t.ghosts.begin; c < t.ghosts.end; ++c) {
        const device_copy &copy = x.copies_[c];
        if (copy.message < 0) return -1;  // own cells
        kept_parcel<prepared_receive> &kept = tile.awaited_[copy.parcel - t.waits_begin];
        const mpix_prequest *const r = mpix::detail::request_of(requests_of(x, 0)[kept.message]);
        if (!keep_copy(kept, x, copy, r->buffer, r->partition_bytes)) return -1;
    }
    return count;
}

// The handle of an exchange, after it was used, becomes that of its set's next one. `looked_up`: as next() has noted it, for a
// group that had none. By one thread; the other members read it after a barrier of a later call.
template <class Handle>
MPIX_FN void advance(stored_handle<Handle> &known, const device_exchange &x, std::uint64_t number,
                     const stored_handle<Handle> *looked_up) {
    if (known.number != number) known = *looked_up;
    if (known.number == number && can_follow(known.handle)) {
        follow_epoch(known.handle);
        known.number += static_cast<std::uint64_t>(x.sets_);
    } else {
        known.number = 0;
    }
}

// Calls act(copy, byte of the copy) for the copy that has these eight bytes of the partition, if one has.
template <class Handle, class Act>
MPIX_FN void on_word(const kept_parcel<Handle> &parcel, unsigned word, const Act &act) {
    const std::uint32_t at = word * 8;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (int k = 0; k < parcel.copies_count; ++k)
        if (at >= parcel.begin[k] && at < parcel.end[k]) return act(parcel.copies[k], at - parcel.begin[k]);
}

struct cells_source {
    static constexpr bool is_buffer = false;
    const device_exchange &x;
    prepared_tile &tile;
    const kept_parcel<prepared_send> &parcel;
    std::int64_t step;

    MPIX_FN std::uint64_t load(unsigned word) const {
        std::uint64_t value = 0;
        on_word(parcel, word, [&](const device_copy &c, std::uint32_t at) {
            value = load_eight(c, c.cells[x.allocation_(step)], at);
        });
        return value;
    }
    // Both looks are under way together with the cells and with clear-to-send, behind which await_clear has a fence. That fence
    // is for this look, too: of what next() has done before it said that the exchange has begun. pairs: X1
    MPIX_FN bool may_store(unsigned rank) const {
        if (rank != 0) return true;
        const std::uint64_t number = number_of(x, step);
        const bool failed = has_failed(x);
        if (tile.begun_ < number) {
            if (mpix::detail::load_relaxed(begun_of(x, set_of(x, step))) < number) return false;
            tile.begun_ = number;
        }
        return !failed;
    }
};
struct ghosts_sink {
    static constexpr bool is_buffer = false;
    const device_exchange &x;
    const kept_parcel<prepared_receive> &parcel;
    int allocation;

    MPIX_FN bool wanted(unsigned rank) const { return rank != 0 || !has_failed(x); }
    MPIX_FN void store(unsigned word, std::uint64_t value) const {
        on_word(parcel, word,
                [&](const device_copy &c, std::uint32_t at) { store_eight(c, c.cells[allocation], at, value); });
    }
};

// False: nothing is done, and the parcel goes another way.
template <class Group>
MPIX_FN bool send_from_cells(const Group &group, const device_exchange &x, prepared_tile &tile,
                             const kept_parcel<prepared_send> &parcel, std::int64_t step, int &code) {
    const stored_handle<prepared_send> &known = parcel.handles[set_of(x, step)];
    if (known.number != number_of(x, step)) return false;
    const MPIX_Prequest handle = known.handle.request;
    // See may_store.
    const auto rank = static_cast<unsigned>(group.thread_rank()), threads = static_cast<unsigned>(group.num_threads());
    if (known.handle.state.clear || !mpix::detail::is_inline_capable(handle, threads)) return false;
    const mpix::detail::send_state state = known.handle.state;
    mpix_prequest *const r = mpix::detail::request_of(handle);
    const int partition = parcel.partition;
    const mpix::detail::stored s =
        mpix::detail::store_small<true>(group, r, partition, state, cells_source{x, tile, parcel, step});
    if (s.epoch == 0) return false;
    code = mpix::detail::conclude_stored<true, MPIX_CALL_PREADY>(group, partition, r, state, s, rank, threads);
    return true;
}

// The ways of a parcel that can't go so, apart from the code of those that can. Of a wait, the parcel is in its message's buffer
// then.
template <class Group>
MPIX_APART_FN int send_looked_up(const Group &group, const device_exchange &x, int parcel, std::int64_t step) {
    if (const int code = await_begin(group, x, step, default_timeout, look_at_begin(group, x, step));
        code != MPI_SUCCESS)
        return code;
    return send_parcels(group, x, parcel, parcel + 1, 1, step);
}
template <class Group>
MPIX_APART_FN int wait_looked_up(const Group &group, const device_exchange &x, int parcel, std::int64_t step) {
    if (const int code = await_begin(group, x, step, default_timeout, look_at_begin(group, x, step));
        code != MPI_SUCCESS)
        return code;
    return await_parcels(group, x, parcel, parcel + 1, step, default_timeout,
                         [](const device_parcel &) { return true; });
}

template <class Group>
MPIX_FN int send_kept(const Group &group, const device_exchange &x, prepared_tile &tile, std::int64_t step) {
    const int set = set_of(x, step);
    const std::uint64_t number = number_of(x, step);
    for (int k = 0; k < tile.sends_; ++k) {
        kept_parcel<prepared_send> &parcel = tile.sent_[k];
        int code = MPI_SUCCESS;
        if (!send_from_cells(group, x, tile, parcel, step, code)) {
            code = send_looked_up(group, x, parcel.number, step);
            if (code != MPI_SUCCESS) return code;
            if (group.thread_rank() == 0) tile.begun_ = number;
            group.sync();  // all members look at it in wait_kept
        }
        if (code != MPI_SUCCESS) return record_failure(group, x, code, number_of_parcel(parcel.number), step);
        if (group.thread_rank() == 0) advance(parcel.handles[set], x, number, send_handles_of(x, set) + parcel.message);
    }
    return MPI_SUCCESS;
}

template <class Group>
MPIX_FN mpix::detail::inline_result take_into_ghosts(const Group &group, const device_exchange &x,
                                                     const kept_parcel<prepared_receive> &parcel, std::int64_t step) {
    const stored_handle<prepared_receive> &known = parcel.handles[set_of(x, step)];
    const MPIX_Prequest handle = known.handle.request;
    if (known.number != number_of(x, step) || known.handle.state.inline_buffer == nullptr ||
        !mpix::detail::waits_inline_fast(handle, static_cast<unsigned>(group.num_threads())))
        return mpix::detail::inline_result::missing;
    const mpix::detail::receive_state state = known.handle.state;
    return mpix::detail::take_inline_fast<true>(group, mpix::detail::request_of(handle), parcel.partition, true, state,
                                                ghosts_sink{x, parcel, x.allocation_(step)});
}

template <class Group>
MPIX_FN int wait_kept(const Group &group, const device_exchange &x, prepared_tile &tile, std::int64_t step) {
    const int set = set_of(x, step);
    const std::uint64_t number = number_of(x, step);
    if (tile.waits_ == 0) return MPI_SUCCESS;
    // As a rule the group has sent the tile in this exchange, and so has seen it begun.
    if (tile.begun_ < number) {
        const int code = await_begin(group, x, step, default_timeout, look_at_begin(group, x, step));
        if (code != MPI_SUCCESS) return code;
        if (group.thread_rank() == 0) tile.begun_ = number;
    }
    for (int k = 0; k < tile.waits_; ++k) {
        kept_parcel<prepared_receive> &parcel = tile.awaited_[k];
        const mpix::detail::inline_result came = take_into_ghosts(group, x, parcel, step);
        if (came != mpix::detail::inline_result::taken) {
            // Then the message's buffer has it, or will have.
            if (came == mpix::detail::inline_result::missing) {
                const int code = wait_looked_up(group, x, parcel.number, step);
                if (code != MPI_SUCCESS) return code;
            }
            for (int c = 0; c < parcel.copies_count; ++c)
                unpack(group, parcel.copies[c], messages_of(x, set), x.allocation_(step));
            group.sync();  // all members may read what any of them has filled
        }
        if (group.thread_rank() == 0)
            advance(parcel.handles[set], x, number, receive_handles_of(x, set) + parcel.message);
    }
    return MPI_SUCCESS;
}
#endif

// By one thread.
MPIX_APART_FN void keep(const device_exchange &x, int number, prepared_tile &tile) {
    tile.number_ = number;
    tile.sends_ = tile.waits_ = -1;
    tile.begun_ = 0;
    tile.lo_ = tile.hi_ = {};
    if (x.version_ != MPIX_ABI_VERSION) return;
    const device_tile &t = x.tiles_[number];
    tile.lo_ = t.cells.lo;
    tile.hi_ = t.cells.hi;
#if MPIX_ON_GPU && !defined(MPIX_CHECK)
    tile.sends_ = keep_sends(tile, x, t);
    tile.waits_ = keep_waits(tile, x, t);
#endif
}

// Apart, so that the code of tiles that are kept lies together in the instruction cache.
template <class Group>
MPIX_APART_FN int send_unkept(const Group &group, const device_exchange &x, int tile, std::int64_t step) {
    return send(group, x, tile, step);
}
template <class Group>
MPIX_APART_FN int wait_unkept(const Group &group, const device_exchange &x, int tile, std::int64_t step,
                              std::uint64_t timeout_ns) {
    return wait(group, x, tile, step, timeout_ns);
}

}  // namespace detail

template <class Group>
MPIX_FN void prepare(const Group &group, const device_exchange &x, int tile, prepared_tile &prepared) {
    group.sync();  // members may have used it for another tile
    if (group.thread_rank() == 0) detail::keep(x, tile, prepared);
    group.sync();
}

template <class Group>
MPIX_FN int send(const Group &group, const device_exchange &x, prepared_tile &tile, std::int64_t step) {
#if MPIX_ON_GPU && !defined(MPIX_CHECK)
    if (tile.sends_ >= 0) return step < x.steps_ ? detail::send_kept(group, x, tile, step) : MPI_SUCCESS;
#endif
    return detail::send_unkept(group, x, tile.number_, step);
}

template <class Group>
MPIX_FN int wait(const Group &group, const device_exchange &x, prepared_tile &tile, std::int64_t step,
                 std::uint64_t timeout_ns) {
#if MPIX_ON_GPU && !defined(MPIX_CHECK)
    // A wait with a limit of its own may be repeated; then all parcels have to be in their messages' buffers.
    if (tile.waits_ >= 0 && timeout_ns == default_timeout)
        return step < x.steps_ ? detail::wait_kept(group, x, tile, step) : MPI_SUCCESS;
#endif
    return detail::wait_unkept(group, x, tile.number_, step, timeout_ns);
}

}  // namespace mpix::halo

#endif  // MPIX_IMPL_HALO_PREPARED_TILE_CUH
