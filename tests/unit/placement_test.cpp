// SPDX-License-Identifier: BSD-3-Clause
#include "host/decomposition/placement.h"

#include <algorithm>
#include <random>

#include "tests/catch.hpp"

using namespace mpix::halo;

namespace {

matrix random_matrix(int n, std::mt19937 &random, bool with_gaps) {
    matrix m(n);
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) m(i, j) = with_gaps && random() % 3 == 0 ? 0 : 1 + random() % 1000;
    return m;
}

// Of all permutations, in lexicographic order.
placement enumerated(const matrix &flow, const matrix &distance) {
    placement p = trivial_placement(flow.size()), best = p;
    double least = cost(flow, distance, p);
    while (std::next_permutation(p.begin(), p.end()))
        if (const double now = cost(flow, distance, p); now < least) least = now, best = p;
    return best;
}

bool is_permutation(placement p) {
    std::sort(p.begin(), p.end());
    return p == trivial_placement(static_cast<int>(p.size()));
}

}  // namespace

TEST_CASE("the exact placement is that of all permutations") {
    std::mt19937 random(2);
    for (int n = 1; n <= 6; ++n)
        for (int round = 0; round < 20; ++round) {
            const matrix flow = random_matrix(n, random, true), distance = random_matrix(n, random, false);
            // All values are integers, so costs are exact.
            CHECK(place_exactly(flow, distance) == enumerated(flow, distance));
        }
    const matrix flow = random_matrix(8, random, true), distance = random_matrix(8, random, false);
    CHECK(place_exactly(flow, distance) == enumerated(flow, distance));
}

TEST_CASE("equal links leave boxes where they are") {
    std::mt19937 random(3);
    matrix distance(7, 0.25);
    for (int i = 0; i < 7; ++i) distance(i, i) = 0;
    CHECK(place(random_matrix(7, random, true), distance) == trivial_placement(7));
    const matrix zero(3);
    CHECK(place(zero, zero) == trivial_placement(3));
}

TEST_CASE("swaps end where no swap lowers the cost") {
    std::mt19937 random(4);
    for (const int n : {1, 2, 5, 12, 24}) {
        const matrix flow = random_matrix(n, random, true), distance = random_matrix(n, random, false);
        const placement p = place_by_swaps(flow, distance, trivial_placement(n));
        REQUIRE(is_permutation(p));
        const double reached = cost(flow, distance, p);
        CHECK(reached <= cost(flow, distance, trivial_placement(n)));
        for (int r = 0; r < n; ++r)
            for (int s = r + 1; s < n; ++s) {
                placement q = p;
                std::swap(q[r], q[s]);
                CHECK(cost(flow, distance, q) >= reached * (1 - 1e-9));
            }
        CHECK(place_by_swaps(flow, distance, trivial_placement(n)) == p);
    }
}

TEST_CASE("of a swap each step is the best one") {
    // The incremental changes against costs computed anew, by following them step by step.
    std::mt19937 random(5);
    const int n = 10;
    const matrix flow = random_matrix(n, random, true), distance = random_matrix(n, random, false);
    placement p = trivial_placement(n);
    for (bool better = true; better;) {
        better = false;
        double least = cost(flow, distance, p);
        placement best = p;
        for (int r = 0; r < n; ++r)
            for (int s = r + 1; s < n; ++s) {
                placement q = p;
                std::swap(q[r], q[s]);
                if (const double now = cost(flow, distance, q); now < least) least = now, best = q, better = true;
            }
        p = best;
    }
    CHECK(place_by_swaps(flow, distance, trivial_placement(n)) == p);
}

TEST_CASE("flows are those of a matrix") {
    std::mt19937 random(10);
    const matrix bytes = random_matrix(9, random, true);
    flows all(9);
    for (int round = 0; round < 2; ++round)  // half of it each time
        for (int j = 8; j >= 0; --j)
            for (int i = 0; i < 9; ++i) all.add(i, j, bytes(i, j) / 2);
    const flows same(bytes);
    for (int i = 0; i < 9; ++i) {
        REQUIRE(all.from(i).size() == same.from(i).size());
        for (int j = 0; j < 9; ++j) {
            CHECK(all(i, j) == bytes(i, j));
            CHECK(same(i, j) == bytes(i, j));
        }
        for (const flows::flow &f : all.from(i)) CHECK(f.bytes > 0);
    }
}

TEST_CASE("passes lower the cost until no swap does") {
    std::mt19937 random(11);
    for (const int n : {1, 2, 7, 20, 40}) {
        const matrix flow = random_matrix(n, random, true), distance = random_matrix(n, random, false);
        placement p = trivial_placement(n);
        CHECK(place_by_passes(flow, distance, p, 0) == p);
        for (bool ended = false; !ended;) {
            const placement next = place_by_passes(flow, distance, p, 1);
            REQUIRE(is_permutation(next));
            ended = next == p;
            if (!ended) REQUIRE(cost(flow, distance, next) < cost(flow, distance, p));
            p = next;
        }
        CHECK(place_by_passes(flow, distance, trivial_placement(n), 1000) == p);
        for (int r = 0; r < n; ++r)
            for (int s = r + 1; s < n; ++s) {
                placement q = p;
                std::swap(q[r], q[s]);
                CHECK(cost(flow, distance, q) >= cost(flow, distance, p) * (1 - 1e-9));
            }
    }
}

TEST_CASE("pairs that exchange much come to fast links") {
    // Two sockets of two GPUs; boxes 0 and 2 exchange much, and so do 1 and 3.
    matrix bandwidth(4, 1);
    bandwidth(0, 1) = bandwidth(1, 0) = bandwidth(2, 3) = bandwidth(3, 2) = 10;
    matrix flow(4, 1);
    flow(0, 2) = flow(2, 0) = flow(1, 3) = flow(3, 1) = 100;
    const placement p = place(flow, distances(bandwidth));
    CHECK(p[0] / 2 == p[2] / 2);
    CHECK(p[1] / 2 == p[3] / 2);
    CHECK(p == placement{0, 2, 1, 3});
}

TEST_CASE("many GPUs are placed by swaps") {
    // A ring whose numbers are shuffled, on sockets of 8.
    std::mt19937 random(6);
    const int n = GENERATE(64, 160);
    placement shuffled = trivial_placement(n);
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    matrix flow(n), bandwidth(n, 1);
    for (int i = 0; i < n; ++i) flow(shuffled[i], shuffled[(i + 1) % n]) = 1;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            if (i / 8 == j / 8) bandwidth(i, j) = 10;
    const matrix distance = distances(bandwidth);
    for (const placement &p : {place(flow, distance), improve(flow, distance, trivial_placement(n))}) {
        CHECK(is_permutation(p));
        CHECK(cost(flow, distance, p) < cost(flow, distance, trivial_placement(n)) / 2);
    }
}
