// SPDX-License-Identifier: BSD-3-Clause
//
// Placements of many boxes, on links whose best placement, or a good one, is known: the numbers of its GPUs are
// shuffled. Compiled only where there is Scotch.
#include "host/decomposition/scotch.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "host/decomposition/predict.h"
#include "tests/catch.hpp"

using namespace mpix::halo;

namespace {

placement shuffled(int n, unsigned seed) {
    placement p = trivial_placement(n);
    std::mt19937 random(seed);
    std::shuffle(p.begin(), p.end(), random);
    return p;
}

bool is_permutation(placement p) {
    std::sort(p.begin(), p.end());
    return p == trivial_placement(static_cast<int>(p.size()));
}

// Eight GPUs a board, eight boards a cabinet, and so on; three times as far at each level.
matrix tree(int n) {
    matrix distance(n);
    for (int a = 0; a < n; ++a)
        for (int b = 0; b < n; ++b) {
            double d = a == b ? 0 : 1;
            for (int x = a / 8, y = b / 8; x != y; x /= 8, y /= 8) d *= 3;
            distance(a, b) = d;
        }
    return distance;
}

// Links between neighbours in three dimensions; the number of links from one GPU to another.
matrix torus(const count3 &along) {
    const int n = product(along);
    const auto steps = [](int from, int to, int length) {
        const int d = std::abs(from - to);
        return std::min(d, length - d);
    };
    matrix distance(n);
    for (int a = 0; a < n; ++a)
        for (int b = 0; b < n; ++b) {
            const int plane = along[0] * along[1];
            distance(a, b) = steps(a % along[0], b % along[0], along[0]) +
                             steps(a / along[0] % along[1], b / along[0] % along[1], along[1]) +
                             steps(a / plane, b / plane, along[2]);
        }
    return distance;
}

struct problem {
    const char *name;
    flows flow;
    matrix distance;  // of the shuffled GPUs
    double known;     // the cost of box i on the GPU that had number i
};

problem shuffle_gpus(const char *name, flows flow, const matrix &ordered) {
    const int n = flow.size();
    const placement to = shuffled(n, 7);
    matrix distance(n);
    for (int a = 0; a < n; ++a)
        for (int b = 0; b < n; ++b) distance(to[a], to[b]) = ordered(a, b);
    const double known = cost(flow, distance, to);
    return {name, std::move(flow), std::move(distance), known};
}

const stencil all_neighbours{radius::all(1), 8, {true, true, true}};

// What the boxes of a periodic domain exchange, all of one node.
flows of_boxes(const count3 &along) {
    const decomposition d{.extent = {along[0] * 64, along[1] * 64, along[2] * 64}, .per_node = along};
    return traffic_of(d, all_neighbours).within;
}

// The same boxes, in another order: cubes of 2 x 2 x 2, of which 2 x 2 x 2 follow each other, and so on.
flows by_cubes(const count3 &along) {
    const flows all = of_boxes(along);
    const auto key = [&](int box) {
        const int x = box % along[0], y = box / along[0] % along[1], z = box / along[0] / along[1];
        int bits = 0;
        for (int b = 0; b < 8; ++b)
            bits |= (x >> b & 1) << 3 * b | (y >> b & 1) << (3 * b + 1) | (z >> b & 1) << (3 * b + 2);
        return bits;
    };
    placement boxes = trivial_placement(all.size()), number(boxes.size());
    std::sort(boxes.begin(), boxes.end(), [&](int a, int b) { return key(a) < key(b); });
    for (int i = 0; i < all.size(); ++i) number[boxes[i]] = i;
    flows renumbered(all.size());
    for (int i = 0; i < all.size(); ++i)
        for (const flows::flow &f : all.from(i)) renumbered.add(number[i], number[f.to], f.bytes);
    return renumbered;
}

}  // namespace

