// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/lanes.h"

namespace mpix::transport::ucx {

bool lanes_are_tcp(std::string_view description) {
    constexpr std::string_view lane = "lane[", sockets = "tcp/";
    bool any = false;
    for (std::size_t at = description.find(lane); at != description.npos; at = description.find(lane, at + 1)) {
        const std::size_t number = description.find(':', at);
        const std::size_t name =
            number == description.npos ? number : description.find_first_not_of(" 0123456789:", number);
        if (name == description.npos || description.substr(name, sockets.size()) != sockets) return false;
        any = true;
    }
    return any;
}

}  // namespace mpix::transport::ucx
