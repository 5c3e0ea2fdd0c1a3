// SPDX-License-Identifier: BSD-3-Clause
#include "host/request/mail_limit.h"

#include <mpix/device/mailbox.cuh>

#include <algorithm>
#include <mutex>

#include "host/config.h"
#include "host/format.h"
#include "host/progress.h"
#include "host/request/request.h"

namespace mpix {
namespace {

static_assert(most_mail_bytes == std::uint64_t{gpu::many_lines} * detail::line_payload);
static_assert(transport::scratch_bytes >= gpu::many_lines * detail::line_bytes);

constexpr const char *not_measured = "nothing has been measured to there yet";

// Guarded by setup_mutex. Never destroyed: the CUDA runtime may be gone by the time of static destructors.
mail_meter &meter() {
    static auto *const one = new mail_meter({gpu::start_timing, gpu::times_of});
    return *one;
}

mail_limit usual(const std::string &why) { return {usual_mail_bytes, mail_limit::origin::usual, {}, why}; }

}  // namespace

mail_costs costs_of(const gpu::mail_times &t) {
    constexpr double lines = gpu::many_lines - gpu::few_lines;
    const auto rate = [](double bytes, double us) { return us > 0 ? bytes / us : 0; };
    return {t.few_fenced - t.few_stored, t.few_told - t.few_taken,
            rate(lines * gpu::timed_line_bytes, t.many_fenced - t.few_fenced),
            rate(lines * gpu::timed_line_payload, t.many_told - t.few_told)};
}

std::uint64_t mail_bytes(const mail_costs &c) {
    // Whoever else used the GPUs, or the link, may have made nonsense of it. No GPUs are beyond these.
    const auto between = [](double least, double value, double most) { return value > least && value < most; };
    if (!between(0.05, c.fence_us, 50) || !between(-0.1, c.tell_us, 50) || !between(100, c.stored_bytes_per_us, 1e7) ||
        !between(100, c.taken_bytes_per_us, 1e7))
        return 0;
    // Each byte takes one more of the link, and is taken out. What comes after a fence is told without taking out.
    const double saved = c.fence_us - std::max(c.tell_us, 0.0);
    const double bytes = saved / (1 / c.stored_bytes_per_us + 1 / c.taken_bytes_per_us);
    const double bounded =
        std::clamp(bytes, static_cast<double>(least_mail_bytes), static_cast<double>(most_mail_bytes));
    return static_cast<std::uint64_t>(bounded) / 1024 * 1024;
}

std::string described(const mail_limit &limit) {
    const std::string upto = format("partitions of up to {} bytes (MPIX_INLINE_BYTES)", limit.bytes);
    if (limit.by == mail_limit::origin::given) return upto;
    if (limit.by == mail_limit::origin::usual) return upto + ": " + limit.why;
    return upto +
           format(
               ": a fence takes {:.2f} us, a block stores {:.0f} bytes a us; it takes {:.0f} bytes a us out of a "
               "mailbox, and {:.2f} us to tell",
               limit.costs.fence_us, limit.costs.stored_bytes_per_us, limit.costs.taken_bytes_per_us,
               std::max(limit.costs.tell_us, 0.0));
}

void mail_meter::look_at(measurement &m, int device) const {
    transport::outcome problem;
    if (m.under_way == nullptr || !m.under_way->finished(problem)) return;
    m.under_way = nullptr;
    m.failure = problem;
    if (!problem.empty()) return;
    m.costs = costs_of(calls_.times(device));
    if (mail_bytes(m.costs) == 0) m.failure = "what was measured cannot be";
}

bool mail_meter::busy() {
    bool any = false;
    for (auto &[pair, m] : all_) {
        look_at(m, pair.first);
        any |= m.under_way != nullptr;
    }
    return any;
}

void mail_meter::begin(void *at_peer, int device, int peer_world) {
    if (all_.count({device, peer_world}) != 0 || busy()) return;
    measurement &m = all_[{device, peer_world}];
    m.failure = calls_.start(at_peer, device, m.under_way);
    if (m.failure.empty()) m.failure = not_measured;
}

mail_limit mail_meter::limit(int device, int peer_world) {
    const auto found = all_.find({device, peer_world});
    if (found == all_.end()) return usual(not_measured);
    measurement &m = found->second;
    look_at(m, device);
    if (!m.failure.empty()) return usual(m.failure);
    return {mail_bytes(m.costs), mail_limit::origin::measured, m.costs, {}};
}

mail_limit choose_mail_limit(int device, int peer_world, bool gaps) {
    const count_or_auto &wish = config().inline_bytes;
    if (!wish.automatic) return {wish.number, mail_limit::origin::given, {}, {}};
    // What has gaps pready does not store itself, so it is not a fence that the mailbox spares.
    return gaps ? usual("there are gaps") : meter().limit(device, peer_world);
}

std::uint64_t most_mailed(bool gaps) {
    const count_or_auto &wish = config().inline_bytes;
    return !wish.automatic ? wish.number : gaps ? usual_mail_bytes : most_mail_bytes;
}

void measure_mail(const transport::region &flags, int device, int peer_world) {
    if (config().inline_bytes.automatic && flags.scratch != nullptr) meter().begin(flags.scratch, device, peer_world);
}

void end_measuring_mail() {
    outlast("a kernel that times stores to another GPU", [] {
        const std::lock_guard lock(setup_mutex());
        return !meter().busy();
    });
}

}  // namespace mpix
