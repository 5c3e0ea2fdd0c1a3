// SPDX-License-Identifier: BSD-3-Clause
//
// MPIX_Prequest_*, MPIX_Pbuf_prepare*, MPIX_Request_path.
#include <mpi.h>
#include <mpix/device.cuh>
#include <mpix/mpix.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

#include "host/config.h"
#include "host/export/device_request.h"
#include "host/format.h"
#include "host/mpi/boundary.h"
#include "host/extensions/request_argument.h"
#include "host/mpi/symbol.h"
#include "host/mpi/thread_check.h"
#include "host/profiled_range.h"
#include "host/progress.h"
#include "host/transfer/receive.h"
#include "host/transfer/send.h"
#include "host/unknown_names.h"
#include "host/wireup/wireup.h"
#include "transport/reserve.h"

using namespace mpix;

namespace {

// Who is behind an exported handle. Guarded by setup_mutex.
transport::safe_map<MPIX_Prequest, std::shared_ptr<request>> &exports() {
    static auto *const map = new transport::safe_map<MPIX_Prequest, std::shared_ptr<request>>;
    return *map;
}

bool info_value(MPI_Info info, const char *key, std::string &out) {
    if (info == MPI_INFO_NULL) return false;
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int found = 0;
    PMPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
    out = value;
    return found != 0;
}

bool whole_number(const std::string &value, int least, int &out) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
    return error == std::errc{} && end == value.data() + value.size() && out >= least;
}

struct export_options {
    int device = transport::on_host;
    int contributors = 1;
    bool sole_waiter = false;
};

// All keys that read_options() reads.
const std::vector<std::string_view> &info_keys() {
    static const std::vector<std::string_view> all = {"mpix_device", "mpix_contributors", "mpix_waiters"};
    return all;
}

status read_options(const request &r, MPI_Info info, export_options &out) {
    out.device = r.place.device;
    std::string value;
    if (info_value(info, "mpix_device", value) && value != "host" && !whole_number(value, 0, out.device))
        return failure(MPI_ERR_INFO_VALUE,
                       format("info key mpix_device is \"{}\"; it takes a device number or \"host\"", value));
    if (value == "host") out.device = transport::on_host;
    if (info_value(info, "mpix_contributors", value) && !whole_number(value, 1, out.contributors))
        return failure(MPI_ERR_INFO_VALUE,
                       format("info key mpix_contributors is \"{}\"; it takes a number from 1", value));
    if (info_value(info, "mpix_waiters", value)) {
        if (value != "any" && value != "1")
            return failure(MPI_ERR_INFO_VALUE, format("info key mpix_waiters is \"{}\"; it takes 1 or any", value));
        out.sole_waiter = value == "1";
    }
    if (out.device == transport::on_host && r.place.owner != nullptr)
        return failure(MPI_ERR_BUFFER, "the buffer is GPU memory, which host threads cannot reach");
    if (out.device != transport::on_host && transport::devices() == nullptr)
        return failure(MPI_ERR_BUFFER, "no GPU can be used here");
    // A GPU's copy works on the buffer from its own side; the peer's bytes must land where it looks.
    if (out.device != transport::on_host && (r.place.owner == nullptr || r.place.device != out.device))
        return failure(MPI_ERR_BUFFER, format("the buffer is not memory of device {}", out.device));
    return {};
}

status export_request(request &r, const export_options &options, MPIX_Prequest &out) {
    std::unique_ptr<device_copy> copy;
    if (options.device != transport::on_host)
        copy = std::make_unique<device_copy>(*transport::devices(), options.device);
    const std::scoped_lock lock(setup_mutex(), r.engine);
    auto &all = exports();  // first: its construction may fail
    if (r.exported_to_host || r.device != nullptr)
        return failure(MPI_ERR_REQUEST, format("{} is exported already", r.name()));
    if (options.device == transport::on_host) {
        r.home->contributors = static_cast<std::uint32_t>(options.contributors);
        if (r.kind == MPIX_KIND_SEND)
            std::fill_n(detail::partition_contributions(r.home), r.op.partitions, std::uint64_t{0});
        r.use_layouts();
        if (config().check && r.kind == MPIX_KIND_SEND) {
            r.shared.assign(shared_words(r.source()), 0);
            r.home->shared = r.shared.data();
        }
        if (r.kind == MPIX_KIND_SEND) static_cast<send_request &>(r).export_to_host(true);
        r.exported_to_host = true;
        out = r.home;
    } else {
        const auto contributors = static_cast<std::uint32_t>(options.contributors);
        status bad = r.kind == MPIX_KIND_SEND ? static_cast<send_request &>(r).export_to(copy, contributors)
                                              : static_cast<receive_request &>(r).export_to(copy, contributors);
        if (!bad.ok()) return bad;
        if (options.sole_waiter) r.device->expect_sole_waiter();
        out = r.device->opaque_handle();
    }
    all[out] = r.shared_from_this();
    return {};
}

status prepare(const char *call, wait_clock::time_point since, request &r) {
    return progress_until(
        call, since, [&] { return r.prepared(); }, [&]() -> request & { return r; });
}

}  // namespace

