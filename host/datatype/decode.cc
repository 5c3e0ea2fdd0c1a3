// SPDX-License-Identifier: BSD-3-Clause
#include "host/datatype/decode.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <vector>

namespace mpix {
namespace {

class decoder {
public:
    bool decode(MPI_Datatype type, type_map &out);
    std::string problem;

private:
    bool decode_contents(MPI_Datatype type, int combiner, int integers, int addresses, int types, type_map &out);
    void named(MPI_Datatype type, type_map &out);
    void subarray(const std::vector<int> &i, const type_map &child, type_map &out);
    void darray(const std::vector<int> &i, const type_map &child, type_map &out);
};

struct envelope {
    int integers = 0, addresses = 0, types = 0, combiner = 0;
    std::string problem;
};
envelope envelope_of(MPI_Datatype type) {
    envelope e;
#if MPI_VERSION >= 4
    MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
    const int code = PMPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &e.combiner);
    if (code == MPI_SUCCESS && counts != 0)
        e.problem = "the datatype was made by a constructor with large counts (..._c), which mpix does not read yet";
    e.integers = static_cast<int>(integers);
    e.addresses = static_cast<int>(addresses);
    e.types = static_cast<int>(types);
#else
    const int code = PMPI_Type_get_envelope(type, &e.integers, &e.addresses, &e.types, &e.combiner);
#endif
    if (code != MPI_SUCCESS) e.problem = "MPI_Type_get_envelope failed";
    return e;
}

// References that get_contents has made; those to named types are none.
struct contained_types {
    std::vector<MPI_Datatype> &all;
    ~contained_types() {
        for (MPI_Datatype &one : all)
            if (one != MPI_DATATYPE_NULL && envelope_of(one).combiner != MPI_COMBINER_NAMED) PMPI_Type_free(&one);
    }
};

// `count` elements of `child`, one extent apart.
type_map block(const type_map &child, std::int64_t count) {
    type_map several = child;
    several.repeat(count, child.extent);
    return several;
}

void decoder::subarray(const std::vector<int> &i, const type_map &child, type_map &out) {
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

void decoder::darray(const std::vector<int> &i, const type_map &child, type_map &out) {
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

void decoder::named(MPI_Datatype type, type_map &out) {
    MPI_Count size = 0, true_lower = 0, true_extent = 0;
    PMPI_Type_size_x(type, &size);
    PMPI_Type_get_true_extent_x(type, &true_lower, &true_extent);
    const auto add = [&](std::int64_t at, std::int64_t length) {
        type_map bytes;
        if (length > 0) bytes.parts.push_back({0, 0, length, {}});
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

bool decoder::decode(MPI_Datatype type, type_map &out) {
    const envelope made = envelope_of(type);
    if (problem = made.problem; !problem.empty()) return false;
    MPI_Count lower = 0, extent = 0, size = 0;
    PMPI_Type_get_extent_x(type, &lower, &extent);
    PMPI_Type_size_x(type, &size);
    out.extent = extent;
    if (made.combiner == MPI_COMBINER_NAMED)
        named(type, out);
    else if (!decode_contents(type, made.combiner, made.integers, made.addresses, made.types, out))
        return false;
    if (out.size != size) {
        problem = "the datatype's size does not agree with its type map";
        return false;
    }
    return true;
}

bool decoder::decode_contents(MPI_Datatype type, int combiner, int integers, int addresses, int types, type_map &out) {
    std::vector<int> i(static_cast<std::size_t>(integers) + 1);
    std::vector<MPI_Aint> a(static_cast<std::size_t>(addresses) + 1);
    std::vector<MPI_Datatype> t(static_cast<std::size_t>(types) + 1, MPI_DATATYPE_NULL);
    if (types == 0 ||
        PMPI_Type_get_contents(type, integers, addresses, types, i.data(), a.data(), t.data()) != MPI_SUCCESS) {
        problem = "MPI_Type_get_contents does not explain the datatype";
        return false;
    }
    const contained_types freed_in_any_case{t};
    std::vector<type_map> child(static_cast<std::size_t>(types));
    bool good = true;
    for (int n = 0; n < types; ++n) {
        const auto at = static_cast<std::size_t>(n);
        good = good && decode(t[at], child[at]);
    }
    if (!good) return false;
    const auto I = [&](int n) { return i[static_cast<std::size_t>(n)]; };
    const auto A = [&](int n) { return static_cast<std::int64_t>(a[static_cast<std::size_t>(n)]); };
    const type_map &c = child[0];
    switch (combiner) {
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_RESIZED:
            out.append(c, 0);
            return true;
        case MPI_COMBINER_CONTIGUOUS:
            out.append(block(c, I(0)), 0);
            return true;
        case MPI_COMBINER_VECTOR:
        case MPI_COMBINER_HVECTOR: {
            type_map rows = block(c, I(1));
            rows.repeat(I(0), combiner == MPI_COMBINER_VECTOR ? I(2) * c.extent : A(0));
            out.append(rows, 0);
            return true;
        }
        case MPI_COMBINER_INDEXED:
        case MPI_COMBINER_HINDEXED:
            for (int n = 0; n < I(0); ++n)
                out.append(block(c, I(1 + n)), combiner == MPI_COMBINER_INDEXED ? I(1 + I(0) + n) * c.extent : A(n));
            return true;
        case MPI_COMBINER_INDEXED_BLOCK:
        case MPI_COMBINER_HINDEXED_BLOCK: {
            const type_map several = block(c, I(1));
            for (int n = 0; n < I(0); ++n)
                out.append(several, combiner == MPI_COMBINER_INDEXED_BLOCK ? I(2 + n) * c.extent : A(n));
            return true;
        }
        case MPI_COMBINER_STRUCT:
            for (int n = 0; n < I(0); ++n) out.append(block(child[static_cast<std::size_t>(n)], I(1 + n)), A(n));
            return true;
        case MPI_COMBINER_SUBARRAY:
            subarray(i, c, out);
            return true;
        case MPI_COMBINER_DARRAY:
            darray(i, c, out);
            return true;
        default:
            problem = "the datatype was made by a constructor that mpix does not know";
            return false;
    }
}

// ---- kept with the datatype --------------------------------------------------------------------------------

using kept_plan = std::shared_ptr<const plan>;

int drop_plan(MPI_Datatype, int, void *kept, void *) {
    delete static_cast<kept_plan *>(kept);
    return MPI_SUCCESS;
}

// A duplicate says the same.
int copy_plan(MPI_Datatype, int, void *, void *kept, void *copy, int *flag) {
    *static_cast<void **>(copy) = new (std::nothrow) kept_plan(*static_cast<kept_plan *>(kept));
    *flag = *static_cast<void **>(copy) != nullptr;  // without memory it is made anew
    return MPI_SUCCESS;
}

int plan_key() {
    static const int key = [] {
        int made = MPI_KEYVAL_INVALID;
        PMPI_Type_create_keyval(copy_plan, drop_plan, &made, nullptr);
        return made;
    }();
    return key;
}

// Of named types, which are never freed, and which one does not attach anything to.
struct named_plans {
    std::mutex mutex;
    std::map<MPI_Datatype, std::shared_ptr<const plan>> plans;
};
named_plans &named_table() {
    static auto *const all = new named_plans;
    return *all;
}

}  // namespace

std::shared_ptr<const plan> plan_of(MPI_Datatype datatype, std::string &problem) {
    kept_plan *kept = nullptr;
    int found = 0;
    if (PMPI_Type_get_attr(datatype, plan_key(), &kept, &found) == MPI_SUCCESS && found) return *kept;
    {
        const std::lock_guard lock(named_table().mutex);
        const auto named = named_table().plans.find(datatype);
        if (named != named_table().plans.end()) return named->second;
    }
    decoder d;
    type_map map;
    if (!d.decode(datatype, map)) {
        problem = d.problem;
        return nullptr;
    }
    auto made = make_plan(std::move(map), problem);
    if (made == nullptr) return made;
    if (envelope_of(datatype).combiner == MPI_COMBINER_NAMED) {
        const std::lock_guard lock(named_table().mutex);
        return named_table().plans.emplace(datatype, made).first->second;
    }
    // Two threads may come here with one datatype; the second finds what the first has kept.
    static std::mutex *const one_at_a_time = new std::mutex;
    const std::lock_guard lock(*one_at_a_time);
    if (PMPI_Type_get_attr(datatype, plan_key(), &kept, &found) == MPI_SUCCESS && !found)
        PMPI_Type_set_attr(datatype, plan_key(), new kept_plan(made));
    return made;
}

}  // namespace mpix
