// SPDX-License-Identifier: BSD-3-Clause
#include "tests/random/kernel.hpp"

#include "tests/device/harness.hpp"

namespace random_test {

using device_test::as_group;
using device_test::complain;
using device_test::executor;
using device_test::expect_code;
using device_test::patience_ns;
using device_test::report;
using device_test::scope;
using device_test::wrong;

namespace {

struct body {
    const kernel_task *tasks;
    int count;
    scope by;
    report *errors;

    static DEVICE_FN std::int64_t place(const kernel_task &t, std::uint64_t n) {
        return t.at != nullptr ? t.at[n] : static_cast<std::int64_t>(n);
    }

    template <class Group>
    DEVICE_FN void run(const Group &group, const kernel_task &t) const {
        const auto first = static_cast<std::uint64_t>(group.thread_rank());
        const auto step = static_cast<std::uint64_t>(group.num_threads());
        const auto number = static_cast<std::uint64_t>(t.request);
        if (t.send) {
            for (std::uint64_t n = first; t.data != nullptr && n < t.bytes; n += step)
                t.buffer[place(t, n)] = static_cast<char>(t.data[n]);
            const int code = t.share        ? mpix::pready_contribute(group, t.partition, t.handle, t.begin, t.bytes)
                             : t.contribute ? mpix::pready_contribute(group, t.partition, t.handle)
                             : t.last > t.partition ? mpix::pready_range(group, t.partition, t.last, t.handle)
                             : t.request % 8 == 0   ? mpix::pready(group, t.partition, t.handle)
                             : t.request % 4 == 0
                                 ? mpix::pready(group, t.partition, mpix::prepare_send(group, t.handle))
                                 : mpix::pready_typed(group, t.partition, t.handle);
            expect_code(errors, number, t.partition, MPI_SUCCESS, code);
            return;
        }
        if (t.request % 2 == 0) {
            const mpix::prepared_receive ready = mpix::prepare_receive(group, t.handle);
            expect_code(errors, number, t.partition, MPI_SUCCESS,
                        mpix::wait_arrived(group, ready, t.partition, patience_ns));
            if (!mpix::parrived(group, ready, t.partition))
                complain(errors, wrong::answer, number, t.partition, 0, 1, 0);
        } else {
            expect_code(errors, number, t.partition, MPI_SUCCESS,
                        mpix::wait_arrived(group, t.handle, t.partition, patience_ns));
        }
        if (!mpix::parrived(group, t.handle, t.partition))
            complain(errors, wrong::answer, number, t.partition, 0, 1, 0);
        for (std::uint64_t n = first; n < t.bytes; n += step) {
            const unsigned char expected = t.data[n], found = static_cast<unsigned char>(t.buffer[place(t, n)]);
            if (expected != found) complain(errors, wrong::byte, number, t.partition, n, expected, found);
        }
    }

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        as_group(block, by, [&](const auto &group, int index, int groups) {
            for (int n = block_index * groups + index; n < count; n += blocks * groups) run(group, tasks[n]);
        });
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
    report *errors = nullptr;
    kernel_task *tasks = nullptr;
};

bool device::available() { return executor::available(); }
bool device::is_gpu() { return executor::is_gpu; }

device::device(int local_rank) : in_(std::make_unique<inside>(local_rank)) {
    in_->errors = static_cast<report *>(in_->by.allocate(sizeof(report)));
    in_->by.set(in_->errors, 0, sizeof(report));
    scatter(nullptr, nullptr, nullptr, 0);  // loads the kernel, which may wait for others
}
device::~device() {
    join();
    in_->by.release(in_->errors);
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
    in_->tasks = static_cast<kernel_task *>(in_->by.allocate_shared(tasks.size() * sizeof(kernel_task)));
    for (std::size_t n = 0; n < tasks.size(); ++n) in_->tasks[n] = tasks[n];
    // A GPU's blocks are warps at least, and take parts of them as groups, too.
    const scope parts[] = {scope::thread, scope::tile4, scope::partial_warp, scope::warp};
    const scope by = whole_blocks ? scope::block : executor::is_gpu ? parts[tasks.size() % 4] : scope::thread;
    in_->by.launch(blocks, executor::is_gpu ? 32 * threads : threads,
                   body{in_->tasks, static_cast<int>(tasks.size()), by, in_->errors});
}

std::string device::join() {
    in_->by.synchronise();
    if (in_->tasks != nullptr) in_->by.release_shared(in_->tasks);
    in_->tasks = nullptr;
    report r;
    in_->by.download(reinterpret_cast<char *>(&r), in_->errors, sizeof r);
    if (r.errors == 0) return {};
    return "a kernel found " + std::to_string(r.errors) + " errors; the first: " + device_test::wrong_name(r.what) +
           ", request " + std::to_string(r.epoch) + ", partition " + std::to_string(r.partition) + ", offset " +
           std::to_string(r.offset) + ": expected " + std::to_string(r.expected) + ", found " + std::to_string(r.found);
}

}  // namespace random_test
