// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI-4 partitioned calls.
#include <mpi.h>
#include <mpix/mpix.h>

#include <climits>
#include <cstdio>
#include <new>

#include "host/config.h"
#include "host/datatype/decode.h"
#include "host/format.h"
#include "host/mpi/boundary.h"
#include "host/mpi/symbol.h"
#include "host/mpi/thread_check.h"
#include "host/mpi/tools.h"
#include "host/profiled_range.h"
#include "host/progress.h"
#include "host/request/explain.h"
#include "host/transfer/layout_check.h"
#include "host/transfer/receive.h"
#include "host/transfer/send.h"
#include "host/unknown_names.h"
#include "host/wireup/wireup.h"

using namespace mpix;

namespace {

int tag_limit() {
    static const int limit = [] {
        int *value = nullptr, found = 0;
        PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void *>(&value), &found);
        return found ? *value : 32767;
    }();
    return limit;
}

struct arguments {
    void *buffer;
    int partitions;
    MPI_Count count;
    MPI_Datatype datatype;
    int peer, tag;
    MPI_Comm comm;
    MPI_Request *request;
};

// Check the arguments of an init call, in the order in which the user reads them.
status check(const arguments &a, const char *peer_name, operation &op) {
    if (!setup_running()) return init_unseen();
    if (a.request == nullptr) return failure(MPI_ERR_REQUEST, "request is a null pointer");
    if (a.comm == MPI_COMM_NULL) return failure(MPI_ERR_COMM, "comm is MPI_COMM_NULL");
    op.members = communicators().find(a.comm);
    if (op.members == nullptr)
        return failure(MPI_ERR_COMM,
                       "comm was made by a call that mpix did not see, or has members of another MPI_COMM_WORLD; use "
                       "MPI_COMM_WORLD, or make a communicator from it (MPI_Comm_dup, MPI_Comm_split, ...)");
    if (a.partitions < 0) return failure(MPI_ERR_ARG, format("partitions is {}; it must be at least 0", a.partitions));
    if (a.count < 0) return failure(MPI_ERR_COUNT, format("count is {}", static_cast<long long>(a.count)));
    if (a.datatype == MPI_DATATYPE_NULL) return failure(MPI_ERR_TYPE, "datatype is MPI_DATATYPE_NULL");
    const int ranks = static_cast<int>(op.members->peers.size());
    if (a.peer != MPI_PROC_NULL && (a.peer < 0 || a.peer >= ranks))
        return failure(
            MPI_ERR_RANK,
            a.peer == MPI_ANY_SOURCE
                ? format("{} is {} (MPI_ANY_SOURCE); partitioned communication takes no wildcards", peer_name, a.peer)
                : format("{} is {}; the communicator has ranks 0 to {}", peer_name, a.peer, ranks - 1));
    if (a.tag < 0 || a.tag > tag_limit())
        return failure(MPI_ERR_TAG, a.tag == MPI_ANY_TAG
                                        ? "tag is MPI_ANY_TAG; partitioned communication takes no wildcards"
                                        : format("tag is {}; it must be within 0 to {}", a.tag, tag_limit()));
    op.type = basic_plan_at_hand(a.datatype);
    if (op.type == nullptr) {
        if (!is_committed(a.datatype)) return not_committed();
        status why;
        op.type = plan_of(a.datatype, why);
        if (op.type == nullptr) return why.in_context("datatype: ").of_class(MPI_ERR_TYPE);
    }
    op.no_partitions = a.partitions == 0;
    if (a.count > 0 && op.type->size > 0 && !op.no_partitions) {
        const auto limit = static_cast<std::uint64_t>(1) << 60;
        if (static_cast<std::uint64_t>(a.count) >
            limit / static_cast<std::uint64_t>(op.type->size) / static_cast<std::uint64_t>(a.partitions))
            return failure(MPI_ERR_COUNT, "partitions x count x size of the datatype is beyond 2^60 bytes");
        if (a.buffer == nullptr && op.type->first_offset() == 0)
            return failure(MPI_ERR_BUFFER, "buf is a null pointer");
    }
    op.buffer = static_cast<char *>(a.buffer);
    op.partitions = op.no_partitions ? 1 : a.partitions;
    op.count = op.no_partitions ? 0 : static_cast<std::uint64_t>(a.count);
    op.peer = a.peer;
    op.tag = a.tag;
    op.comm = a.comm;
    op.names = names_of(a.comm, a.datatype);
    return {};
}

