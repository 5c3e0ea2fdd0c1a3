// SPDX-License-Identifier: BSD-3-Clause
#include "tests/bench/ucx_device_pair.cuh"

// UCX's headers do not pass these warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <ucp/api/ucp.h>
#include <ucs/config/global_opts.h>

#include <ucp/api/device/ucp_device_impl.h>
#include <ucp/api/device/ucp_host.h>
#pragma GCC diagnostic pop

#include <algorithm>
#include <cstring>
#include <vector>

namespace bench {
namespace {

constexpr double setup_patience_s = 30;
constexpr uint64_t counter_bytes = 4096;

// As a kernel's argument. Element 0 of the remote list is the peer's payloads, element 1 its counter.
struct ucx_ends {
    ucp_device_local_mem_list_h local;
    ucp_device_remote_mem_list_h remote;
    const uint64_t *counter;  // our own
    uint64_t bytes, before;   // before: what the counter had when the kernel began
};

template <class Group>
constexpr ucs_device_level_t level_of = UCS_DEVICE_LEVEL_BLOCK;
template <>
constexpr ucs_device_level_t level_of<whole_warp> = UCS_DEVICE_LEVEL_WARP;
template <>
constexpr ucs_device_level_t level_of<lone_thread> = UCS_DEVICE_LEVEL_THREAD;

template <bool Fenced>
struct ucx_port {
    ucx_ends ends;

    template <class Group>
    __device__ void put(const Group &group, int i) const {
        constexpr ucs_device_level_t level = level_of<Group>;
        const uint64_t at = static_cast<uint64_t>(i) * ends.bytes;
        group.sync();
        ucp_device_put<level>(ends.local, 0, at, ends.remote, 0, at, ends.bytes, 0, UCP_DEVICE_FLAG_NODELAY, nullptr);
        if (Fenced && group.thread_rank() == 0)
            __threadfence_system();  // the put ends with a barrier, so of all threads' stores
        ucp_device_counter_inc<level>(1, ends.remote, 1, 0, 0, UCP_DEVICE_FLAG_NODELAY, nullptr);
    }

