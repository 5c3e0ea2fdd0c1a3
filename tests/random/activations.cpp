// SPDX-License-Identifier: BSD-3-Clause
//
// Activations of several epochs: the host has started requests, and a kernel, or what is enqueued to a stream, ends their
// epochs and starts the next ones.
#include <algorithm>
#include <random>

#include "tests/random/execute.hpp"

namespace random_test {

// What the kernel, or the stream, does in its epochs, drawn from the step's number.
class execution::kernel_writer {
public:
    kernel_writer(execution &all, const step &s) : all_(all), p_(all.p_), s_(s), random_(s.order) {}
    kernel_plan plan();

private:
    struct share {
        const activation *what;
        const unsigned char
            *data;      // the messages of the epochs, one behind the other; of the one before, too, if it begins
        bool direct;    // goes on by next_epoch, and not by wait and start
        bool prepared;  // there is an epoch handle
        bool by_host;   // the host has started the epoch that runs
    };

    void prepare_data();
    kernel_epoch epoch(int k);
    void add_tasks(int k);
    kernel_turn turn(const share &one, int k) const;
    int add_turns(int k, std::vector<share *> those);
    kernel_caller caller() { return {below(3), below(5), below(2) == 0}; }

    bool null_receive(const share &one) const {
        return all_.with(one.what->request).null_peer && !is_send(one.what->request);
    }
    bool goes_on(const share &one, int k) const { return k + 1 < one.what->epochs; }
    int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    template <class T>
    void shuffle(std::vector<T> &all) {
        for (std::size_t n = all.size(); n > 1; --n)
            std::swap(all[n - 1], all[program::at(below(static_cast<int>(n)))]);
    }

