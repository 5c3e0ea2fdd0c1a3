// SPDX-License-Identifier: BSD-3-Clause
#include "host/datatype/plan.h"

#include <algorithm>
#include <cstring>
#include <iterator>
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

void append_to(std::vector<mpix_run> &runs, const mpix_run &next) {
    if (!runs.empty()) {
        mpix_run &last = runs.back();
        if (last.offset + last.length == next.offset && last.packed + last.length == next.packed) {
            last.length += next.length;
            return;
        }
    }
    runs.push_back(next);
}

}  // namespace

void type_map::repeat(std::int64_t count, std::int64_t stride) {
    if (count <= 0) {
        parts.clear();
        runs.clear();
    }
    const mpix_dimension add{count, stride, size};
    for (strided &part : parts) add_dimension(part.run, part.dimensions, add);
    std::size_t left = 0;
    for (const mpix_run &r : runs) {
        strided part{r.offset, r.packed, r.length, {}};
        add_dimension(part.run, part.dimensions, add);
        if (part.dimensions.empty())
            runs[left++] = {part.offset, part.packed, part.run};
        else
            parts.push_back(std::move(part));
    }
    runs.resize(left);
    size *= std::max<std::int64_t>(count, 0);
}

void type_map::append(const type_map &other, std::int64_t at) {
    for (const strided &part : other.parts)
        parts.push_back({at + part.offset, size + part.packed, part.run, part.dimensions});
    for (const mpix_run &r : other.runs) append_to(runs, {at + r.offset, size + r.packed, r.length});
    size += other.size;
}

void type_map::append_run(std::int64_t offset, std::int64_t length) {
    if (length == 0) return;
    append_to(runs, {offset, size, length});
    size += length;
}

