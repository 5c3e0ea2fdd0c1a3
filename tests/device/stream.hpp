// SPDX-License-Identifier: BSD-3-Clause
//
// Streams that kernels and MPIX_*_enqueue go to, and graphs captured from them: CUDA's, or threads that play them and
// run the library's own code for these calls.
#ifndef MPIX_TESTS_DEVICE_STREAM_HPP
#define MPIX_TESTS_DEVICE_STREAM_HPP

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "device/enqueue/stream_epochs.cuh"
#include "tests/device/harness.hpp"

namespace device_test {

// A request as both kinds of stream need it.
struct enqueued {
    MPI_Request request;
    MPIX_Prequest handle;
};
using enqueued_list = std::vector<enqueued>;

#ifdef __CUDACC__

inline std::vector<MPI_Request> requests_of(const enqueued_list &list) {
    std::vector<MPI_Request> requests;
    for (const enqueued &e : list) requests.push_back(e.request);
    return requests;
}

class stream {
public:
    enum class kind : int { own, blocking, per_thread, legacy, last };
    static const char *name(kind k) {
        constexpr const char *names[] = {"non-blocking stream", "blocking stream", "per-thread default stream",
                                         "legacy default stream"};
        return names[static_cast<int>(k)];
    }

    explicit stream(kind k) : made_(k == kind::own || k == kind::blocking) {
        if (made_)
            check_cuda(cudaStreamCreateWithFlags(&stream_,
                                                 k == kind::own ? cudaStreamNonBlocking : unsigned{cudaStreamDefault}),
                       "cudaStreamCreateWithFlags");
        if (k == kind::per_thread) stream_ = cudaStreamPerThread;
    }
    ~stream() {
        if (made_) check_cuda(cudaStreamDestroy(stream_), "cudaStreamDestroy");
    }
    stream(const stream &) = delete;
    stream &operator=(const stream &) = delete;

    template <class Body>
    void launch(int blocks, int threads, const Body &body) {
        run_body<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, stream_>>>(body);
        check_cuda(cudaGetLastError(), "kernel launch");
    }
    void start(const enqueued_list &list) {
        if (list.size() == 1)
            must(MPIX_Start_enqueue(list[0].request, stream_), "MPIX_Start_enqueue");
        else
            must(MPIX_Startall_enqueue(static_cast<int>(list.size()), requests_of(list).data(), stream_),
                 "MPIX_Startall_enqueue");
    }
    void ready(const enqueued &send, int low, int high) {
        if (low == high)
            must(MPIX_Pready_enqueue(low, send.request, stream_), "MPIX_Pready_enqueue");
        else
            must(MPIX_Pready_range_enqueue(low, high, send.request, stream_), "MPIX_Pready_range_enqueue");
    }
    void wait(const enqueued_list &list) {
        if (list.size() == 1)
            must(MPIX_Pwait_enqueue(list[0].request, stream_), "MPIX_Pwait_enqueue");
        else
            must(MPIX_Pwaitall_enqueue(static_cast<int>(list.size()), requests_of(list).data(), stream_),
                 "MPIX_Pwaitall_enqueue");
    }
    void synchronise() { check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

    void begin_capture() {
        check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    }
    // What was enqueued since then, as a graph.
    class graph {
    public:
        explicit graph(cudaGraph_t from) {
            check_cuda(cudaGraphInstantiate(&made_, from, 0), "cudaGraphInstantiate");
            check_cuda(cudaGraphDestroy(from), "cudaGraphDestroy");
        }
        ~graph() { check_cuda(cudaGraphExecDestroy(made_), "cudaGraphExecDestroy"); }
        graph(const graph &) = delete;
        graph &operator=(const graph &) = delete;
        cudaGraphExec_t get() const { return made_; }

    private:
        cudaGraphExec_t made_ = nullptr;
    };
    graph end_capture() {
        cudaGraph_t captured = nullptr;
        check_cuda(cudaStreamEndCapture(stream_, &captured), "cudaStreamEndCapture");
        return graph(captured);
    }
    void replay(const graph &g) { check_cuda(cudaGraphLaunch(g.get(), stream_), "cudaGraphLaunch"); }

    cudaStream_t get() const { return stream_; }

private:
    cudaStream_t stream_ = nullptr;
    const bool made_;
};

#else

class stream {
public:
    using work = std::function<void()>;
    using graph = std::vector<work>;
    enum class kind : int { own, last };
    static const char *name(kind) { return "a thread"; }
    static constexpr int threads = 2;  // of a block

    explicit stream(kind) : worker_([this] { run(); }) {}
    ~stream() {
        {
            const std::lock_guard lock(mutex_);
            over_ = true;
        }
        changed_.notify_all();
        worker_.join();
    }
    stream(const stream &) = delete;
    stream &operator=(const stream &) = delete;

    template <class Body>
    void launch(int blocks, int, const Body &body) {
        enqueue([=] {
            mpix::host_launch(blocks, threads,
                              [&](const mpix::host_group &block) { body(block, block.group_rank(), blocks); });
        });
    }
    void start(const enqueued_list &list) {
        by_block([handles = handles_of(list)](const mpix::host_group &block) {
            mpix::gpu::start_all_in_order(block, static_cast<int>(handles.size()), handles.data());
        });
    }
    void ready(const enqueued &send, int low, int high) {
        by_block([=](const mpix::host_group &block) { mpix::pready_range(block, low, high, send.handle); });
    }
    void wait(const enqueued_list &list) {
        by_block([handles = handles_of(list)](const mpix::host_group &block) {
            mpix::gpu::wait_for_all_in_order(block, static_cast<int>(handles.size()), handles.data());
        });
    }
    void synchronise() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
    }

    void begin_capture() { capturing_ = true; }
    graph end_capture() {
        capturing_ = false;
        return std::exchange(captured_, {});
    }
    void replay(const graph &g) {
        for (const work &w : g) enqueue(w);
    }

private:
    static std::vector<MPIX_Prequest> handles_of(const enqueued_list &list) {
        std::vector<MPIX_Prequest> handles;
        for (const enqueued &e : list) handles.push_back(e.handle);
        return handles;
    }
    template <class Body>
    void by_block(const Body &body) {
        enqueue([body] { mpix::host_launch(1, threads, body); });
    }
    void enqueue(work w) {
        if (capturing_) return captured_.push_back(std::move(w));
        const std::lock_guard lock(mutex_);
        queue_.push_back(std::move(w));
        changed_.notify_all();
    }
    void run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return over_ || !queue_.empty(); });
            if (queue_.empty()) return;
            const work next = std::move(queue_.front());
            queue_.pop_front();
            busy_ = true;
            lock.unlock();
            next();
            lock.lock();
            busy_ = false;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<work> queue_;
    bool busy_ = false, over_ = false, capturing_ = false;
    graph captured_;
    std::thread worker_;  // the last one, since it uses the others
};

#endif

}  // namespace device_test

#endif  // MPIX_TESTS_DEVICE_STREAM_HPP
