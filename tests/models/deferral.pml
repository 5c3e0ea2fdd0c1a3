// SPDX-License-Identifier: BSD-3-Clause
//
// One send and one receive over several epochs: who moves a partition, when, and who is told. Callers of Pready, the
// progress engine, both hosts' Start and Wait, and a Parrived. docs/protocol-proofs.md maps each step to the code.
//
// What is modelled:
//   GPU       the callers are GPU threads: two levels of visibility, claim after the flag. Otherwise host threads:
//             store_release_after_fence is a release store there, and the claim comes first.
//   DIRECT    the landing is the receiver's own buffer, and its host looks at `complete` only; otherwise a landing
//             that the receiver's threads take the bytes out of.
//   SLOTS     of the landing: 1 or 2.
//   MIXED     a caller may leave a partition to the engine though clear-to-send is there (pready of a type with gaps).
//   NO_ROUTE  callers cannot store to the landing at all, so the engine moves everything.
//   ASYNC     the engine's moves are transfers that finish later.
//   TEST      the receiver may end an epoch by looking at the flags themselves (done_exactly).
//   SHARED    the host readies one partition of an exported request, and the engine adds up.
//   WATCH     a thread of the receiver's calls Parrived, over all epochs.
//   LOADS_APART  a caller's three loads of what it remembers are three steps, not one.
//   DOUBLE    somebody readies partition 0 once too often.
// -DWITHOUT_x leaves one fence, check or step out; each must make an assertion fail, or somebody wait for ever.
//
// Memory: a store of a caller is pending, and becomes visible to others at any time and in any order; a release makes
// all of its earlier ones visible first. On a GPU a release at device scope hands them to the device only, and
// a system fence of any of its threads takes those on to the system. All other parties store in program order; what
// their releases are for is shown by exchanging two steps, and what an acquire is for by loading early.
//
// Waiting is a guard that blocks, never a loop that spins. So a wait that nobody ends is an invalid end state.

#ifndef N
#define N 2
#endif
#ifndef E
#define E 3
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#define CALLERS 2

// Words that callers write. A pending store of 0 means none: no value stored is 0.
#define LAND(s, p) ((s) * N + (p))
#define FLAG(p) (SLOTS * N + (p))
#define WHOLE (SLOTS * N + N)
#define COMPLETE (WHOLE + 1)
#define ALL_READY (WHOLE + 2)
#define RING(k) (WHOLE + 3 + (k))
#define SRC(p) (WHOLE + 3 + N + (p))
#define SYSTEM_WORDS (WHOLE + 3 + 2 * N)
#define DEFER_EPOCH SYSTEM_WORDS
#define SEEN_EPOCH (SYSTEM_WORDS + 1)
#define SEEN_CLEAR (SYSTEM_WORDS + 2)
#define WORDS (SYSTEM_WORDS + 3)

#define SLOT(e) ((SLOTS - 1) & (e))
#define ENTRY(e, p) ((e) * 4 + (p))

byte mem[WORDS];
byte pending[CALLERS * WORDS];
#define PEND(t, l) pending[(t) * WORDS + (l)]
#ifdef GPU
byte device[SYSTEM_WORDS];  // visible to the GPU's threads, to the system not yet
#define TO_SYSTEM(l) device[l] = 0
#else
#define TO_SYSTEM(l) skip
#endif
#define READ(t, l) (PEND(t, l) -> PEND(t, l) : mem[l])

// Atomics of the executor's own memory, and words that one host writes.
byte state[N], ready_count, defer_count;
byte s_epoch, clear_to_send;
bool s_active, route, connected;

// The sender's engine and host.
bool engine;
byte ring_taken, ring_at_start, engine_moves, concluded;
byte transfer[N];  // 1 under way, 2 there
#ifdef SHARED
bool host_pending, host_readied, moves_for_host[N];
byte host_share, counted, tried_count, tried_ring = 255;
#endif

// The receiver.
byte r_epoch, r_over, watched;
bool r_active;
#ifndef DIRECT
byte taken[N], buffer[N];
#endif

// Of the properties.
byte moved[N];  // the last epoch in which it was
byte told;      // the last epoch of which `complete` was
byte refusals;

// The user's: which partitions of this epoch kernels ready, and how many of them are in somebody's hands.
byte shared_out = N, to_share = N;

hidden byte k, j;

