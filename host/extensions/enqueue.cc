// SPDX-License-Identifier: BSD-3-Clause
//
// MPIX_*_enqueue of partitioned requests: epochs in the order of a CUDA stream. The host launches kernels of the
// library's on the exported requests, and does nothing else: what is replayed from a graph has no host.
#include <mpi.h>
#include <mpix/mpix.h>

#include <algorithm>
#include <string>
#include <vector>

#include "device/enqueue/enqueue.h"
#include "device/kernels/gpu_pack.h"
#include "host/export/device_request.h"
#include "host/format.h"
#include "host/mpi/boundary.h"
#include "host/extensions/request_argument.h"
#include "host/mpi/symbol.h"
#include "host/mpi/thread_check.h"

using namespace mpix;

namespace {

using stream_handle = CUstream_st *;

// A request as kernels of the library know it.
struct exported {
    MPIX_Prequest handle = MPIX_PREQUEST_NULL;
    int device = transport::on_host;
};

status find_export(request &r, exported &out) {
    const std::lock_guard lock(r.engine);
    if (r.device != nullptr) {
        out = {r.device->handle_for_library(), r.device->device()};
        return {};
    }
    return failure(MPI_ERR_REQUEST,
                   r.exported_to_host ? "request is exported to host threads; a stream needs a buffer on its GPU"
                                      : "request is not exported to a GPU; call MPIX_Prequest_create before MPI_Start");
}

// Whether a kernel that needs an active request could run now, and would find an inactive one.
status check_started([[maybe_unused]] const request &r, [[maybe_unused]] int device,
                     [[maybe_unused]] stream_handle stream) {
#if MPIX_HAVE_NVCC
    if (!r.active() && gpu::may_run_now(device, stream))
        return failure(MPI_ERR_REQUEST, "request has not been started; epochs in a stream come after MPI_Start");
#endif
    return {};
}

#if MPIX_HAVE_NVCC
// The kernels are loaded in the init call of a request with bytes; later, that might wait for kernels that run.
status loaded(int device) { return from_sentence(gpu::load_on(device)).of_class(MPI_ERR_OTHER); }
status launch_pready(const request &r, const exported &send, int low, int high, stream_handle stream) {
    if (status bad = loaded(send.device); !bad.ok()) return bad;
    return from_sentence(gpu::enqueue_pready({send.handle, low, high, !r.gapless}, send.device, stream))
        .of_class(MPI_ERR_OTHER);
}
using enqueue_function = std::string (*)(const gpu::requests_on &, stream_handle);
constexpr enqueue_function start_requests = gpu::enqueue_start, wait_for_requests = gpu::enqueue_wait;
status launch(enqueue_function enqueue, const std::vector<MPIX_Prequest> &handles, int device, stream_handle stream) {
    if (status bad = loaded(device); !bad.ok()) return bad;
    return from_sentence(enqueue({device, static_cast<int>(handles.size()), handles.data()}, stream))
        .of_class(MPI_ERR_OTHER);
}
#else
status without_nvcc() {
    return failure(MPI_ERR_OTHER, "mpix was built without nvcc, so it has no kernels for a stream");
}
status launch_pready(const request &, const exported &, int, int, stream_handle) { return without_nvcc(); }
enum enqueue_function { start_requests, wait_for_requests };
status launch(enqueue_function, const std::vector<MPIX_Prequest> &, int, stream_handle) { return without_nvcc(); }
#endif

int pready(const char *call, int low, int high, bool is_range, MPI_Request handle, stream_handle stream) {
    request *r = nullptr;
    exported send;
    status bad = find_partitioned(handle, r);
    if (bad.ok() && r->kind != MPIX_KIND_SEND) bad = failure(MPI_ERR_REQUEST, "request is a receive");
    if (bad.ok() && r->op.no_partitions) bad = no_such_partition(r->op, low);
    if (bad.ok() && is_range && (low < 0 || high < low || high >= r->op.partitions))
        bad = failure(MPI_ERR_ARG, format("partition_low {} to partition_high {} is not a range within 0 to {}", low,
                                          high, r->op.partitions - 1));
    if (bad.ok() && (low < 0 || high >= r->op.partitions))
        bad = failure(MPI_ERR_ARG, format("partition {} is not within 0 to {}", low, r->op.partitions - 1));
    if (bad.ok()) bad = find_export(*r, send);
    if (bad.ok()) bad = check_started(*r, send.device, stream);
    if (bad.ok()) bad = launch_pready(*r, send, low, high, stream);
    return raise_for(r, call, bad);
}

int start(const char *call, MPI_Request handle, stream_handle stream) {
    request *r = nullptr;
    exported one;
    status bad = find_partitioned(handle, r);
    if (bad.ok()) bad = find_export(*r, one);
    if (bad.ok()) bad = check_started(*r, one.device, stream);
    if (bad.ok()) bad = launch(start_requests, {one.handle}, one.device, stream);
    return raise_for(r, call, bad);
}

int wait(const char *call, MPI_Request handle, stream_handle stream) {
    if (handle == MPI_REQUEST_NULL) return MPI_SUCCESS;
    request *r = nullptr;
    exported one;
    status bad = find_partitioned(handle, r);
    if (bad.ok()) bad = find_export(*r, one);
    if (bad.ok()) bad = launch(wait_for_requests, {one.handle}, one.device, stream);
    return raise_for(r, call, bad);
}

// An array; `starts`: of MPIX_Startall_enqueue, else of MPIX_Pwaitall_enqueue. Nothing is launched unless all elements
// are right.
int enqueue_all(const char *call, bool starts, int count, const MPI_Request requests[], stream_handle stream) {
    if (count < 0) return raise_for(nullptr, call, failure(MPI_ERR_ARG, format("count is {}", count)));
    if (count > 0 && requests == nullptr)
        return raise_for(nullptr, call, failure(MPI_ERR_ARG, "array_of_requests is a null pointer"));
    std::vector<MPIX_Prequest> handles;
    exported first;
    request *some = nullptr;
    for (int i = 0; i < count; ++i) {
        if (!starts && requests[i] == MPI_REQUEST_NULL) continue;
        request *r = nullptr;
        exported one;
        status bad = find_partitioned(requests[i], r);
        if (bad.ok()) bad = find_export(*r, one);
        if (bad.ok() && starts) bad = check_started(*r, one.device, stream);
        if (bad.ok() && starts && std::find(requests, requests + i, requests[i]) != requests + i)
            bad = failure(MPI_ERR_REQUEST, "request is in the array twice");
        if (bad.ok() && !handles.empty() && one.device != first.device)
            bad = failure(MPI_ERR_REQUEST, format("request is exported to device {}, others in the array to device {}",
                                                  one.device, first.device));
        if (!bad.ok()) return raise_for(r, call, bad.in_context(format("array_of_requests[{}]: ", i)));
        if (handles.empty()) first = one, some = r;
        handles.push_back(one.handle);
    }
    if (handles.empty()) return MPI_SUCCESS;
    return raise_for(some, call, launch(starts ? start_requests : wait_for_requests, handles, first.device, stream));
}

}  // namespace