template <class Kind>
int init(const char *call, const char *peer_name, const arguments &a) try {
    operation op;
    status bad = check(a, peer_name, op);
    std::shared_ptr<Kind> r;
    if (bad.ok()) {
        const auto since = explain_clock(op);
        r = std::make_shared<Kind>(op);
        bad = r->check_buffer();
        if (!bad.ok() && config().check && !r->gapless) check_layout(*r, call);  // which may say why
        if (bad.ok()) bad = r->prepare();
        explain_time(*r, "make the request (the first on a GPU creates the context, loads kernels and calibrates)",
                     since);
    }
    if (!bad.ok()) return raise(a.comm, call, bad);
    // The handle: a real, inactive request of the MPI library, so it is valid wherever it may end up.
    if (const int code =
            from_library(PMPI_Recv_init(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &r->handle));
        code != MPI_SUCCESS)
        return code;
    try {
        if (config().check) check_layout(*r, call);
        own(r);
        join(r);
    } catch (...) {
        disown(r.get());
        PMPI_Request_free(&r->handle);
        throw;
    }
    *a.request = r->handle;
    if (!r->null_peer()) progress_wake();
    return MPI_SUCCESS;
} catch (const std::bad_alloc &) {
    if (thrown_by_handler()) throw;
    char sentence[64];
    std::snprintf(sentence, sizeof sentence, "no memory for %d partitions", a.partitions);
    return raise(a.comm, call, MPI_ERR_NO_MEM, sentence);
}

#if defined(MPI_ABI_VERSION)
// The standard ABI's MPI_Psend_init and MPI_Precv_init take the count as an int, and those with _c as an MPI_Count; the
// headers that came with MPICH 5.0 and Intel MPI 2021.18 have an MPI_Count in both. So callers of either kind come to one
// function, and an int comes in the lower half of the argument, its sign, or zeros, in the upper one.
status check_width(MPI_Count count, const char *call) {
    if (count <= INT_MAX || count > static_cast<MPI_Count>(UINT_MAX)) return {};
    return failure(MPI_ERR_COUNT, format("count is {}, or {} if it is an int; where it is not, call {}_c",
                                         static_cast<long long>(count), static_cast<int>(count), call));
}
#else
status check_width(MPI_Count, const char *) { return {}; }
#endif

// The request of a Pready, or null.
[[gnu::always_inline]] inline send_request *sender(MPI_Request handle) {
    request *r = handle == MPI_REQUEST_NULL ? nullptr : find_request(handle);
    return r != nullptr && r->kind == MPIX_KIND_SEND ? static_cast<send_request *>(r) : nullptr;
}

// The same for MPI_Pready's fast path: null also where that must not be taken.
[[gnu::always_inline]] inline send_request *look_up_sender(MPI_Request handle) {
    if (checks_threads) [[unlikely]]
        return nullptr;
    send_request *const r = sender(handle);
    if (r != nullptr && r->alone()) last_readied.store(r, std::memory_order_relaxed);
    return r;
}

status no_sender(MPI_Request handle) {
    return failure(MPI_ERR_REQUEST, handle == MPI_REQUEST_NULL        ? "request is MPI_REQUEST_NULL"
                                    : find_request(handle) != nullptr ? "request is a partitioned receive"
                                                                      : "request is not a partitioned send");
}

