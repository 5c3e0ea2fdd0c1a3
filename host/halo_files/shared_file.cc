// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_files/shared_file.h"

#include "host/format.h"
#include "host/halo/collective.h"

namespace mpix::halo {
namespace {

status outcome_of_call(int code, const char *call) {
    if (code == MPI_SUCCESS) return {};
    int error_class = MPI_ERR_IO;
    MPI_Error_class(code, &error_class);
    return failure(error_class, format("{}: {}", call, text_of(code, call)));
}

status outcome_of_call(int code, const char *call, MPI_Status &done, std::int64_t bytes) {
    if (code != MPI_SUCCESS) return outcome_of_call(code, call);
    int count = 0;
    MPI_Get_count(&done, MPI_BYTE, &count);
    if (count == bytes) return {};
    return failure(MPI_ERR_IO, format("{}: {} of {} bytes", call, count, bytes));
}

}  // namespace

shared_file::~shared_file() {
    if (file_ != MPI_FILE_NULL) static_cast<void>(close());
}

status shared_file::open(const std::string &path, int mode) {
    const int code = MPI_File_open(MPI_COMM_SELF, path.c_str(), mode, MPI_INFO_NULL, &file_);
    if (code == MPI_SUCCESS) MPI_File_set_errhandler(file_, MPI_ERRORS_RETURN);
    return outcome_of_call(code, "MPI_File_open");
}

status shared_file::read_at(std::int64_t place, std::byte *to, std::int64_t bytes) {
    MPI_Status done{};
    const int code = MPI_File_read_at(file_, place, to, static_cast<int>(bytes), MPI_BYTE, &done);
    return outcome_of_call(code, "MPI_File_read_at", done, bytes);
}

status shared_file::write_at(std::int64_t place, const std::byte *from, std::int64_t bytes) {
    MPI_Status done{};
    const int code = MPI_File_write_at(file_, place, from, static_cast<int>(bytes), MPI_BYTE, &done);
    return outcome_of_call(code, "MPI_File_write_at", done, bytes);
}

status shared_file::sync() { return outcome_of_call(MPI_File_sync(file_), "MPI_File_sync"); }

status shared_file::close() { return outcome_of_call(MPI_File_close(&file_), "MPI_File_close"); }

}  // namespace mpix::halo
