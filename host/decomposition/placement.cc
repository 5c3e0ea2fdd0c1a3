// SPDX-License-Identifier: BSD-3-Clause
#include "host/decomposition/placement.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "host/decomposition/scotch.h"

namespace mpix::halo {
namespace {

// What is less by rounding only is not less.
constexpr double rounding = 1e-12;

// Depth first, box by box, by branch and bound.
class exact_search {
public:
    exact_search(const flows &flow, const matrix &distance)
        : flows_(flow), flow_(flow.size()), distance_(distance), n_(flow.size()) {
        for (int i = 0; i < n_; ++i)
            for (const flows::flow &f : flow.from(i)) flow_(i, f.to) = f.bytes;
        // What the flows between boxes of which the later one is k or later cost at least.
        double nearest = std::numeric_limits<double>::infinity();
        for (int a = 0; a < n_; ++a)
            for (int b = 0; b < n_; ++b)
                if (a != b) nearest = std::min(nearest, distance(a, b));
        at_least_.assign(n_ + 1, 0);
        for (int k = n_ - 1; k >= 0; --k) {
            at_least_[k] = at_least_[k + 1];
            for (int i = 0; i < k; ++i) at_least_[k] += (flow_(i, k) + flow_(k, i)) * nearest;
        }
        current_.resize(n_);
        taken_.resize(n_);
    }

    placement best() {
        best_ = trivial_placement(n_);
        least_ = cost(flows_, distance_, best_);
        descend(0, 0);
        return best_;
    }

private:
    void descend(int k, double so_far) {
        if (so_far + at_least_[k] >= least_ * (1 - rounding)) return;
        if (k == n_) {
            least_ = so_far;
            best_ = current_;
            return;
        }
        for (int gpu = 0; gpu < n_; ++gpu) {
            if (taken_[gpu]) continue;
            double more = flow_(k, k) * distance_(gpu, gpu);
            for (int i = 0; i < k; ++i)
                more += flow_(i, k) * distance_(current_[i], gpu) + flow_(k, i) * distance_(gpu, current_[i]);
            taken_[gpu] = true;
            current_[k] = gpu;
            descend(k + 1, so_far + more);
            taken_[gpu] = false;
        }
    }

    const flows &flows_;
    matrix flow_;
    const matrix &distance_;
    int n_;
    std::vector<double> at_least_;
    placement current_, best_;
    std::vector<bool> taken_;
    double least_ = 0;
};

// A placement that is changed by swaps, and what any box would cost on any GPU.
class swapper {
public:
    swapper(const flows &flow, const matrix &distance, placement start)
        : flow_(flow),
          to_(distance),
          from_(distance.size()),
          n_(flow.size()),
          gpu_of_(std::move(start)),
          partners_(static_cast<std::size_t>(n_)),
          costs_(n_),
          exchanged_(static_cast<std::size_t>(n_)) {
        for (int a = 0; a < n_; ++a)
            for (int b = 0; b < n_; ++b) from_(b, a) = distance(a, b);
        for (int i = 0; i < n_; ++i)
            for (const flows::flow &f : flow.from(i)) {
                partners_[i].push_back({f.to, f.bytes, 0});
                if (f.to != i) partners_[f.to].push_back({i, 0, f.bytes});
            }
        for (int i = 0; i < n_; ++i)
            for (const partner &k : partners_[i]) {
                double *const costs = &costs_(i, 0);
                if (k.box == i) {
                    for (int gpu = 0; gpu < n_; ++gpu) costs[gpu] += k.sent * to_(gpu, gpu);
                    continue;
                }
                const double *const away = from_.row(gpu_of_[k.box]), *const here = to_.row(gpu_of_[k.box]);
                for (int gpu = 0; gpu < n_; ++gpu) costs[gpu] += k.sent * away[gpu] + k.received * here[gpu];
            }
    }

    // The box among first to last - 1 whose swap with box r lowers the cost most, and by how much: the first one of
    // them, if it is better than `change` (at most 0); else r.
    int best_partner(int r, int first, int last, double &change) {
        for (const partner &k : partners_[r]) exchanged_[k.box] += k.sent + k.received;
        const int at_r = gpu_of_[r];
        const double *const costs = costs_.row(r);
        int best = r;
        for (int s = first; s < last; ++s) {
            const int at_s = gpu_of_[s];
            double now = costs[at_s] - costs[at_r] + costs_(s, at_r) - costs_(s, at_s);
            // Each of the two costs was of a box that moves while the other one stays.
            if (exchanged_[s] > 0)
                now += exchanged_[s] * (to_(at_r, at_s) + to_(at_s, at_r) - to_(at_r, at_r) - to_(at_s, at_s));
            if (now < change && s != r) change = now, best = s;
        }
        for (const partner &k : partners_[r]) exchanged_[k.box] = 0;
        return best;
    }

