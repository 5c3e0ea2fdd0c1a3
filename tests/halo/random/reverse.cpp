// SPDX-License-Identifier: BSD-3-Clause
//
// Reverse exchanges of a random program, and what a serial one makes of the same numbers.
#include <algorithm>
#include <cstring>

#include "tests/halo/random/program.hpp"

namespace random_halo {

template <class T>
void program::put_numbers(const test_field &f, test_box &b, const index3 &where, std::uint64_t epoch) {
    for (int c = 0; c < f.layout.components; ++c) {
        const T number = number_at<T>(f.number, where, static_cast<std::uint64_t>(c), epoch, b.number);
        std::memcpy(b.memory.data() + f.at(b, where, c), &number, sizeof number);
    }
}

// What a serial program makes of a box's cells.
template <class T>
void program::reduce(const halo::grid &g, const test_field &f, const test_box &b, halo::reduction how,
                     std::uint64_t epoch, std::vector<std::byte> &memory) const {
    for (int holder = 0; holder < g.total_boxes(); ++holder)
        for_each_ghost(f, points_of(f, g.box_of(holder)), [&](const index3 &where, const index3 &cell) {
            for (int c = 0; inside(b.local, cell) && c < f.layout.components; ++c) {
                T sum;
                std::memcpy(&sum, memory.data() + f.at(b, cell, c), sizeof sum);
                sum = combined(how, sum, number_at<T>(f.number, where, static_cast<std::uint64_t>(c), epoch, holder));
                std::memcpy(memory.data() + f.at(b, cell, c), &sum, sizeof sum);
            }
        });
}

int program::run_reverse(const halo::grid &g) {
    const auto how = static_cast<halo::reduction>(pick(1, 3));
    std::vector<test_field *> set;
    std::vector<halo::field> described;
    for (test_field &f : fields_)
        if (f.type != halo::value_type::bytes) set.push_back(&f), described.push_back(f.description());
    halo::exchange reverse(g, described, {.reduce = how});
    int wrong = 0;
    for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
        std::vector<std::vector<std::byte>> expected;
        for (std::size_t i = 0; i < set.size(); ++i) {
            test_field *const f = set[i];
            if (f->two_allocations && pick_own(0, 1)) {
                for (test_box &b : f->boxes) std::swap(b.memory, b.second);
                reverse.swap(static_cast<int>(i));
            }
            poison_all(*f);
            with_type(f->type, [&](auto zero) {
                for (test_box &b : f->boxes) {
                    for_each_held(*f, b.local, [&](const index3 &where, const index3 &) {
                        put_numbers<decltype(zero)>(*f, b, where, epoch);
                    });
                    expected.push_back(b.memory);
                    reduce<decltype(zero)>(g, *f, b, how, epoch, expected.back());
                }
            });
        }
        exchange(reverse, set.size());
        std::size_t at = 0;
        for (const test_field *f : set)
            for (const test_box &b : f->boxes)
                wrong += expected[at++] != b.memory ||
                         std::any_of(b.second.begin(), b.second.end(), [](auto c) { return c != poison; });
    }
    // A cell that gets something is not in the interior, nor is a point.
    for (const test_field *f : set)
        for (std::size_t i = 0; i < f->boxes.size(); ++i) {
            const box inner = g.points(reverse.interior(static_cast<int>(i)), f->layout.staggered);
            for (int holder = 0; holder < g.total_boxes(); ++holder)
                for_each_ghost(*f, points_of(*f, g.box_of(holder)),
                               [&](const index3 &, const index3 &cell) { wrong += inside(inner, cell); });
        }
    return wrong;
}

}  // namespace random_halo
