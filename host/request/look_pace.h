// SPDX-License-Identifier: BSD-3-Clause
//
// How often a completion call looks at the memory of a GPU, for an epoch of whose end nobody tells the host.
#ifndef MPIX_HOST_REQUEST_LOOK_PACE_H
#define MPIX_HOST_REQUEST_LOOK_PACE_H

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace mpix {

// A look waits for a copy from the GPU. So there is one at once in each activation, since most programs
// wait for the kernel first. If kernels are still starting epochs, there is none while these are short.
class look_pace {
public:
    bool due(std::uint64_t activation, std::uint64_t epoch) {
        const auto now = std::chrono::steady_clock::now();
        if (activation != activation_) {
            activation_ = activation;
            epoch_ = epoch;
            since_ = next_ = now;
        } else if (epoch != epoch_) {
            epoch_ = epoch;
            since_ = now;
            next_ = now + least;
        }
        if (now < next_) return false;
        next_ = now + std::clamp<std::chrono::steady_clock::duration>(now - since_, least, most);
        return true;
    }

private:
    static constexpr std::chrono::microseconds least{20}, most{200};
    std::uint64_t activation_ = 0, epoch_ = 0;
    std::chrono::steady_clock::time_point since_, next_;
};

}  // namespace mpix

#endif  // MPIX_HOST_REQUEST_LOOK_PACE_H
