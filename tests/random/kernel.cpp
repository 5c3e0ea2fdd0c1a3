// SPDX-License-Identifier: BSD-3-Clause
#include "tests/random/kernel.hpp"

#include "tests/device/grid_barrier.hpp"
#include "tests/device/harness.hpp"
#include "tests/device/stream.hpp"

namespace random_test {

using device_test::as_group;
using device_test::complain;
using device_test::enqueued_list;
using device_test::executor;
using device_test::expect_code;
using device_test::grid_barrier;
using device_test::patience_ns;
using device_test::report;
using device_test::scope;
using device_test::stream;
using device_test::wrong;

namespace {

struct prepared {
    mpix::prepared_send send;
    mpix::prepared_receive receive;
};

template <class Pointer>
DEVICE_FN std::int64_t place(const Pointer *at, std::uint64_t n) {
    return at != nullptr ? at[n] : static_cast<std::int64_t>(n);
}

template <class Group>
DEVICE_FN int ready(const Group &group, const kernel_task &t, const prepared *values) {
    if (t.share) return mpix::pready_contribute(group, t.partition, t.handle, t.begin, t.bytes);
    if (t.contribute) return mpix::pready_contribute(group, t.partition, t.handle);
    if (t.last > t.partition) return mpix::pready_range(group, t.partition, t.last, t.handle);
    if (t.slot >= 0) return mpix::pready(group, t.partition, values[t.slot].send);
    if (t.request % 8 == 0) return mpix::pready(group, t.partition, t.handle);
    if (t.request % 4 == 0) return mpix::pready(group, t.partition, mpix::prepare_send(group, t.handle));
    return mpix::pready_typed(group, t.partition, t.handle);
}

template <class Group>
DEVICE_FN void fill(const Group &group, const kernel_task &t) {
    const auto first = static_cast<std::uint64_t>(group.thread_rank());
    const auto step = static_cast<std::uint64_t>(group.num_threads());
    for (std::uint64_t n = first; t.data != nullptr && n < t.bytes; n += step)
        t.buffer[place(t.at, n)] = static_cast<char>(t.data[n]);
}

template <class Group>
DEVICE_FN void run(const Group &group, const kernel_task &t, const prepared *values, report *errors) {
    const auto first = static_cast<std::uint64_t>(group.thread_rank());
    const auto step = static_cast<std::uint64_t>(group.num_threads());
    const auto number = static_cast<std::uint64_t>(t.request);
    if (t.send) {
        fill(group, t);
        expect_code(errors, number, t.partition, MPI_SUCCESS, ready(group, t, values));
        return;
    }
    if (t.slot >= 0 || t.request % 2 == 0) {
        const mpix::prepared_receive value =
            t.slot >= 0 ? values[t.slot].receive : mpix::prepare_receive(group, t.handle);
        expect_code(errors, number, t.partition, MPI_SUCCESS,
                    mpix::wait_arrived(group, value, t.partition, patience_ns));
        if (!mpix::parrived(group, value, t.partition)) complain(errors, wrong::answer, number, t.partition, 0, 1, 0);
    } else {
        expect_code(errors, number, t.partition, MPI_SUCCESS,
                    mpix::wait_arrived(group, t.handle, t.partition, patience_ns));
    }
    if (!mpix::parrived(group, t.handle, t.partition)) complain(errors, wrong::answer, number, t.partition, 0, 1, 0);
    for (std::uint64_t n = first; n < t.bytes; n += step) {
        const unsigned char expected = t.data[n], found = static_cast<unsigned char>(t.buffer[place(t.at, n)]);
        if (expected != found) complain(errors, wrong::byte, number, t.partition, n, expected, found);
    }
}

struct body {
    const kernel_task *tasks;
    int count;
    scope by;
    report *errors;

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        as_group(block, by, [&](const auto &group, int index, int groups) {
            for (int n = block_index * groups + index; n < count; n += blocks * groups)
                run(group, tasks[n], nullptr, errors);
        });
    }
};

// Sends whose partitions are readied by the stream.
struct fill_body {
    const kernel_task *tasks;
    int count;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        for (int n = block_index; n < count; n += blocks) fill(block, tasks[n]);
    }
};

// What is said for the partition in complaints of calls that have none.
constexpr int in_next = 1001, in_wait = 1002, in_start = 1003, behind_wait = 1004;

