// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Init to MPI_Finalize, MPI_Error_class and MPI_Error_string.
#include <mpi.h>
#include <mpix/device.cuh>
#include <mpix/mpix.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "device/kernels/gpu_pack.h"
#include "host/config.h"
#include "host/control/comm_id.h"
#include "host/control/message.h"
#include "host/format.h"
#include "host/mpi/boundary.h"
#include "host/profiled_range.h"
#include "host/mpi/launcher.h"
#include "host/mpi/symbol.h"
#include "host/mpi/thread_check.h"
#include "host/mpi/tools.h"
#include "host/progress.h"
#include "host/protocol/pack_explain.h"
#include "host/report.h"
#include "host/statistics/end_report.h"
#include "host/unknown_names.h"
#include "host/wireup/wireup.h"
#include "transport/select.h"

using namespace mpix;

namespace {

#if defined(MPI_ABI_VERSION)
constexpr const char *built_for = "the standard ABI", *not_for = nullptr;  // each library has that in a file of its own
#elif defined(OPEN_MPI)
constexpr const char *built_for = "Open MPI", *not_for = "MPICH";
#else
constexpr const char *built_for = "MPICH", *not_for = "Open MPI";
#endif

// Handles are pointers in one MPI library and numbers in the other, so the wrong one could only crash.
void refuse_foreign_library() {
    if (not_for == nullptr) return;
    static char version[16384] = "";  // the other library's limit is not ours: MPICH's text has 2000 characters
    int length = 0;
    if (PMPI_Get_library_version(version, &length) != MPI_SUCCESS || std::strstr(version, not_for) == nullptr) return;
    version[std::strcspn(version, "\n")] = '\0';
    say(
        format("this libmpix was built for {}, but the program runs on \"{}\"; build mpix with that library's compiler "
               "wrapper",
               built_for, version));
    std::exit(1);
}

std::string version_name(std::uint64_t version) {
    return format("{}.{}.{} (setup messages \"{}\")", version >> 56, version >> 48 & 0xff, version >> 32 & 0xffff,
                  std::string{char(version), char(version >> 8), char(version >> 16), char(version >> 24)});
}

// Under another library's launcher a program runs on, each process for itself, and nothing else says so.
void warn_of_foreign_launcher() {
    int size = 0;
    if (PMPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS || size != 1 || !is_first_of_foreign_launcher()) return;
    if (const std::string foreign = why_alone(); !foreign.empty())
        say(format("{}; this libmpix was built for {}; start the program with the mpirun of that library", foreign,
                   built_for));
}

// Of all processes; a failure if they are not the same. What this sends is the same in all versions, and is sent before
// anything else. It does not block: a process that runs without mpix never comes, and this is to be said; and the
// blocking collective that such a process calls first is not to be taken for it.
status compare_versions() {
    constexpr std::uint64_t mine = std::uint64_t{MPIX_VERSION_MAJOR} << 56 | std::uint64_t{MPIX_VERSION_MINOR} << 48 |
                                   std::uint64_t{MPIX_VERSION_PATCH} << 32 | control_magic;
    const std::uint64_t told[2] = {mine, ~mine};
    std::uint64_t most[2] = {mine, ~mine};
    MPI_Request comparing = MPI_REQUEST_NULL;
    int code = PMPI_Iallreduce(told, most, 2, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD, &comparing), all_here = 0;
    const auto since = wait_clock::now();
    for (bool noticed = false, reported = false; code == MPI_SUCCESS && !all_here;) {
        code = PMPI_Test(&comparing, &all_here, MPI_STATUS_IGNORE);
        if (all_here) break;
        const double waited = seconds_since(since);
        detail::pause_waiting(waited * 1e9 > static_cast<double>(detail::long_wait_ns));
        if (!noticed && waited > notice_seconds()) {
            noticed = true;
            say(format("WAITING in MPI_Init for {:.1f} s: not all processes have called it, or some run without mpix",
                       waited));
        }
        if (reported || config().stall_seconds <= 0 || waited <= config().stall_seconds) continue;
        reported = true;
        say(
            format("STALL in MPI_Init: after {:.1f} s not all processes have called it, or some run without mpix; "
                   "still waiting",
                   waited));
    }
    if (code != MPI_SUCCESS) return failure("the versions of mpix of the processes could not be compared");
    const std::uint64_t newest = most[0], oldest = ~most[1];
    if (newest == oldest) return {};
    return failure(
        format("the processes of this job run different versions of mpix, from {} to {}, this one {}; they need the "
               "same one",
               version_name(oldest), version_name(newest), version_name(mine)));
}

int told_level = MPI_THREAD_SINGLE;

bool ends_with_self = false;

int end_setup(MPI_Comm, int, void *, void *) {
    try {
        stop_setup();
        communicators().stop();
    } catch (const std::exception &) {  // must not pass through the MPI library, which is C; MPI_Finalize goes on
    }
    return MPI_SUCCESS;
}

// MPI_Finalize begins by deleting the attributes of MPI_COMM_SELF, the last first, and the user's callbacks may still
// use requests. Ours is set before any of his, and so is the last to be called.
void end_setup_with_self() {
    int key = MPI_KEYVAL_INVALID;
    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_setup, &key, nullptr) != MPI_SUCCESS) return;
    ends_with_self = PMPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr) == MPI_SUCCESS;
    PMPI_Comm_free_keyval(&key);  // it lives on in the attribute
}

