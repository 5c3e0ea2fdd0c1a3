// SPDX-License-Identifier: BSD-3-Clause
//
// The copy of a request that kernels on one GPU work with.
#ifndef MPIX_HOST_EXPORT_DEVICE_REQUEST_H
#define MPIX_HOST_EXPORT_DEVICE_REQUEST_H

#include <mpix/detail/abi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "host/export/offset_table.h"
#include "host/report.h"
#include "transport/select.h"

namespace mpix {

struct plan;

// The part of a mpix_prequest that is filled in once the peer is known, with addresses as the GPU reaches them.
struct device_route {
    char *landing = nullptr;
    std::uint64_t *flags = nullptr;
    std::uint64_t *peer_complete = nullptr;
    std::uint64_t slots = 0;
    std::uint64_t peer_partitions = 0;
    std::uint64_t *taken = nullptr;
    const mpix_layouts *layouts = nullptr;
    const mpix_posting *postings = nullptr;
    char *inline_buffer = nullptr;
    std::uint64_t *wanted = nullptr;
    std::uint32_t offload_bytes = 0, copy_engine_bytes = 0, rget_bytes = 0, unused = 0;
    std::uint64_t *told = nullptr;
    const char *peer_buffer = nullptr;
    std::uint64_t *answers = nullptr;
    std::uint64_t *kernel_clear_to_send = nullptr;
    std::uint64_t *peer_clear_to_send = nullptr;
};

// What a device copy is made from.
struct copy_source {
    mpix_kind kind;
    int partitions;
    std::uint64_t partition_bytes;
    char *buffer;
    const mpix_prequest *home;
    const transport::region &words_region;
    bool inline_capable;                    // see request
    bool rget = false;                      // a receive whose kernels may read the send buffer
    std::optional<offset_table> gaps = {};  // of a message with gaps, if inline_capable
};

class device_copy {
public:
    device_copy(transport::transport &gpus, int device);
    ~device_copy();
    device_copy(const device_copy &) = delete;
    device_copy &operator=(const device_copy &) = delete;

    // Whether this process has any, so that its kernels may wait for what the library is to do.
    static bool any_in_use();

    // Makes the copy from the host's instance, as of the end of epoch `epoch`.
    status make(const copy_source &r, std::uint64_t epoch, std::uint32_t contributors);
    // No kernel of the user works with it any more, though one of the library may.
    void end();
    // Fill in the route. Kernels look at it only after the caller has told them.
    status install(const device_route &route);
    // Copies both sides' datatypes, either of which may be null, to the GPU, for as long as this copy lives.
    status place_layouts(const std::shared_ptr<const plan> &from, const std::shared_ptr<const plan> &to,
                         const mpix_layouts **out);

    // How the engine reads the counter, and the last epoch in which kernels readied each partition.
    status ready_count(std::uint64_t &out);
    // The counter, how many partitions kernels have ever deferred, and how far they have posted, all as of one moment.
    struct kernels_counts {
        std::uint64_t readied, deferred, posted;
    };
    status counts(kernels_counts &out);
    status states(std::vector<std::uint64_t> &out);
    status set_ready_count(std::uint64_t readied);
    status forget_started_epoch();
    status told_epoch(std::uint64_t &out);
    status error_period(std::uint64_t &out);

    mpix_prequest *handle() const { return static_cast<mpix_prequest *>(memory_.address); }
    // The handle for the user's kernels, and one for kernels of the library, which "mpix_waiters" does not count.
    mpix_prequest *opaque_handle() const { return opaque_handle(sole_waiter_); }
    mpix_prequest *handle_for_library() const { return opaque_handle(false); }
    // For a receive whose info key "mpix_waiters" is 1. Call it before the user has the handle.
    void expect_sole_waiter() { sole_waiter_ = true; }
    // Whether kernels that work with it may use an inline buffer.
    bool inline_capable() const { return inline_threads_ != 0; }
    int device() const { return device_; }
    transport::transport &gpus() const { return gpus_; }

private:
    mpix_prequest *opaque_handle(bool sole_waiter) const;
    void invalidate();
    status write_offset_table(const copy_source &r, const std::int64_t **out);

    transport::transport &gpus_;
    int device_;
    // The least size of a group that uses the inline buffer (of a receive: that takes out of it at once); 0: there is
    // no such buffer.
    std::uint64_t inline_threads_ = 0;
    bool receives_ = false, sole_waiter_ = false;
    bool rget_ = false;  // a receive whose kernels may read the send buffer
    bool ended_ = false;
    transport::region memory_;
    transport::region viewed_;  // the request's words, as long as the GPU has them
    struct placed {
        std::shared_ptr<const plan> type;
        const mpix_typemap *map;
    };
    std::vector<placed> types_;  // of all matches: callers of Pready may remember an earlier one's
    std::vector<transport::region> layouts_;
    transport::region offsets_;
    transport::region shared_;  // see mpix_prequest.shared
};

// The size of mpix_prequest.shared of a send, in words.
std::size_t shared_words(const copy_source &r);

// Releases node memory of ours that a peer may have been given access to.
void give_back(transport::region &own);
// If no request is exported to a GPU, closes the views below, and the mappings of peers' GPU memory that no request
// uses any more. While one is exported, a kernel may be running that waits in one of our calls, and closing waits for
// kernels. Do not call it with a lock that others need for progress.
void close_unused_mappings();
// Gives up node memory of ours that a GPU has a view of, and that nobody uses any more; at once if that waits for no
// kernel.
void close_view(transport::region viewed);

}  // namespace mpix

#endif  // MPIX_HOST_EXPORT_DEVICE_REQUEST_H
