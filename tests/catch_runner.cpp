// SPDX-License-Identifier: BSD-3-Clause
#define CATCH_CONFIG_RUNNER
#include "tests/catch.hpp"

#include <iostream>

#include "tests/catch_runner.hpp"

static bool anything_skipped = false;

void skip_rest(const std::string &why) {
    anything_skipped = true;
    std::cout << "SKIP: " << why << '\n';
}

int run_tests(int argc, char **argv) {
    const int failed = Catch::Session().run(argc, argv);
    return failed == 0 && anything_skipped ? 77 : failed;
}
