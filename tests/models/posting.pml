// SPDX-License-Identifier: BSD-3-Clause
//
// One exported send by a work queue to another node, over several epochs: callers of Pready that post or defer, the last
// of whom posts the epoch's end; the NIC, which may fail; the progress engine, which moves what was deferred and ends the
// epoch; both hosts' Start and Wait. docs/protocol-proofs.md maps each step to the code.
//
//   ALONE    one caller, not two.
//   MIXED    a caller may defer though clear-to-send is there (may_post says no).
//   FAILS    an entry of the queue may fail, and then all behind it are flushed. The queue is not ours alone.
//   SHARED   the host readies one partition, or none, and the engine adds up.
//   RANGE    a caller may ready all partitions as one range, behind clear-to-send: one posting, and counted at once. What finds no
//            room goes partition by partition. (N is 2.)
//   BOTH     the host readies a partition that kernels ready too, which is an error: its bytes may move twice, and late,
//            but Wait says so, and the next epoch has right counts. The user synchronises with the kernel before Wait.
// -DWITHOUT_x leaves one step or check out; each must make an assertion fail, or somebody wait for ever.
//
// Memory: `posted` and `ended` of the host's words are pending until they become visible, at any time and in any order, or
// by the release before all_ready. How postings are handed over, and the deferral's own stores, are other models' and
// tests'. The landing holds one message. Waiting is a guard that blocks, so a wait that nobody ends is an invalid end state.

#ifndef N
#define N 2
#endif
#ifndef E
#define E 2
#endif
#ifndef Q
#define Q 2  // postings that the queue has room for
#endif

#define END N
#define ALL 3  // of a range
#define FOREIGN 255
#define ENTRY(e, p) ((e) * 4 + (p))
#define NEVER 255

// The executor's own words.
byte state[N], ready_count, defer_count, defer_epoch, reached;  // the last one: mpix_prequest.posted
byte ring[N];

// The host's, which the last caller stores to.
byte posted, ended, all_ready;
byte pending_posted, pending_ended;

// The queue: what was posted, what the NIC has done with, and what the host has been told.
byte queue[Q], head, done, completed;
byte polled;  // as far as posters know
byte failed_here = NEVER, failed_at = NEVER;
bool known_broken;

// The sender's host and engine.
byte s_epoch, ring_taken, ring_at_start, engine_moves, concluded, transfer[N];
bool s_active, engine, failure;
bool host_pending, host_readied, for_host;
byte host_share, counted;

// The receiver.
byte clear_to_send, r_epoch, complete, landing[N];
bool r_active;

// The user's: what lies in the buffer; partitions that kernels ready in this epoch, and in somebody's hands.
byte source[N], shared_out = N, to_share = N, calling;

// Of the properties.
byte moved[N], told;
bool hit, given_up;  // an entry of ours was not executed; Wait has said so

#define MOVING (transfer[0] || transfer[N / 2] || transfer[N - 1])
#define IN_RING (ring_taken - ring_at_start < N && ring[ring_taken % N] / 4 == s_epoch)

hidden byte k;

// The bytes of a partition and its flag arrive.
inline arrives(p, e) {
    if
#ifdef BOTH
    :: (p) == N - 1 && moved[p] >= (e)
#endif
    :: else ->
        assert(moved[p] == (e) - 1 && source[p] == (e));
        assert(r_active && r_epoch == (e));
        moved[p] = e;
        landing[p] = e
    fi
}

inline tells(e) {
#ifdef BOTH
    assert(told == (e) - 1 || told == (e));  // kernel and engine may both be the last; the kernel's end comes late
    assert(moved[0] >= (e) && moved[N - 1] >= (e) && moved[N / 2] >= (e));
#else
    assert(told == (e) - 1);
    assert(moved[0] == (e) && moved[N - 1] == (e) && moved[N / 2] == (e));
#endif
    told = e;
    complete = e
}

// ---- callers of Pready ---------------------------------------------------------------------------------

