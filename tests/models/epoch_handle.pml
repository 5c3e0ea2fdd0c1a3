// SPDX-License-Identifier: BSD-3-Clause
//
// Epoch handles. Groups of one GPU send to themselves, and start the epochs of the send and of the receive. What they
// know of the running epoch is in registers. docs/protocol-proofs.md maps each step to the code.
//
// The pair is a group of two members, the leader and the last one, and readies partition 0; the single thread readies partition 1.
// What is modelled:
//   INLINE     the receiver has an inline buffer, which a group takes the partitions out of. Otherwise small partitions
//              go as words, after a claim that was undone.
//   BY_SINGLE  the single thread starts the epochs, of the send and later of the receive; it writes the whole send
//              buffer. Otherwise the pair starts both at once.
//   TURNS      each starts one of two. The pair's handles are then of an older epoch, and so is the single thread's.
//   OLD        the single thread may also call Pready for partition 0 with a handle of the epoch before.
//   TWICE      it calls Pready for partition 0, too, with a handle of the running epoch.
// -DWITHOUT_x leaves one order, check or step out; each must make an assertion fail, or somebody wait for ever.
//
// Memory: a relaxed store is pending, and becomes visible at any time. A barrier makes the members' stores visible to
// their GPU; a fence of one member makes those visible to the system that the group has stored before its barrier. A
// load is pending until its value is needed, or until a fence. A store that depends on a load comes after it only if
// that load acquires: without, it may be performed before the load, if that goes well.
//
// Waiting is a guard that blocks. So a wait that nobody ends is an invalid end state.

#define E 3
#define N 2

// Bytes: 0 and 1 are of partition 0, one for each member of the pair; 2 is of partition 1. A byte's value is the epoch
// in which it was written.
#define BYTES 3

// The send: in the GPU's memory, and what the engine knows.
byte state[N], ready_count, defer_epoch, told, s_number;
byte ring[N], all_ready, concluded;
byte out[BYTES];
// The receive.
byte clear_to_send, host_clear_to_send, r_number, flag[N];
byte bytes[BYTES], bytes_pending[BYTES];
byte box[BYTES], box_pending[BYTES];  // packets: TAG(epoch, value)
#define TAG(e, v) ((e) * 4 + (v))

// Stores of the pair's members that are pending: the undone claim, plus one; the numbers of the epoch that has begun.
byte undo, s_pending, r_pending;
// Loads of the receive buffer that are pending: by whom, and what they want.
byte late[3];

// What the user's groups tell each other: the epoch of the send that has begun; the epoch that the pair is through with.
byte begun, through;

// Of the properties: the running epochs, and the last epoch in which a partition was counted, and a byte loaded.
byte s_running, r_running, counted[N], loaded[BYTES];

chan up = [0] of { bit };
chan down = [0] of { bit };

#define LEADER (me != 1)
#define TELLER (me != 0)
#define SINGLE (me == 2)

inline begins(number, pending) {
    assert(pending > number);  // no number goes back
    number = pending;
    pending = 0
}

// What a barrier of the pair does to memory.
inline settle() {
    if
    :: undo -> state[0] = undo - 1; undo = 0
    :: else
    fi;
    if
    :: s_pending -> begins(s_number, s_pending)
    :: else
    fi;
    if
    :: r_pending -> begins(r_number, r_pending)
    :: else
    fi
}

// A vote of all members, or the leader's word for all; a barrier as well.
inline vote(mine) {
    if
    :: SINGLE -> all = (mine)
    :: me == 0 ->
        atomic { up?all; all = all && (mine); settle() };
        down!all
    :: me == 1 ->
        up!(mine);
        down?all
    fi
}
inline barrier() { vote(true) }

inline bytes_visible(i) {
    assert(r_running >= bytes_pending[i]);  // only where the receive buffer is given for that epoch
    bytes[i] = bytes_pending[i];
    bytes_pending[i] = 0
}
inline box_visible(i) {
    assert(r_running >= box_pending[i] / 4 && box[i] / 4 < box_pending[i] / 4);
    box[i] = box_pending[i];
    box_pending[i] = 0
}
inline read_now(who) {
    assert(bytes[0] == late[who] && bytes[1] == late[who] && bytes[2] == late[who]);
    late[who] = 0
}

