// SPDX-License-Identifier: BSD-3-Clause
//
// Epochs in the order of a stream: enqueued one by one and replayed from graphs, on streams of each kind, in turn with
// epochs of the host and of kernels, and with a peer that runs its epochs in another way. Data are fresh in every epoch;
// kernels of the test check all bytes.
#include "tests/device/stream.hpp"
#include "tests/device/workload.hpp"

using namespace device_test;

namespace {

// Not block.sync() of cooperative groups, by which run_epochs ends in an illegal instruction (docs/limitations.md).
template <class Block>
DEVICE_FN void synchronise(const Block &block) {
#ifdef __CUDA_ARCH__
    (void)block;
    __syncthreads();
#else
    block.sync();
#endif
}

// The test's own kernels. A graph gives them the same arguments in every replay, so the number of the epoch lies in
// memory: `*step`, which all ranks count alike.
struct part_of_epoch {
    workload work;
    std::uint64_t *step;
    std::uint64_t seed;
    int rank, peer;

    DEVICE_FN port now(int i, std::uint64_t epoch) const {
        port p = work.ports[i];
        p.epoch = epoch;
        p.out_key = message_key(seed, rank, i, epoch);
        p.in_key = message_key(seed, peer, i, epoch);
        return p;
    }
    template <class Block>
    DEVICE_FN void fill(const Block &block, int index, int blocks, std::uint64_t epoch) const {
        for (int i = 0; i < work.count; ++i) {
            const port p = now(i, epoch);
            for (int part = index; part < p.sends; part += blocks) p.fill(block, part);
        }
    }
    // And poisons what it has seen.
    template <class Block>
    DEVICE_FN void verify(const Block &block, int index, int blocks, std::uint64_t epoch) const {
        for (int i = 0; i < work.count; ++i) {
            const port p = now(i, epoch);
            for (int part = index; part < p.receives; part += blocks) {
                p.verify(block, part);
                synchronise(block);
                const std::uint64_t bytes = p.receive_bytes(),
                                    step_by = static_cast<std::uint64_t>(block.num_threads());
                for (std::uint64_t at = static_cast<std::uint64_t>(block.thread_rank()); at < bytes; at += step_by)
                    p.in[static_cast<std::uint64_t>(part) * bytes + at] = static_cast<char>(exchange::fresh);
            }
        }
    }
};

struct fill_all : part_of_epoch {
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int index, int blocks) const {
        fill(block, index, blocks, *step);
    }
};
struct verify_all : part_of_epoch {
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int index, int blocks) const {
        verify(block, index, blocks, *step);
    }
};
// The next epoch. One block.
struct count_epoch : part_of_epoch {
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        if (block.thread_rank() == 0) ++*step;
    }
};

// A kernel of one block that runs several epochs, and has waited for the last one when it ends.
struct run_epochs : part_of_epoch {
    MPIX_Prequest requests[2 * most_ports];
    int epochs;
    bool starts_first;  // the first one, too; otherwise the host has started it

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        const int n = 2 * work.count;
        std::uint64_t epoch = *step;
        for (int k = 0; k < epochs; ++k, ++epoch) {
            if (k != 0 || starts_first) expect(block, mpix::start(block, n, requests), 1);
            fill(block, 0, 1, epoch);
            for (int i = 0; i < work.count; ++i)
                expect(block, mpix::pready_range(block, 0, work.ports[i].sends - 1, work.ports[i].send), 2);
            expect(block, mpix::wait(block, n, requests, patience_ns), 3);
            verify(block, 0, 1, epoch);
            synchronise(block);
        }
        if (block.thread_rank() == 0) *step = epoch;
    }
    template <class Block>
    DEVICE_FN void expect(const Block &block, int code, int what) const {
        if (block.thread_rank() == 0) work.ports[0].expect(what, MPI_SUCCESS, code);
    }
};

// Requests in both directions, and the epochs that they have been through.
class run {
public:
    run(session &s, std::initializer_list<shape> shapes) : s_(s) {
        for (const shape &one : shapes)
            exchanges_.push_back(std::make_unique<exchange>(s, one, static_cast<int>(exchanges_.size())));
        for (const auto &x : exchanges_) {
            sends_.push_back({x->requests[0], x->send});
            all_.push_back({x->requests[1], x->receive});
            all_.push_back(sends_.back());
            for (const int which : {1, 0}) handles_.push_back(x->requests[which]);
            kernels_.work.ports[kernels_.work.count++] = x->view();
        }
        step_ = static_cast<std::uint64_t *>(s.device->allocate(sizeof(std::uint64_t)));
        s.device->set(step_, 0, sizeof(std::uint64_t));
        kernels_.step = step_;
        kernels_.seed = s.seed;
        kernels_.rank = s.rank;
        kernels_.peer = s.peer;
    }
    ~run() {
        for (auto &x : exchanges_) x->check_guards();
        s_.device->release(step_);
    }
    run(const run &) = delete;
    run &operator=(const run &) = delete;

