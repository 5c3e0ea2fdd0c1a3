// SPDX-License-Identifier: BSD-3-Clause
//
// Rget beside an inline buffer: one partition of an exported send, which a caller of Pready stores, sends inline, defers or offers,
// over several epochs; groups that claim it, ask for it, read it, take it out of the inline buffer, or give up; the sender's progress
// engine, the library's kernel that takes out what no group asks for, and both hosts' Start and Wait. rget.pml has what does not
// depend on the inline buffer. docs/protocol-proofs.md maps each step to the code.
//
//   G        groups that wait.
//   TEST     the receiver's host may end an epoch by the flag, before it is told that all is complete.
//   HOST     the sender's host may mark the partition ready, too, which is an error: then a flag may come beside an offer.
//   PATIENT  the first group never gives up.
// -DWITHOUT_x leaves one step out; each must make an assertion fail, or somebody wait for ever.
//
// Memory: as in rget.pml. A packet carries its bytes, so whoever finds it has them.

#ifndef G
#define G 2
#endif
#ifndef E
#define E 2
#endif

#define OFFERED 1
#define DEFERRED 0
#define ENTRY(e, what) (2 * (e) + (what))
// Higher by two than in the code, so that the first epoch's words differ from what is there before.
#define CLAIM(e) (2 * (e) + 1)
#define BACK(e) (2 * (e))

byte written, source;
byte state, all_ready, ring, pending_ring, answer;
bool deferred, twice;  // in this epoch
byte wanted, offer, pending_offer, packet, flag, taken, stored, landing;
byte s_epoch, in_kernel, clear_to_send, complete, r_epoch, waiting;
bool r_active;
bool drained, engine_moves, offered, transfer;
byte concluded, moved;

inline moves(e) {
    assert(r_active && r_epoch == (e) && (moved == (e) - 1 || twice));
    moved = (e)
}

active proctype memory() {
end:
    do
    :: d_step { source != written -> source = written }
    :: d_step { offer != pending_offer -> offer = pending_offer }
    :: d_step { ring != pending_ring -> ring = pending_ring }
    :: d_step { landing != stored -> landing = stored }
    od
}

// ---- the caller of Pready ------------------------------------------------------------------------------

inline count_ready() {
    d_step {
        offer = pending_offer;
        ring = pending_ring;
        if
        :: !deferred -> complete = e
        :: else
        fi;
        all_ready = e
    }
}

active proctype caller() {
    byte e;
    bool offers;
end:
    do
    :: atomic { s_epoch > e -> e = s_epoch };
        written = e;
        if
        :: clear_to_send >= e ->  // conclude_direct
            d_step { source = written; state = e; moves(e); landing = e; stored = e };
            flag = e;
            count_ready()
        :: clear_to_send >= e ->  // store_small: nothing releases the bytes but the packet
            d_step { state = e; packet = e };
            count_ready()
        :: true ->
            offers = false;
            if
            :: clear_to_send >= e && wanted >= e -> offers = true
            :: true
            fi;
            d_step {
                state = e;
                deferred = true;
                source = written;
                if
                :: offers -> pending_offer = e
                :: else
                fi;
                pending_ring = ENTRY(e, (offers -> OFFERED : DEFERRED))
            };
            count_ready()
        fi;
        d_step { offers = false; in_kernel-- }
    od
}

// ---- groups of the receiver's --------------------------------------------------------------------------

