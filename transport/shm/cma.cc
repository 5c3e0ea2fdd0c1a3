// SPDX-License-Identifier: BSD-3-Clause
#include "transport/cma.h"

#include <mpix/detail/order.h>

#include <poll.h>
#include <sys/random.h>
#include <sys/syscall.h>
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

// The number of a process that has ended may be another's already.
bool has_ended(const peer_memory &memory) {
    pollfd ended{memory.alive, POLLIN, 0};
    return memory.alive >= 0 && poll(&ended, 1, 0) > 0;
}

// The thread that calls does the copy, inside of the system: so the bytes are ahead of what it publishes next, and behind
// what it has acquired.
int copy_timed(copy_call copy, const mpix_far_memory *self, const void *there, void *here, std::uint64_t bytes,
               bool writes) {
    const auto &memory = *static_cast<const peer_memory *>(self);
    if (has_ended(memory)) return ESRCH;
    const std::uint64_t since = detail::now_ns();
    const int error = copy_all(copy, memory.pid, reinterpret_cast<std::uintptr_t>(there), here, bytes);
    std::uint64_t &known = writes ? memory.write_cost : memory.read_cost;
    if (error == EPERM)  // leave was given when it was tried
        detail::store_relaxed(&known, cannot_copy);
    else if (error == 0 && bytes != 0)
        detail::store_relaxed(&known, next_copy_cost(detail::load_relaxed(&known), bytes, detail::now_ns() - since));
    return error;
}
int write_there(const mpix_far_memory *self, char *to, const void *from, std::uint64_t bytes) {
    return copy_timed(process_vm_writev, self, to, const_cast<void *>(from), bytes, true);
}
int read_there(const mpix_far_memory *self, void *to, const char *from, std::uint64_t bytes) {
    return copy_timed(process_vm_readv, self, from, to, bytes, false);
}

status refused(const char *call, int error) { return failure(std::string(call) + ": " + std::strerror(error)); }

}  // namespace

#if defined(SYS_pidfd_open) && defined(SYS_pidfd_getfd)
int open_process(std::int64_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)); }
int take_file(int process, std::int64_t number) {
    return static_cast<int>(syscall(SYS_pidfd_getfd, process, static_cast<int>(number), 0));
}
#else
int open_process(std::int64_t) {
    errno = ENOSYS;
    return -1;
}
int take_file(int, std::int64_t) { return open_process(0); }
#endif

memory_probe probe_of_this_process() {
    const probe_words &words = own_words();
    return {getpid(), reinterpret_cast<std::uintptr_t>(&words), {words.nonce[0], words.nonce[1]}};
}

status reach_memory(const memory_probe &theirs, peer_memory &out) {
    out.pid = theirs.pid;
    if (theirs.nonce[0] == 0 || theirs.pid <= 0) return failure("that process has told of no memory to try");
    out.alive = open_process(theirs.pid);  // before its number is known to be right; for as long as we run
    const auto give_up = [&out](status why) {
        if (out.alive >= 0) close(out.alive);
        out.alive = -1;
        return why;
    };
    probe_words seen{};
    if (const int bad = copy_all(process_vm_readv, theirs.pid, theirs.address, &seen, sizeof seen); bad != 0)
        return give_up(refused("process_vm_readv", bad));
    // Where process numbers count in another namespace it may be anybody.
    if (std::memcmp(seen.nonce, theirs.nonce, sizeof seen.nonce) != 0)
        return give_up(failure("the process of that number is another one here"));
    const std::uint64_t echo = theirs.address + offsetof(probe_words, echo);
    if (const int bad = copy_all(process_vm_writev, theirs.pid, echo, seen.nonce, sizeof seen.echo); bad != 0)
        return give_up(refused("process_vm_writev", bad));
    if (const int bad = copy_all(process_vm_readv, theirs.pid, echo, &seen.echo, sizeof seen.echo); bad != 0)
        return give_up(refused("process_vm_readv", bad));
    if (seen.echo != theirs.nonce[0]) return give_up(failure("what process_vm_writev has written is not there"));
    out.read = read_there;
    out.write = write_there;
    return {};
}

status reach_files(const peer_memory &theirs) {
    if (theirs.alive < 0) return failure("this system has no pidfd_open");
    // Leave is asked for before the number: it need not be one of a file.
    const int file = take_file(theirs.alive, 0);
    if (file < 0 && errno != EBADF) return refused("pidfd_getfd", errno);
    if (file >= 0) close(file);
    return {};
}

bool others_reach(void *buffer, std::uint64_t bytes) {
    for (char *const at : {static_cast<char *>(buffer), static_cast<char *>(buffer) + bytes - 1}) {
        char byte;
        if (copy_all(process_vm_readv, getpid(), reinterpret_cast<std::uintptr_t>(at), &byte, 1) != 0) return false;
    }
    return true;
}

bool can_be_read(const void *from, std::uint64_t bytes) {
    // A byte of each page, written to ourselves: the same call reads it in the same way.
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(from), end = begin + bytes;
    for (std::uintptr_t at = begin; at < end; at = (at / page + 1) * page) {
        char byte = 0;
        if (copy_all(process_vm_writev, getpid(), reinterpret_cast<std::uintptr_t>(&byte), reinterpret_cast<void *>(at),
                     1) == EFAULT)
            return false;
    }
    return true;
}

void describe_buffer(void *buffer, std::uint64_t bytes, wire_region &out) {
    const std::uint64_t address = reinterpret_cast<std::uintptr_t>(buffer);
    out = {};
    out.transport = id_shm;
    out.device = on_host;
    out.bytes = bytes;
    std::memcpy(out.address, &address, sizeof address);
}

status attach_buffer(const wire_region &wire, region &out) {
    std::uint64_t address = 0;
    std::memcpy(&address, wire.address, sizeof address);
    if (wire.transport != id_shm || wire.device != on_host || address == 0 || address + wire.bytes < address)
        return failure("malformed description of a buffer");
    out = {};
    out.address = reinterpret_cast<void *>(address);
    out.bytes = wire.bytes;
    return {};
}

}  // namespace mpix::transport
