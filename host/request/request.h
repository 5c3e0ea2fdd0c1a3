// SPDX-License-Identifier: BSD-3-Clause
//
// A partitioned request: what sends and receives have in common.
//
// Locks: `setup_mutex()` guards matching and everything about the peer; a request's own `engine` mutex
// guards its progress. Whoever takes both takes setup_mutex first. Pready and Parrived take none.
#ifndef MPIX_HOST_REQUEST_REQUEST_H
#define MPIX_HOST_REQUEST_REQUEST_H

#include <mpi.h>
#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "host/control/comm_id.h"
#include "host/control/match_key.h"
#include "host/control/message.h"
#include "host/control/setup_mutex.h"
#include "host/datatype/plan.h"
#include "host/datatype/plan_wire.h"
#include "host/export/device_request.h"
#include "host/export/offset_table.h"
#include "host/protocol/select.h"
#include "host/report.h"
#include "host/request/handle_table.h"
#include "host/request/inquiry.h"
#include "host/request/look_pace.h"
#include "host/request/traffic.h"
#include "transport/select.h"

namespace mpix {

struct argument_names;

// Room for a request in the list of those that progress is made for, so that entering it needs no memory.
struct place_in_progress {
    place_in_progress();
    ~place_in_progress();
    place_in_progress(const place_in_progress &) = delete;
    place_in_progress &operator=(const place_in_progress &) = delete;
};

// The arguments of MPI_Psend_init and MPI_Precv_init, checked.
struct operation {
    char *buffer = nullptr;
    int partitions = 0;          // with no_partitions 1: an empty one, which Start marks ready
    bool no_partitions = false;  // the user gave 0
    std::uint64_t count = 0;     // elements per partition
    std::shared_ptr<const plan> type;
    int peer = MPI_PROC_NULL;  // rank in the communicator
    int tag = 0;
    MPI_Comm comm = MPI_COMM_NULL;
    std::shared_ptr<const communicator> members;
    std::shared_ptr<const argument_names> names;  // where MPIX_EXPLAIN asks for them

    int user_partitions() const { return no_partitions ? 0 : partitions; }
};

// The error for a partition number that is out of range.
status no_such_partition(const operation &op, int partition);

class request : public std::enable_shared_from_this<request> {
public:
    request(const operation &op, mpix_kind kind);
    virtual ~request();
    request(const request &) = delete;
    request &operator=(const request &) = delete;

    // Memory for the words and whatever the kind needs; the rest of the constructor, which can fail.
    virtual status prepare() = 0;

    // Whether the CPU can read or write a buffer that is not GPU memory; looks at a byte at its beginning and one at
    // its end. Of GPU memory, whether all of the buffer is.
    status check_buffer() const;

    // Start an epoch. Local.
    void start();
    // Of an exported request: takes over the number of an epoch that kernels have started since, after they waited for
    // the one before. Every call that looks at the running epoch does this first.
    // Returns the epoch's number; kernels may go on meanwhile.
    std::uint64_t follow_kernels();
    bool active() const { return active_.load(std::memory_order_acquire); }  // pairs: C9

    // Make progress; true when the epoch is complete (or has failed for good). The request stays active.
    virtual bool done() = 0;
    // The same for callers that ask once and must be told: where done() only looks for the word that the
    // sender writes last, this also looks at what a kernel's Parrived could have seen before it.
    virtual bool done_exactly() { return done(); }
    // As done() says true: fill `status`, make the request inactive, give the operation's error.
    status retire(MPI_Status *status);
    // The same without making it inactive.
    void fill_status(MPI_Status *status);
    // An error that device code left behind, once.
    status device_error() { return detail::load_relaxed(&words->error) == 0 ? status{} : take_device_error(); }
    // The error of an epoch that has ended with one, or in which a device call has failed. The request stays active.
    status failed_already();
    // The error with which its epoch will end, as far as is known; kernels are not told of it.
    status failed_so_far() { return active() ? ending() : status{}; }
    // For calls that have not found the request complete: it may never be, because of an error of device code. Each
    // tells of an error once. A kernel's wait has timed out:
    status kernel_timeout() { return detail::load_relaxed(&words->error) == 0 ? status{} : take_kernel_timeout(); }
    // Any other error: MPI_ERR_PENDING, once the request has had time to complete all the same. The error stays for the
    // call that completes the request.
    status overdue() { return detail::load_relaxed(&words->error) == 0 ? status{} : look_whether_overdue(); }
    // Either, or what device code has left behind on an inactive request.
    status error_of_incomplete();
    // Whether completion calls concern it: it is active, or device code has left an error.
    bool concerns_caller() const { return active() || detail::load_relaxed(&words->error) != 0; }

