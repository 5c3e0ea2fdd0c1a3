// SPDX-License-Identifier: BSD-3-Clause
//
// Working memory of calls on arrays.
#ifndef MPIX_HOST_MPI_SCRATCH_H
#define MPIX_HOST_MPI_SCRATCH_H

#include <cstddef>
#include <memory>
#include <new>

namespace mpix {

// n of something, without the heap while n is small: these calls are made in loops.
template <class T>
class scratch {
public:
    explicit scratch(int n)
        : heap_(n > few ? new (std::nothrow) T[static_cast<std::size_t>(n)] : nullptr),
          all_(n > few ? heap_.get() : few_) {}
    scratch(const scratch &) = delete;
    scratch &operator=(const scratch &) = delete;
    explicit operator bool() const { return all_ != nullptr; }
    T *get() { return all_; }
    T &operator[](int i) { return all_[i]; }
    const T &operator[](int i) const { return all_[i]; }

private:
    static constexpr int few = 32;
    T few_[few];
    std::unique_ptr<T[]> heap_;
    T *all_;
};

}  // namespace mpix

#endif  // MPIX_HOST_MPI_SCRATCH_H