MPIX_SYMBOL int MPIX_Prequest_create(MPI_Request request, MPI_Info info, MPIX_Prequest *preq) try {
    MPIX_CHECK_THREAD("MPIX_Prequest_create", of_request(&request));
    const profiled_range shown(range_name::prequest_create);
    mpix::request *r = nullptr;
    status bad = find_partitioned(request, r);
    export_options options;
    if (bad.ok() && preq == nullptr) bad = failure(MPI_ERR_ARG, "preq is a null pointer");
    if (bad.ok() && r->active())
        bad = failure(MPI_ERR_REQUEST, "the request is active; export it before it is started");
    if (bad.ok() && r->op.no_partitions)
        bad = failure(MPI_ERR_REQUEST, "the request has no partitions, so there is nothing for kernels to do");
    if (bad.ok()) warn_of_unknown_keys("MPIX_Prequest_create", info, info_keys());
    if (bad.ok()) bad = read_options(*r, info, options);
    if (bad.ok()) bad = export_request(*r, options, *preq);
    return raise_for(r, "MPIX_Prequest_create", bad);
}
MPIX_BOUNDARY("MPIX_Prequest_create", of_request(&request))

MPIX_SYMBOL int MPIX_Prequest_free(MPIX_Prequest *preq) try {
    MPIX_CHECK_THREAD("MPIX_Prequest_free", of_world());
    const profiled_range shown(range_name::prequest_free);
    if (preq == nullptr)
        return raise_for(nullptr, "MPIX_Prequest_free", failure(MPI_ERR_ARG, "preq is a null pointer"));
    if (*preq == MPIX_PREQUEST_NULL) return MPI_SUCCESS;
    std::unique_lock setup(setup_mutex());
    const auto it = exports().find(*preq);
    if (it == exports().end()) {
        setup.unlock();
        return raise_for(nullptr, "MPIX_Prequest_free", failure(MPI_ERR_REQUEST, "preq is not an exported handle"));
    }
    const std::shared_ptr<mpix::request> r = it->second;
    if (r->active()) {
        setup.unlock();
        return raise_for(r.get(), "MPIX_Prequest_free",
                         failure(MPI_ERR_REQUEST, format("{} is active; complete it first", r->name())));
    }
    std::unique_lock engine(r->engine);
    std::unique_ptr<device_copy> ended;
    if (r->exported_to_host) {
        r->exported_to_host = false;
        if (r->kind == MPIX_KIND_SEND) static_cast<send_request &>(*r).export_to_host(false);
        r->home->contributors = 1;
    } else if (r->kind == MPIX_KIND_SEND) {
        ended = static_cast<send_request &>(*r).end_export();
    } else {
        ended = static_cast<receive_request &>(*r).end_export();
    }
    exports().erase(it);
    engine.unlock();
    setup.unlock();
    *preq = MPIX_PREQUEST_NULL;
    ended.reset();  // without the locks: that may wait for kernels, and so may this
    close_unused_mappings();
    return raise_for(r.get(), "MPIX_Prequest_free", r->device_error());
}
MPIX_BOUNDARY("MPIX_Prequest_free", of_world())

MPIX_SYMBOL int MPIX_Pbuf_prepare(MPI_Request request) try {
    MPIX_CHECK_THREAD("MPIX_Pbuf_prepare", of_request(&request));
    const profiled_range shown(range_name::pbuf_prepare);
    mpix::request *r = nullptr;
    status bad = find_partitioned(request, r);
    if (bad.ok() && !r->active()) bad = failure(MPI_ERR_REQUEST, "the request has not been started");
    if (bad.ok()) bad = prepare("MPIX_Pbuf_prepare", wait_clock::now(), *r);
    return raise_for(r, "MPIX_Pbuf_prepare", bad);
}
MPIX_BOUNDARY("MPIX_Pbuf_prepare", of_request(&request))

MPIX_SYMBOL int MPIX_Pbuf_prepare_all(int count, MPI_Request array_of_requests[]) try {
    MPIX_CHECK_THREAD("MPIX_Pbuf_prepare_all", of_requests(count, array_of_requests));
    const profiled_range shown(range_name::pbuf_prepare_all);
    const char *const call = "MPIX_Pbuf_prepare_all";
    const auto since = wait_clock::now();  // one deadline for all
    if (count < 0) return raise_for(nullptr, call, failure(MPI_ERR_ARG, format("count is {}", count)));
    if (count > 0 && array_of_requests == nullptr)
        return raise_for(nullptr, call, failure(MPI_ERR_ARG, "array_of_requests is a null pointer"));
    for (int i = 0; i < count; ++i) {
        mpix::request *r = nullptr;
        status bad = find_partitioned(array_of_requests[i], r);
        if (bad.ok() && !r->active()) bad = failure(MPI_ERR_REQUEST, "the request has not been started");
        if (!bad.ok()) return raise_for(r, call, bad.in_context(format("array_of_requests[{}]: ", i)));
    }
    for (int i = 0; i < count; ++i) {
        mpix::request &r = *find_request(array_of_requests[i]);
        if (status bad = prepare(call, since, r); !bad.ok()) return raise_for(&r, call, bad);
    }
    return MPI_SUCCESS;
}
MPIX_BOUNDARY("MPIX_Pbuf_prepare_all", of_requests(count, array_of_requests))

MPIX_SYMBOL int MPIX_Request_path(MPI_Request request, char *path, int size) try {
    MPIX_CHECK_THREAD("MPIX_Request_path", of_request(&request));
    mpix::request *r = nullptr;
    status bad = find_partitioned(request, r);
    if (bad.ok() && (path == nullptr || size < 1))
        bad = failure(MPI_ERR_ARG, "path and size must give room for a name");
    if (bad.ok()) {
        progress_poll();
        const std::string name = r->path();
        std::strncpy(path, name.c_str(), static_cast<std::size_t>(size) - 1);
        path[size - 1] = '\0';
    }
    return raise_for(r, "MPIX_Request_path", bad);
}
MPIX_BOUNDARY("MPIX_Request_path", of_request(&request))
