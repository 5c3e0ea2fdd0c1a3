// SPDX-License-Identifier: BSD-3-Clause
//
// Between two GPUs that map each other: up to which size partitions go by the receiver's inline buffer. There each of their bytes takes
// two of the link, and is copied out; what goes straight into the receive buffer takes a fence instead.
#ifndef MPIX_HOST_PROTOCOL_INLINE_THRESHOLD_H
#define MPIX_HOST_PROTOCOL_INLINE_THRESHOLD_H

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "device/kernels/inline_timing.h"
#include "transport/transport.h"

namespace mpix {

// Of a block, on that pair of GPUs.
struct inline_costs {
    double fence_us = 0;             // what a fence adds to stores to the peer
    double tell_us = 0;              // what it adds to taking out of an inline buffer that other groups may know
    double stored_bytes_per_us = 0;  // to the peer, of the link
    double taken_bytes_per_us = 0;   // out of an inline buffer, as they are in the buffer
};
inline_costs costs_of(const gpu::inline_times &times);

// What MPIX_INLINE_BYTES=auto is between: the largest size is what a block of 512 threads may store to an inline buffer. What has one is not
// read by a group of the receiver's, so beyond that a larger block would gain less than one thread would lose.
constexpr std::uint64_t least_inline_bytes = 1024, most_inline_bytes = 16 * 1024;
// Where nothing is known.
constexpr std::uint64_t usual_inline_bytes = 8 * 1024;

// Up to so many bytes the inline buffer takes less; 0: no GPUs are like that.
std::uint64_t inline_threshold_bytes(const inline_costs &costs);

// As it is decided for a send.
struct inline_threshold {
    enum class origin { given, usual, measured };
    std::uint64_t bytes = 0;  // 0: none goes inline
    origin by = origin::usual;
    inline_costs costs;  // as measured
    std::string why;     // the usual one
};
// For MPIX_EXPLAIN.
std::string described(const inline_threshold &limit);

// Measures pairs of a GPU and a process. The caller serialises.
class inline_meter {
public:
    struct gpu_calls {
        gpu::outcome (*start)(void *at_peer, int device, std::unique_ptr<gpu::pending> &out);
        gpu::inline_times (*times)(int device);
    };
    explicit inline_meter(const gpu_calls &calls) : calls_(calls) {}

    // Once for each pair, and one pair after the other, for they would disturb each other: who finds another one under way
    // leaves it to a later send. Does not wait.
    void begin(void *at_peer, int device, int peer_world);
    // What is known by now.
    inline_threshold limit(int device, int peer_world);
    bool busy();

private:
    struct measurement {
        std::unique_ptr<gpu::pending> under_way;
        inline_costs costs;
        std::string failure;  // empty: there are costs
    };
    void look_at(measurement &m, int device) const;

    const gpu_calls calls_;
    std::map<std::pair<int, int>, measurement> all_;
};

// By MPIX_INLINE_BYTES, and what has been measured by now between this GPU and that process. setup_mutex is held, as by the two
// below.
inline_threshold choose_inline_threshold(int device, int peer_world, bool gaps);
// What a receive gives an inline buffer to, at most.
std::uint64_t largest_inline(bool gaps);
// Have it measured. The peer's arrival flags, mapped here: what is stored to lies beside them.
void measure_inline(const transport::region &flags, int device, int peer_world);
// Before the memory of others goes away. Takes setup_mutex.
void end_measuring_inline();

}  // namespace mpix

#endif  // MPIX_HOST_PROTOCOL_INLINE_THRESHOLD_H
