// SPDX-License-Identifier: BSD-3-Clause
#include "transport/peer_memory.h"

#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace mpix::transport {
namespace {

struct probe_words {
    std::uint64_t nonce[2];
    std::uint64_t echo;  // what others write here, all of them the same
};

probe_words &own_words() {
    static probe_words *const words = [] {
        auto *const made = new probe_words{};
        if (getrandom(made->nonce, sizeof made->nonce, 0) != sizeof made->nonce) made->nonce[0] = 0;
        return made;
    }();
    return *words;
}

using copy_call = ssize_t (*)(pid_t, const iovec *, unsigned long, const iovec *, unsigned long, unsigned long);

// All of it, in as many calls as it takes: one moves 2 GiB at most, and stops where a page is missing. 0, or an errno.
int copy_all(copy_call copy, std::int64_t pid, std::uint64_t there, void *here, std::uint64_t bytes) {
    constexpr std::uint64_t most = 1u << 30;
    auto *at = static_cast<char *>(here);
    while (bytes != 0) {
        const std::uint64_t part = std::min(bytes, most);
        const iovec local{at, part};
        const iovec remote{reinterpret_cast<void *>(there), part};
        const ssize_t done = copy(static_cast<pid_t>(pid), &local, 1, &remote, 1, 0);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return errno;
        if (done == 0) return EFAULT;
        at += done;
        there += static_cast<std::uint64_t>(done);
        bytes -= static_cast<std::uint64_t>(done);
    }
    return 0;
}

// The thread that calls does the copy, inside of the system: so what it publishes next is behind the bytes.
int write_there(const mpix_far_memory *self, char *to, const void *from, std::uint64_t bytes) {
    return copy_all(process_vm_writev, static_cast<const peer_memory *>(self)->pid,
                    reinterpret_cast<std::uintptr_t>(to), const_cast<void *>(from), bytes);
}

int write_here(const mpix_far_memory *, char *to, const void *from, std::uint64_t bytes) {
    std::memcpy(to, from, bytes);
    return 0;
}

outcome refused(const char *call, int error) { return std::string(call) + ": " + std::strerror(error); }

}  // namespace

memory_probe probe_of_this_process() {
    const probe_words &words = own_words();
    return {getpid(), reinterpret_cast<std::uintptr_t>(&words), {words.nonce[0], words.nonce[1]}};
}

outcome reach_memory(const memory_probe &theirs, peer_memory &out) {
    out.pid = theirs.pid;
    const probe_words &mine = own_words();
    if (theirs.nonce[0] == 0) return "that process has told of no memory to try";
    if (theirs.nonce[0] == mine.nonce[0] && theirs.nonce[1] == mine.nonce[1]) {
        out.write = write_here;
        return {};
    }
    if (theirs.pid <= 0) return "that process has told of no memory to try";
    probe_words seen{};
    if (const int bad = copy_all(process_vm_readv, theirs.pid, theirs.address, &seen, sizeof seen); bad != 0)
        return refused("process_vm_readv", bad);
    // Where process numbers count in another namespace it may be anybody.
    if (std::memcmp(seen.nonce, theirs.nonce, sizeof seen.nonce) != 0)
        return "the process of that number is another one here";
    const std::uint64_t echo = theirs.address + offsetof(probe_words, echo);
    if (const int bad = copy_all(process_vm_writev, theirs.pid, echo, seen.nonce, sizeof seen.echo); bad != 0)
        return refused("process_vm_writev", bad);
    if (const int bad = copy_all(process_vm_readv, theirs.pid, echo, &seen.echo, sizeof seen.echo); bad != 0)
        return refused("process_vm_readv", bad);
    if (seen.echo != theirs.nonce[0]) return "what process_vm_writev has written is not there";
    out.write = write_there;
    return {};
}

void describe_buffer(void *buffer, std::uint64_t bytes, wire_region &out) {
    const std::uint64_t address = reinterpret_cast<std::uintptr_t>(buffer);
    out = {};
    out.transport = id_shm;
    out.device = on_host;
    out.bytes = bytes;
    std::memcpy(out.address, &address, sizeof address);
}

outcome attach_buffer(const wire_region &wire, region &out) {
    std::uint64_t address = 0;
    std::memcpy(&address, wire.address, sizeof address);
    if (wire.transport != id_shm || wire.device != on_host || address == 0 || address + wire.bytes < address)
        return "malformed description of a receive buffer";
    out = {};
    out.address = reinterpret_cast<void *>(address);
    out.bytes = wire.bytes;
    return {};
}

}  // namespace mpix::transport
