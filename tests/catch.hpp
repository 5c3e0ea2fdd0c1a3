// SPDX-License-Identifier: BSD-3-Clause
//
// Catch2, version 2 (Debian 12) or 3 (Ubuntu 24.04).
#ifndef MPIX_TESTS_CATCH_HPP
#define MPIX_TESTS_CATCH_HPP

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#endif  // MPIX_TESTS_CATCH_HPP
