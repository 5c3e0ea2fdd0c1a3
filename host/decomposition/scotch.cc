// SPDX-License-Identifier: BSD-3-Clause
#include "host/decomposition/scotch.h"

#include <vector>

#ifdef MPIX_HAVE_SCOTCH

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

#include <scotch.h>

namespace mpix::halo {
namespace {

#define MPIX_SCOTCH_FUNCTIONS(F)  \
    F(SCOTCH_version)             \
    F(SCOTCH_numSizeof)           \
    F(SCOTCH_contextInit)         \
    F(SCOTCH_contextExit)         \
    F(SCOTCH_contextOptionSetNum) \
    F(SCOTCH_contextRandomClone)  \
    F(SCOTCH_contextRandomSeed)   \
    F(SCOTCH_contextThreadSpawn)  \
    F(SCOTCH_contextBindGraph)    \
    F(SCOTCH_graphInit)           \
    F(SCOTCH_graphExit)           \
    F(SCOTCH_graphBuild)          \
    F(SCOTCH_graphMap)            \
    F(SCOTCH_archInit)            \
    F(SCOTCH_archExit)            \
    F(SCOTCH_archBuild0)          \
    F(SCOTCH_stratInit)           \
    F(SCOTCH_stratExit)           \
    F(SCOTCH_stratGraphBipart)    \
    F(SCOTCH_stratGraphMapBuild)

// The functions of libscotch that are called, under their own names.
struct library {
#define MPIX_SCOTCH_MEMBER(function) decltype(&::function) function = nullptr;
    MPIX_SCOTCH_FUNCTIONS(MPIX_SCOTCH_MEMBER)
#undef MPIX_SCOTCH_MEMBER

    // Null if it is not there. It stays loaded.
    static const library *get() {
        static const library loaded;
        return loaded.usable_ ? &loaded : nullptr;
    }

private:
    library() {
        // The functions of Scotch that the program is linked with would be called by those that are loaded here.
        if (dlsym(RTLD_DEFAULT, "SCOTCH_graphInit") != nullptr) return;
        // As Debian names it, and as Scotch itself does. It brings libscotcherr, which prints errors and goes on.
        const std::string version = std::to_string(SCOTCH_VERSION) + "." + std::to_string(SCOTCH_RELEASE);
        void *handle = nullptr;
        for (const std::string &name : {"libscotch-" + version + ".so", "libscotch.so." + version})
            if (handle == nullptr) handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle == nullptr) return;
        bool all = true;
#define MPIX_SCOTCH_FIND(function)                                             \
    function = reinterpret_cast<decltype(function)>(dlsym(handle, #function)); \
    all = all && function != nullptr;
        MPIX_SCOTCH_FUNCTIONS(MPIX_SCOTCH_FIND)
#undef MPIX_SCOTCH_FIND
        if (!all) return;
        // Its structures are those of the header only if the version is, and the width of its integers.
        int major = 0, minor = 0, patch = 0;
        SCOTCH_version(&major, &minor, &patch);
        usable_ = major == SCOTCH_VERSION && minor == SCOTCH_RELEASE && SCOTCH_numSizeof() == sizeof(SCOTCH_Num);
    }

    bool usable_ = false;
};

// Random numbers of its own, and no threads, for which Scotch would bind the calling thread to a core.
class context {
public:
    explicit context(const library &scotch) : scotch_(scotch) {
        ok_ = scotch.SCOTCH_contextInit(&context_) == 0 &&
              scotch.SCOTCH_contextOptionSetNum(&context_, SCOTCH_OPTIONNUMDETERMINISTIC, 1) == 0 &&
              scotch.SCOTCH_contextOptionSetNum(&context_, SCOTCH_OPTIONNUMRANDOMFIXEDSEED, 1) == 0 &&
              scotch.SCOTCH_contextRandomClone(&context_) == 0 &&
              scotch.SCOTCH_contextThreadSpawn(&context_, 1, nullptr) == 0;
        if (ok_) scotch.SCOTCH_contextRandomSeed(&context_, 1);
    }
    ~context() { scotch_.SCOTCH_contextExit(&context_); }
    context(const context &) = delete;
    context &operator=(const context &) = delete;

