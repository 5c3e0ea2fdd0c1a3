// SPDX-License-Identifier: BSD-3-Clause
//
// An error that device code has kept (mpix_words.error), as a sentence for the user.
#ifndef MPIX_HOST_REQUEST_KEPT_ERROR_H
#define MPIX_HOST_REQUEST_KEPT_ERROR_H

#include <mpix/detail/abi.h>

#include <cstdint>
#include <string>

namespace mpix {

class kept_error {
public:
    // `period`: the error's, or the request's present one, or the one that begins.
    kept_error(std::uint64_t word, std::uint64_t period);
    // Whether it may be of that period.
    static bool has_period(std::uint64_t word, std::uint64_t period) { return since(word, period) == 0; }

    int error_class() const;
    // "epoch 3: pready of partition 7: ...", of a request of this kind with so many partitions.
    std::string sentence(mpix_kind kind, int partitions) const;

private:
    // How many periods ago it was kept, at least.
    static std::uint64_t since(std::uint64_t word, std::uint64_t period) {
        return (period - (word >> 32)) & ((1u << MPIX_ERROR_PERIOD_BITS) - 1);
    }
    std::string reason(mpix_kind kind, int partitions) const;

    mpix_device_call call_;
    mpix_cause cause_;
    std::uint64_t period_;
    int partition_;  // below 0: of none
};

}  // namespace mpix

#endif  // MPIX_HOST_REQUEST_KEPT_ERROR_H
