// SPDX-License-Identifier: BSD-3-Clause
#include "host/request/communicator.h"

namespace mpix {
namespace {

std::uint64_t mix(std::uint64_t seed, std::uint64_t value) {
    std::uint64_t x = seed ^ (value + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2));
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;  // splitmix64's finaliser
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

std::vector<int> world_ranks(MPI_Group group) {
    int n = 0;
    PMPI_Group_size(group, &n);
    std::vector<int> mine(static_cast<std::size_t>(n)), world(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) mine[static_cast<std::size_t>(i)] = i;
    MPI_Group all;
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    if (n > 0) PMPI_Group_translate_ranks(group, n, mine.data(), all, world.data());
    PMPI_Group_free(&all);
    return world;
}

std::uint64_t hash_members(MPI_Comm comm) {
    MPI_Group group;
    PMPI_Comm_group(comm, &group);
    const std::uint64_t h = communicator_registry::hash_group(group);
    PMPI_Group_free(&group);
    return h;
}

}  // namespace

communicator::~communicator() {
    MPI_Errhandler handler = last_handler.load(std::memory_order_relaxed);
    if (handler != MPI_ERRHANDLER_NULL) PMPI_Errhandler_free(&handler);
}

std::uint64_t communicator_registry::hash_group(MPI_Group group) {
    std::uint64_t h = 7;
    for (const int rank : world_ranks(group)) h = mix(h, static_cast<std::uint64_t>(rank));
    return h;
}

void communicator_registry::start() {
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    add(MPI_COMM_WORLD, mix(1, 1));
    add(MPI_COMM_SELF, mix(mix(1, 2), static_cast<std::uint64_t>(rank)));
    PMPI_Comm_dup(MPI_COMM_SELF, &stand_in_);
}

void communicator_registry::stop() { PMPI_Comm_free(&stand_in_); }

std::uint64_t communicator_registry::mark(MPI_Comm parent, constructor how, std::uint64_t detail) {
    const std::lock_guard lock(mutex_);
    const auto it = entries_.find(handle_key(parent));
    if (it == entries_.end()) return 0;
    std::uint64_t h = mix(it->second.name, static_cast<std::uint64_t>(how));
    h = mix(h, it->second.constructed++);
    return mix(h, detail);
}

std::uint64_t communicator_registry::mark_group(MPI_Comm parent, constructor how, MPI_Group group, int tag) {
    const std::uint64_t members = hash_group(group);
    const std::lock_guard lock(mutex_);
    const auto it = entries_.find(handle_key(parent));
    if (it == entries_.end()) return 0;
    std::uint64_t h = mix(it->second.name, static_cast<std::uint64_t>(how));
    h = mix(mix(h, members), static_cast<std::uint64_t>(tag));
    return mix(h, repeats_[h]++);
}

std::uint64_t communicator_registry::mark_bridge(MPI_Comm local, MPI_Comm bridged, int tag) {
    MPI_Group remote;
    PMPI_Comm_remote_group(bridged, &remote);
    std::uint64_t theirs = hash_group(remote), ours = hash_members(local);
    PMPI_Group_free(&remote);
    if (theirs < ours) std::swap(theirs, ours);  // the same from both sides
    const std::lock_guard lock(mutex_);
    std::uint64_t h = mix(mix(2, static_cast<std::uint64_t>(constructor::intercomm_create)), ours);
    h = mix(mix(h, theirs), static_cast<std::uint64_t>(tag));
    return mix(h, repeats_[h]++);
}

void communicator_registry::add(MPI_Comm made, std::uint64_t name) {
    if (made == MPI_COMM_NULL || name == 0) return;
    const std::lock_guard lock(mutex_);
    entries_[handle_key(made)] = {name, 0, nullptr};
}

void communicator_registry::remove(MPI_Comm freed) {
    if (freed == MPI_COMM_WORLD || freed == MPI_COMM_SELF) return;  // an error of the program: they stay
    const std::lock_guard lock(mutex_);
    const auto it = entries_.find(handle_key(freed));
    if (it == entries_.end()) return;
    if (const auto &ranks = it->second.ranks; ranks != nullptr && ranks.use_count() > 1) {
        MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
        PMPI_Comm_get_errhandler(freed, &handler);
        ranks->last_handler.store(handler, std::memory_order_release);  // pairs with the acquire in raise_for
    }
    entries_.erase(it);
}

std::shared_ptr<const communicator> communicator_registry::find(MPI_Comm comm) {
    const std::lock_guard lock(mutex_);
    const auto it = entries_.find(handle_key(comm));
    if (it == entries_.end()) return nullptr;
    if (it->second.ranks == nullptr) {
        auto made = std::make_shared<communicator>();
        made->name = it->second.name;
        int inter = 0;
        MPI_Group group;
        PMPI_Comm_test_inter(comm, &inter);
        if (inter)
            PMPI_Comm_remote_group(comm, &group);
        else
            PMPI_Comm_group(comm, &group);
        made->peers = world_ranks(group);
        PMPI_Group_free(&group);
        PMPI_Comm_rank(comm, &made->rank);
        it->second.ranks = made;
    }
    return it->second.ranks;
}

communicator_registry &communicators() {
    static communicator_registry *const registry = new communicator_registry;
    return *registry;
}

}  // namespace mpix
