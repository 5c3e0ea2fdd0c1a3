// SPDX-License-Identifier: BSD-3-Clause
//
// mpix_info --check: messages in a ring of ranks, every byte of which is compared.
#ifndef MPIX_HOST_INFO_SELF_TEST_H
#define MPIX_HOST_INFO_SELF_TEST_H

#include <string>
#include <vector>

namespace mpix {

// A path that two processes of this node can be made to use, where the node has the ability of the same name.
struct checked_path {
    const char *name;
    const char *transports;         // MPIX_TRANSPORTS
    const char *single_copy_bytes;  // MPIX_SINGLE_COPY_BYTES
    const char *expected;           // of MPIX_Request_path
    bool gpu_memory;
};
const std::vector<checked_path> &checked_paths();
// Null: there is none of that name.
const checked_path *find_path(const std::string &name);

// In each rank: MPI_Init to MPI_Finalize. `path`: the one to use, and no other; null: as programs would. Prints what is
// wrong on stderr. An exit status.
int test_in_ranks(int *count, char ***values, const checked_path *path);

}  // namespace mpix

#endif  // MPIX_HOST_INFO_SELF_TEST_H
