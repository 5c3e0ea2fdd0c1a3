// SPDX-License-Identifier: BSD-3-Clause
//
// Who fills which ghost cells, and which boxes cover a domain.
#include "host/field/box_index.h"
#include "host/field/neighbours.h"

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/halo_cells.hpp"

using namespace mpix::halo;
using halo_cells::between;
using halo_cells::for_each_cell;

namespace {

// Cuts `all` at random places into n boxes, some of which may be empty.
std::vector<box> random_boxes(const box &all, int n, std::mt19937 &random) {
    std::vector<box> boxes{all};
    while (static_cast<int>(boxes.size()) < n) {
        box &cut = boxes[static_cast<std::size_t>(between(random, 0, static_cast<int>(boxes.size()) - 1))];
        const int a = between(random, 0, 2);
        const auto at = cut.lo[a] + between(random, 0, static_cast<int>(cut.size()[a]));
        box other = cut;
        cut.hi[a] = other.lo[a] = at;
        boxes.push_back(other);
    }
    std::shuffle(boxes.begin(), boxes.end(), random);
    return boxes;
}

bool same(const std::vector<piece> &a, const std::vector<piece> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const piece &p, const piece &q) {
        return p.receiver == q.receiver && p.owner == q.owner && p.direction == q.direction && p.ghosts == q.ghosts &&
               p.source == q.source;
    });
}

}  // namespace

TEST_CASE("each ghost cell within the domain has one source, its owner's cell") {
    std::mt19937 random(1);
    for (int round = 0; round < 200; ++round) {
        domain d;
        for (int a = 0; a < 3; ++a) {
            d.extent[a] = between(random, 1, 7);
            d.periodic[a] = between(random, 0, 1) == 1;
        }
        d.boxes = random_boxes({{}, d.extent}, between(random, 1, 6), random);
        REQUIRE(why_not_a_cover(d).empty());
        std::array<bool, 3> staggered{};
        index3 points = d.extent;
        for (int a = 0; a < 3; ++a) {
            staggered[a] = between(random, 0, 2) == 0;
            points[a] += staggered[a] && !d.periodic[a];
        }
        d = points_of(d, staggered);
        CHECK(d.extent == points);
        REQUIRE(why_not_a_cover(d).empty());
        radius some;
        for (int &depth : some.cells)
            depth = between(random, 0, 9);  // also beyond the neighbour, and around the domain
        for (int me = 0; me < static_cast<int>(d.boxes.size()); ++me) {
            std::map<index3, int> filled;
            for (int owner = 0; owner < static_cast<int>(d.boxes.size()); ++owner)
                for (const piece &p : pieces_between(d, me, owner, some)) {
                    CHECK(p.ghosts.size() == p.source.size());
                    CHECK(intersection(p.source, d.boxes[owner]) == p.source);
                    for_each_cell(p.ghosts, [&](const index3 &cell) {
                        ++filled[cell];
                        for (int a = 0; a < 3; ++a) {
                            const auto source = cell[a] - p.ghosts.lo[a] + p.source.lo[a];
                            if ((source - cell[a]) % d.extent[a] != 0 || (!d.periodic[a] && source != cell[a]))
                                FAIL_CHECK("another cell");
                        }
                    });
                }
            std::map<index3, int> expected;
            if (!d.boxes[me].empty())
                for (int number = 0; number < directions; ++number)
                    if (number != no_direction)
                        for_each_cell(ghosts_of(d.boxes[me], number, some.cells[number]), [&](const index3 &cell) {
                            for (int a = 0; a < 3; ++a)
                                if (!d.periodic[a] && (cell[a] < 0 || cell[a] >= d.extent[a])) return;
                            ++expected[cell];
                        });
            CHECK(filled == expected);
        }
    }
}