active proctype memory() {
end:
    do
    :: d_step { undo -> state[0] = undo - 1; undo = 0 }
    :: d_step { s_pending -> begins(s_number, s_pending) }
    :: d_step { r_pending -> begins(r_number, r_pending) }
#ifdef INLINE
    :: d_step { box_pending[0] -> box_visible(0) }
    :: d_step { box_pending[1] -> box_visible(1) }
    :: d_step { box_pending[2] -> box_visible(2) }
#else
    :: d_step { bytes_pending[0] -> bytes_visible(0) }
    :: d_step { bytes_pending[1] -> bytes_visible(1) }
    :: d_step { bytes_pending[2] -> bytes_visible(2) }
    :: d_step { late[0] -> read_now(0) }
    :: d_step { late[1] -> read_now(1) }
    :: d_step { late[2] -> read_now(2) }
#endif
    od
}

// ---- the progress engine -----------------------------------------------------------------------------

inline move(p) {
    assert(r_running >= ring[p] && flag[p] < ring[p]);
    if
    :: p == 0 ->
        assert(out[0] == ring[0] && out[1] == ring[0]);
        bytes[0] = ring[0];
        bytes[1] = ring[0]
    :: else ->
        assert(out[2] == ring[1]);
        bytes[2] = ring[1]
    fi;
    flag[p] = ring[p];
    ring[p] = 0
}

active proctype engine() {
end:
    do
    :: d_step { ring[0] && host_clear_to_send >= ring[0] -> move(0) }
    :: d_step { ring[1] && host_clear_to_send >= ring[1] -> move(1) }
    :: d_step { all_ready > concluded && !ring[0] && !ring[1] -> concluded = all_ready }
    od
}

// ---- Pready ------------------------------------------------------------------------------------------

inline count(p, e) {
    d_step {
        assert(counted[p] == e - 1);
        counted[p] = e;
        ready_count++;
        last = (ready_count == e * N)
    };
    if
    :: last ->
        d_step {
            assert(state[0] == e && state[1] == e);
            told = 2 * e + (defer_epoch == e);
            if
            :: defer_epoch == e -> all_ready = e
            :: else
            fi;
            last = false
        }
    :: else
    fi
}

// Byte i of the send buffer to the receiver. `early`: as loaded before it was needed, or 0.
inline put(i, e, early) {
    loaded[i] = e;
#ifdef INLINE
    box_pending[i] = TAG(e, (early -> early : out[i]))
#else
    bytes_pending[i] = (early -> early : out[i])
#endif
}
inline put_mine(p) {
    d_step {
        assert(!too_early);
        if
        :: !SINGLE -> put(me, h, payload)
        :: SINGLE && p == 0 -> put(0, h, 0); put(1, h, 0)
        :: else -> put(2, h, 0)
        fi;
        payload = 0
    }
}
inline fence_and_flag(p, e) {
    skip;
#ifndef INLINE
    if
    :: p == 0 ->
        if
        :: bytes_pending[0] -> bytes_visible(0)
        :: else
        fi;
        if
        :: bytes_pending[1] -> bytes_visible(1)
        :: else
        fi
    :: else ->
        if
        :: bytes_pending[2] -> bytes_visible(2)
        :: else
        fi
    fi;
    assert(flag[p] < e);
    flag[p] = e
#endif
}

// A call on the request: what the leader finds out, and what then happens to the partition, is one step here.
inline ready_by_request(p) {
    if
    :: LEADER ->
        d_step {
            assert(s_number == s_running);
            e = s_number;
            refused = (state[p] >= e);
            if
            :: refused
            :: !refused && (clear_to_send >= e || host_clear_to_send >= e) ->
                state[p] = e;
                if
                :: p == 0 -> put(0, e, 0); put(1, e, 0)
                :: else -> put(2, e, 0)
                fi;
                fence_and_flag(p, e)
            :: else ->
                state[p] = e;
                defer_epoch = e;
                ring[p] = e
            fi
        };
        if
        :: !refused -> count(p, e)
        :: else
        fi;
        e = 0
    :: else
    fi;
    vote(!LEADER || !refused);
    refused = !all
}

#ifdef WITHOUT_EPOCH_OF_CLEAR_TO_SEND
#define IS_CLEAR (clear || clear_to_send != 0)
#else
#define IS_CLEAR (clear || clear_to_send >= h)
#endif
#ifdef WITHOUT_CLAIM_CHECK
#define HAS_CLAIM true
#else
#define HAS_CLAIM (before < h)
#endif
#ifdef WITHOUT_UNDO_CHECK
#define UNDOES true
#else
#define UNDOES (before < h)
#endif

