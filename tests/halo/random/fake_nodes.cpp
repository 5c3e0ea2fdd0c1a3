// SPDX-License-Identifier: BSD-3-Clause
//
// For each random program, this machine's ranks play those of one to three nodes, in any order. Linked with the
// library's own parts.
#include "host/halo/node_map.h"
#include "tests/halo/random/program.hpp"

namespace {

unsigned played = 0;

int node_of(int rank) {
    const std::uint64_t h = (played * 1000003ULL + static_cast<std::uint64_t>(rank)) * 0x9e3779b97f4a7c15ULL;
    return static_cast<int>((h >> 40) % (1 + played % 3));
}

const bool plays = [] {
    random_halo::before_program = [](unsigned seed) { played = seed; };
    mpix::halo::fake_node = random_halo::fake_node = node_of;
    return true;
}();

}  // namespace
