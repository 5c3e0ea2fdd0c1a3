// SPDX-License-Identifier: BSD-3-Clause
//
// Partitions of an exported send that kernels of the receiver's ask for, are offered, and read out of the send buffer, over several
// epochs: callers of Pready, groups that wait for the message and may give up, the sender's progress engine, both hosts' Start and
// Wait. docs/protocol-proofs.md maps each step to the code.
//
//   G        groups that wait, each for all partitions.
//   TEST     the receiver's host may end an epoch by the flags, before it is told that all is complete.
//   TWICE    a second caller for partition 0, which is an error: who comes second is refused.
//   PATIENT  the first group never gives up.
// -DWITHOUT_x leaves one step out; each must make an assertion fail, or somebody wait for ever.
//
// Memory: what a caller has written to the send buffer, its offer and its ring entry are pending until they become visible, at any
// time and in any order, or by the caller's release; so is what a group has stored in the receive buffer. The rest is visible at
// once: flags, and the words of the whole message, are deferral.pml's. That somebody asks is never taken back: a sender that offers
// has seen it at some time, and one that has not may see it as late as it likes.
//
// Waiting is a guard that blocks, never a loop that spins. So a wait that nobody ends is an invalid end state.

#ifndef N
#define N 1
#endif
#ifndef G
#define G 2
#endif
#ifndef E
#define E 2
#endif
#ifdef TWICE
#define CALLERS (N + 1)
#else
#define CALLERS N
#endif

#define OFFERED 1
#define DEFERRED 0
#define ENTRY(e, p, what) (8 * (e) + 2 * (p) + (what))

// The send buffer, in epochs: as its callers see it, and as everybody does; 0: it is the user's, who writes to it.
byte written[N], source[N];
// The sender's words.
byte state[N], ready_count, defer_count, all_ready;
byte ring[N], pending_ring[N];
byte answer[N];
bool deferred;  // in this epoch
// The receiver's GPU.
byte wanted[N], offer[N], pending_offer[N], flag[N], taken[N];
byte stored[N], landing[N];  // as the group that stores sees it, and as all do

byte s_epoch, in_kernel;
byte clear_to_send, complete, r_epoch, waiting;
bool r_active;

// The engine.
byte ring_taken, ring_at_start, concluded;
bool engine_moves, offered[N], transfer[N];

// Of the properties.
byte moved[N];

#define LAST (N - 1)
#define MOVING (offered[0] || transfer[0] || offered[LAST] || transfer[LAST])
#define IN_RING (s_epoch > 0 && ring_taken - ring_at_start < N && ring[ring_taken % N] / 8 == s_epoch)
#define FLAGS(e) (flag[0] >= (e) && flag[LAST] >= (e))
#ifdef WITHOUT_READING
#define CAN_READ(p, e) false
#else
#define CAN_READ(p, e) (flag[p] < (e) && offer[p] == (e) && taken[p] < 2 * (e) - 1)
#endif

// A partition reaches the receive buffer, once per epoch, while that is the receiver's to fill, out of a send buffer that the user may
// not write to.
inline moves(p, e) {
    assert(r_active && r_epoch == (e) && source[p] == (e) && moved[p] == (e) - 1);
    moved[p] = (e)
}

active proctype memory() {
end:
    do
    :: d_step { source[0] != written[0] -> source[0] = written[0] }
    :: d_step { offer[0] != pending_offer[0] -> offer[0] = pending_offer[0] }
    :: d_step { ring[0] != pending_ring[0] -> ring[0] = pending_ring[0] }
    :: d_step { landing[0] != stored[0] -> landing[0] = stored[0] }
#if N == 2
    :: d_step { source[1] != written[1] -> source[1] = written[1] }
    :: d_step { offer[1] != pending_offer[1] -> offer[1] = pending_offer[1] }
    :: d_step { ring[1] != pending_ring[1] -> ring[1] = pending_ring[1] }
    :: d_step { landing[1] != stored[1] -> landing[1] = stored[1] }
#endif
    od
}

// ---- callers of Pready ---------------------------------------------------------------------------------

