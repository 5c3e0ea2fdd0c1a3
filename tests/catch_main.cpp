// SPDX-License-Identifier: BSD-3-Clause
//
// main() of the unit tests; version 3 brings it in a library.
#define CATCH_CONFIG_MAIN
#include "tests/catch.hpp"
