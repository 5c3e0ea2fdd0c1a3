// SPDX-License-Identifier: BSD-3-Clause
#include "host/protocol/pack_explain.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "host/explain_text.h"
#include "host/format.h"

namespace mpix {
namespace {

std::string tenths(double us) { return format("{}.{}", static_cast<long long>(us), static_cast<int>(us * 10) % 10); }

std::string describe(const plan &type) {
    if (type.boxes.size() != 1 || !type.loose.empty())
        return format("{} boxes and {} single runs an element", type.boxes.size(), type.loose.size());
    const mpix_box &box = type.boxes[0];
    std::string line = format("runs of {} bytes", box.run);
    for (std::int64_t k = 0; k < box.dimensions; ++k)
        line += format(", {} at {}", box.dimension[k].count, box.dimension[k].stride);
    return line;
}

std::string title(const char *call, std::int64_t bytes, int device) {
    return format("{} of {} bytes, GPU {}", call, bytes, device);
}

// The call, the plan's description, bytes, GPU, way.
using key = std::tuple<const char *, std::string, std::int64_t, int, gpu::pack_way>;
struct calls {
    double predicted = 0, best = 0;
    std::uint64_t number = 0;
};

struct told_calls {
    std::mutex mutex;
    std::map<key, calls> all;
    std::set<std::pair<int, bool>> costs;  // devices, and whether they were measured
};
told_calls &told() {
    static auto *const those = new told_calls;
    return *those;
}

}  // namespace

std::vector<std::string> explain_pack(const char *call, const plan &type, std::int64_t bytes, int device,
                                      const gpu::pack_choice &choice) {
    std::vector<std::string> lines = {format("{}: {}", title(call, bytes, device), describe(type))};
    for (const gpu::pack_candidate &c : choice.candidates)
        lines.push_back(format("  {:<12} {:<12} {}", gpu::name_of(c.way),
                               c.way == choice.taken  ? "chosen"
                               : c.why_not == nullptr ? "not used"
                                                      : "not possible",
                               c.why_not == nullptr ? tenths(c.us) + " us predicted" : c.why_not));
    return lines;
}

#if MPIX_HAVE_CUDA
namespace {

void tell_costs(explain_text &out, int device, const gpu::pack_costs &c) {
    out.line(format(
        "packing on GPU {}, {}: kernel {} us, copy {} us; kernels {} GB/s in memory, {} GB/s in the cache up "
        "to {} KiB, {} GB/s into host memory; copies by rows {} GB/s and {} ps a row, {} GB/s and {} ps "
        "a row into host memory",
        device, c.measured ? "as measured" : "as usual", tenths(c.kernel), tenths(c.copy), tenths(c.memory / 1e3),
        tenths(c.cached / 1e3), static_cast<long long>(c.cache_bytes / 1024), tenths(c.host / 1e3),
        tenths(c.copied_rows[0] / 1e3), tenths(c.row[0] * 1e6), tenths(c.copied_host / 1e3), tenths(c.host_row * 1e6)));
}

void note(const char *call, const plan &type, const gpu::message &m, double us) {
    gpu::pack_costs costs;
    const gpu::pack_choice choice = gpu::explain(m, costs);
    told_calls &t = told();
    const std::lock_guard lock(t.mutex);
    calls &c = t.all[{call, describe(type), m.bytes, m.device, choice.taken}];
    c.predicted = choice.us();
    if (c.number > 0) c.best = c.number == 1 ? us : std::min(c.best, us);
    if (++c.number > 1) return;
    explain_text out;
    if (t.costs.emplace(m.device, costs.measured).second) tell_costs(out, m.device, costs);
    for (const std::string &line : explain_pack(call, type, m.bytes, m.device, choice)) out.line(line);
    if (us > 0) out.line(format("  the first call took {} us", tenths(us)));
    out.print();
}

}  // namespace

status run_explained(const char *call, const plan &type, const gpu::message &m) {
    const auto begin = std::chrono::steady_clock::now();
    status bad = from_sentence(gpu::run(m));
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    if (bad.ok()) note(call, type, m, time.count());
    return bad;
}

status enqueue_explained(const char *call, const plan &type, const gpu::message &m, gpu::stream_handle stream) {
    status bad = from_sentence(gpu::enqueue(m, stream));
    if (bad.ok()) note(call, type, m, 0);
    return bad;
}
#endif

void tell_pack_times() {
    told_calls &t = told();
    const std::lock_guard lock(t.mutex);
    explain_text out;
    for (const auto &[k, c] : t.all) {
        const auto &[call, type, bytes, device, way] = k;
        if (c.number < 2 || c.best <= 0) continue;
        out.line(format("{}: {}: {} calls by {}: {} us predicted, {} us the quickest after the first",
                        title(call, bytes, device), type, c.number, gpu::name_of(way), tenths(c.predicted),
                        tenths(c.best)));
    }
    out.print();
    t.all.clear();
}

}  // namespace mpix
