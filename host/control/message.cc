// SPDX-License-Identifier: BSD-3-Clause
#include "host/control/message.h"

#include <cstring>

namespace mpix {
namespace {

constexpr std::uint64_t message_limit = std::uint64_t{1} << 60;

}  // namespace

control_message make_control(control kind, std::uint64_t from, std::uint64_t to) {
    control_message m{};
    m.magic = control_magic;
    m.kind = static_cast<std::uint32_t>(kind);
    m.from = from;
    m.to = to;
    return m;
}

std::string check_control(const void *data, std::size_t bytes, control_message &out) {
    if (bytes != sizeof out) return "a control message of the wrong size";
    std::memcpy(&out, data, sizeof out);
    if (out.magic != control_magic) return "a control message that is not mpix's, or of another version";
    if (out.kind < static_cast<std::uint32_t>(control::offer) || out.kind > static_cast<std::uint32_t>(control::answer))
        return "a control message of unknown kind";
    const auto kind = static_cast<control>(out.kind);
    const bool needs_from = kind != control::detach && kind != control::introduce && kind != control::answer,
               needs_to = kind == control::accept || kind == control::connect || kind == control::detach ||
                          kind == control::answer;
    if ((needs_from && out.from == 0) || (needs_to && out.to == 0) || (kind == control::offer && out.to != 0))
        return "a control message without its requests";
    if (kind == control::introduce && (out.bytes == 0 || out.bytes > introduction_limit || out.flags >= out.bytes ||
                                       out.flags % introduction_piece != 0))
        return "a control message with an impossible introduction";
    out.reason[sizeof out.reason - 1] = '\0';
    if (out.refusal > refused_unreachable) return "a control message with an unknown refusal";
    const bool accepts = kind == control::accept && out.refusal == refused_not;
    const bool describes = kind == control::offer || accepts;
    if (describes && (out.partitions < 1 || out.bytes > message_limit ||
                      out.bytes % static_cast<std::uint64_t>(out.partitions) != 0))
        return "a control message with impossible partitions";
    const std::uint32_t slots = out.flags & ~(accept_in_chunks | accept_inline | accept_in_place | accept_pull);
    if (accepts && slots != 1 && slots != 2) return "a control message with impossible slots";
    if (accepts && (out.flags & accept_inline) != 0 && out.flags != (1 | accept_inline))
        return "a control message with an impossible inline buffer";
    if (accepts && (out.flags & accept_in_place) != 0 && out.flags != (1 | accept_in_place))
        return "a control message with an impossible receive buffer";
    if (accepts && (out.flags & accept_pull) != 0 && out.flags != (1 | accept_pull))
        return "a control message with an impossible pull";
    return {};
}

}  // namespace mpix