    void start_by_host() { must(MPI_Startall(count(), handles_.data()), "MPI_Startall"); }
    void wait_by_host() {
        std::vector<MPI_Status> statuses(handles_.size());
        must(MPI_Waitall(count(), handles_.data(), statuses.data()), "MPI_Waitall");
        for (std::size_t i = 0; i < exchanges_.size(); ++i) {
            int bytes = -1;
            MPI_Get_count(&statuses[2 * i], MPI_BYTE, &bytes);
            REQUIRE(static_cast<std::uint64_t>(bytes) == kernels_.work.ports[i].bytes &&
                        statuses[2 * i].MPI_SOURCE == s_.peer,
                    "%s: the status of receive %d has %d bytes from %d", s_.what.c_str(), static_cast<int>(i), bytes,
                    statuses[2 * i].MPI_SOURCE);
        }
    }

    // One epoch in the stream: `way` says how it is split into calls.
    void enqueue_epoch(stream &to, unsigned way) {
        if (way % 3 == 0) {
            to.start(all_);
        } else {
            for (const enqueued &one : all_) to.start({one});
        }
        to.launch(blocks, threads, fill_all{kernels_});
        for (std::size_t i = 0; i < sends_.size(); ++i) {
            const int n = kernels_.work.ports[i].sends, range = way % 2 == 0 ? n : 1 + static_cast<int>(way % 3);
            for (int low = 0; low < n; low += range) to.ready(sends_[i], low, std::min(low + range, n) - 1);
        }
        if (way % 3 != 1) {
            to.wait(all_);
        } else {
            for (const enqueued &one : all_) to.wait({one});
        }
        to.launch(blocks, threads, verify_all{kernels_});
        to.launch(1, 32, count_epoch{kernels_});
    }
    // Epochs that one kernel runs. `starts_first`: the host has not just started one.
    void enqueue_kernel(stream &to, int epochs, bool starts_first) {
        run_epochs kernel{kernels_, {}, epochs, starts_first};
        for (std::size_t i = 0; i < all_.size(); ++i) kernel.requests[i] = all_[i].handle;
        to.launch(1, threads, kernel);
    }
    // An epoch of the host alone, its partitions marked ready by the host.
    void epoch_by_host(stream &to) {
        to.launch(blocks, threads, fill_all{kernels_});
        to.synchronise();
        start_by_host();
        for (std::size_t i = 0; i < sends_.size(); ++i)
            must(MPI_Pready_range(0, kernels_.work.ports[i].sends - 1, sends_[i].request), "MPI_Pready_range");
        wait_by_host();
        to.launch(blocks, threads, verify_all{kernels_});
        to.launch(1, 32, count_epoch{kernels_});
        settle(to);
    }
    void settle(stream &by) {
        by.synchronise();
        s_.settle();
    }

    const enqueued_list &all() const { return all_; }
    const part_of_epoch &kernels() const { return kernels_; }

    static constexpr int blocks = executor::is_gpu ? 5 : 1, threads = executor::is_gpu ? 128 : 2;

private:
    int count() const { return static_cast<int>(handles_.size()); }

    session &s_;
    std::vector<std::unique_ptr<exchange>> exchanges_;
    enqueued_list sends_, all_;
    std::vector<MPI_Request> handles_;  // as all_
    part_of_epoch kernels_{};
    std::uint64_t *step_ = nullptr;
};

void one_by_one(session &s, run &r, stream &to, int epochs) {
    s.what = "one by one";
    for (int activation = 0; activation < 2; ++activation) {
        r.start_by_host();
        for (int e = 0; e < epochs; ++e) r.enqueue_epoch(to, static_cast<unsigned>(e + activation));
        r.settle(to);
        r.wait_by_host();
    }
}

// Captured before anything is started; replayed in two activations.
void replayed(session &s, run &r, stream &capturing, stream &to, unsigned way, long times) {
    s.what = "replayed";
    capturing.begin_capture();
    r.enqueue_epoch(capturing, way);
    r.enqueue_epoch(capturing, way + 1);
    const auto graph = capturing.end_capture();
    for (const long replays : {times, 2l}) {
        r.start_by_host();
        for (long i = 0; i < replays; ++i) to.replay(graph);
        r.settle(to);
        r.wait_by_host();
    }
}

// Epochs of the host, of kernels and of the stream take turns, in one activation and in several.
void mixed(session &s, run &r, stream &to) {
    s.what = "in turn with epochs of the host and of kernels";
    r.epoch_by_host(to);
    r.start_by_host();
    r.enqueue_kernel(to, 3, false);
    for (unsigned e = 0; e < 3; ++e) r.enqueue_epoch(to, e);
    r.enqueue_kernel(to, 2, true);
    r.enqueue_epoch(to, 1);
    r.settle(to);
    r.wait_by_host();
    r.epoch_by_host(to);
    // Activations of one epoch.
    for (const bool by_stream : {false, true}) {
        r.start_by_host();
        if (by_stream)
            r.enqueue_epoch(to, 2);
        else
            r.enqueue_kernel(to, 1, false);
        r.settle(to);
        r.wait_by_host();
    }
    // One side's epochs are the stream's, the other's are the host's.
    if (s.alone()) return;
    for (int side = 0; side < 2; ++side) {
        const unsigned epochs = 4;
        if (s.rank == side) {
            r.start_by_host();
            for (unsigned e = 0; e < epochs; ++e) r.enqueue_epoch(to, e);
            r.settle(to);
            r.wait_by_host();
        } else {
            for (unsigned e = 0; e < epochs; ++e) r.epoch_by_host(to);
        }
    }
}

