// SPDX-License-Identifier: BSD-3-Clause
//
// A communicator's name, which all members compute without a message. It is a hash of how the communicator was made:
// its parent's name, the constructor, how many constructors have been called on that parent, colour, group, tag. MPI
// requires all members to call constructors in the same order, so they agree.
#ifndef MPIX_HOST_CONTROL_COMM_ID_H
#define MPIX_HOST_CONTROL_COMM_ID_H

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/reserve.h"

namespace mpix {

struct communicator {
    communicator() = default;
    communicator(const communicator &) = delete;
    communicator &operator=(const communicator &) = delete;
    ~communicator();

    std::uint64_t name = 0;
    std::vector<int> peers;  // rank in the communicator (remote group of an intercommunicator) to world rank
    int rank = 0;            // ours
    // Set when the user frees the communicator while requests on it exist: its error handler.
    mutable std::atomic<MPI_Errhandler> last_handler{MPI_ERRHANDLER_NULL};
};

enum class constructor : std::uint64_t {
    dup = 1,
    dup_with_info,
    idup,
    idup_with_info,
    split,
    split_type,
    create,
    create_group,
    create_from_group,
    cart,
    cart_sub,
    graph,
    dist_graph,
    intercomm_create,
    intercomm_create_from_groups,
    intercomm_merge
};

class communicator_registry {
public:
    // Enters MPI_COMM_WORLD and MPI_COMM_SELF. Called once each, in MPI_Init and MPI_Finalize.
    void start();
    void stop();
    // A communicator of ours, on which the error handlers of freed communicators are called.
    MPI_Comm stand_in() const { return stand_in_; }

    // `made` is what the constructor returned to this process; it may be MPI_COMM_NULL. Call these only after the MPI
    // library's call has succeeded: where it failed, the caller repeats it, while the other members count one call.

    // Collective over `parent`, whose members all call its constructors in the same order. `detail` distinguishes the
    // communicators that one call makes for different sets of members.
    void add(MPI_Comm made, MPI_Comm parent, constructor how, std::uint64_t detail = 0);
    // Collective over a group within `parent`. The other members do not know of the call.
    void add_of_group(MPI_Comm made, MPI_Comm parent, MPI_Group group, int tag);
    // For a communicator without a parent that all members know. The name is made of the members (both sides of an
    // intercommunicator) and the tag.
    void add_orphan(MPI_Comm made, constructor how, std::uint64_t tag);

private:
    struct entry {
        std::uint64_t name = 0;
        std::uint64_t constructed = 0;                                   // on this communicator, by all its members
        transport::safe_hash_map<std::uint64_t, std::uint64_t> repeats;  // of one group and tag
        std::shared_ptr<const communicator> ranks;                       // made on first use
    };
    using entries = transport::safe_hash_map<std::uint64_t, entry>;

public:
    // The user frees it. restore() puts it back if the MPI library refuses.
    using removed = entries::node_type;
    removed remove(MPI_Comm freed);
    void restore(removed &&freed);

    // Null for a communicator whose constructor was never seen here.
    std::shared_ptr<const communicator> find(MPI_Comm comm);

    // The members of a group, in their order, as a number; 0 if they are not all of our MPI_COMM_WORLD.
    static std::uint64_t hash_group(MPI_Group group);

private:
    void enter(MPI_Comm made, std::uint64_t name);

    std::atomic<bool> started_{false};
    MPI_Comm stand_in_ = MPI_COMM_NULL;
    std::mutex mutex_;
    entries entries_;
    transport::safe_hash_map<std::uint64_t, std::uint64_t> repeats_;  // of one orphan's members and tag
};

communicator_registry &communicators();

// An MPI handle, pointer or int, as a number.
template <class Handle>
std::uint64_t handle_key(Handle handle) {
    if constexpr (sizeof(Handle) == sizeof(int))
        return static_cast<std::uint64_t>(static_cast<std::uint32_t>((int)(std::intptr_t)handle));
    else
        return (std::uint64_t)(std::uintptr_t)handle;
}

}  // namespace mpix

#endif  // MPIX_HOST_CONTROL_COMM_ID_H