    // advance(); without memory it does nothing, and must be called again.
    bool try_advance();
    // What the engine has to do for it now, from whatever thread makes progress. False: nothing more in this
    // epoch, unless it is attended again.
    virtual bool advance() { return false; }
    // MPIX_Pbuf_prepare's question.
    virtual bool prepared() = 0;
    virtual stall describe_stall() = 0;
    // The same, with obstacle().
    stall describe_stall_fully();
    // In sentences: "the send to rank 1, tag 0,".
    std::string name() const;
    // Its state in words, for the peer's stall report; continues "rank n has". setup_mutex is held.
    std::string standing();

    // The user frees it: give up what the peer does not need to wait for. setup_mutex is held.
    virtual void on_leave() {}

    // The peer's side of the setup; setup_mutex is held. `from`: the peer's number of its request. What is not for this
    // side of a pair is ignored.
    virtual void take_accept(std::uint64_t /*from*/, const accept_body &) {}
    virtual void take_connect(std::uint64_t /*from*/, const connect_body &) {}
    virtual void take_withdraw(std::uint64_t /*from*/) {}  // by a receive
    virtual void take_detach(std::uint64_t from) = 0;

    // The peer's process has ended: what is not complete never will be. setup_mutex is held.
    virtual void peer_ended() = 0;
    // Whether a peer that it has parted from may still have its memory mapped. setup_mutex is held.
    virtual bool parting() const { return false; }
    // Whether a kernel of the library's may be working with it yet. setup_mutex is held.
    virtual bool busy() { return false; }
    // Whether it is active, and in the same epoch as at the last call. setup_mutex is held.
    bool in_same_epoch_still();
    // For how many milliseconds it has been active without a partner, as far as this was called meanwhile. setup_mutex
    // is held.
    std::int64_t unmatched_ms(std::int64_t now_ms);

    // Host threads that play kernels move bytes by the datatype's map from now on.
    void use_layouts();

    std::string path() const;
    std::uint64_t total_bytes() const { return static_cast<std::uint64_t>(op.partitions) * partition_bytes; }
    int peer_world() const { return op.members->peers[static_cast<std::size_t>(op.peer)]; }
    bool null_peer() const { return op.peer == MPI_PROC_NULL; }
    std::uint64_t epoch() const { return epoch_; }
    // Adds what it has moved in the epochs that have ended well. setup_mutex is held.
    void add_to(traffic_by_path &sum);
    bool refused() const { return refusal_ != refused_not; }  // setup_mutex is held
    match_key key() const;
    // Whether an exported copy may go inline, if its route has one.
    virtual bool inline_capable() const = 0;
    // Why kernels of its receiver's do not read it out of its send buffer, as far as this side's buffer goes (rget.h);
    // empty: they may.
    reason why_no_rget(std::uint64_t least = 0) const;
    // Whether an inline buffer for partitions of at most so many bytes is one for its partitions.
    bool fits_inline(std::uint64_t most_bytes) const;
    // The user's buffer as a network sees it; and by what the network reaches GPU memory, null if by nothing.
    gpu_end end_for(transport::network &network, transport::gpu_puts *&gpus) const;
    // The bytes of the user's buffer that may belong to the message, counted from element 0.
    memory_span used_memory() const;
    // Of one that is not empty.
    offset_table offsets() const { return {*op.type, op.buffer, total_bytes()}; }
    copy_source source() const;

    const operation op;
    const mpix_kind kind;
    std::uint64_t number = 0;             // unique in this process, in the order in which they join the setup
    const std::uint64_t partition_bytes;  // packed
    const bool gapless;                   // the buffer is one piece, in packing order, or the message empty
    MPI_Request handle = MPI_REQUEST_NULL;

    mpix_prequest *home = nullptr;  // the host's own instance, in home_memory_
    mpix_words *words = nullptr;    // in words_region
    transport::region words_region;
    transport::placement place;  // of the user's buffer

    std::mutex engine;
    // An exported handle: `home` itself, for host threads, or a copy on a GPU. Guarded by `engine`.
    bool exported_to_host = false;
    std::unique_ptr<device_copy> device;
    mpix_layouts home_layouts{nullptr, nullptr};
    std::vector<std::uint64_t> shared;  // home->shared

    // Guarded by setup_mutex.
    std::uint64_t peer_number = 0;  // the peer's request, once matched
    std::uint64_t bound_to = 0;     // a receive: the send whose offer it has taken, by the sender's number
    bool connected = false;
    bool acquainted = false;  // an epoch has been completed, so both sides have started
    bool peer_gone = false;   // it has sent DETACH
    bool freed = false;
    std::atomic<bool> waiting{false};   // counted among those that wait for a control message; any thread may look
    std::unique_ptr<inquiry> question;  // of a long wait

