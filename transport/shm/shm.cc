// SPDX-License-Identifier: BSD-3-Clause
//
// Node memory. A process's regions are parts of *chunks*, each a mapping of a part of an anonymous memory file; a peer
// opens the file by way of /proc/<pid>/fd, so nothing has a name that could be left behind by a crash, and whether two
// processes are on one node is decided by whether that works (a random number in the chunk's head proves
// that it is the right one), not by host names.
//
// The file is sparse and much larger than needed, so that one file, and one descriptor, is enough.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
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
constexpr std::uint64_t file_bytes = 1ull << 40;    // of a memory file, most of it never used
constexpr std::uint64_t page = 4096;                // of which addresses on the wire count

std::uint64_t round_up(std::uint64_t n, std::uint64_t unit) { return (n + unit - 1) / unit * unit; }

// What offsets in a file are multiples of: the system's pages may be larger than 4096 bytes.
std::uint64_t system_page() {
    static const std::uint64_t bytes = std::max(page, static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
    return bytes;
}

struct chunk_head {
    std::uint64_t nonce[2];
    std::uint64_t bytes;
};

struct wire_address {
    std::int64_t pid;
    std::int32_t fd;
    std::uint32_t first_page;  // of the chunk in the file
    std::uint64_t nonce[2];
    std::uint64_t chunk_bytes;
    std::uint64_t offset;
};
static_assert(sizeof(wire_address) <= sizeof(wire_region::address));

status failed_call(const char *what) { return failure(std::string(what) + ": " + std::strerror(errno)); }

// One memory file of ours, and the free pages in it, which read as zero.
struct memory_file {
    int fd = -1;
    free_ranges free;

    memory_file() = default;
    memory_file(const memory_file &) = delete;
    memory_file &operator=(const memory_file &) = delete;
    ~memory_file() {
        if (fd >= 0) close(fd);
    }

    status make(std::uint64_t least) {
        std::uint64_t size = std::max(least, file_bytes);
        rlimit limit{};  // exceeding it raises SIGXFSZ
        if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size) size = least;
        fd = memfd_create("mpix", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0) return failed_call("memfd_create");
        if (ftruncate(fd, static_cast<off_t>(size)) != 0) return failed_call("no shared memory: ftruncate");
        // A peer that has mapped it counts on its size.
        if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return failed_call("F_ADD_SEALS");
        free.give(0, size);
        return {};
    }

    // Return the memory of unused pages to the system.
    void give_back(std::uint64_t first, std::uint64_t bytes) {
        if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
                      static_cast<off_t>(bytes)) == 0)
            free.give(first, bytes);
    }
};

// One mapping of ours, and the free ranges in it.
struct chunk {
    memory_file *file = nullptr;
    std::uint64_t first = 0;  // in the file
    char *base = nullptr;
    std::uint64_t bytes = 0;
    free_ranges free;

    chunk() = default;
    chunk(const chunk &) = delete;
    chunk &operator=(const chunk &) = delete;
    ~chunk() {
        if (base != nullptr) munmap(base, bytes);
        if (file != nullptr) file->give_back(first, bytes);
    }

    status make(memory_file &from, std::uint64_t at, std::uint64_t size) {
        file = &from;
        first = at;
        bytes = size;
        void *mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, from.fd, static_cast<off_t>(at));
        if (mapped == MAP_FAILED) return failed_call("no shared memory: mmap");
        base = static_cast<char *>(mapped);
        chunk_head head{};
        if (getrandom(head.nonce, sizeof head.nonce, 0) != sizeof head.nonce) return failed_call("getrandom");
        head.bytes = size;
        std::memcpy(base, &head, sizeof head);
        const std::uint64_t begin = round_up(sizeof head, alignment);
        free.give(begin, size - begin);
        return {};
    }
};

// A peer's chunk, mapped once however many regions of it are attached.
struct mapping {
    char *base = nullptr;
    std::uint64_t bytes = 0;
    unsigned users = 0;  // counted of those that are unmapped after the last
};

