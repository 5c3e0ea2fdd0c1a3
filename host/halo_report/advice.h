// SPDX-License-Identifier: BSD-3-Clause
//
// Which kind of exchange is expected to be the fastest, by what has been measured.
#ifndef MPIX_HOST_HALO_REPORT_ADVICE_H
#define MPIX_HOST_HALO_REPORT_ADVICE_H

#include <cstdint>

#include <mpix/halo.hpp>

namespace mpix::halo {

// For a rank that sends so many bytes in each exchange; beyond_faces: also to ranks beyond edges or corners.
exchange_advice advise(bool on_gpu, std::int64_t bytes_sent, bool beyond_faces);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_REPORT_ADVICE_H
