// SPDX-License-Identifier: BSD-3-Clause
//
// The receiving side of a partitioned request.
#ifndef MPIX_HOST_TRANSFER_RECEIVE_H
#define MPIX_HOST_TRANSFER_RECEIVE_H

#include <cstdlib>
#include <memory>
#include <vector>

#include "host/export/inline_drain.h"
#include "host/protocol/select.h"
#include "host/protocol/slot_budget.h"
#include "host/request/request.h"
#include "host/request/upcalls.h"
#include "host/staging/staged_delivery.h"
#include "host/transfer/unpack_claim.h"
#include "transport/reserve.h"

namespace mpix {

struct offer;

class receive_request final : public request {
public:
    explicit receive_request(const operation &o) : request(o, MPIX_KIND_RECV) {}
    ~receive_request() override;

    problem prepare() override;
    // The host's MPI_Parrived, of an active request.
    problem arrived(int partition, bool &flag);

    // setup_mutex is held. bind: this receive is matched with that send. unbind: the send was withdrawn.
    void bind(const offer &sender);
    // False: too late, the user has been told that the pair cannot work.
    bool unbind(bool parted = false);
    // setup_mutex is held. No bytes have moved yet, and the send gets another match.
    void part();
    // setup_mutex is held. open: the match can only be this one, so Start may give clear-to-send. meet_for_good: both
    // have started.
    void open();
    void meet_for_good();

    bool done() override;
    bool done_exactly() override;
    bool advance() override;
    bool prepared() override;
    stall describe_stall() override;
    void take_connect(std::uint64_t from, const connect_body &m) override;
    void take_detach(std::uint64_t from) override;
    void peer_ended() override;
    void on_leave() override;
    bool parting() const override;
    bool inline_capable() const override;
    bool busy() override { return inline_drain_ != nullptr && inline_drain_->busy(); }

    // As for a send (send.h).
    problem export_to(std::unique_ptr<device_copy> &made, std::uint32_t contributors);
    std::unique_ptr<device_copy> end_export();

protected:
    void on_start() override;
    problem outcome() override;
    void status_of(MPI_Status *status) const override;

private:
    // Allocated without being touched: an empty message may have very many partitions.
    using taken_states = std::unique_ptr<std::uint64_t[], void (*)(void *)>;

    transport::outcome attach_words(const offer &sender);
    transport::outcome adopt_span(transport::region &out) const;
    transport::outcome adopt_buffer();
    problem try_to_share() const;
    std::string attach_send_buffer(const offer &sender);
    std::string adopt_by_network(const offer &sender);
    landing_kind kind_of_landing() const;
    transport::outcome make_landing(const offer &sender);
    transport::outcome install_on_device();
    transport::outcome describe_landing(accept_body &answer) const;
    void open_gate();
    void give_up();
    void give_gate();
    void tell_gate();
    void drop_landing();
    void drop_view();
    void drop_send_buffer();
    void take_back_buffer();
    bool look_at_flags();
    bool arrived_here(int partition);
    void deliver();
    void take_rest();
    bool take_in_order();
    bool take_next(bool all_here);
    bool flags_on_device() const { return arrival_.device != transport::on_host; }
    chunking chunks() const;
    transport::outcome snapshot();
    bool inline_drained();
    void drain_inline();

    // Written under setup_mutex and engine.
    transport::transport *landing_owner_ = nullptr;
    std::unique_ptr<const transport::choice> choice_;  // until it is explained
    transport::region landing_, arrival_, peer_words_;
    std::unique_ptr<staged_delivery>
        delivery_;  // for GPU memory, over a network: copies chunks there, or only sets flags
    inline_buffer_layout inline_buffer_;
    std::unique_ptr<inline_drain> inline_drain_;  // null before the request is exported to a GPU
    // Copies of ended exports. The first is used to empty the inline buffer; a kernel of the library may still use
    // others.
    std::vector<std::unique_ptr<device_copy>> takers_;
    transport::region layout_;  // the plan of a landing with gaps, for the sender
    // Undone matches: a kernel, or another thread's Parrived, may still look there.
    struct undone_match {
        transport::region arrival, landing, layout;
        taken_states taken;
        std::unique_ptr<staged_delivery> delivery;
        std::uint64_t parted_from = 0;  // the sender's number, until it has answered
        bool was_active = false;
    };
    transport::safe_vector<undone_match> undone_;
    std::uint64_t slots_ = 0, peer_partitions_ = 0;
    landing_room room_;                       // for the first match; its landing may be in undone_
    transport::region peer_buffer_, wanted_;  // in the sender: the buffer that our kernels may read
    transport::region peer_view_;             // of peer_words_, for the exported copy's GPU
    std::string why_not_pulled_;              // why our kernels do not read it
    bool in_place_ = false;                   // no landing: the sender writes into the user's buffer, in our memory
    std::string why_staged_;                  // why the network does not put into the user's buffer, in GPU memory
    taken_states taken_{nullptr, std::free};

    const bool alone_ = one_thread_calls();

    unpack_claim unpack_claim_;

    std::atomic<unsigned> looks_{0};  // at a short message, in done()

    // Guarded by engine.
    bool by_progress_ = false;               // the progress thread copies out what has arrived
    bool told_ = false;                      // a completion call has returned the refusal
    bool awaits_sender_ = false;             // the pair cannot work, but is not final
    bool open_ = false;                      // clear-to-send may be given
    bool final_ = false;                     // both requests have started
    bool gives_gate_ = false;                // and the sender is connected: Start gives clear-to-send
    bool takes_inline_ = false;              // the sender's kernels have been told to use the inline buffer
    std::uint64_t cursor_ = 0;               // sender partitions before it are in the user's buffer, this epoch
    std::vector<std::uint64_t> seen_flags_;  // the GPU's flags, as last copied here
    transport::outcome engine_failure_;
};

}  // namespace mpix

#endif  // MPIX_HOST_TRANSFER_RECEIVE_H