struct chunk_name {
    std::int64_t pid;
    std::int32_t fd;
    std::uint32_t first_page;
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

    status allocate(std::uint64_t bytes, int, region &out) override {
        if (bytes > region_limit)
            return failure("a message of " + std::to_string(bytes) + " bytes is beyond shared memory");
        const std::uint64_t length = round_up(bytes == 0 ? 1 : bytes, alignment);
        const std::lock_guard lock(mutex_);
        if (length < large_region)
            for (auto &c : chunks_)
                if (std::uint64_t offset; c->bytes == shared_chunk && c->free.take(length, offset))
                    return hand_out(*c, offset, bytes, out);
        auto made = std::make_unique<chunk>();
        std::uint64_t size = length < large_region ? shared_chunk : round_up(length + alignment, system_page());
        if (length >= large_region && size == shared_chunk)
            size += system_page();  // the size tells the two kinds apart
        std::uint64_t first = 0;
        memory_file *file = nullptr;
        if (status bad = take_pages(size, file, first); !bad.ok()) return bad;
        if (status bad = made->make(*file, first, size); !bad.ok()) return bad;
        chunks_.push_back(std::move(made));
        std::uint64_t offset = 0;
        chunks_.back()->free.take(length, offset);
        return hand_out(*chunks_.back(), offset, bytes, out);
    }

    status adopt(void *, std::uint64_t, region &) override {
        return failure("shared memory cannot adopt a private buffer");
    }

    void release(region &own) override {
        if (chunk *const c = chunk_of(own); c != nullptr) {
            const std::lock_guard lock(mutex_);
            if (c->bytes != shared_chunk)
                std::erase_if(chunks_, [c](const auto &one) { return one.get() == c; });
            else
                c->free.give(static_cast<std::uint64_t>(static_cast<char *>(own.address) - c->base),
                             round_up(own.bytes == 0 ? 1 : own.bytes, alignment));
        }
        own = {};
    }

