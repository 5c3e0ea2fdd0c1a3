// SPDX-License-Identifier: BSD-3-Clause
//
// What the programs that test files have in common: expectations, the content of a file, and a limit of its length.
#ifndef MPIX_TESTS_HALO_FILE_TEST_HPP
#define MPIX_TESTS_HALO_FILE_TEST_HPP

#include <sys/resource.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/halo/expectations.hpp"
#include "tests/halo/sample_fields.hpp"

namespace file_test {

using halo_test::expect;
using halo_test::failures;
inline int &world_rank = halo_test::rank;
inline int world_size = 1;

// Empty, if it is not there.
inline sample_fields::bytes content_of(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    sample_fields::bytes all(text.size());
    std::memcpy(all.data(), text.data(), text.size());
    return all;
}

// Files are no longer than this, in this process; 0: as long as the system allows.
inline void limit_files(rlim_t length) {
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = length == 0 ? limit.rlim_max : length;
    setrlimit(RLIMIT_FSIZE, &limit);
}

}  // namespace file_test

#endif  // MPIX_TESTS_HALO_FILE_TEST_HPP
