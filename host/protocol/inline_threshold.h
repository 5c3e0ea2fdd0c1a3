// SPDX-License-Identifier: BSD-3-Clause
//
// Between two GPUs that map each other: up to which size partitions go by the receiver's inline buffer. There, each
// byte costs two on the link, and is copied out. A store straight into the receive buffer needs a fence instead. This
// is decided in three places: here the limit; in send_offer.cc (make_offer) and receive_route.cc (inline_wanted)
// whether the pair gets an inline buffer; in mpix/impl/send/pready.cuh whether a group uses it for a partition.
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

// Costs for a block, on that pair of GPUs.
struct inline_costs {
    double fence_us = 0;             // what a fence adds to stores to the peer
    double tell_us = 0;              // what it costs, after copying out, to tell other groups
    double stored_bytes_per_us = 0;  // stores to the peer, counted on the link
    double taken_bytes_per_us = 0;   // copied out of an inline buffer, counted in the buffer
};
inline_costs costs_of(const gpu::inline_times &times);

// The range of MPIX_INLINE_BYTES=auto. The largest size is what a block of 512 threads may store to an inline buffer.
constexpr std::uint64_t least_inline_bytes = 1024, most_inline_bytes = 16 * 1024;
// Used until something has been measured.
constexpr std::uint64_t usual_inline_bytes = 8 * 1024;

// The size up to which the inline buffer takes less time; 0: the costs make no sense.
std::uint64_t inline_threshold_bytes(const inline_costs &costs);

// What was decided for a send.
struct inline_threshold {
    enum class origin { given, usual, measured };
    std::uint64_t bytes = 0;  // 0: none goes inline
    origin by = origin::usual;
    inline_costs costs;  // as measured
    std::string why;     // why the usual limit is used
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

    // Measures each pair once, and one pair at a time, since measurements would disturb each other: if one is under
    // way, this pair is left to a later send. Does not wait.
    void begin(void *at_peer, int device, int peer_world);
    // What is known by now.
    inline_threshold limit(int device, int peer_world);
    bool busy();

private:
    struct measurement {
        std::unique_ptr<gpu::pending> under_way;
        inline_costs costs;
        status result;  // of success: costs are valid
    };
    void look_at(measurement &m, int device) const;

    const gpu_calls calls_;
    std::map<std::pair<int, int>, measurement> all_;
};

// By MPIX_INLINE_BYTES, and by what has been measured by now between this GPU and that process. setup_mutex is held, as
// for the next two functions.
inline_threshold choose_inline_threshold(int device, int peer_world, bool gaps);
// The largest partition that a receive makes an inline buffer for.
std::uint64_t largest_inline(bool gaps);
// Starts a measurement. `flags`: the peer's arrival flags, mapped here; the measurement stores beside them.
void measure_inline(const transport::region &flags, int device, int peer_world);
// Before peers' memory is unmapped. Takes setup_mutex.
void end_measuring_inline();

}  // namespace mpix

#endif  // MPIX_HOST_PROTOCOL_INLINE_THRESHOLD_H
