// SPDX-License-Identifier: BSD-3-Clause
#include "host/request/request.h"

#include <mpix/detail/host_launch.h>
#include <mpix/detail/order.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "device/cuda/driver_settings.h"
#include "device/kernels/gpu_pack.h"
#include "host/config.h"
#include "host/datatype/typemap.h"
#include "host/export/device_request.h"
#include "host/format.h"
#include "host/protocol/rget.h"
#include "host/request/kept_error.h"
#include "host/request/upcalls.h"
#include "host/request/user_memory.h"
#include "transport/reserve.h"

namespace mpix {
namespace {

struct owners_state {
    std::mutex mutex;
    std::unordered_map<request *, std::shared_ptr<request>> map;
    traffic_by_path of_disowned;
};
owners_state &owners() {
    static auto *const state = new owners_state;
    return *state;
}

}  // namespace

void own(const std::shared_ptr<request> &r) {
    {
        const std::lock_guard lock(owners().mutex);
        owners().map[r.get()] = r;
    }
    requests().insert(handle_key(r->handle), r.get());
    request_table.store(&requests(), std::memory_order_release);  // pairs: H1
}

std::shared_ptr<request> disown(request *r) {
    last_readied.store(nullptr, std::memory_order_relaxed);
    requests().remove(handle_key(r->handle));
    const std::scoped_lock lock(setup_mutex(), owners().mutex);
    const auto owned = owners().map.extract(r);
    if (owned.empty()) return nullptr;
    r->add_to(owners().of_disowned);
    return owned.mapped();
}

traffic_by_path traffic_so_far() {
    const std::scoped_lock lock(setup_mutex(), owners().mutex);
    traffic_by_path sum = owners().of_disowned;
    for (const auto &[r, owner] : owners().map) r->add_to(sum);
    sum.requests = owners().map.size();
    return sum;
}

void forget_handles() {
    last_readied.store(nullptr, std::memory_order_relaxed);
    const std::lock_guard lock(owners().mutex);
    for (const auto &[r, owner] : owners().map) requests().remove(handle_key(r->handle));
}

request::request(const operation &o, mpix_kind k)
    : op(o),
      kind(k),
      partition_bytes(o.count * static_cast<std::uint64_t>(o.type->size)),
      gapless(partition_bytes == 0 || o.type->contiguous()) {
    // By its first byte: what lies at the address itself may be nothing.
    const auto first = static_cast<std::uintptr_t>(partition_bytes == 0 ? 0 : op.type->first_offset());
    place = transport::locate(reinterpret_cast<const void *>(reinterpret_cast<std::uintptr_t>(op.buffer) + first));
    const std::size_t bytes = mpix_prequest_size(kind, op.partitions);
    constexpr std::size_t alignment = 64;
    std::size_t room = bytes + alignment - __STDCPP_DEFAULT_NEW_ALIGNMENT__;
    home_memory_ = std::make_unique_for_overwrite<char[]>(room);
    void *at = home_memory_.get();
    home = static_cast<mpix_prequest *>(std::align(alignment, bytes, at, room));
    std::memset(static_cast<void *>(home), 0, bytes);
    home->head = MPIX_ABI_VERSION | static_cast<std::uint64_t>(kind) << 32 | (null_peer() ? MPIX_HEAD_NULL_PEER : 0);
    home->partitions = op.partitions;
    home->contributors = 1;
    home->partition_bytes = partition_bytes;
    home->buffer = op.buffer;
    home->stall_ns = static_cast<std::uint64_t>(config().stall_seconds * 1e9);
}

bool request::fits_inline(std::uint64_t most_bytes) const {
    return place.owner != nullptr && partition_bytes != 0 &&
           partition_bytes <= most_bytes &&  // of a receive: the sender's are as large, or larger
           (gapless || total_bytes() / static_cast<std::uint64_t>(offsets().piece()) <= most_offsets);
}

reason request::why_no_rget(std::uint64_t least) const {
    // The sender's partitions count.
    const std::uint64_t each = kind == MPIX_KIND_SEND ? partition_bytes : 8;
    return mpix::why_no_rget({place.owner != nullptr, !gapless, op.buffer, each, least});
}

request::~request() {
    give_back(words_region);
    if (!config().check) return;
    invalidate(home);
    static_cast<void>(home_memory_.release());
}

// Makes calls with the freed handle fail. The memory is never freed.
void request::invalidate(mpix_prequest *handle) {
    static auto *const nowhere = new mpix_words{};
    static std::atomic<mpix_prequest *> last{nullptr};
    *handle = {};
    handle->words = nowhere;
    // A list, so that leak checkers find the memory reachable. Relaxed: nobody reads it.
    handle->buffer = reinterpret_cast<char *>(last.exchange(handle, std::memory_order_relaxed));
}

memory_span request::used_memory() const {
    if (gapless) return {0, static_cast<std::int64_t>(total_bytes())};
    return span_of(*op.type, static_cast<std::int64_t>(op.count) * op.partitions);
}

status request::check_buffer() const {
    if (partition_bytes == 0) return {};
    if (place.owner != nullptr) {
        const memory_span used = used_memory();
        return place.owner->check(op.buffer + used.low, static_cast<std::uint64_t>(used.high - used.low))
            .in_context("buf: ")
            .of_class(MPI_ERR_BUFFER);
    }
    // With gaps: the first byte of the first and of the last element.
    const std::int64_t first = op.type->first_offset();
    const std::int64_t last =
        gapless ? first + static_cast<std::int64_t>(total_bytes()) - 1
                : first + static_cast<std::int64_t>(total_bytes() / static_cast<std::uint64_t>(op.type->size) - 1) *
                              op.type->extent;
    constexpr std::uintptr_t page = 4096;  // no page is smaller
    const auto address = [this](std::int64_t at) {
        return reinterpret_cast<std::uintptr_t>(op.buffer) + static_cast<std::uintptr_t>(at);
    };
    const bool on_one_page = address(first) / page == address(last) / page;  // each check is a system call
    for (int look = 0; look < (on_one_page ? 1 : 2); ++look) {
        const std::int64_t at = look == 0 ? first : last;
        void *const byte = reinterpret_cast<void *>(address(at));
        if (kind == MPIX_KIND_SEND ? can_read(byte) : can_write(byte)) continue;
        return failure(MPI_ERR_BUFFER, format("buf: the CPU cannot {} the memory at {}, byte {} of the buffer{}",
                                              can_read(byte) ? "write" : "read", byte, at,
                                              MPIX_HAVE_CUDA ? "" : " (GPU memory needs mpix built with CUDA)"));
    }
    return {};
}

status request::allocate_words(std::uint64_t extra_bytes) {
    if (auto bad =
            transport::node_memory().allocate(sizeof(mpix_words) + extra_bytes, transport::on_host, words_region);
        !bad.ok())
        return bad.of_class(MPI_ERR_NO_MEM);
    words = static_cast<mpix_words *>(words_region.address);
    home->words = words;
    return {};
}

status request::prepare_gpu() const {
    if (place.owner == nullptr || total_bytes() == 0) return {};
    if (status bad = place.owner->prepare(place.device); !bad.ok()) return bad.of_class(MPI_ERR_OTHER);
    const status bad = from_sentence(gpu::load_on(place.device));
    // Kernels that wait for this process may leave those that measure no room.
    if (bad.ok() && !gapless && !device_copy::any_in_use()) gpu::measure_on(place.device);
    // Without gaps on either side none of those kernels is needed, and the library may lack them for this GPU.
    return gapless ? status{} : bad.of_class(MPI_ERR_OTHER);
}

gpu_end request::end_for(transport::network &network, transport::gpu_puts *&gpus) const {
    gpu_end end{place.owner != nullptr, !gapless, total_bytes() == 0, {}};
    gpus = network.gpu_memory(end.network_cannot);
    transport::region ignored;  // what is not from cudaMalloc, as managed memory, is of another kind to a network
    if (gpus != nullptr && end.on_gpu && !end.gaps && !end.empty)
        end.network_cannot = place.owner->adopt(op.buffer, total_bytes(), ignored);
    return end;
}

void request::add_to(traffic_by_path &sum) {
    if (null_peer()) return;
    const auto *const path = std::find(traffic_paths.begin(), traffic_paths.end(), std::string_view(path_now()));
    if (path == traffic_paths.end()) return;
    const auto i = static_cast<std::size_t>(path - traffic_paths.begin());
    traffic &all = kind == MPIX_KIND_SEND ? sum.sent[i] : sum.received[i];
    const std::uint64_t word = detail::load_relaxed(&words->epoch);
    const std::uint64_t epochs = (word >> 1) - (word & 1) - failed_.load(std::memory_order_relaxed);
    all.messages += epochs;
    all.bytes += epochs * total_bytes();
    all.partitions += epochs * static_cast<std::uint64_t>(op.user_partitions());
    const std::lock_guard lock(engine);
    if (!op.no_partitions) all.deferred += deferred();
}

match_key request::key() const {
    // The source is the sender: us or the peer.
    return {op.members->name, kind == MPIX_KIND_SEND ? this_world_rank() : peer_world(), op.tag};
}

bool request::try_advance() {
    bool goes_on = true;
    try_step([&] { goes_on = advance(); });
    return goes_on;
}

control_text reason_for_peer(const status &why) {
    control_text told;
    told.assign(why.out_of_memory() ? "the process at the other end has no memory" : std::string_view(why.message()));
    return told;
}

void request::start() {
    if (epoch_ == 0 && !null_peer()) transport::require_reserve();  // of first_start
    {
        // The progress thread may still be looking at the epoch before.
        const std::lock_guard lock(engine);
        host_started_ = ++epoch_;
        error_use_ = error_use::none;
        // release: what the user did before Start is visible to whoever sees the epoch running. Pairs with
        // load_acquire_pair in read_host and look_at_host.
        detail::store_release(&words->epoch, 2 * epoch_ + 1);  // pairs: C1
        active_.store(true, std::memory_order_release);        // pairs: C9
        on_start();
    }
    if (host_started_ == 1 && !null_peer()) first_start(*this);
    if (op.no_partitions) ready_placeholder();
}

status no_such_partition(const operation &op, int partition) {
    if (op.no_partitions)
        return failure(MPI_ERR_ARG, format("partition is {}; the request has no partitions", partition));
    return failure(MPI_ERR_ARG, format("partition {} is not within 0 to {}", partition, op.partitions - 1));
}

std::uint64_t request::follow_kernels() {
    // Usually there is nothing to take over, and then no lock is waited for. Who finds a number here has what was
    // written to epoch_ before.
    const std::uint64_t known = detail::load_acquire(&words->epoch) >> 1;   // pairs: C1
    if (detail::load_acquire(&words->kernel_epoch) <= known) return known;  // pairs: K4
    const std::lock_guard lock(engine);
    follow_kernels_locked();
    return epoch_;
}

// The kernel's call of wait has found that nothing of the epoch before is left to do.
void request::follow_kernels_locked() {
    if (!active() || (device == nullptr && !exported_to_host)) return;
    const std::uint64_t by_kernel = detail::load_acquire(&words->kernel_epoch);  // pairs: K4
    if (by_kernel <= epoch_) return;
    epoch_ = by_kernel;
    detail::store_release(&words->epoch, 2 * epoch_ + 1);  // pairs: C1
    on_kernel_start();
}

// Kernels take the epoch that they have started last for the running one, without asking the host, until this.
status request::end_kernel_epochs() {
    // Kernels have started none since the host's Start, so no lock is waited for. Relaxed: outcome() has held `engine` since
    // any later epoch was taken over, so this finds that epoch's number, or a later one.
    if (detail::load_relaxed(&words->kernel_epoch) <= host_started_) return {};
    const std::lock_guard lock(engine);
    if (epoch_ == host_started_) return {};
    if (device != nullptr) return device->forget_started_epoch();
    detail::store_relaxed(&home->started_epoch, 0);
    return {};
}

bool request::in_same_epoch_still() {
    const std::uint64_t word = detail::load_relaxed(&words->epoch);
    return std::exchange(watched_word_, word) == word && (word & 1) != 0;
}

std::int64_t request::unmatched_ms(std::int64_t now_ms) {
    const bool active = (detail::load_relaxed(&words->epoch) & 1) != 0;
    if (!active || freed || connected || peer_number != 0)
        unmatched_since_ms_ = 0;
    else if (unmatched_since_ms_ == 0)
        unmatched_since_ms_ = now_ms;
    return unmatched_since_ms_ == 0 ? 0 : now_ms - unmatched_since_ms_;
}

stall request::stall_so_far(const char *kind_name, const char *missing_what) const {
    return {.kind = kind_name,
            .peer_rank = op.peer,
            .peer_world_rank = null_peer() ? -1 : peer_world(),
            .tag = op.tag,
            .partitions = op.user_partitions(),
            .epoch = epoch_,
            .path = path_now(),
            .missing_what = missing_what};
}

std::string request::name() const {
    const std::string peer = null_peer() ? "MPI_PROC_NULL" : format("rank {}", op.peer);
    return format("the {} {}, tag {},", kind == MPIX_KIND_SEND ? "send to" : "receive from", peer, op.tag);
}

stall request::describe_stall_fully() {
    stall s = describe_stall();
    if (const std::string also = obstacle(); !also.empty()) s.remark += (s.remark.empty() ? "" : "; ") + also;
    return s;
}

// Why an exported request may wait, apart from its own state; empty if no reason is known.
std::string request::obstacle() {
    bool on_gpu, on_host;
    {
        const std::lock_guard lock(engine);
        on_gpu = device != nullptr;
        on_host = exported_to_host;
    }
    if ((on_gpu || on_host) && config().progress == progress_mode::never)
        return "with MPIX_PROGRESS=never only MPI calls make progress, and there may have been none";
    if (on_gpu && gpu::loads_lazily())
        return format(
            "lazy loading may be why ({}): set CUDA_MODULE_LOADING=EAGER, or load all kernels before any waits",
            gpu::module_loading_setting());
    return {};
}

status request::ended_peer() const {
    transport::network *const wire = network();
    const status lost = wire == nullptr ? status{} : wire->lost(peer_world());
    return failure(process_failed,
                   format("the process of rank {} (world rank {}) {}", op.peer, peer_world(),
                          lost.ok() ? "has ended" : "has ended, or cannot be reached any more: " + lost.message()));
}

// The period of an error that device code has kept. The word has its lowest bits; all are in the request's instance, as
// long as no later error has come. Otherwise it is a recent one.
std::uint64_t request::error_period(std::uint64_t word) {
    // Not epoch_, which the progress thread may be changing.
    const std::uint64_t epoch = detail::load_acquire(&words->epoch) >> 1;  // pairs: C1
    const std::lock_guard lock(engine);
    std::uint64_t kept = 0;
    if (device == nullptr)
        kept = detail::load_relaxed(&home->error);
    else if (!device->error_period(kept).ok())
        kept = 0;
    return kept != 0 && kept_error::has_period(word, kept) ? kept : 2 * epoch + (active() ? 1 : 2);
}

status request::take_device_error() {
    const std::uint64_t word = detail::exchange_acquire(&words->error, 0);  // pairs: E1
    return word == 0 ? status{} : device_error_in(word);                    // if so, another thread has taken it
}

status request::take_kernel_timeout() {
    const std::uint64_t word = detail::load_acquire(&words->error);  // pairs: E1
    return kept_error(word, 0).error_class() == MPI_ERR_PENDING ? take_device_error() : status{};
}

// A call of device code has failed. Usually the epoch can be completed all the same, by other calls or by the peer.
status request::look_whether_overdue() {
    constexpr double for_running_threads = 0.1;
    const std::uint64_t word = detail::load_acquire(&words->error);  // pairs: E1
    if (word == 0 || error_use_ == error_use::told || !active() || done()) return {};
    const auto now = std::chrono::steady_clock::now();
    if (error_use_ == error_use::none) {
        error_use_ = error_use::noticed;
        noticed_ = now;
    }
    const double waited = std::chrono::duration<double>(now - noticed_).count();
    if (waited < std::min(for_running_threads, notice_seconds())) return {};
    std::string state;
    {
        const std::lock_guard lock(engine);
        if (error_use_ == error_use::noticed && !lacks_partitions()) error_use_ = error_use::waited_for;
        if (error_use_ == error_use::waited_for && waited < notice_seconds()) return {};
        error_use_ = error_use::told;
        state = done_so_far();
    }
    return failure(MPI_ERR_PENDING, device_error_in(word).message() + state + "; the request is active still");
}

status request::error_of_incomplete() {
    if (!active()) return device_error();
    status bad = kernel_timeout();
    return bad.ok() ? overdue() : bad;
}

status request::failed_already() {
    if (!active() || !done()) return {};
    status bad = ending();
    const std::uint64_t word = detail::load_acquire(&words->error);  // pairs: E1
    return bad.ok() && word != 0 ? device_error_in(word) : bad;
}

status request::device_error_in(std::uint64_t word) {
    const kept_error error(word, error_period(word));
    std::string sentence =
        format("in device code, {} {}, tag {}, {}", kind == MPIX_KIND_SEND ? "send to" : "receive from",
               null_peer() ? "MPI_PROC_NULL" : format("rank {}", op.peer), op.tag, error.sentence(kind, op.partitions));
    if (error.error_class() == MPI_ERR_PENDING)
        if (const std::string also = obstacle(); !also.empty()) sentence += "; " + also;
    return failure(error.error_class(), sentence);
}

void fill_empty_status(MPI_Status *status) {
    if (status == MPI_STATUS_IGNORE) return;
    status->MPI_SOURCE = MPI_ANY_SOURCE;
    status->MPI_TAG = MPI_ANY_TAG;
    PMPI_Status_set_elements_x(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
}

void request::fill_status(MPI_Status *status, bool failed) const {
    if (status == MPI_STATUS_IGNORE) return;
    fill_empty_status(status);
    status_of(status);
    if (failed) PMPI_Status_set_elements_x(status, MPI_BYTE, 0);  // none of its bytes are valid
}

void request::fill_status(MPI_Status *status) { fill_status(status, !ending().ok()); }

// An epoch that has failed must end all the same, or its request could not be freed.
status request::ending() {
    try {
        status bad = outcome();
        if (bad.ok()) return bad;
        if (class_of(bad) != MPI_ERR_OTHER || null_peer() || !process_has_ended(peer_world())) return bad;
        // That is why, whatever has failed because of it.
        const std::lock_guard lock(engine);
        status why = ended_peer();
        if (why.message() == bad.message()) return why;
        return failure(class_of(why), why.message() + "; " + bad.message());
    } catch (const std::bad_alloc &) {
        return no_memory();
    }
}

status request::retire(MPI_Status *status) {
    if (!active()) {
        fill_empty_status(status);
        return device_error();
    }
    mpix::status result = ending();
    if (!result.ok()) failed_.fetch_add(1, std::memory_order_relaxed);
    fill_status(status, !result.ok());
    if (result.ok()) result = device_error();
    if (mpix::status bad = end_kernel_epochs(); !bad.ok() && result.ok()) result = bad;
    if (host_started_ == 1 && !null_peer()) first_epoch_over(*this);
    // Before the word that says "inactive"; pairs with the acquire of read_host, before may_be_late.
    if (kind == MPIX_KIND_RECV && exported_to_host) {
        detail::store_relaxed(&home->inactive_since, detail::now_ns());
        detail::store_relaxed(&home->inactive_by, detail::this_thread_number());
    }
    active_.store(false, std::memory_order_release);   // pairs: C9
    detail::store_release(&words->epoch, 2 * epoch_);  // pairs: C1, C7
    return result;
}

void request::use_layouts() {
    if (gapless) return;
    (kind == MPIX_KIND_SEND ? home_layouts.from : home_layouts.to) = &typemap_of(*op.type)->map;
    detail::store_pointer(&home->layouts, static_cast<const mpix_layouts *>(&home_layouts));
}

std::string request::path() const {
    if (null_peer()) return "null";
    const std::lock_guard lock(setup_mutex());
    return path_now();
}

error_place place_of_errors(const request &r) {
    // acquire: pairs with the release in communicator_registry::remove.
    const MPI_Errhandler last = r.op.members->last_handler.load(std::memory_order_acquire);  // pairs: H4
    const bool freed = last != MPI_ERRHANDLER_NULL;
    return {.members = r.op.members,
            .comm = r.op.comm,
            .stand_in = freed ? communicators().stand_in() : MPI_COMM_NULL,
            .last_handler = last,
            .sends = r.kind == MPIX_KIND_SEND,
            .peer = r.op.peer,
            .tag = r.op.tag,
            .partitions = r.op.partitions};
}

copy_source request::source() const {
    copy_source out{kind, op.partitions, partition_bytes, op.buffer, home, words_region, inline_capable()};
    out.rget = kind == MPIX_KIND_RECV && !out.inline_capable && !null_peer() && why_no_rget().empty();
    if (out.inline_capable && !gapless) out.gaps.emplace(offsets());
    return out;
}

}  // namespace mpix
