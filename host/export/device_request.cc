// SPDX-License-Identifier: BSD-3-Clause
#include "host/export/device_request.h"

#include <mpix/impl/inline/gather.cuh>
#include <mpix/impl/inline/packet.cuh>
#include <mpix/impl/rget/rget.cuh>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <mutex>

#include "device/kernels/gpu_pack.h"
#include "host/config.h"
#include "host/datatype/typemap.h"
#include "transport/reserve.h"

namespace mpix {

static_assert(offsetof(device_route, told) == offsetof(mpix_prequest, told) - offsetof(mpix_prequest, landing) &&
              offsetof(device_route, layouts) == offsetof(mpix_prequest, layouts) - offsetof(mpix_prequest, landing) &&
              offsetof(device_route, copy_engine_bytes) ==
                  offsetof(mpix_prequest, copy_engine_bytes) - offsetof(mpix_prequest, landing) &&
              offsetof(device_route, rget_bytes) ==
                  offsetof(mpix_prequest, rget_bytes) - offsetof(mpix_prequest, landing) &&
              offsetof(device_route, answers) == offsetof(mpix_prequest, answers) - offsetof(mpix_prequest, landing) &&
              offsetof(device_route, peer_clear_to_send) ==
                  offsetof(mpix_prequest, peer_clear_to_send) - offsetof(mpix_prequest, landing));
static_assert(sizeof(device_route) == offsetof(mpix_prequest, seen_epoch) - offsetof(mpix_prequest, landing),
              "the route is written to the GPU as one piece");

namespace {
std::mutex copies_mutex;  // held while mappings are closed, so that no request is exported meanwhile
unsigned copies = 0;      // in use by kernels of the user
std::mutex views_mutex;
transport::safe_vector<transport::region> &views_to_close() {
    static auto *const views = new transport::safe_vector<transport::region>;
    return *views;
}
}  // namespace

device_copy::device_copy(transport::transport &gpus, int device) : gpus_(gpus), device_(device) {
    const std::lock_guard lock(copies_mutex);
    ++copies;
}

bool device_copy::any_in_use() {
    const std::lock_guard lock(copies_mutex);
    return copies != 0;
}

device_copy::~device_copy() {
    if (memory_ && config().check)
        invalidate();
    else if (memory_)
        gpus_.release(memory_);
    if (shared_) gpus_.release(shared_);
    if (viewed_) gpus_.release_view(viewed_);
    for (transport::region &r : layouts_) gpus_.release(r);
    if (offsets_) gpus_.release(offsets_);
#if MPIX_HAVE_CUDA
    for (const placed &t : types_) gpu::unplace(t.map, device_);
#endif
    end();
}

// As request::invalidate. The words of this copy are within its own memory.
void device_copy::invalidate() {
    static_assert(sizeof(mpix_prequest) - offsetof(mpix_prequest, landing) >= sizeof(mpix_words));
    mpix_prequest none{};
    none.words = reinterpret_cast<mpix_words *>(&handle()->landing);
    static_cast<void>(gpus_.write(handle(), &none, sizeof none, device_));
}

void device_copy::end() {
    const std::lock_guard lock(copies_mutex);
    copies -= !ended_;
    ended_ = true;
}

void give_back(transport::region &own) {
    if (!own) return;
    if (transport::network *const network = transport::network_in_use(); network != nullptr) network->forget(own);
    transport::node_memory().release(own);
}

void close_unused_mappings() {
    if (transport::devices() == nullptr) return;
    const std::lock_guard lock(copies_mutex);
    if (copies != 0) return;
    transport::devices()->close_unused();
    transport::safe_vector<transport::region> views;
    {
        const std::lock_guard views_lock(views_mutex);
        views.swap(views_to_close());
    }
    for (transport::region &r : views) {
        transport::devices()->release_view(r);
        give_back(r);
    }
}

void close_view(transport::region viewed) {
    if (viewed.lasting) {
        transport::devices()->release_view(viewed);
        give_back(viewed);
        return;
    }
    const std::lock_guard lock(views_mutex);
    views_to_close().push_back(viewed);
}

std::size_t shared_words(const copy_source &r) {
    return static_cast<std::size_t>(r.partitions) * static_cast<std::size_t>((r.partition_bytes + 63) / 64);
}

status device_copy::make(const copy_source &r, std::uint64_t epoch, std::uint32_t contributors) {
    void *words = nullptr;
    if (auto bad = gpus_.acquire_view(r.words_region, device_, words); !bad.ok()) return bad.of_class(MPI_ERR_OTHER);
    viewed_ = r.words_region;
    receives_ = r.kind == MPIX_KIND_RECV;
    if (r.inline_capable) inline_threads_ = detail::least_inline_threads(r.partition_bytes);
    rget_ = r.rget;
    const std::size_t bytes = mpix_prequest_size(r.kind, r.partitions);
    if (auto bad = gpus_.allocate(bytes, device_, memory_); !bad.ok()) return bad.of_class(MPI_ERR_NO_MEM);

    const std::int64_t *offsets = nullptr;
    if (r.gaps)
        if (status bad = write_offset_table(r, &offsets); !bad.ok()) return bad;

    std::vector<char> image(bytes, 0);
    auto *p = reinterpret_cast<mpix_prequest *>(image.data());
    p->head = r.home->head;
    p->partitions = r.partitions;
    p->contributors = contributors;
    p->partition_bytes = r.partition_bytes;
    p->buffer = r.buffer;
    p->words = static_cast<mpix_words *>(words);
    p->ring = reinterpret_cast<mpix_ring_entry *>(p->words + 1);
    p->stall_ns = r.home->stall_ns;
    p->offsets = offsets;
    p->seen_epoch = epoch;
    p->ready_count = epoch * static_cast<std::uint64_t>(r.partitions);
    p->defer_count = r.home->defer_count;  // the engine continues at its place in the ring
    if (config().check && r.kind == MPIX_KIND_SEND && r.partition_bytes != 0) {
        const std::vector<std::uint64_t> none(shared_words(r));
        const std::uint64_t size = none.size() * sizeof none[0];
        if (auto bad = gpus_.allocate(size, device_, shared_); !bad.ok()) return bad.of_class(MPI_ERR_NO_MEM);
        if (auto bad = gpus_.write(shared_.address, none.data(), size, device_); !bad.ok())
            return bad.of_class(MPI_ERR_OTHER);
        p->shared = static_cast<std::uint64_t *>(shared_.address);
    }
    if (r.kind == MPIX_KIND_SEND)
        std::fill_n(reinterpret_cast<std::uint64_t *>(p + 1), r.partitions, epoch);  // the partitions' states
    if (auto bad = gpus_.write(memory_.address, image.data(), bytes, device_); !bad.ok())
        return bad.of_class(MPI_ERR_OTHER);
    return {};
}

status device_copy::write_offset_table(const copy_source &r, const std::int64_t **out) {
    const offset_table message = *r.gaps;
    const std::vector<std::int64_t> table = message.offsets();
    const std::uint64_t bytes = table.size() * sizeof table[0];
    if (auto bad = gpus_.allocate(bytes, device_, offsets_); !bad.ok()) return bad.of_class(MPI_ERR_NO_MEM);
    if (auto bad = gpus_.write(offsets_.address, table.data(), bytes, device_); !bad.ok())
        return bad.of_class(MPI_ERR_OTHER);
    *out = detail::offsets_in(static_cast<const std::int64_t *>(offsets_.address), message.piece());
    return {};
}

mpix_prequest *device_copy::opaque_handle(bool sole_waiter) const {
    if (inline_threads_ == 0) return rget_ ? detail::reading_receive(handle()) : handle();
    return receives_ ? detail::inline_capable_receive(handle(), sole_waiter, inline_threads_)
                     : detail::inline_capable_send(handle(), inline_threads_);
}

status device_copy::install(const device_route &route) {
    return gpus_.write(&handle()->landing, &route, sizeof route, device_);
}

status device_copy::place_layouts(const std::shared_ptr<const plan> &from, const std::shared_ptr<const plan> &to,
                                  const mpix_layouts **out) {
    mpix_layouts both{nullptr, nullptr};
#if MPIX_HAVE_CUDA
    const auto place = [this](const std::shared_ptr<const plan> &type, const mpix_typemap **map) {
        if (type == nullptr) return status{};
        auto bad = from_sentence(gpu::place(&typemap_of(*type)->map, device_, map));
        if (bad.ok()) types_.push_back({type, *map});
        return bad;
    };
    if (auto bad = place(from, &both.from); !bad.ok()) return bad;
    if (auto bad = place(to, &both.to); !bad.ok()) return bad;
#else
    static_cast<void>(from), static_cast<void>(to);
#endif
    transport::region made;
    if (auto bad = gpus_.allocate(sizeof both, device_, made); !bad.ok()) return bad;
    layouts_.push_back(made);
    *out = static_cast<const mpix_layouts *>(made.address);
    return gpus_.write(made.address, &both, sizeof both, device_);
}

status device_copy::ready_count(std::uint64_t &out) {
    return gpus_.read(&out, &handle()->ready_count, sizeof out, device_);
}

status device_copy::counts(kernels_counts &out) {
    static_assert(offsetof(mpix_prequest, defer_count) == offsetof(mpix_prequest, ready_count) + 8 &&
                      offsetof(mpix_prequest, posted) == offsetof(mpix_prequest, ready_count) + 16,
                  "read as one piece");
    out = {};
    return gpus_.read(&out, &handle()->ready_count, sizeof out, device_);
}

status device_copy::states(std::vector<std::uint64_t> &out) {
    return gpus_.read(out.data(), handle() + 1, out.size() * sizeof out[0], device_);
}

status device_copy::set_ready_count(std::uint64_t readied) {
    return gpus_.write(&handle()->ready_count, &readied, sizeof readied, device_);
}

status device_copy::told_epoch(std::uint64_t &out) {
    return gpus_.read(&out, &handle()->told_epoch, sizeof out, device_);
}

status device_copy::error_period(std::uint64_t &out) { return gpus_.read(&out, &handle()->error, sizeof out, device_); }

status device_copy::forget_started_epoch() {
    constexpr std::uint64_t none = 0;
    return gpus_.write(&handle()->started_epoch, &none, sizeof none, device_);
}

}  // namespace mpix
