// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_files/file_order.h"

#include <cstring>
#include <type_traits>

namespace mpix::halo {
namespace {

// to[j * rows + i] = from[i * columns + j], of values of so many bytes.
void transpose(const std::byte *from, std::int64_t rows, std::int64_t columns, std::int64_t bytes, std::byte *to) {
    const auto copy = [&](auto length) {
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j, from += bytes)
                std::memcpy(to + (j * rows + i) * bytes, from, length);
    };
    // A memcpy of a constant length is no call.
    if (bytes == 4)
        copy(std::integral_constant<std::size_t, 4>{});
    else if (bytes == 8)
        copy(std::integral_constant<std::size_t, 8>{});
    else
        copy(static_cast<std::size_t>(bytes));
}

}  // namespace

std::int64_t row_copy::to_file(std::size_t i, const box &row, std::byte *to) {
    const runs values = view_.of(i, row);
    if (view_.interleaved() || view_.components() == 1) return pack(values, to);
    room_.resize(static_cast<std::size_t>(values.total()));
    pack(values, room_.data());
    transpose(room_.data(), view_.components(), row.hi[0] - row.lo[0], view_.value_bytes(), to);
    return values.total();
}

std::int64_t row_copy::from_file(const std::byte *from, std::size_t i, const box &row) {
    const runs values = view_.of(i, row);
    if (view_.interleaved() || view_.components() == 1) return unpack(from, values);
    room_.resize(static_cast<std::size_t>(values.total()));
    transpose(from, row.hi[0] - row.lo[0], view_.components(), view_.value_bytes(), room_.data());
    return unpack(room_.data(), values);
}

}  // namespace mpix::halo