// Each of two processes waits before it sends, in another stream; and one waits before it sends, in the same stream,
// for what the other sends before it waits.
void opposite_orders(session &s) {
    s.what = "opposite orders";
    run r(s, {{.sends = 4, .receives = 4, .bytes = 4096}});
    const enqueued receive = r.all()[0], send = r.all()[1];
    stream first(stream::kind::own), second(stream::kind::own);
    r.start_by_host();
    for (unsigned e = 0; e < 6; ++e) {
        const bool two_streams = e % 2 == 0, waits_first = s.alone() ? two_streams : (s.rank == 0) == (e / 2 % 2 == 0);
        stream &sender = two_streams ? second : first;
        first.start({receive, send});
        first.launch(r.blocks, r.threads, fill_all{r.kernels()});
        first.synchronise();
        if (two_streams || waits_first) {
            if (two_streams || !s.alone()) first.wait({receive});
            sender.ready(send, 0, 3);
        } else {
            sender.ready(send, 0, 3);
            first.wait({receive});
        }
        sender.synchronise();
        first.wait({receive, send});
        first.launch(r.blocks, r.threads, verify_all{r.kernels()});
        first.launch(1, 32, count_epoch{r.kernels()});
        r.settle(first);
    }
    r.wait_by_host();
}

// Errors in the stream are raised by the host's completion call.
void errors(session &s) {
    s.what = "errors";
    exchange x(s, {}, 50);
    stream to(stream::kind::own);
    const enqueued send{x.requests[0], x.send}, receive{x.requests[1], x.receive};
#ifdef __CUDACC__
    for (const MPI_Request r : {send.request, receive.request})
        must_refuse(MPIX_Start_enqueue(r, to.get()), MPI_ERR_REQUEST, "MPIX_Start_enqueue before MPI_Start");
    must_refuse(MPIX_Pready_enqueue(0, send.request, to.get()), MPI_ERR_REQUEST,
                "MPIX_Pready_enqueue before MPI_Start");
    to.wait({send, receive});  // as of any inactive request
    to.synchronise();
#endif
    x.start();
    to.start({send, receive});
    to.ready(send, 0, 3);
    to.ready(send, 2, 2);  // is ready already
    to.wait({send, receive});
    to.start({send, receive});
    to.start({receive});  // has not been waited for
    to.ready(send, 0, 3);
    to.wait({receive, send});
    to.synchronise();
    for (const int which : {0, 1}) {
        const int code = MPI_Wait(&x.requests[which], MPI_STATUS_IGNORE);
        must_refuse(code, which == 0 ? MPI_ERR_ARG : MPI_ERR_REQUEST, "MPI_Wait");
        const std::string said = error_name(code), words = which == 0 ? "pready" : "epoch 2: start";
        REQUIRE(said.find(words) != std::string::npos, "the error is \"%s\"", said.c_str());
    }
    x.start();
    to.start({send, receive});
    to.ready(send, 0, 3);
    to.wait({send, receive});
    to.synchronise();
    x.wait();
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device enqueued epochs");
    // Two epochs each. Ranks that share a GPU take turns on it.
    const long usual = !executor::is_gpu ? 20 : s.size > executor::devices() ? 500 : 100000;
    const long replays = s.epochs != 0 ? s.epochs : s.quick ? 5 : usual;
    errors(s);
    opposite_orders(s);
    {
        run r(s, {{.sends = 16, .receives = 16, .bytes = 16 * 8},
                  {.sends = 7, .receives = 5, .bytes = 35 * 100, .send_skew = 4},
                  {.sends = 4, .receives = 6, .bytes = 12 * 4096, .sole_waiter = true},
                  {.sends = 3, .receives = 3, .bytes = 3 * 65537, .receive_skew = 8}});
        stream capturing(stream::kind::own);
        for (int k = 0; k < static_cast<int>(stream::kind::last); ++k) {
            stream to(static_cast<stream::kind>(k));
            const std::string name = stream::name(static_cast<stream::kind>(k));
            one_by_one(s, r, to, s.quick ? 3 : 6);
            replayed(s, r, capturing, to, static_cast<unsigned>(k), s.quick ? 1 : executor::is_gpu ? 50 : 3);
            mixed(s, r, to);
            if (s.rank == 0) std::printf("%s: right\n", name.c_str());
        }
    }
    {
        run small(s, {{.sends = 16, .receives = 16, .bytes = 16 * 8}});
        stream to(stream::kind::own);
        replayed(s, small, to, to, 0, replays);
    }
    return s.finish();
}
