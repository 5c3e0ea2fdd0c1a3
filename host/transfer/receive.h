// SPDX-License-Identifier: BSD-3-Clause
//
// The receiving side of a partitioned request.
#ifndef MPIX_HOST_TRANSFER_RECEIVE_H
#define MPIX_HOST_TRANSFER_RECEIVE_H

#include <memory>
#include <optional>
#include <vector>

#include "host/export/inline_drain.h"
#include "host/request/request.h"
#include "host/request/upcalls.h"
#include "host/route/receive_route.h"
#include "host/route/sender_memory.h"
#include "host/transfer/unpack_claim.h"
#include "transport/reserve.h"

namespace mpix {

struct offer;

class receive_request final : public request {
public:
    explicit receive_request(const operation &o) : request(o, MPIX_KIND_RECV) {}
    ~receive_request() override;

    status prepare() override;
    // The host's MPI_Parrived, of an active request.
    status arrived(int partition, bool &flag);

    // setup_mutex is held. bind: this receive is matched with that send. unbind: the send was withdrawn.
    void bind(std::uint64_t from, const offer_body &sender);
    // False: too late, the user has been told that the pair cannot work.
    bool unbind();
    // setup_mutex is held. No bytes have moved yet, and the send gets another match.
    void part();
    // setup_mutex is held. open: the match can only be this one, so Start may give clear-to-send. make_final: both
    // have started.
    void open();
    void make_final();

    bool done() override;
    bool done_exactly() override;
    bool advance() override;
    bool prepared() override;
    stall describe_stall() override;
    void take_connect(std::uint64_t from, const connect_body &m) override;
    void take_detach(std::uint64_t from) override;
    void peer_ended() override;
    void on_leave() override;
    bool parting() const override { return !parting_.empty(); }
    bool inline_capable() const override;
    bool busy() override { return inline_drain_ != nullptr && inline_drain_->busy(); }

    // As for a send (send.h).
    status export_to(std::unique_ptr<device_copy> &made, std::uint32_t contributors);
    std::unique_ptr<device_copy> end_export();

protected:
    transport::network *network() const override { return words_ ? words_->link.wire : nullptr; }
    const char *path_now() const override;
    void on_start() override;
    void on_kernel_start() override;
    status outcome() override;
    void status_of(MPI_Status *status) const override;

private:
    // How far the two requests are bound to each other.
    enum class bond {
        loose,   // either may be freed before it is started, and the other matched anew
        single,  // the match can only be this one, so Start may give clear-to-send
        final    // both have started
    };
    // A pair that cannot work (refusal_).
    enum class verdict {
        none,         // it can
        provisional,  // while the match may be undone
        refused,      // a refusal that stays
        raised        // a completion call has returned it
    };

    // Of epochs that kernels start. Otherwise they do it themselves (peer_clear_to_send). `engine` is held.
    bool engine_gives_clear_to_send() const {
        return device != nullptr ? words_view_ == nullptr
                                 : exported_to_host && detail::load_pointer(&home->peer_clear_to_send) == nullptr;
    }
    // In every epoch, as far as is known yet. `engine` is held.
    bool needs_engine() const { return network() != nullptr || delivery() != nullptr || engine_gives_clear_to_send(); }
    bool gives_clear_to_send() const { return bond_ != bond::loose && connected && words_; }
    void refuse(const offer_body &sender, const transport::choice *choice, accept_body &answer);
    bool undo_match();
    status install_on_device();
    void show_route();
    void give_up();
    // When the sender needs it: then it goes at once, or may be delayed.
    enum class needed { in_this_epoch, in_the_next };
    void tell_clear_to_send(needed when);
    void take_back_buffer();
    bool look_at_flags(bool by_progress = false);
    bool look_on_device();
    bool arrived_here(int partition, std::uint64_t epoch);
    void deliver();
    void take_pieces(bool whole, bool by_progress);
    bool take_in_order(bool by_progress);
    bool take_next();
    bool all_flags_are_here();
    bool flags_on_device() const { return route_ != nullptr && route_->flags_on_device; }
    staged_delivery *delivery() const { return route_ == nullptr ? nullptr : route_->delivery.get(); }
    landing_kind landing() const;
    status snapshot();
    bool flagged_all() const;
    bool inline_drained();
    void drain_inline();

    // Copies of ended exports. The first is used to empty the inline buffer; a kernel of the library may still use
    // others.
    std::vector<std::unique_ptr<device_copy>> takers_;

    // Written under setup_mutex and engine. The present match:
    std::optional<sender_words> words_;           // none: there is none, or the sender cannot be reached
    std::shared_ptr<const receive_route> route_;  // null: there is none, or the pair cannot work
    std::unique_ptr<const sender_gpu_memory> sender_gpu_;
    // Matches that were undone. A kernel may look at their flags, so these stay (null of a pair that could not work);
    // of an active request also a kernel, or another thread's Parrived, at the rest.
    transport::safe_vector<std::shared_ptr<own_region>> former_flags_;
    transport::safe_vector<std::shared_ptr<const receive_route>> former_routes_;
    // The sender may be about to map the landing, so that stays until the sender has answered.
    struct parted_match {
        std::uint64_t sender;
        std::shared_ptr<const receive_route> route;
    };
    transport::safe_vector<parted_match> parting_;

    // What an export adds to a route: the sender's words, as kernels reach them, or why they do not; and what takes out
    // of the inline buffer.
    std::unique_ptr<gpu_view> words_view_;
    std::string why_no_view_;
    std::unique_ptr<inline_drain> inline_drain_;
    bool takes_inline_ = false;         // the sender's kernels have been told to use the inline buffer
    std::uint64_t drained_at_end_ = 0;  // last epoch in which that was emptied because the sender's process had ended

    const bool alone_ = one_thread_calls();

    unpack_claim unpack_claim_;
    std::atomic<std::uint64_t> copied_whole_{0};  // last epoch whose message was copied out at once

    std::atomic<unsigned> looks_{0};  // at a short message, in done()

    // Guarded by engine.
    bond bond_ = bond::loose;
    bool freed_by_sender_ = false;  // the last match was undone because the sender has freed its request
    verdict verdict_ = verdict::none;
    std::uint64_t cursor_ = 0;               // sender partitions before it are in the user's buffer, this epoch
    std::uint64_t flagged_ = 0;              // sender partitions before it have come, this epoch
    std::vector<std::uint64_t> seen_flags_;  // the GPU's flags, as last copied here
    status engine_failure_;
};

}  // namespace mpix

#endif  // MPIX_HOST_TRANSFER_RECEIVE_H
