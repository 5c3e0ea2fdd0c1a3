// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/random_type.hpp"

#include "host/datatype/facts.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace {

void inherit(sample &out, const sample &child) {
    out.empty_part = out.empty_part || child.empty_part || child.map.empty();
    out.backwards = out.backwards || child.backwards;
    out.packed_wrongly = out.packed_wrongly || child.packed_wrongly;
}

// `count` elements of `child`, the first at byte `at`.
void place(sample &out, const sample &child, std::int64_t at, std::int64_t count) {
    inherit(out, child);
    if (count == 0) out.empty_part = true;
    const std::int64_t extent = child.extent();
    for (std::int64_t n = 0; n < count; ++n)
        for (const std::int64_t offset : child.map) out.map.push_back(at + n * extent + offset);
}

sample start(const char *text, const sample &child) {
    sample out;
    out.named = false;
    out.text = std::string(text) + "(" + child.text;
    inherit(out, child);
    return out;
}

void say(sample &out, std::int64_t value) { out.text += "," + std::to_string(value); }

void say(sample &out, const std::vector<int> &values) {
    out.text += ",[";
    for (const int value : values) out.text += std::to_string(value) + " ";
    out.text += "]";
}

struct short_int {
    short value;
    int index;
};
struct long_int {
    long value;
    int index;
};
struct float_int {
    float value;
    int index;
};
struct double_int {
    double value;
    int index;
};
struct long_double_int {
    long double value;
    int index;
};

struct named_type {
    MPI_Datatype type;
    const char *text;
    std::int64_t first, second_at, second;  // bytes of the value; where the index is, and its bytes
};

const std::vector<named_type> &named_types() {
    constexpr std::int64_t i = sizeof(int);
    static const std::vector<named_type> all = {
        {MPI_BYTE, "byte", 1, 0, 0},
        {MPI_CHAR, "char", 1, 0, 0},
        {MPI_SHORT, "short", sizeof(short), 0, 0},
        {MPI_INT, "int", i, 0, 0},
        {MPI_INT64_T, "int64", 8, 0, 0},
        {MPI_DOUBLE, "double", sizeof(double), 0, 0},
        {MPI_LONG_DOUBLE, "long_double", sizeof(long double), 0, 0},
        {MPI_C_DOUBLE_COMPLEX, "double_complex", 2 * sizeof(double), 0, 0},
        {MPI_C_FLOAT_COMPLEX, "float_complex", 2 * sizeof(float), 0, 0},
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5
        {MPI_DOUBLE_COMPLEX, "fortran_double_complex", 2 * sizeof(double), 0, 0},
        {MPI_2COMPLEX, "pair_of_complex", 4 * sizeof(float), 0, 0},
#endif
        {MPI_2INT, "2int", i, i, i},
        {MPI_SHORT_INT, "short_int", sizeof(short), offsetof(short_int, index), i},
        {MPI_LONG_INT, "long_int", sizeof(long), offsetof(long_int, index), i},
        {MPI_FLOAT_INT, "float_int", sizeof(float), offsetof(float_int, index), i},
        {MPI_DOUBLE_INT, "double_int", sizeof(double), offsetof(double_int, index), i},
        {MPI_LONG_DOUBLE_INT, "long_double_int", sizeof(long double), offsetof(long_double_int, index), i},
    };
    return all;
}

}  // namespace

sample &sample::operator=(sample &&other) noexcept {
    std::swap(type, other.type);
    std::swap(named, other.named);
    std::swap(map, other.map);
    std::swap(text, other.text);
    std::swap(empty_part, other.empty_part);
    std::swap(backwards, other.backwards);
    std::swap(packed_wrongly, other.packed_wrongly);
    return *this;
}

sample::~sample() {
    if (!named) PMPI_Type_free(&type);
}

std::int64_t sample::extent() const {
    MPI_Count lower = 0, value = 0;
    PMPI_Type_get_extent_x(type, &lower, &value);
    return value;
}

sample type_maker::make(int depth) {
    if (depth == 0 || below(12) == 0) return named();
    for (;;) {
        sample out = derived(depth);
        if (out.map.size() > size_limit) continue;
        const std::int64_t extent = out.extent();
        const bool far = std::any_of(out.map.begin(), out.map.end(),
                                     [](std::int64_t at) { return at < -span_limit || at > span_limit; });
        if (!far && extent < span_limit && extent > -span_limit) return out;
    }
}

