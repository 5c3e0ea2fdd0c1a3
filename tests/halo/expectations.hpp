// SPDX-License-Identifier: BSD-3-Clause
//
// What calls must answer, or refuse with which sentence; what they did not is printed and counted, on each rank.
#ifndef MPIX_TESTS_HALO_EXPECTATIONS_HPP
#define MPIX_TESTS_HALO_EXPECTATIONS_HPP

#include <mpi.h>

#include <cstdio>
#include <functional>
#include <string>

#include <mpix/halo.hpp>

namespace halo_test {

inline int rank = 0, failures = 0;  // of MPI_COMM_WORLD; of this rank

inline void expect(bool right, const std::string &what) {
    if (right) return;
    std::printf("rank %d: %s\n", rank, what.c_str());
    ++failures;
}

// The call throws halo::error, with this class and sentence; * stands for anything at the end.
inline void refused(const std::string &what, int error_class, const std::string &sentence,
                    const std::function<void()> &call) {
    std::string got = "nothing";
    int got_class = MPI_SUCCESS;
    try {
        call();
    } catch (const mpix::halo::error &e) {
        got = e.what();
        got_class = e.error_class();
    }
    const bool begins = sentence.back() == '*' && got.starts_with(sentence.substr(0, sentence.size() - 1));
    expect(got_class == error_class && (begins || got == sentence),
           what + ": class " + std::to_string(got_class) + ", \"" + got + "\"\n    expected class " +
               std::to_string(error_class) + ", \"" + sentence + "\"");
}

// Collective: 1 if any rank has failures, as main returns it.
inline int any_failures() {
    int all = 0;
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all > 0;
}

}  // namespace halo_test

#endif  // MPIX_TESTS_HALO_EXPECTATIONS_HPP
