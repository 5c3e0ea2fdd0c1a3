// SPDX-License-Identifier: BSD-3-Clause
#include "host/request/user_memory.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace mpix {
namespace {

// System calls that read or write one aligned word and fail with EFAULT if they cannot; any other result means that
// they could. (process_vm_readv also fails for device memory that is mapped for the CPU.)
constexpr std::uintptr_t word = 8;
std::uintptr_t aligned(const void *address) { return reinterpret_cast<std::uintptr_t>(address) / word * word; }

}  // namespace

bool can_read(const void *address) {
    // Reads the mask before it rejects the invalid operation.
    constexpr int none = ~0;
    return syscall(SYS_rt_sigprocmask, none, aligned(address), nullptr, word) == 0 || errno != EFAULT;
}

bool can_write(void *address) {
    // An atomic OR with 0; no thread waits on either word.
    std::uint32_t other = 0;
    return syscall(SYS_futex, &other, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, nullptr, aligned(address),
                   FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0)) >= 0 ||
           errno != EFAULT;
}

}  // namespace mpix
