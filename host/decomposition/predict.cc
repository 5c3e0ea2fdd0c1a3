// SPDX-License-Identifier: BSD-3-Clause
#include "host/decomposition/predict.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace mpix::halo {
namespace {

// Another plan is taken only if it is predicted to be faster by more than this.
constexpr double worth_while = 1e-3;
// Decompositions whose boxes are placed, on nodes of so many GPUs that one placement takes more than a millisecond.
constexpr std::size_t most_compared = 4;

plan placed(const decomposition &d, const traffic &t, const machine &m, placement gpu_of) {
    const double seconds = predicted_seconds(t, m, gpu_of);
    return {d, std::move(gpu_of), seconds};
}

// Once to pack and once to unpack.
double packing_seconds(const traffic &t, double run_seconds) { return 2 * t.runs * run_seconds; }

// What no placement is faster than: all boxes have the fastest links.
class fastest_links {
public:
    explicit fastest_links(const machine &m) : network_(m.network), run_seconds_(m.run_seconds) {
        for (int a = 0; a < m.gpus(); ++a)
            for (int b = 0; b < m.gpus(); ++b) {
                double &most = a == b ? within_ : between_;
                most = std::max(most, m.bandwidth(a, b));
            }
    }
    double seconds(const traffic &t) const {
        double most = t.out_of_node > 0 ? t.out_of_node / network_ : 0;
        for (int i = 0; i < t.within.size(); ++i)
            for (const flows::flow &f : t.within.from(i))
                most = std::max(most, f.bytes / (f.to == i ? within_ : between_));
        return most + packing_seconds(t, run_seconds_);
    }

private:
    double network_, run_seconds_, within_ = 0, between_ = 0;
};

}  // namespace

traffic traffic_of(const decomposition &d, const stencil &s) {
    traffic t{.within = flows(d.boxes_per_node())};
    // With three nodes along an axis the second has neighbours on both sides.
    count3 middle, along = d.along();
    for (int a = 0; a < 3; ++a) middle[a] = d.nodes[a] > 2 ? 1 : 0;
    const int first = d.number({middle[0] * d.per_node[0], middle[1] * d.per_node[1], middle[2] * d.per_node[2]});
    for (int i = 0; i < d.boxes_per_node(); ++i) {
        const count3 from = d.place(first + i);
        const index3 size = d.at(first + i).size();
        double runs = 0;
        for (int number = 0; number < directions; ++number) {
            if (number == no_direction) continue;
            const std::array<int, 3> step = direction(number);
            count3 to = from;
            bool exists = true;
            double bytes = s.bytes_per_cell, rows = 1;
            for (int a = 0; a < 3; ++a) {
                to[a] += step[a];
                const bool outside = to[a] < 0 || to[a] >= along[a];
                exists = exists && (!outside || s.periodic[a]);
                to[a] = (to[a] + along[a]) % along[a];
                // The receiver's ghost cells in the opposite direction, as seen from there.
                const auto cells = static_cast<double>(
                    step[a] == 0 ? size[a] : std::min<std::int64_t>(s.radius.cells[opposite(number)], size[a]));
                bytes *= cells;
                if (a > 0) rows *= cells;
            }
            if (!exists) continue;
            if (bytes > 0) runs += rows;
            const int receiver = d.number(to) - first;
            if (receiver >= 0 && receiver < d.boxes_per_node())
                t.within.add(i, receiver, bytes);
            else
                t.out_of_node += bytes;
        }
        t.runs = std::max(t.runs, runs);
    }
    return t;
}

double predicted_seconds(const traffic &t, const machine &m, const placement &gpu_of) {
    const int n = t.within.size();
    double most = t.out_of_node > 0 ? t.out_of_node / m.network : 0;
    for (int i = 0; i < n; ++i)
        for (const flows::flow &f : t.within.from(i))
            most = std::max(most, f.bytes / m.bandwidth(gpu_of[i], gpu_of[f.to]));
    const double packing = packing_seconds(t, m.run_seconds);
    if (m.shared.empty()) return most + packing;
    placement box_on(gpu_of.size());
    for (int i = 0; i < n; ++i) box_on[gpu_of[i]] = i;
    for (const machine::shared_link &link : m.shared) {
        double bytes = 0;
        for (const auto &[from, to] : link.pairs) bytes += t.within(box_on[from], box_on[to]);
        most = std::max(most, bytes / link.bandwidth);
    }
    return most + packing;
}

std::optional<plan> plan_by_primes(const index3 &extent, const machine &m, const stencil &s, const index3 &shortest) {
    const std::optional<decomposition> d = decompose(extent, m.nodes, m.gpus(), shortest);
    if (!d) return {};
    const traffic t = traffic_of(*d, s);
    return placed(*d, t, m, place(t.within, distances(m.bandwidth)));
}

std::optional<plan> plan_by_time(const index3 &extent, const machine &m, const stencil &s, const index3 &shortest) {
    std::optional<plan> best = plan_by_primes(extent, m, s, shortest);
    if (!best) return {};
    struct candidate {
        decomposition boxes;
        double at_least;
    };
    std::vector<candidate> candidates;
    const fastest_links fastest(m);
    const auto promising = [&](double at_least) { return at_least < best->seconds * (1 - worth_while); };
    const std::vector<count3> of_nodes = all_splits(m.nodes), of_gpus = all_splits(m.gpus());
    for (const count3 &nodes : of_nodes)
        for (const count3 &per_node : of_gpus) {
            const decomposition d{extent, nodes, per_node};
            if (!feasible(d, shortest)) continue;
            const double at_least = fastest.seconds(traffic_of(d, s));
            if (promising(at_least)) candidates.push_back({d, at_least});
        }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const candidate &a, const candidate &b) { return a.at_least < b.at_least; });

    if (m.gpus() > best_swaps_up_to && candidates.size() > most_compared) candidates.resize(most_compared);
    const matrix distance = distances(m.bandwidth);
    bool stretched = false;
    for (const candidate &c : candidates) {
        if (!promising(c.at_least)) break;
        const traffic t = traffic_of(c.boxes, s);
        // Swaps suffice to compare.
        plan next = placed(c.boxes, t, m, improve(t.within, distance, trivial_placement(m.gpus())));
        if (promising(next.seconds)) best = std::move(next), stretched = true;
    }
    if (!stretched) return best;
    const traffic t = traffic_of(best->boxes, s);
    plan better = placed(best->boxes, t, m, place(t.within, distance));
    return better.seconds <= best->seconds ? std::move(better) : std::move(*best);
}

}  // namespace mpix::halo
