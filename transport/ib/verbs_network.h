// SPDX-License-Identifier: BSD-3-Clause
//
// Reliable connections of libibverbs, one queue pair a peer, posted to by the CPU: RDMA writes into registered memory
// of processes on other nodes. Any RDMA device that has them will do, Soft-RoCE included.
//
// Words behind bytes: the writes of one queue pair are executed in the order in which they are posted, and no memory is
// registered with relaxed ordering, so none overtakes another on the way to the receiver's memory.
//
// What is put waits in a list of ours while the queue pair is full: nobody waits for a peer.
//
// The class is in three files: verbs.cc has the device and the registered memory, connections.cc the queue pairs,
// puts.cc what is put.
#ifndef MPIX_TRANSPORT_IB_VERBS_NETWORK_H
#define MPIX_TRANSPORT_IB_VERBS_NETWORK_H

#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "transport/backends.h"
#include "transport/ib/hardware_queues.h"
#include "transport/ib/ibverbs_library.h"
#include "transport/ib/rc.h"
#include "transport/network.h"
#include "transport/reserve.h"

namespace mpix::transport::verbs {

// One put, from put() until its last byte is known to have arrived.
struct put_operation {
    std::uint64_t to;
    std::uint32_t key;
    const char *from;  // null: `word`
    std::uint64_t word;
    std::uint64_t left;  // not posted yet
    ibv_mr *source = nullptr;
};

// A work request under way; they complete in order.
struct posted_write {
    bool last;       // of its put
    ibv_mr *source;  // to be given back then
};

struct peer_process {
    ibv_qp *queue = nullptr;
    std::uint32_t psn = 0;
    std::uint32_t most_inline = 0;
    rdma::qp_address address{}, queues_address{};
    bool met = false, connected = false;
    status no_queue;  // why no queue to it is the NIC's
    status lost;
    std::uint64_t puts = 0, done = 0;  // ever begun; of them, in order, those that have arrived
    safe_deque<put_operation> waiting;
    safe_deque<posted_write> posted;
};

// Memory could not be registered: what errno says.
inline status not_registered() {
    const bool limited = errno == ENOMEM;
    const status why = rdma::failed_call("ibv_reg_mr", errno);
    return limited ? failure(why.message() + " (the limit of locked memory, \"ulimit -l\"?)") : why;
}

class verbs_network final : public network {
public:
    explicit verbs_network(const device_spec &spec) : spec_(spec) {}

    const char *name() const override { return "verbs"; }
    transport_id id() const override { return id_verbs; }

    bool usable(status &why_not) override;
    std::string device() override;
    status introduce(int peer, std::vector<std::uint8_t> &address) override;
    status meet(int peer, std::vector<std::uint8_t> address) override;
    status describe(const region &own, wire_region &out) override;
    void forget(const region &own) override;
    status attach(const wire_region &wire, int peer, region &out) override;
    void detach(region &peers) override { peers = {}; }
    status put(const region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
               std::unique_ptr<transfer> &out) override;
    status put_word(const region &to, std::uint64_t offset, std::uint64_t value) override;
    std::unique_ptr<transfer> flush(int peer) override;
    status no_hardware_queues() override;
    status hardware_queue(int peer, transport &host_memory, transport *gpus, int device,
                          std::unique_ptr<send_queue> &out) override;
    status lost(int peer) override;
    void give_up(int peer) override;
    bool progress() override;
    void stop() override;

private:
    struct arrival;  // puts.cc

    // All of these with `mutex_` held.
    // verbs.cc
    status begin();
    void end();
    // connections.cc
    status make_queue(peer_process &p);
    // Once both ends are known.
    status connect(int peer, peer_process &p);
    // No memory of ours is read or written by way of it any more.
    void drop(peer_process &p);
    // For good: every later call about the peer gives the same reason.
    const status &lose(peer_process &p, const status &why);
    // puts.cc
    status begin_put(int peer, const region &to, std::uint64_t offset, const char *from, std::uint64_t word,
                     std::uint64_t bytes);
    void post_waiting(int number, peer_process &p);
    void complete(const ibv_wc &entry);

    const device_spec spec_;
    std::mutex mutex_;
    bool tried_ = false;
    status broken_;
    ibverbs_library ibv_;
    ibv_context *context_ = nullptr;
    ibv_pd *domain_ = nullptr;
    ibv_cq *completions_ = nullptr;
    rdma::port port_;
    status no_hardware_ = failure("mpix was built without the vendor's header for ConnectX");
    std::shared_ptr<hardware_queues> hardware_;  // or null, and why
    std::uint32_t depth_ = 0;                    // of a queue pair
    std::uint32_t entries_ = 0;                  // of the completion queue
    std::uint32_t room_ = 0;                     // of them, for work requests under way
    std::size_t under_way_ = 0;                  // work requests posted to all peers that have not completed
    std::map<int, peer_process> peers_;
    safe_map<void *, ibv_mr *> registrations_;
};

}  // namespace mpix::transport::verbs

#endif  // MPIX_TRANSPORT_IB_VERBS_NETWORK_H
