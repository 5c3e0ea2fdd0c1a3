// SPDX-License-Identifier: BSD-3-Clause
//
// Prepared tiles of <mpix/halo.cuh>: what calls on a tile would have to look up in each step, one trip to memory after the
// other. Small partitions go from the field's cells into packets, and from packets into ghost cells, without a stop in the
// messages' buffers; and while a group waits at the barrier of a step, it looks at all that its next send needs.
//
// The code of that is short: in each step a thread comes by only once, so every instruction comes from a far cache.
#ifndef MPIX_IMPL_HALO_PREPARED_TILE_CUH
#define MPIX_IMPL_HALO_PREPARED_TILE_CUH

#include <mpix/device.cuh>
#include <mpix/halo/device_exchange.hpp>

#include <mpix/impl/halo/copy.cuh>
#include <mpix/impl/halo/exchange.cuh>
#include <mpix/impl/halo/steps.cuh>
#include <mpix/impl/inline/packet.cuh>
#include <mpix/impl/send/count.cuh>

namespace mpix::halo {
namespace detail {

// A tile with more, or an exchange with more sets, is not kept: calls look it up.
inline constexpr int most_kept_parcels = 2, most_kept_copies = 2, most_kept_sets = 8;
// Of words of four bytes a packet has two places. A partition that is one run has none, and may be longer.
inline constexpr std::uint32_t most_kept_places = 256;

// What is known of a partition in the exchanges of one set, once a group has looked it up there: each begins the next epoch of
// the same requests.
struct kept_send {
    char *packets;        // at the receiver; null: nothing is known
    std::uint64_t epoch;  // in exchange `step`, this and epochs_before(step)
    const std::uint64_t *clear_to_send;
    mpix_prequest *request;
};
struct kept_receive {
    const char *packets;
    std::uint64_t epoch;
    std::uint64_t *flag, *told;
};

// A parcel that is one partition, and consists of whole words of eight bytes.
template <class Kept>
struct kept_parcel {
    std::int32_t number;  // among the exchange's
    std::int32_t message, partition;
    std::int32_t copies_count;
    std::uint32_t packets;
    // Places of each packet: 2 if its bytes are four and four; 0 if the whole partition is one run of cells; otherwise 1.
    std::uint32_t places_each;
    std::uint32_t begin[most_kept_copies], end[most_kept_copies];  // of the copies, in bytes of the partition
    device_copy copies[most_kept_copies];
    // Where the bytes of a packet are: so many bytes behind a copy's first one, a multiple of 4, and the number of the copy. Or
    // nowhere: in no copy. The second halves are behind all first ones.
    std::int32_t places[most_kept_places];
    static constexpr std::int32_t nowhere = -1;
    std::int64_t claimed;  // of a send: the latest exchange for which claim_next has claimed the partition
    Kept sets[most_kept_sets];
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
    std::int32_t own_count_;      // so many copies from own cells to ghost cells come behind the barrier
    detail::device_copy own_[detail::most_kept_copies];
    detail::kept_parcel<detail::kept_send> sent_[detail::most_kept_parcels];
    detail::kept_parcel<detail::kept_receive> awaited_[detail::most_kept_parcels];
};

namespace detail {

#if MPIX_ON_GPU && !defined(MPIX_CHECK)
// Tiles are kept if the number of sets is a power of two, up to 8. Of these, (sets >> 1) - (sets >> 3) is the logarithm.
MPIX_FN int kept_set_of(const device_exchange &x, std::int64_t step) { return static_cast<int>(step) & (x.sets_ - 1); }
// Epochs of a set's requests before exchange `step`, since exchange 0.
MPIX_FN std::uint64_t epochs_before(const device_exchange &x, std::int64_t step) {
    return static_cast<std::uint64_t>(step) >> ((x.sets_ >> 1) - (x.sets_ >> 3));
}

// Adds a copy to a kept parcel, whose partition is in `buffer` in the first set. False: it can't be kept.
template <class Kept>
MPIX_FN bool keep_copy(kept_parcel<Kept> &kept, const device_exchange &x, const device_copy &c, const char *buffer,
                       std::uint64_t partition_bytes) {
    const std::int64_t partition = reinterpret_cast<const std::byte *>(buffer) - x.messages_ +
                                   kept.partition * static_cast<std::int64_t>(partition_bytes),
                       begin = c.in_message - partition,
                       bytes = static_cast<std::int64_t>(c.words) * c.word_bytes * c.count[0] * c.count[1] * c.count[2];
    if (kept.copies_count == most_kept_copies || c.word_bytes < 4 || ((begin | bytes) & 7) != 0 || c.claim >= 0 ||
        begin < 0 || begin + bytes > static_cast<std::int64_t>(partition_bytes))
        return false;
    if (c.word_bytes == 4) kept.places_each = 2;
    if (kept.copies_count == 0 && c.word_bytes != 4 && c.count[0] * c.count[1] * c.count[2] == 1 && begin == 0 &&
        bytes >> 3 == kept.packets)
        kept.places_each = 0;
    if (kept.packets * kept.places_each > most_kept_places) return false;
    const std::int64_t last = place_of(c, static_cast<std::uint32_t>(bytes / c.word_bytes) - 1);
    if (last < 0 || last >> 30 != 0) return false;
    const int at = kept.copies_count++;
    kept.begin[at] = static_cast<std::uint32_t>(begin);
    kept.end[at] = static_cast<std::uint32_t>(begin + bytes);
    kept.copies[at] = c;
    return true;
}
template <class Kept>
MPIX_FN void begin_kept(kept_parcel<Kept> &kept, int number, const device_parcel &p, std::uint64_t partition_bytes) {
    kept.number = number;
    kept.message = p.message;
    kept.partition = p.first;
    kept.copies_count = 0;
    kept.packets = static_cast<std::uint32_t>(mpix::detail::packets_of(partition_bytes));
    kept.places_each = 1;
    kept.claimed = -1;
    for (Kept &set : kept.sets) set.packets = nullptr;
}
// By one thread, for a group of so many. -1: they can't be kept.
MPIX_FN int keep_sends(prepared_tile &tile, const device_exchange &x, const device_tile &t, unsigned threads) {
    const int count = t.sends_end - t.sends_begin;
    for (int k = 0; k < count; ++k) {
        const device_parcel &p = x.parcels_[t.sends_begin + k];
        const MPIX_Prequest handle = requests_of(x, 0)[x.receives_ + p.message];
        const mpix_prequest *const r = mpix::detail::request_of(handle);
        if (k == most_kept_parcels || p.first != p.last || !mpix::detail::is_inline_capable(handle, threads)) return -1;
        begin_kept(tile.sent_[k], t.sends_begin + k, p, r->partition_bytes);
        for (int c = p.copies.begin; c < p.copies.end; ++c)
            if (!keep_copy(tile.sent_[k], x, x.copies_[c], r->buffer, r->partition_bytes)) return -1;
    }
    return count;
}
MPIX_FN int keep_waits(prepared_tile &tile, const device_exchange &x, const device_tile &t, unsigned threads) {
    const int count = t.waits_end - t.waits_begin;
    for (int k = 0; k < count; ++k) {
        const device_parcel &p = x.parcels_[t.waits_begin + k];
        // With one reader, this tile reads all of the partition that anybody reads.
        if (k == most_kept_parcels || p.message < 0 || p.first != p.last) return -1;
        const MPIX_Prequest handle = requests_of(x, 0)[p.message];
        if (mpix::detail::waiters_of(handle) != mpix::detail::waiters::sole ||
            !mpix::detail::waits_inline_fast(handle, threads))
            return -1;
        begin_kept(tile.awaited_[k], t.waits_begin + k, p, mpix::detail::request_of(handle)->partition_bytes);
    }
    for (int c = t.ghosts.begin; c < t.ghosts.end; ++c) {
        const device_copy &copy = x.copies_[c];
        if (copy.message < 0) {
            if (copy.claim >= 0 || tile.own_count_ == most_kept_copies) return -1;
            tile.own_[tile.own_count_++] = copy;
            continue;
        }
        // Other groups may be reading them until they come to the barrier.
        if (copy.cells[0] == copy.cells[1]) return -1;
        kept_parcel<kept_receive> &kept = tile.awaited_[copy.parcel - t.waits_begin];
        const mpix_prequest *const r = mpix::detail::request_of(requests_of(x, 0)[kept.message]);
        if (!keep_copy(kept, x, copy, r->buffer, r->partition_bytes)) return -1;
    }
    return count;
}

// After exchange `step`: what next() has noted of it holds for its set's later exchanges, too. (It has noted nothing of those
// that the host has begun.) By one thread; the other members read it after a barrier.
MPIX_FN void learn(const device_exchange &x, kept_parcel<kept_send> &parcel, std::int64_t step) {
    const int set = set_of(x, step);
    const stored_handle<prepared_send> &noted = send_handles_of(x, set)[parcel.message];
    const mpix::detail::send_state &s = noted.handle.state;
    if (noted.number != number_of(x, step) || !can_follow(noted.handle) || !s.in_words || s.inline_buffer == nullptr ||
        parcel.partition >= s.partitions)
        return;
    parcel.sets[set] = {mpix::detail::inline_buffer_of(s.inline_buffer, static_cast<std::uint64_t>(parcel.partition),
                                                       s.partition_bytes),
                        s.epoch - epochs_before(x, step), s.clear_to_send,
                        mpix::detail::request_of(noted.handle.request)};
}
MPIX_FN void learn(const device_exchange &x, kept_parcel<kept_receive> &parcel, std::int64_t step) {
    const int set = set_of(x, step);
    const stored_handle<prepared_receive> &noted = receive_handles_of(x, set)[parcel.message];
    const mpix::detail::receive_state &s = noted.handle.state;
    const auto partition = static_cast<unsigned>(parcel.partition);
    if (noted.number != number_of(x, step) || !can_follow(noted.handle) || s.inline_buffer == nullptr ||
        partition >= s.senders)
        return;
    parcel.sets[set] = {mpix::detail::inline_buffer_of(s.inline_buffer, partition, s.partition_bytes),
                        s.epoch - epochs_before(x, step), s.flags + partition, s.told + partition};
}

// By all members.
template <class Group, class Kept>
MPIX_FN void keep_places(const Group &group, kept_parcel<Kept> &parcel) {
    static_assert(most_kept_copies <= 4);
    if (parcel.places_each == 0) return;
    const auto threads = static_cast<std::uint32_t>(group.num_threads());
    for (auto i = static_cast<std::uint32_t>(group.thread_rank()); i < parcel.packets; i += threads) {
        std::int32_t first = parcel.nowhere, second = parcel.nowhere;
        for (int k = 0; k < parcel.copies_count; ++k) {
            if (i * 8 < parcel.begin[k] || i * 8 >= parcel.end[k]) continue;
            std::byte *const cells = parcel.copies[k].cells[0];
            const eight_bytes at = find_eight(parcel.copies[k], cells, i * 8 - parcel.begin[k]);
            first = static_cast<std::int32_t>(at.first - cells) | k;
            second = at.second != nullptr ? static_cast<std::int32_t>(at.second - cells) | k : first + 4;
        }
        parcel.places[i] = first;
        if (parcel.places_each == 2) parcel.places[parcel.packets + i] = second;
    }
}
// Where the eight bytes of a packet are in an allocation; nowhere if no copy has them.
template <class Kept>
MPIX_FN eight_bytes payload_of(const kept_parcel<Kept> &parcel, std::uint32_t packet, int allocation) {
    if (parcel.places_each == 0) return {parcel.copies[0].cells[allocation] + std::size_t{packet} * 8, nullptr};
    const std::int32_t first = parcel.places[packet];
    if (first == parcel.nowhere) return {nullptr, nullptr};
    std::byte *const cells = parcel.copies[first & 3].cells[allocation];
    return {cells + (first & ~3),
            parcel.places_each == 2 ? cells + (parcel.places[parcel.packets + packet] & ~3) : nullptr};
}

// Before exchange `step`, whose cells are not computed yet: claims a partition, if it may be stored as soon as they are. Then
// send() looks at nothing. One thread.
MPIX_APART_FN void claim_next(const device_exchange &x, kept_parcel<kept_send> &parcel, std::int64_t step) {
    const int set = kept_set_of(x, step);
    const kept_send &known = parcel.sets[set];
    if (step >= x.steps_ || known.packets == nullptr) return;
    const std::uint64_t epoch = known.epoch + epochs_before(x, step);
    // All under way together.
    const std::uint64_t given = mpix::detail::load_relaxed(known.clear_to_send),
                        begun = mpix::detail::load_relaxed(begun_of(x, set));
    const bool failed = has_failed(x);
    if (failed || begun < number_of(x, step) || given >> 1 < epoch || (given & 1) == 0 || epoch >> 32 != 0) return;
    // What the receiver read before it gave clear-to-send, and what next() did before it began the exchange. pairs: K2, X1
    mpix::detail::fence_acquire(known.clear_to_send);
    std::uint64_t *const claim = mpix::detail::partition_states(known.request) + parcel.partition;
    if (mpix::detail::fetch_max_relaxed_gpu(claim, epoch) < epoch) parcel.claimed = step;
}

// A claimed partition. All members have computed their cells: a barrier comes before. None comes behind, so the count may
// precede other members' stores. No epoch ends by it before a later barrier of all groups, or the kernel's end.
template <class Group>
MPIX_FN void send_claimed(const Group &group, const device_exchange &x, const kept_parcel<kept_send> &parcel,
                          std::int64_t step) {
    const auto rank = static_cast<std::uint32_t>(group.thread_rank()),
               threads = static_cast<std::uint32_t>(group.num_threads());
    const kept_send &known = parcel.sets[kept_set_of(x, step)];
    const std::uint64_t epoch = known.epoch + epochs_before(x, step);
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (std::uint32_t i = rank; i < parcel.packets; i += threads) {
        const eight_bytes from = payload_of(parcel, i, x.allocation_(step));
        mpix::detail::store_packet(known.packets, i, epoch, from.first != nullptr ? load_eight(from) : 0);
    }
    if (rank != threads - 1) return;
    mpix::detail::store_relaxed(&known.request->both_started, epoch);  // see conclude_stored
    if (step + x.sets_ < x.steps_)
        mpix::detail::increment_relaxed_gpu(&known.request->ready_count);  // next() asks for the sum; pairs: D1
    else
        mpix::detail::count_ready<false, true>(known.request, epoch);
}

// This member's packets of a partition, which go into ghost cells. False: the group has to ask the slow way; what was stored is
// right even so, if not all of it.
MPIX_FN bool take_packets(const device_exchange &x, const kept_parcel<kept_receive> &parcel, std::int64_t step,
                          std::uint32_t first, std::uint32_t takers) {
    constexpr unsigned most_looks = 1024;
    const kept_receive &known = parcel.sets[kept_set_of(x, step)];
    const std::uint64_t epoch = known.epoch + epochs_before(x, step);
    if (known.packets == nullptr || epoch >> 32 != 0) return false;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (std::uint32_t i = first; i < parcel.packets; i += takers) {
        std::uint64_t low, high, payload;
        const auto *const packet =
            reinterpret_cast<const std::uint64_t *>(known.packets + std::size_t{i} * mpix::detail::packet_bytes);
        mpix::detail::load_relaxed_pair(packet, &low, &high);
        const eight_bytes to = payload_of(parcel, i, x.allocation_(step));  // while it is under way
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
        for (unsigned looks = 1; !mpix::detail::is_packet_of(low, high, epoch, &payload); ++looks) {
            const std::uint64_t flag = mpix::detail::load_relaxed(known.flag);
            mpix::detail::load_relaxed_pair(packet, &low, &high);
            if (flag >= epoch || looks == most_looks) return false;  // it came another way, or takes too long
        }
        if (to.first != nullptr) store_eight(to, payload);
    }
    return true;
}

// All members have taken their packets. One thread.
MPIX_FN void tell_taken(const device_exchange &x, const kept_parcel<kept_receive> &parcel, std::int64_t step) {
    const kept_receive &known = parcel.sets[kept_set_of(x, step)];
    mpix::detail::tell_taken(known.flag, known.told, known.epoch + epochs_before(x, step), true);
}

// The ways of tiles that can't go so. Apart, so that the code of those that can lies together in the instruction cache.
template <class Group>
MPIX_APART_FN int send_looked_up(const Group &group, const device_exchange &x, prepared_tile &tile, std::int64_t step) {
    for (int k = 0; k < tile.sends_; ++k) {
        kept_parcel<kept_send> &parcel = tile.sent_[k];
        if (parcel.claimed == step) {
            group.sync();  // all members have computed their cells
            send_claimed(group, x, parcel, step);
            continue;
        }
        int code = await_begin(group, x, step, default_timeout, look_at_begin(group, x, step));
        if (code == MPI_SUCCESS) code = send_parcels(group, x, parcel.number, parcel.number + 1, 1, step);
        if (code != MPI_SUCCESS) return code;
        if (group.thread_rank() == 0) learn(x, parcel, step);
    }
    return MPI_SUCCESS;
}
template <class Group>
MPIX_APART_FN int wait_looked_up(const Group &group, const device_exchange &x, prepared_tile &tile, std::int64_t step) {
    if (tile.waits_ == 0) return MPI_SUCCESS;
    if (const int code = await_begin(group, x, step, default_timeout, look_at_begin(group, x, step));
        code != MPI_SUCCESS)
        return code;
    for (int k = 0; k < tile.waits_; ++k) {
        kept_parcel<kept_receive> &parcel = tile.awaited_[k];
        const int code = await_parcels(group, x, parcel.number, parcel.number + 1, step, default_timeout,
                                       [](const device_parcel &) { return true; });
        if (code != MPI_SUCCESS) return code;
        for (int c = 0; c < parcel.copies_count; ++c)
            unpack(group, parcel.copies[c], messages_of(x, set_of(x, step)), x.allocation_(step));
        if (group.thread_rank() == 0) learn(x, parcel, step);
    }
    return MPI_SUCCESS;
}
#endif

// Behind the barrier: the waits that it has not done. `kept_too`: it has not done those of kept tiles either. Then
// `barrier` is what await_groups has returned in the thread that called it, and MPI_SUCCESS in the others.
template <class Group>
MPIX_APART_FN int wait_for_rest(const Group &group, const device_exchange &x, prepared_tile *tiles, int count,
                                std::int64_t step, bool kept_too, int barrier) {
    if (kept_too) {
        if (!mpix::detail::vote_all(group, barrier != MPI_ERR_PENDING)) return MPI_ERR_PENDING;
        if (mpix::detail::broadcast_bool(group, group.thread_rank() == 0 && has_failed(x))) return MPI_ERR_OTHER;
    }
    if (step >= x.steps_) return MPI_SUCCESS;
    for (int n = 0; n < count; ++n) {
        prepared_tile &tile = tiles[n];
        int code = MPI_SUCCESS;
        if (tile.waits_ < 0) code = wait(group, x, tile.number_, step);
#if MPIX_ON_GPU && !defined(MPIX_CHECK)
        else if (kept_too)
            code = wait_looked_up(group, x, tile, step);
        if (code != MPI_SUCCESS) return code;
        if (tile.waits_ >= 0)
            for (int k = 0; k < tile.own_count_; ++k) copy_own(group, tile.own_[k], x.allocation_(step));
#else
        if (code != MPI_SUCCESS) return code;
#endif
    }
    group.sync();  // all members may read what any of them has filled
    return MPI_SUCCESS;
}

// By one thread, for a group of so many.
MPIX_APART_FN void keep(const device_exchange &x, int number, prepared_tile &tile, [[maybe_unused]] unsigned threads) {
    tile.number_ = number;
    tile.sends_ = tile.waits_ = -1;
    tile.own_count_ = 0;
    tile.lo_ = tile.hi_ = {};
    if (x.version_ != MPIX_ABI_VERSION) return;
    const device_tile &t = x.tiles_[number];
    tile.lo_ = t.cells.lo;
    tile.hi_ = t.cells.hi;
#if MPIX_ON_GPU && !defined(MPIX_CHECK)
    if (x.sets_ > most_kept_sets || (x.sets_ & (x.sets_ - 1)) != 0) return;
    tile.sends_ = keep_sends(tile, x, t, threads);
    tile.waits_ = keep_waits(tile, x, t, threads);
#endif
}

template <class Group>
MPIX_APART_FN int send_slowly(const Group &group, const device_exchange &x, prepared_tile &tile, std::int64_t step) {
#if MPIX_ON_GPU && !defined(MPIX_CHECK)
    if (tile.sends_ >= 0) return step < x.steps_ ? send_looked_up(group, x, tile, step) : MPI_SUCCESS;
#endif
    return send(group, x, tile.number_, step);
}

}  // namespace detail

template <class Group>
MPIX_FN void prepare(const Group &group, const device_exchange &x, int tile, prepared_tile &prepared) {
    group.sync();  // members may have used the memory for something else
    if (group.thread_rank() == 0) detail::keep(x, tile, prepared, static_cast<unsigned>(group.num_threads()));
    group.sync();
#if MPIX_ON_GPU && !defined(MPIX_CHECK)
    for (int k = 0; k < prepared.sends_; ++k) detail::keep_places(group, prepared.sent_[k]);
    for (int k = 0; k < prepared.waits_; ++k) detail::keep_places(group, prepared.awaited_[k]);
    group.sync();
#endif
}

template <class Group>
MPIX_FN int send(const Group &group, const device_exchange &x, prepared_tile &tile, std::int64_t step) {
#if MPIX_ON_GPU && !defined(MPIX_CHECK)
    if (tile.sends_ == 0) return MPI_SUCCESS;
    bool claimed = tile.sends_ > 0;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (int k = 0; k < tile.sends_; ++k) claimed = claimed && tile.sent_[k].claimed == step;
    if (claimed) {
        group.sync();  // all members have computed their cells
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
        for (int k = 0; k < tile.sends_; ++k) detail::send_claimed(group, x, tile.sent_[k], step);
        return MPI_SUCCESS;
    }
#endif
    return detail::send_slowly(group, x, tile, step);
}

template <class Group>
MPIX_FN int sync_blocks(const Group &group, const device_exchange &x, int groups, prepared_tile *tiles, int count,
                        std::int64_t step) {
    if (x.version_ != MPIX_ABI_VERSION) return MPI_ERR_REQUEST;
    if (x.tiles_count_ == 0) return MPI_SUCCESS;
    const int rank = static_cast<int>(group.thread_rank()), threads = static_cast<int>(group.num_threads());
    group.sync();  // the thread that counts releases what all members have written
    // With more than 96 threads the last 32 claim the next sends, the first of the 32 before them waits for the other
    // groups, and all before that take packets. If 32 divides their number, no warp does two of these. The first threads do
    // not count: their release would wait for packets that they have stored on another GPU.
    const bool shares = threads > 96;
    const int counter = shares ? threads - 64 : 0;
    const std::uint64_t all = static_cast<std::uint64_t>(step + 1) * static_cast<std::uint64_t>(groups);
    int barrier = MPI_SUCCESS;
    if (rank == counter) {
        mpix::detail::increment_release_gpu(detail::arrivals_of(x));  // pairs: X3
        if (shares) barrier = detail::await_groups(x, all, step);
    }
    bool good = true;
#if MPIX_ON_GPU && !defined(MPIX_CHECK)
    const int takers = shares ? threads - 64 : threads, ahead = shares ? threads - 32 : 0,
              items = count * detail::most_kept_parcels;
    if (rank >= ahead)
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
        for (int i = rank - ahead; i < items; i += threads - ahead) {
            prepared_tile &tile = tiles[i / detail::most_kept_parcels];
            if (const int k = i % detail::most_kept_parcels; k < tile.sends_)
                detail::claim_next(x, tile.sent_[k], step + 1);
        }
    // Each parcel's packets begin at the member behind the last one of the parcel before.
    const bool has_exchange = step < x.steps_;
    if (rank < takers && has_exchange)
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
        for (int n = 0, first = rank; n < count; ++n)
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
            for (int k = 0; k < tiles[n].waits_; ++k) {
                const detail::kept_parcel<detail::kept_receive> &parcel = tiles[n].awaited_[k];
                good &= detail::take_packets(x, parcel, step, static_cast<std::uint32_t>(first),
                                             static_cast<std::uint32_t>(takers));
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
                for (first -= static_cast<int>(parcel.packets); first < 0;) first += takers;
            }
#endif
    if (rank == counter && !shares) barrier = detail::await_groups(x, all, step);
    good = mpix::detail::vote_all(group, good && barrier == MPI_SUCCESS);
    bool rest = !good;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (int n = 0; n < count; ++n) rest |= (tiles[n].waits_ < 0) | (tiles[n].own_count_ != 0);
#if MPIX_ON_GPU && !defined(MPIX_CHECK)
    if (good && rank >= ahead && has_exchange)
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
        for (int i = rank - ahead; i < items; i += threads - ahead) {
            const prepared_tile &tile = tiles[i / detail::most_kept_parcels];
            if (const int k = i % detail::most_kept_parcels; k < tile.waits_)
                detail::tell_taken(x, tile.awaited_[k], step);
        }
#endif
    return rest ? detail::wait_for_rest(group, x, tiles, count, step, !good, barrier) : MPI_SUCCESS;
}

}  // namespace mpix::halo

#endif  // MPIX_IMPL_HALO_PREPARED_TILE_CUH