inline seen_by_all(l, v) {
    // A stored byte of a partition: only where the receiver has room for that epoch.
    if
    :: (l) < SLOTS * N ->
#if SLOTS == 2
        assert(r_epoch >= 1 && (v) <= r_over + 2)
#else
        assert(r_active && r_epoch == (v))
#endif
    :: (l) == COMPLETE && r_over < (v) ->
        j = 0;
        do
        :: j < N ->
            assert(mem[LAND(SLOT(v), j)] >= (v));
#ifndef SHARED
            assert(mem[FLAG(j)] >= (v));
#endif
            j++
        :: else -> break
        od
#ifndef SHARED
    :: (l) >= FLAG(0) && (l) < FLAG(0) + N -> assert(mem[LAND(SLOT(v), (l) - FLAG(0))] >= (v))
#endif
    :: else
    fi;
    mem[l] = v
}

inline drain_one(t, l) {
    seen_by_all(l, PEND(t, l));
    PEND(t, l) = 0;
    if
    :: (l) < SYSTEM_WORDS -> TO_SYSTEM(l)
    :: else
    fi
}

inline fence_acq_rel(t) {
    k = 0;
    do
    :: k < WORDS ->
#ifdef GPU
        if
        :: k < SYSTEM_WORDS && device[k] -> seen_by_all(k, device[k]); device[k] = 0
        :: else
        fi;
#endif
        if
        :: PEND(t, k) -> seen_by_all(k, PEND(t, k)); PEND(t, k) = 0
        :: else
        fi;
        k++
    :: else -> break
    od
}

// What comes before an atomic at device scope with release.
inline fence_acq_rel_gpu(t) {
#ifdef GPU
    k = 0;
    do
    :: k < SYSTEM_WORDS ->
        if
        :: PEND(t, k) -> device[k] = PEND(t, k); PEND(t, k) = 0
        :: else
        fi;
        k++
    :: k >= SYSTEM_WORDS && k < WORDS ->
        if
        :: PEND(t, k) -> mem[k] = PEND(t, k); PEND(t, k) = 0
        :: else
        fi;
        k++
    :: else -> break
    od
#else
    fence_acq_rel(t)
#endif
}

// store_release_after_fence: a release of its own on the host, where nothing of the caller's that matters can overtake it.
inline store_release_after_fence(t, l, v) {
#ifdef GPU
    PEND(t, l) = v
#else
    fence_acq_rel(t);
    seen_by_all(l, v)
#endif
}

#if defined(WITHOUT_ROOM_CHECK)
#define NEEDED(e) 0
#elif defined(WITHOUT_LAST_EPOCH)
#define NEEDED(e) ((e) > 1 -> (e) - SLOTS : (e))
#elif defined(WITHOUT_FIRST_EPOCH)
#define NEEDED(e) (SLOTS == 2 -> (e) - 1 : (e))
#else
#define NEEDED(e) (SLOTS == 2 && (e) > 1 -> (e) - 1 : (e))
#endif

inline moves(p, e) {
    assert(moved[p] == (e) - 1);  // once per epoch
    moved[p] = e
}

inline tells(e) {
    assert(told == (e) - 1);
    assert(moved[0] == (e) && moved[1] == (e) && moved[N - 1] == (e));
    told = e
}

#define NOW 1
#define LATER 2
#define REFUSED 3

inline claim() {
#ifndef WITHOUT_CLAIM
    if
    :: state[p] < e -> state[p] = e
    :: else -> what = REFUSED; refusals++
    fi
#else
    state[p] = e
#endif
}

