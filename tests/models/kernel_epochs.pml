// SPDX-License-Identifier: BSD-3-Clause
//
// Epochs that kernels start: a send with two callers of Pready, and a receive, over activations of several epochs each.
// Clear-to-send between kernels, partitions left to the progress engine, the end of an epoch in a kernel, and the
// hand-over to the hosts' Wait. docs/protocol-proofs.md maps each step to the code.
//
// What is modelled:
//   KERNEL_WORD   the receiver's kernel reaches a word in the sender's GPU; otherwise it only reaches the host's.
//   ENGINE_TELLS  the receiver's kernel reaches neither, so its engine gives clear-to-send.
//   HOST_WAITS    the kernels do not wait for the last epoch of an activation; their hosts do.
//   UNEVEN        the activations of the two sides have different lengths.
//   BY_HOST       the receiver's host runs each of its epochs.
//   TURNS         the blocks take turns to ready all partitions of an epoch; otherwise each readies one.
// -DWITHOUT_x leaves one fence, check or step out; each must make an assertion fail, or somebody wait for ever.
//
// Memory: as in deferral.pml, a store of a GPU's thread is pending, and becomes visible at any time and in any order. A
// release at device scope hands the thread's stores to its GPU, and a system fence of any of its threads takes those on
// to the system. A load whose value nobody has needed yet is pending, too, until a fence of its thread. The hosts store
// in program order. What Pready does with one partition is in deferral.pml, and one step here.
//
// A kernel begins after its host's Start, and its host calls Wait after it has ended: then all its stores are visible.
// The sender's second block goes on after start, by a barrier; start does not wait for it. The receiver's other blocks
// have read the message at a barrier before start.
//
// Waiting is a guard that blocks. So a wait that nobody ends is an invalid end state.

#ifndef E
#define E 3
#endif
#define N 2

// Which partitions the block that starts the epochs readies; the other block readies the rest.
#ifdef TURNS
#define BY_LEADER(e, p) ((e) % 2 == 0)
#else
#define BY_LEADER(e, p) ((p) == 0)
#endif

// Where an activation ends.
#if defined(UNEVEN)
#define S_ENDS(e) ((e) == 3 || (e) == E)
#define R_ENDS(e) ((e) == 1 || (e) == E)
#elif defined(BY_HOST)
#define S_ENDS(e) ((e) == E)
#define R_ENDS(e) true
#else
#define S_ENDS(e) ((e) == 2 || (e) == E)
#define R_ENDS(e) ((e) == 2 || (e) == E)
#endif

// Words that a GPU's threads write. No value stored is 0, so a pending 0 means none. The sender's, of two threads:
#define COMPLETE 0
#define ALL_READY 1
#define RING(k) (2 + (k))
#define S_KERNEL 4       // words.kernel_epoch
#define SYSTEM_WORDS 5
#define DEFER_EPOCH 5    // in its own GPU
#define WORDS 6
// The receiver's, of one thread:
#define KERNEL_WORD_AT 6  // kernel_clear_to_send, in the sender's GPU
#define CLEAR_TO_SEND 7
#define R_KERNEL 8
#define ALL_WORDS 9

#define ENTRY(e, p) ((e) * 4 + (p))

byte mem[ALL_WORDS];
byte pending[2 * WORDS], device[SYSTEM_WORDS], r_pending[3];
#define PEND(t, l) pending[(t) * WORDS + (l)]
#define R_PEND(l) r_pending[(l) - WORDS]

// The message: the epoch whose bytes are in the receive buffer, and the arrival flags.
byte bytes[N], flag[N];

// The sender's GPU.
byte ready_count, defer_count, s_seen, s_clear, s_started, s_waited, told, both_started;
// Its host.
byte s_epoch, ring_taken, ring_at_start, engine_moves, concluded, concluded_word;
bool s_active, engine;
// The receiver's GPU, and its host.
byte r_seen, r_started, r_waited, r_epoch;
bool r_active, r_engine;
byte late_read;  // the epoch whose bytes a pending load wants

