// SPDX-License-Identifier: BSD-3-Clause
#include "host/datatype/facts.h"

#include <algorithm>
#include <forward_list>
#include <map>

#include "host/datatype/contents.h"

namespace mpix {
namespace {

// Basic types that some MPI library packs wrongly (facts.h).
bool is_packed_wrongly(MPI_Datatype basic, [[maybe_unused]] int combiner) {
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5
    static_assert(library_mispacks_complex);
    if (combiner == MPI_COMBINER_F90_COMPLEX) return true;
    for (const MPI_Datatype complex :
         {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX,
          MPI_CXX_LONG_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_COMPLEX8, MPI_COMPLEX16, MPI_COMPLEX32, MPI_DOUBLE_COMPLEX,
          MPI_2COMPLEX, MPI_2DOUBLE_COMPLEX})
        if (basic == complex) return true;
#endif
    return basic == MPI_LONG_DOUBLE || basic == MPI_LONG_DOUBLE_INT || basic == MPI_C_LONG_DOUBLE_COMPLEX;
}

// False: `to` would be beyond 64 bits.
bool span(std::int64_t steps, std::int64_t step, std::int64_t last, std::int64_t &to) {
    return !__builtin_mul_overflow(steps, step, &to) && !__builtin_add_overflow(to, last, &to);
}

// Blocks of a type as they are named: whether each begins behind the end of the last one.
class block_order {
public:
    void add(const type_facts &child, std::int64_t at, std::int64_t count) {
        parts += child.parts;
        if (count <= 0 || child.size == 0) {  // of which the bounds say nothing
            empty = true;
            return;
        }
        std::int64_t first = 0, length = 0;
        ascending = ascending && !__builtin_add_overflow(at, child.true_lower, &first) && first >= end_ &&
                    (count == 1 || child.extent >= child.true_extent) &&
                    span(count - 1, child.extent, child.true_extent, length) &&
                    !__builtin_add_overflow(first, length, &end_);
    }
    bool empty = false, ascending = true;
    double parts = 0;

private:
    std::int64_t end_ = INT64_MIN;
};

class surveyor {
public:
    explicit surveyor(double budget) : budget_(budget) {}
    type_facts facts(MPI_Datatype type);
    type_facts look_into(MPI_Datatype type, const type_envelope &envelope);
    bool within_budget() const { return budget_ >= 0; }

private:
    block_order order_of(const type_contents &made, type_facts &out);

