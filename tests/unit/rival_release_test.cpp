// SPDX-License-Identifier: BSD-3-Clause
#include "tests/bench/rival_release.hpp"

#include <string>

#include "tests/catch.hpp"

using namespace bench;

TEST_CASE("a bench leaves out a rival whose library is of another release than the headers") {
    CHECK(other_release("NCCL", {2, 28}, {2, 28}).empty());
    const std::string why = other_release("NCCL", {2, 32}, {2, 28});
    CHECK(why.find("NCCL is left out") == 0);
    CHECK(why.find("headers of 2.32") != why.npos);
    CHECK(why.find("library of 2.28") != why.npos);
    CHECK(!other_release("NVSHMEM", {3, 4}, {4, 4}).empty());
    CHECK(!other_release("NVSHMEM", {3, 8}, {0, 0}).empty());
}
