// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_report/lifetime_error.h"

#include "host/field/neighbours.h"
#include "host/format.h"

namespace mpix::halo {

void ghosts_under_way::add(int peer, const direction_bytes &by_direction) {
    for (std::size_t number = 0; number < directions; ++number)
        if (by_direction[number] != 0 && radius_.cells[number] != 0)
            text_ +=
                format("{}{} from rank {}", text_.empty() ? "" : ", ", direction_name(static_cast<int>(number)), peer);
}

error lifetime_error(const std::string &function, int rank, int field, end_of_memory how,
                     const ghosts_under_way *ghosts) {
    const std::string what = how == end_of_memory::unmapped ? format("the memory of fields[{}] was unmapped", field)
                                                            : format("the array of fields[{}] was destroyed", field);
    const std::string during = ghosts == nullptr ? "" : " while the exchange was active";
    const std::string cells =
        ghosts == nullptr || ghosts->text().empty() ? "" : format(" (its ghost cells: {})", ghosts->text());
    return {MPI_ERR_BUFFER,
            format("{}: rank {}: {}{}{}; it must live as long as the exchange", function, rank, what, during, cells)};
}

}  // namespace mpix::halo
