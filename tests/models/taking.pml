// SPDX-License-Identifier: BSD-3-Clause
//
// Who takes a message out of its landing on a host with several threads (host/transfer/unpack_claim.h): one waits for it, and others ask,
// each for any partition. docs/protocol-proofs.md maps each step to the code.
//
// -DWITHOUT_x leaves one step out; each must make an assertion fail, or somebody wait for ever.
//
// Memory: the two words of the handshake are stored so that everybody sees them before the next load of who stores; without that
// order (the two that begin with ORDER) a store is pending, and becomes visible to others at any time. The bytes and `taken` are as in
// deferral.pml, which shows what their order is for.
//
// Waiting is a guard that blocks, never a loop that spins. So a wait that nobody ends is an invalid end state.

#ifndef N
#define N 2
#endif
#ifndef A
#define A 2
#endif
#ifndef E
#define E 2
#endif

bool all, asked;                  // as everybody sees them
bool all_pending, asked_pending;  // stored, and not visible to others

byte epoch, in_call;  // askers that are in a call
bool runs;
bool flag[N];  // this epoch's
byte taken[N];

// Of the properties.
bool copying[N];
byte brought[N];  // the last epoch in which it was

#if N == 3
#define FLAGS (flag[0] && flag[1] && flag[2])
#define OVER(e) (taken[0] == 2 * (e) && taken[1] == 2 * (e) && taken[2] == 2 * (e))
#define COPYING (copying[0] || copying[1] || copying[2])
#else
#define FLAGS (flag[0] && flag[1])
#define OVER(e) (taken[0] == 2 * (e) && taken[1] == 2 * (e))
#define COPYING (copying[0] || copying[1])
#endif

inline copy(i, e) {
    d_step {
        assert(runs && epoch == (e) && flag[i]);
        assert(!copying[i] && brought[i] == (e) - 1);  // one at a time, and once
        copying[i] = true
    };
    d_step { copying[i] = false; brought[i] = (e) };
    taken[i] = 2 * (e)
}

// take: by whoever claims it.
inline take(i, e) {
#ifndef WITHOUT_TAKEN_CLAIM
    if
    :: atomic { taken[i] == 2 * (e) - 2 -> taken[i] = 2 * (e) - 1 };
        copy(i, e)
    :: taken[i] >= 2 * (e) - 1
    fi
#else
    if
    :: taken[i] == 2 * (e) - 2 -> taken[i] = 2 * (e) - 1; copy(i, e)
    :: taken[i] >= 2 * (e) - 1
    fi
#endif
}

active proctype memory() {
end:
    do
    :: d_step { all_pending -> all = true; all_pending = false }
    :: d_step { asked_pending -> asked = true; asked_pending = false }
    od
}

// The sender's flags, in any order.
active proctype sender() {
    byte i;
end:
    do
    :: d_step { runs && !flag[0] -> flag[0] = true }
    :: d_step { runs && !flag[1] -> flag[1] = true }
#if N == 3
    :: d_step { runs && !flag[2] -> flag[2] = true }
#endif
    od
}

active proctype waiter() {
    byte e, i, rounds;
    bool apart;
    do
    :: e < E ->
        // Start: no call of the others' is under way.
        d_step {
            in_call == 0 ->
            e++;
            asked = false;
            all = false;
            flag[0] = false;
            flag[1] = false;
#if N == 3
            flag[2] = false;
#endif
            epoch = e;
            runs = true
        };
        // Before all is there: partition by partition, in order.
        do
        :: i < N && flag[i] -> take(i, e); i++
        :: FLAGS -> break
        od;
        i = 0;
        // take_pieces, once or twice: Test may have been called before.
again:
#ifdef WITHOUT_ORDER_OF_ALL
        all_pending = true;
#else
        all = true;
#endif
#ifdef WITHOUT_LOOK_AT_ASKED
        apart = true;
#else
        if
        :: asked -> all = false; apart = false
        :: else -> apart = true
        fi;
#endif
        i = 0;
        do
        :: i < N && apart ->
            if
            :: taken[i] < 2 * e - 1 -> copy(i, e)
            :: else
            fi;
            i++
        :: i < N && !apart -> take(i, e); i++
        :: else -> break
        od;
        i = 0;
        if
        :: OVER(e)
        :: !OVER(e) && !apart && rounds == 0 -> rounds++; goto again
        fi;
        // Wait returns: the user's buffer is his.
        d_step {
            assert(!COPYING);
            runs = false;
            apart = false;
            rounds = 0
        }
    :: else -> break
    od
}

// Parrived of any partition.
active [A] proctype asker() {
    byte i, e;
end:
    do
    :: atomic {
        runs && in_call < A ->
        in_call++;
        e = epoch;
        if
        :: i = 0
        :: i = N - 1
        fi
    };
        if
        :: asked
        :: !asked ->
#ifdef WITHOUT_ORDER_OF_ASKED
            asked_pending = true
#else
            asked = true
#endif
        fi;
#ifdef WITHOUT_LOOK_AT_ALL
        if
#else
        if
        :: all  // they are left to who waits
#endif
        :: !all ->
            if
            :: flag[i] -> take(i, e)
            :: !flag[i]
            fi
#ifdef WITHOUT_LOOK_AT_ALL
        :: all ->
            if
            :: flag[i] -> take(i, e)
            :: !flag[i]
            fi
#endif
        fi;
        d_step { i = 0; e = 0; in_call-- }
    od
}
