// SPDX-License-Identifier: BSD-3-Clause
//
// check_control on any bytes: what it lets through is what the rest counts on.
#include "host/control/message.h"

#include "tests/fuzz/input.h"

using namespace mpix;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    control_message m;
    std::memset(&m, 0x5a, sizeof m);
    if (!check_control(data, size, m).empty()) return 0;
    FUZZ_CHECK(size == sizeof m && m.magic == control_magic);
    FUZZ_CHECK(m.kind >= 1 && m.kind <= 9);
    FUZZ_CHECK(m.refusal <= refused_unreachable);
    FUZZ_CHECK(std::memchr(m.reason, 0, sizeof m.reason) != nullptr);
    const auto kind = static_cast<control>(m.kind);
    if (kind != control::detach && kind != control::introduce && kind != control::answer) FUZZ_CHECK(m.from != 0);
    if (kind == control::introduce)
        FUZZ_CHECK(m.bytes <= introduction_limit && m.flags < m.bytes && m.flags % introduction_piece == 0);
    if (kind == control::offer || (kind == control::accept && m.refusal == refused_not)) {
        FUZZ_CHECK(m.partitions >= 1);
        FUZZ_CHECK(m.bytes % static_cast<std::uint64_t>(m.partitions) == 0);
        FUZZ_CHECK(m.bytes <= std::uint64_t{1} << 60);
    }
    return 0;
}
