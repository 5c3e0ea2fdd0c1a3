// SPDX-License-Identifier: BSD-3-Clause
//
// As much of an MPI library as the setup of pairs needs, within one process: world rank 0 of three. What it sends to
// itself arrives; what it sends to others is gone, or kept; what others send is put into the inbox. Sends and barriers
// end at once, unless they are held up. On our node are those that we have heard of.
#ifndef MPIX_TESTS_FUZZ_FAKE_MPI_H
#define MPIX_TESTS_FUZZ_FAKE_MPI_H

#include <deque>
#include <string>
#include <vector>

namespace fake_mpi {

struct message {
    int source;  // or whom it was sent to
    std::string bytes;
};

extern std::deque<message> inbox;
extern std::vector<std::string> neighbours;  // what each of them says in an allgather
extern std::string told;                     // what we have said in it
extern int least_of_neighbours;              // in a reduction to the least
extern int splits;                           // calls of MPI_Comm_split_type
extern bool sends_held_up, keeps_sent;
extern std::deque<message> sent;  // to others
constexpr int all = 1 << 20;
extern int barriers_begun, barriers_that_end;  // of those begun, the first so many

}  // namespace fake_mpi

#endif  // MPIX_TESTS_FUZZ_FAKE_MPI_H