TEST_CASE("an index finds all pieces, in the order of the receivers and then of the owners") {
    std::mt19937 random(8);
    for (int round = 0; round < 200; ++round) {
        domain cells;
        for (int a = 0; a < 3; ++a) {
            cells.extent[a] = between(random, 1, 9);
            cells.periodic[a] = between(random, 0, 1) == 1;
        }
        cells.boxes = random_boxes({{}, cells.extent}, between(random, 1, 9), random);
        const int n = static_cast<int>(cells.boxes.size());
        const domain d =
            points_of(cells, {between(random, 0, 1) == 1, between(random, 0, 1) == 1, between(random, 0, 1) == 1});
        radius some;
        for (int &depth : some.cells) depth = between(random, 0, 1) * between(random, 0, round % 2 == 0 ? 2 : 20);
        std::vector<int> mine;
        for (int number = 0; number < n; ++number)
            if (between(random, 0, 1)) mine.push_back(number);
        const auto is_mine = [&](int number) { return std::find(mine.begin(), mine.end(), number) != mine.end(); };
        std::vector<piece> to, from;
        for (int receiver = 0; receiver < n; ++receiver)
            for (int owner = 0; owner < n; ++owner)
                for (const piece &p : pieces_between(d, receiver, owner, some)) {
                    if (is_mine(receiver)) to.push_back(p);
                    if (is_mine(owner)) from.push_back(p);
                }
        const box_index index(cells);
        CHECK(same(pieces_to(d, index, mine, some), to));
        CHECK(same(pieces_from(d, index, mine, some), from));
    }
}

TEST_CASE("boxes that do not cover the domain are told") {
    domain d{.extent = {4, 4, 1}};
    d.boxes = {{{0, 0, 0}, {4, 2, 1}}, {{0, 2, 0}, {4, 4, 1}}};
    CHECK(why_not_a_cover(d).empty());
    d.boxes[1].lo[1] = 1;
    CHECK(why_not_a_cover(d) == "boxes[0] and boxes[1] overlap, in [0, 1, 0] to [4, 2, 1]");
    d.boxes[1].lo[1] = 3;
    CHECK(why_not_a_cover(d) == "they hold 12 of the domain's 16 cells");
    d.boxes[1] = {{0, 2, 0}, {5, 4, 1}};
    CHECK(why_not_a_cover(d) == "boxes[1], [0, 2, 0] to [5, 4, 1], is not within the domain");
    d.boxes = {{{0, 0, 0}, {4, 4, 1}}, {{9, 9, 9}, {9, 9, 9}}};
    CHECK(why_not_a_cover(d).empty());
    d.dimensions = 2;
    d.boxes = {{{0, 0}, {4, 2}}, {{0, 2}, {4, 4}}};
    CHECK(why_not_a_cover(d) ==
          "they hold 0 of the domain's 16 cells (along axes that the domain lacks, lo is 0 and hi is 1)");
}

TEST_CASE("random boxes cover the domain once if no two overlap and the cells are as many") {
    std::mt19937 random(3);
    int covers = 0, overlaps = 0, gaps = 0;
    for (int round = 0; round < 3000; ++round) {
        domain d;
        for (int a = 0; a < 3; ++a) d.extent[a] = between(random, 1, 6);
        d.boxes = random_boxes({{}, d.extent}, between(random, 1, 9), random);
        const auto any = [&]() -> box & {
            return d.boxes[static_cast<std::size_t>(between(random, 0, static_cast<int>(d.boxes.size()) - 1))];
        };
        for (int changes = between(random, 0, 2); changes > 0; --changes) {
            box &changed = any();
            if (between(random, 0, 2) == 0) changed = any();
            const int a = between(random, 0, 2);
            const int by = between(random, -1, 1);  // the number of cells often stays
            if (between(random, 0, 1) == 0)
                changed.lo[a] = std::clamp<std::int64_t>(changed.lo[a] + by, 0, d.extent[a]);
            changed.hi[a] = std::clamp<std::int64_t>(changed.hi[a] + by, 0, d.extent[a]);
        }
        std::int64_t cells = 0;
        bool some_overlap = false;
        for (std::size_t i = 0; i < d.boxes.size(); ++i) {
            cells += d.boxes[i].cells();
            for (std::size_t j = 0; j < i; ++j)
                some_overlap = some_overlap || !intersection(d.boxes[i], d.boxes[j]).empty();
        }
        const std::string told = why_not_a_cover(d);
        const bool covered = !some_overlap && cells == d.extent[0] * d.extent[1] * d.extent[2];
        CHECK(told.empty() == covered);
        CHECK((told.find(" overlap, in ") != std::string::npos) == some_overlap);
        ++(covered ? covers : some_overlap ? overlaps : gaps);
    }
    CHECK(covers > 100);
    CHECK(overlaps > 100);
    CHECK(gaps > 100);
}
