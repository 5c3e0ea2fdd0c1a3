// SPDX-License-Identifier: BSD-3-Clause
//
// MPIX_Typemap_*: datatypes for the user's kernels.
#include <mpi.h>
#include <mpix/mpix.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "device/kernels/gpu_pack.h"
#include "host/datatype/decode.h"
#include "host/datatype/typemap.h"
#include "host/format.h"
#include "host/mpi/boundary.h"
#include "host/mpi/symbol.h"
#include "host/mpi/thread_check.h"
#include "host/report.h"

using namespace mpix;

namespace {

// What a handle stands for; it keeps the tables alive.
struct exported {
    std::shared_ptr<const typemap> type;
    int device;
    unsigned users;  // on the host a datatype has one handle, however often it was asked for
};

std::mutex &mutex() {
    static auto *const one = new std::mutex;
    return *one;
}
std::map<MPIX_Typemap, exported> &handles() {
    static auto *const all = new std::map<MPIX_Typemap, exported>;
    return *all;
}

status create(MPI_Datatype datatype, int device, MPIX_Typemap *map) {
    if (map == nullptr) return failure(MPI_ERR_ARG, "map is a null pointer");
    *map = MPIX_TYPEMAP_NULL;
    if (datatype == MPI_DATATYPE_NULL) return failure(MPI_ERR_TYPE, "datatype is MPI_DATATYPE_NULL");
    if (device != MPIX_ON_HOST && (device < 0 || device >= gpu::number_of_devices()))
        return failure(MPI_ERR_ARG, format("device is {}, of {}", device, gpu::number_of_devices()));
    status why_not;
    const auto plan = plan_of(datatype, why_not);
    if (plan == nullptr) return why_not.of_class(MPI_ERR_TYPE);
    if (plan->size == 0) return failure(MPI_ERR_TYPE, "the datatype has no bytes");
    const auto type = typemap_of(*plan);
    *map = &type->map;
#if MPIX_HAVE_CUDA
    if (device != MPIX_ON_HOST)
        if (const std::string failed = gpu::place(&type->map, device, map); !failed.empty()) {
            *map = MPIX_TYPEMAP_NULL;
            return failure(MPI_ERR_OTHER, failed);
        }
#endif
    const std::lock_guard lock(mutex());
    ++handles().try_emplace(*map, exported{type, device, 0}).first->second.users;
    return {};
}

status destroy(MPIX_Typemap *map) {
    if (map == nullptr) return failure(MPI_ERR_ARG, "map is a null pointer");
    if (*map == MPIX_TYPEMAP_NULL) return {};
    std::shared_ptr<const typemap> last;  // ends after the lock
    const std::lock_guard lock(mutex());
    const auto found = handles().find(*map);
    if (found == handles().end()) return failure(MPI_ERR_ARG, "map is not a map that exists");
    if (--found->second.users == 0) {
#if MPIX_HAVE_CUDA
        if (found->second.device != MPIX_ON_HOST) gpu::unplace(*map, found->second.device);
#endif
        last = std::move(found->second.type);
        handles().erase(found);
    }
    *map = MPIX_TYPEMAP_NULL;
    return {};
}

}  // namespace

MPIX_SYMBOL int MPIX_Typemap_create(MPI_Datatype datatype, int device, MPIX_Typemap *map) try {
    MPIX_CHECK_THREAD("MPIX_Typemap_create", of_world());
    demand_mpi("MPIX_Typemap_create");
    status bad;
    try {
        bad = create(datatype, device, map);
    } catch (const std::bad_alloc &) {
        bad = failure(MPI_ERR_NO_MEM, "no memory for the map");
    }
    return bad.ok() ? MPI_SUCCESS : raise(MPI_COMM_WORLD, "MPIX_Typemap_create", bad);
}
MPIX_BOUNDARY("MPIX_Typemap_create", of_world())

MPIX_SYMBOL int MPIX_Typemap_free(MPIX_Typemap *map) try {
    MPIX_CHECK_THREAD("MPIX_Typemap_free", of_world());
    const status bad = destroy(map);
    return bad.ok() ? MPI_SUCCESS : raise(MPI_COMM_WORLD, "MPIX_Typemap_free", bad);
}
MPIX_BOUNDARY("MPIX_Typemap_free", of_world())
