// SPDX-License-Identifier: BSD-3-Clause
//
// The environment's parsers: a line of the input for each variable.
#include "host/config.h"

#include <sstream>
#include <vector>

#include "tests/fuzz/input.h"

using namespace mpix;

namespace {

std::vector<std::string> values;
std::size_t next_value;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    fuzz::input in(data, size);
    std::istringstream lines(in.rest());
    values.clear();
    next_value = 0;
    for (std::string line; std::getline(lines, line);) values.push_back(line);
    configuration c;
    const status bad = read_configuration(
        [](const char *) -> const char * {
            return next_value < values.size() ? values[next_value++].c_str() : nullptr;
        },
        c);
    FUZZ_CHECK(c.stall_seconds >= 0 || !bad.ok());
    if (!bad.ok()) return 0;
    FUZZ_CHECK(c.stall_seconds < 1e9);
    std::vector<int> cpus;
    FUZZ_CHECK(parse_cpu_list(c.progress_cpus, cpus));
    FUZZ_CHECK(cpus.size() <= 1u << 16);
    for (const int cpu : cpus) FUZZ_CHECK(cpu >= 0 && cpu < 1 << 16);
    return 0;
}
