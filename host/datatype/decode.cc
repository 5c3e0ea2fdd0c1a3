// SPDX-License-Identifier: BSD-3-Clause
#include "host/datatype/decode.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <span>
#include <vector>

#include "host/datatype/contents.h"

namespace mpix {
namespace {

// Constructors that list their blocks.
bool names_blocks(int combiner) {
    return combiner == MPI_COMBINER_STRUCT || combiner == MPI_COMBINER_INDEXED || combiner == MPI_COMBINER_HINDEXED ||
           combiner == MPI_COMBINER_INDEXED_BLOCK || combiner == MPI_COMBINER_HINDEXED_BLOCK;
}

class decoder {
public:
    bool decode(MPI_Datatype type, type_map &out);
    status error;

private:
    bool composed(type_contents &made, MPI_Datatype type, const type_envelope &envelope, type_map &out);
    bool from_parts(const type_contents &made, type_map &out);
    const type_map *part(MPI_Datatype type, std::deque<type_map> &here);
    void basic(MPI_Datatype type, type_map &out);
    void subarray(std::span<const int> i, const type_map &child, type_map &out);
    void darray(std::span<const int> i, const type_map &child, type_map &out);

    // A part may be there many times; its handle means the same as long as what it was read with is kept. But not where
    // every part has a handle of its own.
    static constexpr std::size_t most_known = 1024;
    std::map<MPI_Datatype, type_map> known_;
    std::deque<type_contents> read_;
};

// `count` elements of `child`, one extent apart.
type_map block(const type_map &child, std::int64_t count) {
    type_map several = child;
    several.repeat(count, child.extent);
    return several;
}
void append_block(type_map &out, const type_map &child, std::int64_t count, std::int64_t at) {
    if (count == 1)
        out.append(child, at);
    else if (child.is_one_run())
        out.append_run(at + child.runs[0].offset, child.size * std::max<std::int64_t>(count, 0));
    else
        out.append(block(child, count), at);
}

void decoder::subarray(std::span<const int> i, const type_map &child, type_map &out) {
    const auto I = [&](int n) { return i[static_cast<std::size_t>(n)]; };
    const int dimensions = I(0);
    const bool fortran = I(1 + 3 * dimensions) == MPI_ORDER_FORTRAN;
    type_map part = child;
    std::int64_t stride = child.extent, at = 0;
    for (int n = 0; n < dimensions; ++n) {
        const int d = fortran ? n : dimensions - 1 - n;
        part.repeat(I(1 + dimensions + d), stride);
        at += I(1 + 2 * dimensions + d) * stride;
        stride *= I(1 + d);
    }
    out.append(part, at);
}

// Of `global` indices along one dimension, those that process `at` of `processes` owns: `blocks` blocks of `length`
// from `first` on, `step` apart, and then one of `rest`.
struct owned_indices {
    std::int64_t first, length, blocks, step, rest;
};

owned_indices owned(std::int64_t global, int distribution, int argument, int processes, int at) {
    if (distribution == MPI_DISTRIBUTE_NONE) return {0, global, 1, global, 0};
    std::int64_t length = argument;
    if (argument == MPI_DISTRIBUTE_DFLT_DARG)
        length = distribution == MPI_DISTRIBUTE_BLOCK ? (global + processes - 1) / processes : 1;
    const std::int64_t first = at * length, step = length * processes;
    if (first >= global) return {0, length, 0, step, 0};
    if (distribution == MPI_DISTRIBUTE_BLOCK) return {first, std::min(length, global - first), 1, step, 0};
    const std::int64_t whole = (global - first) / step, tail = (global - first) % step;
    return tail >= length ? owned_indices{first, length, whole + 1, step, 0}
                          : owned_indices{first, length, whole, step, tail};
}

void decoder::darray(std::span<const int> i, const type_map &child, type_map &out) {
    const int processes = i[0], dimensions = i[2];
    int rank = i[1];
    const int *sizes = &i[3], *distributions = sizes + dimensions, *arguments = distributions + dimensions,
              *grid = arguments + dimensions;
    const bool fortran = i[static_cast<std::size_t>(3 + 4 * dimensions)] == MPI_ORDER_FORTRAN;
    // The process grid is numbered in row-major order whatever the order of the array.
    std::vector<int> at(static_cast<std::size_t>(dimensions));
    int processes_inside = processes;
    for (int d = 0; d < dimensions; ++d) {
        processes_inside /= grid[d];
        at[static_cast<std::size_t>(d)] = rank / processes_inside;
        rank %= processes_inside;
    }
    type_map part = child;
    std::int64_t stride = child.extent;
    for (int n = 0; n < dimensions; ++n) {
        const int d = fortran ? n : dimensions - 1 - n;
        const owned_indices o =
            owned(sizes[d], distributions[d], arguments[d], grid[d], at[static_cast<std::size_t>(d)]);
        type_map blocks = part, rest = part, level;
        blocks.repeat(o.length, stride);
        blocks.repeat(o.blocks, o.step * stride);
        rest.repeat(o.rest, stride);
        level.append(blocks, o.first * stride);
        level.append(rest, (o.first + o.blocks * o.step) * stride);
        part = std::move(level);
        stride *= sizes[d];
    }
    out.append(part, 0);
}

void decoder::basic(MPI_Datatype type, type_map &out) {
    MPI_Count size = 0, true_lower = 0, true_extent = 0;
    PMPI_Type_size_x(type, &size);
    PMPI_Type_get_true_extent_x(type, &true_lower, &true_extent);
    const auto add = [&](std::int64_t at, std::int64_t length) {
        type_map bytes;
        if (length > 0) bytes.runs.push_back({0, 0, length});
        bytes.size = length;
        out.append(bytes, at);
    };
    if (true_extent == size) {
        add(true_lower, size);
        return;
    }
    // A pair type with padding between value and int (or padding inside a long double, which MPI packs
    // as part of the value): value first, then the int at the next multiple of its alignment.
    const std::int64_t second = static_cast<std::int64_t>(sizeof(int));
    add(0, size - second);
    add(true_extent - second, second);
}

bool decoder::composed(type_contents &made, MPI_Datatype type, const type_envelope &envelope, type_map &out) {
    error = made.read(type, envelope);
    return error.ok() && from_parts(made, out);
}

bool decoder::decode(MPI_Datatype type, type_map &out) {
    const type_envelope envelope = envelope_of(type);
    if (error = envelope.error; !error.ok()) return false;
    MPI_Count lower = 0, extent = 0, size = 0;
    PMPI_Type_get_extent_x(type, &lower, &extent);
    PMPI_Type_size_x(type, &size);
    out.extent = extent;
    if (envelope.is_basic()) {
        basic(type, out);
    } else if (known_.size() < most_known) {
        if (!composed(read_.emplace_back(), type, envelope, out)) return false;
    } else {
        type_contents made;
        if (!composed(made, type, envelope, out)) return false;
    }
    if (out.size != size) {
        error = failure("the datatype's size does not agree with its type map");
        return false;
    }
    return true;
}

// Null, with `error`; kept for later, or with the caller.
const type_map *decoder::part(MPI_Datatype type, std::deque<type_map> &here) {
    if (const auto known = known_.find(type); known != known_.end()) return &known->second;
    type_map map;
    if (!decode(type, map)) return nullptr;
    return &here.emplace_back(std::move(map));
}

bool decoder::from_parts(const type_contents &made, type_map &out) {
    const bool remember = known_.size() < most_known;
    std::deque<type_map> here;
    std::vector<const type_map *> child;
    for (const MPI_Datatype type : made.types) {
        const type_map *map = part(type, here);
        if (map == nullptr) return false;
        if (remember && !here.empty() && map == &here.back()) {
            map = &known_.emplace(type, std::move(here.back())).first->second;
            here.pop_back();
        }
        child.push_back(map);
    }
    const auto I = [&](int n) { return made.integers[static_cast<std::size_t>(n)]; };
    const auto A = [&](int n) { return static_cast<std::int64_t>(made.addresses[static_cast<std::size_t>(n)]); };
    if (child.empty()) return true;  // a struct of no blocks
    const type_map &c = *child[0];
    if (names_blocks(made.combiner)) {
        const double blocks = I(0), runs = blocks * static_cast<double>(std::max<std::size_t>(c.runs.size(), 1));
        out.runs.reserve(static_cast<std::size_t>(std::min(runs, static_cast<double>(flatten_limit))));
    }
    switch (made.combiner) {
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_RESIZED:
            out.append(c, 0);
            return true;
        case MPI_COMBINER_CONTIGUOUS:
            append_block(out, c, I(0), 0);
            return true;
        case MPI_COMBINER_VECTOR:
        case MPI_COMBINER_HVECTOR: {
            type_map rows = block(c, I(1));
            rows.repeat(I(0), made.combiner == MPI_COMBINER_VECTOR ? I(2) * c.extent : A(0));
            out.append(rows, 0);
            return true;
        }
        case MPI_COMBINER_INDEXED:
            for (int n = 0; n < I(0); ++n) append_block(out, c, I(1 + n), I(1 + I(0) + n) * c.extent);
            return true;
        case MPI_COMBINER_HINDEXED:
            for (int n = 0; n < I(0); ++n) append_block(out, c, I(1 + n), A(n));
            return true;
        case MPI_COMBINER_INDEXED_BLOCK:
        case MPI_COMBINER_HINDEXED_BLOCK: {
            const type_map several = block(c, I(1));
            for (int n = 0; n < I(0); ++n)
                out.append(several, made.combiner == MPI_COMBINER_INDEXED_BLOCK ? I(2 + n) * c.extent : A(n));
            return true;
        }
        case MPI_COMBINER_STRUCT:
            for (int n = 0; n < I(0); ++n) append_block(out, *child[static_cast<std::size_t>(n)], I(1 + n), A(n));
            return true;
        case MPI_COMBINER_SUBARRAY:
            subarray(made.integers, c, out);
            return true;
        case MPI_COMBINER_DARRAY:
            darray(made.integers, c, out);
            return true;
        default:
            error = unknown_constructor();
            return false;
    }
}

// ---- kept with the datatype --------------------------------------------------------------------------------

struct kept {
    // Set once, before `made`.
    std::shared_ptr<const plan> type;
    std::atomic<bool> made{false};