MPIX_SYMBOL int MPIX_Start_enqueue(MPI_Request request, CUstream_st *stream) try {
    MPIX_CHECK_THREAD("MPIX_Start_enqueue", of_request(&request));
    return start("MPIX_Start_enqueue", request, stream);
}
MPIX_BOUNDARY("MPIX_Start_enqueue", of_request(&request))

MPIX_SYMBOL int MPIX_Startall_enqueue(int count, const MPI_Request array_of_requests[], CUstream_st *stream) try {
    MPIX_CHECK_THREAD("MPIX_Startall_enqueue", of_requests(count, array_of_requests));
    return enqueue_all("MPIX_Startall_enqueue", true, count, array_of_requests, stream);
}
MPIX_BOUNDARY("MPIX_Startall_enqueue", of_requests(count, array_of_requests))

MPIX_SYMBOL int MPIX_Pready_enqueue(int partition, MPI_Request request, CUstream_st *stream) try {
    MPIX_CHECK_THREAD("MPIX_Pready_enqueue", of_request(&request));
    return pready("MPIX_Pready_enqueue", partition, partition, false, request, stream);
}
MPIX_BOUNDARY("MPIX_Pready_enqueue", of_request(&request))

MPIX_SYMBOL int MPIX_Pready_range_enqueue(int partition_low, int partition_high, MPI_Request request,
                                          CUstream_st *stream) try {
    MPIX_CHECK_THREAD("MPIX_Pready_range_enqueue", of_request(&request));
    return pready("MPIX_Pready_range_enqueue", partition_low, partition_high, true, request, stream);
}
MPIX_BOUNDARY("MPIX_Pready_range_enqueue", of_request(&request))

MPIX_SYMBOL int MPIX_Pwait_enqueue(MPI_Request request, CUstream_st *stream) try {
    MPIX_CHECK_THREAD("MPIX_Pwait_enqueue", of_request(&request));
    return wait("MPIX_Pwait_enqueue", request, stream);
}
MPIX_BOUNDARY("MPIX_Pwait_enqueue", of_request(&request))

MPIX_SYMBOL int MPIX_Pwaitall_enqueue(int count, const MPI_Request array_of_requests[], CUstream_st *stream) try {
    MPIX_CHECK_THREAD("MPIX_Pwaitall_enqueue", of_requests(count, array_of_requests));
    return enqueue_all("MPIX_Pwaitall_enqueue", false, count, array_of_requests, stream);
}
MPIX_BOUNDARY("MPIX_Pwaitall_enqueue", of_requests(count, array_of_requests))