    execution &all_;
    const program &p_;
    const step &s_;
    std::mt19937_64 random_;
    std::vector<share> shares_;
    kernel_plan plan_;
};

// And what the host finds at the end.
void execution::kernel_writer::prepare_data() {
    for (const activation &one : s_.activations) {
        live &l = all_.of(one.request);
        const auto bytes = static_cast<std::size_t>(p_.bytes(one.request));
        const int all = one.epochs + one.begins, first = l.epoch;
        unsigned char *const data = all_.device_.allocate_shared(bytes * program::at(all) + 1);
        all_.memory_of_kernel_.push_back(data);
        shares_.push_back({&one, one.begins ? data + bytes : data, false, false, !one.begins && l.epoch == l.started});
        l.epoch += all - 1;
        all_.done_.epochs += static_cast<std::uint64_t>(all - 1);
        (s_.by_stream ? all_.done_.stream_epochs : all_.done_.kernel_epochs) += static_cast<std::uint64_t>(all - 1);
        if (null_receive(shares_.back())) continue;
        for (int k = 0; k < all; ++k) {
            const memory message = message_of(p_, pair_of(one.request), first + k);
            std::copy(message.begin(), message.end(), data + program::at(k) * bytes);
        }
        l.expected = after(p_, one.request, l.epoch, l.started);
        std::copy_n(data + program::at(all - 1) * bytes, bytes, l.packed);
    }
}

kernel_plan execution::kernel_writer::plan() {
    prepare_data();
    int epochs = 0;
    for (const activation &one : s_.activations) epochs = std::max(epochs, one.epochs);
    // Before the first: what begins then. A stream's first start after the host's does nothing.
    const bool begins = s_.by_stream || std::any_of(s_.activations.begin(), s_.activations.end(),
                                                    [](const activation &one) { return one.begins; });
    for (int k = begins ? -1 : 0; k < epochs; ++k) plan_.epochs.push_back(epoch(k));
    plan_.slots = static_cast<int>(shares_.size());
    return std::move(plan_);
}

kernel_epoch execution::kernel_writer::epoch(int k) {
    kernel_epoch e{};
    const int mixture = below(3);
    std::vector<share *> nexts, waits, starts;
    for (share &one : shares_) {
        if (one.what->epochs <= k) continue;
        if (k < 0 && !one.what->begins) {
            if (s_.by_stream && one.by_host && below(2) == 0) starts.push_back(&one);
            continue;
        }
        // The memory of a send that overlaps itself is written between wait and start.
        one.direct = !s_.by_stream && goes_on(one, k) && !p_.end_of(one.what->request).self_overlapping &&
                     (mixture == 0 || (mixture == 1 && below(2) == 0));
        if (one.direct)
            nexts.push_back(&one);
        else if (goes_on(one, k) || one.what->waits)
            waits.push_back(&one);
        if (goes_on(one, k) && !one.direct) starts.push_back(&one);
    }
    e.tasks[0] = static_cast<int>(plan_.tasks.size());
    if (k >= 0) add_tasks(k);
    e.tasks[1] = static_cast<int>(plan_.tasks.size());
    while (!waits.empty() && below(4) == 0) waits.push_back(nullptr);
    e.nexts[0] = static_cast<int>(plan_.turns.size());
    e.nexts[1] = e.waits[0] = add_turns(k, nexts);
    e.waits[1] = e.starts[0] = add_turns(k, waits);
    e.starts[1] = add_turns(k, starts);
    e.prepared = below(2) == 0;
    for (share &one : shares_) one.prepared = one.direct && e.prepared;
    e.next = caller();
    e.wait = caller();
    e.start = caller();
    return e;
}

// First all that is readied, without waiting for anybody; then what waits.
void execution::kernel_writer::add_tasks(int k) {
    std::vector<part> ready, wait;
    if (k == 0) ready = s_.parts;
    for (const share &one : shares_) {
        const activation &a = *one.what;
        for (int n = 0; n < p_.end_of(a.request).partitions && k < a.epochs; ++n) {
            const bool left = !goes_on(one, k) && std::find(a.left.begin(), a.left.end(), n) != a.left.end();
            if (is_send(a.request) && (k > 0 || a.begins) && !left) {
                if (s_.by_stream)
                    ready.push_back({a.request, n});
                else
                    p_.slice({a.request, n}, ready);
            }
            // Once the next epoch is started, nobody can look at the bytes any more.
            if (!is_send(a.request) && (one.direct || ((goes_on(one, k) || a.waits) && below(2) == 0)))
                wait.push_back({a.request, n});
        }
    }
    shuffle(ready);
    shuffle(wait);
    ready.insert(ready.end(), wait.begin(), wait.end());
    const auto data = [&](int request) {
        const auto one = std::find_if(shares_.begin(), shares_.end(),
                                      [&](const share &other) { return other.what->request == request; });
        return one->data + static_cast<std::int64_t>(k) * p_.bytes(request);
    };
    for (kernel_task &task : all_.tasks_of(ready, s_, data)) {
        for (std::size_t n = 0; n < shares_.size(); ++n)
            if (shares_[n].what->request == task.request && shares_[n].prepared) task.slot = static_cast<int>(n);
        plan_.tasks.push_back(task);
    }
}

kernel_turn execution::kernel_writer::turn(const share &one, int k) const {
    const int request = one.what->request;
    const live &l = all_.of(request);
    const end &e = p_.end_of(request);
    const std::int64_t bytes = null_receive(one) ? 0 : p_.bytes(request);
    const unsigned char *const now = one.data + k * bytes;
    return {l.handle,
            l.exported,
            request,
            static_cast<int>(&one - shares_.data()),
            is_send(request),
            one.prepared,
            e.self_overlapping,
            l.places != nullptr ? l.on_device : l.on_device + e.origin,
            l.places,
            static_cast<std::uint64_t>(bytes),
            now,
            goes_on(one, k) ? now + bytes : nullptr};
}

// Returns how many turns there are.
int execution::kernel_writer::add_turns(int k, std::vector<share *> those) {
    shuffle(those);
    for (const share *const one : those) plan_.turns.push_back(one != nullptr ? turn(*one, k) : kernel_turn{});
    return static_cast<int>(plan_.turns.size());
}

void execution::launch_epochs(const step &s) {
    const kernel_plan plan = kernel_writer(*this, s).plan();
    if (s.by_stream)
        device_.enqueue(plan, s.blocks, s.whole_blocks);
    else
        device_.launch(plan, s.blocks, s.threads, s.whole_blocks);
}

}  // namespace random_test
