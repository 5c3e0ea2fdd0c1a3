// SPDX-License-Identifier: BSD-3-Clause
//
// The ranges that a tool for NVTX gets: which, how nested, each with its end. On two ranks, with recorder.cpp as the tool.
#include <dlfcn.h>
#include <mpi.h>
#include <mpix/mpix.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "tests/halo/expectations.hpp"

namespace halo = mpix::halo;
using halo_test::expect;
using halo_test::rank;

namespace {

void *tool = nullptr;

// Since the last call.
std::string record() {
    static std::vector<char> text(1 << 20);
    reinterpret_cast<void (*)(char *, std::size_t)>(dlsym(tool, "nvtx_recorder_take"))(text.data(), text.size());
    return text.data();
}
void expect_record(const std::string &what, const std::string &wanted) {
    const std::string got = record();
    expect(got == wanted, what + ": " + got + "\n    expected " + wanted);
}
void expect_names_registered_once(const std::string &when) {
    int domains = 0, registered = 0, distinct = 0;
    reinterpret_cast<void (*)(int *, int *, int *)>(dlsym(tool, "nvtx_recorder_counts"))(&domains, &registered,
                                                                                         &distinct);
    expect(domains == 1 && registered == distinct && registered > 0, "domains and names " + when);
}

void partitioned_calls() {
    double in = 0, out = 1;
    MPI_Request both[2];
    MPI_Precv_init(&in, 1, 1, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]);
    MPI_Psend_init(&out, 1, 1, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]);
    expect_record("init", "MPI_Precv_init()MPI_Psend_init()");
    MPI_Info host = MPI_INFO_NULL;
    MPI_Info_create(&host);
    MPI_Info_set(host, "mpix_device", "host");
    MPIX_Prequest handle = MPIX_PREQUEST_NULL;
    MPIX_Prequest_create(both[1], host, &handle);
    MPI_Info_free(&host);
    expect_record("export", "MPIX_Prequest_create()");
    MPI_Startall(2, both);
    MPIX_Pbuf_prepare_all(2, both);
    MPIX_Pbuf_prepare(both[0]);
    MPI_Pready(0, both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    expect_record("an epoch of two", "MPI_Startall()MPIX_Pbuf_prepare_all()MPIX_Pbuf_prepare()MPI_Waitall()");
    int index = 0, count = 0, indices[2] = {};
    MPI_Start(&both[0]);
    MPI_Start(&both[1]);
    expect(MPI_Start(&both[1]) != MPI_SUCCESS, "a second start");
    MPI_Pready(0, both[1]);
    MPI_Wait(&both[1], MPI_STATUS_IGNORE);
    MPI_Waitany(2, both, &index, MPI_STATUS_IGNORE);
    MPI_Waitsome(2, both, &count, indices, MPI_STATUSES_IGNORE);
    expect_record("one by one", "MPI_Start()MPI_Start()MPI_Start()MPI_Wait()MPI_Waitany()MPI_Waitsome()");
    MPIX_Prequest_free(&handle);
    for (MPI_Request &one : both) MPI_Request_free(&one);
    expect_record("the end of an export", "MPIX_Prequest_free()");
    // The library's own calls are not ours to show.
    MPI_Irecv(&in, 1, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(&out, 1, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, &both[1]);
    MPI_Wait(&both[1], MPI_STATUS_IGNORE);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    expect_record("ordinary messages", "");
}

// The two calls of an exchange by kernels, also where the second one throws; nothing else is shown within them.
template <class Exchange, class... Arguments>
void starts_and_finishes(const std::string &name, Exchange &x, Arguments... of_start) {
    record();
    x.start(of_start...);
    x.finish();
    const std::string finish = "halo::" + name + "::finish()";
    expect_record("a " + name, "halo::" + name + "::start()" + finish);
    try {
        x.finish();
        expect(false, "finish() of a " + name + " that is not active");
    } catch (const halo::error &) {
    }
    expect_record("a call of a " + name + " that throws", finish);
}

void exchanges() {
    const halo::grid g(MPI_COMM_WORLD, {4, 8});  // one box above the other
    halo::array<double> u(g, halo::radius::faces(1));
    halo::exchange h(g, {u}), reversed(g, {u}, {.reduce = halo::reduction::sum});
    expect_record("construction", "MPI_Precv_init()MPI_Psend_init()MPI_Precv_init()MPI_Psend_init()");
    h.start();
    h.finish();
    const std::string ready = "halo::exchange::ready(halo pack())";
    expect_record("an exchange", "halo::exchange::start(MPI_Startall()" + ready +
                                     ")halo::exchange::finish(MPI_Waitany()halo unpack()MPI_Waitall())");
    reversed.begin();
    reversed.ready(0);
    reversed.finish();
    expect_record("a reverse exchange", "halo::exchange::begin(MPI_Startall())" + ready +
                                            "halo::exchange::finish(MPI_Waitall()halo combine())");
    try {
        h.finish();
        expect(false, "finish() of an exchange that is not active");
    } catch (const halo::error &) {
    }
    expect_record("a call that throws", "halo::exchange::finish()");
    halo::compare_transfers(g, {u}, 2);
    const std::string compared = record();
    int depth = 0, deepest = 0, ends_at_once = 0;
    for (const char c : compared) {
        if (c == '(') deepest = std::max(deepest, ++depth);
        if (c == ')') ends_at_once += --depth == 0;
    }
    expect(compared.starts_with("halo::compare_transfers(") && depth == 0 && ends_at_once == 1 && deepest == 4 &&
               compared.find("halo::exchange::finish(") != std::string::npos,
           "a comparison: " + compared);
    halo::kernel_exchange kernels(g, {u});
    starts_and_finishes("kernel_exchange", kernels, 0);
    halo::stream_exchange in_stream(g, {u});
    starts_and_finishes("stream_exchange", in_stream);
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    tool = dlopen(std::getenv("NVTX_INJECTION64_PATH"), RTLD_NOW | RTLD_NOLOAD);
    expect(tool != nullptr, "the tool has not been loaded");
    if (tool != nullptr) {
        record();
        expect_names_registered_once("after MPI_Init");
        partitioned_calls();
        exchanges();
        expect_names_registered_once("in the end");
    }
    const int status = halo_test::any_failures();
    MPI_Finalize();
    return status;
}
