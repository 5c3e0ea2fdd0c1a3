// SPDX-License-Identifier: BSD-3-Clause
//
// Files by one rank alone. Failures name the path, and what the system says.
#ifndef MPIX_HOST_HALO_FILES_POSIX_FILE_H
#define MPIX_HOST_HALO_FILES_POSIX_FILE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/status.h"

namespace mpix::halo {

// A file that is open; closed in the end.
class posix_file {
public:
    posix_file() = default;
    ~posix_file();
    posix_file(const posix_file &) = delete;
    posix_file &operator=(const posix_file &) = delete;

    // For reading. An ordinary file.
    status open(const std::string &path);
    // For writing. There is no such file.
    status create(const std::string &path);
    status size(std::int64_t &bytes);
    status read(void *to, std::size_t bytes);
    status write(const void *from, std::size_t bytes);
    status close();

private:
    status failed(const char *what) const;

    std::string path_;
    int file_ = -1;
};

// Not a failure if there is none.
status remove_file(const std::string &path);
// Replaces `to`, in one step.
status rename_file(const std::string &from, const std::string &to);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_FILES_POSIX_FILE_H
