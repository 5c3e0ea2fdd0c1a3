// SPDX-License-Identifier: BSD-3-Clause
//
// Names and times as reports of exchanges print them.
#ifndef MPIX_HOST_HALO_REPORT_REPORT_TEXT_H
#define MPIX_HOST_HALO_REPORT_REPORT_TEXT_H

#include <cstdint>
#include <string>

#include <mpix/halo.hpp>

namespace mpix::halo {

// The class of its exchanges.
const char *name_of_kind(exchange_kind kind);
const char *name_of_transfer(std::int64_t how);
std::string microseconds(double seconds);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_REPORT_REPORT_TEXT_H
