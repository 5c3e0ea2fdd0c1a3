// SPDX-License-Identifier: BSD-3-Clause
//
// A send and a receive with an inline buffer, for tests of how packets are stored, looked at and taken out.
#ifndef MPIX_TESTS_UNIT_PACKET_PAIR_HPP
#define MPIX_TESTS_UNIT_PACKET_PAIR_HPP

#include <mpix/device.cuh>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

// A send and the receive it is matched with, as kernels see them.
class pair_of_requests {
public:
    pair_of_requests(int senders, int receivers, std::uint64_t partition_bytes, unsigned skew_out, unsigned skew_in)
        : bytes(static_cast<std::uint64_t>(senders) * partition_bytes),
          out_(bytes + 16),
          in_(bytes + 48),
          arrival_(words_before_packets(senders) +
                   2 * static_cast<std::size_t>(senders) * mpix::detail::packets_of(partition_bytes) + 32),
          told(static_cast<std::size_t>(senders)) {
        send = make(MPIX_KIND_SEND, senders, send_memory_);
        receive = make(MPIX_KIND_RECV, receivers, receive_memory_);
        send->partition_bytes = partition_bytes;
        receive->partition_bytes = bytes / static_cast<std::uint64_t>(receivers);
        send->buffer = out_.data() + skew_out;
        receive->buffer = in_.data() + 16 + skew_in;
        auto at = reinterpret_cast<std::uintptr_t>(arrival_.data());
        receive->flags = reinterpret_cast<std::uint64_t *>((at + 127) / 128 * 128);
        receive->taken = mpix::detail::taken_of(receive->flags, static_cast<std::uint64_t>(senders));
        receive->inline_buffer = send->inline_buffer =
            reinterpret_cast<char *>(receive->flags + words_before_packets(senders));
        receive->told = told.data();
        receive->peer_partitions = static_cast<std::uint64_t>(senders);
    }

    // Fresh bytes out, poison in.
    void begin(std::uint64_t epoch, std::mt19937_64 &random) {
        for (char &c : out_) c = static_cast<char>(random());
        std::memset(in_.data(), 0x5a, in_.size());
        send->open_word = 2 * epoch + 1, receive->seen_epoch = epoch;
        send->ready_count = (epoch - 1) * static_cast<std::uint64_t>(send->partitions);
    }
    bool right() const {
        if (std::memcmp(send->buffer, receive->buffer, bytes) != 0) return false;
        const char *const end = receive->buffer + bytes;
        for (const char *c = in_.data(); c < receive->buffer; ++c)
            if (*c != 0x5a) return false;
        for (const char *c = end; c < in_.data() + in_.size(); ++c)
            if (*c != 0x5a) return false;
        return true;
    }

    bool untouched() const {
        return std::all_of(in_.begin(), in_.end(), [](char c) { return c == 0x5a; });
    }

    const std::uint64_t bytes;
    mpix_prequest *send = nullptr, *receive = nullptr;

private:
    // Flags, claims and RTS words; packets begin with a line of memory.
    static std::size_t words_before_packets(int senders) {
        return (4 * static_cast<std::size_t>(senders) + 17) / 16 * 16;
    }
    static mpix_prequest *make(mpix_kind kind, int partitions, std::vector<std::uint64_t> &memory) {
        memory.assign(mpix_prequest_size(kind, partitions) / 8 + 16, 0);
        auto *const r =
            reinterpret_cast<mpix_prequest *>((reinterpret_cast<std::uintptr_t>(memory.data()) + 127) / 128 * 128);
        r->head = MPIX_ABI_VERSION | std::uint64_t{kind} << 32;
        r->partitions = partitions;
        r->contributors = 1;
        return r;
    }
    std::vector<std::uint64_t> send_memory_, receive_memory_;
    std::vector<char> out_, in_;
    std::vector<std::uint64_t> arrival_;

public:
    std::vector<std::uint64_t> told;
};

#endif  // MPIX_TESTS_UNIT_PACKET_PAIR_HPP
