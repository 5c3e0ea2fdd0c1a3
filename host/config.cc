// SPDX-License-Identifier: BSD-3-Clause
#include "host/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>

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

template <class Named>
requires std::is_enum_v<Named>
bool parse(const std::string &value, Named &out) {
    constexpr std::array names = names_of(Named{});
    const auto found = std::find(names.begin(), names.end(), value);
    if (found != names.end()) out = static_cast<Named>(found - names.begin());
    return found != names.end();
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
constexpr const char *takes(const halo_stream &) { return "kernels, packed or plain"; }

status malformed(const char *variable, const std::string &value, const std::string &why) {
    return failure(format("{}=\"{}\" is malformed: {}", variable, value, why));
}

template <class Knob>
status parse_knob(const char *variable, const std::string &value, Knob &knob) {
    Knob parsed{};  // of a malformed value nothing is kept: who prints what is wrong reads knobs, too
    if (!parse(value, parsed)) return malformed(variable, value, std::string("it takes ") + takes(knob));
    knob = std::move(parsed);
    return {};
}

template <class Knob>
void read_knob(const char *(*lookup)(const char *), const char *variable, const char *initial, Knob &knob,
               status &bad) {
    parse(initial, knob);
    const char *const value = lookup(variable);
    if (value == nullptr) return;
    if (const status why = parse_knob(variable, value, knob); bad.ok()) bad = why;
}

status check_cpus(const configuration &c) {
    std::vector<int> cpus;
    if (parse_cpu_list(c.progress_cpus, cpus)) return {};
    return malformed("MPIX_PROGRESS_CPUS", c.progress_cpus, "it takes a list of CPUs such as 3,8-11");
}

// Lets the transports know what they are restricted to.
status restrict_transports(const configuration &c) {
    status bad;
    const auto keep = [&bad](const char *variable, const std::string &value, const status &why) {
        if (bad.ok() && !why.ok()) bad = malformed(variable, value, why.message());
    };
    keep("MPIX_TRANSPORTS", c.transports, transport::use_only(c.transports));
    keep("MPIX_VERBS_DEVICE", c.verbs_device, transport::use_rdma_device(c.verbs_device));
    const count_or_auto &eager = c.ucx_eager_bytes;
    keep("MPIX_UCX_EAGER_BYTES", std::to_string(eager.number),
         transport::use_ucx(c.ucx_gpu, eager.automatic ? std::nullopt : std::optional(eager.number)));
    return bad;
}

// What tools have set, by variable; and whether MPI_Init has come.
struct set_by_tools {
    std::mutex mutex;
    std::map<std::string, std::string, std::less<>> values;
    bool too_late = false;
};
set_by_tools &by_tools() {
    static auto *const all = new set_by_tools;
    return *all;
}

// The mutex is held.
const char *value_of(const char *variable) {
    const auto set = by_tools().values.find(variable);
    return set != by_tools().values.end() ? set->second.c_str() : std::getenv(variable);
}

// Into that configuration alone.
status assign(configuration &to, const char *variable, const std::string &value) {
    status bad = failure(format("{} is no variable of mpix", variable));
#define MPIX_KNOB(member, type, name, initial, meaning) \
    if (std::strcmp(variable, name) == 0) bad = parse_knob(name, value, to.member);
#include "host/config.def"
#undef MPIX_KNOB
    return bad;
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
    if (bad.ok()) bad = check_cpus(out);
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
    const std::lock_guard lock(by_tools().mutex);
    by_tools().too_late = true;
    const status bad = read_configuration(value_of, config()), restricted = restrict_transports(config());
    return bad.ok() ? restricted : bad;
}

bool environment_is_read() {
    const std::lock_guard lock(by_tools().mutex);
    return by_tools().too_late;
}

configuration configuration_so_far() {
    const std::lock_guard lock(by_tools().mutex);
    if (by_tools().too_late) return config();
    configuration out;
    static_cast<void>(read_configuration(value_of, out));  // MPI_Init says what is malformed
    return out;
}

status set_knob(const char *variable, const std::string &value) {
    configuration alone;
    status bad = read_configuration([](const char *) -> const char * { return nullptr; }, alone);
    if (bad.ok()) bad = assign(alone, variable, value);
    if (bad.ok()) bad = check_cpus(alone);
    if (!bad.ok()) return bad;
    const std::lock_guard lock(by_tools().mutex);
    if (by_tools().too_late) return failure(format("{} cannot be set after MPI_Init", variable));
    bad = restrict_transports(alone);  // to be repeated by MPI_Init, before which nothing asks for them
    if (bad.ok()) by_tools().values[variable] = value;
    return bad;
}

bool may_change_later(std::string_view variable) {
    for (const std::string_view one :
         {"MPIX_EAGER_BYTES", "MPIX_LANDING_BYTES", "MPIX_SINGLE_COPY_BYTES", "MPIX_ENGINE_BYTES"})
        if (variable == one) return true;
    return false;
}

status change_knob(const char *variable, const std::string &value) {
    if (!may_change_later(variable)) return failure(format("{} cannot be set after MPI_Init", variable));
    const std::lock_guard lock(by_tools().mutex);
    return assign(config(), variable, value);
}

}  // namespace mpix