    // The progress list's own, and guarded by its mutex.
    const place_in_progress room_in_list;
    static constexpr std::size_t not_attended = ~std::size_t{0};
    std::size_t attended_at = not_attended;
    std::uint64_t times_attended = 0;

protected:
    // What a send's and a receive's stall have in common.
    stall stall_so_far(const char *kind_name, const char *missing_what) const;

    // By what the peer is reached; null: the processes share memory, or it is not known yet. `engine` is held.
    virtual transport::network *network() const = 0;
    virtual const char *path_now() const = 0;  // as path() says; setup_mutex is held
    virtual void ready_placeholder() {}        // with op.no_partitions, after Start: marks the empty partition ready
    virtual void on_start() = 0;               // after the epoch word is out; `engine` is held
    virtual void on_kernel_start() = 0;        // the same of an epoch that a kernel has started
    void follow_kernels_locked();              // `engine` is held
    status end_kernel_epochs();
    // Whether a kernel has started the running epoch. If a kernel of the peer has, too, neither host is told of its end
    // (say_all_ready). `engine` is held.
    bool may_end_quietly() const { return device != nullptr && epoch_ != host_started_; }
    bool quiet_look_due() { return may_end_quietly() && pace_.due(host_started_, epoch_); }
    virtual std::uint64_t deferred() const { return 0; }  // partitions, in all epochs; `engine` is held
    virtual std::string done_so_far() { return {}; }      // in a running epoch, after standing(); `engine` is held
    virtual bool lacks_partitions() { return false; }     // that this process has to mark ready; `engine` is held
    virtual status outcome() = 0;                         // of a complete epoch
    status ending();                                      // the same, also where there is no memory for its sentence
    status take_device_error();
    status take_kernel_timeout();
    status look_whether_overdue();
    status device_error_in(std::uint64_t word);
    std::string obstacle();
    static void invalidate(mpix_prequest *handle);
    virtual void status_of(MPI_Status *status) const = 0;
    void fill_status(MPI_Status *status, bool failed) const;
    std::uint64_t error_period(std::uint64_t word);
    status allocate_words(std::uint64_t extra_bytes);
    // What may wait for kernels is done in the init call, before a kernel can wait for us.
    status prepare_gpu() const;
    status ended_peer() const;

    // Aligned in place: the heap's own aligned allocation takes several times as long.
    std::unique_ptr<char[]> home_memory_;
    std::atomic<bool> active_{false};
    std::uint64_t epoch_ = 0;               // the host's last, or a later one that kernels have started
    std::uint64_t host_started_ = 0;        // the last one that the host has started
    std::atomic<std::uint64_t> failed_{0};  // epochs that have ended with an error
    look_pace pace_;                        // guarded by engine
    // Of an error of device code in this epoch: what completion calls, one at a time, have made of it so far.
    enum class error_use { none, noticed, waited_for, told } error_use_ = error_use::none;
    std::chrono::steady_clock::time_point noticed_{};
    status failure_;  // the pair cannot work; guarded by setup_mutex until clear-to-send
    refusal_reason refusal_ = refused_not;
    bool peer_ended_ = false;              // and so its epoch has failed, and all later ones will; guarded by `engine`
    std::uint64_t watched_word_ = 0;       // the epoch word, when it was last looked at; guarded by setup_mutex
    std::int64_t unmatched_since_ms_ = 0;  // 0: it is not
};

template <class Body>
status attempt(const Body &body) {
    try {
        return body();
    } catch (const std::bad_alloc &) {
        return no_memory();
    }
}
// False if memory ran out.
template <class Step>
bool try_step(const Step &step) {
    try {
        step();
        return true;
    } catch (const std::bad_alloc &) {
        return false;
    }
}
// As a message tells the peer of it.
control_text reason_for_peer(const status &why);

// Every partitioned request of this process, by the MPI library's handle.
inline handle_table<request> &requests() {
    static auto *const table = new handle_table<request>;
    return *table;
}
// The table of requests(), null before the first one. So look-ups need no guard of a static variable.
inline constinit std::atomic<const handle_table<request> *> request_table{nullptr};
inline request *find_request(MPI_Request handle) {
    const handle_table<request> *const table = request_table.load(std::memory_order_acquire);  // pairs: H1
    return table == nullptr ? nullptr : table->find(handle_key(handle));
}
// The send of the last MPI_Pready, in processes of one thread, so that the next one need not look it up; else null.
inline constinit std::atomic<request *> last_readied{nullptr};
// Enter a request whose handle is set; take it out again. In between the table keeps it alive.
void own(const std::shared_ptr<request> &r);
std::shared_ptr<request> disown(request *r);
// In MPI_Finalize: forget requests that the user has not freed; the library refuses later calls with them.
void forget_handles();

// Fill a status as MPI says of null and inactive requests.
void fill_empty_status(MPI_Status *status);

}  // namespace mpix

#endif  // MPIX_HOST_REQUEST_REQUEST_H
