// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_c/types.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "host/format.h"

namespace mpix::halo {
namespace {

value_type real_of(std::size_t bytes) {
    if (bytes == sizeof(float)) return value_type::float32;
    if (bytes == sizeof(double)) return value_type::float64;
    return value_type::bytes;
}

value_type integer_of(std::size_t bytes, value_type first) {
    if (bytes > 8 || (bytes & (bytes - 1)) != 0) return value_type::bytes;
    int doubled = 0;
    while (std::size_t{1} << doubled < bytes) ++doubled;
    return static_cast<value_type>(static_cast<int>(first) + doubled);
}

// What a library lacks is MPI_DATATYPE_NULL there.
value_type arithmetic_of(MPI_Datatype type, std::size_t bytes) {
    const MPI_Datatype reals[] = {MPI_FLOAT, MPI_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8};
    const MPI_Datatype integers[] = {MPI_SIGNED_CHAR, MPI_SHORT,    MPI_INT,      MPI_LONG,     MPI_LONG_LONG,
                                     MPI_INT8_T,      MPI_INT16_T,  MPI_INT32_T,  MPI_INT64_T,  MPI_INTEGER,
                                     MPI_INTEGER1,    MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8, MPI_AINT,
                                     MPI_OFFSET,      MPI_COUNT};
    const MPI_Datatype naturals[] = {MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT,     MPI_UNSIGNED,
                                     MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T,
                                     MPI_UINT16_T,      MPI_UINT32_T,           MPI_UINT64_T};
    const auto is_of = [&](const auto &some) {
        return std::find(std::begin(some), std::end(some), type) != std::end(some);
    };
    if (type == MPI_LONG_DOUBLE && bytes == sizeof(long double)) return value_type::long_double;
    if (is_of(reals)) return real_of(bytes);
    if (is_of(integers)) return integer_of(bytes, value_type::int8);
    if (is_of(naturals)) return integer_of(bytes, value_type::uint8);
    return value_type::bytes;
}

}  // namespace

status convert(MPI_Datatype type, std::size_t &bytes, value_type &made) {
    if (type == MPI_DATATYPE_NULL) return failure(MPI_ERR_TYPE, "type is MPI_DATATYPE_NULL");
    int size = 0;
    MPI_Aint first = 0, extent = 0, true_first = 0, true_extent = 0;
    if (PMPI_Type_size(type, &size) != MPI_SUCCESS || PMPI_Type_get_extent(type, &first, &extent) != MPI_SUCCESS ||
        PMPI_Type_get_true_extent(type, &true_first, &true_extent) != MPI_SUCCESS)
        return failure(MPI_ERR_TYPE, "type is not a datatype");
    if (size < 1 || first != 0 || true_first != 0 || extent != size || true_extent != size)
        return failure(MPI_ERR_TYPE, format("type has {} bytes, and an extent of {}; values are without gaps", size,
                                            static_cast<std::int64_t>(extent)));
    bytes = static_cast<std::size_t>(size);
    made = arithmetic_of(type, bytes);
    return {};
}

status convert(MPI_Op op, reduction &made) {
    if (op == MPI_SUM) return made = reduction::sum, status{};
    if (op == MPI_MIN) return made = reduction::min, status{};
    if (op == MPI_MAX) return made = reduction::max, status{};
    return failure(MPI_ERR_OP, "op is not MPI_SUM, MPI_MIN or MPI_MAX");
}

}  // namespace mpix::halo
