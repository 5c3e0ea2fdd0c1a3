// SPDX-License-Identifier: BSD-3-Clause
//
// What a program has to do, worked out from its description alone, byte by byte.
#ifndef MPIX_TESTS_RANDOM_REFERENCE_HPP
#define MPIX_TESTS_RANDOM_REFERENCE_HPP

#include "tests/random/program.hpp"

namespace random_test {

using memory = std::vector<unsigned char>;

// The message of an epoch, packed.
memory message_of(const program &p, int pair, int epoch);

// Where in a request's memory byte b of its message is.
std::size_t position(const program &p, int request, std::int64_t b);

// A request's whole memory: as it is when an epoch starts, and when it is over. Of a send the latter holds the fresh
// data, of a receive the message; all other bytes stay as they were. Where kernels ran the epochs, that is when the host
// started the first of them.
memory before(const program &p, int request, int epoch);
memory after(const program &p, int request, int epoch);
memory after(const program &p, int request, int epoch, int started);

// A user's own message.
memory contents(const program &p, int message);

struct expected_status {
    bool known = true;  // nothing is said of a send's status
    int source = MPI_ANY_SOURCE, tag = MPI_ANY_TAG;
    std::int64_t bytes = 0;
    bool bytes_known = true;
    int error = MPI_SUCCESS;  // class
};

// Of a request that was active / was not.
expected_status status_of(const program &p, int request);
expected_status empty_status();

}  // namespace random_test

#endif  // MPIX_TESTS_RANDOM_REFERENCE_HPP