// say_all_ready: `complete` by the last caller if nothing was left to the engine.
inline count_ready() {
    d_step {
        ready_count++;
        if
        :: ready_count == e * N ->
            // Of all callers, which the counts have chained.
            pending = 0;
            do
            :: pending < N ->
                offer[pending] = pending_offer[pending];
                ring[pending] = pending_ring[pending];
                pending++
            :: else -> break
            od;
            if
            :: !deferred -> complete = e
            :: else
            fi;
            all_ready = e
        :: else
        fi;
        pending = 0
    }
}

active [CALLERS] proctype caller() {
    byte e, p, pending;
    bool mine, offers;
#ifdef TWICE
    p = (_pid - 1) % N;
#else
    p = _pid - 1;
#endif
end:
    do
    :: atomic { s_epoch > e -> e = s_epoch };
#ifndef TWICE
        written[p] = e;
#endif
        // left_to: it is stored, deferred, or offered, if somebody has asked.
        if
        :: clear_to_send >= e ->
            // What a refused caller stores is what is there, or will be.
            d_step {
                mine = (state[p] < e);
                state[p] = e;
                source[p] = written[p];
                if
                :: mine -> moves(p, e); landing[p] = e; stored[p] = e
                :: else
                fi
            };
            if
            :: mine -> flag[p] = e; count_ready()
#ifdef WITHOUT_FLAG_BY_CLAIM
            :: else -> landing[p] = e; stored[p] = e; flag[p] = e
#else
            :: else
#endif
            fi
        :: true ->
            offers = false;
            if
#ifdef WITHOUT_ASKING
            :: clear_to_send >= e -> offers = true
#else
            :: clear_to_send >= e && wanted[p] >= e -> offers = true
#endif
            :: true
            fi;
            d_step { mine = (state[p] < e); state[p] = e };
            if
            :: mine ->
                d_step {
                    deferred = true;
#ifdef WITHOUT_RELEASE_OF_BYTES
                    if
                    :: !offers -> source[p] = written[p]
                    :: else
                    fi;
#else
                    source[p] = written[p];
#endif
                    if
                    :: offers -> pending_offer[p] = e
                    :: else
                    fi;
                    pending_ring[defer_count % N] = ENTRY(e, p, (offers -> OFFERED : DEFERRED));
                    defer_count++
                };
                count_ready()
            :: else
            fi
        fi;
        d_step { mine = false; offers = false; in_kernel-- }
    od
}

// ---- groups of the receiver's --------------------------------------------------------------------------

// read_claimed.
inline read(p) {
#ifdef WITHOUT_READ_BEFORE_ANSWER
    answer[p] = 2 * e;
    d_step { moves(p, e); stored[p] = e };
    d_step { landing[p] = stored[p]; flag[p] = e }
#else
    d_step { moves(p, e); stored[p] = e };
#ifdef WITHOUT_FLAG_BEFORE_ANSWER
    answer[p] = 2 * e;
    d_step { landing[p] = stored[p]; flag[p] = e }
#else
#ifdef WITHOUT_RELEASE_OF_LANDING
    flag[p] = e;
#else
    d_step { landing[p] = stored[p]; flag[p] = e };
#endif
    answer[p] = 2 * e
#endif
#endif
}

