// SPDX-License-Identifier: BSD-3-Clause
//
// Catch2, version 2 (Debian 12) or 3 (Ubuntu 24.04).
#ifndef MPIX_TESTS_CATCH_HPP
#define MPIX_TESTS_CATCH_HPP

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // as version 2 has it
#else
#include <catch2/catch.hpp>
#endif

#include <string>

// What a test case says before it returns because this machine does not let it try the rest: the program is counted as
// skipped.
void skip_rest(const std::string &why);

#endif  // MPIX_TESTS_CATCH_HPP
