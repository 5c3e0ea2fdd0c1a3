// SPDX-License-Identifier: BSD-3-Clause
//
// main() of the unit tests.
#include "tests/catch_runner.hpp"

int main(int argc, char **argv) { return run_tests(argc, argv); }
