// SPDX-License-Identifier: BSD-3-Clause
//
// Writing to another process's memory: all of it or an error, and tried beforehand, so that who may not is told why.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "transport/cma.h"

#include "tests/catch.hpp"

using namespace mpix::transport;
using mpix::status;

namespace {

// A process that does nothing, with this one's memory as it is now.
struct idle_process {
    pid_t pid = fork();
    idle_process() {
        if (pid == 0)
            for (;;) pause();
    }
    ~idle_process() { end(); }
    void end() {
        if (pid <= 0) return;
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
        pid = -1;
    }
};

bool in_child(const std::function<bool()> &act) {
    const pid_t child = fork();
    if (child == 0) _exit(act() ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// What another process may be known by; a child has it at the same place.
struct {
    std::uint64_t nonce[2] = {11, 12}, echo = 0;
} words;

memory_probe probe_of(const idle_process &p) {
    return {p.pid, reinterpret_cast<std::uintptr_t>(&words), {words.nonce[0], words.nonce[1]}};
}

char *pages(std::size_t n, std::size_t page) {
    return static_cast<char *>(mmap(nullptr, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

// Two pages full of 1, and behind them nothing is mapped.
char *two_pages_and_none(std::size_t page) {
    char *const first = pages(3, page);
    std::memset(first, 1, 3 * page);
    REQUIRE(munmap(first + 2 * page, page) == 0);
    return first;
}

void deny(long call) {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  // the number of the call
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(2);
}

// Whether that memory can be written to; if not, then because the system says so to everybody.
bool reached(const memory_probe &theirs, peer_memory &out) {
    const status bad = reach_memory(theirs, out);
    std::uint64_t nonce = 0, echo = 0;
    const iovec here{&nonce, sizeof nonce}, there{reinterpret_cast<void *>(theirs.address), sizeof nonce};
    const iovec word{&echo, sizeof echo}, last{reinterpret_cast<void *>(theirs.address + 16), sizeof echo};
    const auto pid = static_cast<pid_t>(theirs.pid);
    const bool reads = process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof nonce && nonce == theirs.nonce[0];
    const bool lets_us = reads && process_vm_writev(pid, &word, 1, &last, 1, 0) == sizeof echo;
    CHECK((bad.ok()) == lets_us);
    if (!bad.ok()) skip_rest("the system lets us not write to that memory: " + bad.message());
    return bad.ok();
}

}  // namespace

TEST_CASE("one's own memory is written to as any other") {
    peer_memory self;
    if (!reached(probe_of_this_process(), self)) return;
    char from[] = "bytes", to[sizeof from] = "";
    CHECK(self.write(&self, to, from, sizeof from) == 0);
    CHECK(std::strcmp(to, from) == 0);
}

TEST_CASE("another process's memory is written to, and what is not mapped there is an error, whatever lies before it") {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    char *const there = two_pages_and_none(page);
    idle_process other;
    peer_memory memory;
    if (!reached(probe_of(other), memory)) return;
    const std::vector<char> from(3 * page, 2);
    CHECK(memory.write(&memory, there + 5, from.data(), 2 * page - 10) == 0);
    CHECK(there[5] == 1);  // not ours
    // Read back by what is written here from there.
    std::vector<char> back(2 * page);
    const iovec local{back.data(), back.size()}, remote{there, back.size()};
    REQUIRE(process_vm_readv(other.pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(back.size()));
    for (std::size_t i = 0; i < back.size(); ++i) REQUIRE(back[i] == (i < 5 || i >= 2 * page - 5 ? 1 : 2));
    CHECK(memory.write(&memory, there + page, from.data(), 2 * page) == EFAULT);
    CHECK(memory.write(&memory, there, nullptr, 0) == 0);
    other.end();
    CHECK(memory.write(&memory, there, from.data(), 1) == ESRCH);
    munmap(there, 2 * page);
}

TEST_CASE("another process's memory is read, and how long that takes is kept") {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    char *const there = two_pages_and_none(page);
    idle_process other;
    peer_memory memory;
    if (!reached(probe_of(other), memory)) return;
    std::memset(there, 3, 2 * page);  // not theirs
    std::vector<char> to(3 * page, 2);
    CHECK(memory.read(&memory, to.data() + 1, there + 5, 2 * page - 10) == 0);
    for (std::size_t i = 0; i < to.size(); ++i) REQUIRE(to[i] == (i == 0 || i > 2 * page - 10 ? 2 : 1));
    CHECK(memory.read_cost != 0);
    CHECK(memory.write_cost == 0);
    CHECK(memory.read(&memory, to.data(), there + page, 2 * page) == EFAULT);
    CHECK(memory.read(&memory, nullptr, there, 0) == 0);
    CHECK(memory.write(&memory, there, to.data(), page) == 0);
    CHECK(memory.write_cost != 0);
    other.end();
    CHECK(memory.read(&memory, to.data(), there, 1) == ESRCH);
    munmap(there, 2 * page);
}

TEST_CASE("what a copy takes is the least of the last ones, in nanoseconds for a MiB") {
    CHECK(next_copy_cost(0, 1 << 18, 50) == 200);
    CHECK(next_copy_cost(0, 1 << 18, 0) == 1);  // 0 would mean that there was none
    CHECK(next_copy_cost(200, 1 << 20, 100) == 100);
    CHECK(next_copy_cost(200, 1 << 20, 210) == 210);
    CHECK(next_copy_cost(200, 1 << 20, 5000) == 226);
}

TEST_CASE("who may not is told why") {
    idle_process other;
    peer_memory memory;
    const memory_probe probe = probe_of(other);
    if (reached(probe, memory)) {
        memory_probe wrong = probe;
        wrong.nonce[1] ^= 1;
        CHECK(reach_memory(wrong, memory).message() == "the process of that number is another one here");
        wrong = probe;
        wrong.nonce[0] ^= 1;
        wrong.address = 8;
        CHECK(reach_memory(wrong, memory).message() == std::string("process_vm_readv: ") + std::strerror(EFAULT));
        for (const bool writes : {false, true})
            CHECK(in_child([&] {
                deny(writes ? SYS_process_vm_writev : SYS_process_vm_readv);
                peer_memory out;
                return reach_memory(probe, out).message() ==
                       std::string(writes ? "process_vm_writev: " : "process_vm_readv: ") + std::strerror(EPERM);
            }));
    }
    CHECK(!reach_memory({}, memory).ok());
    other.end();
    CHECK(reach_memory(probe, memory).message() == std::string("process_vm_readv: ") + std::strerror(ESRCH));
}

TEST_CASE("what cannot be read is found, wherever in the buffer it lies") {
    peer_memory self;
    if (!reached(probe_of_this_process(), self)) return;
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    char *const buffer = pages(5, page);
    REQUIRE(mprotect(buffer + page, page, PROT_READ) == 0);
    CHECK(can_be_read(buffer, 5 * page));
    REQUIRE(mprotect(buffer + 3 * page, page, PROT_NONE) == 0);
    CHECK_FALSE(can_be_read(buffer, 5 * page));
    CHECK_FALSE(can_be_read(buffer + 3 * page - 1, 2));
    CHECK_FALSE(can_be_read(buffer + 4 * page - 1, 1));
    CHECK(can_be_read(buffer + 7, 3 * page - 7));
    CHECK(can_be_read(buffer + 4 * page, page));
    CHECK(can_be_read(nullptr, 0));
    munmap(buffer, 5 * page);
}

TEST_CASE("a buffer is told of, and what is told is checked") {
    char buffer[16];
    wire_region wire;
    describe_buffer(buffer, sizeof buffer, wire);
    region r;
    REQUIRE(attach_buffer(wire, r).ok());
    CHECK(r.address == buffer);
    CHECK(r.bytes == sizeof buffer);
    wire_region bad = wire;
    bad.bytes = ~std::uint64_t{0};
    CHECK(!attach_buffer(bad, r).ok());
    bad = wire;
    bad.transport = id_cuda_ipc;
    CHECK(!attach_buffer(bad, r).ok());
    describe_buffer(nullptr, 1, wire);
    CHECK(!attach_buffer(wire, r).ok());
}
