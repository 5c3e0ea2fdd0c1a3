// SPDX-License-Identifier: BSD-3-Clause
//
// A random program: what each rank makes, starts, readies, asks and completes, in one order for all ranks.
//
// A rank carries out its own steps in this order and waits for nobody else. A step that waits comes after all that it
// waits for, so no program can lock up: of all the steps that wait, the first in the order finds what it needs done or
// about to be done.
#ifndef MPIX_TESTS_RANDOM_PROGRAM_HPP
#define MPIX_TESTS_RANDOM_PROGRAM_HPP

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/random_type.hpp"

namespace random_test {

// ---- communicators -------------------------------------------------------------------------------------

enum class maker {
    dup,
    dup_with_info,
    idup,
    split,
    split_type,
    create,
    create_group,
    cart,
    cart_rows,  // Cart_create of two dimensions, then Cart_sub
    graph,
    dist_graph,
    intercomm,  // of two halves of the parent
    merge       // of an intercommunicator
};

// One communicator as its members see it.
struct communicator {
    std::vector<int> members;  // ranks in the world
    std::vector<int> remote;   // of an intercommunicator: those of the other side
    bool is_cart = false;

    bool inter() const { return !remote.empty(); }
    // Those whom `world_rank`, a member, can send to, by their ranks in the communicator.
    const std::vector<int> &peers_of(int world_rank) const;
    bool has(int world_rank) const;
    // The rank of `peer`, a rank in the world, as `world_rank` has to say it.
    int rank_of(int peer, int world_rank) const;
};

// A constructor's call by all ranks that take part.
struct construction {
    maker how;
    int parent;               // index of a communicator
    std::vector<int> colour;  // by rank in the parent; MPI_UNDEFINED: gets none
    std::vector<int> key;     // order of the ranks of one colour
    std::vector<int> made;    // by colour, the communicators
};

// ---- partitioned requests ------------------------------------------------------------------------------

struct datatype {
    sample made;
    std::int64_t extent = 0;
    bool dense = false;  // packed and in memory alike

    std::int64_t size() const { return static_cast<std::int64_t>(made.map.size()); }
};

// One request.
struct end {
    bool made = true;  // or there is only the other end
    int rank = 0;      // in the world
    int type = 0;
    int partitions = 1;
    std::int64_t count = 0;  // elements of a partition
    bool exported = false;
    int contributors = 1;
    bool type_freed_early = false;
    std::int64_t origin = 0, room = 0;  // the memory around it, and where in there the buffer's address is
    bool self_overlapping = false;      // some bytes of its memory are in the message more than once
};

// A send and the receive that it meets. Or one of the two alone: with MPI_PROC_NULL, or freed unstarted.
struct pair {
    int comm = 0, tag = 0;
    end ends[2];  // send, receive
    bool null_peer = false;
    int epochs = 0;          // 0: freed unstarted
    bool truncated = false;  // the sizes differ

