// SPDX-License-Identifier: BSD-3-Clause
//
// The sending side of a partitioned request.
#ifndef MPIX_HOST_TRANSFER_SEND_H
#define MPIX_HOST_TRANSFER_SEND_H

#include <memory>
#include <string_view>
#include <vector>

#include "host/export/inline_drain.h"
#include "host/protocol/select.h"
#include "host/request/request.h"
#include "host/request/upcalls.h"
#include "host/staging/chunks.h"
#include "transport/reserve.h"

namespace mpix {

class send_request final : public request {
public:
    explicit send_request(const operation &o) : request(o, MPIX_KIND_SEND) {}
    ~send_request() override;

    problem prepare() override;
    // The host's MPI_Pready: an error class. Never waits for the receiver.
    int ready(int partition);
    // The same for all partitions from `low` to `high`, which must exist; stops at the first error, and sets `refused`
    // to that partition.
    int ready_range(int low, int high, int &refused);
    // What an error of ready() means.
    problem not_readied(int partition, int error_class) const;

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
    bool inline_capable() const override { return offered_inline_; }

    // setup_mutex and engine are held. export_to fills in the exported copy, and takes it from the caller; end_export
    // gives it back. The caller makes the copy before it has the locks, and destroys it after, since both may wait for
    // kernels.
    problem export_to(std::unique_ptr<device_copy> &made, std::uint32_t contributors);
    std::unique_ptr<device_copy> end_export();
    void export_to_host(bool exported);

protected:
    void on_start() override;
    problem outcome() override;
    std::string done_so_far() override;
    void status_of(MPI_Status *) const override {}

private:
    template <bool Alone>
    int ready_here(int partition);
    [[gnu::cold]] int ready_with_kernels(int partition);
    [[gnu::cold]] void attend();

    struct move {
        int partition;
        bool for_host;  // by the host's Pready of an exported request: counted when moved
        std::unique_ptr<transport::transfer> transfer;
        bool offered = false;  // to kernels of the receiver, which have not answered yet
    };

    void undo_match();
    void detach_regions(bool in_use);
    void drop_route(bool in_use);
    bool offers_single_copy();
    bool offers_gpu_put();
    void offer_inline(offer_body &m);
    void offer_pull(offer_body &m);
    transport::choice choose_path(const accept_body &m) const;
    transport::outcome attach(const accept_body &m, const transport::choice &choice);
    transport::outcome attach_landing(const accept_body &m, int user);
    void write_in_place(int partition);
    transport::outcome read_layout(const transport::wire_region &from);
    transport::outcome install_on_device();
    void install_queue(int executor);
    transport::outcome make_staging(int executor, transport::queue_message &message);
    char *landing_now() const;
    bool gate_open() const;
    bool complete() const;
    std::vector<int> not_ready() const;
    void drain();
    void start_move(int partition, bool for_host);
    void carry_out(move m);
    void look_for_answers();
    bool nobody_reads(std::uint64_t partition);
    transport::outcome start_transfer(int partition, std::unique_ptr<transport::transfer> &out);
    std::unique_ptr<transport::transfer> start_put(int partition) const;
    std::vector<char> packed(int partition) const;
    void finish_move(const move &m);
    void count_shares();
    transport::outcome look_for_both();
    void set_flag(std::uint64_t index);
    void conclude();
    void fail(std::string_view why);
    void make_room();

    const bool alone_ = one_thread_calls();

    // The route, as this process reaches it. Written under setup_mutex and engine, read under either.
    transport::region landing_, arrival_, peer_words_;
    std::shared_ptr<const plan> landing_type_;     // of a landing with gaps
    char *landing_at_ = nullptr;                   // of packed byte 0, or with gaps of element 0
    bool in_place_ = false;                        // the landing is the receive buffer, in the receiver's own memory
    const transport::peer_memory *far_ = nullptr;  // how that memory is written
    std::string why_no_single_copy_;               // as far as is known here
    transport::gpu_puts *gpu_wire_ = nullptr;      // how the network reaches GPU memory; null: not at all
    std::string why_staged_;                       // why the network does not read the send buffer in GPU memory
    bool offered_gpu_put_ = false;
    inline_threshold inline_threshold_;  // as of our OFFER, if the receive has no gaps
    bool offered_inline_ = false;
    std::uint64_t least_pulled_ = 0;  // see rget.h
    std::string why_not_pulled_;      // as far as is known here
    transport::region wanted_;        // in our GPU's memory: the partitions that kernels of the receiver wait for
    bool pulls_ = false;              // kernels of the receiver may be offered partitions
    transport::region peer_view_;     // of peer_words_, for the exported copy's GPU
    std::uint64_t slots_ = 0;
    chunking chunks_;  // also decides how many arrival flags there are
    inline_buffer_layout inline_buffer_;
    movement movement_;
    // A match was undone after the first Start. Callers of Pready may remember its route, so they are given no other;
    // from then on the engine moves everything.
    bool route_spent_ = false;
    transport::safe_vector<transport::region> retired_;  // what callers of Pready, or a queue, may still write to

    // How executors post to the peer themselves. Entries of all matches are kept, as callers of Pready may remember an
    // earlier one.
    transport::send_queue *queue_ = nullptr;
    transport::queued_message *posted_ = nullptr;  // of the present match
    std::vector<std::unique_ptr<transport::queued_message>> postings_;
    transport::region staging_;
    char *staging_view_ = nullptr;

    // Guarded by engine.
    std::uint64_t ring_taken_ = 0;     // entries of the ring consumed, all epochs
    std::uint64_t ring_at_start_ = 0;  // at this epoch's start
    std::vector<int> host_ready_;      // readied by the host on an exported request, not moved yet
    std::vector<bool> host_readied_;   // in this epoch
    std::uint64_t host_share_ = 0;     // how many of them have been moved
    std::uint64_t counted_ = 0;        // last epoch in which count_shares() found all ready
    std::vector<move> moving_;
    std::unique_ptr<transport::transfer> departing_;  // a flush behind the last epoch's words
    std::uint64_t engine_moves_ = 0;                  // in this epoch
    std::uint64_t concluded_ = 0;                     // last epoch that the engine has completed
    transport::outcome engine_failure_;
};

}  // namespace mpix

#endif  // MPIX_HOST_TRANSFER_SEND_H
