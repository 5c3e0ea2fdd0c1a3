// SPDX-License-Identifier: BSD-3-Clause
//
// What a random program does: exchanges of all fields or of some, by the calls in turn.
#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "tests/halo/random/program.hpp"

namespace random_halo {

namespace {

// 0: nodes have different numbers of them.
int ranks_of_a_node() {
    int ranks = 0;
    if (fake_node == nullptr) {
        MPI_Comm node = MPI_COMM_NULL;
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
        MPI_Comm_size(node, &ranks);
        MPI_Comm_free(&node);
        return ranks;
    }
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::map<int, int> counts;
    for (int r = 0; r < ranks; ++r) ++counts[fake_node(r)];
    const int first = counts.begin()->second;
    return std::all_of(counts.begin(), counts.end(), [&](const auto &n) { return n.second == first; }) ? first : 0;
}

}  // namespace

program::program(unsigned seed) : shared_(seed) {
    if (before_program != nullptr) before_program(seed);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    node_ranks_ = ranks_of_a_node();
    own_.seed(seed * 64 + static_cast<unsigned>(rank_));
    late_.seed(seed * 64 + static_cast<unsigned>(rank_) + 32);
}

int program::run() {
    dimensions_ = pick(1, 3);
    std::vector<std::int64_t> extent;
    for (int a = 0; a < dimensions_; ++a) {
        extent.push_back(dimensions_ == 1 ? pick(8, 40) : pick(a == 0 ? 8 : 1, 9));
        extent_[a] = extent.back();
        options_.periodic[a] = pick(0, 1) == 1;
    }
    const int how = pick(0, 4);
    if (how == 1) options_.boxes = random_boxes(ranks_);
    if (how == 4) {
        options_.boxes = random_boxes(pick(1, 3 * ranks_));
        for (std::size_t i = 0; i < options_.boxes.size(); ++i) options_.owners.push_back(pick(0, ranks_ - 1));
    }
    // So many fit along x.
    if (options_.boxes.empty()) options_.boxes_per_rank = pick(1, std::clamp(8 / ranks_, 1, 3));
    if (how == 2 && node_ranks_ > 0) {
        options_.links.within_node.assign(static_cast<std::size_t>(node_ranks_ * node_ranks_), 1e9);
        options_.links.network = 1e9;
        for (double &bandwidth : options_.links.within_node) bandwidth *= pick(1, 9);
    }
    const halo::grid g(MPI_COMM_WORLD, extent, options_);
    const int fields = pick(1, 4);
    for (int f = 0; f < fields; ++f) make_field(g, f);

    // All fields; some of them; and the others.
    std::vector<std::vector<int>> sets(3);
    for (int f = 0; f < fields; ++f) {
        sets[0].push_back(f);
        sets[static_cast<std::size_t>(pick(1, 2))].push_back(f);
    }
    std::vector<halo::exchange> exchanges;
    for (const std::vector<int> &set : sets) {
        std::vector<halo::field> described;
        for (const int f : set) described.push_back(fields_[static_cast<std::size_t>(f)].description());
        auto transfer = static_cast<halo::transfer>(pick(0, 3));
        for (const int f : set)
            if (fields_[static_cast<std::size_t>(f)].two_allocations && transfer == halo::transfer::datatype)
                transfer = halo::transfer::packed;
        if (!uses_datatypes && transfer == halo::transfer::datatype) transfer = halo::transfer::plain;
        if (to_nodes == halo::node_messages::always && transfer != halo::transfer::automatic)
            transfer = halo::transfer::packed;
        exchanges.emplace_back(g, described, halo::exchange_options{.transfer = transfer, .node_messages = to_nodes});
    }
    if (pick(0, 3) == 0) {  // freed without a start
        exchanges.erase(exchanges.begin());
        sets.erase(sets.begin());
    }
    const bool first_is_all = exchanges.size() == 3;
    int wrong = 0;
    for (std::size_t i = 0; i < exchanges.size(); ++i) wrong += check_interior(g, exchanges[i], sets[i]);
    for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
        swap(exchanges, sets);
        wrong += check_data(exchanges, sets);
        fill(epoch);
        if (first_is_all && pick(0, 1)) {
            exchange(exchanges[0], sets[0].size());
        } else {  // two at once
            halo::exchange &a = exchanges[exchanges.size() - 2], &b = exchanges.back();
            a.start();
            be_late();
            b.start();
            be_late();
            b.finish();
            be_late();
            a.finish();
        }
        for (test_field &f : fields_) wrong += check(f, epoch) + check_gather(g, f, epoch);
    }
    wrong += run_reverse(g);
    return wrong + run_in_messages(g);
}

void program::swap(std::vector<halo::exchange> &exchanges, const std::vector<std::vector<int>> &sets) {
    for (int f = 0; f < static_cast<int>(fields_.size()); ++f) {
        test_field &field = fields_[static_cast<std::size_t>(f)];
        if (!field.two_allocations || pick_own(0, 1)) continue;
        for (test_box &b : field.boxes) std::swap(b.memory, b.second);
        for (std::size_t x = 0; x < exchanges.size(); ++x)
            for (std::size_t i = 0; i < sets[x].size(); ++i)
                if (sets[x][i] == f) exchanges[x].swap(static_cast<int>(i));
    }
}

void program::fill(std::uint64_t epoch) {
    for (test_field &f : fields_) {
        poison_all(f);
        for (test_box &b : f.boxes)
            for_each_cell(b.local, [&](const index3 &cell) { put(f, b, b.memory, cell, cell, epoch); });
    }
}

void program::be_late() {
    if (to_nodes != halo::node_messages::never && late_() % 4 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(late_() % 2000));
}

void program::exchange(halo::exchange &x, std::size_t fields) {
    start(x, fields);
    be_late();
    x.finish();
}

void program::start(halo::exchange &x, std::size_t fields) {
    std::vector<int> order(fields);
    for (std::size_t f = 0; f < fields; ++f) order[f] = static_cast<int>(f);
    std::shuffle(order.begin(), order.end(), own_);
    const int how = pick_own(0, 2);
    if (how == 0) {
        x.start();
    } else if (how == 1) {
        x.begin();
        for (const int f : order) x.ready(f);
    } else {
        x.begin();
        std::vector<std::thread> threads;
        for (const int f : order) threads.emplace_back([&x, f] { x.ready(f); });
        for (std::thread &t : threads) t.join();
    }
}

}  // namespace random_halo
