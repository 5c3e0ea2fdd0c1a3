// SPDX-License-Identifier: BSD-3-Clause
//
// main() of the unit tests. 77, "skipped", if nothing has failed but something could not be tried.
#define CATCH_CONFIG_RUNNER
#include "tests/catch.hpp"

#include <iostream>

static bool anything_skipped = false;

void skip_rest(const std::string &why) {
    anything_skipped = true;
    std::cout << "SKIP: " << why << '\n';
}

int main(int argc, char **argv) {
    const int failed = Catch::Session().run(argc, argv);
    return failed == 0 && anything_skipped ? 77 : failed;
}
