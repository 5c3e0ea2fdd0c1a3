// SPDX-License-Identifier: BSD-3-Clause
//
// A work queue that several threads post to and a NIC reads: reserve, fill, publish in order, doorbell record, bell,
// fetch, completion, reap. docs/protocol-proofs.md says what each step stands for.
//
//   EACH_RINGS  every publisher rings the bell; otherwise only who sees no reservation behind its own.
//   NIC_STOPS   the NIC may fall silent for good; posters are to come to an end all the same.
// -DWITHOUT_x leaves one fence, check or step out; each must make an assertion fail, or somebody wait for ever.
//
// Memory: a poster's store is pending and becomes visible at any time and in any order; a release makes all of its
// earlier ones visible first. Waiting is a guard that blocks, so a wait that nobody ends is an invalid end state.

#ifndef POSTERS
#define POSTERS 2
#endif
#ifndef EACH
#define EACH 2  // work requests of one poster
#endif
#ifndef Q
#define Q 2  // slots
#endif
#define WRAP (2 * Q)  // indices in the record wrap, as the 16 bits of a real one do

// What posters store to. A pending 0 means none.
#define WQE(s) (s)
#define PAYLOAD(s) (Q + (s))
#define RECORD (2 * Q)
#define BELL (2 * Q + 1)
#define READY (2 * Q + 2)
#define WORDS (2 * Q + 3)

byte mem[WORDS];  // RECORD: 1 + index % WRAP, for 0 means none
byte pending[POSTERS * WORDS];
#define PEND(l) pending[t * WORDS + (l)]

byte head;           // reservations
byte cq[Q] = 2;      // owner bits; 2: never written
byte reaped;         // completions seen, and so slots given back
byte fetched;        // the NIC's own counter
byte posted, put_off, finished;
bool kicked, looking, gone;

hidden byte k;

inline seen_by_all(l, v) {
    if
    :: (l) == BELL -> kicked = kicked || !looking  // a NIC that is looking hears nothing
    :: (l) < Q -> assert((v) <= Q || fetched >= (v) - Q); mem[l] = v  // the slot's earlier request is over
    :: else -> mem[l] = v
    fi
}

inline release() {
    k = 0;
    do
    :: k < WORDS ->
        if
        :: PEND(k) -> seen_by_all(k, PEND(k)); PEND(k) = 0
        :: else
        fi;
        k++
    :: else -> break
    od
}

#ifdef WITHOUT_FULL_CHECK
#define ROOM true
#else
#define ROOM (index - reaped < Q)
#endif
#define NONE 255
#ifdef WITHOUT_OWNER
#define VALID(c) (cq[(c) % Q] != 2)
#else
#define VALID(c) (cq[(c) % Q] == ((c) / Q) % 2)
#endif

inline reserve() {
#ifdef WITHOUT_LASTING_RESERVATION
    // Add first, look then, take it back if there is no room.
    d_step { index = head; head++ };
    if
    :: index - reaped >= Q -> d_step { head--; index = NONE }
    :: else
    fi
#else
    index = head;
    do
    :: ROOM ->
        if
        :: atomic { head == index -> head++ }; break
        :: atomic { head != index -> index = head }
        fi
    :: !ROOM ->
        // Full: reap one completion, or leave the request to somebody who may wait.
        c = reaped;
        if
        :: VALID(c) -> d_step { reaped = (reaped == c -> c + 1 : reaped); index = head }
#ifndef WITHOUT_GIVING_UP
        :: !VALID(c) -> index = NONE; break
#endif
        fi
    od;
    c = 0
#endif
}
proctype poster(byte t) {
    byte index, c, n;
    bool rings;
    do
    :: n < EACH ->
        n++;
        reserve();
        if
        :: index == NONE -> d_step { put_off++; index = 0 }
        :: else ->
            d_step {
                assert(index < Q || reaped > index - Q);  // the slot was given back
                posted++;
                PEND(WQE(index % Q)) = index + 1;
                PEND(PAYLOAD(index % Q)) = index + 1;
#ifndef WITHOUT_RELEASE_OF_WQE
                release()
#endif
            };
#ifndef WITHOUT_TURN
            mem[READY] == index;
#endif
#ifndef WITHOUT_RECORD_IN_TURN
            PEND(RECORD) = 1 + (index + 1) % WRAP;
#endif
            d_step {
#ifndef WITHOUT_RELEASE_OF_RECORD
                release();
#endif
                PEND(READY) = index + 1
            };
#ifdef WITHOUT_RECORD_IN_TURN
            PEND(RECORD) = 1 + (index + 1) % WRAP;
#endif
#ifdef EACH_RINGS
            rings = true;
#else
            rings = (head == index + 1);
#endif
            if
            :: rings ->
                PEND(BELL) = 1  // the record was released before the turn was passed on
            :: else
            fi;
            d_step { index = 0; rings = false }
        fi
    :: else -> break
    od;
    finished++
}

