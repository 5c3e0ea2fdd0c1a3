// SPDX-License-Identifier: BSD-3-Clause
#include "transport/device_spec.h"

#include <algorithm>
#include <charconv>

namespace mpix::transport {

status parse_device_spec(const std::string &text, device_spec &out) {
    out = {};
    if (text.empty()) return {};
    const std::size_t first = std::min(text.find(':'), text.size());
    const std::size_t second = first == text.size() ? first : std::min(text.find(':', first + 1), text.size());
    device_spec made;
    made.name = text.substr(0, first);
    const auto number = [&text](std::size_t from, std::size_t to, int least, int &value) {
        if (from > text.size()) return true;  // left out
        const char *const end = text.data() + to;
        const auto [next, error] = std::from_chars(text.data() + from, end, value);
        return error == std::errc{} && next == end && value >= least && value <= 255;
    };
    if (made.name.empty() || !number(first + 1, second, 1, made.port) || !number(second + 1, text.size(), 0, made.gid))
        return failure("it takes name[:port[:GID index]], with a port from 1 to 255 and an index from 0 to 255");
    out = made;
    return {};
}

}  // namespace mpix::transport
