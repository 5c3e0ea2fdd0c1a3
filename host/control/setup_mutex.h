// SPDX-License-Identifier: BSD-3-Clause
//
// The mutex of matching, and of everything about the peers of requests.
#ifndef MPIX_HOST_CONTROL_SETUP_MUTEX_H
#define MPIX_HOST_CONTROL_SETUP_MUTEX_H

#include <mutex>

namespace mpix {

inline std::mutex &setup_mutex() {
    static auto *const mutex = new std::mutex;
    return *mutex;
}

}  // namespace mpix

#endif  // MPIX_HOST_CONTROL_SETUP_MUTEX_H