    bool alone() const { return !ends[0].made || !ends[1].made; }
};

// Whether their requests match by order alone.
inline bool of_one_kind(const pair &a, const pair &b) {
    return !a.null_peer && !b.null_peer && a.comm == b.comm && a.tag == b.tag && a.ends[0].rank == b.ends[0].rank &&
           a.ends[1].rank == b.ends[1].rank;
}

// Requests are numbered: twice the pair's index, plus one for the receive.
inline int pair_of(int request) { return request / 2; }
inline bool is_send(int request) { return request % 2 == 0; }
inline int partner_of(int request) { return request ^ 1; }

// ---- the user's own messages -----------------------------------------------------------------------------

// A message, and what one receive of its kind names. Which of the receives of a kind gets which message is left open:
// wildcards may take them in any order.
struct message {
    int comm, from, to, tag;  // ranks in the world
    int bytes;
    bool any_source, any_tag;  // in the receive
    bool persistent_send, persistent_receive;
    int kind;  // equal for those whose receives look the same
};

// ---- steps -------------------------------------------------------------------------------------------------

enum class action {
    construct,     // collective: index = construction
    free_comm,     // collective: index = communicator
    checkpoint,    // collective: between two barriers, Parrived says exactly what has been readied
    make,          // requests[0]
    free,          // requests[0]
    start,         // requests: Start each, or Startall
    ready,         // parts, in this order, in calls as `form` says
    ready_beside,  // parts, shared out to threads; goes on
    join_threads,
    launch,         // parts: a kernel readies sends' and waits for receives'; goes on
    launch_epochs,  // activations: a kernel, or a stream, runs several epochs; parts: what it readies in a first one
                    // that runs
    join_kernel,
    arrived,   // parts of receives: Parrived; until it says yes, if `must`
    prepare,   // MPIX_Pbuf_prepare of requests
    look,      // requests: one Test of some kind, whatever it says
    unready,   // requests: sends that lack a partition are not complete
    complete,  // requests, extras, messages, nulls, all in a random order: until all are complete
    post_send,
    post_receive,  // index = message
};

enum class ready_form { single, range, list };
enum class completion { wait, test, get_status, waitall, testall, waitany, testany, waitsome, testsome, count };

struct part {
    int request, partition;
    int slice = 0, slices = 1;  // of a partition that several groups of a kernel contribute to
    bool there = false;         // at a checkpoint: whether it has been readied
};

// What a kernel, or a stream, does of an activation, after the host's Start.
struct activation {
    int request;
    bool begins;  // it starts the first of its epochs, too; the one before has been waited for by a kernel
    int epochs;
    bool waits;             // it also ends the last epoch; otherwise the host does
    std::vector<int> left;  // of a send: what it leaves to the host's Pready in the last epoch
};

struct step {
    action what;
    int rank = -1;  // -1: whoever takes part
    int index = 0;
    std::vector<int> requests;
    std::vector<part> parts;
    std::vector<activation> activations;
    std::vector<int> sends, receives;  // the user's own messages that are to be complete
    std::vector<int> idle;             // requests that are not active, in an array
    int nulls = 0;
    std::uint64_t order = 0;  // for shuffling the array
    ready_form form = ready_form::single;
    completion call = completion::wait;
    bool together = false;       // Startall; MPI_Pready_list across all
    bool ignore_status = false;  // MPI_STATUS(ES)_IGNORE
    bool must = false;
    int threads = 1, blocks = 1;
    bool whole_blocks = false;  // groups are blocks, not threads
    bool by_stream = false;     // epochs are enqueued
};

// ---- the program ---------------------------------------------------------------------------------------------

// What a program may ask of the machine.
struct setting {
    int ranks = 1;
    bool gpu = false;         // exported requests are GPU memory
    bool calls_only = false;  // all progress is made in calls that mpix sees: ranks wait nowhere else while data moves
    bool one_node = true;
};

struct program {
    std::uint64_t seed = 0;
    setting where;
    std::vector<communicator> comms;  // first the world, then each rank's MPI_COMM_SELF
    std::vector<construction> constructions;
    std::vector<datatype> types;
    std::vector<pair> pairs;
    std::vector<message> messages;
    int message_kinds = 0;
    std::vector<step> steps;

    const end &end_of(int request) const { return pairs[at(pair_of(request))].ends[request % 2]; }
    const datatype &type_of(int request) const { return types[at(end_of(request).type)]; }
    std::int64_t partition_bytes(int request) const { return end_of(request).count * type_of(request).size(); }
    std::int64_t bytes(int request) const { return end_of(request).partitions * partition_bytes(request); }
    // Whether partition i of a send and j of the receive have a byte in common.
    bool overlap(int pair, int i, int j) const;
    // A partition of a send, as the groups of a kernel contribute to it.
    void slice(const part &whole, std::vector<part> &slices) const;

    static std::size_t at(int index) { return static_cast<std::size_t>(index); }
};

// The same on every rank. The types are made, and committed, by the MPI library.
program draw(std::uint64_t seed, const setting &where);

const char *name_of(completion call);
// For reading a program that has failed.
std::string describe(const program &p);

}  // namespace random_test

#endif  // MPIX_TESTS_RANDOM_PROGRAM_HPP
