// SPDX-License-Identifier: BSD-3-Clause
#include "host/datatype/layout.h"

#include <algorithm>
#include <cstring>

namespace mpix {
namespace {

// A type map under construction: runs without packed offsets, which follow from the order.
struct piece {
    std::int64_t offset, length;
};

struct type_map {
    std::vector<piece> pieces;
    std::int64_t lower = 0, extent = 0, size = 0;
};

class decoder {
public:
    bool decode(MPI_Datatype type, type_map &out);
    std::string problem;

private:
    bool decode_contents(MPI_Datatype type, int combiner, int integers, int addresses, int types, type_map &out);
    bool darray(const std::vector<int> &i, const type_map &child, type_map &out);
    bool append(type_map &out, const type_map &child, std::int64_t at, std::int64_t count);
};

void append_piece(std::vector<piece> &pieces, std::int64_t offset, std::int64_t length) {
    if (length == 0) return;
    if (!pieces.empty() && pieces.back().offset + pieces.back().length == offset)
        pieces.back().length += length;
    else
        pieces.push_back({offset, length});
}

// `count` elements of `child`, one extent apart, the first at byte `at`.
bool decoder::append(type_map &out, const type_map &child, std::int64_t at, std::int64_t count) {
    if (child.size == 0 || count <= 0) return true;
    if (child.pieces.size() == 1 && child.size == child.extent) {
        append_piece(out.pieces, at + child.pieces[0].offset, count * child.size);
        return true;
    }
    for (std::int64_t n = 0; n < count; ++n) {
        for (const piece &p : child.pieces) append_piece(out.pieces, at + n * child.extent + p.offset, p.length);
        if (out.pieces.size() > layout_limit) {
            problem = "the datatype has too many separate blocks";
            return false;
        }
    }
    return true;
}

// One dimension of a distributed array: the global indices this process owns, in order.
struct owned_range {
    std::int64_t first, count;
};

std::vector<owned_range> owned_indices(std::int64_t global, int distribution, int argument, int processes, int at) {
    std::vector<owned_range> ranges;
    std::int64_t block = argument;
    if (distribution == MPI_DISTRIBUTE_NONE) return {{0, global}};
    if (argument == MPI_DISTRIBUTE_DFLT_DARG)
        block = distribution == MPI_DISTRIBUTE_BLOCK ? (global + processes - 1) / processes : 1;
    for (std::int64_t first = at * block; first < global; first += block * processes) {
        ranges.push_back({first, std::min(block, global - first)});
        if (distribution == MPI_DISTRIBUTE_BLOCK) break;
    }
    return ranges;
}

bool decoder::darray(const std::vector<int> &i, const type_map &child, type_map &out) {
    const int processes = i[0];
    int rank = i[1];
    const int dimensions = i[2];
    const int *sizes = &i[3], *distributions = sizes + dimensions, *arguments = distributions + dimensions,
              *grid = arguments + dimensions;
    const bool fortran = i[static_cast<std::size_t>(3 + 4 * dimensions)] == MPI_ORDER_FORTRAN;
    // The process grid is numbered in row-major order whatever the order of the array.
    std::vector<int> at(static_cast<std::size_t>(dimensions));
    int rest = processes;
    for (int d = 0; d < dimensions; ++d) {
        rest /= grid[d];
        at[static_cast<std::size_t>(d)] = rank / rest;
        rank %= rest;
    }
    // From the fastest dimension outwards, each level is a list of element offsets of the level below.
    std::vector<owned_range> inner{{0, 1}};
    std::int64_t stride = 1;
    for (int n = 0; n < dimensions; ++n) {
        const int d = fortran ? n : dimensions - 1 - n;
        const auto owned =
            owned_indices(sizes[d], distributions[d], arguments[d], grid[d], at[static_cast<std::size_t>(d)]);
        std::vector<owned_range> level;
        for (const owned_range &r : owned)
            for (std::int64_t k = 0; k < r.count; ++k)
                for (const owned_range &below : inner) {
                    const std::int64_t first = (r.first + k) * stride + below.first;
                    if (!level.empty() && level.back().first + level.back().count == first)
                        level.back().count += below.count;
                    else
                        level.push_back({first, below.count});
                    if (level.size() > layout_limit) {
                        problem = "the datatype has too many separate blocks";
                        return false;
                    }
                }
        inner = std::move(level);
        stride *= sizes[d];
    }
    for (const owned_range &r : inner)
        if (!append(out, child, r.first * child.extent, r.count)) return false;
    return true;
}

bool decoder::decode(MPI_Datatype type, type_map &out) {
    int integers = 0, addresses = 0, types = 0, combiner = 0;
    if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) {
        problem = "MPI_Type_get_envelope failed";
        return false;
    }
    MPI_Count lower = 0, extent = 0, size = 0;
    PMPI_Type_get_extent_x(type, &lower, &extent);
    PMPI_Type_size_x(type, &size);
    out.lower = lower;
    out.extent = extent;
    out.size = size;
    if (combiner == MPI_COMBINER_NAMED) {
        MPI_Count true_lower = 0, true_extent = 0;
        PMPI_Type_get_true_extent_x(type, &true_lower, &true_extent);
        if (true_extent == size) {
            append_piece(out.pieces, true_lower, size);
            return true;
        }
        // A pair type with padding between value and int (or padding inside a long double, which MPI packs
        // as part of the value): value first, then the int at the next multiple of its alignment.
        const std::int64_t second = static_cast<std::int64_t>(sizeof(int)), first = size - second;
        append_piece(out.pieces, 0, first);
        append_piece(out.pieces, true_extent - second, second);
        return true;
    }
    return decode_contents(type, combiner, integers, addresses, types, out);
}

bool decoder::decode_contents(MPI_Datatype type, int combiner, int integers, int addresses, int types, type_map &out) {
    std::vector<int> i(static_cast<std::size_t>(integers) + 1);
    std::vector<MPI_Aint> a(static_cast<std::size_t>(addresses) + 1);
    std::vector<MPI_Datatype> t(static_cast<std::size_t>(types) + 1);
    if (types == 0 ||
        PMPI_Type_get_contents(type, integers, addresses, types, i.data(), a.data(), t.data()) != MPI_SUCCESS) {
        problem = "MPI_Type_get_contents does not explain the datatype";
        return false;
    }
    std::vector<type_map> child(static_cast<std::size_t>(types));
    bool good = true;
    for (int n = 0; n < types; ++n) {
        const auto at = static_cast<std::size_t>(n);
        good = good && decode(t[at], child[at]);
        int ni = 0, na = 0, nt = 0, kind = MPI_COMBINER_NAMED;
        PMPI_Type_get_envelope(t[at], &ni, &na, &nt, &kind);
        if (kind != MPI_COMBINER_NAMED) PMPI_Type_free(&t[at]);  // get_contents made a new reference
    }
    if (!good) return false;
    const auto I = [&](int n) { return i[static_cast<std::size_t>(n)]; };
    const auto A = [&](int n) { return static_cast<std::int64_t>(a[static_cast<std::size_t>(n)]); };
    const type_map &c = child[0];
    switch (combiner) {
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_RESIZED:
            return append(out, c, 0, 1);
        case MPI_COMBINER_CONTIGUOUS:
            return append(out, c, 0, I(0));
        case MPI_COMBINER_VECTOR:
        case MPI_COMBINER_HVECTOR: {
            const std::int64_t stride = combiner == MPI_COMBINER_VECTOR ? I(2) * c.extent : A(0);
            for (int n = 0; n < I(0); ++n)
                if (!append(out, c, n * stride, I(1))) return false;
            return true;
        }
        case MPI_COMBINER_INDEXED:
        case MPI_COMBINER_HINDEXED:
            for (int n = 0; n < I(0); ++n) {
                const std::int64_t at = combiner == MPI_COMBINER_INDEXED ? I(1 + I(0) + n) * c.extent : A(n);
                if (!append(out, c, at, I(1 + n))) return false;
            }
            return true;
        case MPI_COMBINER_INDEXED_BLOCK:
        case MPI_COMBINER_HINDEXED_BLOCK:
            for (int n = 0; n < I(0); ++n) {
                const std::int64_t at = combiner == MPI_COMBINER_INDEXED_BLOCK ? I(2 + n) * c.extent : A(n);
                if (!append(out, c, at, I(1))) return false;
            }
            return true;
        case MPI_COMBINER_STRUCT:
            for (int n = 0; n < I(0); ++n)
                if (!append(out, child[static_cast<std::size_t>(n)], A(n), I(1 + n))) return false;
            return true;
        case MPI_COMBINER_SUBARRAY: {
            // A subarray is a distributed array whose owned range is given directly.
            const int dimensions = I(0);
            const bool fortran = I(1 + 3 * dimensions) == MPI_ORDER_FORTRAN;
            std::vector<std::int64_t> offsets{0};
            std::int64_t row = 1, stride = 1;
            for (int n = 0; n < dimensions; ++n) {
                const int d = fortran ? n : dimensions - 1 - n;
                const std::int64_t size = I(1 + d), part = I(1 + dimensions + d), start = I(1 + 2 * dimensions + d);
                if (n == 0) {
                    row = part;
                    offsets[0] = start;
                } else {
                    std::vector<std::int64_t> level;
                    for (std::int64_t k = 0; k < part; ++k)
                        for (const std::int64_t below : offsets) level.push_back((start + k) * stride + below);
                    if (level.size() > layout_limit) {
                        problem = "the datatype has too many separate blocks";
                        return false;
                    }
                    offsets = std::move(level);
                }
                stride *= size;
            }
            for (const std::int64_t offset : offsets)
                if (!append(out, c, offset * c.extent, row)) return false;
            return true;
        }
        case MPI_COMBINER_DARRAY:
            return darray(i, c, out);
        default:
            problem = "the datatype was made by a constructor that mpix does not know";
            return false;
    }
}

// Call `copy(memory, packed, n)` for each piece of the packed interval.
template <class Copy>
void walk(const layout &type, std::int64_t begin, std::int64_t bytes, const Copy &copy) {
    if (bytes == 0 || type.size == 0) return;
    if (type.contiguous()) {
        copy(begin, 0, bytes);
        return;
    }
    std::int64_t element = begin / type.size, within = begin % type.size, done = 0;
    auto at = std::upper_bound(type.runs.begin(), type.runs.end(), within,
                               [](std::int64_t byte, const run &r) { return byte < r.packed; }) -
              1;
    std::int64_t skip = within - at->packed;
    while (done < bytes) {
        const std::int64_t n = std::min(at->length - skip, bytes - done);
        copy(element * type.extent + at->offset + skip, done, n);
        done += n;
        skip = 0;
        if (++at == type.runs.end()) {
            at = type.runs.begin();
            ++element;
        }
    }
}

}  // namespace

std::shared_ptr<const layout> layout_of(MPI_Datatype datatype, std::string &problem) {
    decoder d;
    type_map map;
    if (!d.decode(datatype, map)) {
        problem = d.problem;
        return nullptr;
    }
    auto out = std::make_shared<layout>();
    out->extent = map.extent;
    for (const piece &p : map.pieces) {
        out->runs.push_back({p.offset, p.length, out->size});
        out->size += p.length;
    }
    if (out->size != map.size) {
        problem = "the datatype's size does not agree with its type map";
        return nullptr;
    }
    return out;
}

void pack_range(const layout &type, const char *buffer, std::int64_t begin, std::int64_t bytes, char *packed) {
    walk(type, begin, bytes, [&](std::int64_t memory, std::int64_t at, std::int64_t n) {
        std::memcpy(packed + at, buffer + memory, static_cast<std::size_t>(n));
    });
}

void unpack_range(const layout &type, char *buffer, std::int64_t begin, std::int64_t bytes, const char *packed) {
    walk(type, begin, bytes, [&](std::int64_t memory, std::int64_t at, std::int64_t n) {
        std::memcpy(buffer + memory, packed + at, static_cast<std::size_t>(n));
    });
}

}  // namespace mpix