inline admit_by_host() {
#ifdef DOUBLE
    // On the host the epoch word and clear-to-send are two loads; the word stands still unless the call is one too many.
    d_step { e = s_epoch; seen = s_active };
    d_step {
#else
    d_step {
        e = s_epoch;
        seen = s_active;
#endif
        room = clear_to_send;
        if
        :: !seen || state[p] == e -> what = REFUSED; refusals++
        :: else ->
            PEND(t, SEEN_EPOCH) = e;
            fence_acq_rel_gpu(t);
            PEND(t, SEEN_CLEAR) = room;
            what = (room >= NEEDED(e) && route -> NOW : LATER)
        fi;
        seen = 0;
        room = 0
    }
}

inline admit() {
#ifdef LOADS_APART
    d_step { readied = ready_count };
    d_step { seen = READ(t, SEEN_EPOCH) };
    d_step { room = READ(t, SEEN_CLEAR) };
#else
    d_step { readied = ready_count; seen = READ(t, SEEN_EPOCH); room = READ(t, SEEN_CLEAR) };
#endif
    if
#ifndef WITHOUT_COUNT_CHECK
    :: seen < 2 || readied >= seen * N || room < NEEDED(seen) ->
#else
    :: seen < 2 || room < NEEDED(seen) ->
#endif
        readied = 0;
        admit_by_host()
    :: else -> d_step { e = seen; what = (route -> NOW : LATER); readied = 0; seen = 0; room = 0 }
    fi
}

inline say_all_ready() {
    d_step {
#ifndef WITHOUT_RELEASE_FOR_ALL
        fence_acq_rel(t);
#endif
#ifndef WITHOUT_DEFER_CHECK
        what = (READ(t, DEFER_EPOCH) == e -> LATER : NOW);
#else
        what = NOW;
#endif
        if
        :: what == NOW -> tells(e); store_release_after_fence(t, WHOLE, e)
        :: else
        fi
    };
    if
    :: what == NOW ->
        d_step {
#ifndef WITHOUT_RELEASE_OF_COMPLETE
            fence_acq_rel(t);
#endif
            store_release_after_fence(t, COMPLETE, e)
        }
    :: else
    fi;
    d_step {
#ifndef WITHOUT_WORDS_IN_ORDER
        if  // two words in host memory, stored one after the other by one thread
        :: PEND(t, COMPLETE) -> fence_acq_rel(t)
        :: else
        fi;
#endif
        store_release_after_fence(t, ALL_READY, e)
    }
}

inline count_ready() {
    d_step {
#ifndef WITHOUT_CHAIN
        fence_acq_rel_gpu(t);
#endif
        ready_count++;
        readied = ready_count
    };
    if
    :: readied == e * N -> say_all_ready()
    :: else
    fi
}

inline ready() {
    admit();
#if defined(NO_ROUTE)
    if
    :: what == NOW -> what = LATER
    :: else
    fi;
#elif defined(MIXED)
    if
    :: what == NOW -> what = LATER
    :: true
    fi;
#endif
#ifndef GPU
    if
    :: what != REFUSED -> d_step { claim() }
    :: else
    fi;
#endif
    if
    :: what == NOW ->
        d_step {
            moves(p, e);
            PEND(t, LAND(SLOT(e), p)) = e;
#ifndef WITHOUT_RELEASE_OF_BYTES
            fence_acq_rel(t);
#endif
            store_release_after_fence(t, FLAG(p), e)
        };
#ifdef GPU
        d_step { claim() };
#endif
        count_ready()
    :: what == LATER ->
#ifdef GPU
        d_step { claim() };
#endif
        d_step {
            PEND(t, SRC(p)) = e;  // the user's store to the partition, before Pready; nobody else looks earlier
#ifndef WITHOUT_RELEASE_OF_DEFERRED
            fence_acq_rel(t);
#endif
            PEND(t, DEFER_EPOCH) = e;
            place = defer_count % N;
            defer_count++
        };
        d_step {
            store_release_after_fence(t, RING(place), ENTRY(e, p));
            place = 0
        };
        count_ready()
    :: else
    fi;
    d_step { p = 0; e = 0; readied = 0; what = 0 }
}

proctype caller(byte t) {
    byte p, e, readied, seen, room, what, place;
end:
    do
    :: d_step {
        shared_out < to_share ->
        p = shared_out;
        shared_out++
    };
        ready()
    od
}

#ifdef DOUBLE
// One call too many, at any time. Whichever comes first is to win.
proctype intruder() {
    byte t = 1, p, e, readied, seen, room, what, place;
end:
    s_active -> ready()
}
#endif

// Any pending store becomes visible to the system at any time, or first to the device.
#ifdef GPU
#define DRAIN(l)                                         \
    ::d_step { PEND(0, l) -> drain_one(0, l) }           \
    ::d_step { PEND(1, l) -> drain_one(1, l) }
#define DRAIN_DEVICE(l) ::d_step { device[l] -> seen_by_all(l, device[l]); device[l] = 0 }
#else
#define DRAIN(l)                                         \
    ::d_step { PEND(0, l) -> drain_one(0, l) }           \
    ::d_step { PEND(1, l) -> drain_one(1, l) }
#define DRAIN_DEVICE(l)
#endif
#define DRAIN_SYSTEM(l) DRAIN(l) DRAIN_DEVICE(l)

active proctype memory() {
end:
    do
        DRAIN_SYSTEM(0)
        DRAIN_SYSTEM(1)
        DRAIN_SYSTEM(2)
        DRAIN_SYSTEM(3)
        DRAIN_SYSTEM(4)
        DRAIN_SYSTEM(5)
        DRAIN_SYSTEM(6)
        DRAIN_SYSTEM(7)
        DRAIN_SYSTEM(8)
        DRAIN_SYSTEM(9)
        DRAIN_SYSTEM(10)
#if N == 3 || SLOTS == 2
        DRAIN_SYSTEM(11)
        DRAIN_SYSTEM(12)
#endif
#if N == 3
        DRAIN_SYSTEM(13)
        DRAIN_SYSTEM(14)
#if SLOTS == 2
        DRAIN_SYSTEM(15)
        DRAIN_SYSTEM(16)
        DRAIN_SYSTEM(17)
#endif
#endif
        DRAIN(DEFER_EPOCH)
        DRAIN(SEEN_EPOCH)
        DRAIN(SEEN_CLEAR)
    od
}

// ---- the sender's host -------------------------------------------------------------------------------

#ifndef WITHOUT_RING_LIMIT
#define RING_ROOM (ring_taken - ring_at_start < N)
#else
#define RING_ROOM true
#endif
#ifndef WITHOUT_ENTRY_EPOCH
#define RING_SHOWS (RING_ROOM && mem[RING(ring_taken % N)] / 4 == s_epoch)
#else
#define RING_SHOWS (RING_ROOM && mem[RING(ring_taken % N)] != 0)
#endif
#ifndef WITHOUT_LAST_LOOK
#define LAST_LOOK (mem[RING(ring_taken % N)] / 4 != s_epoch)
#else
#define LAST_LOOK true
#endif
#ifdef SHARED
#define HOST_PENDING host_pending
#else
#define HOST_PENDING false
#endif
#define IS_COMPLETE (concluded == s_epoch || (engine_moves == 0 && !HOST_PENDING && LAST_LOOK))

active proctype sender() {
    byte e;
    do
    :: e < E ->
        atomic {
            !engine ->
            e++;
            s_epoch = e;
            s_active = true;
            ring_at_start = ring_taken;
            engine_moves = 0;
#ifdef SHARED
            host_share = 0;
            host_readied = false;
            // The user gives the host one partition, or none.
            if
            :: to_share = N - 1
            :: to_share = N
            fi;
#endif
            shared_out = 0
        };
#ifdef SHARED
        if
        :: to_share < N ->
            atomic { !engine -> mem[SRC(N - 1)] = e; host_readied = true; host_pending = true }
        :: else
        fi;
#endif
        // Wait
        mem[ALL_READY] >= e;
#if defined(GPU)
        atomic { !engine && IS_COMPLETE -> skip };
#elif !defined(WITHOUT_DEFER_LOOK)
        if
        :: mem[DEFER_EPOCH] != e
        :: atomic { mem[DEFER_EPOCH] == e && !engine && IS_COMPLETE -> skip }
        fi;
#endif
        d_step {
            // The user has its buffer back.
            assert(moved[0] == e && moved[1] == e && moved[N - 1] == e && told == e && ready_count == e * N);
#ifndef DOUBLE
            assert(refusals == 0);
#endif
            s_active = false
        }
    :: else -> break
    od
}

// ---- the progress engine -----------------------------------------------------------------------------

inline set_flag(p) { seen_by_all(FLAG(p), s_epoch) }

inline finish_move(p) {
    set_flag(p);
#ifdef SHARED
    if
    :: moves_for_host[p] -> host_share++; moves_for_host[p] = false
    :: else
    fi
#endif
}

inline copy_bytes(p) {
    moves(p, s_epoch);
#if defined(WITHOUT_ACQUIRE_OF_DEFERRED)
    assert(early[p] == s_epoch);
#else
    assert(mem[SRC(p)] == s_epoch);
#endif
    seen_by_all(LAND(SLOT(s_epoch), p), s_epoch)
}

inline start_move(p) {
#ifdef ASYNC
    d_step { engine_moves++; transfer[p] = 1 }
#elif defined(WITHOUT_ORDER_OF_MOVE)
    d_step { engine_moves++; finish_move(p) };
    d_step { copy_bytes(p) }
#else
    d_step { engine_moves++; copy_bytes(p) };
    d_step { finish_move(p) }
#endif
}

#define IS_CLEAR (route && clear_to_send >= NEEDED(s_epoch))
#define MOVING (transfer[0] || transfer[1] || transfer[N - 1])
#ifdef WITHOUT_TRANSFER_WAIT
#define THERE(p) (transfer[p] != 0)
#else
#define THERE(p) (transfer[p] == 2)
#endif
#ifdef WITHOUT_RING_RECHECK
#define NOTHING_IN_RING true
#else
#define NOTHING_IN_RING (!RING_SHOWS)
#endif
#ifdef WITHOUT_ALL_CHECK
#define ALL_SEEN true
#else
#define ALL_SEEN (mem[ALL_READY] >= s_epoch)
#endif

#define TRANSFER(p)                                                                            \
    ::d_step { transfer[p] == 1 -> copy_bytes(p); transfer[p] = 2 }                            \
    ::d_step { !engine && s_active && THERE(p) -> transfer[p] = 0; finish_move(p) }

#ifdef WITHOUT_DEFERRED_CHECK
#define RING_EMPTIED true
#else
#define RING_EMPTIED (defers == ring_taken)
#endif

active proctype progress() {
    byte p;
#ifdef SHARED
    byte readied, defers, kernels;
#endif
#ifdef WITHOUT_ACQUIRE_OF_DEFERRED
    byte early[N];
#endif
    // The match: ACCEPT gives the route, CONNECT the receiver leave to give clear-to-send.
    route = true;
    connected = true;
end:
    do
#ifdef WITHOUT_ACQUIRE_OF_DEFERRED
    :: d_step { early[0] != mem[SRC(0)] -> early[0] = mem[SRC(0)] }
    :: d_step { early[1] != mem[SRC(1)] -> early[1] = mem[SRC(1)] }
#endif
    // advance: drain
    :: atomic { !engine && s_active && IS_CLEAR && RING_SHOWS ->
        engine = true;
        p = mem[RING(ring_taken % N)] % 4;
        ring_taken++
    };
        start_move(p);
        d_step { p = 0; engine = false }
#ifdef SHARED
    :: atomic {
        !engine && s_active && IS_CLEAR && host_pending ->
        engine = true;
        host_pending = false;
        moves_for_host[N - 1] = true
    };
        start_move(N - 1);
        engine = false
#endif
#ifdef ASYNC
    TRANSFER(0)
    TRANSFER(1)
#if N == 3
    TRANSFER(2)
#endif
#endif
#ifdef SHARED
    // advance: count_shares
    :: atomic {
        !engine && s_active && host_share && counted != s_epoch && !host_pending && !MOVING &&
        (tried_count != ready_count || tried_ring != ring_taken) ->
        engine = true;
#ifdef WITHOUT_PAIR
        defers = defer_count
#else
        readied = ready_count;
        defers = defer_count
#endif
    };
#ifdef WITHOUT_PAIR
        readied = ready_count;
#endif
        if
        :: readied + host_share >= s_epoch * N && RING_EMPTIED ->
            d_step {
                kernels = 0;
                k = 0;
                do
                :: k < N ->
                    kernels = kernels + (state[k] >= s_epoch);
                    k++
                :: else -> break
                od
            };
            if
            :: readied == (s_epoch - 1) * N + kernels ->
#ifndef WITHOUT_COUNT_UPDATE
                ready_count = s_epoch * N;
#endif
                d_step { counted = s_epoch; mem[ALL_READY] = s_epoch }
            :: else
            fi
        :: else
        fi;
        d_step { tried_count = readied; tried_ring = ring_taken; readied = 0; defers = 0; kernels = 0; engine = false }
#endif
    // advance: conclude
    :: atomic {
        !engine && s_active && engine_moves && concluded != s_epoch && !MOVING && ALL_SEEN && NOTHING_IN_RING ->
        tells(s_epoch);
        engine = true
    };
        seen_by_all(WHOLE, s_epoch);
        d_step { seen_by_all(COMPLETE, s_epoch) };
        d_step { concluded = s_epoch; engine = false }
    od
}

// ---- the receiver ------------------------------------------------------------------------------------

#ifdef DIRECT
inline write_own_buffer() {
    k = 0;
    do
    :: k < N ->
        mem[LAND(0, k)] = 0;
        k++
    :: else -> break
    od
}
#else
// Out of the landing, by whoever claims it; `there` is what the taker goes by.
inline take(i, e, there) {
#ifndef WITHOUT_TAKEN_CLAIM
    atomic { taken[i] == 2 * (e) - 2 && (there) -> taken[i] = 2 * (e) - 1 };
#else
    taken[i] == 2 * (e) - 2 && (there);
    taken[i] = 2 * (e) - 1;
#endif
#ifdef WITHOUT_RELEASE_OF_TAKEN
    taken[i] = 2 * (e);
#endif
    d_step {
        assert(mem[LAND(SLOT(e), i)] == (e) && taken[i] == 2 * (e) - 1);  // the user has not been told yet
        buffer[i] = (e)
    };
    taken[i] = 2 * (e)
}
#endif

active proctype receiver() {
    byte e, i;
    do
    :: e < E ->
        d_step {
            e++;
#if defined(DIRECT) && !defined(WITHOUT_RELEASE_OF_ROOM)
            write_own_buffer();
#endif
            r_epoch = e;
            r_active = true
        };
        atomic { connected -> clear_to_send = e };
#if defined(DIRECT) && defined(WITHOUT_RELEASE_OF_ROOM)
        d_step { write_own_buffer() };
#endif
        // Wait, or Test until it says so
#ifdef DIRECT
#ifdef TEST
        if
        :: i = 0
        :: i = 1
        fi;
#endif
        if
        :: mem[COMPLETE] >= e
#ifdef TEST
        :: i && mem[FLAG(0)] >= e && mem[FLAG(1)] >= e && mem[FLAG(N - 1)] >= e ->
#ifndef WITHOUT_WHOLE_FLAG
            mem[WHOLE] = e
#endif
#endif
        fi;
        d_step {
            assert(mem[LAND(0, 0)] == e && mem[LAND(0, 1)] == e && mem[LAND(0, N - 1)] == e);
            r_active = false;
            r_over = e
        };
#else
        do
        :: i < N && taken[i] == 2 * e -> i++
        :: i < N && taken[i] == 2 * e - 2 && (mem[FLAG(i)] >= e || mem[COMPLETE] >= e) ->
            if
            :: take(i, e, true)
            :: taken[i] >= 2 * e - 1
            fi
        :: i == N -> break
        od;
        i = 0;
#ifndef WITHOUT_WHOLE_FLAG
        d_step { mem[WHOLE] = (mem[WHOLE] < e -> e : mem[WHOLE]) };
#endif
        d_step {
            assert(buffer[0] == e && buffer[1] == e && buffer[N - 1] == e);
            r_active = false;
            r_over = e
        };
#endif
        // The user reads, and its Parrived is done, before the next Start.
#ifdef WATCH
        watched == e
#endif
    :: else -> break
    od
}

#ifdef WATCH
// Parrived of partition 0, by a thread that stays over all epochs.
active proctype watcher() {
    byte e, seen, whole;
    do
    :: e < E ->
        atomic { r_epoch > e -> e++ };
        // look
#ifndef WITHOUT_WHOLE_CHECK
        d_step { whole = mem[WHOLE] };
#endif
        if
        :: d_step { seen == 0 || whole >= seen -> seen = (r_active -> r_epoch : 0); whole = 0 }
        :: else
        fi;
        if
        :: seen != 0 ->
#ifdef WITHOUT_ACQUIRE_OF_ARRIVAL
            d_step { whole = mem[LAND(SLOT(seen), 0)] };
#endif
            mem[FLAG(0)] >= seen;
#ifdef WITHOUT_ACQUIRE_OF_ARRIVAL
            d_step { assert(whole == e); whole = 0 };
#endif
#ifndef DIRECT
            if
            :: take(0, seen, true)
            :: taken[0] >= 2 * seen - 1
            fi;
            taken[0] >= 2 * seen;
#endif
            assert(seen == e)
        :: else  // inactive: "true"
        fi;
#ifdef DIRECT
        d_step { assert(mem[LAND(0, 0)] == e); watched = e }
#else
        d_step { assert(buffer[0] == e); watched = e }
#endif
    :: else -> break
    od
}
#endif

init {
    atomic {
        run caller(0);
#ifdef DOUBLE
        run intruder()
#else
        run caller(1)
#endif
    }
}
