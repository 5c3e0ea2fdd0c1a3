// SPDX-License-Identifier: BSD-3-Clause
//
// Where a bench's figures go as CSV.
#ifndef MPIX_TESTS_BENCH_CSV_FILE_HPP
#define MPIX_TESTS_BENCH_CSV_FILE_HPP

#include <mpi.h>

#include <cstdio>
#include <cstring>

namespace bench {

class csv_file {
public:
    // "-": stdout, in place of the text for people; null: nowhere. If it cannot be written, the job ends.
    explicit csv_file(const char *name) {
        if (name == nullptr) return;
        file_ = std::strcmp(name, "-") == 0 ? stdout : std::fopen(name, "w");
        if (file_ != nullptr) return;
        std::fprintf(stderr, "cannot write %s\n", name);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    ~csv_file() {
        if (file_ != nullptr && file_ != stdout) std::fclose(file_);
    }
    csv_file(const csv_file &) = delete;
    csv_file &operator=(const csv_file &) = delete;

    // Either may be null.
    std::FILE *get() const { return file_; }
    std::FILE *text() const { return file_ == stdout ? nullptr : stdout; }

private:
    std::FILE *file_ = nullptr;
};

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_CSV_FILE_HPP