    bool ok() const { return ok_; }
    SCOTCH_Context *get() { return &context_; }

private:
    const library &scotch_;
    SCOTCH_Context context_{};
    bool ok_ = false;
};

// A weighted graph, first for us to fill.
class graph {
public:
    explicit graph(const library &scotch) : scotch_(scotch) {}
    ~graph() {
        if (bound_) scotch_.SCOTCH_graphExit(&in_context_);
        if (built_) scotch_.SCOTCH_graphExit(&graph_);
    }
    graph(const graph &) = delete;
    graph &operator=(const graph &) = delete;

    void begin_vertex() { first_.push_back(static_cast<SCOTCH_Num>(ends_.size())); }
    void edge(int to, double load) {
        ends_.push_back(to);
        loads_.push_back(std::max<SCOTCH_Num>(1, static_cast<SCOTCH_Num>(load)));
    }
    bool build(context &c) {
        const auto vertices = static_cast<SCOTCH_Num>(first_.size()), edges = static_cast<SCOTCH_Num>(ends_.size());
        first_.push_back(edges);
        built_ = scotch_.SCOTCH_graphInit(&graph_) == 0;
        bound_ = built_ &&
                 scotch_.SCOTCH_graphBuild(&graph_, 0, vertices, first_.data(), nullptr, nullptr, nullptr, edges,
                                           ends_.data(), loads_.data()) == 0 &&
                 scotch_.SCOTCH_contextBindGraph(c.get(), &graph_, &in_context_) == 0;
        return bound_;
    }
    SCOTCH_Graph *get() { return &in_context_; }

private:
    const library &scotch_;
    std::vector<SCOTCH_Num> first_, ends_, loads_;  // by vertex; by edge, in both directions
    SCOTCH_Graph graph_{}, in_context_{};
    bool built_ = false, bound_ = false;
};

// Sums of loads times distances stay below 2^30.
constexpr int nearest_links = 8;  // of each GPU
constexpr int farther_links = 4;  // of each GPU, among the next 8, the next 16, and so on

// How Scotch cuts a set of GPUs in two, in its notation: its default way (multilevel, Fiduccia-Mattheyses), but into
// exact halves in the end. Its tables grow as 4 to the depth of these cuts.
constexpr const char *halves = "m{vert=50,low=h{pass=10},asc=f{move=100,bal=0.05}}f{move=100,bal=0}x";
constexpr int most_boxes = 1024;  // tables of 32 MiB

constexpr double largest_distance = 256, largest_sum = (1 << 30) / largest_distance;

// What two boxes send each other, in both directions.
void fill_with_flows(graph &boxes, const flows &flow) {
    const int n = flow.size();
    flows both(n);
    double sum = 0;
    for (int i = 0; i < n; ++i)
        for (const flows::flow &f : flow.from(i))
            if (f.to != i) both.add(i, f.to, f.bytes), both.add(f.to, i, f.bytes), sum += 2 * f.bytes;
    for (int i = 0; i < n; ++i) {
        boxes.begin_vertex();
        for (const flows::flow &f : both.from(i)) boxes.edge(f.to, f.bytes / sum * largest_sum);
    }
}

// Equal for equal arguments, and else without order.
std::uint32_t mixed(std::uint32_t a, std::uint32_t b) {
    std::uint32_t h = a * 0x9E3779B1U ^ b * 0x85EBCA77U;
    h = (h ^ h >> 15) * 0xC2B2AE3DU;
    return h ^ h >> 13;
}

// Not all links, which would be n^2: those to the nearest GPUs, and fewer and fewer of the others the farther away they
// are. Of links that are equally long, any. False if they have no lengths.
bool fill_with_links(graph &gpus, const matrix &distance) {
    const int n = distance.size();
    matrix length(n);
    double longest = 0;
    for (int a = 0; a < n; ++a)
        for (int b = 0; b < n; ++b)
            if (a != b) length(a, b) = distance(a, b) + distance(b, a), longest = std::max(longest, length(a, b));
    if (!(longest > 0) || !std::isfinite(longest)) return false;

    std::vector<std::vector<int>> linked(static_cast<std::size_t>(n));
    const auto link = [&](int a, int b) { linked[a].push_back(b), linked[b].push_back(a); };
    struct candidate {
        double length;
        std::uint32_t order;
        int gpu;
        bool operator<(const candidate &c) const {
            return length != c.length ? length < c.length : order != c.order ? order < c.order : gpu < c.gpu;
        }
    };
    std::vector<candidate> others;
    for (int a = 0; a < n; ++a) {
        others.clear();
        for (int b = 0; b < n; ++b)
            if (b != a) others.push_back({length(a, b), mixed(a, b), b});
        std::sort(others.begin(), others.end());
        const int count = static_cast<int>(others.size());
        for (int first = 0, last = nearest_links; first < count; first = last, last *= 2)
            for (int i = first, step = std::max(1, (last - first) / farther_links); i < std::min(last, count);
                 i += step)
                link(a, others[i].gpu);
        if (a > 0) link(a - 1, a);  // all of them are reached
    }
    for (int a = 0; a < n; ++a) {
        // The nearest first: Scotch takes the first way to a GPU that it finds for the shortest.
        std::vector<int> &ends = linked[a];
        std::sort(ends.begin(), ends.end(),
                  [&](int b, int c) { return std::pair(length(a, b), b) < std::pair(length(a, c), c); });
        ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
        gpus.begin_vertex();
        for (const int b : ends) gpus.edge(b, length(a, b) / longest * largest_distance);
    }
    return true;
}

}  // namespace

std::optional<placement> place_by_scotch(const flows &flow, const matrix &distance) {
    const int n = flow.size();
    if (n < 2 || n > most_boxes) return {};
    const library *const scotch = library::get();
    if (scotch == nullptr) return {};
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);