sample type_maker::named() {
    const named_type &chosen = named_types()[static_cast<std::size_t>(below(static_cast<int>(named_types().size())))];
    sample out;
    out.type = chosen.type;
    out.text = chosen.text;
    out.packed_wrongly = chosen.type == MPI_LONG_DOUBLE || chosen.type == MPI_LONG_DOUBLE_INT ||
                         (mpix::library_mispacks_complex && std::string_view(chosen.text).ends_with("complex"));
    for (std::int64_t at = 0; at < chosen.first; ++at) out.map.push_back(at);
    for (std::int64_t at = 0; at < chosen.second; ++at) out.map.push_back(chosen.second_at + at);
    return out;
}

sample type_maker::derived(int depth) {
    switch (below(12)) {
        case 0:
            return contiguous(make(depth - 1));
        case 1:
            return vector(make(depth - 1), false);
        case 2:
            return vector(make(depth - 1), true);
        case 3:
            return indexed(make(depth - 1), false, false);
        case 4:
            return indexed(make(depth - 1), true, false);
        case 5:
            return indexed(make(depth - 1), false, true);
        case 6:
            return indexed(make(depth - 1), true, true);
        case 7:
            return structure(depth);
        case 8:
            return subarray(make(depth - 1));
        case 9:
            return darray(make(depth - 1));
        case 10:
            return resized(make(depth - 1));
        default: {
            const sample child = make(depth - 1);
            sample out = start("dup", child);
            PMPI_Type_dup(child.type, &out.type);
            out.map = child.map;
            out.text += ")";
            return out;
        }
    }
}

sample type_maker::contiguous(sample child) {
    sample out = start("contiguous", child);
    const int count = between(0, 5);
    PMPI_Type_contiguous(count, child.type, &out.type);
    place(out, child, 0, count);
    say(out, count);
    out.text += ")";
    return out;
}

sample type_maker::vector(sample child, bool bytes) {
    sample out = start(bytes ? "hvector" : "vector", child);
    const int count = between(0, 4), length = between(0, 3);
    const std::int64_t stride = bytes ? between(-100, 100) : between(-5, 8);
    if (bytes)
        PMPI_Type_create_hvector(count, length, static_cast<MPI_Aint>(stride), child.type, &out.type);
    else
        PMPI_Type_vector(count, length, static_cast<int>(stride), child.type, &out.type);
    const std::int64_t byte_stride = stride * (bytes ? 1 : child.extent());
    for (int n = 0; n < count; ++n) place(out, child, n * byte_stride, length);
    // Open MPI 4.1 takes a byte stride of -1 for a dense vector, too.
    out.backwards = out.backwards || byte_stride == -length * child.extent() || byte_stride == -1;
    say(out, count);
    say(out, length);
    say(out, stride);
    out.text += ")";
    return out;
}

sample type_maker::indexed(sample child, bool bytes, bool same_length) {
    const char *const names[] = {"indexed", "hindexed", "indexed_block", "hindexed_block"};
    sample out = start(names[(same_length ? 2 : 0) + (bytes ? 1 : 0)], child);
    const int count = between(0, 4);
    const int length = between(0, 3);
    std::vector<int> lengths, at;
    std::vector<MPI_Aint> byte_at;
    for (int n = 0; n < count; ++n) {
        lengths.push_back(same_length ? length : between(0, 3));
        at.push_back(bytes ? between(-200, 200) : between(-4, 9));
        byte_at.push_back(at.back());
        place(out, child, at.back() * (bytes ? 1 : child.extent()), lengths.back());
    }
    if (same_length && bytes)
        PMPI_Type_create_hindexed_block(count, length, byte_at.data(), child.type, &out.type);
    else if (same_length)
        PMPI_Type_create_indexed_block(count, length, at.data(), child.type, &out.type);
    else if (bytes)
        PMPI_Type_create_hindexed(count, lengths.data(), byte_at.data(), child.type, &out.type);
    else
        PMPI_Type_indexed(count, lengths.data(), at.data(), child.type, &out.type);
    say(out, lengths);
    say(out, at);
    out.text += ")";
    return out;
}

sample type_maker::structure(int depth) {
    sample out;
    out.named = false;
    out.text = "struct(";
    const int count = between(1, 3);
    std::vector<sample> children;
    std::vector<int> lengths, at;
    std::vector<MPI_Aint> byte_at;
    std::vector<MPI_Datatype> types;
    for (int n = 0; n < count; ++n) {
        children.push_back(make(depth - 1));
        lengths.push_back(between(0, 2));
        at.push_back(between(-150, 300));
        byte_at.push_back(at.back());
        types.push_back(children.back().type);
        place(out, children.back(), at.back(), lengths.back());
        out.text += children.back().text + ";";
    }
    PMPI_Type_create_struct(count, lengths.data(), byte_at.data(), types.data(), &out.type);
    say(out, lengths);
    say(out, at);
    out.text += ")";
    return out;
}