    void swap(int r, int s) {
        move(r, gpu_of_[s]);
        move(s, gpu_of_[r]);
        std::swap(gpu_of_[r], gpu_of_[s]);
    }

    const placement &now() const { return gpu_of_; }
    double cost() const { return halo::cost(flow_, to_, gpu_of_); }

private:
    struct partner {
        int box;
        double sent, received;  // one of them is 0
    };

    // To the costs of all others.
    void move(int r, int gpu) {
        const int old = gpu_of_[r];
        for (const partner &k : partners_[r]) {
            if (k.box == r) continue;
            double *const costs = &costs_(k.box, 0);
            const matrix &distance = k.sent > 0 ? to_ : from_;
            const double bytes = k.sent + k.received, *const before = distance.row(old),
                         *const after = distance.row(gpu);
            for (int g = 0; g < n_; ++g) costs[g] += bytes * (after[g] - before[g]);
        }
    }

    const flows &flow_;
    const matrix &to_;  // distance from row to column
    matrix from_;       // from column to row
    int n_;
    placement gpu_of_;
    std::vector<std::vector<partner>> partners_;
    matrix costs_;                   // of what box i exchanges, if it were on that GPU and all others where they are
    std::vector<double> exchanged_;  // scratch
};

}  // namespace

placement trivial_placement(int n) {
    placement p(n);
    std::iota(p.begin(), p.end(), 0);
    return p;
}

double cost(const flows &flow, const matrix &distance, const placement &gpu_of) {
    double sum = 0;
    for (int i = 0; i < flow.size(); ++i)
        for (const flows::flow &f : flow.from(i)) sum += f.bytes * distance(gpu_of[i], gpu_of[f.to]);
    return sum;
}

matrix distances(const matrix &bandwidth) {
    matrix d(bandwidth.size());
    for (int a = 0; a < d.size(); ++a)
        for (int b = 0; b < d.size(); ++b) d(a, b) = a == b ? 0 : 1 / bandwidth(a, b);
    return d;
}

placement place_exactly(const flows &flow, const matrix &distance) { return exact_search(flow, distance).best(); }

placement place_by_swaps(const flows &flow, const matrix &distance, placement start) {
    const int n = flow.size();
    swapper all(flow, distance, std::move(start));
    for (double now = all.cost();;) {
        int best_r = 0, best_s = 0;
        double most = -rounding * now;
        for (int r = 0; r < n; ++r)
            if (const int s = all.best_partner(r, r + 1, n, most); s != r) best_r = r, best_s = s;
        if (best_r == best_s) return all.now();
        all.swap(best_r, best_s);
        const double after = all.cost();
        if (after >= now) {  // the sums of many changes are not exact
            all.swap(best_r, best_s);
            return all.now();
        }
        now = after;
    }
}

placement place_by_passes(const flows &flow, const matrix &distance, placement start, int passes) {
    const int n = flow.size();
    const double least_change = -rounding * cost(flow, distance, start);
    swapper all(flow, distance, std::move(start));
    for (bool better = true; better && passes > 0; --passes) {
        better = false;
        for (int r = 0; r < n; ++r) {
            double most = least_change;
            const int s = all.best_partner(r, 0, n, most);
            if (s == r) continue;
            all.swap(r, s);
            better = true;
        }
    }
    return all.now();
}

placement improve(const flows &flow, const matrix &distance, placement start) {
    if (flow.size() <= best_swaps_up_to) return place_by_swaps(flow, distance, std::move(start));
    return place_by_passes(flow, distance, std::move(start), most_passes);
}

placement place(const flows &flow, const matrix &distance) {
    if (flow.size() <= exact_up_to) return place_exactly(flow, distance);
    placement best = improve(flow, distance, trivial_placement(flow.size()));
    if (std::optional<placement> mapped = place_by_scotch(flow, distance)) {
        placement improved = improve(flow, distance, *std::move(mapped));
        if (cost(flow, distance, improved) < cost(flow, distance, best)) best = std::move(improved);
    }
    return best;
}

}  // namespace mpix::halo