    template <class Group>
    __device__ bool await(const Group &group, int i) const {
        bool there = true;
        if (group.thread_rank() == 0) {
            const uint64_t wanted = ends.before + static_cast<uint64_t>(i) + 1, since = now_ns();
            while (ucp_device_counter_read<UCS_DEVICE_LEVEL_THREAD>(ends.counter) < wanted)
                if (now_ns() - since > patience_ns) {
                    there = false;
                    break;
                }
        }
        return all_agree(group, there);
    }
};

template <scope By, bool Fenced, int Most>
__global__ void __launch_bounds__(Most, 1) ucx_ping_pong(ucx_ends ends, int count, bool first, times *out) {
    const whole_block block = cooperative_groups::this_thread_block();
    const ucx_port<Fenced> port{ends};
    if constexpr (By == scope::thread)
        play(lone_thread{}, port, count, first, out);
    else if constexpr (By == scope::warp)
        play(cooperative_groups::tiled_partition<32>(block), port, count, first, out);
    else
        play(block, port, count, first, out);
}

template <bool Fenced>
void start(const pair &c, const exchange_shape &s, const ucx_ends &ends) {
    const auto threads = static_cast<unsigned>(players(s.by, s.threads));
    const auto launch = [&](auto *kernel) {
        kernel<<<1, threads, 0, c.stream>>>(ends, s.count, c.rank == 0, c.result);
        check(cudaGetLastError(), "ucx_ping_pong");
    };
    if (s.by == scope::thread) launch(ucx_ping_pong<scope::thread, Fenced, usual_threads>);
    if (s.by == scope::warp) launch(ucx_ping_pong<scope::warp, Fenced, usual_threads>);
    if (s.by == scope::block && s.threads <= usual_threads) launch(ucx_ping_pong<scope::block, Fenced, usual_threads>);
    if (s.by == scope::block && s.threads > usual_threads) launch(ucx_ping_pong<scope::block, Fenced, most_threads>);
}

// Bytes of any length, each rank's to the other.
std::vector<char> swap_bytes(const pair &c, const void *mine, size_t bytes) {
    uint64_t length[2] = {bytes, 0};
    MPI_Sendrecv(&length[0], 1, MPI_UINT64_T, c.peer, 0, &length[1], 1, MPI_UINT64_T, c.peer, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    std::vector<char> theirs(length[1]);
    MPI_Sendrecv(mine, static_cast<int>(bytes), MPI_BYTE, c.peer, 0, theirs.data(), static_cast<int>(theirs.size()),
                 MPI_BYTE, c.peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return theirs;
}

class ucx_session final : public ucx_device_pair {
public:
    // Both ranks go from step to step together, and no further than either of them comes.
    bool begin(pair &c, uint64_t most_bytes, char *out) {
        out_ = out;
        most_bytes_ = most_bytes;
        if (!agreed("ucp_init", open_worker()) || !agreed("ucp_ep_create", connect(c)) ||
            !agreed("ucp_mem_map", register_memory()) || !agreed("ucp_ep_rkey_unpack", unpack_keys(c)) ||
            !agreed("ucp_am_send", greet()) || !make_lists())
            return false;
        for (const scope by : {scope::block, scope::warp, scope::thread})
            if (!works(c, {by, 1, usual_threads, 1024, 8, 1}))
                return failed(std::string("trial by a ") + scope_names[static_cast<int>(by)]);
        return true;
    }
    ~ucx_session() override {
        if (ends_.remote != nullptr) ucp_device_mem_list_release(ends_.remote);
        if (ends_.local != nullptr) ucp_device_mem_list_release(ends_.local);
        if (address_ != nullptr) ucp_worker_release_address(worker_, address_);
        for (const shared &s : {in_, counter_}) {
            if (s.packed != nullptr) ucp_rkey_buffer_release(s.packed);
            if (s.theirs != nullptr) ucp_rkey_destroy(s.theirs);
        }
        for (ucp_mem_h memory : {in_.mine, counter_.mine, outgoing_})
            if (memory != nullptr) ucp_mem_unmap(context_, memory);
        if (worker_ != nullptr) ucp_worker_destroy(worker_);  // and its endpoint
        if (context_ != nullptr) ucp_cleanup(context_);
        for (const shared &s : {in_, counter_})
            if (s.at != nullptr) cudaFree(s.at);
    }

    const std::string &why() const { return why_; }

    double measure(pair &c, const exchange_shape &s, bool fenced) override {
        return c.measure(s.epochs, "ucx device", out_, static_cast<char *>(in_.at), s.total(), [&](int) {
            if (fenced)
                play_once<true>(c, s);
            else
                play_once<false>(c, s);
            return half_round_trip_us(c.outcome("ucx device"), s.count);
        });
    }

private:
    // GPU memory of both ranks, and the keys to it.
    struct shared {
        void *at = nullptr, *packed = nullptr;
        size_t packed_bytes = 0;
        ucp_mem_h mine = nullptr;
        ucp_rkey_h theirs = nullptr;
        uint64_t peer_at = 0;
    };

    bool agreed(const char *step, ucs_status_t status) {
        int all = status == UCS_OK;
        MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        return all || failed(step + (status == UCS_OK ? "" : std::string(": ") + ucs_status_string(status)));
    }
    bool failed(const std::string &why) {
        why_ = "failed: " + why;
        std::replace(why_.begin(), why_.end(), ',', ';');  // a cell of CSV
        return false;
    }
    bool works(pair &c, const exchange_shape &s) {
        return c.succeeds("ucx device trial", out_, static_cast<char *>(in_.at), s.total(),
                          [&] { play_once<true>(c, s); });
    }
    template <bool Fenced>
    void play_once(pair &c, const exchange_shape &s) {
        ends_.bytes = s.bytes;
        check(cudaMemcpy(&ends_.before, counter_.at, sizeof ends_.before, cudaMemcpyDeviceToHost), "cudaMemcpy");
        MPI_Barrier(MPI_COMM_WORLD);  // neither kernel adds to a counter before both have been read
        start<Fenced>(c, s, ends_);
        c.finish("ucx device");
    }

    ucs_status_t open_worker() {
        // UCX takes memory for the host's if it has not seen the allocation, and it does not see those of a CUDA runtime that
        // is linked statically. This is for all UCX in the process, the MPI library's too.
        ucs_global_opts.enable_memtype_cache = UCS_NO;
        ucp_params_t wanted{};
        wanted.field_mask = UCP_PARAM_FIELD_FEATURES;
        wanted.features = UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_AMO64 | UCP_FEATURE_DEVICE;
        if (const ucs_status_t bad = ucp_init(&wanted, nullptr, &context_); bad != UCS_OK) return bad;
        ucp_worker_params_t worker{};
        worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        worker.thread_mode = UCS_THREAD_MODE_SINGLE;
        if (const ucs_status_t bad = ucp_worker_create(context_, &worker, &worker_); bad != UCS_OK) return bad;
        return ucp_worker_get_address(worker_, &address_, &address_bytes_);
    }

    ucs_status_t connect(const pair &c) {
        const std::vector<char> theirs = swap_bytes(c, address_, address_bytes_);
        ucp_ep_params_t to{};
        to.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        to.address = reinterpret_cast<const ucp_address_t *>(theirs.data());
        return ucp_ep_create(worker_, &to, &endpoint_);
    }

    // A message that may be answered makes the two ends exchange their endpoints, which the remote list waits for.
    ucs_status_t greet() {
        ucp_am_handler_param_t handler{};
        handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;
        handler.cb = [](void *, const void *, size_t, void *, size_t, const ucp_am_recv_param_t *) { return UCS_OK; };
        if (const ucs_status_t bad = ucp_worker_set_am_recv_handler(worker_, &handler); bad != UCS_OK) return bad;
        ucp_request_param_t how{};
        how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        how.flags = UCP_AM_SEND_FLAG_REPLY;
        const ucs_status_ptr_t sending = ucp_am_send_nbx(endpoint_, 0, nullptr, 0, greeting_, sizeof greeting_, &how);
        if (!UCS_PTR_IS_PTR(sending)) return UCS_PTR_STATUS(sending);
        ucp_request_free(sending);  // greeting_ stays
        return UCS_OK;
    }

    ucs_status_t share(uint64_t bytes, shared &out) {
        if (cudaMalloc(&out.at, bytes) != cudaSuccess || cudaMemset(out.at, 0, bytes) != cudaSuccess)
            return UCS_ERR_NO_MEMORY;
        if (const ucs_status_t bad = map(out.at, bytes, out.mine); bad != UCS_OK) return bad;
        return ucp_rkey_pack(context_, out.mine, &out.packed, &out.packed_bytes);
    }
    ucs_status_t map(void *at, uint64_t bytes, ucp_mem_h &out) {
        ucp_mem_map_params_t what{};
        // Not the memory's type: UCX 1.22 then does not look for the allocation, and fails.
        what.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        what.address = at;
        what.length = bytes;
        return ucp_mem_map(context_, &what, &out);
    }
    ucs_status_t register_memory() {
        if (const ucs_status_t bad = share(most_bytes_, in_); bad != UCS_OK) return bad;
        if (const ucs_status_t bad = share(counter_bytes, counter_); bad != UCS_OK) return bad;
        return map(out_, most_bytes_, outgoing_);
    }
    ucs_status_t unpack_keys(const pair &c) {
        ucs_status_t status = UCS_OK;
        for (shared *const s : {&in_, &counter_}) {
            const std::vector<char> key = swap_bytes(c, s->packed, s->packed_bytes),
                                    at = swap_bytes(c, &s->at, sizeof s->at);
            std::memcpy(&s->peer_at, at.data(), sizeof s->peer_at);
            if (status == UCS_OK) status = ucp_ep_rkey_unpack(endpoint_, key.data(), &s->theirs);
        }
        return status;
    }

    // The remote list wants connected endpoints, so it is tried until both are, while both ranks make progress.
    bool make_lists() {
        ucp_device_mem_list_elem_t elements[2]{};
        ucp_device_mem_list_params_t list{};
        list.field_mask = UCP_DEVICE_MEM_LIST_PARAMS_FIELD_ELEMENTS | UCP_DEVICE_MEM_LIST_PARAMS_FIELD_ELEMENT_SIZE |
                          UCP_DEVICE_MEM_LIST_PARAMS_FIELD_NUM_ELEMENTS | UCP_DEVICE_MEM_LIST_PARAMS_FIELD_WORKER;
        list.element_size = sizeof *elements;
        list.elements = elements;
        list.worker = worker_;
        list.num_elements = 1;
        elements[0].field_mask = UCP_DEVICE_MEM_LIST_ELEM_FIELD_MEMH | UCP_DEVICE_MEM_LIST_ELEM_FIELD_LOCAL_ADDR |
                                 UCP_DEVICE_MEM_LIST_ELEM_FIELD_LENGTH;
        elements[0].memh = outgoing_;
        elements[0].local_addr = out_;
        elements[0].length = most_bytes_;
        if (!agreed("ucp_device_local_mem_list_create", ucp_device_local_mem_list_create(&list, &ends_.local)))
            return false;
        const shared *const theirs[] = {&in_, &counter_};
        for (int k = 0; k < 2; ++k) {
            elements[k] = {};
            elements[k].field_mask = UCP_DEVICE_MEM_LIST_ELEM_FIELD_EP | UCP_DEVICE_MEM_LIST_ELEM_FIELD_RKEY |
                                     UCP_DEVICE_MEM_LIST_ELEM_FIELD_REMOTE_ADDR | UCP_DEVICE_MEM_LIST_ELEM_FIELD_LENGTH;
            elements[k].ep = endpoint_;
            elements[k].rkey = theirs[k]->theirs;
            elements[k].remote_addr = theirs[k]->peer_at;
            elements[k].length = k == 0 ? most_bytes_ : counter_bytes;
        }
        list.num_elements = 2;
        const double since = MPI_Wtime();
        ucs_status_t status = UCS_ERR_NOT_CONNECTED;
        for (int all = 0; !all;) {
            if (status == UCS_ERR_NOT_CONNECTED) status = ucp_device_remote_mem_list_create(&list, &ends_.remote);
            all = status != UCS_ERR_NOT_CONNECTED || MPI_Wtime() - since > setup_patience_s;
            MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
            for (int k = 0; k < 100; ++k) ucp_worker_progress(worker_);
        }
        ends_.counter = static_cast<const uint64_t *>(counter_.at);
        return agreed("ucp_device_remote_mem_list_create", status);
    }

    char *out_ = nullptr, greeting_[8] = "hello";
    uint64_t most_bytes_ = 0;
    ucp_address_t *address_ = nullptr;
    size_t address_bytes_ = 0;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    ucp_ep_h endpoint_ = nullptr;
    ucp_mem_h outgoing_ = nullptr;
    shared in_, counter_;
    ucx_ends ends_{};
    std::string why_;
};

}  // namespace

std::unique_ptr<ucx_device_pair> ucx_device_pair::open(pair &c, uint64_t most_bytes, char *out, std::string &missing) {
    missing = absent;
    if (c.devices < 2) return nullptr;
    auto session = std::make_unique<ucx_session>();
    if (session->begin(c, most_bytes, out)) return session;
    missing = session->why();
    return nullptr;
}

}  // namespace bench
