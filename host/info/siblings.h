// SPDX-License-Identifier: BSD-3-Clause
//
// What two processes of one user on this node may do with each other's memory: tried by two children, which are to each
// other what ranks are. (To its parent a child may be open where siblings are closed to each other.)
#ifndef MPIX_HOST_INFO_SIBLINGS_H
#define MPIX_HOST_INFO_SIBLINGS_H

#include "transport/status.h"

namespace mpix {

struct siblings_memory {
    status no_shared_memory;  // the transport shm
    status no_single_copy;    // process_vm_readv, process_vm_writev
};
// Before this process has threads, and before it uses MPI.
siblings_memory try_siblings();

}  // namespace mpix

#endif  // MPIX_HOST_INFO_SIBLINGS_H
