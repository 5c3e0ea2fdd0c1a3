// SPDX-License-Identifier: BSD-3-Clause
#include "host/decomposition/predict.h"

#include <algorithm>

namespace mpix::halo {
namespace {

// Another plan is taken only if it is predicted to be faster by more than this.
constexpr double worth_while = 1e-3;

plan with_placement(const decomposition &d, const machine &m, const stencil &s, bool exactly) {
    const traffic t = traffic_of(d, s);
    const matrix distance = distances(m.bandwidth);
    plan p{d, exactly ? place(t.within, distance)
                      : place_by_swaps(t.within, distance, trivial_placement(t.within.size()))};
    p.seconds = predicted_seconds(t, m, p.gpu_of);
    return p;
}

}  // namespace

traffic traffic_of(const decomposition &d, const stencil &s) {
    traffic t{.within = matrix(d.boxes_per_node())};
    // With three nodes along an axis the second has neighbours on both sides.
    count3 middle, along = d.along();
    for (int a = 0; a < 3; ++a) middle[a] = d.nodes[a] > 2 ? 1 : 0;
    const int first = d.number({middle[0] * d.per_node[0], middle[1] * d.per_node[1], middle[2] * d.per_node[2]});
    for (int i = 0; i < d.boxes_per_node(); ++i) {
        const count3 from = d.place(first + i);
        const index3 size = d.at(first + i).size();
        for (int number = 0; number < directions; ++number) {
            if (number == no_direction) continue;
            const std::array<int, 3> step = direction(number);
            count3 to = from;
            bool exists = true;
            double bytes = s.bytes_per_cell;
            for (int a = 0; a < 3; ++a) {
                to[a] += step[a];
                const bool outside = to[a] < 0 || to[a] >= along[a];
                exists = exists && (!outside || s.periodic[a]);
                to[a] = (to[a] + along[a]) % along[a];
                // The receiver's ghost cells in the opposite direction, as seen from there.
                bytes *= static_cast<double>(
                    step[a] == 0 ? size[a] : std::min<std::int64_t>(s.radius.cells[opposite(number)], size[a]));
            }
            if (!exists) continue;
            const int receiver = d.number(to) - first;
            if (receiver >= 0 && receiver < d.boxes_per_node())
                t.within(i, receiver) += bytes;
            else
                t.out_of_node += bytes;
        }
    }
    return t;
}

double predicted_seconds(const traffic &t, const machine &m, const placement &gpu_of) {
    const int n = t.within.size();
    matrix sent(n);  // by GPU
    double most = t.out_of_node > 0 ? t.out_of_node / m.network : 0;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            const int from = gpu_of[i], to = gpu_of[j];
            sent(from, to) = t.within(i, j);
            if (sent(from, to) > 0) most = std::max(most, sent(from, to) / m.bandwidth(from, to));
        }
    for (const machine::shared_link &link : m.shared) {
        double bytes = 0;
        for (const auto &[from, to] : link.pairs) bytes += sent(from, to);
        most = std::max(most, bytes / link.bandwidth);
    }
    return most;
}

std::optional<plan> plan_by_primes(const index3 &extent, const machine &m, const stencil &s, const index3 &shortest) {
    const std::optional<decomposition> d = decompose(extent, m.nodes, m.gpus(), shortest);
    if (!d) return {};
    return with_placement(*d, m, s, true);
}

std::optional<plan> plan_by_time(const index3 &extent, const machine &m, const stencil &s, const index3 &shortest) {
    std::optional<plan> best = plan_by_primes(extent, m, s, shortest);
    if (!best) return {};
    const std::vector<count3> of_nodes = all_splits(m.nodes), of_gpus = all_splits(m.gpus());
    for (const count3 &nodes : of_nodes)
        for (const count3 &per_node : of_gpus) {
            const decomposition d{extent, nodes, per_node};
            if (!feasible(d, shortest)) continue;
            // Swaps suffice to compare; exact placements of some hundred candidates would cost more than milliseconds.
            plan next = with_placement(d, m, s, false);
            if (next.seconds < best->seconds * (1 - worth_while)) best = std::move(next);
        }
    plan exact = with_placement(best->boxes, m, s, true);
    return exact.seconds <= best->seconds ? std::move(exact) : std::move(*best);
}

}  // namespace mpix::halo
