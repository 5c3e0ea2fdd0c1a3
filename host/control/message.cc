// SPDX-License-Identifier: BSD-3-Clause
#include "host/control/message.h"

namespace mpix {
namespace {

constexpr std::uint64_t message_limit = std::uint64_t{1} << 60;

template <class Body>
constexpr std::size_t encoded_bytes = std::is_empty_v<Body> ? 0 : sizeof(Body);

// Which numbers of requests a message must, may, or must not have.
enum class number { none, any, some };
struct numbers {
    number from, to;
};
constexpr numbers numbers_of(control kind) {
    switch (kind) {
        case control::offer:
        case control::started:
            return {.from = number::some, .to = number::none};
        case control::accept:
        case control::connect:
            return {.from = number::some, .to = number::some};
        case control::withdraw:
        case control::inquire:
            return {.from = number::some, .to = number::any};
        case control::detach:
            return {.from = number::any, .to = number::some};
        case control::introduce:
            return {.from = number::none, .to = number::none};
        case control::answer:
            return {.from = number::none, .to = number::some};
    }
    return {.from = number::any, .to = number::any};
}
bool right(number wanted, std::uint64_t there) {
    return wanted == number::any || (wanted == number::some) == (there != 0);
}

bool possible_partitions(std::int32_t partitions, std::uint64_t bytes) {
    return partitions >= 1 && bytes <= message_limit && bytes % static_cast<std::uint64_t>(partitions) == 0;
}
bool known(refusal_reason refusal) { return refusal <= refused_unreachable; }
bool known(pair_side side) { return side == pair_side::send || side == pair_side::receive; }

// What is wrong with a body, as the end of a sentence; null: nothing.
const char *fault(const offer_body &b) {
    if (!possible_partitions(b.partitions, b.bytes)) return "with impossible partitions";
    if (!b.flags.only_known()) return "with an unknown flag";
    if (!b.no_network.terminated()) return "with an endless reason";
    return nullptr;
}

const char *fault(const accept_body &b) {
    if (!known(b.refusal)) return "with an unknown refusal";
    if (!b.flags.only_known()) return "with an unknown flag";
    if (!b.reason.terminated()) return "with an endless reason";
    if (b.refusal != refused_not) return nullptr;
    if (!possible_partitions(b.partitions, b.bytes)) return "with impossible partitions";
    if (b.slots != 1 && b.slots != 2) return "with impossible slots";
    const auto impossible = [&b](accept_flag flag, std::initializer_list<accept_flag> beside = {}) {
        flag_set<accept_flag> possible;
        possible.set(flag);
        for (const accept_flag other : beside) possible.set(other);
        return b.flags.has(flag) && ((b.flags.bits & ~possible.bits) != 0 || b.slots != 1);
    };
    if (impossible(accept_flag::inline_buffer, {accept_flag::rget})) return "with an impossible inline buffer";
    if (impossible(accept_flag::in_place)) return "with an impossible receive buffer";
    if (impossible(accept_flag::rget, {accept_flag::inline_buffer})) return "with an impossible rget";
    return nullptr;
}

const char *fault(const connect_body &b) {
    if (!known(b.refusal)) return "with an unknown refusal";
    return b.reason.terminated() ? nullptr : "with an endless reason";
}

const char *fault(const started_body &) { return nullptr; }
const char *fault(const detach_body &) { return nullptr; }

const char *fault(const withdraw_body &b) { return known(b.by) ? nullptr : "of neither a send nor a receive"; }
const char *fault(const inquire_body &b) { return known(b.by) ? nullptr : "of neither a send nor a receive"; }

const char *fault(const introduce_body &b) {
    const bool possible = transport::by_network(b.network) && b.address_bytes <= introduction_limit &&
                          b.offset < b.address_bytes && b.offset % introduction_piece == 0;
    return possible ? nullptr : "with an impossible introduction";
}

const char *fault(const answer_body &b) { return b.state.terminated() ? nullptr : "with an endless state"; }

template <class Body>
const char *take_body(const std::byte *packet, control_body &out) {
    static_assert(std::is_trivially_copyable_v<Body>);
    static_assert(std::is_empty_v<Body> || std::has_unique_object_representations_v<Body>, "no padding");
    static_assert(sizeof(control_header) + sizeof(Body) <= sizeof(control_packet));
    Body body;
    const std::byte *const at = packet + sizeof(control_header), *const rest = at + encoded_bytes<Body>;
    if constexpr (!std::is_empty_v<Body>) std::memcpy(&body, at, sizeof body);
    const std::size_t left = static_cast<std::size_t>(packet + sizeof(control_packet) - rest);
    static constexpr control_packet zeros{};
    if (std::memcmp(rest, zeros.bytes, left) != 0) return "with more than its kind has";
    if (const char *const bad = fault(body); bad != nullptr) return bad;
    out = body;
    return nullptr;
}

const char *take_body_of(control kind, const std::byte *packet, control_body &out) {
    switch (kind) {
        case control::offer:
            return take_body<offer_body>(packet, out);
        case control::accept:
            return take_body<accept_body>(packet, out);
        case control::connect:
            return take_body<connect_body>(packet, out);
        case control::started:
            return take_body<started_body>(packet, out);
        case control::withdraw:
            return take_body<withdraw_body>(packet, out);
        case control::detach:
            return take_body<detach_body>(packet, out);
        case control::introduce:
            return take_body<introduce_body>(packet, out);
        case control::inquire:
            return take_body<inquire_body>(packet, out);
        case control::answer:
            return take_body<answer_body>(packet, out);
    }
    return "of unknown kind";
}

}  // namespace

control_packet encode_control(const control_message &message) {
    control_packet packet{};
    std::visit(
        [&]<class Body>(const Body &body) {
            const control_header header{
                .magic = control_magic, .kind = Body::kind, .from = message.from, .to = message.to};
            std::memcpy(packet.bytes, &header, sizeof header);
            if constexpr (!std::is_empty_v<Body>) std::memcpy(packet.bytes + sizeof header, &body, sizeof body);
        },
        message.body);
    return packet;
}

std::size_t filled_bytes(const control_packet &packet) {
    control_header header;
    std::memcpy(&header, packet.bytes, sizeof header);
    static_assert(std::max({encoded_bytes<started_body>, encoded_bytes<detach_body>, encoded_bytes<withdraw_body>}) <=
                  sizeof(inquire_body));
    const bool short_body = header.kind == control::started || header.kind == control::detach ||
                            header.kind == control::withdraw || header.kind == control::inquire;
    std::size_t filled = short_body ? sizeof header + sizeof(inquire_body) : sizeof packet;
    for (std::uint64_t word = 0; filled != 0; filled -= sizeof word) {
        std::memcpy(&word, packet.bytes + filled - sizeof word, sizeof word);
        if (word != 0) break;
    }
    return filled;
}

status check_control(const void *packet, std::size_t bytes, control_message &out) {
    if (bytes != sizeof(control_packet)) return failure("a control message of the wrong size");
    control_header header;
    std::memcpy(&header, packet, sizeof header);
    if (header.magic != control_magic) return failure("a control message that is not mpix's, or of another version");
    control_body body;
    if (const char *const bad = take_body_of(header.kind, static_cast<const std::byte *>(packet), body); bad != nullptr)
        return failure(std::string("a control message ") + bad);
    numbers wanted = numbers_of(header.kind);
    if (const auto *const withdraw = std::get_if<withdraw_body>(&body);
        withdraw != nullptr && withdraw->by == pair_side::receive)
        wanted.to = number::some;
    if (!right(wanted.from, header.from) || !right(wanted.to, header.to))
        return failure("a control message without its requests");
    out = {.from = header.from, .to = header.to, .body = body};
    return {};
}

}  // namespace mpix
