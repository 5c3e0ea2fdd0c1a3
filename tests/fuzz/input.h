// SPDX-License-Identifier: BSD-3-Clause
//
// What the fuzz targets share: reading decisions out of the input's bytes, and saying that something is wrong.
// Each target defines libFuzzer's LLVMFuzzerTestOneInput; replay.cc runs it where there is no libFuzzer.
#ifndef MPIX_TESTS_FUZZ_INPUT_H
#define MPIX_TESTS_FUZZ_INPUT_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);

namespace fuzz {

#define FUZZ_CHECK(condition)                                                              \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                                  \
        }                                                                                  \
    } while (0)

// Past its end there are zeros.
class input {
public:
    input(const std::uint8_t *data, std::size_t size) : at_(data), left_(size) {}
    bool empty() const { return left_ == 0; }
    void bytes(void *to, std::size_t n) {
        const std::size_t there = std::min(n, left_);
        if (there > 0) std::memcpy(to, at_, there);
        std::memset(static_cast<char *>(to) + there, 0, n - there);
        at_ += there;
        left_ -= there;
    }
    template <class Number>
    Number number() {
        Number n;
        bytes(&n, sizeof n);
        return n;
    }
    unsigned below(unsigned n) { return number<std::uint8_t>() % n; }
    bool one_in(unsigned n) { return below(n) == n - 1; }
    std::string rest() {
        std::string all(left_, '\0');
        bytes(all.data(), all.size());
        return all;
    }

private:
    const std::uint8_t *at_;
    std::size_t left_;
};

}  // namespace fuzz

#endif  // MPIX_TESTS_FUZZ_INPUT_H
