// SPDX-License-Identifier: BSD-3-Clause
#include "host/report.h"

#include <string>
#include <vector>

#include "tests/catch.hpp"

using mpix::ranges;

TEST_CASE("neighbours are joined to ranges") {
    CHECK(ranges({}) == "");
    CHECK(ranges({4}) == "4");
    CHECK(ranges({4, 5}) == "4-5");
    CHECK(ranges({0, 1, 2, 3, 7}) == "0-3, 7");
    CHECK(ranges({0, 2, 3, 5}) == "0, 2-3, 5");
}

TEST_CASE("a long list is cut, and says so") {
    CHECK(ranges({1, 3, 5}, 3) == "1, 3, 5");
    CHECK(ranges({1, 3, 5}, 2) == "1, 3, ...");
    CHECK(ranges({1, 2, 5, 6}, 1) == "1-2, ...");
    std::vector<int> odd;
    for (int i = 0; i < 17; ++i) odd.push_back(2 * i + 1);
    CHECK(ranges(odd).find("31, ...") != std::string::npos);
    odd.pop_back();
    CHECK(ranges(odd).find("...") == std::string::npos);
}
