// SPDX-License-Identifier: BSD-3-Clause
//
// What the programs that test files have in common: expectations, the content of a file, a limit of its length, and calls that
// refuse.
#ifndef MPIX_TESTS_HALO_FILE_TEST_HPP
#define MPIX_TESTS_HALO_FILE_TEST_HPP

#include <sys/resource.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <system_error>

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
    if (!text.empty()) std::memcpy(all.data(), text.data(), text.size());  // neither address may be null
    return all;
}

// On all ranks, with this class (or any, if it is -1) and words.
inline void refused(int error_class, const std::string &words, const std::function<void()> &call) {
    std::string told = "nothing";
    int found = -1;
    try {
        call();
    } catch (const mpix::halo::error &e) {
        told = e.what();
        found = e.error_class();
    }
    const bool right = found != -1 && (error_class == -1 || found == error_class);
    expect(right && told.find(words) != std::string::npos, "not \"" + words + "\" but \"" + told + "\"");
}

// How many files this process has open whose path contains that.
inline int open_files(const std::string &path) {
    int count = 0;
    for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;  // that of the iteration itself
        count += std::filesystem::read_symlink(entry, gone).string().find(path) != std::string::npos;
    }
    return count;
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
