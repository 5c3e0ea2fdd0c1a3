// SPDX-License-Identifier: BSD-3-Clause
//
// What each main() of a Catch2 program calls. Compiled once: Catch2's own part takes longer than most tests.
#ifndef MPIX_TESTS_CATCH_RUNNER_HPP
#define MPIX_TESTS_CATCH_RUNNER_HPP

// The test cases linked in. 0: passed; 77, "skipped": nothing has failed, but something could not be tried.
int run_tests(int argc, char **argv);

#endif  // MPIX_TESTS_CATCH_RUNNER_HPP