// What the epoch has left in the memory, and then what no later look may find there: other bytes than those that come
// next. Each byte by one thread.
template <class Block>
DEVICE_FN void look_at_memory(const Block &block, const kernel_turn &t, report *errors) {
    const auto first = static_cast<std::uint64_t>(block.thread_rank());
    const auto step = t.alone ? 1 : static_cast<std::uint64_t>(block.num_threads());
    if (t.alone && first != 0) return;
    for (std::uint64_t n = first; t.now != nullptr && n < t.bytes; n += step) {
        const unsigned char found = static_cast<unsigned char>(t.buffer[place(t.at, n)]);
        if (found != t.now[n])
            complain(errors, wrong::byte, static_cast<std::uint64_t>(t.request), behind_wait, n, t.now[n], found);
    }
    for (std::uint64_t n = first; t.next != nullptr && n < t.bytes; n += step)
        t.buffer[place(t.at, n)] = static_cast<char>(t.alone ? t.next[n] : ~t.next[n]);
}
struct look_body {
    const kernel_turn *turns;
    int count;
    report *errors;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        for (int n = block_index; n < count; n += blocks) look_at_memory(block, turns[n], errors);
    }
};

struct epochs_body {
    const kernel_task *tasks;
    const kernel_turn *turns;
    const MPIX_Prequest *handles;  // those of the turns
    const kernel_epoch *epochs;
    int count;
    scope by;
    prepared *values;
    grid_barrier meet;
    report *errors;

    template <class Group>
    DEVICE_FN void expect(const Group &group, int turn, int where, int code) const {
        if (group.thread_rank() == 0)
            expect_code(errors, static_cast<std::uint64_t>(turns[turn].request), where, MPI_SUCCESS, code);
    }

    // Calls list(group, first, n) for all turns at once, or for each.
    template <class Block, class List>
    DEVICE_FN void call(const Block &block, const kernel_caller &caller, const int (&range)[2], bool each,
                        const List &list) const {
        if (range[0] == range[1]) return;
        constexpr scope parts[] = {scope::block, scope::thread, scope::warp, scope::tile4, scope::partial_warp};
        constexpr scope host_parts[] = {scope::block, scope::thread};
        as_group(block, executor::is_gpu ? parts[caller.group % 5] : host_parts[caller.group % 2],
                 [&](const auto &group, int index, int groups) {
                     if (each)
                         for (int n = range[0] + index; n < range[1]; n += groups) list(group, n, 1);
                     else if (index == 0)
                         list(group, range[0], range[1] - range[0]);
                 });
    }

    template <class Group>
    DEVICE_FN int next_prepared(const Group &group, const kernel_turn &t) const {
        int code;
        if (t.send) {
            mpix::prepared_send value = t.prepared ? values[t.slot].send : mpix::prepare_send(group, t.handle);
            code = mpix::next_epoch(group, value, patience_ns);
            if (group.thread_rank() == 0) values[t.slot].send = value;
        } else {
            mpix::prepared_receive value = t.prepared ? values[t.slot].receive : mpix::prepare_receive(group, t.handle);
            code = mpix::next_epoch(group, value, patience_ns);
            if (group.thread_rank() == 0) values[t.slot].receive = value;
        }
        return code;
    }

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        for (int k = 0; k < count; ++k) {
            const kernel_epoch &e = epochs[k];
            as_group(block, by, [&](const auto &group, int index, int groups) {
                for (int n = e.tasks[0] + block_index * groups + index; n < e.tasks[1]; n += blocks * groups)
                    run(group, tasks[n], values, errors);
            });
            meet(block);
            if (e.next.block % blocks == block_index)
                call(block, e.next, e.nexts, e.next.each || e.prepared, [&](const auto &group, int n, int all) {
                    expect(group, n, in_next,
                           e.prepared ? next_prepared(group, turns[n])
                           : all == 1 ? mpix::next_epoch(group, handles[n], patience_ns)
                                      : mpix::next_epoch(group, all, handles + n, patience_ns));
                });
            if (e.wait.block % blocks == block_index)
                call(block, e.wait, e.waits, e.wait.each, [&](const auto &group, int n, int all) {
                    expect(group, n, in_wait,
                           all == 1 ? mpix::wait(group, handles[n], patience_ns)
                                    : mpix::wait(group, all, handles + n, patience_ns));
                });
            meet(block);
            if (e.waits[0] == e.waits[1]) continue;
            for (int n = e.waits[0] + block_index; n < e.waits[1]; n += blocks) look_at_memory(block, turns[n], errors);
            meet(block);
            if (e.start.block % blocks == block_index)
                call(block, e.start, e.starts, e.start.each, [&](const auto &group, int n, int all) {
                    expect(group, n, in_start,
                           all == 1 ? mpix::start(group, handles[n]) : mpix::start(group, all, handles + n));
                });
            meet(block);
        }
    }
};

