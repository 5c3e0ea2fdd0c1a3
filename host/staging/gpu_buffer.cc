// SPDX-License-Identifier: BSD-3-Clause
#include "host/staging/gpu_buffer.h"

#include <utility>

#include "device/kernels/gpu_pack.h"
#include "host/datatype/typemap.h"
#include "host/gpu_pending.h"

namespace mpix {
namespace {

status start_kernel(const gpu_buffer &b, bool into_buffer, std::uint64_t begin, std::uint64_t bytes, char *packed,
                    std::unique_ptr<transport::transfer> &out) {
#if MPIX_HAVE_CUDA
    struct by_kernel final : transport::transfer {
        std::shared_ptr<const plan> type;  // lives until the kernel is done with its tables
        std::unique_ptr<gpu::pending> kernel;
        bool finished(status &bad) override { return is_finished(*kernel, bad); }
    };
    auto made = std::make_unique<by_kernel>();
    made->type = b.type;
    const mpix_typemap *const map = &typemap_of(*b.type)->map;
    char *const packed_zero = packed - begin;  // where packed byte 0 would be
    const gpu::passage way{into_buffer ? nullptr : map,
                           into_buffer ? packed_zero : b.memory,
                           into_buffer ? map : nullptr,
                           into_buffer ? b.memory : packed_zero,
                           static_cast<std::int64_t>(begin),
                           static_cast<std::int64_t>(bytes),
                           b.device};
    auto bad = from_sentence(gpu::start(way, made->kernel));
    if (bad.ok()) out = std::move(made);
    return bad;
#else
    static_cast<void>(b), static_cast<void>(into_buffer), static_cast<void>(begin), static_cast<void>(bytes);
    static_cast<void>(packed), static_cast<void>(out);
    return failure("mpix was built without CUDA");
#endif
}

}  // namespace

status start_reading(const gpu_buffer &from, std::uint64_t begin, std::uint64_t bytes, locked_memory packed,
                     std::unique_ptr<transport::transfer> &out) {
    if (from.type != nullptr) return start_kernel(from, false, begin, bytes, packed.view, out);
    return from.gpus->start(packed.host, from.memory + begin, bytes, from.device, out);
}

status start_writing(const gpu_buffer &to, std::uint64_t begin, std::uint64_t bytes, locked_memory packed,
                     bool beside_kernels, std::unique_ptr<transport::transfer> &out) {
    if (to.type != nullptr) return start_kernel(to, true, begin, bytes, packed.view, out);
    if (packed.on_gpu && beside_kernels)
        return to.gpus->start_within(to.memory + begin, packed.host, bytes, to.device, out);
    return to.gpus->start(to.memory + begin, packed.host, bytes, to.device, out);
}

}  // namespace mpix
