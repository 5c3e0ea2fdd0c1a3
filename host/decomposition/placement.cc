// SPDX-License-Identifier: BSD-3-Clause
#include "host/decomposition/placement.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace mpix::halo {
namespace {

// What is less by rounding only is not less.
constexpr double rounding = 1e-12;

// Depth first, box by box, by branch and bound.
class exact_search {
public:
    exact_search(const matrix &flow, const matrix &distance) : flow_(flow), distance_(distance), n_(flow.size()) {
        // What the flows between boxes of which the later one is k or later cost at least.
        double nearest = std::numeric_limits<double>::infinity();
        for (int a = 0; a < n_; ++a)
            for (int b = 0; b < n_; ++b)
                if (a != b) nearest = std::min(nearest, distance(a, b));
        at_least_.assign(n_ + 1, 0);
        for (int k = n_ - 1; k >= 0; --k) {
            at_least_[k] = at_least_[k + 1];
            for (int i = 0; i < k; ++i) at_least_[k] += (flow(i, k) + flow(k, i)) * nearest;
        }
        current_.resize(n_);
        taken_.resize(n_);
    }

    placement best() {
        best_ = trivial_placement(n_);
        least_ = cost(flow_, distance_, best_);
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

    const matrix &flow_, &distance_;
    int n_;
    std::vector<double> at_least_;
    placement current_, best_;
    std::vector<bool> taken_;
    double least_ = 0;
};

// How the cost changes if boxes r and s swap their GPUs.
double change(const matrix &a, const matrix &b, const placement &p, int r, int s) {
    double sum = a(r, r) * (b(p[s], p[s]) - b(p[r], p[r])) + a(r, s) * (b(p[s], p[r]) - b(p[r], p[s])) +
                 a(s, r) * (b(p[r], p[s]) - b(p[s], p[r])) + a(s, s) * (b(p[r], p[r]) - b(p[s], p[s]));
    for (int k = 0; k < a.size(); ++k) {
        if (k == r || k == s) continue;
        sum += (a(k, r) - a(k, s)) * (b(p[k], p[s]) - b(p[k], p[r])) +
               (a(r, k) - a(s, k)) * (b(p[s], p[k]) - b(p[r], p[k]));
    }
    return sum;
}

// The same after r and s have swapped, from what it was before, for two other boxes u and v (E. Taillard, 1991).
double changed_change(const matrix &a, const matrix &b, const placement &p, double before, int u, int v, int r, int s) {
    return before +
           (a(r, u) - a(r, v) + a(s, v) - a(s, u)) * (b(p[s], p[u]) - b(p[s], p[v]) + b(p[r], p[v]) - b(p[r], p[u])) +
           (a(u, r) - a(v, r) + a(v, s) - a(u, s)) * (b(p[u], p[s]) - b(p[v], p[s]) + b(p[v], p[r]) - b(p[u], p[r]));
}

}  // namespace

placement trivial_placement(int n) {
    placement p(n);
    std::iota(p.begin(), p.end(), 0);
    return p;
}

double cost(const matrix &flow, const matrix &distance, const placement &gpu_of) {
    double sum = 0;
    for (int i = 0; i < flow.size(); ++i)
        for (int j = 0; j < flow.size(); ++j) sum += flow(i, j) * distance(gpu_of[i], gpu_of[j]);
    return sum;
}

matrix distances(const matrix &bandwidth) {
    matrix d(bandwidth.size());
    for (int a = 0; a < d.size(); ++a)
        for (int b = 0; b < d.size(); ++b) d(a, b) = a == b ? 0 : 1 / bandwidth(a, b);
    return d;
}

placement place_exactly(const matrix &flow, const matrix &distance) { return exact_search(flow, distance).best(); }

placement place_by_swaps(const matrix &flow, const matrix &distance, placement p) {
    const int n = flow.size();
    matrix changes(n);  // of r and s, in row r, column s > r
    for (int r = 0; r < n; ++r)
        for (int s = r + 1; s < n; ++s) changes(r, s) = change(flow, distance, p, r, s);
    for (double now = cost(flow, distance, p);;) {
        int best_r = 0, best_s = 0;
        double most = -rounding * now;
        for (int r = 0; r < n; ++r)
            for (int s = r + 1; s < n; ++s)
                if (changes(r, s) < most) most = changes(r, s), best_r = r, best_s = s;
        if (best_r == best_s) return p;
        std::swap(p[best_r], p[best_s]);
        const double after = cost(flow, distance, p);
        if (after >= now) {  // the sums of many changes are not exact
            std::swap(p[best_r], p[best_s]);
            return p;
        }
        now = after;
        for (int u = 0; u < n; ++u)
            for (int v = u + 1; v < n; ++v) {
                const bool other = u != best_r && u != best_s && v != best_r && v != best_s;
                changes(u, v) = other ? changed_change(flow, distance, p, changes(u, v), u, v, best_r, best_s)
                                      : change(flow, distance, p, u, v);
            }
    }
}

placement place(const matrix &flow, const matrix &distance) {
    if (flow.size() <= exact_up_to) return place_exactly(flow, distance);
    return place_by_swaps(flow, distance, trivial_placement(flow.size()));
}

}  // namespace mpix::halo
