// SPDX-License-Identifier: BSD-3-Clause
//
// What Fortran programs call for memory where kernels run, for streams, and for kernels, which are C++: on a GPU where
// this source is compiled as CUDA, with host threads and host memory otherwise. The module executors has the interfaces.
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <mpix/halo.cuh>
#include <mpix/halo_gpu.h>

#include "tests/device/executor.hpp"

using device_test::executor;

namespace {

executor *here = nullptr;

template <class Block>
DEVICE_FN void copy_bytes(const Block &block, char *to, const char *from, std::int64_t bytes) {
    for (std::int64_t i = block.thread_rank(); i < bytes; i += block.num_threads()) to[i] = from[i];
}

}  // namespace

extern "C" {

// A field of an exchange inside kernels. `given` and `seen` have an image of the whole allocation for each step.
struct field_images {
    const char *given;  // whose cells of the box are those that the kernel computes
    char *seen;         // receives the allocation with its ghost cells
    std::int64_t bytes, cell_bytes;
    std::int64_t first[3], cells[3];  // of the allocation: global indices, from 0
};
constexpr int most_fields = 2;

// A send and a receive, and an image of each message for each epoch.
struct two_messages {
    char *out, *in;
    const char *given;
    char *seen;
    std::int64_t bytes;
    int sends, receives;  // partitions
};
}

namespace {

struct halo_steps {
    mpix::halo::device_exchange x;
    field_images of[most_fields];
    int fields;
    bool by_boxes;
    std::uint64_t *failed;  // calls

    DEVICE_FN void note(int code) const {
        if (code != MPI_SUCCESS) device_test::add_one(failed);
    }

    template <class Block>
    DEVICE_FN void compute_and_send(const Block &block, int index, int groups, std::int64_t step) const {
        for (int t = index; t < x.tiles() && step < x.steps(); t += groups) {
            const mpix::halo::box &tile = x.tile(t);
            for (int f = 0; f < fields; ++f) {
                const field_images &field = of[f];
                auto *const values = x.template data<char>(f, step);
                const std::int64_t n[] = {tile.hi[0] - tile.lo[0], tile.hi[1] - tile.lo[1], tile.hi[2] - tile.lo[2]};
                for (std::int64_t i = block.thread_rank(); i < n[0] * n[1] * n[2]; i += block.num_threads()) {
                    const std::int64_t at[] = {tile.lo[0] + i % n[0] - field.first[0],
                                               tile.lo[1] + i / n[0] % n[1] - field.first[1],
                                               tile.lo[2] + i / n[0] / n[1] - field.first[2]};
                    const std::int64_t begin =
                        ((at[2] * field.cells[1] + at[1]) * field.cells[0] + at[0]) * field.cell_bytes;
                    for (std::int64_t b = begin; b < begin + field.cell_bytes; ++b)
                        values[b] = field.given[step * field.bytes + b];
                }
            }
            note(mpix::halo::send(block, x, t, step));
        }
    }

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int index, int groups) const {
        compute_and_send(block, index, groups, 0);
        for (std::int64_t step = 0; step < x.steps(); ++step) {
            mpix::halo::sync_blocks(block, x, groups);
            if (index == 0 && step > 0) note(mpix::halo::next(block, x, step - 1));
            for (int t = index; t < x.tiles(); t += groups)
                note(by_boxes ? mpix::halo::wait(block, x, x.tile(t), step) : mpix::halo::wait(block, x, t, step));
            mpix::halo::sync_blocks(block, x, groups);  // those of all tiles are there
            for (int f = index; f < fields; f += groups)
                copy_bytes(block, of[f].seen + step * of[f].bytes, x.template data<const char>(f, step), of[f].bytes);
            mpix::halo::sync_blocks(block, x, groups);  // a field of one allocation is computed in place
            compute_and_send(block, index, groups, step + 1);
        }
    }
};

// Epochs of one activation: several are for one block.
struct message_epochs {
    two_messages of;
    MPIX_Prequest send, receive;
    int epochs;
    std::uint64_t *failed;

    DEVICE_FN void note(int code) const {
        if (code != MPI_SUCCESS) device_test::add_one(failed);
    }

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int index, int groups) const {
        for (int epoch = 0; epoch < epochs; ++epoch) {
            if (epoch > 0) {
                note(mpix::start(block, receive));
                note(mpix::start(block, send));
            }
            const std::int64_t image = epoch * of.bytes, each_out = of.bytes / of.sends,
                               each_in = of.bytes / of.receives;
            for (int p = index; p < of.sends; p += groups) {
                copy_bytes(block, of.out + p * each_out, of.given + image + p * each_out, each_out);
                note(mpix::pready(block, p, send));
            }
            for (int p = index; p < of.receives; p += groups) {
                note(mpix::wait_arrived(block, receive, p));
                copy_bytes(block, of.seen + image + p * each_in, of.in + p * each_in, each_in);
            }
            if (epochs == 1) continue;  // the host waits
            note(mpix::wait(block, receive));
            note(mpix::wait(block, send));
        }
    }
};

// Runs a kernel with a counter of failed calls, and returns their number.
template <class Kernel>
int run(Kernel kernel, int blocks, int threads) {
    kernel.failed = static_cast<std::uint64_t *>(here->allocate_shared(sizeof *kernel.failed));
    here->launch_cooperative(blocks, threads, kernel);
    here->synchronise();
    const int failed = static_cast<int>(*kernel.failed);
    here->release_shared(kernel.failed);
    return failed;
}

}  // namespace

extern "C" {

int executor_is_gpu() { return executor::is_gpu; }
int executor_available() { return executor::available(); }
// After MPI_Init. With the GPU that belongs to this rank of the node.
void executor_open(int local_rank) { here = new executor(local_rank); }
void executor_close() {
    delete here;
    here = nullptr;
}

void *executor_allocate(std::size_t bytes) { return here->allocate(bytes); }
void executor_release(void *memory) { here->release(memory); }
// For the host's side of copies that are made in a stream's order.
void *executor_allocate_on_host(std::size_t bytes) { return here->allocate_shared(bytes); }
void executor_release_on_host(void *memory) { here->release_shared(memory); }

CUstream_st *executor_stream() { return here->stream(); }
void executor_copy(void *to, const void *from, std::size_t bytes, CUstream_st *stream) {
#ifdef __CUDACC__
    device_test::check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
#else
    (void)stream;
    std::memcpy(to, from, bytes);
#endif
}
void executor_synchronise(CUstream_st *stream) {
#ifdef __CUDACC__
    device_test::check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
#else
    (void)stream;
#endif
}

// All steps of an activation. Returns how many calls have failed.
int run_halo_steps(mpix::halo::device_exchange x, int fields, const field_images *images, int blocks, int threads,
                   int by_boxes) {
    halo_steps kernel{.x = x, .of = {}, .fields = fields, .by_boxes = by_boxes != 0, .failed = nullptr};
    for (int f = 0; f < fields; ++f) kernel.of[f] = images[f];
    return run(kernel, blocks, threads);
}

// So many epochs of exported requests; of several, all but the first are started by the kernel, which has one block.
int run_message_epochs(two_messages messages, MPIX_Prequest send, MPIX_Prequest receive, int epochs, int blocks,
                       int threads) {
    return run(message_epochs{.of = messages, .send = send, .receive = receive, .epochs = epochs, .failed = nullptr},
               blocks, threads);
}
}
