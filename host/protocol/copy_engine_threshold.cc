// SPDX-License-Identifier: BSD-3-Clause
#include "host/protocol/copy_engine_threshold.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <utility>

#include "device/kernels/gpu_pack.h"
#include "host/config.h"
#include "host/progress.h"
#include "transport/select.h"

namespace mpix {
namespace {

// A word from a GPU to its host and back, on an H200: the time to reach the engine, and from it the flag.
constexpr double hand_over_us = 3.2;
// More bytes than any thread has. Kernels are told the limit in 32 bits.
constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();

// Microseconds; 0: it failed. Then the next use of the copy engine fails as well, and says why.
double measure_word(const transport::region &flags) {
    transport::transport &gpus = *transport::devices();
    double best = 0;
    for (int turn = 0; turn < 4; ++turn) {
        const auto begin = std::chrono::steady_clock::now();
        if (!gpus.post_words(flags.address, 0, 1, flags.device).ok() || !gpus.flush_words(flags.device).ok()) return 0;
        const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
        if (turn == 1 || (turn > 1 && us < best)) best = us;  // the first also creates what the others use
    }
    return best;
}

}  // namespace

std::uint64_t copy_engine_bytes(const copy_engine_costs &costs, std::uint64_t partitions) {
    if (!(costs.thread_bytes_per_us > 0) || !(costs.word_us > 0)) return 0;
    // The engine takes partitions one after the other, each by a copy and a flag.
    const double us = hand_over_us + costs.asleep_us + 2 * costs.word_us * static_cast<double>(partitions);
    return static_cast<std::uint64_t>(std::min(us * costs.thread_bytes_per_us, static_cast<double>(most - 1))) + 1;
}

copy_engine_threshold choose_copy_engine_threshold(const transport::region &flags, int device, int peer_world,
                                                   std::uint64_t partitions, bool gaps) {
    const count_or_auto &knob = config().copy_engine_bytes;
    // The engine moves partitions with gaps by a kernel, which may find no room on a GPU that the user's kernels fill.
    if (gaps) return {};
    if (!knob.automatic) return {std::min(knob.number, most), false, {}};
    // Without a progress thread, a kernel may wait for a partition that is left to the engine while the host waits for
    // that kernel.
    if (config().progress == progress_mode::never) return {};
    static auto *const measured = new std::map<std::pair<int, int>, double>;
    const auto [found, first] = measured->try_emplace({device, peer_world}, 0);
    if (first) found->second = measure_word(flags);
    const double asleep_us = config().progress == progress_mode::always ? 0 : longest_pause_us;
    const copy_engine_costs costs{gpu::lone_thread_rate(device), found->second, asleep_us};
    return {copy_engine_bytes(costs, partitions), true, costs};
}

}  // namespace mpix