active [G] proctype group() {
    byte e, i;
    bool mine, asks;
end:
    do
    :: atomic { waiting > 0 && r_epoch > e -> e = r_epoch };
        if
        :: goto over  // the user's kernel waits for something else
        :: true
        fi;
        // ask_early or ask_for, unless the sender has not said that it would offer (any group may have missed that).
        if
        :: d_step {
            asks = true;
            i = 0;
            do
            :: i < N -> wanted[i] = e; i++
            :: else -> break
            od;
            i = 0
        }
        :: true -> asks = false
        fi;
        // read_next, await_all
        do
        :: FLAGS(e) ->
            // wait_arrived returns.
            assert(landing[0] == e && landing[LAST] == e);
            break
#ifdef WITHOUT_EPOCH_OF_OFFER
        :: asks && flag[0] < e && offer[0] != 0 && taken[0] < 2 * e - 1 ->
#else
        :: asks && CAN_READ(0, e) ->
#endif
            d_step { mine = (taken[0] < 2 * e - 1); taken[0] = 2 * e - 1 };
#ifdef WITHOUT_TAKEN_CLAIM
            mine = true;
#endif
            if
            :: mine -> read(0)
            :: else
            fi;
            mine = false
#if N == 2
        :: asks && CAN_READ(1, e) ->
            d_step { mine = (taken[1] < 2 * e - 1); taken[1] = 2 * e - 1 };
            if
            :: mine -> read(1)
            :: else
            fi;
            mine = false
#endif
#ifdef PATIENT
        :: _pid != CALLERS + 1 ->
#else
        :: true ->
#endif
            // refuse_rts, at its deadline.
#ifndef WITHOUT_REFUSAL
            do
            :: !asks -> break
            :: asks && i < N && flag[i] < e ->
                d_step { mine = (taken[i] < 2 * e - 1); taken[i] = 2 * e - 1 };
#ifdef WITHOUT_REFUSAL_CLAIM
                mine = true;
#endif
                if
                :: mine -> answer[i] = 2 * e + 1
                :: else
                fi;
                mine = false;
                i++
            :: asks && i < N && flag[i] >= e -> i++
            :: else -> break
            od;
            i = 0;
#endif
            break
        od;
over:
        waiting--
    od
}

// ---- hosts ---------------------------------------------------------------------------------------------

active proctype sender() {
    byte e, i;
    do
    :: e < E ->
        d_step {
            e++;
            ring_at_start = ring_taken;
            engine_moves = false;
            deferred = false;
#ifdef TWICE
            i = 0;
            do
            :: i < N -> written[i] = e; source[i] = e; i++
            :: else -> break
            od;
            i = 0;
#endif
            in_kernel = CALLERS;
            s_epoch = e
        };
        // Wait: `complete`, and the user's kernel has ended.
        d_step {
            all_ready >= e && !MOVING && (concluded == e || (!engine_moves && !IN_RING)) && in_kernel == 0 ->
            i = 0;
            do
            :: i < N -> written[i] = 0; source[i] = 0; i++
            :: else -> break
            od;
            i = 0
        }
    :: else -> break
    od
}

active proctype progress() {
    byte entry;
end:
    do
    :: atomic {
        clear_to_send >= s_epoch && IN_RING ->  // drain
        entry = ring[ring_taken % N];
        ring_taken++;
        engine_moves = true;
        if
        :: entry % 2 == OFFERED -> offered[entry % 8 / 2] = true
        :: else -> transfer[entry % 8 / 2] = true
        fi;
        entry = 0
    }
    // look_for_answers
#define LOOK(p) \
    :: d_step { offered[p] && ANSWERED(p) -> offered[p] = false } \
    :: d_step { offered[p] && answer[p] == 2 * s_epoch + 1 -> offered[p] = false; transfer[p] = true } \
    :: atomic { transfer[p] -> moves(p, s_epoch); landing[p] = s_epoch; stored[p] = s_epoch }; \
        atomic { flag[p] = s_epoch; transfer[p] = false }
#ifdef WITHOUT_LATER_ANSWER
#define ANSWERED(p) (answer[p] == 2 * s_epoch)
#else
#ifdef WITHOUT_ANSWER
#define ANSWERED(p) true
#else
#define ANSWERED(p) (answer[p] >= 2 * s_epoch && answer[p] != 2 * s_epoch + 1)
#endif
#endif
    LOOK(0)
#if N == 2
    LOOK(1)
#endif
    :: atomic {  // conclude
        all_ready == s_epoch && engine_moves && concluded != s_epoch && !MOVING && !IN_RING ->
        complete = s_epoch;
        concluded = s_epoch
    }
    od
}

active proctype receiver() {
    byte e;
    do
    :: e < E ->
        d_step {
            e++;
            r_epoch = e;
            r_active = true;
            waiting = G;
            clear_to_send = e
        };
        // Wait, and the user's kernels have ended.
        if
        :: complete >= e
#ifdef TEST
        :: FLAGS(e)
#endif
        fi;
        assert(FLAGS(e));
        d_step {
            waiting == 0 ->
            assert(landing[0] == e && landing[LAST] == e);
            r_active = false
        }
    :: else -> break
    od
}
