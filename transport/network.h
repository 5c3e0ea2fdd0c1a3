// SPDX-License-Identifier: BSD-3-Clause
//
// What the host runtime asks of a transport between nodes. Peers are called by numbers of the caller's choosing. A
// peer's memory is not mapped: bytes are *put* there, and appear in it while its process makes progress.
//
// Order: what is put to a peer's words and flags by put_word appears after all bytes that were put to that peer before.
// Of two values of one word the second stays; different words may come in any order.
//
// Errors: as in transport.h. What fails after the call has returned is the peer's end: lost() says so from then on.
// Thread safety: every function may be called from any thread. None waits for a peer, as far
// as the network keeps its word (docs/limitations.md, "Between nodes").
#ifndef MPIX_TRANSPORT_NETWORK_H
#define MPIX_TRANSPORT_NETWORK_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/gpu_puts.h"
#include "transport/send_queue.h"
#include "transport/transport.h"

namespace mpix::transport {

struct network {
    virtual ~network() = default;
    virtual const char *name() const = 0;
    virtual transport_id id() const = 0;

    // Whether it can be used in this process. Makes on the first call what it takes; `why_not` if it failed.
    virtual bool usable(status &why_not) = 0;
    // The device by which it goes, for the user; empty if that cannot be said. Behind usable().
    virtual std::string device() { return {}; }
    // How that peer reaches this process: bytes for its meet().
    virtual status introduce(int peer, std::vector<std::uint8_t> &address) = 0;
    virtual status meet(int peer, std::vector<std::uint8_t> address) = 0;

    // A region in host memory of ours, to the wire: peers may put there from now on, until it is forgotten. Forget it
    // before its memory is given up; one that was never described does no harm.
    virtual status describe(const region &own, wire_region &out) = 0;
    virtual void forget(const region &own) = 0;
    // A region of a peer that has introduced itself. What can be checked of `wire` is.
    virtual status attach(const wire_region &wire, int peer, region &out) = 0;
    virtual void detach(region &peers) = 0;

    // Start putting; when the transfer has finished `from` may change.
    virtual status put(const region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
                       std::unique_ptr<transfer> &out) = 0;
    virtual status put_word(const region &to, std::uint64_t offset, std::uint64_t value) = 0;
    // The same for a word that nobody needs soon. It is delayed: it goes with what is put to that peer next, or at some
    // later call of progress(), unless `most_replaced` later values of it have replaced it meanwhile.
    virtual status put_word_delayed(const region &to, std::uint64_t offset, std::uint64_t value,
                                    std::uint64_t /*most_replaced*/) {
        return put_word(to, offset, value);
    }
    // Whether there are such words, so that somebody has to call progress().
    virtual bool has_delayed_words() const { return false; }
    // The largest put into host memory that goes to this peer as a message; 0: none. For MPIX_EXPLAIN.
    virtual std::uint64_t eager_limit(int /*peer*/) { return 0; }
    // Between the two, small puts and words may wait for each other, to go together; see held_puts. Calls nest.
    virtual void hold() {}
    virtual void release() {}
    // Finished once all that was put to the peer so far is there, or never will be. Null if it is so already.
    virtual std::unique_ptr<transfer> flush(int peer) = 0;
    // The same once it needs no call into this process any more to get there.
    virtual std::unique_ptr<transfer> depart(int peer) { return flush(peer); }

    // By what it reaches the memory of GPUs itself; null, with a failure in `why_not`, if it does not. Behind usable().
    virtual gpu_puts *gpu_memory(status &why_not) {
        why_not = failure(std::string(name()) + " is not asked for GPU memory");
        return nullptr;
    }

    // Why no queue of this network's is executed by its hardware, or empty. Behind usable().
    virtual status no_hardware_queues() {
        return failure(std::string(name()) + " executes no queue that others post to");
    }
    // One to the peer, for the kernels of `device`, by `gpus`, or (null) for host threads.
    virtual status hardware_queue(int /*peer*/, transport & /*host_memory*/, transport * /*gpus*/, int /*device*/,
                                  std::unique_ptr<send_queue> & /*out*/) {
        return no_hardware_queues();
    }

    // Why nothing reaches the peer any more, or empty.
    virtual status lost(int peer) = 0;
    // It has ended: what is under way to it fails at once, and reads no memory of ours any more.
    virtual void give_up(int peer) = 0;
    // True if anything has come or gone: there may be more soon.
    virtual bool progress() = 0;
    // The end: nobody puts anything to anybody any more.
    virtual void stop() = 0;
};

// While it lives, what is put over `wire` (null: none) may wait; it goes at the end.
class held_puts {
public:
    explicit held_puts(network *wire) : wire_(wire) {
        if (wire_ != nullptr) wire_->hold();
    }
    ~held_puts() {
        if (wire_ != nullptr) wire_->release();
    }
    held_puts(const held_puts &) = delete;
    held_puts &operator=(const held_puts &) = delete;

private:
    network *const wire_;
};

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_NETWORK_H
