// SPDX-License-Identifier: BSD-3-Clause
//
// Overlap that pays: from the first partition ready to the arrival of the whole message, for 64 partitions that a
// compute kernel finishes one after the other, against one send after the kernel. The kernel is the same in all ways:
// 64 blocks, each of which writes a partition and computes until it is its time to end. The ways:
//
//   mpix        each block marks its partition ready when it has finished it
//   one pready  the host waits for the kernel and then marks the whole message, one partition
//   one copy    cudaMemcpyAsync into mapped memory of the peer and a kernel that sets a flag, behind the kernel in its
//               stream
//
// The clocks of two GPUs differ, so all is measured at the sender: when the receiver, a waiting kernel, has the whole
// message it answers with a partition of 8 bytes, for which a kernel waits at the sender. What the answer takes, half
// of a round trip of 8 bytes by the same kernels, is subtracted. Of each figure the median is shown.
//
//   compute_us      what the last block is told to compute; kernel_us what it took, longer where the partitions are not
//                   written by then
//   *_us            from the first partition ready to all arrived
//   *_tail_us       from the last partition ready to all arrived
//   gain            the better one of the two single sends, by mpix
//   perceived       the message's bytes by mpix's tail, GB/s
//   overhead_us     how much longer the kernel takes because its blocks move the partitions
//   availability    of the better single send's tail, the part that mpix does not need: 1 - tail / tail
//   clock_ns        the smallest step of the clock
//   early_bird      the part of the partitions that had left (pready had returned) when the last one became ready
#include <cooperative_groups.h>

#include <cstdlib>
#include <mpix/device.cuh>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/command_line.hpp"
#include "tests/bench/pair.cuh"
#include "tests/bench/table.hpp"

namespace cg = cooperative_groups;
using namespace bench;

