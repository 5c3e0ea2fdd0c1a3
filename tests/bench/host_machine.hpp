// SPDX-License-Identifier: BSD-3-Clause
//
// What the benches' tables say of the host and its MPI library.
#ifndef MPIX_TESTS_BENCH_HOST_MACHINE_HPP
#define MPIX_TESTS_BENCH_HOST_MACHINE_HPP

#include <mpi.h>
#include <sys/utsname.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <string>

namespace bench {

// In one cell of a table.
inline std::string library_name() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    std::string name(text);
    name = name.substr(0, name.find('\n'));
    name = name.substr(0, name.find(','));
    std::replace(name.begin(), name.end(), '\t', ' ');
    return name;
}

inline std::string today() {
    char date[32];
    const std::time_t now = std::time(nullptr);
    std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
    return date;
}

inline std::string cpu_model() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.rfind("model name", 0) == 0) {
            std::string model = line.substr(std::min(line.size(), line.find(':') + 2));
            std::replace(model.begin(), model.end(), ',', ' ');
            return model;
        }
    return "unknown";
}

inline std::string kernel_release() {
    utsname name;
    return uname(&name) == 0 ? name.release : "unknown";
}

// How many processes ran or wanted to, on average over the minute before.
inline std::string load() {
    std::ifstream file("/proc/loadavg");
    std::string value;
    return file >> value ? value : "unknown";
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_HOST_MACHINE_HPP
