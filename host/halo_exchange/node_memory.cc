// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_exchange/node_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "host/format.h"
#include "host/halo/collective.h"

namespace mpix::halo {
namespace {

// The first page tells whether a process has opened the file that is meant: process numbers are a container's own.
constexpr std::size_t head_bytes = 4096;

struct file_name {
    std::int64_t process = -1, file = -1;  // file: -1 if there is none
    std::uint64_t nonce[2] = {};
};
static_assert(sizeof(file_name) == 4 * sizeof(std::int64_t));

status failed_call(const std::string &what) {
    return failure(MPI_ERR_NO_MEM,
                   format("options.node_messages: no shared memory of the node: {}: {}", what, std::strerror(errno)));
}

}  // namespace

node_memory::~node_memory() {
    if (base_ != nullptr) munmap(base_ - head_bytes, mapped_);
    all_have_it();
}

void node_memory::all_have_it() {
    if (file_ >= 0) close(file_);
    file_ = -1;
}

status node_memory::create(std::size_t bytes) {
    file_ = memfd_create("mpix halo", MFD_CLOEXEC);
    if (file_ < 0) return failed_call("memfd_create");
    if (ftruncate(file_, static_cast<off_t>(head_bytes + bytes)) != 0) return failed_call("ftruncate");
    // Memory that is not there would end the process when it is first written.
    if (fallocate(file_, 0, 0, static_cast<off_t>(head_bytes + bytes)) != 0) return failed_call("fallocate");
    return map(file_, bytes);
}

status node_memory::map(int file, std::size_t bytes) {
    void *const mapped = mmap(nullptr, head_bytes + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) return failed_call("mmap");
    mapped_ = head_bytes + bytes;
    base_ = static_cast<std::byte *>(mapped) + head_bytes;
    return {};
}

status node_memory::make(MPI_Comm node, std::size_t bytes) {
    int place = 0;
    demand(MPI_Comm_rank(node, &place), "MPI_Comm_rank");
    file_name name;
    status s;
    if (place == 0) {
        s = create(bytes);
        if (s.ok() && getrandom(name.nonce, sizeof name.nonce, 0) != sizeof name.nonce) s = failed_call("getrandom");
        if (s.ok()) {
            std::memcpy(base_ - head_bytes, name.nonce, sizeof name.nonce);
            name.process = getpid();
            name.file = file_;
        }
    }
    demand(MPI_Bcast(&name, 4, MPI_INT64_T, 0, node), "MPI_Bcast");
    if (place == 0) return s;
    if (name.file < 0) return failure(MPI_ERR_NO_MEM, "options.node_messages: no shared memory of the node");
    const std::string path = format("/proc/{}/fd/{}", name.process, name.file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return failed_call(path);
    struct stat found {};
    if (fstat(file, &found) != 0 || static_cast<std::uint64_t>(found.st_size) != head_bytes + bytes)
        s = failure(MPI_ERR_NO_MEM, format("options.node_messages: {} is another process's file", path));
    if (s.ok()) s = map(file, bytes);
    close(file);
    if (s.ok() && std::memcmp(base_ - head_bytes, name.nonce, sizeof name.nonce) != 0)
        s = failure(MPI_ERR_NO_MEM, format("options.node_messages: {} is another process's file", path));
    return s;
}

}  // namespace mpix::halo
