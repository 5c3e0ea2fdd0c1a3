// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the library that a bench finds at run time is of the release whose headers it was compiled with.
#ifndef MPIX_TESTS_BENCH_RIVAL_RELEASE_HPP
#define MPIX_TESTS_BENCH_RIVAL_RELEASE_HPP

#include <mpi.h>

#include <cstdio>
#include <string>

namespace bench {

struct release {
    int major, minor;
};

// Empty if they are the same.
inline std::string other_release(const std::string &rival, const release &headers, const release &library) {
    if (headers.major == library.major && headers.minor == library.minor) return {};
    const auto name = [](const release &r) { return std::to_string(r.major) + "." + std::to_string(r.minor); };
    return rival + " is left out: this program was compiled with headers of " + name(headers) +
           ", and has loaded a library of " + name(library) + " (does LD_LIBRARY_PATH name another one?)";
}

// The same of both ranks; each that has another one says so.
inline bool both_of_one_release(const char *rival, const release &headers, const release &library) {
    const std::string other = other_release(rival, headers, library);
    if (!other.empty()) std::fprintf(stderr, "%s\n", other.c_str());
    int same = other.empty();
    MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return same != 0;
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_RIVAL_RELEASE_HPP