// Both kinds of array: which elements of a global one belong to it, in memory order.
template <class Mine>
static void place_array(sample &out, const sample &child, const std::vector<int> &sizes, bool fortran,
                        const Mine &mine) {
    const int dimensions = static_cast<int>(sizes.size());
    std::int64_t total = 1;
    for (const int size : sizes) total *= size;
    for (std::int64_t element = 0; element < total; ++element) {
        bool inside = true;
        std::int64_t rest = element;
        for (int n = 0; n < dimensions; ++n) {
            const int d = fortran ? n : dimensions - 1 - n;
            const int size = sizes[static_cast<std::size_t>(d)];
            inside = inside && mine(static_cast<std::size_t>(d), static_cast<int>(rest % size));
            rest /= size;
        }
        if (inside) place(out, child, element * child.extent(), 1);
    }
}

sample type_maker::subarray(sample child) {
    const bool fortran = below(2) != 0;
    sample out = start(fortran ? "subarray_f" : "subarray_c", child);
    const int dimensions = between(1, 4);
    std::vector<int> sizes, parts, starts;
    for (int d = 0; d < dimensions; ++d) {
        sizes.push_back(between(1, 5));
        parts.push_back(between(1, sizes.back()));
        starts.push_back(between(0, sizes.back() - parts.back()));
    }
    PMPI_Type_create_subarray(dimensions, sizes.data(), parts.data(), starts.data(),
                              fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C, child.type, &out.type);
    place_array(out, child, sizes, fortran,
                [&](std::size_t d, int i) { return i >= starts[d] && i < starts[d] + parts[d]; });
    say(out, sizes);
    say(out, parts);
    say(out, starts);
    out.text += ")";
    return out;
}

sample type_maker::darray(sample child) {
    if (child.map.empty()) return contiguous(std::move(child));
    const bool fortran = below(2) != 0;
    sample out = start(fortran ? "darray_f" : "darray_c", child);
    const int dimensions = between(1, 3);
    std::vector<int> sizes, kinds, arguments, blocks, grid;
    int processes = 1;
    for (int d = 0; d < dimensions; ++d) {
        const int size = between(1, 8), kind = below(3);
        sizes.push_back(size);
        kinds.push_back(kind == 0 ? MPI_DISTRIBUTE_NONE : kind == 1 ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC);
        grid.push_back(kind == 0 ? 1 : between(1, 3));
        const int least = (size + grid.back() - 1) / grid.back();  // blocks must cover the dimension
        const bool given = kind != 0 && below(2) != 0;
        blocks.push_back(kind == 0   ? size
                         : kind == 1 ? (given ? between(least, least + 2) : least)
                                     : (given ? between(1, 3) : 1));
        arguments.push_back(given ? blocks.back() : MPI_DISTRIBUTE_DFLT_DARG);
        processes *= grid.back();
    }
    // Some processes have no element, which Open MPI refuses; there is always one that has.
    int rank = 0;
    do {
        rank = below(processes);
        out.map.clear();
        std::vector<int> at(static_cast<std::size_t>(dimensions));
        for (int d = dimensions - 1, rest = rank; d >= 0; --d) {  // the grid is in C order, always
            at[static_cast<std::size_t>(d)] = rest % grid[static_cast<std::size_t>(d)];
            rest /= grid[static_cast<std::size_t>(d)];
        }
        place_array(out, child, sizes, fortran, [&](std::size_t d, int i) { return i / blocks[d] % grid[d] == at[d]; });
    } while (out.map.empty());
    PMPI_Type_create_darray(processes, rank, dimensions, sizes.data(), kinds.data(), arguments.data(), grid.data(),
                            fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C, child.type, &out.type);
    say(out, sizes);
    say(out, kinds);
    say(out, arguments);
    say(out, grid);
    say(out, rank);
    out.text += ")";
    return out;
}

sample type_maker::resized(sample child) {
    sample out = start("resized", child);
    const int lower = between(-50, 50), extent = between(-60, 400);
    PMPI_Type_create_resized(child.type, lower, extent, &out.type);
    out.map = child.map;
    say(out, lower);
    say(out, extent);
    out.text += ")";
    return out;
}