// post_prebuilt. Reserving, filling and publishing are one step. A full queue is polled once, and so an error is found.
inline post(entry) {
    d_step {
        index = 0;
        if
        :: !known_broken && head - polled >= Q ->
            polled = done;
            known_broken = (failed_here != NEVER && failed_here < done)
        :: else
        fi;
        if
        :: !known_broken && head - polled < Q ->
            queue[head % Q] = entry;
            head++;
            index = head
        :: else
        fi
    }
}
inline raise() {
#ifdef WITHOUT_HIGHEST
    d_step { reached = index }
#else
    d_step { reached = (reached < index -> index : reached) }
#endif
}

inline defer() {
    d_step {
        place = defer_count % N;
        defer_count++;
        defer_epoch = e
    };
    d_step { ring[place] = ENTRY(e, p); place = 0 }
}

inline end_posting() {
    if
#ifdef WITHOUT_DEFER_CHECK
    :: true ->
#else
    :: defer_epoch != e ->
#endif
        post(ENTRY(e, END));
        if
#ifdef WITHOUT_END_ROOM
        :: true ->
#else
        :: index != 0 ->
#endif
            raise();
            pending_ended = e
        :: else
        fi
    :: else
    fi;
    pending_posted = reached
}

inline count_ready(count) {
    d_step { ready_count = ready_count + count; index = ready_count };
    if
    :: index == e * N ->
        end_posting();
        d_step {
#ifndef WITHOUT_RELEASE_OF_WORDS
            see_posted();
            see_ended();
#endif
            all_ready = e
        }
    :: else
    fi
}

inline see_posted() {
    if
    :: pending_posted -> posted = pending_posted; pending_posted = 0
    :: else
    fi
}
inline see_ended() {
    if
    :: pending_ended -> ended = pending_ended; pending_ended = 0
    :: else
    fi
}

proctype caller() {
    byte p, e, index, place;
    bool open;
end:
    do
    :: d_step { shared_out < to_share -> p = shared_out; shared_out++; calling++; e = s_epoch; source[p] = e };
        d_step {
            state[p] = e;
#ifdef WITHOUT_CLEAR_CHECK
            open = true
#else
            open = (clear_to_send >= e)
#endif
        };
#ifdef MIXED
        if
        :: open = false
        :: true
        fi;
#endif
        index = 0;
        if
        :: open -> post(ENTRY(e, p))
        :: else
        fi;
#ifdef WITHOUT_COUNT_LAST
        place = index;
        count_ready(1);
        index = place;
        if
        :: index != 0 -> raise()
        :: else -> defer()
        fi;
#else
        if
        :: index != 0 -> raise()
#ifdef WITHOUT_ROOM_CHECK
        :: else -> skip
#else
        :: else -> defer()
#endif
        fi;
        count_ready(1);
#endif
        d_step { p = 0; e = 0; index = 0; place = 0; open = false; calling-- }
#ifdef RANGE
    :: d_step {
        shared_out == 0 && to_share == N && clear_to_send >= s_epoch ->
        shared_out = N;
        calling++;
        e = s_epoch;
        source[0] = e;
        source[1] = e;
        p = 0
    };
        d_step { state[0] = e; state[1] = e };
        post(ENTRY(e, ALL));
#ifdef WITHOUT_RANGE_COUNT_LAST
        place = index;
        count_ready(N);
        index = place;
#endif
        if
        :: index != 0 -> raise()
        :: else ->
            do
            :: p < N ->
                post(ENTRY(e, p));
                if
                :: index != 0 -> raise()
#ifdef WITHOUT_RANGE_ROOM_CHECK
                :: else -> skip
#else
                :: else -> defer()
#endif
                fi;
                p++
            :: else -> break
            od
        fi;
#ifdef WITHOUT_RANGE_COUNT_LAST
        skip;
#else
        count_ready(N);
#endif
        d_step { p = 0; e = 0; index = 0; place = 0; calling-- }
#endif
    od
}

active proctype memory() {
end:
    do
    :: d_step { pending_posted -> see_posted() }
    :: d_step { pending_ended -> see_ended() }
    od
}

#ifdef FAILS
// Another request of the same peer.
active proctype neighbour() {
    byte index;
    post(FOREIGN)
}
#endif