active [G] proctype group() {
    byte e;
    bool mine, first, asks;
end:
    do
    :: atomic { waiting > 0 && r_epoch > e -> e = r_epoch };
        if
        :: goto over  // the user's kernel waits for something else
        :: true
        fi;
        // wait_inline_fast, await_together
        d_step {
            mine = (taken < CLAIM(e));
            first = (taken < BACK(e));
            if
            :: mine -> taken = CLAIM(e)
            :: else
            fi
        };
#ifdef WITHOUT_FIRST_CLAIM
        first = mine;
#endif
#ifdef WITHOUT_CLAIM
        first = true;
#endif
        // ask_for_claimed, unless the sender has not said that it would offer.
        if
        :: first && flag < e -> asks = true; wanted = e
        :: true
        fi;
        do
        :: flag >= e ->
            assert(landing == e);
#ifndef WITHOUT_ANSWER_TO_FLAG
            if
            :: asks -> answer = 2 * e
            :: else
            fi;
#endif
            break
        :: mine && asks && packet == e && flag < e ->  // refuse_claimed; then it is taken out the slow way
            answer = 2 * e + 1;
            d_step { asks = false; mine = false; taken = BACK(e) }
        :: mine && !asks && packet == e && flag < e ->  // take_packets, tell_taken
            d_step { moves(e); stored = e };
            d_step { landing = stored; flag = e };
            break
#ifdef WITHOUT_READING
        :: false ->
#else
        :: asks && offer == e && flag < e ->  // await_offer
#endif
            assert(source == e);
            d_step { moves(e); stored = e };
#ifdef WITHOUT_FLAG_BEFORE_ANSWER
            answer = 2 * e;
            d_step { landing = stored; flag = e };
#else
            d_step { landing = stored; flag = e };
            answer = 2 * e;
#endif
            break
        :: d_step { !mine && taken < CLAIM(e) -> mine = true; taken = CLAIM(e) }  // take_inline; it does not ask
#ifdef PATIENT
        :: _pid != 2 ->
#else
        :: true ->
#endif
            // refuse_claimed, at its deadline; or the claim alone goes back.
#ifndef WITHOUT_REFUSAL
            if
            :: asks -> answer = 2 * e + 1
            :: else
            fi;
#endif
            if
            :: mine -> taken = BACK(e)
            :: else
            fi;
            break
        od;
over:
        skip;
        d_step { mine = false; first = false; asks = false; waiting-- }
    od
}

// A kernel of the library takes out what is there, and nobody has claimed.
active proctype drain() {
    byte e;
end:
    do
    :: atomic { packet == r_epoch && flag < r_epoch && taken < CLAIM(r_epoch) && r_active -> e = r_epoch; taken = CLAIM(e) };
        d_step { moves(e); stored = e };
        d_step { landing = stored; flag = e }
    od
}

// ---- hosts ---------------------------------------------------------------------------------------------

active proctype sender() {
    byte e;
    do
    :: e < E ->
        d_step {
            e++;
            drained = false;
            engine_moves = false;
            deferred = false;
            twice = false;
            in_kernel = 1;
            s_epoch = e
        };
        // Wait: `complete`, and the user's kernel has ended.
        d_step {
            all_ready >= e && !offered && !transfer && (concluded == e || !deferred) && in_kernel == 0 ->
            written = 0;
            source = 0
        }
    :: else -> break
    od
}

active proctype progress() {
end:
    do
    :: atomic {
        clear_to_send >= s_epoch && ring / 2 == s_epoch && s_epoch > 0 && !drained ->
        drained = true;
        engine_moves = true;
        if
        :: ring % 2 == OFFERED -> offered = true
        :: else -> transfer = true
        fi
    }
#ifdef HOST
    // Its own copy of the partition, and its flag.
    :: d_step { offered && !twice && flag < s_epoch && moved < s_epoch -> twice = true; moves(s_epoch); landing = s_epoch; stored = s_epoch; flag = s_epoch }
    // nobody_reads
    :: d_step { offered && twice && answer < 2 * s_epoch && taken != CLAIM(s_epoch) -> offered = false }
#endif
    // look_for_answers
    :: d_step { offered && answer >= 2 * s_epoch && answer != 2 * s_epoch + 1 -> offered = false }
    :: d_step {
        offered && answer == 2 * s_epoch + 1 ->
        offered = false;
        transfer = !twice
    }
    :: atomic { transfer -> moves(s_epoch); landing = s_epoch; stored = s_epoch };
        atomic { flag = s_epoch; transfer = false }
    :: atomic {  // conclude
        all_ready == s_epoch && engine_moves && concluded != s_epoch && !offered && !transfer ->
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
        :: complete >= e -> assert(flag >= e || packet == e); flag >= e
#ifdef TEST
        :: flag >= e
#endif
        fi;
        d_step {
            waiting == 0 ->
            assert(landing == e);
            r_active = false
        }
    :: else -> break
    od
}