// A call with a handle. `refused` is its result.
inline ready_by_handle(p) {
    again = false;
    refused = false;
    do
    ::
#ifndef WITHOUT_BARRIER_OF_BYTES
        barrier();
#endif
        // The claim, by the last member, and the loads, which are under way together.
        before = 0;
#ifndef WITHOUT_CLAIM
        if
        :: TELLER ->
            d_step {
                before = state[p];
                state[p] = (h > before -> h : before)
            }
        :: else
        fi;
#endif
        if
        :: !SINGLE -> payload = out[me]
        :: payload = 0
        fi;
#ifdef WITHOUT_ACQUIRE_OF_CLEAR_TO_SEND
        too_early = (r_running < h || late[0] || late[1] || late[2]);  // a store now
#endif
        // It may give up looking.
        d_step { open = IS_CLEAR && HAS_CLAIM };
#ifdef INLINE
#ifdef WITHOUT_VOTE_OF_CLEAR_TO_SEND
        vote(true);
        all = open;
#else
        vote(open);
#endif
        if
        :: all ->
            put_mine(p);
#ifndef WITHOUT_BARRIER_BEFORE_COUNT
            barrier();
#endif
            if
            :: TELLER -> count(p, h)
            :: else
            fi;
            break
        :: else
        fi;
#else
        vote(false);
#endif
#ifndef WITHOUT_UNDO
        if
        :: TELLER && UNDOES ->
            if
            :: SINGLE -> state[p] = before
            :: else -> undo = before + 1
            fi
        :: else
        fi;
#endif
#ifndef WITHOUT_BARRIER_OF_UNDO
        vote(open);
#ifndef INLINE
        if
        :: all ->
            put_mine(p);
#ifndef WITHOUT_BARRIER_BEFORE_FLAG
            barrier();
#endif
            if
            :: LEADER ->
                d_step {
                    before = state[p];
                    state[p] = (h > before -> h : before);
                    refused = (before >= h);
                    if
                    :: !refused -> fence_and_flag(p, h)
                    :: else
                    fi
                }
            :: else
            fi;
            vote(!LEADER || !refused);
            refused = !all;
            if
            :: LEADER && !refused -> count(p, h)
            :: else
            fi;
            break
        :: else
        fi;
#endif
#endif
        // Nothing was stored.
        d_step { payload = 0; too_early = false };
#ifndef WITHOUT_READY_CHECK
        vote(!LEADER || state[p] < h);
        if
        :: !all -> refused = true; break
        :: else
        fi;
#endif
        // It waits a moment for clear-to-send, and tries again.
        vote(!LEADER || (!again && clear_to_send >= h));
        if
        :: all -> again = true
        :: else -> ready_by_request(p); break
        fi
    od;
    skip;
    d_step { again = false; open = false; before = 0; payload = 0; all = false; too_early = false }
}

// ---- the receive -------------------------------------------------------------------------------------

#define IS_THERE(i, p) (box[i] / 4 == r || flag[p] >= r)
inline take(i, p) {
    if
    :: flag[p] < r ->
        assert(box[i] % 4 == r);
        bytes[i] = r
    :: else
    fi
}
inline wait_arrived() {
#ifdef INLINE
    if
    :: me == 0 -> IS_THERE(0, 0) && IS_THERE(2, 1)
    :: me == 1 -> IS_THERE(1, 0)
    :: SINGLE -> IS_THERE(0, 0) && IS_THERE(1, 0) && IS_THERE(2, 1)
    fi;
    d_step {
        if
        :: me == 0 -> take(0, 0); take(2, 1)
        :: me == 1 -> take(1, 0)
        :: SINGLE -> take(0, 0); take(1, 0); take(2, 1)
        fi
    };
    barrier();
    d_step {
        assert(bytes[0] == r && bytes[1] == r && bytes[2] == r);
        if
        :: TELLER -> flag[0] = r; flag[1] = r
        :: else
        fi
    }
#else
    flag[0] >= r && flag[1] >= r;
    barrier();
    late[me] = r
#endif
}

// ---- next_epoch --------------------------------------------------------------------------------------