    // For MPI_Pack of host memory.
    std::mutex mutex;
    type_facts facts;
    enum { unread, read, unreadable } state = unread;
    double left_to_library = 0;  // bytes that the MPI library has packed or unpacked

    // Null if there is none yet.
    std::shared_ptr<const plan> ready() const {
        // Whoever sees the flag sees the pointer; pairs with the release in keep().
        return made.load(std::memory_order_acquire) ? type : nullptr;  // pairs: H11
    }
    // One thread at a time.
    void keep(std::shared_ptr<const plan> plan) {
        if (ready() != nullptr) return;
        type = std::move(plan);
        made.store(true, std::memory_order_release);  // the pointer is there; pairs with ready(); pairs: H11
    }
};

// Kept with types that the library packs correctly, as long as only small messages are packed: which of these says how
// many there were. Then a plan, which packs sooner once it is made, is worth its making.
constexpr std::ptrdiff_t few_uses = 16;
kept *small_uses() {
    static auto *const all = new kept[few_uses];
    return all;
}
bool counts_small_uses(const kept *value) {
    return std::less_equal<>()(small_uses(), value) && std::less<>()(value, small_uses() + few_uses);
}

int drop_kept(MPI_Datatype, int, void *value, void *) {
    if (!counts_small_uses(static_cast<kept *>(value))) delete static_cast<kept *>(value);
    return MPI_SUCCESS;
}

// A duplicate has the same plan.
int copy_kept(MPI_Datatype, int, void *, void *value, void *copy, int *flag) {
    auto type = static_cast<kept *>(value)->ready();
    *flag = type != nullptr;
    if (!*flag) return MPI_SUCCESS;
    auto *const made = new (std::nothrow) kept;
    *flag = made != nullptr;  // without memory it is made anew
    if (!*flag) return MPI_SUCCESS;
    made->keep(std::move(type));
    *static_cast<void **>(copy) = made;
    return MPI_SUCCESS;
}

int key() {
    static const int made = [] {
        int keyval = MPI_KEYVAL_INVALID;
        PMPI_Type_create_keyval(copy_kept, drop_kept, &keyval, nullptr);
        return keyval;
    }();
    return made;
}

kept *find_attribute(MPI_Datatype datatype) {
    kept *found = nullptr;
    int is_there = 0;
    return PMPI_Type_get_attr(datatype, key(), &found, &is_there) == MPI_SUCCESS && is_there ? found : nullptr;
}

kept *find_kept(MPI_Datatype datatype) {
    kept *const found = find_attribute(datatype);
    return counts_small_uses(found) ? nullptr : found;
}

// Held while an attribute is added to a datatype.
std::mutex &one_at_a_time() {
    static auto *const mutex = new std::mutex;
    return *mutex;
}

// For types that are not basic. If two threads race, the second finds the first's. Throws bad_alloc if the MPI library
// does not take it.
kept &kept_of(MPI_Datatype datatype) {
    if (kept *const found = find_kept(datatype); found != nullptr) return *found;
    auto made = std::make_unique<kept>();
    made->facts = quick_facts_of(datatype);
    const std::lock_guard lock(one_at_a_time());
    if (kept *const found = find_kept(datatype); found != nullptr) return *found;
    if (PMPI_Type_set_attr(datatype, key(), made.get()) != MPI_SUCCESS) throw std::bad_alloc();
    return *made.release();
}

// For basic types, which are never freed and which should get no attributes.
struct basic_plans {
    std::mutex mutex;
    std::map<MPI_Datatype, std::shared_ptr<const plan>> plans;
};
basic_plans &basic_table() {
    static auto *const all = new basic_plans;
    return *all;
}

std::shared_ptr<const plan> make(MPI_Datatype datatype, status &error) {
    decoder d;
    type_map map;
    if (!d.decode(datatype, map)) {
        error = d.error;
        return nullptr;
    }
    return make_plan(std::move(map), error);
}

// ---- calls that the MPI library carries out ---------------------------------------------------------------------

// The bytes that the library packs in the time that one part of a plan takes to make.
constexpr double bytes_a_part = 256;
// Types of at least `large` bytes whose constructor lists its blocks are read only after so many uses, since the lists
// may be longer than the data.
constexpr std::int64_t large = 8192;
constexpr double uses_of_large = 16;
// The library packs a message of no more bytes as quickly as a plan does.
constexpr std::int64_t small = 512;
// So many numbers of a type's description are read, besides one for each byte; more of a dense type's, which the
// libraries are likelier to get wrong.
constexpr double few_numbers = 4096, of_dense = 65536;

// `with.mutex` is held. If the library has packed a type and may be wrong about it, it goes on packing it, for
// consistency.
bool library_does(kept &with, MPI_Datatype datatype, int combiner, std::int64_t count) {
    const bool apart = count == 1 || with.facts.extent >= with.facts.true_extent;
    const auto size = static_cast<double>(with.facts.size);
    if (with.facts.size == 0) return false;
    if (with.state == kept::unread) {
        const bool used = with.left_to_library > 0, dense = with.facts.size == with.facts.true_extent;
        if (!library_mispacks_complex && !dense && with.facts.size >= large && names_blocks(combiner) &&
            with.left_to_library < uses_of_large * size)
            return true;
        const bool is_read = facts_of(datatype, size + (dense ? of_dense : few_numbers), with.facts);
        with.state = is_read && !(used && !with.facts.library_is_right) ? kept::read : kept::unreadable;
    }
    if (with.state == kept::unreadable || !with.facts.error.ok()) return true;
    const double bytes = size * static_cast<double>(count);
    return with.facts.library_is_right && apart && with.left_to_library + bytes < with.facts.parts * bytes_a_part;
}

}  // namespace

// No other type ever has a basic type's handle.
std::shared_ptr<const plan> basic_plan_at_hand(MPI_Datatype datatype) {
    const std::lock_guard lock(basic_table().mutex);
    const auto found = basic_table().plans.find(datatype);
    return found == basic_table().plans.end() ? nullptr : found->second;
}

std::shared_ptr<const plan> plan_at_hand(MPI_Datatype datatype) {
    if (const kept *const found = find_kept(datatype); found != nullptr) return found->ready();
    return basic_plan_at_hand(datatype);
}

std::shared_ptr<const plan> plan_of(MPI_Datatype datatype, status &error) {
    if (auto found = plan_at_hand(datatype); found != nullptr) return found;
    auto made = make(datatype, error);
    if (made == nullptr) return made;
    if (envelope_of(datatype).is_basic()) {
        const std::lock_guard lock(basic_table().mutex);
        return basic_table().plans.emplace(datatype, made).first->second;
    }
    kept &with = kept_of(datatype);
    const std::lock_guard lock(one_at_a_time());
    with.keep(std::move(made));
    return with.type;
}

bool library_packs_small(MPI_Datatype datatype, std::int64_t count, type_facts &facts) {
    kept *const found = find_attribute(datatype);
    const bool known = counts_small_uses(found);
    if (found != nullptr && (!known || found == small_uses() + few_uses - 1)) return false;
    MPI_Count size = 0;
    PMPI_Type_size_x(datatype, &size);
    if (size <= 0 || count < 1 || count > small / size) return false;
    if (known) {
        facts = quick_facts_of(datatype);
    } else {
        if (envelope_of(datatype).is_basic() || !facts_of(datatype, static_cast<double>(small), facts)) return false;
        if (!facts.library_is_right || !facts.error.ok()) return false;
    }
    {
        const std::lock_guard lock(one_at_a_time());
        if (find_attribute(datatype) == found) PMPI_Type_set_attr(datatype, key(), known ? found + 1 : small_uses());
    }
    return count == 1 || facts.extent >= facts.true_extent;
}

bool library_packs_sooner(MPI_Datatype datatype, std::int64_t count, type_facts &facts) {
    const type_envelope envelope = envelope_of(datatype);
    if (envelope.is_basic()) return false;
    kept &with = kept_of(datatype);
    const std::lock_guard lock(with.mutex);
    const bool does = library_does(with, datatype, envelope.combiner, count);
    facts = with.facts;
    if (does) with.left_to_library += static_cast<double>(facts.size) * static_cast<double>(count);
    return does;
}

}  // namespace mpix
