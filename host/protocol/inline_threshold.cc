// SPDX-License-Identifier: BSD-3-Clause
#include "host/protocol/inline_threshold.h"

#include <mpix/impl/inline/packet.cuh>

#include <algorithm>
#include <mutex>

#include "host/config.h"
#include "host/control/setup_mutex.h"
#include "host/format.h"
#include "host/gpu_pending.h"
#include "host/progress.h"

namespace mpix {
namespace {

static_assert(most_inline_bytes == std::uint64_t{gpu::many_packets} * detail::packet_payload);
static_assert(transport::scratch_bytes >= gpu::many_packets * detail::packet_bytes);

constexpr const char *not_measured = "nothing has been measured to there yet";

// Guarded by setup_mutex. Never destroyed: the CUDA runtime may be gone by the time of static destructors.
inline_meter &meter() {
    static auto *const one = new inline_meter({gpu::start_timing, gpu::times_of});
    return *one;
}

inline_threshold usual(const std::string &why) {
    return {usual_inline_bytes, inline_threshold::origin::usual, {}, why};
}

}  // namespace

inline_costs costs_of(const gpu::inline_times &t) {
    constexpr double packets = gpu::many_packets - gpu::few_packets;
    const auto rate = [](double bytes, double us) { return us > 0 ? bytes / us : 0; };
    return {t.few_fenced - t.few_stored, t.few_told - t.few_taken,
            rate(packets * gpu::timed_packet_bytes, t.many_fenced - t.few_fenced),
            rate(packets * gpu::timed_packet_payload, t.many_told - t.few_told)};
}

std::uint64_t inline_threshold_bytes(const inline_costs &c) {
    // Other users of the GPUs or of the link may have spoilt the measurement. No GPU is outside these limits.
    const auto between = [](double least, double value, double most) { return value > least && value < most; };
    if (!between(0.05, c.fence_us, 50) || !between(-0.1, c.tell_us, 50) || !between(100, c.stored_bytes_per_us, 1e7) ||
        !between(100, c.taken_bytes_per_us, 1e7))
        return 0;
    // Each byte costs one more byte on the link, and is copied out. After a fence the flag is told without copying out. A
    // look at the packets that is too early for the last one has been made in vain: half a look on average.
    constexpr double looks = 1.5;
    const double saved = c.fence_us - std::max(c.tell_us, 0.0);
    const double bytes = saved / (1 / c.stored_bytes_per_us + looks / c.taken_bytes_per_us);
    const double bounded =
        std::clamp(bytes, static_cast<double>(least_inline_bytes), static_cast<double>(most_inline_bytes));
    return static_cast<std::uint64_t>(bounded) / 1024 * 1024;
}

std::string described(const inline_threshold &limit) {
    const std::string upto = format("partitions of up to {} bytes (MPIX_INLINE_BYTES)", limit.bytes);
    if (limit.by == inline_threshold::origin::given) return upto;
    if (limit.by == inline_threshold::origin::usual) return upto + ": " + limit.why;
    return upto +
           format(
               ": a fence takes {:.2f} us, a block stores {:.0f} bytes a us; it takes {:.0f} bytes a us out of an "
               "inline buffer, and {:.2f} us to tell",
               limit.costs.fence_us, limit.costs.stored_bytes_per_us, limit.costs.taken_bytes_per_us,
               std::max(limit.costs.tell_us, 0.0));
}

void inline_meter::look_at(measurement &m, int device) const {
    status bad;
    if (m.under_way == nullptr || !is_finished(*m.under_way, bad)) return;
    m.under_way = nullptr;
    m.result = bad;
    if (!m.result.ok()) return;
    m.costs = costs_of(calls_.times(device));
    if (inline_threshold_bytes(m.costs) == 0) m.result = failure("what was measured cannot be");
}

bool inline_meter::busy() {
    bool any = false;
    for (auto &[pair, m] : all_) {
        look_at(m, pair.first);
        any |= m.under_way != nullptr;
    }
    return any;
}

void inline_meter::begin(void *at_peer, int device, int peer_world) {
    if (all_.count({device, peer_world}) != 0 || busy()) return;
    measurement &m = all_[{device, peer_world}];
    m.result = from_sentence(calls_.start(at_peer, device, m.under_way));
    if (m.result.ok()) m.result = failure(not_measured);
}

inline_threshold inline_meter::limit(int device, int peer_world) {
    const auto found = all_.find({device, peer_world});
    if (found == all_.end()) return usual(not_measured);
    measurement &m = found->second;
    look_at(m, device);
    if (!m.result.ok()) return usual(m.result.message());
    return {inline_threshold_bytes(m.costs), inline_threshold::origin::measured, m.costs, {}};
}

inline_threshold choose_inline_threshold(int device, int peer_world, bool gaps) {
    const count_or_auto &knob = config().inline_bytes;
    if (!knob.automatic) return {knob.number, inline_threshold::origin::given, {}, {}};
    // pready does not store messages with gaps itself, so the inline buffer saves no fence there.
    return gaps ? usual("there are gaps") : meter().limit(device, peer_world);
}

std::uint64_t largest_inline(bool gaps) {
    const count_or_auto &knob = config().inline_bytes;
    return !knob.automatic ? knob.number : gaps ? usual_inline_bytes : most_inline_bytes;
}

void measure_inline(const transport::region &flags, int device, int peer_world) {
    if (config().inline_bytes.automatic && flags.scratch != nullptr) meter().begin(flags.scratch, device, peer_world);
}

void end_measuring_inline() {
    outlast("a kernel that times stores to another GPU", [] {
        const std::lock_guard lock(setup_mutex());
        return !meter().busy();
    });
}

}  // namespace mpix
