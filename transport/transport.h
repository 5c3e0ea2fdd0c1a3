// SPDX-License-Identifier: BSD-3-Clause
//
// What the host runtime asks of a transport. A transport deals in *regions* (memory that a peer process
// can be given access to) and *transfers* (copies that the progress engine has it make). It knows nothing
// of requests, epochs or MPI.
//
// Errors: a function that can fail returns a `status`; its message is one sentence for the user.
// Thread safety: every function may be called from any thread.
//
// Waiting: a kernel may be spinning for data that only the caller's next step will bring, or another thread's: a
// CUDA call that waits for kernels keeps others of the process from starting copies. So nothing here waits for
// kernels, with the exceptions that say so.
#ifndef MPIX_TRANSPORT_TRANSPORT_H
#define MPIX_TRANSPORT_TRANSPORT_H

#include <cstdint>
#include <memory>
#include <string>

#include "transport/status.h"

namespace mpix::transport {

// What a transport can do, and so which paths may use it.
enum capability : unsigned {
    host_store = 1u << 0,    // CPUs store to, and load from, a peer's region
    device_store = 1u << 1,  // kernels store to a peer's region
    adopt_buffer = 1u << 2,  // the user's own buffer can be made a region: data lands where it is wanted
};

constexpr int on_host = -1;  // the "device" of host memory

// How one process tells another of a region, in a fixed number of bytes. The receiving side trusts
// nothing in it: attach checks it and may refuse.
struct wire_region {
    std::uint32_t transport;  // transport_id
    std::int32_t device;      // the owner's ordinal, or on_host
    std::uint64_t bytes;
    std::uint8_t address[176];  // the transport's own
};
static_assert(sizeof(wire_region) == 192);

enum transport_id : std::uint32_t { id_none = 0, id_shm = 1, id_cuda_ipc = 2, id_ucx = 3, id_verbs = 4 };

// Regions of a network cannot be mapped, only put to.
constexpr bool by_network(std::uint32_t id) { return id == id_ucx || id == id_verbs; }

// Memory beside a peer's region on a GPU that nobody uses, to see how long stores there take.
constexpr std::uint64_t scratch_bytes = 32 * 1024;

// A region in this process, its own or a peer's.
struct region {
    void *address = nullptr;  // host address (on_host), otherwise device address
    std::uint64_t bytes = 0;
    int device = on_host;
    bool lasting = false;     // the mapping stays until the process ends
    bool remote = false;      // a peer's, by way of a network: the address is its own, and nothing is mapped here
    void *backing = nullptr;  // host memory: the mapping that the region is a part of
    std::uint64_t backing_bytes = 0;
    std::uint64_t handle = 0;  // the transport's own
    void *scratch = nullptr;   // scratch_bytes of that, mapped until the process ends; null: there is none

    explicit operator bool() const { return address != nullptr; }
};

// A copy under way.
struct transfer {
    virtual ~transfer() = default;
    // True once the bytes are in place, and visible to whoever learns of it from the caller. `bad` is
    // set if they never will be.
    virtual bool finished(status &bad) = 0;
    // Whether words that are put to the same peer from now on appear after the bytes, although it has not finished.
    virtual bool in_order() const { return false; }
};

struct transport {
    virtual ~transport() = default;
    virtual const char *name() const = 0;
    virtual transport_id id() const = 0;
    virtual unsigned capabilities() const = 0;

    // Whether it can be used in this process at all (a GPU is there). May probe on the first call.
    virtual bool usable() = 0;
    // Whether `address` is memory of this transport's device kind; gives the device.
    virtual bool owns(const void *address, int &device) = 0;
    // Fails if a buffer at such an address certainly goes beyond its memory.
    virtual status check(const void * /*buffer*/, std::uint64_t /*bytes*/) { return {}; }

    // New, zeroed, shareable memory / the user's own memory as a region, if adopt and describe can share it with others.
    virtual status allocate(std::uint64_t bytes, int device, region &out) = 0;
    virtual status adopt(void *buffer, std::uint64_t bytes, region &out) = 0;
    virtual void release(region &own) = 0;

    // To the wire, and from the wire in another (or the same) process. `device` is who will use it. attach may wait for
    // running kernels if the owner has freed memory that was attached, and allocated this in its place.
    virtual status describe(const region &own, wire_region &out) = 0;
    virtual status attach(const wire_region &wire, int device, region &out) = 0;
    // Whether others attach what is described by files that they take out of this process, which may be refused.
    virtual bool gives_files(const wire_region & /*described*/) const { return false; }
    // The mapping itself may stay, for the next region of the same memory, until close_unused.
    virtual void detach(region &peers) = 0;
    // Close the mappings that nothing is attached by. May wait for running kernels.
    virtual void close_unused() {}

    // The address under which kernels on `device` reach a host region. Its backing is page-locked while it
    // has any view, a lasting one from then on; each view is given back once. Giving the last view of a
    // mapping back that is not lasting may wait for running kernels.
    virtual status acquire_view(const region &host, int device, void *&out) = 0;
    virtual void release_view(const region &host) = 0;

    // The device by which a host buffer reaches the peer's device memory: one on which this process has a context, else 0. Any
    // other would get one.
    virtual int device_in_use() { return 0; }

    // Small accesses to own or attached memory; return when done.
    virtual status write(void *to, const void *from, std::uint64_t bytes, int device) = 0;
    virtual status read(void *to, const void *from, std::uint64_t bytes, int device) = 0;
    // Makes what the calls below need on the device: CUDA makes no stream while a kernel runs, and that kernel may wait for
    // one of these calls. While a request is made.
    virtual status prepare(int /*device*/) { return {}; }
    // Stores `value` into `count` consecutive words, in any order, after all words that were posted to the device before.
    // May return before they are stored; flush_words() waits for them.
    virtual status post_words(void *to, std::uint64_t value, std::uint64_t count, int device) {
        status bad;
        for (std::uint64_t k = 0; k < count && bad.ok(); ++k)
            bad = write(static_cast<std::uint64_t *>(to) + k, &value, sizeof value, device);
        return bad;
    }
    virtual status flush_words(int /*device*/) { return {}; }
    // What a network device has written to the device's memory is in order before all words that are posted after this.
    virtual status admit_network(int /*device*/) { return {}; }

    // Start copying; `device` is the one whose engine does it.
    virtual status start(void *to, const void *from, std::uint64_t bytes, int device,
                         std::unique_ptr<transfer> &out) = 0;
    // The same within that device's memory, even while kernels fill the device; slower.
    virtual status start_within(void *to, const void *from, std::uint64_t bytes, int device,
                                std::unique_ptr<transfer> &out) {
        return start(to, from, bytes, device, out);
    }
};

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_TRANSPORT_H
