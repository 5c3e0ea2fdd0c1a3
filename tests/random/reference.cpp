// SPDX-License-Identifier: BSD-3-Clause
#include "tests/random/reference.hpp"

namespace random_test {
namespace {

std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

enum class purpose : std::uint64_t { poison, data, own_message };

// Bytes that follow from what they are for.
class bytes_for {
public:
    bytes_for(const program &p, purpose what, int which, int epoch)
        : key_(mix(mix(mix(p.seed + static_cast<std::uint64_t>(what)) + static_cast<std::uint64_t>(which)) +
                   static_cast<std::uint64_t>(epoch))) {}
    unsigned char operator[](std::size_t position) const {
        return static_cast<unsigned char>(mix(key_ + (position >> 3)) >> (8 * (position & 7)));
    }
    memory all(std::size_t bytes) const {
        memory out(bytes);
        for (std::size_t n = 0; n < bytes; n += 8) {
            const std::uint64_t word = mix(key_ + (n >> 3));
            for (std::size_t k = 0; k < 8 && n + k < bytes; ++k)
                out[n + k] = static_cast<unsigned char>(word >> (8 * k));
        }
        return out;
    }

private:
    std::uint64_t key_;
};

}  // namespace

std::size_t position(const program &p, int request, std::int64_t b) {
    const datatype &type = p.type_of(request);
    if (type.dense) return static_cast<std::size_t>(p.end_of(request).origin + b);
    return static_cast<std::size_t>(p.end_of(request).origin + b / type.size() * type.extent +
                                    type.made.map[static_cast<std::size_t>(b % type.size())]);
}

memory before(const program &p, int request, int epoch) {
    return bytes_for(p, purpose::poison, request, epoch).all(static_cast<std::size_t>(p.end_of(request).room));
}

memory message_of(const program &p, int pair, int epoch) {
    const int send = 2 * pair;
    const bytes_for data(p, purpose::data, pair, epoch);
    memory out(static_cast<std::size_t>(p.bytes(send)));
    // By the place in the sender's memory: bytes may be in the message more than once.
    for (std::size_t b = 0; b < out.size(); ++b) out[b] = data[position(p, send, static_cast<std::int64_t>(b))];
    return out;
}

memory after(const program &p, int request, int epoch, int started) {
    memory out = before(p, request, started);
    const pair &with = p.pairs[program::at(pair_of(request))];
    if (!is_send(request) && (with.truncated || with.null_peer)) return out;
    const memory message = message_of(p, pair_of(request), epoch);
    for (std::size_t b = 0; b < message.size(); ++b)
        out[position(p, request, static_cast<std::int64_t>(b))] = message[b];
    return out;
}
memory after(const program &p, int request, int epoch) { return after(p, request, epoch, epoch); }

memory contents(const program &p, int message) {
    // It begins with its number, for receives with wildcards.
    const auto bytes = static_cast<std::size_t>(p.messages[program::at(message)].bytes);
    memory out = bytes_for(p, purpose::own_message, message, 0).all(bytes);
    for (std::size_t n = 0; n < 4; ++n) out[n] = static_cast<unsigned char>(message >> (8 * n));
    return out;
}

expected_status status_of(const program &p, int request) {
    const pair &with = p.pairs[program::at(pair_of(request))];
    expected_status out;
    if (is_send(request)) {
        out.known = false;
    } else if (with.null_peer) {
        out.source = MPI_PROC_NULL;
    } else {
        out.source = p.comms[program::at(with.comm)].rank_of(with.ends[0].rank, with.ends[1].rank);
        out.tag = with.tag;
        out.bytes = p.bytes(request);
        out.bytes_known = !with.truncated;
        out.error = with.truncated ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    }
    return out;
}

expected_status empty_status() { return {}; }

}  // namespace random_test
