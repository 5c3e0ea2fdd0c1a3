// SPDX-License-Identifier: BSD-3-Clause
//
// The stress tests' work: several requests of different partition sizes in each direction, all their partitions
// in an order that is new in every epoch.
#ifndef MPIX_TESTS_DEVICE_WORKLOAD_HPP
#define MPIX_TESTS_DEVICE_WORKLOAD_HPP

#include <memory>
#include <vector>

#include "tests/device/harness.hpp"

namespace device_test {

// The k-th of n things in an order made from `key`: k -> a k + b modulo n, with a and n coprime.
DEVICE_FN int shuffled(int k, int n, std::uint64_t key) {
    std::uint64_t a = 1 + key % static_cast<std::uint64_t>(n);
    const std::uint64_t size = static_cast<std::uint64_t>(n);
    const auto coprime = [&] {
        std::uint64_t x = a, y = size;
        while (y != 0) {
            const std::uint64_t rest = x % y;
            x = y;
            y = rest;
        }
        return x == 1;
    };
    while (!coprime()) ++a;
    return static_cast<int>((a * static_cast<std::uint64_t>(k) + (key >> 32)) % size);
}

constexpr int most_ports = 4;

struct workload {
    port ports[most_ports];
    int count;

    // Block `index` of `blocks`: fill and ready a share of all partitions, alone or as ranges, then take a share of
    // what comes.
    template <class Block>
    DEVICE_FN void epoch(const Block &block, int index, int blocks, const port *now) const {
        // In some epochs neighbours are readied as ranges.
        const int range = 1 + static_cast<int>((now[0].out_key >> 16) % 4);
        const bool prepares = ((now[0].out_key >> 24) & 1) != 0;
        const auto pieces = [range](const port &p) { return (p.sends + range - 1) / range; };
        int sends = 0, receives = 0;
        for (int i = 0; i < count; ++i) {
            sends += pieces(now[i]);
            receives += now[i].receives;
        }
        for (int k = index; k < sends; k += blocks) {
            int piece = shuffled(k, sends, now[0].out_key), i = 0;
            for (; piece >= pieces(now[i]); ++i) piece -= pieces(now[i]);
            const int low = piece * range, end = low + range < now[i].sends ? low + range : now[i].sends;
            for (int part = low; part < end; ++part) now[i].fill(block, part);
            now[i].expect(low, MPI_SUCCESS,
                          range != 1 ? mpix::pready_range(block, low, end - 1, now[i].send)
                          : prepares ? mpix::pready(block, low, mpix::prepare_send(block, now[i].send))
                                     : mpix::pready(block, low, now[i].send));
        }
        for (int k = index; k < receives; k += blocks) {
            int part = shuffled(k, receives, now[0].in_key), i = 0;
            for (; part >= now[i].receives; ++i) part -= now[i].receives;
            const int code =
                prepares ? mpix::wait_arrived(block, mpix::prepare_receive(block, now[i].receive), part, patience_ns)
                         : mpix::wait_arrived(block, now[i].receive, part, patience_ns);
            now[i].expect(part, MPI_SUCCESS, code);
            if (code == MPI_SUCCESS) now[i].verify(block, part);
        }
    }

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        epoch(block, block_index, blocks, ports);
    }
};

// The host's side of it.
class exchanges {
public:
    explicit exchanges(session &s) {
        add(s, {.sends = 16, .receives = 16, .bytes = 16 * 8});
        add(s, {.sends = 7, .receives = 5, .bytes = 35 * 100, .send_skew = 4});
        add(s, {.sends = 4, .receives = 6, .bytes = 12 * 4096});
        add(s, {.sends = 3, .receives = 3, .bytes = 3 * 65537, .receive_skew = 8});
    }
    void start() {
        for (auto &x : all_) x->next_epoch();
        start_without_poison();
    }
    void start_without_poison() {
        gather();
        must(MPI_Startall(static_cast<int>(requests_.size()), requests_.data()), "MPI_Startall");
    }
    void wait() {
        must(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }
    // The same by MPI_Testall, which also looks at arrivals one by one.
    void poll() {
        for (int done = 0; !done; host_poll_pause())
            must(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE),
                 "MPI_Testall");
    }
    // Kernels have run so many epochs more.
    void count_epochs(long more) {
        for (auto &x : all_) x->epoch += static_cast<std::uint64_t>(more);
    }
    void check_guards() {
        for (auto &x : all_) x->check_guards();
    }
    workload view() const {
        workload w{};
        for (const auto &x : all_) w.ports[w.count++] = x->view();
        return w;
    }

private:
    void add(session &s, const shape &shape) {
        all_.push_back(std::make_unique<exchange>(s, shape, static_cast<int>(all_.size())));
    }
    void gather() {
        requests_.clear();
        for (auto &x : all_) requests_.insert(requests_.end(), {x->requests[1], x->requests[0]});
    }
    std::vector<std::unique_ptr<exchange>> all_;
    std::vector<MPI_Request> requests_;
};

}  // namespace device_test

#endif  // MPIX_TESTS_DEVICE_WORKLOAD_HPP