    // Without a lock: a chunk stays while it has a region.
    status describe(const region &own, wire_region &out) override {
        const chunk *const c = chunk_of(own);
        if (c == nullptr) return failure("not a region of this process");
        wire_address address{};
        address.pid = pid_;
        address.fd = c->file->fd;
        address.first_page = static_cast<std::uint32_t>(c->first / page);
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

    status attach(const wire_region &wire, int, region &out) override {
        wire_address address;
        std::memcpy(&address, wire.address, sizeof address);
        if (address.pid <= 0 || address.fd < 0 || address.chunk_bytes > region_limit || wire.bytes > region_limit ||
            address.chunk_bytes < alignment || address.offset < alignment || address.offset % alignment != 0 ||
            address.offset > address.chunk_bytes || wire.bytes > address.chunk_bytes - address.offset)
            return failure("malformed description of a shared memory region");
        const chunk_name key{address.pid, address.fd, address.first_page, {address.nonce[0], address.nonce[1]}};
        const std::lock_guard lock(mutex_);
        mapping &m = mappings_[key];
        if (m.base == nullptr) {
            if (status bad = map(address, m); !bad.ok()) {
                mappings_.erase(key);
                return bad;
            }
        }
        if (m.bytes != address.chunk_bytes) return failure("inconsistent descriptions of a shared memory region");
        if (m.bytes != shared_chunk) ++m.users;
        out = {};
        out.address = m.base + address.offset;
        out.bytes = wire.bytes;
        out.backing = m.base;
        out.backing_bytes = m.bytes;
        out.lasting = m.bytes == shared_chunk;
        return {};
    }

    void detach(region &peers) override {
        // Chunks that many regions share stay mapped, as they do in their owner.
        if (!peers.lasting) unmap(peers);
        peers = {};
    }

    status acquire_view(const region &, int, void *&) override { return failure("shared memory has no devices"); }
    void release_view(const region &) override {}

    status write(void *to, const void *from, std::uint64_t bytes, int) override {
        std::memcpy(to, from, bytes);
        return {};
    }
    status read(void *to, const void *from, std::uint64_t bytes, int) override {
        std::memcpy(to, from, bytes);
        return {};
    }

    status start(void *to, const void *from, std::uint64_t bytes, int, std::unique_ptr<transfer> &out) override {
        struct done final : transfer {
            bool finished(status &) override { return true; }
        };
        std::memcpy(to, from, bytes);
        out = std::make_unique<done>();
        return {};
    }

private:
    // Of a region of ours; a peer's has none.
    static chunk *chunk_of(const region &own) { return reinterpret_cast<chunk *>(own.handle); }

    void unmap(const region &peers) {
        const std::lock_guard lock(mutex_);
        for (auto it = mappings_.begin(); it != mappings_.end(); ++it) {
            if (it->second.base != peers.backing) continue;
            if (--it->second.users == 0) {
                munmap(it->second.base, it->second.bytes);
                mappings_.erase(it);
            }
            break;
        }
    }

    status take_pages(std::uint64_t bytes, memory_file *&file, std::uint64_t &first) {
        for (const auto &f : files_)
            if (f->free.take(bytes, first)) {
                file = f.get();
                return {};
            }
        auto made = std::make_unique<memory_file>();
        if (status bad = made->make(bytes); !bad.ok()) return bad;
        made->free.take(bytes, first);
        files_.push_back(std::move(made));
        file = files_.back().get();
        return {};
    }

    static status hand_out(chunk &c, std::uint64_t offset, std::uint64_t bytes, region &out) {
        out = {};
        out.address = c.base + offset;
        out.bytes = bytes;
        out.backing = c.base;
        out.backing_bytes = c.bytes;
        out.lasting = c.bytes == shared_chunk;
        out.handle = reinterpret_cast<std::uintptr_t>(&c);
        // A chunk of its own is fresh from the system, and zero.
        if (c.bytes == shared_chunk) std::memset(out.address, 0, bytes);
        return {};
    }

    static bool is_head_of(const void *at, const wire_address &address) {
        chunk_head head;
        std::memcpy(&head, at, sizeof head);
        return std::memcmp(head.nonce, address.nonce, sizeof head.nonce) == 0 && head.bytes == address.chunk_bytes;
    }

    static status map(const wire_address &address, mapping &m) {
        char path[64];
        std::snprintf(path, sizeof path, "/proc/%lld/fd/%d", static_cast<long long>(address.pid), address.fd);
        const int fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0) return failed_call("cannot map the peer's memory: open");
        struct stat status;
        bool right = true;
        void *at = MAP_FAILED;
        // Anything may be behind that number in another process: only a memory file that is large enough, and stays so,
        // with the right number in the chunk's head, is the one.
        const int seals = fcntl(fd, F_GET_SEALS);
        const std::uint64_t first = address.first_page * page;
        if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
            static_cast<std::uint64_t>(status.st_size) < first + address.chunk_bytes)
            right = false;
        else if ((at = mmap(nullptr, address.chunk_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                            static_cast<off_t>(first))) != MAP_FAILED &&
                 !is_head_of(at, address)) {
            munmap(at, address.chunk_bytes);
            right = false;
        }
        const int error = errno;
        close(fd);
        if (!right) return failure("the peer's memory file is not the one that it described");
        errno = error;
        if (at == MAP_FAILED) return failed_call("cannot map the peer's memory: mmap");
        m.base = static_cast<char *>(at);
        m.bytes = address.chunk_bytes;
        return {};
    }

    const std::int64_t pid_ = getpid();  // asked once: it is a system call, and descriptions are made for each request
    std::mutex mutex_;
    std::vector<std::unique_ptr<memory_file>> files_;  // more than one where the system allows small ones only
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
