// SPDX-License-Identifier: BSD-3-Clause
//
// Who makes a single copy (send_request::all_copied, store_by_host, take). Pready writes a partition, or leaves it in
// the send buffer: then the receiver's threads read it when they look, or the sender's Wait writes it. docs/protocol-proofs.md maps each step to the
// code.
//
// -DWITHOUT_x leaves one step out; each must make an assertion fail, or somebody wait for ever.
//
// Memory is as the processes see it at once: the order of bytes, flags and `taken` is that of deferral.pml and taking.pml.
// Waiting is a guard that blocks, never a loop that spins. So a wait that nobody ends is an invalid end state.

#ifndef N
#define N 2
#endif
#ifndef E
#define E 2
#endif
#ifndef A
#define A 3
#endif

byte clear_to_send, flag[N], taken[N];
byte user_may_read;  // the last epoch of which the receiver's Wait has returned

// Of the properties: what the buffers hold, and whether somebody copies.
byte send_buffer[N], receive_buffer[N];
bool copying[N];

inline copy_begins(i, e) {
    d_step {
        assert(!copying[i] && receive_buffer[i] == (e) - 1);  // one at a time, and once
        assert(clear_to_send >= (e) && user_may_read < (e));  // the receive buffer is the library's
        copying[i] = true
    }
}
inline copy_ends(i, e) {
    d_step {
        assert(send_buffer[i] == (e));  // nobody has written to it meanwhile
        receive_buffer[i] = send_buffer[i];
        copying[i] = false
    }
}

active proctype sender() {
    byte e, i;
    do
    :: e < E ->
        e++;
        i = 0;
        do
        :: i < N -> send_buffer[i] = e; i++  // the user computes
        :: else -> break
        od;
        clear_to_send >= e;  // before that, Pready would defer it
        i = 0;
        do
        :: i < N ->
            if
            :: skip  // left to the receiver
            ::
                copy_begins(i, e);
                copy_ends(i, e);
#ifndef WITHOUT_MARK
                taken[i] = 2 * e
#endif
            fi;
            flag[i] = e;
            i++
        :: else -> break
        od;
        // Wait: until all are copied, or by copying what nobody does.
        i = 0;
        do
        :: i < N ->
#ifndef WITHOUT_WAIT
            if
            :: taken[i] >= 2 * e
#ifndef WITHOUT_SENDERS_COPY
#ifndef WITHOUT_SENDERS_CLAIM
            :: atomic { taken[i] == 2 * e - 2 -> taken[i] = 2 * e - 1 };
#else
            :: taken[i] == 2 * e - 2 -> taken[i] = 2 * e - 1;
#endif
                copy_begins(i, e);
                copy_ends(i, e);
                taken[i] = 2 * e
#endif
            fi;
#endif
            i++
        :: else -> break
        od
    :: else -> break
    od
}

// take, by a thread of the receiver, which the system may not let read.
inline take(i, e) {
    if
#ifndef WITHOUT_RECEIVERS_CLAIM
    :: atomic { taken[i] == 2 * (e) - 2 -> taken[i] = 2 * (e) - 1 };
#else
    :: taken[i] == 2 * (e) - 2 -> taken[i] = 2 * (e) - 1;
#endif
        if
        :: copy_begins(i, e);
            copy_ends(i, e);
            taken[i] = 2 * (e)
        ::
#ifndef WITHOUT_GIVING_BACK
            taken[i] = 2 * (e) - 2
#else
            skip
#endif
        fi
    :: taken[i] != 2 * (e) - 2
    fi
}

byte epoch;
bool ended;

active proctype waiter() {
    byte i;
    do
    :: epoch < E ->
        d_step { epoch++; clear_to_send = epoch };
        i = 0;
        do
        :: i < N ->
            flag[i] >= epoch || taken[i] >= 2 * epoch;
#ifndef WITHOUT_LOOK
            do
            :: taken[i] >= 2 * epoch -> break
            :: taken[i] == 2 * epoch - 2 ->
                take(i, epoch);
                if  // a thread that has not been let read does not try for ever: the sender's Wait ends it
                :: taken[i] == 2 * epoch - 2 -> taken[i] >= 2 * epoch; break
                :: else
                fi
            od;
#endif
            assert(receive_buffer[i] == epoch && !copying[i]);
            i++
        :: else -> break
        od;
        user_may_read = epoch
    :: else -> ended = true; break
    od
}

// Parrived, by another thread of the receiver, some times, of a partition whose flag is there or not.
active proctype asker() {
    byte i, e, calls;
    do
    :: atomic {
            calls < A && user_may_read < epoch ->
            calls++;
            e = epoch;
            if
            :: i = 0
            :: i = 1
            fi
        };
        if
        :: flag[i] >= e -> take(i, e)
        :: else
        fi
    :: ended || calls == A -> break
    od
}
