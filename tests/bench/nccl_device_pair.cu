// SPDX-License-Identifier: BSD-3-Clause
#include "tests/bench/nccl_device_pair.cuh"

// A toolkit's own directory is no system directory to the host's compiler.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <nccl_device.h>
#pragma GCC diagnostic pop

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <thread>

#include "tests/bench/rival_release.hpp"

namespace bench {
namespace {

constexpr uint64_t trial_patience_ns = 2'000'000'000u;
constexpr auto setup_patience = std::chrono::seconds(30);

// As a kernel's argument.
struct nccl_ends {
    ncclDevComm comm;
    ncclWindow_t in;  // of both ranks
    char *out;
    uint64_t bytes;
};

__device__ inline ncclCoopThread coop_of(const lone_thread &) { return {}; }
__device__ inline ncclCoopWarp coop_of(const whole_warp &) { return {}; }
__device__ inline ncclCoopCta coop_of(const whole_block &) { return {}; }

// Every message is one phase of the barrier. On trial nothing waits for what does not come: NCCL's wait has no time
// limit.
template <bool Trial, class Coop>
struct nccl_port {
    ncclLsaBarrierSession<Coop> &barrier;
    char *peer_in;
    const char *out;
    uint64_t bytes;

    // The release covers the stores of the group, with which arrive() synchronises; it pairs with the acquire in await.
    template <class Group>
    __device__ void put(const Group &group, int i) const {
        const uint64_t at = static_cast<uint64_t>(i) * bytes;
        if (bytes % sizeof(uint4) == 0)
            copy_by_hand<uint4>(group, peer_in + at, out + at, bytes);
        else
            copy_by_hand<uint64_t>(group, peer_in + at, out + at, bytes);
        barrier.arrive(barrier.coop, cuda::memory_order_release);
        wait(group, cuda::memory_order_relaxed);  // if it fails, so does the next await
    }

