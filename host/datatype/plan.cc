// SPDX-License-Identifier: BSD-3-Clause
#include "host/datatype/plan.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace mpix {
namespace {

// Steps of `add` over what has these dimensions: fewer, where both sides coalesce.
void add_dimension(std::int64_t &run, std::vector<mpix_dimension> &dimensions, const mpix_dimension &add) {
    if (add.count == 1) return;
    if (dimensions.empty() && add.stride == run && add.packed == run) {
        run *= add.count;
        return;
    }
    if (!dimensions.empty()) {
        mpix_dimension &last = dimensions.back();
        if (add.stride == last.count * last.stride && add.packed == last.count * last.packed) {
            last.count *= add.count;
            return;
        }
    }
    dimensions.push_back(add);
}

}  // namespace

void type_map::repeat(std::int64_t count, std::int64_t stride) {
    if (count <= 0) parts.clear();
    for (strided &part : parts) add_dimension(part.run, part.dimensions, {count, stride, size});
    size *= std::max<std::int64_t>(count, 0);
}

void type_map::append(const type_map &other, std::int64_t at) {
    for (const strided &part : other.parts) {
        const std::int64_t offset = at + part.offset, packed = size + part.packed;
        strided *const last = parts.empty() ? nullptr : &parts.back();
        if (part.dimensions.empty() && last != nullptr && last->dimensions.empty() &&
            last->offset + last->run == offset && last->packed + last->run == packed)
            last->run += part.run;
        else
            parts.push_back({offset, packed, part.run, part.dimensions});
    }
    size += other.size;
}

void type_map::append_run(std::int64_t offset, std::int64_t length) {
    if (length == 0) return;
    strided *const last = parts.empty() ? nullptr : &parts.back();
    if (last != nullptr && last->dimensions.empty() && last->offset + last->run == offset &&
        last->packed + last->run == size)
        last->run += length;
    else
        parts.push_back({offset, size, length, {}});
    size += length;
}

bool type_map::is_one_run() const {
    return parts.size() == 1 && parts[0].dimensions.empty() && parts[0].run == size && size == extent;
}

namespace {

// ---- the canonical form ----------------------------------------------------------------------------------
//
// It is a function of the runs in packing order, merged where they abut, and of nothing else: the longest arithmetic
// progressions of equal neighbours are made boxes, then progressions of equal boxes, and so on. Neighbours are those of
// equal shape, so that the members of an array of structs are found as well as the rows of a plane.

std::int64_t runs_of(const std::vector<mpix_dimension> &dimensions) {
    std::int64_t runs = 1;
    for (const mpix_dimension &d : dimensions) {
        if (d.count > flatten_limit || runs > flatten_limit) return 2 * flatten_limit;
        runs *= d.count;
    }
    return runs;
}

// The runs one by one would be found to be just this box. They are unless a run abuts, or a progression goes on, across
// the end of a row.
bool is_canonical(const strided &part) {
    const std::vector<mpix_dimension> &all = part.dimensions;
    for (std::size_t inner = 0; inner <= all.size(); ++inner) {
        const std::int64_t step = inner == 0 ? part.run : all[inner - 1].stride;
        std::int64_t last = inner == 0 ? 0 : (all[inner - 1].count - 1) * step;  // of the row so far
        for (std::size_t k = inner; k < all.size(); ++k) {
            if (all[k].stride - last == step) return false;
            last += (all[k].count - 1) * all[k].stride;
        }
    }
    return all.size() <= MPIX_MAX_DIMENSIONS;
}

void append_runs(const strided &part, std::size_t level, std::int64_t offset, std::int64_t packed,
                 std::vector<mpix_run> &out) {
    if (level == 0) {
        out.push_back({offset, packed, part.run});
        return;
    }
    const mpix_dimension &d = part.dimensions[level - 1];
    for (std::int64_t i = 0; i < d.count; ++i)
        append_runs(part, level - 1, offset + i * d.stride, packed + i * d.packed, out);
}

bool before(const mpix_run &a, const mpix_run &b) { return a.packed < b.packed; }

std::vector<mpix_run> flatten(const std::vector<strided> &parts, std::int64_t runs) {
    std::vector<mpix_run> flat;
    flat.reserve(static_cast<std::size_t>(runs));
    for (const strided &part : parts) append_runs(part, part.dimensions.size(), part.offset, part.packed, flat);
    if (!std::is_sorted(flat.begin(), flat.end(), before)) std::sort(flat.begin(), flat.end(), before);
    std::size_t kept = 0;
    for (std::size_t n = 0; n < flat.size(); ++n) {
        if (kept > 0 && flat[kept - 1].offset + flat[kept - 1].length == flat[n].offset)
            flat[kept - 1].length += flat[n].length;
        else
            flat[kept++] = flat[n];
    }
    flat.resize(kept);
    return flat;
}

// Boxes of one shape differ only in where they are.
class shapes {
public:
    struct shape {
        std::int64_t run;
        std::vector<mpix_dimension> dimensions;
        std::int64_t runs;
    };

