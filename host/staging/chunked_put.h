// SPDX-License-Identifier: BSD-3-Clause
//
// A partition of a send on its way over a network, chunk by chunk, with the flag of each behind it. GPU memory that the
// network does not read itself goes through bounce buffers: while one chunk is read from the GPU the ones before are on
// the network.
#ifndef MPIX_HOST_STAGING_CHUNKED_PUT_H
#define MPIX_HOST_STAGING_CHUNKED_PUT_H

#include <memory>
#include <vector>

#include "host/staging/bounce_buffers.h"
#include "host/staging/chunks.h"
#include "host/staging/gpu_buffer.h"
#include "transport/reserve.h"
#include "transport/select.h"

namespace mpix {

// Where a send's message goes in one epoch.
struct remote_message {
    transport::network *wire = nullptr;
    transport::gpu_puts *reads_gpu = nullptr;  // by this it reads GPU memory, where the payload is; else null
    int peer = 0;
    transport::region landing, flags;
    std::uint64_t offset = 0;  // of the message in the landing
    std::uint64_t epoch = 0;
    chunking chunks;
};

// Driven by calls of finished(), from one thread at a time.
class chunked_put final : public transport::transfer {
public:
    // From memory that the network reads, and that stays as it is until this has finished: the partition's packed
    // bytes.
    chunked_put(const remote_message &to, std::uint64_t partition, const char *from);
    // From such memory of its own, on the host.
    chunked_put(const remote_message &to, std::uint64_t partition, std::vector<char> packed);
    chunked_put(const remote_message &to, std::uint64_t partition, const gpu_buffer &from, bounce_buffers &through);
    ~chunked_put() override;

    bool finished(status &bad) override;
    bool in_order() const override;

private:
    struct piece {
        std::uint64_t chunk = 0;
        locked_memory bounce;
        std::unique_ptr<transport::transfer> reading, putting;
        bool read = false;  // and not put yet
    };

    void put(std::uint64_t chunk, const char *from, std::unique_ptr<transport::transfer> &out);
    void start();
    bool advance(piece &p);
    void fail(const status &why);

    const remote_message to_;
    const std::uint64_t end_;  // behind the last chunk
    std::uint64_t next_;
    std::vector<char> packed_;
    const char *from_ = nullptr;  // of the partition's first byte; null: the GPU's
    gpu_buffer gpu_;
    bounce_buffers *through_ = nullptr;
    transport::safe_deque<piece> under_way_;
    status failure_;
};

}  // namespace mpix

#endif  // MPIX_HOST_STAGING_CHUNKED_PUT_H
