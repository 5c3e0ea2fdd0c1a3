// SPDX-License-Identifier: BSD-3-Clause
//
// A name for each communicator that all its members find without a message: a hash of how it came about
// (its parent's name, the constructor, how many constructors that parent has seen, colour, group, tag).
// MPI makes all members call the constructors of one communicator in the same order, so they agree.
#ifndef MPIX_HOST_REQUEST_COMMUNICATOR_H
#define MPIX_HOST_REQUEST_COMMUNICATOR_H

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace mpix {

struct communicator {
    communicator() = default;
    communicator(const communicator &) = delete;
    communicator &operator=(const communicator &) = delete;
    ~communicator();

    std::uint64_t name = 0;
    std::vector<int> peers;  // rank in the communicator (remote group of an intercommunicator) to world rank
    int rank = 0;            // ours
    // Once the user has freed it under requests: the handler that it had.
    mutable std::atomic<MPI_Errhandler> last_handler{MPI_ERRHANDLER_NULL};
};

enum class constructor : std::uint64_t {
    dup = 1,
    dup_with_info,
    idup,
    split,
    split_type,
    create,
    create_group,
    cart,
    cart_sub,
    graph,
    dist_graph,
    intercomm_create,
    intercomm_merge
};

class communicator_registry {
public:
    // MPI_COMM_WORLD and MPI_COMM_SELF; called once, in MPI_Init, and MPI_Finalize.
    void start();
    void stop();
    // A communicator of ours, to call the handlers of freed ones with.
    MPI_Comm stand_in() const { return stand_in_; }

    // A collective constructor on `parent` is about to run: the mark it leaves in the name. Calls for one
    // parent are in the same order in all members.
    std::uint64_t mark(MPI_Comm parent, constructor how, std::uint64_t detail = 0);
    // The same for constructors that only a group within the parent takes part in.
    std::uint64_t mark_group(MPI_Comm parent, constructor how, MPI_Group group, int tag);
    // For the two sides of MPI_Intercomm_create, once the result is known.
    std::uint64_t mark_bridge(MPI_Comm local, MPI_Comm bridged, int tag);

    // `made` (MPI_COMM_NULL is ignored) came from the constructor that left `name`.
    void add(MPI_Comm made, std::uint64_t name);
    void remove(MPI_Comm freed);

    // Null for a communicator whose constructor was never seen here.
    std::shared_ptr<const communicator> find(MPI_Comm comm);

    // The members of a group, as a number.
    static std::uint64_t hash_group(MPI_Group group);

private:
    struct entry {
        std::uint64_t name = 0;
        std::uint64_t constructed = 0;              // constructors seen on this communicator
        std::shared_ptr<const communicator> ranks;  // made on first use
    };
    MPI_Comm stand_in_ = MPI_COMM_NULL;
    std::mutex mutex_;
    std::unordered_map<std::uint64_t, entry> entries_;
    std::unordered_map<std::uint64_t, std::uint64_t> repeats_;  // of one mark_group / mark_bridge
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

#endif  // MPIX_HOST_REQUEST_COMMUNICATOR_H