    context c(*scotch);
    graph boxes(*scotch), gpus(*scotch);
    fill_with_flows(boxes, flow);
    if (!c.ok() || !fill_with_links(gpus, distance) || !boxes.build(c) || !gpus.build(c)) return {};

    std::vector<SCOTCH_Num> mapped(static_cast<std::size_t>(n));
    SCOTCH_Strat bipartitioning, mapping;
    SCOTCH_Arch links;
    scotch->SCOTCH_stratInit(&bipartitioning);
    scotch->SCOTCH_stratInit(&mapping);
    scotch->SCOTCH_archInit(&links);
    const bool ok = scotch->SCOTCH_stratGraphBipart(&bipartitioning, halves) == 0 &&
                    scotch->SCOTCH_archBuild0(&links, gpus.get(), n, nullptr, &bipartitioning) == 0 &&
                    scotch->SCOTCH_stratGraphMapBuild(&mapping, SCOTCH_STRATQUALITY, n, 0) == 0 &&
                    scotch->SCOTCH_graphMap(boxes.get(), &links, &mapping, mapped.data()) == 0;
    scotch->SCOTCH_archExit(&links);
    scotch->SCOTCH_stratExit(&mapping);
    scotch->SCOTCH_stratExit(&bipartitioning);
    if (!ok) return {};
    return one_to_one({mapped.begin(), mapped.end()}, distance);
}

}  // namespace mpix::halo

#else  // built without

namespace mpix::halo {

std::optional<placement> place_by_scotch(const flows & /*flow*/, const matrix & /*distance*/) { return {}; }

}  // namespace mpix::halo

#endif

namespace mpix::halo {

placement one_to_one(placement gpu_of, const matrix &distance) {
    const int n = static_cast<int>(gpu_of.size());
    std::vector<bool> taken(gpu_of.size());
    std::vector<int> homeless;
    for (int i = 0; i < n; ++i) {
        if (taken[gpu_of[i]]) homeless.push_back(i);
        taken[gpu_of[i]] = true;
    }
    for (const int i : homeless) {
        int nearest = -1;
        for (int gpu = 0; gpu < n; ++gpu)
            if (!taken[gpu] && (nearest < 0 || distance(gpu_of[i], gpu) < distance(gpu_of[i], nearest))) nearest = gpu;
        gpu_of[i] = nearest;
        taken[nearest] = true;
    }
    return gpu_of;
}

}  // namespace mpix::halo
