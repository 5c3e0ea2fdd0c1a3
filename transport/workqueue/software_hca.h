// SPDX-License-Identifier: BSD-3-Clause
//
// A send queue consumed in software as a ConnectX consumes it: the same bytes in, the same bytes out. It carries the
// device code where there is no such NIC, and shows what that code does wrong.
//
// What it takes over from the hardware: the doorbell record is the authority, a store to the doorbell only a hint;
// entries are fetched and executed in order; every failed entry completes, a good one only if it is signalled; after
// the first failure all entries up to the doorbell record complete as flushed, signalled or not, and go nowhere.
#ifndef MPIX_TRANSPORT_WORKQUEUE_SOFTWARE_HCA_H
#define MPIX_TRANSPORT_WORKQUEUE_SOFTWARE_HCA_H

#include <mpix/detail/work_queue.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/service_thread.h"
#include "transport/workqueue/decode.h"
#include "transport/workqueue/key_table.h"

namespace mpix::transport {

/** One write under way. */
class hca_operation {
public:
    /** By the back end, once, from any thread; what was written is in place, or will never be. */
    void finish(detail::syndrome how) { detail::store_release(&state_, std::uint64_t{finished} | how); }  // pairs: Q10

private:
    friend class hca_queue;
    static constexpr unsigned finished = 0x100;
    std::uint64_t state_ = 0;  // 0: under way
    std::uint64_t index_ = 0;
    std::uint8_t opcode_ = 0;
    bool signalled_ = false;
};

struct hca_write {
    std::uint64_t remote_address;
    std::uint32_t remote_key;
    const void *source;  // checked against the local keys; of an inline write valid until write() returns
    std::uint64_t bytes;
    bool is_inline;
};

/** Where writes go. */
struct hca_backend {
    virtual ~hca_backend() = default;
    /** Start it, and call op.finish when it is done, now or later. */
    virtual void write(const hca_write &what, hca_operation &op) = 0;
    /** Called often, by the thread that calls write. */
    virtual void progress() {}
    /**
     * Writes of one queue take effect in the order in which they were started, and none behind a failed one does.
     * Otherwise an inline write, which is a flag, is held back until all before it have finished.
     */
    virtual bool in_order() const { return false; }
};

/** Memory that this process reaches. */
class memory_backend : public hca_backend {
public:
    /** `keys`: the remote side's. */
    explicit memory_backend(const key_table &keys) : keys_(keys) {}
    void write(const hca_write &what, hca_operation &op) override;
    bool in_order() const override { return true; }

private:
    const key_table &keys_;
};

/** Faults to be provoked. May be changed while the queue runs. */
struct hca_faults {
    std::atomic<std::uint64_t> delay_ns{0};        // between two entries
    std::atomic<bool> stall_doorbell{false};       // the record is not looked at
    std::atomic<std::uint64_t> fail_at{no_entry};  // this entry fails, by its index of 64 bits,
    std::atomic<detail::syndrome> fail_with{detail::syndrome_retries_exceeded};
    bool poison = false;  // overwrite fetched slots, so that an entry whose stores come too late is noticed
    static constexpr std::uint64_t no_entry = ~std::uint64_t{0};
};

/** Read while the queue runs, for reports and tests. */
struct hca_counts {
    std::atomic<std::uint64_t> executed{0};  // started at the back end, and empty ones
    std::atomic<std::uint64_t> failed{0};    // without the flushed ones
    std::atomic<std::uint64_t> flushed{0};
    std::atomic<std::uint64_t> torn{0};           // see hca_faults::poison
    std::atomic<std::uint64_t> kicks{0};          // doorbells seen, not all that were rung
    std::atomic<std::uint64_t> strange_kicks{0};  // of another queue pair, or ahead of the doorbell record
    std::atomic<std::uint64_t> bad_records{0};    // doorbell records that speak of more blocks than there are
    std::atomic<std::uint64_t> overruns{0};       // no room in the completion queue; a NIC would give the queue up
};

/** One queue. step() is one thread's. */
class hca_queue {
public:
    /** `rings` as this process reaches them; the counts as the queue was made with. */
    hca_queue(const mpix_queue_rings &rings, const key_table &local_keys, hca_backend &backend,
              std::uint64_t first_block = 0, std::uint64_t first_entry = 0);

    /**
     * Complete what has finished and execute what was handed over, `most` entries; false if there was nothing to do.
     */
    bool step(unsigned most = 1);

    /** As step(), until it has nothing to do. */
    void run() {
        while (step()) {
        }
    }

    /** Blocks below are done with. The stepping thread's. */
    std::uint64_t completed() const { return under_way_.empty() ? next_ : under_way_.front().index_; }
    /** The first entry that failed; those behind it were flushed. hca_faults::no_entry: none. The stepping thread's. */
    std::uint64_t failed_at() const { return failed_at_; }
    std::uint32_t qpn() const { return rings_.qpn; }

    hca_faults faults;
    hca_counts counts;

private:
    bool look_at_doorbell();
    bool execute_next();
    void start(const decoded_wqe &d, hca_operation &op);
    bool complete();
    bool room_for_entry();
    void write_entry(const hca_operation &op, detail::syndrome outcome, std::uint8_t vendor);

    const mpix_queue_rings rings_;
    const key_table &local_keys_;
    hca_backend &backend_;
    std::uint64_t next_;      // block to be fetched
    std::uint64_t posted_;    // blocks below were handed over
    std::uint64_t produced_;  // completion-queue entries written
    std::uint64_t consumed_;  // of them taken by the executor, as far as we know
    std::uint64_t last_kick_ = 0;
    std::uint64_t due_ns_ = 0;
    std::uint64_t failed_at_ = hca_faults::no_entry;
    bool broken_ = false;  // an entry has failed; written when its completion is
    bool stop_ = false;    // an entry is known to fail: nothing more goes to the back end
    std::deque<hca_operation> under_way_;
};

/** The thread that serves queues. */
class software_hca {
public:
    /** Throws std::system_error if there is no thread. */
    software_hca();
    ~software_hca();
    software_hca(const software_hca &) = delete;
    software_hca &operator=(const software_hca &) = delete;

    void add(std::shared_ptr<hca_queue> queue);
    /** When it returns the queue is not looked at any more. */
    void remove(const hca_queue *queue);

private:
    void serve();
    bool step_all();
    template <class Change>
    void change(const Change &change);
    std::mutex mutex_;
    std::atomic<int> waiting_{0};  // for the mutex
    std::vector<std::shared_ptr<hca_queue>> queues_;
    std::atomic<bool> ending_{false};
    service_thread thread_;
};

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_WORKQUEUE_SOFTWARE_HCA_H
