// SPDX-License-Identifier: BSD-3-Clause
//
// From the init calls of a pair of requests to its first bytes at the receiver, in host memory: by mpix, by the MPI
// library's own partitioned calls where it has them, and by its persistent requests. Between GPUs: setup_gpu.cu.
#include <mpi.h>
#include <mpix/mpix.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "tests/bench/host_machine.hpp"
#include "tests/bench/partitioned_calls.hpp"
#include "tests/bench/setup_clock.hpp"

namespace {

int rank;

void must(int code, const char *call) {
    if (code == MPI_SUCCESS) return;
    std::fprintf(stderr, "bench.setup: %s failed\n", call);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// Messages in host memory. Each is full of a number, the next one each time it is sent.
class messages {
public:
    void prepare(int count, int bytes) {
        bytes_ = static_cast<std::size_t>(bytes);
        buffer_.assign(static_cast<std::size_t>(count) * bytes_, 0);
        requests_.assign(static_cast<std::size_t>(count), MPI_REQUEST_NULL);
        turns_.assign(static_cast<std::size_t>(count), 0);
        write(0, count);
    }
    void unprepare() { buffer_ = {}; }
    void export_to_kernels(int, int) {}
    void check(int first, int count) {
        for (int i = first; i < first + count; ++i) {
            const bool right = rank == 0 || (at(i)[0] == number(i) && at(i)[bytes_ - 1] == number(i));
            if (!right) must(MPI_ERR_OTHER, "a comparison of what was received");
            ++turns_[static_cast<std::size_t>(i)];
        }
        write(first, count);
    }

protected:
    char *at(int i) { return &buffer_[static_cast<std::size_t>(i) * bytes_]; }
    MPI_Request *request(int i) { return &requests_[static_cast<std::size_t>(i)]; }
    int bytes() const { return static_cast<int>(bytes_); }

private:
    char number(int i) const { return static_cast<char>(1 + (i + turns_[static_cast<std::size_t>(i)]) % 127); }
    void write(int first, int count) {
        for (int i = first; i < first + count; ++i) std::memset(at(i), rank == 0 ? number(i) : 0, bytes_);
    }

    std::size_t bytes_ = 0;
    std::vector<int> turns_;
    std::vector<char> buffer_;
    std::vector<MPI_Request> requests_;
};

class by_partitions : public messages {
public:
    explicit by_partitions(const bench::partitioned_calls &calls) : name(calls.name), calls_(calls) {}
    const char *const name;
    static constexpr int most = 1 << 20;

    void make(int first, int count) {
        for (int i = first; i < first + count; ++i)
            must(rank == 0
                     ? calls_.psend_init(at(i), 1, bytes(), MPI_BYTE, 1, i, MPI_COMM_WORLD, MPI_INFO_NULL, request(i))
                     : calls_.precv_init(at(i), 1, bytes(), MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_INFO_NULL, request(i)),
                 "an init call");
    }
    void start(int first, int count) { must(calls_.startall(count, request(first)), "MPI_Startall"); }
    void deliver(int first, int count) {
        if (rank == 0)
            for (int i = first; i < first + count; ++i) must(calls_.pready(0, *request(i)), "MPI_Pready");
        must(calls_.waitall(count, request(first), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }
    void release(int first, int count) {
        for (int i = first; i < first + count; ++i) must(calls_.request_free(request(i)), "MPI_Request_free");
    }

private:
    const bench::partitioned_calls calls_;
};

// By the library alone (PMPI_).
class by_persistent : public messages {
public:
    static constexpr const char *name = "persistent";
    static constexpr int most = 1 << 20;

    void make(int first, int count) {
        for (int i = first; i < first + count; ++i)
            must(rank == 0 ? PMPI_Send_init(at(i), bytes(), MPI_BYTE, 1, i, MPI_COMM_WORLD, request(i))
                           : PMPI_Recv_init(at(i), bytes(), MPI_BYTE, 0, i, MPI_COMM_WORLD, request(i)),
                 "an init call");
    }
    void start(int first, int count) { must(PMPI_Startall(count, request(first)), "MPI_Startall"); }
    void deliver(int first, int count) {
        must(PMPI_Waitall(count, request(first), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }
    void release(int first, int count) {
        for (int i = first; i < first + count; ++i) must(PMPI_Request_free(request(i)), "MPI_Request_free");
    }
};

}  // namespace

int main(int argc, char **argv) {
    bench::setup_options o;
    if (!bench::read_setup(argc, argv, o)) return 2;
    MPI_Init(&argc, &argv);
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) {
        std::fprintf(stderr, "bench.setup: two ranks are needed, by mpirun -n 2\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    {
        std::optional<bench::table> table;
        if (rank == 0)
            table.emplace(
                "from the init calls to the first bytes; steps per pair; memory per pair, both ranks", o.csv,
                bench::setup_columns, "mpi,cpu,load,date",
                bench::library_name() + "," + bench::cpu_model() + "," + bench::load() + "," + bench::today());
        bench::setup_clock clock(o, MPI_COMM_WORLD, table ? &*table : nullptr);
        by_partitions mpix(bench::mpix_calls);
        clock.measure(mpix);
#if MPIX_LIBRARY_IS_PARTITIONED
        by_partitions library(bench::library_calls);
        clock.measure(library);
#else
        clock.without("library");
#endif
        by_persistent persistent;
        clock.measure(persistent);
    }
    MPI_Finalize();
    return 0;
}