#ifdef WITHOUT_NUMBER_OF_SEND
#define SEND_IS_MINE true
#else
#define SEND_IS_MINE (s_number <= h)
#endif
#ifdef WITHOUT_NUMBER_OF_RECEIVE
#define RECEIVE_IS_MINE true
#else
#define RECEIVE_IS_MINE (r_number <= r)
#endif
#ifdef WITHOUT_ENGINE_CHECK
#define SENT (told / 2 >= h)
#else
#define SENT (told / 2 >= h && told % 2 == 0)
#endif

inline look_at_ends(sends, receives) {
    d_step {
        over = true;
        if
        :: receives ->
            over = (!TELLER || RECEIVE_IS_MINE);
            over = over && (!LEADER || flag[0] >= r) && (!TELLER || flag[1] >= r)
        :: else
        fi;
        if
        :: sends && TELLER -> over = over && SEND_IS_MINE && SENT
        :: else
        fi
    }
}

// follow_epoch of a send's handle: it has to look for clear-to-send from now on.
inline follow() {
    h = h + 1;
#ifndef WITHOUT_LOOK_AFTER_FOLLOW
    clear = false
#endif
}

inline begin(sends, receives) {
    if
    :: sends ->
        if
        :: LEADER ->
            d_step {
                // The epoch that is over is the running one.
                assert(h == s_running && counted[0] == h && counted[1] == h && !ring[0] && !ring[1]);
                assert(told / 2 == h);
                s_running = h + 1;
                s_pending = h + 1;
                if
                :: SINGLE -> begins(s_number, s_pending)
                :: else
                fi
            }
        :: else
        fi;
        d_step { follow() }
    :: else
    fi;
    if
    :: receives ->
        if
        :: TELLER ->
            d_step {
                assert(r == r_running && flag[0] == r && flag[1] == r);
                r_running = r + 1;
                r_pending = r + 1;
                if
                :: SINGLE -> begins(r_number, r_pending)
                :: else
                fi
            }
        :: else
        fi;
        r = r + 1
    :: else
    fi;
#ifndef WITHOUT_BARRIER_OF_BEGIN
    barrier();
#endif
    if
    :: receives && TELLER ->
#if !defined(WITHOUT_RELEASE_OF_READS) && !defined(INLINE)
        d_step {
            if
            :: late[0] -> read_now(0)
            :: else
            fi;
            if
            :: late[1] -> read_now(1)
            :: else
            fi;
            if
            :: late[2] -> read_now(2)
            :: else
            fi
        };
#endif
        // In any order.
        if
        :: clear_to_send = r; host_clear_to_send = r
        :: host_clear_to_send = r; clear_to_send = r
        fi
    :: else
    fi
}

// By what the handles know. `over` is the result.
inline next_known(sends, receives) {
#ifdef WITHOUT_BOTH
    if
    :: sends && receives -> next_of(1, 0); next_of(0, 1)
    :: else -> next_of(sends, receives)
    fi
#else
    next_of(sends, receives)
#endif
}
inline next_of(sends, receives) {
#ifndef WITHOUT_BARRIER_FIRST
    barrier();
#endif
#ifdef WITHOUT_ACQUIRE_OF_TOLD
    too_early = (sends && (loaded[0] < h || loaded[1] < h || loaded[2] < h));  // the user's store to the buffer now
#endif
    look_at_ends(sends, receives);
#ifdef WITHOUT_VOTE_OF_ENDS
    vote(true);
#else
    vote(over);
    over = all;
#endif
    if
    :: over ->
        assert(!too_early);
        begin(sends, receives)
    :: else
    fi;
    too_early = false
}
// The same by the requests.
inline next_all(sends, receives) {
    barrier();
    if
    :: sends ->
        told / 2 >= s_number && (told % 2 == 0 || concluded >= s_number);
        h = s_number
    :: else
    fi;
    if
    :: receives ->
        flag[0] >= r_number && flag[1] >= r_number;
        r = r_number
    :: else
    fi;
    barrier();
    begin(sends, receives)
}
inline next_epoch(sends, receives) {
    next_known(sends, receives);
    if
    :: !over -> next_all(sends, receives)
    :: else
    fi;
    d_step { over = false; all = false }
}

// ---- the user's groups -------------------------------------------------------------------------------