struct scatter_body {
    char *to;
    const std::int64_t *at;
    const unsigned char *data;
    std::uint64_t bytes;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        for (auto n = static_cast<std::uint64_t>(block.thread_rank()); n < bytes;
             n += static_cast<std::uint64_t>(block.num_threads()))
            to[at[n]] = static_cast<char>(data[n]);
    }
};

}  // namespace

struct device::inside {
    explicit inside(int local_rank) : by(local_rank), copies(local_rank) {}
    executor by;
    // Behind a kernel, copies from and to pageable memory would wait for it within CUDA's call, and that may keep mpix
    // from copying what the kernel waits for.
    executor copies;
    stream order{stream::kind::own};
    report *errors = nullptr;
    std::uint64_t *arrived = nullptr;  // of the blocks' barrier
    std::vector<void *> shared;        // memory of the kernel that runs
    prepared *values = nullptr;

    template <class T>
    const T *share(const std::vector<T> &all) {
        auto *const out = static_cast<T *>(by.allocate_shared(all.size() * sizeof(T) + 1));
        std::copy(all.begin(), all.end(), out);
        shared.push_back(out);
        return out;
    }
    // A GPU's blocks are warps at least, and take parts of them as groups, too.
    static scope groups_of(std::size_t tasks, bool whole_blocks) {
        constexpr scope parts[] = {scope::thread, scope::tile4, scope::partial_warp, scope::warp};
        return whole_blocks ? scope::block : executor::is_gpu ? parts[tasks % 4] : scope::thread;
    }
    static int block_size(int threads) { return executor::is_gpu ? 32 * threads : threads; }

    static enqueued_list enqueued_of(const kernel_plan &plan, const int (&range)[2]) {
        enqueued_list list;
        for (int n = range[0]; n < range[1]; ++n) {
            const kernel_turn &t = plan.turns[static_cast<std::size_t>(n)];
            list.push_back({t.whole, t.handle});
        }
        return list;
    }
    // Calls list() with all at once, or with each.
    template <class List>
    static void call(const enqueued_list &all, bool each, const List &list) {
        if (!each && !all.empty()) return list(all);
        for (const auto &one : all) list({one});
    }
};

bool device::available() { return executor::available(); }
bool device::is_gpu() { return executor::is_gpu; }

device::device(int local_rank) : in_(std::make_unique<inside>(local_rank)) {
    in_->errors = static_cast<report *>(in_->by.allocate(sizeof(report)));
    in_->by.set(in_->errors, 0, sizeof(report));
    in_->arrived = static_cast<std::uint64_t *>(in_->by.allocate(sizeof(std::uint64_t)));
    scatter(nullptr, nullptr, nullptr, 0);  // loads the kernel, which may wait for others
    in_->by.load<fill_body>();
    in_->by.load<body>();
    in_->by.load<look_body>();
}
device::~device() {
    join();
    in_->by.release(in_->errors);
    in_->by.release(in_->arrived);
}

char *device::allocate(std::size_t bytes) { return static_cast<char *>(in_->by.allocate(bytes)); }
void device::release(char *memory) { in_->by.release(memory); }
unsigned char *device::allocate_shared(std::size_t bytes) {
    return static_cast<unsigned char *>(in_->by.allocate_shared(bytes));
}
void device::release_shared(unsigned char *memory) { in_->by.release_shared(memory); }
void device::upload(char *to, const unsigned char *from, std::size_t bytes) { in_->copies.upload(to, from, bytes); }
void device::download(unsigned char *to, const char *from, std::size_t bytes) { in_->copies.download(to, from, bytes); }

