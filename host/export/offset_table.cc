// SPDX-License-Identifier: BSD-3-Clause
#include "host/export/offset_table.h"

#include <mpix/impl/inline/gather.cuh>
#include <mpix/impl/pack/typed_copy.cuh>

#include "host/datatype/typemap.h"

namespace mpix {

std::int64_t offset_table::piece() const {
    const std::shared_ptr<const typemap> map = typemap_of(type);
    const detail::layout side{const_cast<char *>(buffer), &map->map};
    const std::uint64_t all = detail::alignment_of(side, 0, static_cast<std::int64_t>(bytes)) | detail::packet_payload;
    return static_cast<std::int64_t>(all & (0 - all));
}

std::vector<std::int64_t> offset_table::offsets() const {
    const std::shared_ptr<const typemap> map = typemap_of(type);
    const std::int64_t length = piece();
    std::vector<std::int64_t> all(bytes / static_cast<std::uint64_t>(length));
    std::int64_t packed = 0;
    for (std::int64_t &place : all) {
        place = detail::offset_of(&map->map, packed);
        packed += length;
    }
    return all;
}

}  // namespace mpix
