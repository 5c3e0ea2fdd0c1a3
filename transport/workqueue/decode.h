// SPDX-License-Identifier: BSD-3-Clause
//
// What a NIC makes of one work-queue entry. The entry may hold any bytes.
#ifndef MPIX_TRANSPORT_WORKQUEUE_DECODE_H
#define MPIX_TRANSPORT_WORKQUEUE_DECODE_H

#include <mpix/detail/work_queue.h>

#include <cstdint>

namespace mpix::transport {

struct decoded_wqe {
    detail::syndrome problem = detail::syndrome_none;
    bool torn = false;  // parts of it were not there yet when it was fetched
    std::uint8_t opcode = 0;
    bool signalled = false;
    bool is_inline = false;
    std::uint64_t bytes = 0;
    std::uint64_t remote_address = 0, local_address = 0;
    std::uint32_t remote_key = 0, local_key = 0;
    unsigned char inlined[detail::wqe_inline_bytes] = {};
};

/** `index` and `qpn` are the NIC's own. With a problem only opcode, signalled and torn mean anything. */
decoded_wqe decode(const detail::wqe &entry, std::uint64_t index, std::uint32_t qpn);

/** What consumed slots are filled with where torn entries are looked for: no valid entry has 16 such bytes in a row. */
constexpr int poison_byte = 0xff;

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_WORKQUEUE_DECODE_H