// Kernels that run: the first epoch of the activation, or 0. And what the sender's two blocks tell each other: the epoch
// that has begun, and the last one in which the second block has done its share.
byte s_kernel, r_kernel, begun, other_done;

// Of the properties.
byte given;                // the last epoch for which the receive buffer was given
byte moved[N], all_told;   // the last epoch in which a partition was; in which the receiver was told of all

hidden byte k;

inline visible(l, v) {
    assert(v >= mem[l]);  // no word goes back
    mem[l] = v
}

// A caller's system fence.
inline fence_acq_rel(t) {
    k = 0;
    do
    :: k < WORDS ->
        if
        :: k < SYSTEM_WORDS && device[k] -> visible(k, device[k]); device[k] = 0
        :: else
        fi;
        if
        :: PEND(t, k) -> visible(k, PEND(t, k)); PEND(t, k) = 0
        :: else
        fi;
        k++
    :: else -> break
    od
}

// What a release at device scope does first.
inline release_gpu(t) {
    k = 0;
    do
    :: k < SYSTEM_WORDS ->
        if
        :: PEND(t, k) -> device[k] = PEND(t, k); PEND(t, k) = 0
        :: else
        fi;
        k++
    :: else -> break
    od;
    if
    :: PEND(t, DEFER_EPOCH) -> visible(DEFER_EPOCH, PEND(t, DEFER_EPOCH)); PEND(t, DEFER_EPOCH) = 0
    :: else
    fi
}

// A store to the receive buffer: only where it is given for that epoch.
inline store_bytes(p, e) {
    assert(given == e && moved[p] == e - 1);
    moved[p] = e;
    bytes[p] = e
}

inline tells(e) {
    assert(all_told == e - 1 && moved[0] == e && moved[1] == e);
    all_told = e
}

// ---- the sender's kernel -----------------------------------------------------------------------------

#ifdef WITHOUT_EPOCH_OF_CLEAR_TO_SEND
#define KERNEL_GIVES(e) (mem[KERNEL_WORD_AT] != 0)
#else
#define KERNEL_GIVES(e) (mem[KERNEL_WORD_AT] >= (e))
#endif

#define NOW 1
#define LATER 2

// The running epoch, as the host's word and the kernel's say.
#define S_NUMBER (s_started > s_epoch -> s_started : s_epoch)

inline admit_by_host() {
    d_step {
        assert(s_active && s_waited < S_NUMBER);  // not refused
        e = S_NUMBER;
        s_seen = (e > s_seen -> e : s_seen);
        what = (mem[CLEAR_TO_SEND] >= e -> NOW : LATER);
        s_clear = mem[CLEAR_TO_SEND]
    }
}

inline admit() {
    what = 0;
    d_step {
        e = s_seen;
        if
        :: e >= 2 && ready_count < e * N && s_clear >= e -> what = NOW
#ifdef KERNEL_WORD
        :: e >= 2 && ready_count < e * N && s_clear < e && KERNEL_GIVES(e) ->
            what = NOW;
            s_clear = e;
            both_started = e
#endif
        :: else
        fi
    };
    if
    :: what == 0 -> admit_by_host()
    :: else
    fi
}

#ifdef WITHOUT_BOTH_CHECK
#define BOTH_STARTED (s_started == e)
#else
#define BOTH_STARTED (both_started == e)
#endif
#ifdef WITHOUT_QUIET_DEFER_CHECK
#define ALL_STORED true
#else
#define ALL_STORED (mem[DEFER_EPOCH] != e)
#endif

// Of an epoch that kernels of both sides have started nobody tells the hosts.
inline say_all_ready() {
    if
    :: BOTH_STARTED && ALL_STORED ->
        d_step {
            tells(e);
            release_gpu(t);
            told = e
        }
    :: else -> tell_hosts()
    fi
}

