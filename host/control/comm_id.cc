// SPDX-License-Identifier: BSD-3-Clause
#include "host/control/comm_id.h"

#include <utility>

namespace mpix {
namespace {

std::uint64_t mix(std::uint64_t seed, std::uint64_t value) {
    std::uint64_t x = seed ^ (value + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2));
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;  // splitmix64's finaliser
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// The library has made the communicator, so this must not fail: the memory comes from the reserve.
transport::safe_vector<int> world_ranks(MPI_Group group) {
    int n = 0;
    PMPI_Group_size(group, &n);
    transport::safe_vector<int> mine(static_cast<std::size_t>(n)), world(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) mine[static_cast<std::size_t>(i)] = i;
    MPI_Group all;
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    if (n > 0) PMPI_Group_translate_ranks(group, n, mine.data(), all, world.data());
    PMPI_Group_free(&all);
    return world;
}

}  // namespace

communicator::~communicator() {
    MPI_Errhandler handler = last_handler.load(std::memory_order_relaxed);
    if (handler != MPI_ERRHANDLER_NULL) PMPI_Errhandler_free(&handler);
}

std::uint64_t communicator_registry::hash_group(MPI_Group group) {
    // pairs: H5
    if (!communicators().started_.load(std::memory_order_acquire)) return 0;  // there may be no MPI_COMM_WORLD
    std::uint64_t h = 7;
    for (const int rank : world_ranks(group)) {
        if (rank < 0) return 0;
        h = mix(h, static_cast<std::uint64_t>(rank));
    }
    return h;
}

void communicator_registry::start() {
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    {
        const std::lock_guard lock(mutex_);
        enter(MPI_COMM_WORLD, mix(1, 1));
        enter(MPI_COMM_SELF, mix(mix(1, 2), static_cast<std::uint64_t>(rank)));
    }
    PMPI_Comm_dup(MPI_COMM_SELF, &stand_in_);
    started_.store(true, std::memory_order_release);  // pairs: H5
}

void communicator_registry::stop() {
    started_.store(false, std::memory_order_release);  // pairs: H5
    PMPI_Comm_free(&stand_in_);
    const std::lock_guard lock(mutex_);
    entries_.clear();  // frees error handlers, too, which must happen before MPI ends
}

// `mutex_` is held. A name of 0 means not known. Then the entry is erased, in case the handle belonged to a
// communicator that was freed without our seeing it.
void communicator_registry::enter(MPI_Comm made, std::uint64_t name) {
    if (made == MPI_COMM_NULL) return;
    if (name == 0)
        entries_.erase(handle_key(made));
    else
        entries_[handle_key(made)] = {name, 0, {}, nullptr};
}

void communicator_registry::add(MPI_Comm made, MPI_Comm parent, constructor how, std::uint64_t detail) {
    const std::lock_guard lock(mutex_);
    std::uint64_t name = 0;
    if (const auto it = entries_.find(handle_key(parent)); it != entries_.end()) {
        name = mix(it->second.name, static_cast<std::uint64_t>(how));
        name = mix(mix(name, it->second.constructed++), detail);
    }
    enter(made, name);
}

void communicator_registry::add_of_group(MPI_Comm made, MPI_Comm parent, MPI_Group group, int tag) {
    if (made == MPI_COMM_NULL) return;
    const std::uint64_t call = mix(hash_group(group), static_cast<std::uint64_t>(tag));
    const std::lock_guard lock(mutex_);
    std::uint64_t name = 0;
    if (const auto it = entries_.find(handle_key(parent)); it != entries_.end()) {
        name = mix(it->second.name, static_cast<std::uint64_t>(constructor::create_group));
        name = mix(mix(name, call), it->second.repeats[call]++);
    }
    enter(made, name);
}

void communicator_registry::add_orphan(MPI_Comm made, constructor how, std::uint64_t tag) {
    if (made == MPI_COMM_NULL) return;
    int inter = 0;
    MPI_Group local, remote = MPI_GROUP_EMPTY;
    PMPI_Comm_test_inter(made, &inter);
    PMPI_Comm_group(made, &local);
    if (inter) PMPI_Comm_remote_group(made, &remote);
    std::uint64_t ours = hash_group(local), theirs = hash_group(remote);
    PMPI_Group_free(&local);
    if (inter) PMPI_Group_free(&remote);
    const bool known = ours != 0 && theirs != 0;
    if (inter && theirs < ours) std::swap(theirs, ours);  // the same from both sides
    const std::uint64_t call = mix(mix(mix(mix(2, static_cast<std::uint64_t>(how)), ours), theirs), tag);
    const std::lock_guard lock(mutex_);
    enter(made, known ? mix(call, repeats_[call]++) : 0);
}

communicator_registry::removed communicator_registry::remove(MPI_Comm freed) {
    const std::lock_guard lock(mutex_);
    removed out = entries_.extract(handle_key(freed));
    if (!out.empty() && out.mapped().ranks.use_count() > 1) {
        MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
        PMPI_Comm_get_errhandler(freed, &handler);
        // release: pairs with the acquire in place_of_errors.
        out.mapped().ranks->last_handler.store(handler, std::memory_order_release);  // pairs: H4
    }
    return out;
}

void communicator_registry::restore(removed &&refused) {
    if (refused.empty()) return;
    if (refused.mapped().ranks != nullptr) {
        MPI_Errhandler handler =
            refused.mapped().ranks->last_handler.exchange(MPI_ERRHANDLER_NULL, std::memory_order_acq_rel);  // pairs: H4
        if (handler != MPI_ERRHANDLER_NULL) PMPI_Errhandler_free(&handler);
    }
    const std::lock_guard lock(mutex_);
    entries_.insert(std::move(refused));
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
        const auto peers = world_ranks(group);
        PMPI_Group_free(&group);
        made->peers.assign(peers.begin(), peers.end());
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
