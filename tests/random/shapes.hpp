// SPDX-License-Identifier: BSD-3-Clause
//
// What a program is made of, drawn before its steps: communicators, pairs of requests with their types, and the user's
// own messages.
#ifndef MPIX_TESTS_RANDOM_SHAPES_HPP
#define MPIX_TESTS_RANDOM_SHAPES_HPP

#include <random>

#include "tests/random/program.hpp"

namespace random_test {

class dice {
public:
    explicit dice(std::uint64_t seed) : random_(seed) {}
    int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    int between(int low, int high) { return low + below(high - low + 1); }
    bool one_in(int n) { return below(n) == 0; }
    std::uint64_t number() { return random_(); }
    template <class T>
    const T &of(const std::vector<T> &all) {
        return all[static_cast<std::size_t>(below(static_cast<int>(all.size())))];
    }
    template <class T>
    void shuffle(std::vector<T> &all) {
        for (std::size_t n = all.size(); n > 1; --n)
            std::swap(all[n - 1], all[static_cast<std::size_t>(below(static_cast<int>(n)))]);
    }

private:
    std::mt19937_64 random_;
};

void draw_communicators(program &p, dice &d);
void draw_pairs(program &p, dice &d);
void draw_messages(program &p, dice &d);

}  // namespace random_test

#endif  // MPIX_TESTS_RANDOM_SHAPES_HPP
