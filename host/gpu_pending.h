// SPDX-License-Identifier: BSD-3-Clause
//
// Work of the library's kernels (device/kernels/work.h), which says by a sentence what failed, asked by `status`.
#ifndef MPIX_HOST_GPU_PENDING_H
#define MPIX_HOST_GPU_PENDING_H

#include <string>
#include <utility>

#include "device/kernels/work.h"
#include "transport/status.h"

namespace mpix {

// True once it is done; `bad` is set if it failed.
inline bool is_finished(gpu::pending &work, status &bad) {
    std::string sentence;
    const bool over = work.finished(sentence);
    if (!sentence.empty()) bad = failure(std::move(sentence));
    return over;
}

}  // namespace mpix

#endif  // MPIX_HOST_GPU_PENDING_H