inline tell_hosts() {
    d_step {
        fence_acq_rel(t);
        what = (mem[DEFER_EPOCH] == e -> LATER : NOW);
        if
        :: what == NOW -> tells(e); PEND(t, COMPLETE) = e
        :: else
        fi
    };
    d_step { PEND(t, ALL_READY) = e };
    d_step {
#ifndef WITHOUT_RELEASE_OF_TOLD
        release_gpu(t);
#endif
        told = e
    }
}

inline ready(p) {
    admit();
    if
    :: what == NOW -> d_step { store_bytes(p, e); flag[p] = e }
    :: what == LATER ->
        d_step {
            fence_acq_rel(t);
            PEND(t, DEFER_EPOCH) = e;
            PEND(t, RING(defer_count % N)) = ENTRY(e, p);
            defer_count++
        }
    fi;
    d_step {
        release_gpu(t);
        ready_count++;
        what = ready_count
    };
    if
    :: what == e * N -> say_all_ready()
    :: else
    fi;
    d_step { e = 0; what = 0 }
}

#ifdef WITHOUT_TOLD_CHECK
#define ALL_SAID (ready_count >= e * N)
#else
#define ALL_SAID (told >= e)
#endif
#ifdef WITHOUT_DEFER_CHECK
#define NOTHING_LEFT true
#else
#define NOTHING_LEFT (mem[DEFER_EPOCH] != e || concluded_word >= e)
#endif

inline wait_of_send() {
    d_step {
        if
        :: s_seen != 0 && s_started == s_seen -> e = s_seen
        :: else -> e = S_NUMBER
        fi;
        what = (s_active && s_waited < e)
    };
    if
    :: what -> ALL_SAID; NOTHING_LEFT
    :: else
    fi;
    // The epoch that the user means is over, and the buffer is the user's.
    assert(moved[0] == begun && moved[1] == begun && all_told == begun);
    d_step { s_seen = (e > s_seen -> e : s_seen); s_waited = e; e = 0; what = 0 }
}

inline start_of_send() {
    d_step {
        assert(s_waited == s_seen);
        e = s_seen + 1;
        s_started = e;
        s_seen = e;
        PEND(t, S_KERNEL) = e;
        begun = e;
        e = 0
    }
}

// The block that also waits and starts.
active proctype leader() {
    byte t = 0, e, what;
end:
    do
    :: s_kernel ->
        begun = s_kernel;
        do
        :: if
            :: BY_LEADER(begun, 0) -> ready(0)
            :: else
            fi;
            if
            :: BY_LEADER(begun, 1) -> ready(1)
            :: else
            fi;
            if
            :: S_ENDS(begun) ->
#ifndef HOST_WAITS
                wait_of_send();
#endif
                other_done == begun;
                break
            :: else ->
                wait_of_send();
                start_of_send()
            fi
        od;
        skip;
        // The kernel ends.
        d_step {
            fence_acq_rel(0);
            fence_acq_rel(1);
            s_kernel = 0
        }
    od
}

active proctype other() {
    byte t = 1, e, what, mine;
end:
    do
    :: begun > mine ->
        mine = begun;
        if
        :: !BY_LEADER(mine, 0) -> ready(0)
        :: else
        fi;
        if
        :: !BY_LEADER(mine, 1) -> ready(1)
        :: else
        fi;
        other_done = mine
    od
}

// ---- the receiver's kernel ---------------------------------------------------------------------------

inline read_now() {
    assert(bytes[0] == late_read);
    late_read = 0
}

inline r_fence() {
    if
    :: late_read -> read_now()
    :: else
    fi;
    k = WORDS;
    do
    :: k < ALL_WORDS ->
        if
        :: R_PEND(k) -> visible(k, R_PEND(k)); R_PEND(k) = 0
        :: else
        fi;
        k++
    :: else -> break
    od
}

inline wait_of_receive() {
    d_step {
        if
        :: r_seen != 0 && r_started == r_seen -> e = r_seen
        :: else -> e = (r_started > r_epoch -> r_started : r_epoch)
        fi;
        what = (r_active && r_waited < e);
        r_seen = (e > r_seen -> e : r_seen)
    };
    if
    :: what -> flag[0] >= e; flag[1] >= e
    :: else
    fi;
    d_step {
        // What other blocks read comes before a barrier.
        assert(flag[0] == mine && flag[1] == mine && bytes[1] == mine);
        r_waited = e;
        late_read = mine;
        what = 0
    }
}