// ---- the NIC, and who steps it -------------------------------------------------------------------------

inline execute(entry) {
    if
    :: (entry) == FOREIGN
    :: (entry) != FOREIGN && (entry) % 4 == END -> tells((entry) / 4)
#ifdef RANGE
    :: (entry) != FOREIGN && (entry) % 4 == ALL ->
        arrives(0, (entry) / 4);
        arrives(1, (entry) / 4)
#endif
    :: else -> arrives((entry) % 4, (entry) / 4)
    fi
}

active proctype nic() {
    byte entry;
end:
    do
    :: atomic { done < head -> entry = queue[done % Q] };
        if
        :: d_step { failed_here == NEVER -> execute(entry) }
#ifdef FAILS
        :: d_step { failed_here == NEVER -> failed_here = done; hit = (entry != FOREIGN) }
#endif
        :: d_step { failed_here != NEVER -> hit = hit || entry != FOREIGN }
        fi;
        d_step { done++; entry = 0 };
#ifdef WITHOUT_FAILURE_FIRST
        completed = done;
        failed_at = failed_here
#else
        failed_at = failed_here;
        completed = done
#endif
    od
}

// ---- the sender's host ---------------------------------------------------------------------------------

active proctype sender() {
    byte e;
    bool both;
    do
    :: e < E ->
        atomic {
            !engine ->
            e++;
            s_epoch = e;
            s_active = true;
            ring_at_start = ring_taken;
            engine_moves = 0;
            host_share = 0;
            host_readied = false;
            to_share = N;
#ifdef SHARED
            if
            :: to_share = N - 1
            :: true
            fi;
#endif
            shared_out = 0
        };
#ifdef SHARED
        if
        :: to_share < N ->
            atomic { !engine -> source[N - 1] = e; host_readied = true; host_pending = true }
        :: else
        fi;
#endif
#ifdef BOTH
        if
        :: atomic { !engine -> source[N - 1] = e; host_readied = true; host_pending = true }
        :: true
        fi;
        shared_out == N && calling == 0;
#endif
        // Wait: done(), complete()
        all_ready >= e;
#ifdef WITHOUT_WAIT_FOR_QUEUE
        atomic { !engine && !host_pending && !MOVING && !IN_RING -> skip };
#else
        atomic { !engine && !host_pending && !MOVING && (!host_share || counted == e) && concluded == e -> skip };
#endif
        // outcome(), look_for_both()
        d_step {
            both = false;
#ifndef WITHOUT_LOOK_FOR_BOTH
            if
            :: host_share && host_readied && state[N - 1] >= e ->
                both = true;
                transfer[0] = 0;
                transfer[N / 2] = 0;
                transfer[N - 1] = 0;
                for_host = false;
                ring_taken = defer_count;
                ready_count = e * N
            :: else
            fi;
#endif
            assert(failure == hit);
            if
            :: failure -> given_up = true
            :: else ->
                assert(moved[0] == e && moved[N - 1] == e && moved[N / 2] == e && ready_count == e * N);
#ifdef BOTH
                assert(told == e || ended == e);  // the end may be in the queue still: nothing of the buffer's is
#else
                assert(told == e);
#endif
                assert(both == (to_share == N && host_readied))
            fi;
            // The user has its buffer back.
            source[0] = 0;
            source[N / 2] = 0;
            source[N - 1] = 0;
            s_active = false
        };
        if
        :: given_up -> break
        :: else
        fi
    :: else -> break
    od
}

// ---- the progress engine -------------------------------------------------------------------------------

#define IS_CLEAR (clear_to_send >= s_epoch)
#ifdef WITHOUT_POSTED_WAIT
#define QUEUE_CAME true
#else
#define QUEUE_CAME (completed >= posted)
#endif
#if defined(WITHOUT_OWN_ENTRIES_ONLY)
#define FAILED (failed_at != NEVER)
#elif defined(WITHOUT_ACQUIRE_OF_COMPLETED)
#define FAILED (early < posted)
#else
#define FAILED (failed_at < posted)
#endif
#if defined(WITHOUT_TOLD_CHECK)
#define TOLD false
#elif defined(WITHOUT_EPOCH_OF_END)
#define TOLD (ended != 0)
#else
#define TOLD (ended == s_epoch)
#endif
#ifdef WITHOUT_RING_RECHECK
#define NOTHING_LEFT true
#else
#define NOTHING_LEFT (!IN_RING)
#endif