namespace {

constexpr int partitions = 64;
constexpr unsigned threads = 512;
constexpr uint64_t least_message = 64 << 10, most_message = 64 << 20;

struct options {
    std::vector<double> compute_us = {10, 30, 100, 300, 1000, 3000, 10000};
    uint64_t least = least_message, most = most_message;
    int step = 4, samples = 11;
    double spread = 1, noise = 0.04;
    const char *csv = nullptr;
};

bool parse(int argc, char **argv, options &o) {
    command_line line(
        "mpirun -n 2 ",
        "[--compute US]... [--min BYTES] [--max BYTES] [--step FACTOR] [--samples N]\n"
        "           [--spread PART] [--noise PART] [--csv FILE]\n"
        "BYTES from 64 KiB to 64 MiB, powers of two. The blocks end at even distances in the last PART (0 to 1,\n"
        "default 1) of the computing time; noise: each of them up to PART of its time later, at random (default\n"
        "0.04). --csv -: CSV instead of text on the standard output.");
    line.each("compute", o.compute_us);
    line.value("min", o.least);
    line.value("max", o.most);
    line.value("step", o.step);
    line.value("samples", o.samples);
    line.value("spread", o.spread);
    line.value("noise", o.noise);
    line.value("csv", o.csv);
    return line.read(argc, argv, [&o] {
        for (const double us : o.compute_us)
            if (us < 0 || us > 1e6) return false;
        return power_of_two(o.least, least_message, most_message) &&
               power_of_two(o.most, least_message, most_message) && power_of_two(o.step, 2, 1 << 30) &&
               o.samples >= 1 && o.spread >= 0 && o.spread <= 1 && o.noise >= 0 && o.noise <= 10;
    });
}

// ---- the sender's kernels --------------------------------------------------------------------------------

struct noted {
    uint64_t begin, ready, left;
};

// When each block ends: nanoseconds after its begin.
struct plan {
    uint64_t ns[partitions];
};

plan make_plan(const options &o, double us, uint64_t key) {
    plan p{};
    for (int b = 0; b < partitions; ++b) {
        uint64_t x = (key * partitions + static_cast<uint64_t>(b)) * 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x ^= x >> 31;
        const double late = static_cast<double>(x >> 40) / static_cast<double>(1 << 24);
        const double end = 1 - o.spread + o.spread * (b + 1) / partitions;
        p.ns[b] = static_cast<uint64_t>(us * 1e3 * end * (1 + o.noise * late));
    }
    return p;
}

// `send`: null where the blocks mark nothing.
__global__ void __launch_bounds__(threads, 1)
    compute(uint64_t *out, uint64_t words, uint64_t key, const plan p, MPIX_Prequest send, noted *note, times *result) {
    const auto block = cg::this_thread_block();
    const uint64_t begin = now_ns(), first = blockIdx.x * words;
    for (uint64_t i = threadIdx.x; i < words; i += blockDim.x) out[first + i] = payload_word(key, first + i);
    float x = 1;
    do
        for (int i = 0; i < 64; ++i) x = x * 0.5f + 0.25f;
    while (now_ns() - begin < p.ns[blockIdx.x]);
    block.sync();
    noted n{begin, now_ns(), 0};
    if (x < 0) n.begin = 0;  // never: x stays between 0.5 and 1
    bool good = true;
    if (send != nullptr) good = mpix::pready(block, static_cast<int>(blockIdx.x), send) == MPI_SUCCESS;
    n.left = now_ns();
    if (threadIdx.x != 0) return;
    note[blockIdx.x] = n;
    if (!good) atomicAdd(&result->errors, 1ull);
}

// One thread: the answer has come.
__global__ void hear(MPIX_Prequest answer, times *result) {
    if (mpix::wait_arrived(mpix::this_thread(), answer, 0, patience_ns) != MPI_SUCCESS)
        atomicAdd(&result->errors, 1ull);
    result->stop = now_ns();
}

// What a partition of 8 bytes takes to the receiver and back.
__global__ void call(MPIX_Prequest send, MPIX_Prequest answer, times *result) {
    const auto self = mpix::this_thread();
    result->start = now_ns();
    if (mpix::pready(self, 0, send) != MPI_SUCCESS || mpix::wait_arrived(self, answer, 0, patience_ns) != MPI_SUCCESS)
        atomicAdd(&result->errors, 1ull);
    result->stop = now_ns();
}

__global__ void raise_flag(uint64_t *flag, uint64_t value) {
    asm volatile("fence.acq_rel.sys;\n\tst.relaxed.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
}

// The smallest step of the clock.
__global__ void clock_step(uint64_t *step) {
    uint64_t least = ~uint64_t{0}, before = now_ns();
    for (int i = 0; i < 100'000; ++i) {
        const uint64_t now = now_ns();
        if (now != before) least = min(least, now - before);
        before = now;
    }
    *step = least;
}

// ---- the receiver's ----------------------------------------------------------------------------------------

// The whole message, by mpix or, without a request, by a flag.
__global__ void __launch_bounds__(threads, 1)
    reply(MPIX_Prequest receive, const uint64_t *flag, uint64_t value, MPIX_Prequest answer, times *result) {
    const auto block = cg::this_thread_block();
    bool good = true;
    if (receive != nullptr)
        good = mpix::wait_arrived(block, receive, 0, patience_ns) == MPI_SUCCESS;
    else if (threadIdx.x == 0)
        good = poll_flag(flag, value);
    if (threadIdx.x != 0) return;
    good = good && mpix::pready(mpix::this_thread(), 0, answer) == MPI_SUCCESS;
    if (!good) atomicAdd(&result->errors, 1ull);
}

// ---- one message size ----------------------------------------------------------------------------------------

// The sending end at rank 0, the receiving end at rank 1; a handle for kernels.
class one_way {
public:
    one_way(const pair &c, int from, void *buffer, int senders, int receivers, uint64_t bytes, int tag, bool exported) {
        const bool sends = c.rank == from;
        const int n = sends ? senders : receivers;
        const auto each = static_cast<MPI_Count>(bytes / static_cast<uint64_t>(n));
        if (sends)
            must(MPI_Psend_init(buffer, n, each, MPI_BYTE, c.peer, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
                 "MPI_Psend_init");
        else
            must(MPI_Precv_init(buffer, n, each, MPI_BYTE, c.peer, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
                 "MPI_Precv_init");
        if (exported || !sends) must(MPIX_Prequest_create(request, MPI_INFO_NULL, &handle), "MPIX_Prequest_create");
    }
    ~one_way() {
        if (handle != MPIX_PREQUEST_NULL) must(MPIX_Prequest_free(&handle), "MPIX_Prequest_free");
        must(MPI_Request_free(&request), "MPI_Request_free");
    }
    one_way(const one_way &) = delete;
    one_way &operator=(const one_way &) = delete;

    MPI_Request request = MPI_REQUEST_NULL;
    MPIX_Prequest handle = MPIX_PREQUEST_NULL;
};

enum class way { mpix, one_pready, one_copy };

struct figures {
    double all_us, tail_us, kernel_us, early;
};

class message {
public:
    message(pair &c, const options &o, uint64_t bytes)
        : c_(c), o_(o), bytes_(bytes), mapped_(c.peer, bytes + 256), memory_(bytes) {
        many_.emplace(c, 0, memory_.data, partitions, 1, bytes, 1, true);
        one_.emplace(c, 0, memory_.data, 1, 1, bytes, 2, false);
        small_.emplace(c, 0, words_.data, 1, 1, 8, 3, true);
        answer_.emplace(c, 1, words_.data + 8, 1, 1, 8, 4, true);
    }
    ~message() {
        for (auto *r : {&many_, &one_, &small_, &answer_}) r->reset();
        MPI_Barrier(MPI_COMM_WORLD);  // the peer has let go of the memory
    }

    // Half of a round trip of 8 bytes, in microseconds: the mean, since the clock may be coarse.
    double answer_us() {
        constexpr int trips = 100;
        double sum = 0;
        for (int i = 0; i <= trips; ++i) {
            begin(&*small_);
            if (c_.rank == 1)
                reply<<<1, threads, 0, c_.stream>>>(small_->handle, nullptr, 0, answer_->handle, c_.result);
            MPI_Barrier(MPI_COMM_WORLD);
            if (c_.rank == 0) {
                usleep(50);  // the waiting kernel runs now
                call<<<1, 1, 0, c_.stream>>>(small_->handle, answer_->handle, c_.result);
            }
            check(cudaGetLastError(), "call");
            const times t = c_.outcome("call");
            end(&*small_);
            if (i > 0) sum += static_cast<double>(t.stop - t.start) * 1e-3;
        }
        return sum / trips / 2;
    }

    uint64_t clock_ns() {
        clock_step<<<1, 1, 0, c_.stream>>>(reinterpret_cast<uint64_t *>(notes_.data));
        check(cudaGetLastError(), "clock_step");
        c_.finish("clock_step");
        uint64_t step = 0;
        check(cudaMemcpyAsync(&step, notes_.data, sizeof step, cudaMemcpyDeviceToHost, c_.stream), "cudaMemcpyAsync");
        c_.finish("clock_step");
        return step;
    }

    figures measure(way by, double us, double answer_us) {
        std::vector<double> all, tail, kernel, early;
        for (int s = 0; s <= o_.samples; ++s) {
            const figures f = sample(by, make_plan(o_, us, static_cast<uint64_t>(s)));  // the same for all ways
            if (s == 0) continue;                                                       // warms up
            all.push_back(f.all_us - answer_us);
            tail.push_back(f.tail_us - answer_us);
            kernel.push_back(f.kernel_us);
            early.push_back(f.early);
        }
        return {median(all), median(tail), median(kernel), median(early)};
    }

    std::string path() const {
        char text[64] = "";
        must(MPIX_Request_path(many_->request, text, sizeof text), "MPIX_Request_path");
        return text;
    }

private:
    struct device_memory {
        explicit device_memory(uint64_t bytes) {
            check(cudaMalloc(&data, bytes), "cudaMalloc");
            check(cudaMemset(data, 0, bytes), "cudaMemset");
            check(cudaDeviceSynchronize(), "cudaMemset");
        }
        ~device_memory() { check(cudaFree(data), "cudaFree"); }
        device_memory(const device_memory &) = delete;
        device_memory &operator=(const device_memory &) = delete;
        char *data = nullptr;
    };
    struct stream {
        stream() { check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
        ~stream() { check(cudaStreamDestroy(handle), "cudaStreamDestroy"); }
        stream(const stream &) = delete;
        stream &operator=(const stream &) = delete;
        cudaStream_t handle = nullptr;
    };

    // The answer's request and that of the data, where it goes by mpix: both sides are started, so that nothing is
    // deferred.
    void begin(one_way *data) {
        check(cudaMemsetAsync(c_.result, 0, sizeof(times), c_.stream), "cudaMemsetAsync");
        c_.finish("cudaMemsetAsync");
        MPI_Request all[2] = {answer_->request, data != nullptr ? data->request : MPI_REQUEST_NULL};
        must(MPI_Startall(data != nullptr ? 2 : 1, all), "MPI_Startall");
        must(MPIX_Pbuf_prepare_all(data != nullptr ? 2 : 1, all), "MPIX_Pbuf_prepare_all");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    void end(one_way *data) {
        MPI_Request all[2] = {answer_->request, data != nullptr ? data->request : MPI_REQUEST_NULL};
        must(MPI_Waitall(data != nullptr ? 2 : 1, all, MPI_STATUSES_IGNORE), "MPI_Waitall");
    }

    figures sample(way by, const plan &p) {
        ++number_;
        one_way *const data = by == way::mpix ? &*many_ : by == way::one_pready ? &*one_ : nullptr;
        char *const in = by == way::one_copy ? mapped_.own() : memory_.data;
        auto *const flag = reinterpret_cast<uint64_t *>(mapped_.own() + bytes_);
        if (c_.rank == 1) check(cudaMemsetAsync(in, 0x5a, bytes_, c_.stream), "cudaMemsetAsync");
        begin(data);
        if (c_.rank == 1) {
            reply<<<1, threads, 0, c_.stream>>>(data != nullptr ? data->handle : nullptr, flag, number_,
                                                answer_->handle, c_.result);
            check(cudaGetLastError(), "reply");
        }
        MPI_Barrier(MPI_COMM_WORLD);
        figures f{};
        if (c_.rank == 0)
            f = send(by, p, data);
        else {
            c_.finish("reply");
            verify<<<264, 512, 0, c_.stream>>>(reinterpret_cast<const uint64_t *>(in), bytes_ / 8, number_, c_.result);
            check(cudaGetLastError(), "verify");
            c_.outcome("verify");
        }
        end(data);
        MPI_Barrier(MPI_COMM_WORLD);
        return f;
    }

    figures send(way by, const plan &p, one_way *data) {
        hear<<<1, 1, 0, listener_.handle>>>(answer_->handle, c_.result);
        check(cudaGetLastError(), "hear");
        usleep(50);  // both waiting kernels run now
        auto *const out = reinterpret_cast<uint64_t *>(memory_.data);
        auto *const note = reinterpret_cast<noted *>(notes_.data);
        compute<<<partitions, threads, 0, c_.stream>>>(out, bytes_ / 8 / partitions, number_, p,
                                                       by == way::mpix ? data->handle : nullptr, note, c_.result);
        check(cudaGetLastError(), "compute");
        if (by == way::one_pready) {
            check(cudaStreamSynchronize(c_.stream), "compute");
            must(MPI_Pready(0, data->request), "MPI_Pready");
        } else if (by == way::one_copy) {
            check(cudaMemcpyAsync(mapped_.peer(), memory_.data, bytes_, cudaMemcpyDeviceToDevice, c_.stream),
                  "cudaMemcpyAsync");
            raise_flag<<<1, 1, 0, c_.stream>>>(reinterpret_cast<uint64_t *>(mapped_.peer() + bytes_), number_);
            check(cudaGetLastError(), "raise_flag");
        }
        c_.finish("hear", listener_.handle);
        const times t = c_.outcome("compute");
        noted all[partitions];
        check(cudaMemcpyAsync(all, note, sizeof all, cudaMemcpyDeviceToHost, c_.stream), "cudaMemcpyAsync");
        c_.finish("cudaMemcpyAsync");
        uint64_t begin = all[0].begin, first = all[0].ready, last = 0, left = 0;
        for (const noted &n : all) {
            begin = std::min(begin, n.begin);
            first = std::min(first, n.ready);
            last = std::max(last, n.ready);
            left = std::max(left, n.left);
        }
        int early = 0;
        for (const noted &n : all) early += n.left <= last;
        const auto span = [](uint64_t from, uint64_t to) { return static_cast<double>(to - from) * 1e-3; };
        return {span(first, t.stop), span(last, t.stop), span(begin, left), static_cast<double>(early) / partitions};
    }

    pair &c_;
    const options &o_;
    uint64_t bytes_, number_ = 0;
    mapped_memory mapped_;  // the message and a flag
    device_memory memory_, words_{16}, notes_{sizeof(noted) * partitions};
    stream listener_;
    std::optional<one_way> many_, one_, small_, answer_;
};

}  // namespace

int main(int argc, char **argv) {
    // Kernels are launched while others wait: their code must be there by then.
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    options o;
    if (without_gpu()) return 77;
    if (!parse(argc, argv, o)) return 2;
    pair c(argc, argv);
    std::optional<table> t;
    if (c.rank == 0)
        t.emplace("from the first of 64 partitions ready to all arrived, against one send after the kernel", o.csv,
                  std::vector<column>{"size", "compute_us", "kernel_us", "mpix_us", "one_pready_us", "one_copy_us",
                                      "gain", "mpix_tail_us", "one_pready_tail_us", "one_copy_tail_us",
                                      "perceived_GB/s", "overhead_us", "availability", "early_bird", "answer_us",
                                      "clock_ns", "spread", "noise", "path"},
                  machine_names, machine_columns(c.device));
    for (uint64_t bytes = o.least; bytes <= o.most; bytes *= static_cast<uint64_t>(o.step)) {
        message m(c, o, bytes);
        const double answer_us = m.answer_us();
        const uint64_t clock_ns = m.clock_ns();
        for (const double us : o.compute_us) {
            const figures mpix = m.measure(way::mpix, us, answer_us);
            const figures pready = m.measure(way::one_pready, us, answer_us);
            const figures copy = m.measure(way::one_copy, us, answer_us);
            if (!t) continue;
            const figures &better = pready.all_us < copy.all_us ? pready : copy;
            t->row({cell(bytes), cell(us, 0), cell(copy.kernel_us, 2), cell(mpix.all_us, 2), cell(pready.all_us, 2),
                    cell(copy.all_us, 2), cell(better.all_us / mpix.all_us), cell(mpix.tail_us, 2),
                    cell(pready.tail_us, 2), cell(copy.tail_us, 2),
                    cell(static_cast<double>(bytes) / mpix.tail_us * 1e-3, 1), cell(mpix.kernel_us - copy.kernel_us, 2),
                    cell(1 - mpix.tail_us / better.tail_us), cell(mpix.early), cell(answer_us, 2), cell(clock_ns),
                    cell(o.spread, 2), cell(o.noise, 2), m.path()});
        }
    }
    return 0;
}
