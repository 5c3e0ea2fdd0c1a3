// SPDX-License-Identifier: BSD-3-Clause
//
// A file that several ranks have open at the same time, by MPI-IO. Failures name the MPI function. Nothing is collective:
// an open that fails on some ranks only leaves it open on the others, where a collective close would wait for ever; and a
// collective write of Open MPI 4.1 that fails half-way returns MPI_SUCCESS on all ranks, while a single one says at least
// that fewer bytes were written.
#ifndef MPIX_HOST_HALO_FILES_SHARED_FILE_H
#define MPIX_HOST_HALO_FILES_SHARED_FILE_H

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "transport/status.h"

namespace mpix::halo {

class shared_file {
public:
    shared_file() = default;
    ~shared_file();  // closes it
    shared_file(const shared_file &) = delete;
    shared_file &operator=(const shared_file &) = delete;

    // `mode`: MPI_MODE_RDONLY or MPI_MODE_WRONLY.
    status open(const std::string &path, int mode);
    // At most 2^30 bytes.
    status read_at(std::int64_t place, std::byte *to, std::int64_t bytes);
    status write_at(std::int64_t place, const std::byte *from, std::int64_t bytes);
    // What this rank has written to the storage device.
    status sync();
    status close();

private:
    MPI_File file_ = MPI_FILE_NULL;
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_FILES_SHARED_FILE_H
