// SPDX-License-Identifier: BSD-3-Clause
//
// Node memory. A process's regions are parts of *chunks*, anonymous memory files; a peer opens a chunk by
// way of /proc/<pid>/fd, so nothing has a name that could be left behind by a crash, and whether two
// processes are on one node is decided by whether that works (a random number in the chunk's head proves
// that it is the right one), not by host names.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/backends.h"
#include "transport/free_ranges.h"
#include "transport/transport.h"

namespace mpix::transport {
namespace {

constexpr std::uint64_t alignment = 128;            // no two regions share a cache line or its neighbour
constexpr std::uint64_t shared_chunk = 4u << 20;    // what small regions are cut from
constexpr std::uint64_t large_region = 1u << 20;    // from here on a region has a chunk of its own
constexpr std::uint64_t region_limit = 1ull << 46;  // what one mapping may ask of the address space

std::uint64_t round_up(std::uint64_t n, std::uint64_t unit) { return (n + unit - 1) / unit * unit; }

struct chunk_head {
    std::uint64_t nonce[2];
};

struct wire_address {
    std::int64_t pid;
    std::int32_t fd;
    std::int32_t reserved;
    std::uint64_t nonce[2];
    std::uint64_t chunk_bytes;
    std::uint64_t offset;
};
static_assert(sizeof(wire_address) <= sizeof(wire_region::address));

std::string system_error(const char *what) { return std::string(what) + ": " + std::strerror(errno); }

// One memory file of ours, and the free ranges in it.
struct chunk {
    int fd = -1;
    char *base = nullptr;
    std::uint64_t bytes = 0;
    free_ranges free;

    chunk() = default;
    chunk(const chunk &) = delete;
    chunk &operator=(const chunk &) = delete;
    ~chunk() {
        if (base != nullptr) munmap(base, bytes);
        if (fd >= 0) close(fd);
    }

    outcome make(std::uint64_t size) {
        fd = memfd_create("mpix", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0) return system_error("memfd_create");
        if (ftruncate(fd, static_cast<off_t>(size)) != 0) return system_error("no shared memory: ftruncate");
        // A peer that has mapped it counts on its size.
        if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return system_error("F_ADD_SEALS");
        void *at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED) return system_error("no shared memory: mmap");
        base = static_cast<char *>(at);
        bytes = size;
        chunk_head head{};
        if (getrandom(head.nonce, sizeof head.nonce, 0) != sizeof head.nonce) return system_error("getrandom");
        std::memcpy(base, &head, sizeof head);
        const std::uint64_t first = round_up(sizeof head, alignment);
        free.give(first, size - first);
        return {};
    }
};

// A peer's chunk, mapped once however many regions of it are attached.
struct mapping {
    char *base = nullptr;
    std::uint64_t bytes = 0;
    unsigned users = 0;
};

struct chunk_name {
    std::int64_t pid;
    std::int32_t fd;
    std::uint64_t nonce[2];
    auto operator<=>(const chunk_name &) const = default;
};

class shm final : public transport {
public:
    const char *name() const override { return "shm"; }
    transport_id id() const override { return id_shm; }
    unsigned capabilities() const override { return host_store; }
    bool usable() override { return true; }
    bool owns(const void *, int &) override { return false; }

    outcome allocate(std::uint64_t bytes, int, region &out) override {
        if (bytes > region_limit) return "a message of " + std::to_string(bytes) + " bytes is beyond shared memory";
        const std::uint64_t length = round_up(bytes == 0 ? 1 : bytes, alignment);
        const std::lock_guard lock(mutex_);
        if (length < large_region)
            for (auto &c : chunks_)
                if (std::uint64_t offset; c->free.take(length, offset)) return hand_out(*c, offset, bytes, out);
        auto made = std::make_unique<chunk>();
        std::uint64_t size = length < large_region ? shared_chunk : round_up(length + alignment, 4096);
        if (length >= large_region && size == shared_chunk) size += 4096;  // the size tells the two kinds apart
        if (outcome problem = made->make(size); !problem.empty()) return problem;
        chunks_.push_back(std::move(made));
        std::uint64_t offset = 0;
        chunks_.back()->free.take(length, offset);
        return hand_out(*chunks_.back(), offset, bytes, out);
    }

    outcome adopt(void *, std::uint64_t, region &) override { return "shared memory cannot adopt a private buffer"; }

    void release(region &own) override {
        const std::lock_guard lock(mutex_);
        for (auto it = chunks_.begin(); it != chunks_.end(); ++it) {
            chunk &c = **it;
            if (c.base != own.backing) continue;
            if (c.bytes != shared_chunk)
                chunks_.erase(it);
            else
                c.free.give(static_cast<std::uint64_t>(static_cast<char *>(own.address) - c.base),
                            round_up(own.bytes == 0 ? 1 : own.bytes, alignment));
            break;
        }
        own = {};
    }

