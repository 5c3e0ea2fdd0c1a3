// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that the ranks of a node share. Each rank unmaps it by itself, so that an exchange may be destroyed without
// waiting for others (a window of MPI is freed collectively).
#ifndef MPIX_HOST_HALO_EXCHANGE_NODE_MEMORY_H
#define MPIX_HOST_HALO_EXCHANGE_NODE_MEMORY_H

#include <mpi.h>

#include <cstddef>

#include "transport/status.h"

namespace mpix::halo {

class node_memory {
public:
    node_memory() = default;
    ~node_memory();
    node_memory(const node_memory &) = delete;
    node_memory &operator=(const node_memory &) = delete;

    // Collective over the ranks of a node, which all ask for as many bytes, above 0. Zeroed, and begins at a page. If
    // it fails, it may do so on some ranks only.
    status make(MPI_Comm node, std::size_t bytes);
    // To be called when all ranks of the node have returned from make().
    void all_have_it();

    std::byte *at(std::size_t offset) const { return base_ + offset; }

private:
    status create(std::size_t bytes);
    status map(int file, std::size_t bytes);

    std::byte *base_ = nullptr;
    std::size_t mapped_ = 0;
    int file_ = -1;  // of the rank that has made it, as long as others open it
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_EXCHANGE_NODE_MEMORY_H
