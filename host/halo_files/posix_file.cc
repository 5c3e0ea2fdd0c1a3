// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_files/posix_file.h"

#include <fcntl.h>
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "host/format.h"

namespace mpix::halo {
namespace {

int class_of_errno(int number) {
    switch (number) {
        case ENOENT:
            return MPI_ERR_NO_SUCH_FILE;
        case EACCES:
        case EPERM:
            return MPI_ERR_ACCESS;
        case ENOSPC:
            return MPI_ERR_NO_SPACE;
        case EDQUOT:
            return MPI_ERR_QUOTA;
        case EROFS:
            return MPI_ERR_READ_ONLY;
        case EISDIR:
        case ENOTDIR:
        case ENAMETOOLONG:
        case ELOOP:
            return MPI_ERR_BAD_FILE;
        default:
            return MPI_ERR_IO;
    }
}

// "run.ckpt: open: No such file or directory"
status failure_of_errno(const std::string &path, const char *what) {
    const int number = errno;
    return failure(class_of_errno(number), format("{}: {}: {}", path, what, std::strerror(number)));
}

int retried(auto call) {
    int result = 0;
    do result = call();
    while (result < 0 && errno == EINTR);
    return result;
}

}  // namespace

posix_file::~posix_file() {
    if (file_ >= 0) ::close(file_);
}

status posix_file::failed(const char *what) const { return failure_of_errno(path_, what); }

status posix_file::open(const std::string &path) {
    path_ = path;
    // A pipe would wait for its other end.
    file_ = retried([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
    struct stat about {};
    if (file_ < 0 || ::fstat(file_, &about) != 0) return failed("open");
    if (!S_ISREG(about.st_mode)) return failure(MPI_ERR_BAD_FILE, format("{}: it is no ordinary file", path));
    return {};
}

status posix_file::create(const std::string &path) {
    path_ = path;
    file_ = retried([&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
    return file_ < 0 ? failed("create") : status{};
}

status posix_file::size(std::int64_t &bytes) {
    struct stat about {};
    if (::fstat(file_, &about) != 0) return failed("size");
    bytes = about.st_size;
    return {};
}

status posix_file::read(void *to, std::size_t bytes) {
    for (auto *at = static_cast<std::byte *>(to); bytes > 0;) {
        const ssize_t done = ::read(file_, at, bytes);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return failed("read");
        if (done == 0) return failure(MPI_ERR_IO, format("{}: it ends {} bytes too early", path_, bytes));
        at += done;
        bytes -= static_cast<std::size_t>(done);
    }
    return {};
}

status posix_file::write(const void *from, std::size_t bytes) {
    for (const auto *at = static_cast<const std::byte *>(from); bytes > 0;) {
        const ssize_t done = ::write(file_, at, bytes);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return failed("write");
        at += done;
        bytes -= static_cast<std::size_t>(done);
    }
    return {};
}

status posix_file::close() { return ::close(std::exchange(file_, -1)) == 0 ? status{} : failed("close"); }

status remove_file(const std::string &path) {
    if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
    return failure_of_errno(path, "remove");
}

status rename_file(const std::string &from, const std::string &to) {
    if (std::rename(from.c_str(), to.c_str()) != 0) return failure_of_errno(to, "rename");
    // Not all file systems can do this, and then they need not.
    const std::size_t slash = to.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : to.substr(0, slash + 1);
    if (const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); opened >= 0) {
        ::fsync(opened);
        ::close(opened);
    }
    return {};
}

}  // namespace mpix::halo
