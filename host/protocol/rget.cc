// SPDX-License-Identifier: BSD-3-Clause
#include "host/protocol/rget.h"

#include <mpix/detail/abi.h>
#include <mpix/impl/inline/packet.cuh>
#include <mpix/impl/rget/rget.cuh>

#include <algorithm>
#include <limits>

#include "host/config.h"
#include "host/format.h"

namespace mpix {

std::uint64_t bytes_with_rts(std::uint64_t partitions) {
    return (detail::words_before_rts(partitions) + partitions + 1) * sizeof(std::uint64_t);
}

std::uint64_t answers_in_words(std::uint64_t partitions) {
    return sizeof(mpix_words) + partitions * sizeof(mpix_ring_entry);
}

std::uint64_t words_with_answers(std::uint64_t partitions) {
    return answers_in_words(partitions) + partitions * sizeof(std::uint64_t);
}

reason why_no_rget(const rget_end &end) {
    const count_or_auto &knob = config().rget_bytes;
    if (!knob.automatic && knob.number == 0) return "MPIX_RGET_BYTES is 0";
    // Without a progress thread, nobody may tell the receiver of the epoch's end while the sender's host waits for a
    // kernel.
    if (config().progress == progress_mode::never) return "MPIX_PROGRESS is never";
    if (!end.on_gpu) return "the buffer is not GPU memory";
    if (end.gaps) return "the buffer has gaps";
    if (((reinterpret_cast<std::uintptr_t>(end.buffer) | end.partition_bytes) & 7) != 0)
        return "its partitions are not made of whole words of 8 bytes";
    if (end.partition_bytes < end.least || end.partition_bytes == 0)
        return {"a partition has less than {} bytes (MPIX_RGET_BYTES)", end.least};
    if (end.partition_bytes > detail::most_read_per_thread * most_block_threads)
        return format("a partition has more than {} bytes for each of {} threads", detail::most_read_per_thread,
                      most_block_threads);
    return {};
}

std::uint64_t rget_threshold(double thread_bytes_per_us) {
    const count_or_auto &knob = config().rget_bytes;
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    if (!knob.automatic) return std::min(knob.number, most);
    if (!(thread_bytes_per_us > 0)) return 0;
    constexpr double us = static_cast<double>(detail::reading_ns) * 1e-3;
    return static_cast<std::uint64_t>(std::min(us * thread_bytes_per_us, static_cast<double>(most - 1))) + 1;
}

}  // namespace mpix
