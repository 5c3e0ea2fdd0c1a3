// SPDX-License-Identifier: BSD-3-Clause
#include "host/config.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "host/format.h"
#include "transport/select.h"

namespace mpix {
namespace {

bool parse(const std::string &value, count &out) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
    return error == std::errc{} && end == value.data() + value.size();
}

bool parse(const std::string &value, count_or_auto &out) {
    out.automatic = value == "auto";
    return out.automatic || parse(value, out.number);
}

bool parse(const std::string &value, on_off &out) {
    out = value == "1";
    return out || value == "0";
}

// Not strtod: the decimal point must not depend on the locale.
bool parse(const std::string &value, seconds &out) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
    return error == std::errc{} && end == value.data() + value.size() && std::isfinite(out) && out >= 0 && out < 1e9;
}

bool parse(const std::string &value, text &out) {
    out = value;
    return true;
}

bool parse(const std::string &value, progress_mode &out) {
    if (value == "auto")
        out = progress_mode::automatic;
    else if (value == "always")
        out = progress_mode::always;
    else if (value == "never")
        out = progress_mode::never;
    else
        return false;
    return true;
}

bool parse(const std::string &value, pack_mode &out) {
    if (value == "auto")
        out = pack_mode::none;
    else if (value == "kernel")
        out = pack_mode::kernel;
    else if (value == "copy")
        out = pack_mode::rows;
    else
        return false;
    return true;
}

bool parse(const std::string &value, halo_transfer &out) {
    if (value == "program")
        out = halo_transfer::program;
    else if (value == "packed")
        out = halo_transfer::packed;
    else if (value == "datatype")
        out = halo_transfer::datatype;
    else if (value == "plain")
        out = halo_transfer::plain;
    else
        return false;
    return true;
}

// What parse() takes.
constexpr const char *takes(const count &) { return "a whole number, at least 0"; }
constexpr const char *takes(const count_or_auto &) { return "auto, or a whole number, at least 0"; }
constexpr const char *takes(const on_off &) { return "0 or 1"; }
constexpr const char *takes(const seconds &) { return "a number of seconds, at least 0"; }
constexpr const char *takes(const text &) { return "any text"; }
constexpr const char *takes(const progress_mode &) { return "auto, always or never"; }
constexpr const char *takes(const pack_mode &) { return "auto, kernel or copy"; }
constexpr const char *takes(const halo_transfer &) { return "program, packed, datatype or plain"; }

template <class Knob>
void read_knob(const char *(*lookup)(const char *), const char *variable, const char *initial, Knob &knob,
               status &bad) {
    parse(initial, knob);
    const char *value = lookup(variable);
    if (value == nullptr || parse(value, knob) || !bad.ok()) return;
    bad = failure(format("{}=\"{}\" is malformed: it takes {}", variable, value, takes(knob)));
}

}  // namespace

bool parse_cpu_list(const std::string &list, std::vector<int> &cpus) {
    const char *at = list.data(), *const end = at + list.size();
    constexpr int limit = 1 << 16;
    while (at != end) {
        int first = 0, last = 0;
        auto read = [&](int &value) {
            const auto [next, error] = std::from_chars(at, end, value);
            const bool good = error == std::errc{} && value >= 0 && value < limit;
            at = next;
            return good;
        };
        if (!read(first)) return false;
        last = first;
        if (at != end && *at == '-') {
            ++at;
            if (!read(last) || last < first) return false;
        }
        for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
        if (cpus.size() > limit) return false;  // some of them named again and again
        if (at == end) return true;
        if (*at++ != ',' || at == end) return false;
    }
    return true;
}

status read_configuration(const char *(*lookup)(const char *), configuration &out) {
    status bad;
#define MPIX_KNOB(member, type, variable, initial, meaning) read_knob(lookup, variable, initial, out.member, bad);
#include "host/config.def"
#undef MPIX_KNOB
    std::vector<int> cpus;
    if (bad.ok() && !parse_cpu_list(out.progress_cpus, cpus))
        bad = failure(format("MPIX_PROGRESS_CPUS=\"{}\" is malformed: it takes a list of CPUs such as 3,8-11",
                             out.progress_cpus));
    return bad;
}

configuration &config() {
    // Never destroyed: destructors of the program's objects may still read it.
    static configuration *const current = [] {
        auto initial = std::make_unique<configuration>();
        // Nothing of it is malformed.
        static_cast<void>(read_configuration([](const char *) -> const char * { return nullptr; }, *initial));
        return initial.release();
    }();
    return *current;
}

status read_environment() {
    status bad = read_configuration([](const char *name) -> const char * { return std::getenv(name); }, config());
    const auto malformed = [&bad](const char *variable, const std::string &value, const status &why) {
        if (bad.ok()) bad = why.in_context(format("{}=\"{}\" is malformed: ", variable, value));
    };
    malformed("MPIX_TRANSPORTS", config().transports, transport::use_only(config().transports));
    malformed("MPIX_VERBS_DEVICE", config().verbs_device, transport::use_rdma_device(config().verbs_device));
    malformed("MPIX_UCX_EAGER_BYTES", std::to_string(config().ucx_eager_bytes),
              transport::use_ucx(config().ucx_gpu, config().ucx_eager_bytes));
    return bad;
}

}  // namespace mpix
