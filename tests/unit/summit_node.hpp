// SPDX-License-Identifier: BSD-3-Clause
//
// A simulator of a node like Summit's: two sockets with three GPUs each. NVLinks join the GPUs of a socket in pairs, and
// each GPU with its socket; one X-bus joins the sockets. In each direction of its own, with the bandwidths that Pearson
// (2020) achieved: NVLink 42, X-bus 30, NIC 12.5 GB/s.
//
// All transfers of an exchange begin together. A link is shared fairly by the transfers that cross it (max-min), until
// the first of them ends; then the rates are found anew.
#ifndef MPIX_TESTS_UNIT_SUMMIT_NODE_HPP
#define MPIX_TESTS_UNIT_SUMMIT_NODE_HPP

#include <algorithm>
#include <limits>
#include <vector>

#include "host/decomposition/predict.h"

namespace summit {

inline constexpr int gpus = 6;
inline constexpr double nvlink = 42e9, xbus = 30e9, nic = 12.5e9;  // bytes per second
inline int socket_of(int gpu) { return gpu / 3; }

// The node as a measurement of pairs, one by one, would show it.
inline mpix::halo::machine measured(int nodes) {
    mpix::halo::machine m{.nodes = nodes, .bandwidth = mpix::halo::matrix(gpus, nvlink), .network = nic};
    mpix::halo::machine::shared_link there{xbus, {}}, back{xbus, {}};
    for (int a = 0; a < gpus; ++a)
        for (int b = 0; b < gpus; ++b)
            if (socket_of(a) != socket_of(b)) {
                m.bandwidth(a, b) = xbus;
                (socket_of(a) == 0 ? there : back).pairs.emplace_back(a, b);
            }
    m.shared = {there, back};
    return m;
}

struct transfer {
    double bytes;
    std::vector<int> links;
};

// Seconds until the last of them has ended.
inline double simulate(std::vector<transfer> transfers, const std::vector<double> &bandwidth) {
    double now = 0;
    for (;;) {
        std::erase_if(transfers, [](const transfer &t) { return t.bytes <= 0; });
        if (transfers.empty()) return now;
        // The link that gives least to each of its transfers decides their rate; then the next one.
        std::vector<double> rate(transfers.size(), -1), left = bandwidth;
        for (std::size_t fixed = 0; fixed < transfers.size();) {
            double least = std::numeric_limits<double>::infinity();
            std::size_t narrowest = 0;
            for (std::size_t link = 0; link < bandwidth.size(); ++link) {
                int waiting = 0;
                for (std::size_t t = 0; t < transfers.size(); ++t)
                    waiting += rate[t] < 0 && std::count(transfers[t].links.begin(), transfers[t].links.end(), link);
                if (waiting > 0 && left[link] / waiting < least) least = left[link] / waiting, narrowest = link;
            }
            for (std::size_t t = 0; t < transfers.size(); ++t) {
                const std::vector<int> &links = transfers[t].links;
                if (rate[t] >= 0 || !std::count(links.begin(), links.end(), narrowest)) continue;
                rate[t] = least;
                ++fixed;
                for (const int link : links) left[link] = std::max(0.0, left[link] - least);
            }
        }
        double step = std::numeric_limits<double>::infinity();
        for (std::size_t t = 0; t < transfers.size(); ++t) step = std::min(step, transfers[t].bytes / rate[t]);
        now += step;
        for (std::size_t t = 0; t < transfers.size(); ++t) {
            const double rest = transfers[t].bytes - step * rate[t];
            transfers[t].bytes = rest > 1e-9 * transfers[t].bytes ? rest : 0;
        }
    }
}

// Seconds of one exchange among the GPUs of a node and out of it. What a GPU keeps takes no link.
inline double exchange_seconds(const mpix::halo::traffic &bytes, const mpix::halo::placement &gpu_of) {
    // GPU to GPU, GPU to socket, socket to GPU, X-bus in both directions, NIC.
    const int up = gpus * gpus, down = up + gpus, bus = down + gpus, out = bus + 2;
    std::vector<double> bandwidth(out + 1, nvlink);
    bandwidth[bus] = bandwidth[bus + 1] = xbus;
    bandwidth[out] = nic;
    std::vector<transfer> transfers{{bytes.out_of_node, {out}}};
    for (int i = 0; i < gpus; ++i)
        for (int j = 0; j < gpus; ++j) {
            const int from = gpu_of[i], to = gpu_of[j];
            if (from == to) continue;
            if (socket_of(from) == socket_of(to))
                transfers.push_back({bytes.within(i, j), {from * gpus + to}});
            else
                transfers.push_back({bytes.within(i, j), {up + from, bus + socket_of(from), down + to}});
        }
    return simulate(transfers, bandwidth);
}

}  // namespace summit

#endif  // MPIX_TESTS_UNIT_SUMMIT_NODE_HPP