    outcome describe(const region &own, wire_region &out) override {
        const std::lock_guard lock(mutex_);
        for (const auto &c : chunks_) {
            if (c->base != own.backing) continue;
            wire_address address{};
            address.pid = pid_;
            address.fd = c->fd;
            std::memcpy(address.nonce, c->base, sizeof address.nonce);
            address.chunk_bytes = c->bytes;
            address.offset = static_cast<std::uint64_t>(static_cast<char *>(own.address) - c->base);
            out = {};
            out.transport = id_shm;
            out.device = on_host;
            out.bytes = own.bytes;
            std::memcpy(out.address, &address, sizeof address);
            return {};
        }
        return "not a region of this process";
    }

    outcome attach(const wire_region &wire, int, region &out) override {
        wire_address address;
        std::memcpy(&address, wire.address, sizeof address);
        if (address.pid <= 0 || address.fd < 0 || address.chunk_bytes > region_limit || wire.bytes > region_limit ||
            address.chunk_bytes < alignment || address.offset < alignment || address.offset % alignment != 0 ||
            address.offset > address.chunk_bytes || wire.bytes > address.chunk_bytes - address.offset)
            return "malformed description of a shared memory region";
        const chunk_name key{address.pid, address.fd, {address.nonce[0], address.nonce[1]}};
        const std::lock_guard lock(mutex_);
        mapping &m = mappings_[key];
        if (m.base == nullptr) {
            if (outcome problem = map(address, m); !problem.empty()) {
                mappings_.erase(key);
                return problem;
            }
        }
        if (m.bytes != address.chunk_bytes) return "inconsistent descriptions of a shared memory region";
        ++m.users;
        out = {};
        out.address = m.base + address.offset;
        out.bytes = wire.bytes;
        out.backing = m.base;
        out.backing_bytes = m.bytes;
        out.lasting = m.bytes == shared_chunk;
        return {};
    }

    void detach(region &peers) override {
        const std::lock_guard lock(mutex_);
        for (auto it = mappings_.begin(); it != mappings_.end(); ++it) {
            if (it->second.base != peers.backing) continue;
            // Chunks that many regions share stay mapped, as they do in their owner.
            if (--it->second.users == 0 && it->second.bytes != shared_chunk) {
                munmap(it->second.base, it->second.bytes);
                mappings_.erase(it);
            }
            break;
        }
        peers = {};
    }

    outcome acquire_view(const region &, int, void *&) override { return "shared memory has no devices"; }
    void release_view(const region &) override {}

    outcome write(void *to, const void *from, std::uint64_t bytes, int) override {
        std::memcpy(to, from, bytes);
        return {};
    }
    outcome read(void *to, const void *from, std::uint64_t bytes, int) override {
        std::memcpy(to, from, bytes);
        return {};
    }

    outcome start(void *to, const void *from, std::uint64_t bytes, int, std::unique_ptr<transfer> &out) override {
        struct done final : transfer {
            bool finished(outcome &) override { return true; }
        };
        std::memcpy(to, from, bytes);
        out = std::make_unique<done>();
        return {};
    }

private:
    static outcome hand_out(chunk &c, std::uint64_t offset, std::uint64_t bytes, region &out) {
        out = {};
        out.address = c.base + offset;
        out.bytes = bytes;
        out.backing = c.base;
        out.backing_bytes = c.bytes;
        out.lasting = c.bytes == shared_chunk;
        // A chunk of its own is fresh from the system, and zero.
        if (c.bytes == shared_chunk) std::memset(out.address, 0, bytes);
        return {};
    }

    static outcome map(const wire_address &address, mapping &m) {
        const std::string path = "/proc/" + std::to_string(address.pid) + "/fd/" + std::to_string(address.fd);
        const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
        if (fd < 0) return system_error("cannot map the peer's memory: open");
        struct stat status;
        outcome problem;
        void *at = MAP_FAILED;
        // Anything may be behind that number in another process: only a memory file of the right size, which it keeps,
        // with the right number in its head, is the chunk.
        const int seals = fcntl(fd, F_GET_SEALS);
        if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
            static_cast<std::uint64_t>(status.st_size) != address.chunk_bytes)
            problem = "the peer's memory is not where it says";
        else if ((at = mmap(nullptr, address.chunk_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED)
            problem = system_error("cannot map the peer's memory: mmap");
        else if (std::memcmp(at, address.nonce, sizeof address.nonce) != 0) {
            munmap(at, address.chunk_bytes);
            problem = "the peer's memory is not where it says";
        }
        close(fd);
        if (!problem.empty()) return problem;
        m.base = static_cast<char *>(at);
        m.bytes = address.chunk_bytes;
        return {};
    }

    const std::int64_t pid_ = getpid();  // asked once: it is a system call, and descriptions are made for each request
    std::mutex mutex_;
    std::vector<std::unique_ptr<chunk>> chunks_;
    std::map<chunk_name, mapping> mappings_;
};

}  // namespace

transport &shm_transport() {
    // Never destroyed: requests may be freed as late as MPI_Finalize in an atexit handler.
    static shm *const instance = new shm;
    return *instance;
}

}  // namespace mpix::transport