    std::uint32_t of_run(std::int64_t length) {
        if (length != last_length_) {
            last_length_ = length;
            last_ = find({~0u, {length, 0, 0}});
        }
        return last_;
    }
    std::uint32_t with(std::uint32_t inner, const mpix_dimension &d) { return find({inner, d}); }
    const shape &operator[](std::uint32_t id) const { return all_[id]; }
    std::size_t count() const { return all_.size(); }

private:
    struct key {
        std::uint32_t inner;
        mpix_dimension outer;
        bool operator==(const key &o) const {
            return inner == o.inner && outer.count == o.outer.count && outer.stride == o.outer.stride &&
                   outer.packed == o.outer.packed;
        }
    };
    struct hash {
        std::size_t operator()(const key &k) const {
            std::uint64_t h = k.inner;
            for (const std::int64_t v : {k.outer.count, k.outer.stride, k.outer.packed})
                h = (h ^ static_cast<std::uint64_t>(v)) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
            return h;
        }
    };
    std::uint32_t find(const key &k) {
        const auto [it, is_new] = ids_.emplace(k, static_cast<std::uint32_t>(all_.size()));
        if (is_new) {
            if (k.inner == ~0u) {
                all_.push_back({k.outer.count, {}, 1});
            } else {
                shape s = all_[k.inner];
                s.dimensions.push_back(k.outer);
                s.runs *= k.outer.count;
                all_.push_back(std::move(s));
            }
        }
        return it->second;
    }
    std::int64_t last_length_ = -1;
    std::uint32_t last_ = 0;
    std::unordered_map<key, std::uint32_t, hash> ids_;
    std::vector<shape> all_;
};

struct item {
    std::int64_t offset, packed;
    std::uint32_t shape;
};

// One round: progressions of equal items become one item each. False: there were none.
bool group(std::vector<item> &items, shapes &known) {
    struct progression {
        item first;
        std::int64_t count = 0, stride = 0, packed = 0;
        std::int64_t last_offset = 0, last_packed = 0;
    };
    std::vector<progression> open(known.count());
    std::vector<item> grouped;
    bool any = false;
    const auto close = [&](const progression &p) {
        item whole = p.first;
        if (p.count > 1) {
            whole.shape = known.with(p.first.shape, {p.count, p.stride, p.packed});
            any = true;
        }
        grouped.push_back(whole);
    };
    for (const item &next : items) {
        progression &p = open[next.shape];
        const std::int64_t stride = next.offset - p.last_offset, packed = next.packed - p.last_packed;
        if (p.count == 1) {
            p.stride = stride;
            p.packed = packed;
        }
        if (p.count > 0 && p.stride == stride && p.packed == packed) {
            ++p.count;
        } else {
            if (p.count > 0) close(p);
            p = {next, 1, 0, 0, 0, 0};
        }
        p.last_offset = next.offset;
        p.last_packed = next.packed;
    }
    for (const progression &p : open)
        if (p.count > 0) close(p);
    if (!any) return false;
    std::sort(grouped.begin(), grouped.end(), [](const item &a, const item &b) { return a.packed < b.packed; });
    items = std::move(grouped);
    return true;
}

mpix_box box_of(const strided &part) {
    mpix_box box{part.offset, part.packed, part.run, static_cast<std::int64_t>(part.dimensions.size()), {}};
    std::copy(part.dimensions.begin(), part.dimensions.end(), box.dimension);
    return box;
}

// The runs that are in none of the boxes.
std::vector<mpix_run> without(const std::vector<mpix_run> &runs, const std::vector<mpix_box> &boxes) {
    std::vector<mpix_run> left = runs;
    for (const mpix_box &box : boxes)
        for (std::int64_t n = 0; n < detail::runs_in(box); ++n) {
            const mpix_run one{0, detail::place_of_run(box, n).packed, 0};
            std::lower_bound(left.begin(), left.end(), one, before)->length = 0;
        }
    if (!boxes.empty())
        left.erase(std::remove_if(left.begin(), left.end(), [](const mpix_run &r) { return r.length == 0; }),
                   left.end());
    return left;
}

void compress(const std::vector<mpix_run> &runs, plan &out) {
    shapes known;
    std::vector<item> items;
    items.reserve(runs.size());
    for (const mpix_run &r : runs) items.push_back({r.offset, r.packed, known.of_run(r.length)});
    for (int n = 0; n < MPIX_MAX_DIMENSIONS && group(items, known); ++n) {
    }
    // Where there is much, what is small is not worth a box of its own.
    std::int64_t smallest = 0;
    if (items.size() > most_boxes) {
        std::vector<std::int64_t> sizes;
        for (const item &i : items) sizes.push_back(known[i.shape].runs);
        std::nth_element(sizes.begin(), sizes.begin() + most_boxes, sizes.end(), std::greater<>());
        smallest = std::max(smallest_box, sizes[most_boxes] + 1);
    }
    std::int64_t in_boxes = 0;
    for (const item &i : items) {
        const shapes::shape &s = known[i.shape];
        if (s.runs < smallest) continue;
        out.boxes.push_back(box_of({i.offset, i.packed, s.run, s.dimensions}));
        in_boxes += s.runs;
    }
    const auto all = static_cast<std::int64_t>(runs.size());
    if (in_boxes < all / 8) {  // what is left of them is in order already
        out.loose = without(runs, out.boxes);
        return;
    }
    for (const item &i : items) {
        const shapes::shape &s = known[i.shape];
        if (s.runs < smallest)
            append_runs({i.offset, i.packed, s.run, s.dimensions}, s.dimensions.size(), i.offset, i.packed, out.loose);
    }
    std::sort(out.loose.begin(), out.loose.end(), before);
}

// ---- one object for equal plans ----------------------------------------------------------------------------

std::string_view bytes_of(const auto &list) {
    return {reinterpret_cast<const char *>(list.data()), list.size() * sizeof list[0]};
}

bool same(const plan &a, const plan &b) {
    return a.size == b.size && a.extent == b.extent && bytes_of(a.boxes) == bytes_of(b.boxes) &&
           bytes_of(a.loose) == bytes_of(b.loose);
}

struct plan_table {
    std::mutex mutex;
    std::unordered_multimap<std::size_t, std::weak_ptr<const plan>> plans;
};
plan_table &table() {
    static auto *const all = new plan_table;
    return *all;
}

std::shared_ptr<const plan> shared(plan &&made) {
    const std::hash<std::string_view> hash;
    const std::size_t key =
        hash(bytes_of(made.boxes)) ^ 3 * hash(bytes_of(made.loose)) ^ static_cast<std::size_t>(made.extent);
    const auto forget = [key](const plan *unused) {
        {
            const std::lock_guard lock(table().mutex);
            for (auto [it, end] = table().plans.equal_range(key); it != end;)
                it = it->second.expired() ? table().plans.erase(it) : std::next(it);
        }
        delete unused;
    };
    const std::shared_ptr<const plan> owned(new plan(std::move(made)), forget);
    std::vector<std::shared_ptr<const plan>> others;  // held until the lock is free: their ends take it
    const std::lock_guard lock(table().mutex);
    for (auto [it, end] = table().plans.equal_range(key); it != end; ++it) {
        others.push_back(it->second.lock());
        if (others.back() != nullptr && same(*others.back(), *owned)) return others.back();
    }
    table().plans.emplace(key, owned);
    return owned;
}

}  // namespace