bool type_map::is_one_run() const {
    return parts.empty() && runs.size() == 1 && runs[0].length == size && size == extent;
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

// All runs of the map, of which there are so many.
std::vector<mpix_run> flatten(type_map &&map, std::int64_t number) {
    std::vector<mpix_run> flat = std::move(map.runs);
    if (!map.parts.empty()) flat.reserve(static_cast<std::size_t>(number));
    for (const strided &part : map.parts) append_runs(part, part.dimensions.size(), part.offset, part.packed, flat);
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

// Boxes of one shape differ only in where they are. A shape is a run, or steps over another shape.
class shapes {
public:
    static constexpr std::uint32_t no_shape = ~0u;

    std::uint32_t of_run(std::int64_t length) {
        if (length != last_length_) {
            last_length_ = length;
            last_ = find({no_shape, {length, 0, 0}, length, 1});
        }
        return last_;
    }
    std::uint32_t with(std::uint32_t inner, const mpix_dimension &d) {
        return find({inner, d, all_[inner].run, all_[inner].runs * d.count});
    }
    std::size_t count() const { return all_.size(); }
    std::int64_t runs(std::uint32_t id) const { return all_[id].runs; }

    strided at(std::uint32_t id, std::int64_t offset, std::int64_t packed) const {
        strided part{offset, packed, all_[id].run, {}};
        for (; all_[id].inner != no_shape; id = all_[id].inner) part.dimensions.push_back(all_[id].outer);
        std::reverse(part.dimensions.begin(), part.dimensions.end());
        return part;
    }

private:
    struct shape {
        std::uint32_t inner;
        mpix_dimension outer;
        std::int64_t run, runs;

        bool operator==(const shape &o) const {
            return inner == o.inner && outer.count == o.outer.count && outer.stride == o.outer.stride &&
                   outer.packed == o.outer.packed;
        }
        std::uint32_t hash() const {
            std::uint64_t h = inner;
            for (const std::int64_t v : {outer.count, outer.stride, outer.packed})
                h = (h ^ static_cast<std::uint64_t>(v)) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
            return static_cast<std::uint32_t>(h);
        }
    };
    // Of a hash table with open addressing, in which at least half of the slots are empty.
    struct slot {
        std::uint32_t id = no_shape, hash = 0;
    };

    void grow() {
        std::vector<slot> larger(std::max<std::size_t>(4 * slots_.size(), 64));
        for (const slot &taken : slots_) {
            std::size_t at = taken.hash & (larger.size() - 1);
            while (larger[at].id != no_shape) at = (at + 1) & (larger.size() - 1);
            if (taken.id != no_shape) larger[at] = taken;
        }
        slots_ = std::move(larger);
    }
    std::uint32_t find(const shape &s) {
        if (2 * (all_.size() + 1) > slots_.size()) grow();
        const std::uint32_t hash = s.hash();
        std::size_t at = hash & (slots_.size() - 1);
        while (slots_[at].id != no_shape && !(slots_[at].hash == hash && all_[slots_[at].id] == s))
            at = (at + 1) & (slots_.size() - 1);
        if (slots_[at].id == no_shape) {
            slots_[at] = {static_cast<std::uint32_t>(all_.size()), hash};
            all_.push_back(s);
        }
        return slots_[at].id;
    }

    std::int64_t last_length_ = -1;
    std::uint32_t last_ = 0;
    std::vector<slot> slots_;
    std::vector<shape> all_;
};

struct item {
    std::int64_t offset, packed;
    std::uint32_t shape;
};

// Finds progressions of equal items, of which each becomes one item.
class grouping {
public:
    explicit grouping(shapes &known) : known_(known), open_(known.count()) {}

    // In packing order.
    void add(const item &next) {
        if (next.shape >= open_.size()) open_.resize(next.shape + 1);
        progression &p = open_[next.shape];
        const std::int64_t stride = next.offset - p.last_offset, packed = next.packed - p.last_packed;
        if (p.count == 1) {
            p.stride = stride;
            p.packed = packed;
        }
        if (p.count > 0 && p.stride == stride && p.packed == packed) {
            ++p.count;
        } else {
            close(p);
            p = {out_.size(), 1, 0, 0, 0, 0};
            out_.push_back(next);
        }
        p.last_offset = next.offset;
        p.last_packed = next.packed;
    }
    // False: there were none.
    bool finish(std::vector<item> &out) {
        for (const progression &p : open_) close(p);
        out = std::move(out_);
        return found_;
    }

private:
    struct progression {
        std::size_t first = 0;  // its first item's place, which is the whole one's
        std::int64_t count = 0, stride = 0, packed = 0;
        std::int64_t last_offset = 0, last_packed = 0;
    };
    void close(const progression &p) {
        if (p.count < 2) return;
        item &whole = out_[p.first];
        whole.shape = known_.with(whole.shape, {p.count, p.stride, p.packed});
        found_ = true;
    }

    shapes &known_;
    std::vector<progression> open_;
    std::vector<item> out_;
    bool found_ = false;
};

// Among more shapes than this, those of few runs are not part of any order.
constexpr std::size_t most_shapes = 4096;

struct grouped {
    std::vector<item> items;
    bool complete = true;  // no run was left out
};

grouped group(const std::vector<mpix_run> &runs, shapes &known) {
    grouped all;
    grouping first(known);
    for (const mpix_run &r : runs) first.add({r.offset, r.packed, known.of_run(r.length)});
    bool found = first.finish(all.items);
    for (int n = 1; n < MPIX_MAX_DIMENSIONS && found; ++n) {
        if (all.complete) {
            grouping next(known);
            for (const item &i : all.items) {
                next.add(i);
                if (known.count() > most_shapes) break;
            }
            if (known.count() <= most_shapes) {
                found = next.finish(all.items);
                continue;
            }
            std::erase_if(all.items, [&](const item &i) { return known.runs(i.shape) < smallest_box; });
            all.complete = false;
        }
        grouping next(known);
        for (const item &i : all.items) next.add(i);
        found = next.finish(all.items);
    }
    return all;
}

mpix_box box_of(const strided &part) {
    mpix_box box{part.offset, part.packed, part.run, static_cast<std::int64_t>(part.dimensions.size()), {}};
    std::copy(part.dimensions.begin(), part.dimensions.end(), box.dimension);
    return box;
}

// The runs that are in none of the boxes.
std::vector<mpix_run> without(std::vector<mpix_run> left, const std::vector<mpix_box> &boxes) {
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

void compress(std::vector<mpix_run> runs, plan &out) {
    shapes known;
    const auto [items, complete] = group(runs, known);
    // Where there is much, what is small is not worth a box of its own.
    std::int64_t smallest = complete ? 0 : smallest_box;
    if (items.size() > most_boxes) {
        std::vector<std::int64_t> sizes;
        for (const item &i : items) sizes.push_back(known.runs(i.shape));
        std::nth_element(sizes.begin(), sizes.begin() + most_boxes, sizes.end(), std::greater<>());
        smallest = std::max(smallest_box, sizes[most_boxes] + 1);
    }
    std::int64_t in_boxes = 0;
    for (const item &i : items) {
        if (known.runs(i.shape) < smallest) continue;
        out.boxes.push_back(box_of(known.at(i.shape, i.offset, i.packed)));
        in_boxes += known.runs(i.shape);
    }
    const auto all = static_cast<std::int64_t>(runs.size());
    if (!complete || in_boxes < all / 8) {  // what is left of them is in order already
        out.loose = without(std::move(runs), out.boxes);
        return;
    }
    for (const item &i : items) {
        if (known.runs(i.shape) >= smallest) continue;
        const strided part = known.at(i.shape, i.offset, i.packed);
        append_runs(part, part.dimensions.size(), i.offset, i.packed, out.loose);
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
    auto [it, end] = table().plans.equal_range(key);
    // Before any of them is held: push_back must not throw, which would end the last one under the lock.
    others.reserve(static_cast<std::size_t>(std::distance(it, end)));
    for (; it != end; ++it) {
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

std::shared_ptr<const plan> make_plan(type_map &&map, status &error) {
    plan made;
    made.size = map.size;
    made.extent = map.extent;
    auto runs = static_cast<std::int64_t>(map.runs.size());
    for (const strided &part : map.parts) runs = std::min(runs + runs_of(part.dimensions), 2 * flatten_limit);
    if (map.parts.empty() && map.runs.size() == 1) {
        made.boxes.push_back(box_of({map.runs[0].offset, map.runs[0].packed, map.runs[0].length, {}}));
    } else if (map.runs.empty() && map.parts.size() == 1 && is_canonical(map.parts[0])) {
        made.boxes.push_back(box_of(map.parts[0]));
    } else if (runs <= flatten_limit) {
        compress(flatten(std::move(map), runs), made);
    } else {
        for (const mpix_run &r : map.runs) {
            if (map.parts.size() > most_boxes) break;
            map.parts.push_back({r.offset, r.packed, r.length, {}});
        }
        for (const strided &part : map.parts) {
            if (map.parts.size() > most_boxes || part.dimensions.size() > MPIX_MAX_DIMENSIONS) {
                error = failure("the datatype has too many separate blocks");
                return nullptr;
            }
            made.boxes.push_back(box_of(part));
        }
        std::sort(made.boxes.begin(), made.boxes.end(),
                  [](const mpix_box &a, const mpix_box &b) { return a.packed < b.packed; });
    }
    return shared(std::move(made));
}

}  // namespace mpix