inline start_of_receive() {
    d_step {
        assert(r_waited == r_seen);
        e = r_seen + 1;
        r_started = e;
        r_seen = e;
        mine = e;
        given = e
    };
#if defined(KERNEL_WORD)
#ifdef WITHOUT_RELEASE_TO_KERNEL
    R_PEND(KERNEL_WORD_AT) = e;
#endif
#endif
#ifdef WITHOUT_RELEASE_TO_HOST
    R_PEND(CLEAR_TO_SEND) = e;
#endif
#ifdef WITHOUT_RELEASE_TO_ENGINE
    R_PEND(R_KERNEL) = e;
#endif
    d_step { r_fence() };
    d_step {
        skip;
#if defined(KERNEL_WORD) && !defined(WITHOUT_RELEASE_TO_KERNEL)
        R_PEND(KERNEL_WORD_AT) = e;
#endif
#if !defined(ENGINE_TELLS) && !defined(WITHOUT_RELEASE_TO_HOST) && !defined(WITHOUT_CLEAR_OF_KERNEL)
        R_PEND(CLEAR_TO_SEND) = e;
#endif
#ifndef WITHOUT_RELEASE_TO_ENGINE
        R_PEND(R_KERNEL) = e;
#endif
        e = 0
    }
}

active proctype reader() {
    byte e, mine, what;
end:
    do
    :: r_kernel ->
        mine = r_kernel;
        do
        :: R_ENDS(mine) ->
#ifndef HOST_WAITS
            wait_of_receive();
#endif
            break
        :: else ->
            wait_of_receive();
            start_of_receive()
        od;
        skip;
        d_step {
            r_fence();
            e = 0;
            mine = 0;
            what = 0;
            r_kernel = 0
        }
    od
}

// Any pending store becomes visible at any time, or first to the device; any pending load is performed.
#define DRAIN(t, l) ::d_step { PEND(t, l) -> visible(l, PEND(t, l)); PEND(t, l) = 0 }
#define DRAIN_DEVICE(l) ::d_step { device[l] -> visible(l, device[l]); device[l] = 0 }
#define R_DRAIN(l) ::d_step { R_PEND(l) -> visible(l, R_PEND(l)); R_PEND(l) = 0 }

active proctype memory() {
end:
    do
        DRAIN(0, COMPLETE) DRAIN(1, COMPLETE) DRAIN_DEVICE(COMPLETE)
        DRAIN(0, ALL_READY) DRAIN(1, ALL_READY) DRAIN_DEVICE(ALL_READY)
        DRAIN(0, RING(0)) DRAIN(1, RING(0)) DRAIN_DEVICE(RING(0))
        DRAIN(0, RING(1)) DRAIN(1, RING(1)) DRAIN_DEVICE(RING(1))
        DRAIN(0, S_KERNEL) DRAIN_DEVICE(S_KERNEL)
        DRAIN(0, DEFER_EPOCH) DRAIN(1, DEFER_EPOCH)
        R_DRAIN(KERNEL_WORD_AT)
        R_DRAIN(CLEAR_TO_SEND)
        R_DRAIN(R_KERNEL)
    :: d_step { late_read -> read_now() }
    od
}

// ---- the sender's host -------------------------------------------------------------------------------

inline begin_epoch(number) {
    s_epoch = number;
#ifndef WITHOUT_NEW_RING
    ring_at_start = ring_taken;
#endif
#ifndef WITHOUT_NEW_MOVES
    engine_moves = 0
#endif
}

#define RING_SHOWS (ring_taken - ring_at_start < N && mem[RING(ring_taken % N)] / 4 == s_epoch)

