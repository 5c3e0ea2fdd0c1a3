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
const char *take_body(const std::byte *packet, Body &out) {
    static_assert(std::is_trivially_copyable_v<Body>);
    static_assert(std::is_empty_v<Body> || std::has_unique_object_representations_v<Body>, "no padding");
    static_assert(sizeof(control_header) + sizeof(Body) <= sizeof(control_packet));
    const std::byte *const at = packet + sizeof(control_header), *const rest = at + encoded_bytes<Body>;
    if constexpr (!std::is_empty_v<Body>) std::memcpy(&out, at, sizeof out);
    const std::size_t left = static_cast<std::size_t>(packet + sizeof(control_packet) - rest);
    static constexpr control_packet zeros{};
    if (std::memcmp(rest, zeros.bytes, left) != 0) return "with more than its kind has";
    return fault(out);
}

// Calls `take` with an empty body of that kind. False: it is unknown.
template <class Take>
bool with_body_of(control kind, const Take &take) {
    switch (kind) {
        case control::offer:
            return take(offer_body{}), true;
        case control::accept:
            return take(accept_body{}), true;
        case control::connect:
            return take(connect_body{}), true;
        case control::started:
            return take(started_body{}), true;
        case control::withdraw:
            return take(withdraw_body{}), true;
        case control::detach:
            return take(detach_body{}), true;
        case control::introduce:
            return take(introduce_body{}), true;
        case control::inquire:
            return take(inquire_body{}), true;
        case control::answer:
            return take(answer_body{}), true;
    }
    return false;
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
    return filled_bytes(packet.bytes, short_body ? sizeof header + sizeof(inquire_body) : sizeof packet);
}

std::size_t filled_bytes(const void *from, std::size_t bytes) {
    const auto *const at = static_cast<const std::byte *>(from);
    constexpr std::size_t piece = 64;
    static constexpr std::byte zeros[piece] = {};
    while (bytes >= piece && std::memcmp(at + bytes - piece, zeros, piece) == 0) bytes -= piece;
    for (std::uint64_t word = 0; bytes != 0; bytes -= sizeof word) {
        std::memcpy(&word, at + bytes - sizeof word, sizeof word);
        if (word != 0) break;
    }
    return bytes;
}

status check_control(const void *packet, std::size_t bytes, control_message &out) {
    if (bytes != sizeof(control_packet)) return failure("a control message of the wrong size");
    control_header header;
    std::memcpy(&header, packet, sizeof header);
    if (header.magic != control_magic) return failure("a control message that is not mpix's, or of another version");
    const char *bad = "of unknown kind";
    bool numbered = false;
    with_body_of(header.kind, [&]<class Body>(Body body) {
        bad = take_body(static_cast<const std::byte *>(packet), body);
        if (bad != nullptr) return;
        numbers wanted = numbers_of(header.kind);
        if constexpr (std::is_same_v<Body, withdraw_body>)
            if (body.by == pair_side::receive) wanted.to = number::some;
        numbered = right(wanted.from, header.from) && right(wanted.to, header.to);
        if (!numbered) return;
        out.from = header.from;
        out.to = header.to;
        out.body.template emplace<Body>(body);
    });
    if (bad != nullptr) return failure(std::string("a control message ") + bad);
    return numbered ? status{} : failure("a control message without its requests");
}

}  // namespace mpix
