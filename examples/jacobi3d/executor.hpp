// SPDX-License-Identifier: BSD-3-Clause
//
// What runs the kernel and holds the field: a GPU, or threads of the host.
#ifndef JACOBI3D_EXECUTOR_HPP
#define JACOBI3D_EXECUTOR_HPP

#include "halo_step.hpp"
#include "persistent.hpp"
#include "step.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace jacobi3d {

class executor {
public:
    executor() = default;
    executor(const executor &) = delete;
    executor &operator=(const executor &) = delete;
    virtual ~executor() = default;

    /** For a person: the device and how many blocks of how many threads. */
    virtual std::string description() const = 0;

    /** The value of the info key "mpix_device" for requests whose buffers this executor allocated. */
    virtual std::string mpix_device() const = 0;

    /** Zeroed memory, 256-byte aligned. Throws std::runtime_error if there is not enough. */
    virtual void *allocate(std::size_t bytes) = 0;
    virtual void release(void *memory) noexcept = 0;
    virtual void upload(void *to, const void *from, std::size_t bytes) = 0;
    virtual void download(void *to, const void *from, std::size_t bytes) = 0;

    /** Run the phases of `s` after all that was launched before; choose the brick size. May return early. */
    virtual void launch(step<float> s) = 0;
    virtual void launch(step<double> s) = 0;

    /**
     * The blocks of a persistent kernel beside its epoch blocks (persistent.hpp); `bytes`: of its two fields together. Throws
     * std::invalid_argument if the number that was asked for does not fit.
     */
    virtual residency persistent_blocks(std::int64_t bytes) const = 0;
    /** The same for a kernel on the halo exchange. */
    virtual residency halo_blocks() const = 0;
    /** The cells along x and y of a brick in `box`. */
    virtual std::array<int, 2> brick_base(const extent3 &box) const = 0;

    /** All iterations, by so many blocks and the epoch blocks. May return early. */
    virtual void launch(const persistent<float> &s, int blocks) = 0;
    virtual void launch(const persistent<double> &s, int blocks) = 0;
    virtual void launch(const halo_step<float> &s, int blocks) = 0;
    virtual void launch(const halo_step<double> &s, int blocks) = 0;

    /** Of a GPU: where kernels are launched. */
    virtual CUstream_st *stream() const { return nullptr; }

    /** Wait for all that was launched. */
    virtual void synchronize() = 0;

    /**
     * Work for the calling thread about once in a millisecond while a launch keeps it, where launches do that.
     * Lets MPI make progress, should it do so in nothing but MPI calls.
     */
    void set_idle_work(std::function<void()> work) { idle_work_ = std::move(work); }

protected:
    std::function<void()> idle_work_;
};

/** `blocks` groups of `threads` host threads. */
std::unique_ptr<executor> make_host_executor(int blocks, int threads);

/** Usable GPUs of this process; 0 where there is no driver, or the program was built without CUDA. */
int count_gpus();

/**
 * The GPU `device`, made the current one. `blocks` 0: as many as are resident at the same time. Throws
 * std::invalid_argument for more blocks than that, or a number of threads that the kernel cannot have.
 */
std::unique_ptr<executor> make_cuda_executor(int device, int blocks, int threads);

/** An array in an executor's memory. */
template <class T>
class device_array {
public:
    device_array() = default;
    device_array(executor &where, std::int64_t size)
        : where_(&where), data_(static_cast<T *>(where.allocate(size * sizeof(T)))), size_(size) {}
    device_array(device_array &&other) noexcept { swap(other); }
    device_array &operator=(device_array &&other) noexcept {
        swap(other);
        return *this;
    }
    ~device_array() {
        if (data_) where_->release(data_);
    }

    T *data() const { return data_; }
    std::int64_t size() const { return size_; }

    void upload(const std::vector<T> &values) { where_->upload(data_, values.data(), values.size() * sizeof(T)); }
    std::vector<T> download() const {
        std::vector<T> values(size_);
        where_->download(values.data(), data_, values.size() * sizeof(T));
        return values;
    }

private:
    void swap(device_array &other) noexcept {
        std::swap(where_, other.where_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }

    executor *where_ = nullptr;
    T *data_ = nullptr;
    std::int64_t size_ = 0;
};

}  // namespace jacobi3d

#endif  // JACOBI3D_EXECUTOR_HPP