TEST_CASE("Scotch finds placements near the known ones") {
    struct expected {
        problem p;
        double scotch, placed;  // at most this many times the known cost
    };
    const std::vector<expected> all{
        {shuffle_gpus("tree", by_cubes({4, 4, 4}), tree(64)), 1.05, 1.02},
        {shuffle_gpus("tree", by_cubes({8, 4, 4}), tree(128)), 1.1, 1.05},
        {shuffle_gpus("tree", by_cubes({8, 8, 4}), tree(256)), 1.1, 1.05},
        {shuffle_gpus("torus", of_boxes({4, 4, 4}), torus({4, 4, 4})), 2.3, 1.7},
        {shuffle_gpus("torus", of_boxes({8, 4, 4}), torus({8, 4, 4})), 2.3, 1.9},
    };
    std::printf("links, boxes, cost by the known one: trivial, random, by swaps from trivial, Scotch, placed\n");
    for (const expected &e : all) {
        const problem &p = e.p;
        const int n = p.flow.size();
        const std::optional<placement> mapped = place_by_scotch(p.flow, p.distance);
        REQUIRE(mapped);
        REQUIRE(is_permutation(*mapped));
        const placement final = place(p.flow, p.distance);
        REQUIRE(is_permutation(final));
        const auto times = [&](const placement &gpu_of) { return cost(p.flow, p.distance, gpu_of) / p.known; };
        const double trivial = times(trivial_placement(n)), random = times(shuffled(n, 8)),
                     swaps = times(place_by_swaps(p.flow, p.distance, trivial_placement(n)));  // CRAFT
        std::printf("%s, %d, %.2f, %.2f, %.3f, %.3f, %.3f\n", p.name, n, trivial, random, swaps, times(*mapped),
                    times(final));
        CHECK(times(*mapped) <= e.scotch);
        CHECK(times(*mapped) < std::min(trivial, random));
        CHECK(times(final) <= e.placed);
        CHECK(times(final) <= times(improve(p.flow, p.distance, trivial_placement(n))));
        CHECK(times(final) <= swaps * 1.05);
    }
}

TEST_CASE("Scotch gives equal placements for equal arguments") {
    const problem p = shuffle_gpus("torus", of_boxes({5, 4, 3}), torus({5, 4, 3}));
    const std::optional<placement> first = place_by_scotch(p.flow, p.distance);
    REQUIRE(first);
    // Whatever it was asked in between.
    const problem other = shuffle_gpus("tree", by_cubes({4, 4, 2}), tree(32));
    REQUIRE(place_by_scotch(other.flow, other.distance));
    CHECK(place_by_scotch(p.flow, p.distance) == first);
    CHECK(place(p.flow, p.distance) == place(p.flow, p.distance));
}

TEST_CASE("boxes that share a GPU move to the nearest free ones") {
    matrix line(6);
    for (int a = 0; a < 6; ++a)
        for (int b = 0; b < 6; ++b) line(a, b) = std::abs(a - b);
    CHECK(one_to_one({3, 0, 5, 1, 2, 4}, line) == placement{3, 0, 5, 1, 2, 4});
    CHECK(one_to_one({3, 3, 0, 3, 5, 0}, line) == placement{3, 2, 0, 4, 5, 1});
    CHECK(one_to_one({5, 5, 5, 5, 5, 5}, line) == placement{5, 4, 3, 2, 1, 0});
}

TEST_CASE("Scotch places any number of boxes, with any flows and bandwidths") {
    std::mt19937 random(9);
    for (const int n : {2, 3, 5, 9, 17, 31, 63, 100, 173}) {
        flows flow(n);
        matrix bandwidth(n);
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j) {
                if (random() % 4 == 0) flow.add(i, j, 1e-3 * static_cast<double>(random() % 1000000));
                bandwidth(i, j) = 1e6 * static_cast<double>(1 + random() % 1000000);
            }
        const std::optional<placement> p = place_by_scotch(flow, distances(bandwidth));
        REQUIRE(p);
        CHECK(is_permutation(*p));
    }
    // No flows at all, equal links, and boxes that form two groups.
    const std::optional<placement> idle = place_by_scotch(flows(20), matrix(20, 1));
    REQUIRE(idle);
    CHECK(is_permutation(*idle));
    flows groups(40);
    for (int i = 0; i < 20; ++i) groups.add(i, (i + 1) % 20, 1), groups.add(20 + i, 20 + (i + 1) % 20, 1);
    const std::optional<placement> two = place_by_scotch(groups, matrix(40, 1));
    REQUIRE(two);
    CHECK(is_permutation(*two));
    CHECK_FALSE(place_by_scotch(flows(1), matrix(1)));
    CHECK_FALSE(place_by_scotch(groups, matrix(40)));
    CHECK_FALSE(place_by_scotch(flows(1025), matrix(1025, 1)));
}
