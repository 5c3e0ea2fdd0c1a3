// SPDX-License-Identifier: BSD-3-Clause
//
// The kernel on threads of the host.
#include "executor.hpp"

#include <mpix/host_group.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <stdexcept>

namespace jacobi3d {

namespace {

class host_executor final : public executor {
public:
    host_executor(int blocks, int threads) : blocks_(blocks), threads_(threads) {}

    std::string description() const override {
        return "host threads, " + std::to_string(blocks_) + (blocks_ == 1 ? " block of " : " blocks of ") +
               std::to_string(threads_);
    }
    std::string mpix_device() const override { return "host"; }

    void *allocate(std::size_t bytes) override {
        constexpr std::size_t alignment = 256;
        const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
        void *memory = std::aligned_alloc(alignment, rounded);
        if (!memory) throw std::runtime_error("no " + std::to_string(bytes) + " bytes of host memory left");
        std::memset(memory, 0, rounded);
        return memory;
    }
    void release(void *memory) noexcept override { std::free(memory); }
    void upload(void *to, const void *from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
    void download(void *to, const void *from, std::size_t bytes) override { std::memcpy(to, from, bytes); }

    void launch(step<float> s) override { run(s); }
    void launch(step<double> s) override { run(s); }
    residency persistent_blocks(std::int64_t bytes) const override { return {blocks_, 1, bytes <= cache_bytes}; }
    residency halo_blocks() const override { return {blocks_, 1, false}; }
    std::array<int, 2> brick_base(const extent3 &box) const override { return {box[0], brick_rows}; }  // whole rows
    void launch(const persistent<float> &s, int blocks) override { run(s, blocks); }
    void launch(const persistent<double> &s, int blocks) override { run(s, blocks); }
    void launch(const halo_step<float> &s, int blocks) override { run(s, blocks); }
    void launch(const halo_step<double> &s, int blocks) override { run(s, blocks); }

    void synchronize() override {}

private:
    // All blocks have threads of their own here, so all are resident, as jacobi_step wants it.
    template <class Real>
    void run(step<Real> &s) {
        // Whole rows; three layers of a brick fit the second-level cache; enough bricks for all blocks.
        s.brick_x = s.nx;
        s.brick_y = brick_rows;
        s.brick_z = std::clamp(s.nz / (4 * blocks_), 1, 16);
        play(blocks_, [&](const mpix::host_group &block) { jacobi_step<1>(block, block.group_rank(), blocks_, s); });
    }
    template <class Real>
    void run(const persistent<Real> &s, int blocks) {
        constexpr int epoch_blocks = 1;
        std::vector<block_memory<Real>> own(static_cast<std::size_t>(blocks + epoch_blocks));
        play(blocks + epoch_blocks, [&](const mpix::host_group &block) {
            jacobi_persistent<1>(block, block.group_rank(), blocks, epoch_blocks, s,
                                 own[static_cast<std::size_t>(block.group_rank())]);
        });
    }
    template <class Real>
    void run(const halo_step<Real> &s, int blocks) {
        std::vector<kept_tiles<Real>> kept(static_cast<std::size_t>(blocks + exchange_blocks));
        play(blocks + exchange_blocks, [&](const mpix::host_group &block) {
            jacobi_on_halo<1>(block, block.group_rank(), blocks, s, kept[static_cast<std::size_t>(block.group_rank())]);
        });
    }

    template <class Kernel>
    void play(int blocks, const Kernel &kernel) {
        if (!idle_work_) return mpix::host_launch(blocks, threads_, kernel);
        std::future<void> done = std::async(std::launch::async, [&] { mpix::host_launch(blocks, threads_, kernel); });
        while (done.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) idle_work_();
        done.get();
    }

    static constexpr int brick_rows = 16;
    static constexpr std::int64_t cache_bytes = 1 << 20;  // of one core, on many processors

    int blocks_, threads_;
};

}  // namespace

std::unique_ptr<executor> make_host_executor(int blocks, int threads) {
    return std::make_unique<host_executor>(blocks, threads);
}

#ifndef JACOBI3D_CUDA
int count_gpus() { return 0; }

std::unique_ptr<executor> make_cuda_executor(int, int, int) {
    throw std::runtime_error("this program was built without CUDA");
}
#endif

}  // namespace jacobi3d
