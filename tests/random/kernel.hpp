// SPDX-License-Identifier: BSD-3-Clause
//
// What the device does in a program: groups of a kernel ready partitions and wait for others. The device is a GPU or
// host threads, as in tests/device; only kernel.cpp knows which. So is its stream, to which epochs are enqueued.
#ifndef MPIX_TESTS_RANDOM_KERNEL_HPP
#define MPIX_TESTS_RANDOM_KERNEL_HPP

#include <mpix/mpix.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace random_test {

// One partition, neighbours to be readied as a range, or a slice of a partition, for one group.
struct kernel_task {
    MPI_Request whole;  // for calls that enqueue; else the handle
    MPIX_Prequest handle;
    int request, partition;  // the number is for messages only
    int last;                // of the range; else as `partition`
    bool send;
    bool contribute;
    bool share;  // contributed by bytes: the task's, from packed byte `begin` of the partition on
    std::uint64_t begin;
    char *buffer;               // device memory
    const std::int64_t *at;     // where each of the bytes is in there; null: one behind the other. Shared memory
    const unsigned char *data;  // what to put there before Pready (null: it is there), or to find there after the
                                // arrival; shared memory
    std::uint64_t bytes;
    int slot = -1;  // of the request's epoch handle, where a kernel that runs epochs has one
};

// What a kernel that runs epochs does with a request between two of them.
struct kernel_turn {
    MPI_Request whole = MPI_REQUEST_NULL;
    MPIX_Prequest handle = MPIX_PREQUEST_NULL;  // null: nothing
    int request, slot;
    bool send;
    bool prepared;  // there is an epoch handle of the epoch that ends
    bool alone;     // its memory is written by one thread: bytes of it are in the message more than once
    char *buffer;   // as in kernel_task
    const std::int64_t *at;
    std::uint64_t bytes;
    const unsigned char *now;   // the message of the epoch that ends, or null
    const unsigned char *next;  // of the next one, or null
};

// Which group of which block makes calls, for all requests at once or for one after the other; then groups of the block
// share them.
struct kernel_caller {
    int block, group;
    bool each;
};

// An epoch: tasks on all blocks, and the calls behind them. The numbers are first and one past the last, of the plan's.
struct kernel_epoch {
    int tasks[2];   // sends' first
    int nexts[2];   // turns: next_epoch
    int waits[2];   // turns: wait; then, on all blocks, their memory is checked, and poisoned for the next epoch
    int starts[2];  // turns: start
    bool prepared;  // next_epoch is called with epoch handles, and tasks of the next epoch use them
    kernel_caller next, wait, start;
};

struct kernel_plan {
    std::vector<kernel_task> tasks;
    std::vector<kernel_turn> turns;
    std::vector<kernel_epoch> epochs;
    int slots = 0;
};

class device {
public:
    static bool available();
    static bool is_gpu();

    explicit device(int local_rank);
    ~device();
    device(const device &) = delete;
    device &operator=(const device &) = delete;

    char *allocate(std::size_t bytes);
    void release(char *memory);
    unsigned char *allocate_shared(std::size_t bytes);  // host and kernels reach it
    void release_shared(unsigned char *memory);
    void upload(char *to, const unsigned char *from, std::size_t bytes);
    void download(unsigned char *to, const char *from, std::size_t bytes);
    // to[at[n]] = from[at[n]], and of a GPU all the rest as well.
    void gather(std::vector<unsigned char> &to, const char *from, const std::int64_t *at, std::size_t bytes);
    // to[at[n]] = data[n]; `at` and `data` are shared memory.
    void scatter(char *to, const std::int64_t *at, const unsigned char *data, std::size_t bytes);

    // Group g of G does the tasks g, g + G, ..., in this order. Returns at once; one launch at a time.
    void launch(const std::vector<kernel_task> &tasks, int blocks, int threads, bool whole_blocks);
    // The same for the tasks of each epoch.
    void launch(const kernel_plan &plan, int blocks, int threads, bool whole_blocks);
    // The same by a stream: what sends and receives do is enqueued, and so are kernels that write and check their memory.
    void enqueue(const kernel_plan &plan, int blocks, bool whole_blocks);
    // Wait for it: what went wrong, or nothing.
    std::string join();

private:
    struct inside;
    std::unique_ptr<inside> in_;
};

}  // namespace random_test

#endif  // MPIX_TESTS_RANDOM_KERNEL_HPP
