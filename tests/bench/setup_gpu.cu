// SPDX-License-Identifier: BSD-3-Clause
//
// From the init calls of a pair of requests to its first bytes at the receiver, between two GPUs: by requests that are
// exported to kernels, by the same without a kernel, and, where the build has NCCL and there are two GPUs, by NCCL:
// ncclCommInitRank, the registration of windows (nccl_window), and a first send and receive. In host memory: setup.cpp.
//
// A way's first pair pays for all that a process does once, and so may what an earlier way has done before it: --ways
// with one name measures that alone. A step that does not end within a minute ends the program, and is named.
#include <mpi.h>
#include <mpix/mpix.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mpix/device.cuh>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/nccl_pair.cuh"
#include "tests/bench/pair.cuh"
#include "tests/bench/setup_clock.hpp"

using namespace bench;

namespace {

// ---- no step without an end ----------------------------------------------------------------------------------------

constexpr unsigned patience_s = 60;
const char *volatile doing = "";

extern "C" void give_up(int) {
    const auto say = [](const char *text) {
        if (write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(1);
    };
    say("bench.setup_gpu: no end within 60 s: ");
    say(doing);
    say("\n");
    _exit(1);  // mpirun ends the other rank
}

// From here on the program does this, and has so many seconds for it.
void begin(const char *what) {
    doing = what;
    alarm(patience_s);
}

// ---- messages in a GPU's memory ------------------------------------------------------------------------------------

// Each is full of a number, the next one each time it is sent.
class messages {
public:
    explicit messages(const pair &c) : c_(c) {}
    void prepare(int count, int bytes) {
        bytes_ = static_cast<std::size_t>(bytes);
        host_.assign(static_cast<std::size_t>(count) * bytes_, 0);
        turns_.assign(static_cast<std::size_t>(count), 0);
        buffer_ = allocate(host_.size());
        write(0, count);
    }
    void unprepare() {
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        give_back(buffer_);
    }
    void check_bytes(int first, int count) {
        if (c_.rank == 1) {
            begin("a copy of what was received");
            const std::size_t from = offset(first), n = offset(count);
            check(cudaMemcpy(&host_[from], buffer_ + from, n, cudaMemcpyDeviceToHost), "cudaMemcpy");
            for (int i = first; i < first + count; ++i)
                if (host_[offset(i)] != number(i) || host_[offset(i + 1) - 1] != number(i))
                    must(MPI_ERR_OTHER, "a comparison of what was received");
        }
        for (int i = first; i < first + count; ++i) ++turns_[static_cast<std::size_t>(i)];
        write(first, count);
    }

protected:
    ~messages() = default;
    virtual char *allocate(std::size_t bytes) {
        void *p = nullptr;
        check(cudaMalloc(&p, bytes), "cudaMalloc");
        return static_cast<char *>(p);
    }
    virtual void give_back(char *p) { check(cudaFree(p), "cudaFree"); }

    char *at(int i) { return buffer_ + offset(i); }
    int bytes() const { return static_cast<int>(bytes_); }
    std::size_t all_bytes() const { return host_.size(); }
    void wait_for_stream(const char *what) {
        begin(what);
        check(cudaStreamSynchronize(c_.stream), what);
    }

    const pair &c_;
    char *buffer_ = nullptr;

private:
    std::size_t offset(int i) const { return static_cast<std::size_t>(i) * bytes_; }
    char number(int i) const { return static_cast<char>(1 + (i + turns_[static_cast<std::size_t>(i)]) % 127); }
    void write(int first, int count) {
        for (int i = first; i < first + count; ++i)
            std::memset(&host_[offset(i)], c_.rank == 0 ? number(i) : 0, bytes_);
        check(cudaMemcpy(at(first), &host_[offset(first)], offset(count), cudaMemcpyHostToDevice), "cudaMemcpy");
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }

    std::size_t bytes_ = 0;
    std::vector<int> turns_;
    std::vector<char> host_;
};

// ---- by mpix -------------------------------------------------------------------------------------------------------

// A block for each request, of one thread.
__global__ void deliver_all(const MPIX_Prequest *all, bool sends, times *out) {
    const MPIX_Prequest request = all[blockIdx.x];
    const auto self = mpix::this_thread();
    const int code = sends ? mpix::pready(self, 0, request) : mpix::wait_arrived(self, request, 0, patience_ns);
    if (code != MPI_SUCCESS) atomicAdd(&out->errors, 1ull);
}

class by_mpix : public messages {
public:
    // With `exported` a kernel marks ready and waits; else the host does.
    by_mpix(const pair &c, bool exported) : messages(c), name(exported ? "mpix" : "mpix_host"), exported_(exported) {}
    const char *const name;
    static constexpr int most = 1 << 20;

    void prepare(int count, int bytes) {
        messages::prepare(count, bytes);
        requests_.assign(static_cast<std::size_t>(count), MPI_REQUEST_NULL);
        void *p = nullptr;
        const auto size = static_cast<std::size_t>(count) * sizeof(MPIX_Prequest);
        ::check(cudaHostAlloc(&p, size, cudaHostAllocMapped), "cudaHostAlloc");
        std::memset(p, 0, size);
        handles_ = static_cast<MPIX_Prequest *>(p);
        ::check(cudaHostGetDevicePointer(&p, handles_, 0), "cudaHostGetDevicePointer");
        seen_by_gpu_ = static_cast<MPIX_Prequest *>(p);
        ::check(cudaMemset(c_.result, 0, sizeof(times)), "cudaMemset");
        // The kernel's code is on the GPU before anything is timed.
        cudaFuncAttributes attributes;
        ::check(cudaFuncGetAttributes(&attributes, deliver_all), "cudaFuncGetAttributes");
    }
    void unprepare() {
        messages::unprepare();
        ::check(cudaFreeHost(handles_), "cudaFreeHost");
    }
    void make(int first, int count) {
        begin("init calls");
        for (int i = first; i < first + count; ++i)
            must(c_.rank == 0
                     ? MPI_Psend_init(at(i), 1, bytes(), MPI_BYTE, 1, i, MPI_COMM_WORLD, MPI_INFO_NULL, request(i))
                     : MPI_Precv_init(at(i), 1, bytes(), MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_INFO_NULL, request(i)),
                 "an init call");
    }
    void export_to_kernels(int first, int count) {
        if (!exported_) return;
        begin("MPIX_Prequest_create");
        for (int i = first; i < first + count; ++i)
            must(MPIX_Prequest_create(*request(i), MPI_INFO_NULL, &handles_[i]), "MPIX_Prequest_create");
    }
    void start(int first, int count) {
        begin("MPI_Startall");
        must(MPI_Startall(count, request(first)), "MPI_Startall");
    }
    void deliver(int first, int count) {
        if (exported_) {
            begin("the launch of the kernel");
            deliver_all<<<static_cast<unsigned>(count), 1, 0, c_.stream>>>(seen_by_gpu_ + first, c_.rank == 0,
                                                                           c_.result);
            ::check(cudaGetLastError(), "deliver_all");
            wait_for_stream("the kernel");
        } else if (c_.rank == 0) {
            begin("MPI_Pready");
            for (int i = first; i < first + count; ++i) must(MPI_Pready(0, *request(i)), "MPI_Pready");
        }
        begin("MPI_Waitall");
        must(MPI_Waitall(count, request(first), MPI_STATUSES_IGNORE), "MPI_Waitall");
        begin("what follows MPI_Waitall");
    }
    void check(int first, int count) {
        if (exported_) c_.outcome("mpix");
        check_bytes(first, count);
    }
    void release(int first, int count) {
        begin("the end of requests");
        for (int i = first; i < first + count; ++i) {
            if (exported_) must(MPIX_Prequest_free(&handles_[i]), "MPIX_Prequest_free");
            must(MPI_Request_free(request(i)), "MPI_Request_free");
        }
    }

private:
    MPI_Request *request(int i) { return &requests_[static_cast<std::size_t>(i)]; }

    const bool exported_;
    std::vector<MPI_Request> requests_;
    MPIX_Prequest *handles_ = nullptr, *seen_by_gpu_ = nullptr;
};

// ---- by NCCL -------------------------------------------------------------------------------------------------------

#if MPIX_HAVE_NCCL
#define MPIX_NCCL_HAS_WINDOWS (NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0))

void checked(ncclResult_t result, const char *call) {
    if (result == ncclSuccess) return;
    std::fprintf(stderr, "bench.setup_gpu: %s: %s\n", call, ncclGetErrorString(result));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// A communicator stands for a pair of requests: what is made for it serves any number of messages.
class by_nccl : public messages {
public:
    by_nccl(const pair &c, bool windows) : messages(c), name(windows ? "nccl_window" : "nccl"), windows_(windows) {}
    const char *const name;
    static constexpr int most = 4;

    void prepare(int count, int bytes) {
        begin("NCCL's memory");
        messages::prepare(count, bytes);
        comms_.assign(static_cast<std::size_t>(count), nullptr);
#if MPIX_NCCL_HAS_WINDOWS
        window_.assign(static_cast<std::size_t>(count), nullptr);
#endif
    }
    void make(int first, int count) {
        begin("ncclCommInitRank");
        for (int i = first; i < first + count; ++i) {
            ncclUniqueId id{};
            if (c_.rank == 0) checked(ncclGetUniqueId(&id), "ncclGetUniqueId");
            MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
            checked(ncclCommInitRank(&comm(i), 2, id, c_.rank), "ncclCommInitRank");
        }
    }
    void export_to_kernels(int first, int count) {
#if MPIX_NCCL_HAS_WINDOWS
        if (!windows_) return;
        begin("ncclCommWindowRegister");
        for (int i = first; i < first + count; ++i)
            checked(ncclCommWindowRegister(comm(i), buffer_, all_bytes(), &window(i), NCCL_WIN_COLL_SYMMETRIC),
                    "ncclCommWindowRegister");
#else
        static_cast<void>(first), static_cast<void>(count);
#endif
    }
    void start(int, int) {}
    void deliver(int first, int count) {
        begin("ncclSend and ncclRecv");
        const auto n = static_cast<std::size_t>(bytes());
        for (int i = first; i < first + count; ++i)
            checked(c_.rank == 0 ? ncclSend(at(i), n, ncclChar, 1, comm(i), c_.stream)
                                 : ncclRecv(at(i), n, ncclChar, 0, comm(i), c_.stream),
                    "ncclSend or ncclRecv");
        wait_for_stream("NCCL's message");
    }
    void check(int first, int count) { check_bytes(first, count); }
    void release(int first, int count) {
        begin("ncclCommDestroy");
        for (int i = first; i < first + count; ++i) {
#if MPIX_NCCL_HAS_WINDOWS
            if (window(i) != nullptr) checked(ncclCommWindowDeregister(comm(i), window(i)), "ncclCommWindowDeregister");
            window(i) = nullptr;
#endif
            checked(ncclCommDestroy(comm(i)), "ncclCommDestroy");
        }
    }

private:
    char *allocate(std::size_t bytes) override {
        void *p = nullptr;
        checked(ncclMemAlloc(&p, bytes), "ncclMemAlloc");
        return static_cast<char *>(p);
    }
    void give_back(char *p) override { checked(ncclMemFree(p), "ncclMemFree"); }
    ncclComm_t &comm(int i) { return comms_[static_cast<std::size_t>(i)]; }

    const bool windows_;
    std::vector<ncclComm_t> comms_;
#if MPIX_NCCL_HAS_WINDOWS
    ncclWindow_t &window(int i) { return window_[static_cast<std::size_t>(i)]; }
    std::vector<ncclWindow_t> window_;
#endif
};
#endif

void measure_nccl(const pair &c, setup_clock &clock) {
#if MPIX_HAVE_NCCL
    if (c.devices >= 2) {
        setenv("NCCL_NVLS_ENABLE", "0", 1);  // no multicast
        by_nccl plain(c, false);
        clock.measure(plain);
#if MPIX_NCCL_HAS_WINDOWS
        by_nccl windows(c, true);
        clock.measure(windows);
#else
        clock.without("nccl_window");
#endif
        return;
    }
    if (c.rank == 0) std::fprintf(stderr, "bench.setup_gpu: NCCL needs two GPUs, there is one\n");
#else
    if (c.rank == 0) std::fprintf(stderr, "bench.setup_gpu: built without NCCL\n");
#endif
    clock.without("nccl");
    clock.without("nccl_window");
}

}  // namespace

int main(int argc, char **argv) {
    if (without_gpu()) return 77;
    setup_options o;
    if (!read_setup(argc, argv, o)) return 2;
    std::signal(SIGALRM, give_up);
    begin("MPI_Init");
    pair c(argc, argv);
    {
        std::optional<table> t;
        if (c.rank == 0)
            t.emplace(
                "between GPUs: from the init calls to the first bytes; steps per pair; memory per pair, both ranks",
                o.csv, setup_columns, std::string("gpus,load,") + machine_names,
                std::to_string(c.devices) + "," + load() + "," + machine_columns(c.device));
        setup_clock clock(o, MPI_COMM_WORLD, t ? &*t : nullptr);
        by_mpix exported(c, true), by_host(c, false);
        clock.measure(exported);
        clock.measure(by_host);
        measure_nccl(c, clock);
    }
    begin("the end of the program");
    return 0;
}