void device::gather(std::vector<unsigned char> &to, const char *from, const std::int64_t *at, std::size_t bytes) {
    if constexpr (executor::is_gpu)
        download(to.data(), from, to.size());
    else
        for (std::size_t n = 0; n < bytes; ++n)
            to[static_cast<std::size_t>(at[n])] = static_cast<unsigned char>(from[at[n]]);
}
void device::scatter(char *to, const std::int64_t *at, const unsigned char *data, std::size_t bytes) {
    if constexpr (executor::is_gpu) {
        in_->copies.make_current();  // threads call this
        in_->copies.launch(1, 64, scatter_body{to, at, data, bytes});
        in_->copies.synchronise();
    } else {  // by threads, too
        for (std::size_t n = 0; n < bytes; ++n) to[at[n]] = static_cast<char>(data[n]);
    }
}

void device::launch(const std::vector<kernel_task> &tasks, int blocks, int threads, bool whole_blocks) {
    in_->by.launch(blocks, in_->block_size(threads),
                   body{in_->share(tasks), static_cast<int>(tasks.size()), in_->groups_of(tasks.size(), whole_blocks),
                        in_->errors});
}

void device::launch(const kernel_plan &plan, int blocks, int threads, bool whole_blocks) {
    std::vector<MPIX_Prequest> handles;
    for (const kernel_turn &t : plan.turns) handles.push_back(t.handle);
    in_->values = static_cast<prepared *>(in_->by.allocate(static_cast<std::size_t>(plan.slots) * sizeof(prepared)));
    in_->by.set(in_->arrived, 0, sizeof(std::uint64_t));
    in_->by.launch_cooperative(
        blocks, in_->block_size(threads),
        epochs_body{in_->share(plan.tasks), in_->share(plan.turns), in_->share(handles), in_->share(plan.epochs),
                    static_cast<int>(plan.epochs.size()), in_->groups_of(plan.tasks.size(), whole_blocks), in_->values,
                    grid_barrier{in_->arrived, blocks}, in_->errors});
}

void device::enqueue(const kernel_plan &plan, int blocks, bool whole_blocks) {
    constexpr int threads = 64;  // of a GPU's blocks
    const kernel_task *const tasks = in_->share(plan.tasks);
    const kernel_turn *const turns = in_->share(plan.turns);
    for (const kernel_epoch &e : plan.epochs) {
        int sends = e.tasks[0];
        while (sends < e.tasks[1] && plan.tasks[static_cast<std::size_t>(sends)].send) ++sends;
        if (sends > e.tasks[0]) in_->order.launch(blocks, threads, fill_body{tasks + e.tasks[0], sends - e.tasks[0]});
        for (int n = e.tasks[0]; n < sends; ++n) {
            const kernel_task &t = plan.tasks[static_cast<std::size_t>(n)];
            in_->order.ready({t.whole, t.handle}, t.partition, t.last);
        }
        if (sends < e.tasks[1]) {
            const int receives = e.tasks[1] - sends;
            in_->order.launch(blocks, threads,
                              body{tasks + sends, receives,
                                   in_->groups_of(static_cast<std::size_t>(receives), whole_blocks), in_->errors});
        }
        in_->call(in_->enqueued_of(plan, e.waits), e.wait.each, [&](const enqueued_list &l) { in_->order.wait(l); });
        if (e.waits[0] < e.waits[1])
            in_->order.launch(blocks, threads, look_body{turns + e.waits[0], e.waits[1] - e.waits[0], in_->errors});
        in_->call(in_->enqueued_of(plan, e.starts), e.start.each, [&](const enqueued_list &l) { in_->order.start(l); });
    }
}

std::string device::join() {
    in_->by.synchronise();
    in_->order.synchronise();
    for (void *memory : in_->shared) in_->by.release_shared(memory);
    in_->shared.clear();
    in_->by.release(in_->values);
    in_->values = nullptr;
    report r;
    in_->by.download(reinterpret_cast<char *>(&r), in_->errors, sizeof r);
    if (r.errors == 0) return {};
    return "a kernel found " + std::to_string(r.errors) + " errors; the first: " + device_test::wrong_name(r.what) +
           ", request " + std::to_string(r.epoch) + ", partition " + std::to_string(r.partition) + ", offset " +
           std::to_string(r.offset) + ": expected " + std::to_string(r.expected) + ", found " + std::to_string(r.found);
}

}  // namespace random_test