#define DRAIN_ONE(t, l)                                            \
    ::d_step {                                                     \
        pending[(t) * WORDS + (l)] ->                              \
        seen_by_all(l, pending[(t) * WORDS + (l)]);                \
        pending[(t) * WORDS + (l)] = 0                             \
    }
#if POSTERS == 3
#define DRAIN(l) DRAIN_ONE(0, l) DRAIN_ONE(1, l) DRAIN_ONE(2, l)
#else
#define DRAIN(l) DRAIN_ONE(0, l) DRAIN_ONE(1, l)
#endif

active proctype memory() {
end:
    do
        DRAIN(0)
        DRAIN(1)
        DRAIN(2)
        DRAIN(3)
        DRAIN(4)
        DRAIN(5)
        DRAIN(6)
#if Q > 2
        DRAIN(7)
        DRAIN(8)
#endif
#if Q > 3
        DRAIN(9)
        DRAIN(10)
#endif
    od
}

// Looks at the record when it hears the bell, and sometimes for no reason.
active proctype nic() {
    byte upto, early;
end:
    do
    :: atomic { kicked -> kicked = false; looking = true };
        do
        :: true ->
#ifdef WITHOUT_ACQUIRE_OF_RECORD
            early = mem[WQE(fetched % Q)];
#endif
            upto = mem[RECORD];
            do
            :: upto && fetched % WRAP != upto - 1 ->
                // Fetch, in two pieces.
#ifdef WITHOUT_ACQUIRE_OF_RECORD
                assert(early == fetched + 1);
#else
                assert(mem[WQE(fetched % Q)] == fetched + 1);
#endif
#ifdef WITHOUT_COMPLETION_LAST
                cq[fetched % Q] = (fetched / Q) % 2;
#endif
                assert(mem[PAYLOAD(fetched % Q)] == fetched + 1);
                fetched++;
#ifndef WITHOUT_COMPLETION_LAST
                cq[(fetched - 1) % Q] = ((fetched - 1) / Q) % 2;
#endif
#ifdef WITHOUT_ACQUIRE_OF_RECORD
                early = mem[WQE(fetched % Q)]
#endif
            :: else -> break
            od;
            looking = false;  // from here on it hears the bell
#ifndef WITHOUT_SECOND_LOOK
            if
            :: mem[RECORD] != upto -> looking = true
            :: else -> break
            fi
#else
            break
#endif
        od;
        upto = 0
#ifdef NIC_STOPS
    :: gone -> break
#endif
    od
}

// A look for no reason, at any time, or never.
active proctype chance() {
    if
    :: kicked = true
    :: true
    fi
#ifdef NIC_STOPS
    ; gone = true
#endif
}

// When all posters are through, everything posted is executed without another bell.
active proctype judge() {
    finished == POSTERS;
#ifndef NIC_STOPS
    fetched == head;
    assert(posted == head && posted + put_off == POSTERS * EACH)
#endif
}

init {
    atomic {
        run poster(0);
        run poster(1)
#if POSTERS == 3
        ; run poster(2)
#endif
    }
}
