// SPDX-License-Identifier: BSD-3-Clause
//
// What this process holds: memory, descriptors, mappings.
#ifndef MPIX_TESTS_BENCH_USAGE_HPP
#define MPIX_TESTS_BENCH_USAGE_HPP

#include <dirent.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace bench {

struct usage {
    double heap = 0;      // in use, as malloc says: mpix's and the MPI library's
    double shared = 0;    // in memory files of mpix's that this process owns
    double resident = 0;  // private to the process
    double descriptors = 0, mappings = 0;
    double proportional = 0;  // resident, and of what is shared this process's part: the sum over a job is what it uses
};
constexpr int usage_figures = sizeof(usage) / sizeof(double);

inline usage operator-(const usage &a, const usage &b) {
    return {a.heap - b.heap,         a.shared - b.shared,
            a.resident - b.resident, a.descriptors - b.descriptors,
            a.mappings - b.mappings, a.proportional - b.proportional};
}
inline usage operator/(const usage &a, double n) {
    return {a.heap / n, a.shared / n, a.resident / n, a.descriptors / n, a.mappings / n, a.proportional / n};
}

inline usage look() {
    usage u;
    const struct mallinfo2 heap = mallinfo2();
    u.heap = static_cast<double>(heap.uordblks + heap.hblkhd);
    DIR *const dir = opendir("/proc/self/fd");
    if (dir == nullptr) {
        std::perror("/proc/self/fd");
        std::abort();
    }
    for (const dirent *entry; (entry = readdir(dir)) != nullptr;) {
        char target[256];
        const ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        if (n < 0) continue;
        target[n] = '\0';
        u.descriptors += 1;
        struct stat file;
        if (std::strncmp(target, "/memfd:mpix", 11) == 0 && fstat(std::atoi(entry->d_name), &file) == 0)
            u.shared += static_cast<double>(file.st_blocks) * 512;
    }
    closedir(dir);
    u.descriptors -= 1;  // the folder's own
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) u.mappings += 1;
    std::ifstream rollup("/proc/self/smaps_rollup");
    for (std::string line; std::getline(rollup, line);) {
        double kibibytes = 0;
        if (std::sscanf(line.c_str(), "Private_%*[^:]: %lf", &kibibytes) == 1) u.resident += kibibytes * 1024;
        if (std::sscanf(line.c_str(), "Pss: %lf", &kibibytes) == 1) u.proportional = kibibytes * 1024;
    }
    return u;
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_USAGE_HPP