[[gnu::cold]] int raise_for(MPI_Request handle, const char *call, const status &bad) {
    const request *r = handle == MPI_REQUEST_NULL ? nullptr : find_request(handle);
    return r == nullptr ? raise(MPI_COMM_NULL, call, bad) : raise(*r, call, bad);
}

// Out of the way of those that are readied.
[[gnu::cold, gnu::noinline]] int raise_not_readied(MPI_Request handle, int partition, int code) {
    const send_request *const r = sender(handle);
    return raise_for(handle, "MPI_Pready", r == nullptr ? no_sender(handle) : r->not_readied(partition, code));
}

// MPI_Pready without its fast path. Not inlined: so the fast path needs no stack frame.
[[gnu::noinline]] int ready_or_raise(int partition, MPI_Request request) try {
    MPIX_CHECK_THREAD("MPI_Pready", of_request(&request));
    send_request *const r = sender(request);
    const int code = r == nullptr ? MPI_ERR_REQUEST : r->ready(partition);
    return code == MPI_SUCCESS ? code : raise_not_readied(request, partition, code);
}
MPIX_BOUNDARY("MPI_Pready", of_request(&request))

// MPICH 4.0 and Open MPI 5 declare the list of MPI_Pready_list without const.
template <class Function>
struct second_argument;
template <class Result, class First, class Second, class Third>
struct second_argument<Result(First, Second, Third)> {
    using type = Second;
};
using partition_list = second_argument<decltype(MPI_Pready_list)>::type;

}  // namespace

MPIX_SYMBOL int MPI_Psend_init(const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest,
                               int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request) try {
    MPIX_CHECK_THREAD("MPI_Psend_init", of_comm(comm));
    const profiled_range shown(range_name::psend_init);
    warn_of_unknown_keys("MPI_Psend_init", info, {});
    if (const status bad = check_width(count, "MPI_Psend_init"); !bad.ok()) return raise(comm, "MPI_Psend_init", bad);
    return init<send_request>("MPI_Psend_init", "dest",
                              {const_cast<void *>(buf), partitions, count, datatype, dest, tag, comm, request});
}
MPIX_BOUNDARY("MPI_Psend_init", of_comm(comm))

MPIX_SYMBOL int MPI_Precv_init(void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                               MPI_Comm comm, MPI_Info info, MPI_Request *request) try {
    MPIX_CHECK_THREAD("MPI_Precv_init", of_comm(comm));
    const profiled_range shown(range_name::precv_init);
    warn_of_unknown_keys("MPI_Precv_init", info, {});
    if (const status bad = check_width(count, "MPI_Precv_init"); !bad.ok()) return raise(comm, "MPI_Precv_init", bad);
    return init<receive_request>("MPI_Precv_init", "source",
                                 {buf, partitions, count, datatype, source, tag, comm, request});
}
MPIX_BOUNDARY("MPI_Precv_init", of_comm(comm))

#if defined(MPI_ABI_VERSION)

MPIX_SYMBOL int MPI_Psend_init_c(const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest,
                                 int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request) try {
    MPIX_CHECK_THREAD("MPI_Psend_init_c", of_comm(comm));
    const profiled_range shown(range_name::psend_init);
    warn_of_unknown_keys("MPI_Psend_init_c", info, {});
    return init<send_request>("MPI_Psend_init_c", "dest",
                              {const_cast<void *>(buf), partitions, count, datatype, dest, tag, comm, request});
}
MPIX_BOUNDARY("MPI_Psend_init_c", of_comm(comm))

MPIX_SYMBOL int MPI_Precv_init_c(void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                                 MPI_Comm comm, MPI_Info info, MPI_Request *request) try {
    MPIX_CHECK_THREAD("MPI_Precv_init_c", of_comm(comm));
    const profiled_range shown(range_name::precv_init);
    warn_of_unknown_keys("MPI_Precv_init_c", info, {});
    return init<receive_request>("MPI_Precv_init_c", "source",
                                 {buf, partitions, count, datatype, source, tag, comm, request});
}
MPIX_BOUNDARY("MPI_Precv_init_c", of_comm(comm))