#define TRANSFER(p)                                                       \
    ::d_step {                                                            \
        !engine && s_active && transfer[p] ->                             \
        arrives(p, s_epoch);                                              \
        transfer[p] = 0;                                                  \
        host_share = host_share + (for_host && (p) == N - 1);             \
        for_host = for_host && (p) != N - 1                               \
    }

inline count_kernels() {
    kernels = 0;
    missing = 0;
    k = 0;
    do
    :: k < N ->
        kernels = kernels + (state[k] >= s_epoch);
        missing = missing + (state[k] < s_epoch && !(host_readied && k == N - 1));
        k++
    :: else -> break
    od
}

active proctype progress() {
    byte p, kernels, missing, upto;
#ifdef WITHOUT_ACQUIRE_OF_COMPLETED
    byte early = NEVER;
#endif
end:
    do
#ifdef WITHOUT_ACQUIRE_OF_COMPLETED
    :: d_step { early != failed_at -> early = failed_at }
#endif
    // drain
    :: d_step { !engine && s_active && IS_CLEAR && IN_RING && !transfer[ring[ring_taken % N] % 4] ->
        p = ring[ring_taken % N] % 4;
        ring_taken++;
        engine_moves++;
        transfer[p] = 1;
        p = 0
    }
    :: d_step { !engine && s_active && IS_CLEAR && host_pending && !transfer[N - 1] ->
        host_pending = false;
        engine_moves++;
        for_host = true;
        transfer[N - 1] = 1
    }
    TRANSFER(0)
    TRANSFER(1)
#if N == 3
    TRANSFER(2)
#endif
#if defined(SHARED) || defined(BOTH)
    // count_shares
#ifdef WITHOUT_ONE_PIECE
    :: d_step { s_active && upto != reached -> upto = reached }
#endif
    :: atomic {
        !engine && s_active && host_share && counted != s_epoch && !host_pending && !MOVING &&
        ready_count + host_share >= s_epoch * N && defer_count == ring_taken ->
        d_step { count_kernels() };
        if
        :: ready_count == (s_epoch - 1) * N + kernels && !missing ->
            engine = true;
#ifndef WITHOUT_ONE_PIECE
            upto = reached
#endif
        :: else -> kernels = 0; missing = 0
        fi
    };
        if
        :: engine ->
            ready_count = s_epoch * N;
            d_step {
                counted = s_epoch;
#ifndef WITHOUT_POSTED_OF_SHARES
                posted = upto;
#endif
                all_ready = s_epoch;
                kernels = 0;
                upto = 0;
                engine = false
            }
        :: else
        fi
#endif
    // conclude
    :: atomic {
        !engine && s_active && concluded != s_epoch && !MOVING && all_ready >= s_epoch && NOTHING_LEFT && QUEUE_CAME ->
        engine = true
    };
#ifndef WITHOUT_FAILURE_CHECK
        d_step { failure = failure || FAILED };
#endif
        d_step {
            if
            :: !failure && !TOLD -> tells(s_epoch)
            :: else
            fi;
            concluded = s_epoch;
            engine = false
        }
    od
}

// ---- the receiver --------------------------------------------------------------------------------------

active proctype receiver() {
    byte e;
    do
    :: e < E ->
        d_step { e++; r_epoch = e; r_active = true; clear_to_send = e };
        if
        :: d_step { complete >= e ->
            assert(landing[0] == e && landing[N / 2] == e && landing[N - 1] == e);
            r_active = false
        }
        :: given_up -> break
        fi
    :: else -> break
    od
}

init {
    atomic {
        run caller()
#ifndef ALONE
        ; run caller()
#endif
    }
}
