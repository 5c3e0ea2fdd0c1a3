// SPDX-License-Identifier: BSD-3-Clause
//
// Copies of own cells, split into lists of about equal length, so that groups of threads have equal work.
#ifndef MPIX_HOST_HALO_TABLES_SPLIT_COPIES_H
#define MPIX_HOST_HALO_TABLES_SPLIT_COPIES_H

#include <cstdint>
#include <vector>

#include <mpix/halo/device_exchange.hpp>

namespace mpix::halo {

// Lists of at most so many words each: one or several copies, or pieces of them, in the order of the ghost cells'
// addresses. The copies are from own cells to own ghost cells.
std::vector<std::vector<detail::device_copy>> split_copies(std::vector<detail::device_copy> copies,
                                                           std::uint32_t most_words);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_TABLES_SPLIT_COPIES_H