// `asked` is MPI_Init or MPI_Init_thread, as the program called it.
enum class init_call { plain, threads };

int begin(init_call asked, int *argc, char ***argv, int required, int *provided) {
    refuse_foreign_library();
    find_tools();
    open_ranges();
    status bad = read_environment();
    // The setup of exported requests must get on while the user's thread sits in a kernel or in cudaStreamSynchronize.
    // Between nodes it goes by MPI, so there the progress thread needs MPI_THREAD_MULTIPLE, which makes all traffic
    // dearer.
    const bool want_multiple =
        config().progress != progress_mode::never && !(transport::may_share_memory() && job_is_on_one_node());
    int code = MPI_SUCCESS;
    if (asked == init_call::plain && (!want_multiple || tool_wants_init())) {
        code = next.Init(argc, argv);
        if (code == MPI_SUCCESS) PMPI_Query_thread(provided);
    } else {
        code = next.Init_thread(argc, argv, want_multiple ? MPI_THREAD_MULTIPLE : required, provided);
    }
    if (code != MPI_SUCCESS) return code;
    warn_of_foreign_launcher();
    if (const status unlike = compare_versions(); bad.ok()) bad = unlike;
    const char *const init = asked == init_call::plain ? "MPI_Init" : "MPI_Init_thread";
    if (const status hidden = tool_in_front(init); bad.ok()) bad = hidden;
    communicators().start();
    end_setup_with_self();
    if (!bad.ok()) return raise(MPI_COMM_WORLD, "MPI_Init", bad.of_class(MPI_ERR_OTHER));
    const bool thread_safe = *provided == MPI_THREAD_MULTIPLE;
    *provided = told_level = std::min(*provided, required);
    start_thread_check(told_level);
    if (config().pack != gpu::pack_mode::none) gpu::prefer(config().pack);
    warn_of_unknown_variables();
    start_setup({.thread_safe = thread_safe,
                 .one_thread = told_level == MPI_THREAD_SINGLE,
                 .told_one_node = job_is_on_one_node()});
    agree_on_report();
    start_progress();
    return MPI_SUCCESS;
}

}  // namespace

MPIX_SYMBOL int MPI_Init(int *argc, char ***argv) try {
    int provided = 0;
    return begin(init_call::plain, argc, argv, MPI_THREAD_SINGLE, &provided);
}
MPIX_BOUNDARY("MPI_Init", of_world())

MPIX_SYMBOL int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) try {
    return begin(init_call::threads, argc, argv, required, provided);
}
MPIX_BOUNDARY("MPI_Init_thread", of_world())

MPIX_SYMBOL int MPI_Query_thread(int *provided) try {
    if (!setup_running() || provided == nullptr) return next.Query_thread(provided);
    *provided = told_level;
    return MPI_SUCCESS;
}
MPIX_BOUNDARY("MPI_Query_thread", of_world())

MPIX_SYMBOL int MPI_Finalize(void) try {
    MPIX_CHECK_THREAD("MPI_Finalize", of_world());
    // In the callbacks MPICH takes the process for one with a single thread.
    stop_progress();
    if (config().explain) tell_pack_times();
    report_at_end();
    if (!ends_with_self && setup_running()) end_setup(MPI_COMM_SELF, MPI_KEYVAL_INVALID, nullptr, nullptr);
    return next.Finalize();
}
MPIX_BOUNDARY("MPI_Finalize", of_world())

// Our codes are classes. Whoever learns the class of another code may ask for that class's text next.
MPIX_SYMBOL int MPI_Error_class(int errorcode, int *errorclass) try {
    const int code = next.Error_class(errorcode, errorclass);
    if (code == MPI_SUCCESS && *errorclass != errorcode && *last_sentence(*errorclass) != '\0') forget_sentence();
    return code;
}
MPIX_BOUNDARY("MPI_Error_class", of_world())

MPIX_SYMBOL int MPI_Error_string(int errorcode, char *string, int *resultlen) try {
    const char *const sentence = last_sentence(errorcode);
    if (*sentence == '\0' || string == nullptr || resultlen == nullptr)
        return next.Error_string(errorcode, string, resultlen);
    *resultlen = static_cast<int>(std::strlen(sentence));
    std::memcpy(string, sentence, std::strlen(sentence) + 1);
    return MPI_SUCCESS;
}
MPIX_BOUNDARY("MPI_Error_string", of_world())