// To the other group, by one member; what that has stored comes before.
inline tell_begun() {
    d_step {
        if
        :: LEADER && s_pending -> begins(s_number, s_pending)
        :: else
        fi;
        if
        :: TELLER && r_pending -> begins(r_number, r_pending)
        :: else
        fi;
        begun = h
    }
}

inline fill_mine() {
    if
    :: SINGLE -> out[2] = h
    :: else -> out[1 - me] = h
    fi
}
inline fill_all() {
    d_step { out[0] = h; out[1] = h; out[2] = h }
}

// A call that has to be refused.
#if defined(TURNS)
#define IS_OLD (SINGLE && turn == 3)
#elif defined(OLD)
#define IS_OLD (turn == 1)
#else
#define IS_OLD false
#endif
#if !defined(BY_SINGLE) && !defined(TURNS)
#define BY_PAIR
#endif

proctype member(byte me) {
    byte h = 1, r = 1, p = (SINGLE -> 1 : 0), e, payload, before, turn;
    bool clear = true, again, refused, open, all, last, over, too_early;
    do
    ::
#ifdef OLD
        // First, maybe, a call with what it knew in the epoch before.
        if
        :: SINGLE && turn == 0 && h > 1 -> turn = 1; p = 0; h = h - 1
        :: turn = 0
        fi;
#endif
#ifdef TWICE
        if
        :: SINGLE && turn == 0 -> turn = 1; p = 0; out[0] == h && out[1] == h
        :: else -> turn = 0
        fi;
#endif
#ifdef BY_PAIR
        if
        :: SINGLE && turn == 0 && h == 2 -> ready_by_request(1)
        :: else -> ready_by_handle(p)
        fi;
#else
        ready_by_handle(p);
#endif
#ifdef TWICE
        assert(!refused || p == 0);  // of two callers one is refused
#else
        assert(refused == IS_OLD);
#endif
        if
#if defined(BY_SINGLE)
        :: SINGLE ->
            if
            :: h < E ->
                next_epoch(1, 0);
                fill_all();
                tell_begun()
            :: else
            fi;
            wait_arrived();
            if
            :: r == E -> break
            :: else -> next_epoch(0, 1)
            fi
        :: !SINGLE && h == E -> break
        :: !SINGLE && h < E ->
            d_step { follow() };
            if
            :: LEADER -> begun >= h
            :: else
            fi
#elif defined(TURNS)
        // Partition 0 of epoch 2, then partition 1; in epoch 3 the handle is of epoch 2.
        :: SINGLE && turn == 1 -> turn = 2; p = 1
        :: SINGLE && turn == 3 -> ready_by_request(1); assert(!refused); break
        :: else ->
            if
            :: SINGLE && turn == 0 -> through == 1
            :: else -> wait_arrived(); barrier()
            fi;
            if
            :: turn == 0 ->
                if
                :: SINGLE
                :: !SINGLE && TELLER -> through = 1
                :: !SINGLE && LEADER -> begun == 2  // it alone is told; it holds handles of epoch 1
                fi;
                next_epoch(1, 0);
                next_epoch(0, 1);
                if
                :: SINGLE -> fill_all(); p = 0
                :: else -> tell_begun(); fill_mine()
                fi;
                turn = 1
            :: turn == 1 -> break
            :: turn == 2 -> begun = 2; begun == 3; out[2] = 3; turn = 3
            fi
#else
        :: SINGLE && turn == 1 ->
            p = 1;
#ifdef OLD
            h = h + 1
#endif
        :: SINGLE && turn == 0 ->
            if
            :: h == E -> break
            :: else -> begun > h
            fi;
            d_step { follow(); fill_mine() }
        :: !SINGLE ->
#ifndef INLINE
            // Not waited for, it may be over all the same.
            if
            :: h < E ->
                next_known(1, 1);
                assert(h == r)  // both go on, or neither
            :: else
            fi;
#endif
            if
            :: !over ->
                wait_arrived();
                if
                :: h == E -> break
                :: else -> next_epoch(1, 1)
                fi
            :: else
            fi;
            over = false;
            tell_begun();
            fill_mine()
#endif
        fi
    od
}

init {
    d_step {
        out[0] = 1;
        out[1] = 1;
        out[2] = 1;
        s_number = 1;
        s_running = 1;
        r_number = 1;
        r_running = 1;
        clear_to_send = 1;
        host_clear_to_send = 1;
        begun = 1
    };
    atomic { run member(0); run member(1); run member(2) }
}
