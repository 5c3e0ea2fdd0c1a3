// SPDX-License-Identifier: BSD-3-Clause
//
// What UCX is to be used for.
#ifndef MPIX_TRANSPORT_UCX_OPTIONS_H
#define MPIX_TRANSPORT_UCX_OPTIONS_H

#include <cstdint>
#include <optional>

namespace mpix::transport {

struct ucx_options {
    static constexpr std::uint64_t usual_eager_bytes = 1 << 16, most_eager_bytes = 1 << 20;
    bool gpu_memory = true;  // where it can
    bool fake_gpus = false;  // tests: that is host memory
    // Puts into host memory of at most so many go as messages. Not set: over TCP all do, otherwise those of up to
    // usual_eager_bytes.
    std::optional<std::uint64_t> eager_bytes = std::nullopt;
};

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_UCX_OPTIONS_H
