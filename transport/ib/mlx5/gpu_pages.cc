// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ib/mlx5/gpu_pages.h"

namespace mpix::transport::mlx5 {

status gpu_pages::hold_page(std::uint64_t page, bool registers, entry *&out) {
    void *const host = reinterpret_cast<void *>(page);
    const auto [it, fresh] = pages_.try_emplace(page);
    out = &it->second;
    status bad;
    if (fresh) {
        bool already = false;
        bad = gpu_.map_pages(host, page_, registers, already);
        if (bad.ok()) {
            out->ours = !already;
            bad = gpu_.gpu_address(host, &out->gpu);
            if (!bad.ok() && out->ours) gpu_.unmap_pages(host);
        }
    }
    if (bad.ok())
        ++out->users;
    else
        pages_.erase(it);
    return bad;
}

void gpu_pages::release_pages(std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t page = begin; page < end; page += page_) {
        const auto it = pages_.find(page);
        if (it == pages_.end() || --it->second.users != 0) continue;
        if (it->second.ours) gpu_.unmap_pages(reinterpret_cast<void *>(page));
        pages_.erase(it);
    }
}

status gpu_pages::hold(const void *host, std::size_t bytes, bool registers, void *&gpu) {
    const auto at = reinterpret_cast<std::uint64_t>(host);
    const page_range range = pages_around(at, bytes, page_);
    const std::lock_guard lock(mutex_);
    char *first = nullptr;
    for (std::uint64_t done = 0; done < range.bytes; done += page_) {
        entry *page = nullptr;
        status bad = hold_page(range.begin + done, registers, page);
        if (bad.ok() && done == 0) first = static_cast<char *>(page->gpu);
        // A queue is one piece for us, so it has to be for the GPU.
        const bool gap = bad.ok() && page->gpu != first + done;
        if (gap) bad = failure("the GPU reaches neighbouring pages of the host's at addresses that are no neighbours");
        if (bad.ok()) continue;
        release_pages(range.begin, range.begin + done + (gap ? page_ : 0));
        return bad;
    }
    gpu = first + (at - range.begin);
    return {};
}

void gpu_pages::release(const void *host, std::size_t bytes) {
    const page_range range = pages_around(reinterpret_cast<std::uint64_t>(host), bytes, page_);
    const std::lock_guard lock(mutex_);
    release_pages(range.begin, range.begin + range.bytes);
}

}  // namespace mpix::transport::mlx5