active proctype sender() {
    byte last, first;
    do
    :: last < E ->
        atomic {
            !engine ->
            begin_epoch(last + 1);
            ring_at_start = ring_taken;
            engine_moves = 0;
            s_active = true;
            first = s_epoch;
            s_kernel = s_epoch
        };
        s_kernel == 0;
        last = begun;
        // Wait
#ifndef WITHOUT_FOLLOW_OF_SEND
        if
        :: atomic { !engine && mem[S_KERNEL] > s_epoch -> begin_epoch(mem[S_KERNEL]) }
        :: mem[S_KERNEL] <= s_epoch
        fi;
#endif
#ifdef WITHOUT_LOOK_OF_SEND
        mem[ALL_READY] >= s_epoch;
#else
        mem[ALL_READY] >= s_epoch || (s_epoch > first && told >= s_epoch);
#endif
        atomic {
            !engine && (concluded == s_epoch ||
                        (engine_moves == 0 && mem[RING(ring_taken % N)] / 4 != s_epoch)) ->
            assert(s_epoch == last);
            assert(moved[0] == last && moved[1] == last && all_told == last);
#ifndef WITHOUT_TAKING_BACK_OF_SEND
            s_started = 0;
#endif
            s_active = false
        }
    :: else -> break
    od
}

active proctype progress() {
    byte p;
end:
    do
#ifndef WITHOUT_FOLLOW_IN_ENGINE
    :: atomic { !engine && s_active && mem[S_KERNEL] > s_epoch -> begin_epoch(mem[S_KERNEL]) }
#endif
    :: atomic { !engine && s_active && mem[CLEAR_TO_SEND] >= s_epoch && RING_SHOWS ->
        engine = true;
        p = mem[RING(ring_taken % N)] % 4;
        ring_taken++;
        engine_moves++
    };
        d_step { store_bytes(p, s_epoch); flag[p] = s_epoch; p = 0; engine = false }
    :: atomic { !engine && s_active && engine_moves != 0 && concluded != s_epoch && mem[ALL_READY] >= s_epoch && !RING_SHOWS ->
        engine = true
    };
#ifdef WITHOUT_CONCLUDED_LAST
        concluded_word = s_epoch;
#endif
        d_step { tells(s_epoch); visible(COMPLETE, s_epoch) };
        concluded = s_epoch;
#ifndef WITHOUT_CONCLUDED_LAST
        concluded_word = s_epoch;
#endif
        engine = false
    od
}

// ---- the receiver's host -----------------------------------------------------------------------------

active proctype receiver() {
    byte last, first;
    do
    :: last < E ->
        atomic {
            !r_engine ->
            r_epoch = last + 1;
            r_active = true;
            given = r_epoch;
            visible(CLEAR_TO_SEND, r_epoch)
        };
        last = r_epoch;
        first = last;
        r_kernel = last;
        r_kernel == 0;
        last = given;
        // Wait
#ifndef WITHOUT_FOLLOW_OF_RECEIVE
        atomic {
            !r_engine;
            if
            :: mem[R_KERNEL] > r_epoch ->
                r_epoch = mem[R_KERNEL];
#ifdef ENGINE_TELLS
                visible(CLEAR_TO_SEND, r_epoch)
#endif
            :: else
            fi
        };
#endif
#ifdef WITHOUT_LOOK_OF_RECEIVE
        mem[COMPLETE] >= r_epoch;
#else
        mem[COMPLETE] >= r_epoch || (r_epoch > first && flag[0] >= r_epoch && flag[1] >= r_epoch);
#endif
        atomic {
            !r_engine ->
            assert(r_epoch == last && bytes[0] == last && bytes[1] == last);
#ifndef WITHOUT_TAKING_BACK_OF_RECEIVE
            r_started = 0;
#endif
            r_active = false
        }
    :: else -> break
    od
}

#ifdef ENGINE_TELLS
active proctype receiver_progress() {
end:
    do
    :: atomic { !r_engine && r_active && mem[R_KERNEL] > r_epoch -> r_epoch = mem[R_KERNEL]; r_engine = true };
        d_step { visible(CLEAR_TO_SEND, r_epoch); r_engine = false }
    od
}
#endif
