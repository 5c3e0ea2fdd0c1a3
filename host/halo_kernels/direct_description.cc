// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_kernels/direct_description.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace mpix::halo {
namespace {

using transport::wire_region;
using bytes = std::vector<std::byte>;

// Behind it: the allocations, the direct numbers, the ghost cells.
struct head {
    wire_region words;
    std::uint64_t clear_at;
    std::int32_t has_words;  // 0: nothing else of this is valid, and nothing is behind it
    std::int32_t allocations, parcels, parts;
};
static_assert(std::has_unique_object_representations_v<head> && std::has_unique_object_representations_v<ghost_place>);

template <class T>
void append(bytes &to, const T *values, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto *const first = reinterpret_cast<const std::byte *>(values);
    to.insert(to.end(), first, first + count * sizeof(T));
}

// Reads what append() has written. After the end it gives nothing, and is not whole.
class byte_reader {
public:
    explicit byte_reader(const bytes &all) : all_(all) {}
    template <class T>
    std::vector<T> take(std::int64_t count) {
        std::vector<T> values;
        const std::size_t left = all_.size() - at_;
        if (count < 0 || static_cast<std::uint64_t>(count) > left / sizeof(T)) {
            at_ = all_.size();
            whole_ = false;
            return values;
        }
        values.resize(static_cast<std::size_t>(count));
        if (count != 0) std::memcpy(values.data(), all_.data() + at_, values.size() * sizeof(T));
        at_ += values.size() * sizeof(T);
        return values;
    }
    bool whole() const { return whole_ && at_ == all_.size(); }

private:
    const bytes &all_;
    std::size_t at_ = 0;
    bool whole_ = true;
};

bool is_word_of(std::uint64_t at, const wire_region &words) {
    return at % sizeof(std::uint64_t) == 0 && words.bytes >= sizeof(std::uint64_t) &&
           at <= words.bytes - sizeof(std::uint64_t);
}

}  // namespace

bytes to_bytes(const direct_description *d) {
    head first{};
    if (d != nullptr)
        first = {.words = d->words,
                 .clear_at = d->clear_at,
                 .has_words = 1,
                 .allocations = static_cast<std::int32_t>(d->allocations.size()),
                 .parcels = static_cast<std::int32_t>(d->direct_number_at.size()),
                 .parts = static_cast<std::int32_t>(d->ghosts.size())};
    bytes all;
    append(all, &first, 1);
    if (d == nullptr) return all;
    append(all, d->allocations.data(), d->allocations.size());
    append(all, d->direct_number_at.data(), d->direct_number_at.size());
    append(all, d->ghosts.data(), d->ghosts.size());
    return all;
}

bool parse(const bytes &message, direct_description &d) {
    byte_reader from(message);
    const std::vector<head> first = from.take<head>(1);
    if (first.empty() || first[0].has_words != 1) return false;
    d.words = first[0].words;
    d.clear_at = first[0].clear_at;
    d.allocations = from.take<std::array<wire_region, 2>>(first[0].allocations);
    d.direct_number_at = from.take<std::uint64_t>(first[0].parcels);
    d.ghosts = from.take<ghost_place>(first[0].parts);
    return from.whole() && is_word_of(d.clear_at, d.words) &&
           std::all_of(d.direct_number_at.begin(), d.direct_number_at.end(),
                       [&](std::uint64_t at) { return is_word_of(at, d.words); });
}

// What is left of the allocation shrinks, so that no sum gets too large.
bool are_within(const ghost_place &ghosts, const runs &shape, const direct_description &d) {
    if (ghosts.allocation < 0 || static_cast<std::uint64_t>(ghosts.allocation) >= d.allocations.size()) return false;
    const auto &both = d.allocations[static_cast<std::size_t>(ghosts.allocation)];
    std::uint64_t left = std::min(both[0].bytes, both[1].bytes);
    const auto take = [&left](std::int64_t times, std::int64_t bytes) {
        if (bytes < 0 || (times > 0 && static_cast<std::uint64_t>(bytes) > left / static_cast<std::uint64_t>(times)))
            return false;
        left -= static_cast<std::uint64_t>(times) * static_cast<std::uint64_t>(bytes);
        return true;
    };
    return take(1, ghosts.at) && take(1, shape.bytes) && take(shape.count[0] - 1, ghosts.stride[0]) &&
           take(shape.count[1] - 1, ghosts.stride[1]) && take(shape.count[2] - 1, ghosts.stride[2]);
}

}  // namespace mpix::halo
