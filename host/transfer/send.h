// SPDX-License-Identifier: BSD-3-Clause
//
// The sending side of a partitioned request.
#ifndef MPIX_HOST_TRANSFER_SEND_H
#define MPIX_HOST_TRANSFER_SEND_H

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "host/request/request.h"
#include "host/request/upcalls.h"
#include "host/route/send_offer.h"
#include "host/route/send_posting.h"
#include "host/route/send_route.h"
#include "host/transfer/pready_fast_path.h"
#include "transport/reserve.h"

namespace mpix {

constexpr const char *memory_taken_back = "the peer has taken its memory back in the middle of an epoch";

class send_request final : public request {
public:
    explicit send_request(const operation &o) : request(o, MPIX_KIND_SEND) {}

    status prepare() override;
    // The host's MPI_Pready: an error class. Never waits for the receiver.
    int ready(int partition) { return ready_fast(partition) ? MPI_SUCCESS : ready_in_full(partition); }
    // The fast path of it. False: nothing was done.
    [[gnu::always_inline]] bool ready_fast(int partition) noexcept { return fast_path_.ready(partition); }
    bool alone() const { return alone_; }  // the process has one thread that calls MPI
    // The same for all partitions from `low` to `high`, which must exist; stops at the first error, and sets `refused`
    // to that partition.
    int ready_range(int low, int high, int &refused);
    // What an error of ready() means.
    status not_readied(int partition, int error_class) const;

    offer_body make_offer();

    bool done() override;
    bool advance() override;
    bool prepared() override;
    stall describe_stall() override;
    void take_accept(std::uint64_t from, const accept_body &m) override;
    void take_withdraw(std::uint64_t from) override;
    void take_detach(std::uint64_t from) override;
    void peer_ended() override;
    void on_leave() override;
    bool inline_capable() const override { return offer_ != nullptr && offer_->goes_inline(); }

    // setup_mutex and engine are held. export_to fills in the exported copy, and takes it from the caller; end_export
    // gives it back. The caller makes the copy before it has the locks, and destroys it after, since both may wait for
    // kernels.
    status export_to(std::unique_ptr<device_copy> &made, std::uint32_t contributors);
    std::unique_ptr<device_copy> end_export();
    void export_to_host(bool exported);

protected:
    transport::network *network() const override { return offer_ == nullptr ? nullptr : offer_->link.wire; }
    const char *path_now() const override;
    void ready_placeholder() override { ready(0); }
    void on_start() override;
    void on_kernel_start() override;
    status outcome() override;
    std::uint64_t deferred() const override { return deferred_; }
    std::string done_so_far() override;
    bool lacks_partitions() override;
    void status_of(MPI_Status *) const override {}

private:
    int ready_in_full(int partition);
    template <bool Alone>
    int ready_here(int partition, bool left_to_receiver);
    bool open_fast_path();
    void tell_if_all_moved();
    [[gnu::cold]] int ready_with_kernels(int partition);
    bool goes_now(std::uint64_t epoch) const;
    [[gnu::cold]] void attend();

    struct move {
        int partition, partitions;  // the first one, and how many
        bool for_host;              // by the host's Pready of an exported request: counted when moved
        std::unique_ptr<transport::transfer> transfer;
        bool rts = false;  // kernels of the receiver may read it, and have not answered yet
    };

    void undo_match();
    void fill_in_home();
    void drop_route();
    status install_on_device();
    const mpix_posting *enter_queue(int executor);
    void leave_queue();
    void drop_queue();
    bool clear_to_send() const;
    bool complete() const;
    void look_for_quiet_end();
    std::vector<int> not_ready() const;
    void drain();
    int most_in_one_move() const;
    void start_moves(std::vector<int> &ready, bool for_host);
    void carry_out(move m);
    bool write_into_peer(int partition);
    bool all_copied(bool writes);
    void choose_copying_side();
    bool by_rget() const { return route_ != nullptr && route_->by_rget(); }
    void look_for_answers();
    bool nobody_reads(std::uint64_t partition);
    void finish_move(const move &m);
    void count_shares();
    status look_for_both();
    void set_flags(std::uint64_t index, std::uint64_t how_many);
    void conclude();
    void tell_end();
    void fail(const status &why);
    void fail(const char *why);
    void make_room();
    bool waiting_to_move() const { return !kernel_ready_.empty() || !host_ready_.empty(); }

    const bool alone_ = one_thread_calls();
    pready_fast_path fast_path_;
    // A single copy: whether the receiver copies what the thread that called Start marks ready in this epoch.
    // The setup chooses anew when it finds the receiver in the first epoch.
    std::atomic<bool> receiver_copies_{true};
    std::uint64_t started_by_ = 0;

    std::unique_ptr<send_offer> offer_;  // null: the peer is

    // Written under setup_mutex and engine, read under either.
    std::shared_ptr<const send_route> route_;  // of the present match; null: none, or the pair cannot work
    // Of matches that were undone after the first Start; null of one that could not work. Callers of Pready may
    // remember them, so they are given no other; from then on the engine moves everything.
    transport::safe_vector<std::shared_ptr<const send_route>> former_routes_;
    // What an export adds to a route: the peer's words and arrival flags in host memory, as kernels reach them; and
    // entries in a work queue, of which executors may remember those of an earlier match.
    std::unique_ptr<gpu_view> words_view_, flags_view_;
    std::unique_ptr<send_staging> staging_;
    std::shared_ptr<const send_posting> posted_;  // null: executors post nothing
    transport::safe_vector<std::shared_ptr<const send_posting>> former_postings_;

    // Guarded by engine.
    std::uint64_t ring_taken_ = 0;     // entries of the ring consumed, all epochs
    std::uint64_t ring_at_start_ = 0;  // at this epoch's start
    std::vector<int> kernel_ready_;    // taken from the ring, not moved yet
    std::vector<int> host_ready_;      // readied by the host on an exported request, not moved yet
    std::vector<bool> host_readied_;   // in this epoch
    std::uint64_t host_share_ = 0;     // how many of them have been moved
    std::uint64_t counted_ = 0;        // last epoch in which count_shares() found all ready
    std::vector<move> moving_;
    std::unique_ptr<transport::transfer> departing_;  // a flush behind the last epoch's words
    std::uint64_t engine_moves_ = 0;                  // in this epoch
    std::uint64_t deferred_ = 0;                      // partitions that the engine has taken over, in all epochs
    std::uint64_t concluded_ = 0;                     // last epoch whose send buffer the engine no longer reads
    std::uint64_t told_end_ = 0;                      // last epoch whose end the engine has told the receiver
    // A single copy: the number of partitions at the front that are known to be copied; and when Wait or Test first found that
    // nobody copies the next one (now_ns; 0: not yet).
    std::uint64_t copied_ = 0, idle_since_ = 0;
    status engine_failure_;
};

}  // namespace mpix

#endif  // MPIX_HOST_TRANSFER_SEND_H