#endif  // MPI_ABI_VERSION

MPIX_SYMBOL int MPI_Pready(int partition, MPI_Request request) {
    auto *r = static_cast<send_request *>(last_readied.load(std::memory_order_relaxed));
    if (r == nullptr || r->handle != request) r = look_up_sender(request);
    return r != nullptr && r->ready_fast(partition) ? MPI_SUCCESS : ready_or_raise(partition, request);
}

MPIX_SYMBOL int MPI_Pready_range(int partition_low, int partition_high, MPI_Request request) try {
    MPIX_CHECK_THREAD("MPI_Pready_range", of_request(&request));
    status bad;
    if (send_request *r = sender(request); r == nullptr) {
        bad = no_sender(request);
    } else {
        if (partition_low > partition_high)
            bad = failure(MPI_ERR_ARG,
                          format("partition_low {} is above partition_high {}", partition_low, partition_high));
        else if (r->op.no_partitions)
            bad = no_such_partition(r->op, partition_low);
        else if (partition_low < 0 || partition_high >= r->op.partitions)
            bad = failure(MPI_ERR_ARG, format("the range {} to {} is not within 0 to {}", partition_low, partition_high,
                                              r->op.partitions - 1));
        int refused = 0;
        if (const int code = !bad.ok() ? MPI_SUCCESS : r->ready_range(partition_low, partition_high, refused);
            code != MPI_SUCCESS)
            bad = r->not_readied(refused, code);
    }
    return bad.ok() ? MPI_SUCCESS : raise_for(request, "MPI_Pready_range", bad);
}
MPIX_BOUNDARY("MPI_Pready_range", of_request(&request))

MPIX_SYMBOL int MPI_Pready_list(int length, partition_list array_of_partitions, MPI_Request request) try {
    MPIX_CHECK_THREAD("MPI_Pready_list", of_request(&request));
    status bad;
    if (send_request *r = sender(request); r == nullptr) {
        bad = no_sender(request);
    } else {
        if (length < 0) bad = failure(MPI_ERR_ARG, format("length is {}", length));
        if (length > 0 && array_of_partitions == nullptr)
            bad = failure(MPI_ERR_ARG, "array_of_partitions is a null pointer");
        for (int i = 0; bad.ok() && i < length; ++i)
            if (const int code = r->ready(array_of_partitions[i]); code != MPI_SUCCESS)
                bad = r->not_readied(array_of_partitions[i], code);
    }
    return bad.ok() ? MPI_SUCCESS : raise_for(request, "MPI_Pready_list", bad);
}
MPIX_BOUNDARY("MPI_Pready_list", of_request(&request))

MPIX_SYMBOL int MPI_Parrived(MPI_Request request, int partition, int *flag) try {
    MPIX_CHECK_THREAD("MPI_Parrived", of_request(&request));
    status bad;
    if (flag == nullptr)
        bad = failure(MPI_ERR_ARG, "flag is a null pointer");
    else if (request == MPI_REQUEST_NULL)
        *flag = 1;
    else if (mpix::request *r = find_request(request); r == nullptr || r->kind != MPIX_KIND_RECV)
        bad = failure(MPI_ERR_REQUEST,
                      r != nullptr ? "request is a partitioned send" : "request is not a partitioned receive");
    else {
        bool there = false;
        bad = static_cast<receive_request *>(r)->arrived(partition, there);
        *flag = there;
        if (!there) progress_after_miss();  // a loop of Parrived alone must get on
    }
    return bad.ok() ? MPI_SUCCESS : raise_for(request, "MPI_Parrived", bad);
}
MPIX_BOUNDARY("MPI_Parrived", of_request(&request))
