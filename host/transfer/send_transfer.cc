// SPDX-License-Identifier: BSD-3-Clause
#include "host/transfer/send_transfer.h"

#include <utility>
#include <vector>

#include "device/kernels/gpu_pack.h"
#include "host/datatype/host_copy.h"
#include "host/datatype/typemap.h"
#include "host/export/device_request.h"
#include "host/gpu_pending.h"
#include "host/staging/chunked_put.h"

namespace mpix {
namespace {

// A partition moved by the copy engine or by a kernel, and the memory that has to live until it has arrived.
struct packing final : transport::transfer {
    std::vector<char> packed;
    std::unique_ptr<transport::transfer> copy;
    std::unique_ptr<gpu::pending> kernel;
    bool finished(status &bad) override {
        return copy != nullptr ? copy->finished(bad) : kernel == nullptr || is_finished(*kernel, bad);
    }
};

// Longer copies within a GPU do not go by way of host memory, which takes them many times as long.
constexpr std::uint64_t most_by_host = 256 * 1024;

std::vector<char> packed(const request &send, int partition) {
    std::vector<char> out(send.partition_bytes);
    const auto bytes = static_cast<std::int64_t>(send.partition_bytes);
    pack_range(*send.op.type, send.op.buffer, partition * bytes, bytes, out.data());
    return out;
}

}  // namespace

std::unique_ptr<transport::transfer> start_put(const request &send, const send_route &route, int partition,
                                               std::uint64_t epoch) {
    remote_message to{.wire = route.link.wire,
                      .reads_gpu = route.reads_gpu,
                      .peer = route.link.world_rank,
                      .landing = route.landing,
                      .flags = route.arrival,
                      .epoch = epoch,
                      .chunks = route.chunks};
    to.offset = static_cast<std::uint64_t>(route.landing_of(epoch) - static_cast<char *>(route.landing.address));
    const auto p = static_cast<std::uint64_t>(partition);
    const transport::placement &place = send.place;
    if (place.owner != nullptr && !route.how.staged.empty())
        return std::make_unique<chunked_put>(
            to, p, gpu_buffer{place.owner, place.device, send.op.buffer, send.gapless ? nullptr : send.op.type},
            bounce_buffers_of(place.device));
    if (route.how.packed_first) return std::make_unique<chunked_put>(to, p, packed(send, partition));
    return std::make_unique<chunked_put>(to, p, send.op.buffer + p * send.partition_bytes);
}

status start_copy(const request &send, const send_route &route, int partition, int partitions, std::uint64_t epoch,
                  std::unique_ptr<transport::transfer> &out) {
    const std::uint64_t offset = static_cast<std::uint64_t>(partition) * send.partition_bytes,
                        bytes = static_cast<std::uint64_t>(partitions) * send.partition_bytes;
    const bool from_gpu = send.place.owner != nullptr;
    const int on = from_gpu ? send.place.device : route.landing.device;
    auto made = std::make_unique<packing>();
    const char *from = send.op.buffer + offset;
    if (route.how.packed_first) {
        made->packed = packed(send, partition);
        from = made->packed.data();
    }
    if (bytes == 0 || route.how.engine != mover::kernel) {
        transport::transport *const gpus = from_gpu ? send.place.owner : transport::devices();
        char *const to = route.landing_of(epoch) + offset;
        // To the rank itself: a kernel of its own may fill the GPU, and wait for this.
        const bool within = from_gpu && send.peer_world() == this_world_rank() && route.landing.device == on &&
                            bytes <= most_by_host && device_copy::any_in_use();
        auto bad =
            within ? gpus->start_within(to, from, bytes, on, made->copy) : gpus->start(to, from, bytes, on, made->copy);
        out = std::move(made);
        return bad;
    }
#if MPIX_HAVE_CUDA
    gpu::passage way{nullptr,
                     const_cast<char *>(from) - offset,
                     nullptr,
                     route.landing_of(epoch),
                     static_cast<std::int64_t>(offset),
                     static_cast<std::int64_t>(bytes),
                     on};
    if (!send.gapless && from_gpu) {
        way.from_type = &typemap_of(*send.op.type)->map;
        way.from = send.op.buffer;
    }
    if (route.landing_type != nullptr) way.to_type = &typemap_of(*route.landing_type)->map;
    auto bad = from_sentence(gpu::start(way, made->kernel));
    out = std::move(made);
    return bad;
#else
    return failure("mpix was built without CUDA");
#endif
}

int write_in_place(const request &send, const send_route &route, int partition) {
    const std::uint64_t offset = static_cast<std::uint64_t>(partition) * send.partition_bytes;
    return route.far->write(route.far, route.landing_at + offset, send.op.buffer + offset, send.partition_bytes);
}

}  // namespace mpix
