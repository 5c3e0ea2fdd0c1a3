// SPDX-License-Identifier: BSD-3-Clause
#include "host/datatype/plan_wire.h"

#include <algorithm>
#include <cstring>

#include "host/datatype/typemap.h"

namespace mpix {
namespace {

struct header {
    std::uint64_t magic;
    std::int64_t size, extent;
    std::uint64_t boxes, loose;
};
constexpr std::uint64_t plan_magic = 0x31706e616c70786d;  // "mxplanp1"
// No number in a plan of a message that passes is beyond this, and no sum of a few overflows.
constexpr std::int64_t far_away = std::int64_t{1} << 58;

bool is_near(std::int64_t value) { return value >= -far_away && value <= far_away; }

// The bytes of a box, or -1 if it is none, or goes beyond `size` packed bytes.
std::int64_t bytes_of(const mpix_box &box, std::int64_t size) {
    if (box.run < 1 || box.packed < 0 || !is_near(box.offset) || box.run > size || box.packed > size - box.run ||
        box.dimensions < 0 || box.dimensions > MPIX_MAX_DIMENSIONS)
        return -1;
    std::int64_t bytes = box.run, span = box.run, reach = 0;
    for (std::int64_t k = 0; k < box.dimensions; ++k) {
        const mpix_dimension &d = box.dimension[k];
        if (d.count < 1 || d.count > size || d.packed < span || d.packed > size || !is_near(d.stride)) return -1;
        if (bytes > size / d.count || d.packed > (size - span) / std::max<std::int64_t>(d.count - 1, 1)) return -1;
        const std::int64_t stride = d.stride < 0 ? -d.stride : d.stride;
        if (d.count > 1 && stride > (far_away - reach) / (d.count - 1)) return -1;
        bytes *= d.count;
        span += (d.count - 1) * d.packed;
        reach += (d.count - 1) * stride;
    }
    return box.packed > size - span ? -1 : bytes;
}

// A table of runs takes each to end where the next begins; of boxes that leave packed bytes out a lookup gives some
// byte within the span.
bool fills_packed_side(const plan &type) {
    std::vector<mpix_run> runs = type.loose;
    for (const mpix_box &box : type.boxes) {
        const std::int64_t n = detail::runs_in(box);
        if (type.loose.empty() && static_cast<std::int64_t>(runs.size()) + n > most_table_runs) return true;
        if (n > flatten_limit - static_cast<std::int64_t>(runs.size())) return false;
        for (std::int64_t i = 0; i < n; ++i) {
            const detail::run_place at = detail::place_of_run(box, i);
            runs.push_back({at.offset, at.packed, box.run});
        }
    }
    std::sort(runs.begin(), runs.end(), [](const mpix_run &a, const mpix_run &b) { return a.packed < b.packed; });
    std::int64_t end = 0;
    for (const mpix_run &r : runs) {
        if (r.packed != end) return false;
        end += r.length;
    }
    return end == type.size;
}

}  // namespace

std::vector<char> to_bytes(const plan &type) {
    const header head{plan_magic, type.size, type.extent, type.boxes.size(), type.loose.size()};
    const std::size_t boxes = type.boxes.size() * sizeof(mpix_box), loose = type.loose.size() * sizeof(mpix_run);
    std::vector<char> out(sizeof head + boxes + loose);
    std::memcpy(out.data(), &head, sizeof head);
    if (boxes != 0) std::memcpy(out.data() + sizeof head, type.boxes.data(), boxes);
    if (loose != 0) std::memcpy(out.data() + sizeof head + boxes, type.loose.data(), loose);
    return out;
}

static std::shared_ptr<const plan> parse(const void *bytes, std::size_t length) {
    header head;
    if (length < sizeof head) return nullptr;
    std::memcpy(&head, bytes, sizeof head);
    const std::size_t rest = length - sizeof head;
    if (head.magic != plan_magic || head.size < 1 || head.size > far_away || !is_near(head.extent) ||
        head.boxes > rest / sizeof(mpix_box) || head.loose > rest / sizeof(mpix_run) ||
        head.boxes * sizeof(mpix_box) + head.loose * sizeof(mpix_run) != rest)
        return nullptr;
    auto out = std::make_shared<plan>();
    out->size = head.size;
    out->extent = head.extent;
    out->boxes.resize(head.boxes);
    out->loose.resize(head.loose);
    const char *at = static_cast<const char *>(bytes) + sizeof head;
    if (head.boxes != 0) std::memcpy(out->boxes.data(), at, head.boxes * sizeof(mpix_box));
    at += head.boxes * sizeof(mpix_box);
    if (head.loose != 0) std::memcpy(out->loose.data(), at, head.loose * sizeof(mpix_run));
    std::int64_t left = head.size;
    for (const mpix_box &box : out->boxes) {
        const std::int64_t n = bytes_of(box, head.size);
        if (n < 0 || n > left) return nullptr;
        left -= n;
    }
    for (const mpix_run &run : out->loose) {
        if (run.length < 1 || run.length > left || run.packed < 0 || run.packed > head.size - run.length ||
            !is_near(run.offset))
            return nullptr;
        left -= run.length;
    }
    if (left != 0 || !fills_packed_side(*out)) return nullptr;
    return out;
}

std::shared_ptr<const plan> plan_from_bytes(const void *bytes, std::size_t length, status &error) {
    auto parsed = parse(bytes, length);
    error = parsed != nullptr ? status{} : failure("malformed description of the receiver's datatype");
    return parsed;
}

memory_span span_of(const plan &type, std::int64_t elements) {
    const auto map = typemap_of(type);
    memory_span span{map->map.low, map->map.high};
    std::int64_t last = 0;
    if (__builtin_mul_overflow(elements - 1, type.extent, &last) || !is_near(last))
        last = (type.extent < 0 ? -far_away : far_away);  // no memory is as large: the caller's bounds say so
    (last < 0 ? span.low : span.high) += last;
    return span;
}

}  // namespace mpix