bool plan::contiguous() const {
    return size == extent &&
           (size == 0 || (boxes.size() == 1 && loose.empty() && boxes[0].dimensions == 0 && boxes[0].offset == 0));
}

std::int64_t plan::first_offset() const {
    if (boxes.empty() || (!loose.empty() && loose[0].packed == 0)) return loose[0].offset;
    return boxes[0].offset;
}

std::shared_ptr<const plan> make_plan(type_map &&map, std::string &problem) {
    plan made;
    made.size = map.size;
    made.extent = map.extent;
    std::int64_t runs = 0;
    for (const strided &part : map.parts) runs = std::min(runs + runs_of(part.dimensions), 2 * flatten_limit);
    if (map.parts.size() == 1 && is_canonical(map.parts[0])) {
        made.boxes.push_back(box_of(map.parts[0]));
    } else if (runs <= flatten_limit) {
        compress(flatten(map.parts, runs), made);
    } else {
        for (const strided &part : map.parts) {
            if (map.parts.size() > most_boxes || part.dimensions.size() > MPIX_MAX_DIMENSIONS) {
                problem = "the datatype has too many separate blocks";
                return nullptr;
            }
            made.boxes.push_back(box_of(part));
        }
    }
    return shared(std::move(made));
}

}  // namespace mpix