    template <class Group>
    __device__ bool await(const Group &group, int) const {
        barrier.arrive(barrier.coop, cuda::memory_order_relaxed);
        return wait(group, cuda::memory_order_acquire);
    }

private:
    template <class Group>
    __device__ bool wait(const Group &group, cuda::memory_order order) const {
        if constexpr (Trial)
            if (!all_agree(group, group.thread_rank() != 0 || peer_arrives())) return false;
        barrier.wait(barrier.coop, order);
        return true;
    }
    __device__ bool peer_arrives() const {
        const cuda::atomic_ref<uint32_t> inbox(*barrier.ucInbox(barrier.team.rank, 1 - barrier.team.rank));
        const uint64_t since = now_ns();
        do
            if (inbox.load(cuda::memory_order_relaxed) - (barrier.epoch + 1) <= ~uint32_t{0} >> 1) return true;
        while (now_ns() - since < trial_patience_ns);
        return false;
    }
};

template <bool Trial, class Group>
__device__ void play_by_nccl(const Group &group, const nccl_ends &ends, int count, bool first, times *out) {
    const auto coop = coop_of(group);
    ncclLsaBarrierSession barrier(coop, ends.comm, ncclTeamTagLsa(), 0);
    char *const peer_in = static_cast<char *>(ncclGetLsaPointer(ends.in, 0, 1 - ends.comm.lsaRank));
    play(group, nccl_port<Trial, decltype(barrier.coop)>{barrier, peer_in, ends.out, ends.bytes}, count, first, out);
}

template <scope By, bool Trial, int Most>
__global__ void __launch_bounds__(Most, 1)
    nccl_ping_pong(const __grid_constant__ nccl_ends ends, int count, bool first, times *out) {
    const whole_block block = cooperative_groups::this_thread_block();
    if constexpr (By == scope::thread)
        play_by_nccl<Trial>(lone_thread{}, ends, count, first, out);
    else if constexpr (By == scope::warp)
        play_by_nccl<Trial>(cooperative_groups::tiled_partition<32>(block), ends, count, first, out);
    else
        play_by_nccl<Trial>(block, ends, count, first, out);
}

template <bool Trial>
void start(const pair &c, const exchange_shape &s, const nccl_ends &ends) {
    const auto threads = static_cast<unsigned>(players(s.by, s.threads));
    const auto launch = [&](auto *kernel) {
        kernel<<<1, threads, 0, c.stream>>>(ends, s.count, c.rank == 0, c.result);
        check(cudaGetLastError(), "nccl_ping_pong");
    };
    if (s.by == scope::thread) launch(nccl_ping_pong<scope::thread, Trial, usual_threads>);
    if (s.by == scope::warp) launch(nccl_ping_pong<scope::warp, Trial, usual_threads>);
    if (s.by == scope::block && s.threads <= usual_threads) launch(nccl_ping_pong<scope::block, Trial, usual_threads>);
    if (s.by == scope::block && s.threads > usual_threads) launch(nccl_ping_pong<scope::block, Trial, most_threads>);
}

// What differs between the releases that MpixRivals.cmake admits. 2.28 has no initial values; later ones refuse
// requirements without theirs.
ncclDevCommRequirements no_requirements() {
#ifdef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER
    return NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
#else
    return {};
#endif
}

// The device's structures differ from one minor version to the next.
constexpr release release_of(int version_code) { return {version_code / 10000, version_code / 100 % 100}; }
bool is_of_this_release() {
    int version = 0;
    if (ncclGetVersion(&version) != ncclSuccess) version = 0;
    return both_of_one_release("NCCL", release_of(NCCL_VERSION_CODE), release_of(version));
}

class nccl_session final : public nccl_device_pair {
public:
    // Both ranks go from step to step together, and no further than either of them comes. False: why() says why, and
    // the session has to be kept, for a thread may be stuck in it.
    bool begin(pair &c, uint64_t most_bytes, char *out) {
        setenv("NCCL_NVLS_ENABLE", "0", 1);  // no multicast
        ncclUniqueId id{};
        int made = c.rank == 0 ? ncclGetUniqueId(&id) : ncclSuccess;
        MPI_Bcast(&made, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (made != ncclSuccess) return failed("ncclGetUniqueId");
        MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
        const int rank = c.rank;
        if (!step(c, "ncclCommInitRank", [=, this] { return ncclCommInitRank(&comm_, 2, id, rank); })) return false;
        if (!step(c, "ncclMemAlloc", [=, this] { return ncclMemAlloc(&in_, most_bytes); })) return false;
        if (!step(c, "ncclCommWindowRegister", [=, this] {
                const auto r = ncclCommWindowRegister(comm_, in_, most_bytes, &window_, NCCL_WIN_COLL_SYMMETRIC);
                return r == ncclSuccess && window_ == nullptr ? ncclInvalidUsage : r;
            }))
            return false;
        if (!step(c, "ncclDevCommCreate", [this] {
                ncclDevCommRequirements wanted = no_requirements();
                wanted.lsaBarrierCount = 1;
                const auto r = ncclDevCommCreate(comm_, &wanted, &device_);
                has_device_ = r == ncclSuccess;
                return has_device_ && device_.lsaSize != 2 ? ncclInvalidUsage : r;
            }))
            return false;
        for (const scope by : {scope::block, scope::warp, scope::thread})
            if (!works(c, {by, 1, usual_threads, 1024, 8, 1}, out))
                return failed(std::string("trial by a ") + scope_names[static_cast<int>(by)]);
        return true;
    }
    ~nccl_session() override {
        if (has_device_) report(ncclDevCommDestroy(comm_, &device_), "ncclDevCommDestroy");
        if (window_ != nullptr) report(ncclCommWindowDeregister(comm_, window_), "ncclCommWindowDeregister");
        if (in_ != nullptr) report(ncclMemFree(in_), "ncclMemFree");
        if (comm_ != nullptr) report(ncclCommDestroy(comm_), "ncclCommDestroy");
    }

    const std::string &why() const { return why_; }

    double measure(pair &c, const exchange_shape &s, char *out) override {
        return c.measure(s.epochs, "nccl device", out, static_cast<char *>(in_), s.total(), [&](int) {
            start<false>(c, s, {device_, window_, out, s.bytes});
            return half_round_trip_us(c.outcome("nccl device"), s.count);
        });
    }

private:
    bool failed(const std::string &why) {
        why_ = "failed: " + why;
        std::replace(why_.begin(), why_.end(), ',', ';');  // a cell of CSV
        return false;
    }
    // The call waits for the other rank's, which may never come.
    bool step(const pair &c, const char *name, const std::function<ncclResult_t()> &call) {
        constexpr int late = ncclNumResults;  // more than any other
        std::packaged_task<ncclResult_t()> task([call, device = c.device] {
            return cudaSetDevice(device) == cudaSuccess ? call() : ncclUnhandledCudaError;
        });
        std::future<ncclResult_t> done = task.get_future();
        std::thread(std::move(task)).detach();
        int result = late;
        if (done.wait_for(setup_patience) == std::future_status::ready) result = done.get();
        MPI_Allreduce(MPI_IN_PLACE, &result, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (result == ncclSuccess) return true;
        return failed(std::string(name) + ": " +
                      (result == late ? "no end" : ncclGetErrorString(static_cast<ncclResult_t>(result))));
    }
    bool works(pair &c, const exchange_shape &s, char *out) {
        return c.succeeds("nccl device trial", out, static_cast<char *>(in_), s.total(), [&] {
            start<true>(c, s, {device_, window_, out, s.bytes});
            c.finish("nccl device trial");
        });
    }
    static void report(ncclResult_t result, const char *call) {
        if (result != ncclSuccess) std::fprintf(stderr, "%s: %s\n", call, ncclGetErrorString(result));
    }

    ncclComm_t comm_ = nullptr;
    void *in_ = nullptr;
    ncclWindow_t window_ = nullptr;
    ncclDevComm device_{};
    bool has_device_ = false;
    std::string why_;
};

}  // namespace

std::unique_ptr<nccl_device_pair> nccl_device_pair::open(pair &c, uint64_t most_bytes, char *out,
                                                         std::string &missing) {
    missing = absent;
    if (c.devices < 2 || !is_of_this_release()) return nullptr;
    auto session = std::make_unique<nccl_session>();
    if (session->begin(c, most_bytes, out)) return session;
    missing = session->why();
    session.release();
    return nullptr;
}

}  // namespace bench