    double budget_;
    std::map<MPI_Datatype, type_facts> known_;  // a part may be there many times
    std::forward_list<type_contents> read_;     // so that no handle comes to mean another type
};

// The blocks of one row, and the rows.
block_order rows(const type_facts &child, std::int64_t count, std::int64_t length, std::int64_t stride) {
    block_order order;
    order.add(child, 0, length);
    order.empty = order.empty || count <= 0;
    std::int64_t row = 0;
    order.ascending = order.ascending && !order.empty &&
                      (count == 1 || (span(length - 1, child.extent, child.true_extent, row) && stride >= row));
    return order;
}

// Of each dimension some; the blocks are in the array's order.
block_order array(const type_facts &child, const int *sizes, int dimensions, double most_parts) {
    block_order order;
    order.add(child, 0, 2);
    for (int d = 0; d < dimensions; ++d) order.empty = order.empty || sizes[d] == 0;
    order.parts *= most_parts;
    return order;
}

block_order surveyor::order_of(const type_contents &made, type_facts &out) {
    const auto I = [&](int n) -> std::int64_t { return made.integers[static_cast<std::size_t>(n)]; };
    const auto A = [&](int n) -> std::int64_t { return made.addresses[static_cast<std::size_t>(n)]; };
    block_order order;
    const type_facts c = made.types.empty() ? type_facts() : facts(made.types[0]);
    switch (made.combiner) {
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_RESIZED:
            order.add(c, 0, 1);
            break;
        case MPI_COMBINER_CONTIGUOUS:
            order.add(c, 0, I(0));
            break;
        case MPI_COMBINER_VECTOR:
            return rows(c, I(0), I(1), I(2) * c.extent);
        case MPI_COMBINER_HVECTOR:
            return rows(c, I(0), I(1), A(0));
        case MPI_COMBINER_INDEXED:
            for (int n = 0; n < I(0); ++n) order.add(c, I(1 + static_cast<int>(I(0)) + n) * c.extent, I(1 + n));
            break;
        case MPI_COMBINER_HINDEXED:
            for (int n = 0; n < I(0); ++n) order.add(c, A(n), I(1 + n));
            break;
        case MPI_COMBINER_INDEXED_BLOCK:
            for (int n = 0; n < I(0); ++n) order.add(c, I(2 + n) * c.extent, I(1));
            break;
        case MPI_COMBINER_HINDEXED_BLOCK:
            for (int n = 0; n < I(0); ++n) order.add(c, A(n), I(1));
            break;
        case MPI_COMBINER_STRUCT:
            for (int n = 0; n < I(0); ++n) order.add(facts(made.types[static_cast<std::size_t>(n)]), A(n), I(1 + n));
            break;
        case MPI_COMBINER_SUBARRAY: {
            const int dimensions = static_cast<int>(I(0));
            return array(c, &made.integers[static_cast<std::size_t>(1 + dimensions)], dimensions, 1);
        }
        case MPI_COMBINER_DARRAY: {
            const int dimensions = static_cast<int>(I(2));
            return array(c, &made.integers[3], dimensions, static_cast<double>(1 << std::min(dimensions, 20)));
        }
        default:
            out.error = unknown_constructor();
    }
    return order;
}

// Of a type that is not basic.
type_facts surveyor::look_into(MPI_Datatype type, const type_envelope &envelope) {
    type_facts out = quick_facts_of(type);
    out.error = envelope.error;
    if (!out.error.ok()) return out;
    // Open MPI makes a duplicate of each part.
    constexpr double of_a_part = 64;
    budget_ -= 1 + envelope.integers + envelope.addresses + of_a_part * envelope.types;
    if (!within_budget()) return out;
    type_contents &made = read_.emplace_front();
    if (out.error = made.read(type, envelope); !out.error.ok()) return out;
    if (made.types.empty()) {  // a struct of no blocks
        out.library_is_right = false;
        return out;
    }
    const block_order order = order_of(made, out);
    out.parts = order.parts;
    out.library_is_right = out.size > 0 && !order.empty && order.ascending;
    for (const MPI_Datatype part : made.types) {
        if (!within_budget()) return out;
        const type_facts child = facts(part);
        out.library_is_right = out.library_is_right && child.library_is_right;
        if (out.error.ok()) out.error = child.error;
    }
    return out;
}

type_facts surveyor::facts(MPI_Datatype type) {
    const type_envelope envelope = envelope_of(type);
    if (envelope.is_basic()) {
        type_facts out = quick_facts_of(type);
        out.library_is_right = !is_packed_wrongly(type, envelope.combiner);
        return out;
    }
    if (const auto known = known_.find(type); known != known_.end()) return known->second;
    return known_.emplace(type, look_into(type, envelope)).first->second;
}

}  // namespace

type_facts quick_facts_of(MPI_Datatype datatype) {
    MPI_Count size = 0, lower = 0, extent = 0, true_lower = 0, true_extent = 0;
    PMPI_Type_size_x(datatype, &size);
    PMPI_Type_get_extent_x(datatype, &lower, &extent);
    PMPI_Type_get_true_extent_x(datatype, &true_lower, &true_extent);
    type_facts facts;
    facts.size = size;
    facts.extent = extent;
    facts.true_lower = true_lower;
    facts.true_extent = true_extent;
    return facts;
}

bool facts_of(MPI_Datatype datatype, double budget, type_facts &out) {
    surveyor one(budget);
    const type_envelope envelope = envelope_of(datatype);
    const type_facts found = envelope.is_basic() ? one.facts(datatype) : one.look_into(datatype, envelope);
    if (one.within_budget()) out = found;
    return one.within_budget();
}

}  // namespace mpix
