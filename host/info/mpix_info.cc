// SPDX-License-Identifier: BSD-3-Clause
//
// mpix_info: what this mpix is and can do here; with --check, whether it does; with --pairs, what each pair of ranks would
// use.
#include <mpi.h>
#include <mpix/detail/abi.h>
#include <mpix/mpix.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "device/cuda/driver_settings.h"
#include "host/config.h"
#include "host/format.h"
#include "host/info/check_paths.h"
#include "host/info/foreign_launcher.h"
#include "host/info/node.h"
#include "host/info/self_test.h"
#include "transport/select.h"

using mpix::failure;
using mpix::format;

namespace {

constexpr const char *usage = R"(Usage: mpix_info [--require <name>[,<name>...]]
       mpix_info --check [--launcher <command>]
       mpirun -n <ranks> mpix_info --check [--path <name>]
       mpirun -n <ranks> mpix_info --pairs [--bytes <n>] [--partitions <n>]

Alone: version, MPI library, what is built in, every variable of the environment that mpix reads, and what this node can
do, or why not: processes that share memory (shm) or copy from and to each other's (single_copy), /dev/shm (dev_shm), memory that
may be locked (memlock), GPUs (gpus), which reach each other's memory (gpu_pairs), which other processes can map
(gpu_ipc, gpu_fabric), and transports (cuda_ipc, ucx, verbs).
--require: nothing is printed but what of these this node lacks.
--check: two processes of this node send to each other by each path that it has, and every byte is compared.
  --launcher <command>  what starts them; default: this MPI library's mpirun
  As a job of ranks it does this once: each rank sends to the next one, as programs would, or by one path alone.
  --path <name>         shm, single_copy, cuda_ipc (from GPU memory), ucx or verbs
--pairs: each rank sends to each higher one, once, and both print what carries the bytes and why (as MPIX_EXPLAIN=1 does
         in any program, on stderr). From host memory to host memory.
  --bytes <n>        of the whole message, a multiple of the partitions; default 65536
  --partitions <n>   default 1
Exit status: 0; 1 if a pair cannot communicate, a path that the node has does not work, something required is missing, or
the environment is malformed; 2 for wrong arguments.
)";

std::string first_line_of_library_version() {
    static char text[16384] = "";  // a foreign library's limit may be higher than ours
    int length = 0;
    if (PMPI_Get_library_version(text, &length) != MPI_SUCCESS) return "unknown";
    text[std::strcspn(text, "\n")] = '\0';
    std::string line = text;
    for (char &c : line)
        if (c == '\t') c = ' ';
    return line;
}

void print(const std::string &text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print_knob(const char *variable, const char *initial, const char *meaning) {
    const char *const value = std::getenv(variable);
    print(format("  {}={}  ({})\n      {}\n", variable, value != nullptr ? value : initial,
                 value != nullptr ? "from the environment" : "default", meaning));
}

// 0, or an exit status.
int find_abilities(std::vector<mpix::ability> &out) {
    if (const mpix::status bad = mpix::read_environment(); !bad.ok()) {
        std::fflush(stdout);
        std::fprintf(stderr, "mpix_info: %s\n", bad.message().c_str());
        return 1;
    }
    std::fflush(stdout);  // children are started
    out = mpix::node_abilities();
    return 0;
}

int describe() {
    print(format("mpix {}.{}.{}, device ABI {}\n", MPIX_VERSION_MAJOR, MPIX_VERSION_MINOR, MPIX_VERSION_PATCH,
                 MPIX_ABI_VERSION));
    print(format("built for {}; runs on {}\n", mpix::built_for(), first_line_of_library_version()));
    print(format("built in: CUDA {}, pack kernels {}, UCX {}, verbs {}\n", MPIX_HAVE_CUDA ? "yes" : "no",
                 MPIX_HAVE_NVCC ? "yes" : "no", MPIX_HAVE_UCX ? "yes" : "no", MPIX_HAVE_VERBS ? "yes" : "no"));
    print(format("loading of kernels: {}\n", mpix::gpu::module_loading_setting()));
    print(format("hardware queues of streams: {}\n", mpix::gpu::connections_setting()));
    print("environment:\n");
#define MPIX_KNOB(member, type, variable, initial, meaning) print_knob(variable, initial, meaning);
#include "host/config.def"
#undef MPIX_KNOB
    std::vector<mpix::ability> abilities;
    if (const int bad = find_abilities(abilities); bad != 0) return bad;
    print("this node:\n");
    for (const auto &[name, meaning, why_not] : abilities)
        print(format("  {:<12} {}{}\n", name, why_not.ok() ? "usable" : "not usable: " + why_not.message(),
                     !why_not.ok() || meaning.empty() ? "" : ": " + meaning));
    print(format("work queues to other nodes: executed by {}\n", mpix::transport::queues_executed_by()));
    return 0;
}

struct arguments {
    bool pairs = false, check = false;
    std::string required, launcher;
    const mpix::checked_path *path = nullptr;
    long long bytes = 65536;
    int partitions = 1;
};

template <class Number>
mpix::status read_number(const char *name, const char *text, Number least, Number &out) {
    if (text == nullptr) return failure(format("{} needs a number", name));
    const char *const end = text + std::strlen(text);
    const auto [next, error] = std::from_chars(text, end, out);
    if (error != std::errc{} || next != end || out < least)
        return failure(format("{} is \"{}\"; it takes a number from {}", name, text, least));
    return {};
}

mpix::status read_text(const char *name, const char *text, std::string &out) {
    if (text == nullptr || *text == '\0') return failure(format("{} needs a value", name));
    out = text;
    return {};
}

mpix::status read_path(const char *text, const mpix::checked_path *&out) {
    std::string name;
    if (mpix::status bad = read_text("--path", text, name); !bad.ok()) return bad;
    out = mpix::find_path(name);
    std::string known;
    for (const mpix::checked_path &one : mpix::checked_paths())
        known += (known.empty() ? "" : ", ") + std::string(one.name);
    return out != nullptr ? mpix::status{} : failure(format("--path is \"{}\"; it takes one of {}", name, known));
}

mpix::status read_arguments(int count, char **values, arguments &out) {
    const char *needs_pairs = nullptr, *needs_check = nullptr;
    for (int i = 1; i < count; ++i) {
        const std::string name = values[i];
        mpix::status bad;
        if (name == "--pairs") {
            out.pairs = true;
        } else if (name == "--check") {
            out.check = true;
        } else if (name == "--require") {
            bad = read_text("--require", values[++i], out.required);
        } else if (name == "--launcher") {
            bad = read_text(needs_check = "--launcher", values[++i], out.launcher);
        } else if (name == "--path") {
            bad = read_path(values[++i], out.path);
            needs_check = "--path";
        } else if (name == "--bytes") {
            bad = read_number(needs_pairs = "--bytes", values[++i], 0LL, out.bytes);
        } else if (name == "--partitions") {
            bad = read_number(needs_pairs = "--partitions", values[++i], 1, out.partitions);
        } else {
            bad = failure(format("\"{}\" is no argument of mpix_info", name));
        }
        if (!bad.ok()) return bad;
    }
    if (out.pairs + out.check + !out.required.empty() > 1)
        return failure("--require, --check and --pairs exclude each other");
    if (needs_check != nullptr && !out.check) return failure(format("{} goes with --check", needs_check));
    if (out.path != nullptr && !mpix::started_by_launcher())
        return failure("--path is for a job of ranks: mpirun -n 2 mpix_info --check --path ...");
    if (needs_pairs != nullptr && !out.pairs) return failure(format("{} goes with --pairs", needs_pairs));
    if (out.bytes % out.partitions != 0)
        return failure(format("--bytes is {}, which {} partitions of one size do not make", out.bytes, out.partitions));
    return {};
}

// One message from `from` to `to`. False if it did not arrive.
bool try_pair(int me, int from, int to, const arguments &a, std::vector<char> &buffer) {
    MPI_Request request = MPI_REQUEST_NULL;
    const MPI_Count each = a.bytes / a.partitions;
    int code = me == from ? MPI_Psend_init(buffer.data(), a.partitions, each, MPI_BYTE, to, 0, MPI_COMM_WORLD,
                                           MPI_INFO_NULL, &request)
                          : MPI_Precv_init(buffer.data(), a.partitions, each, MPI_BYTE, from, 0, MPI_COMM_WORLD,
                                           MPI_INFO_NULL, &request);
    if (code == MPI_SUCCESS) code = MPI_Start(&request);
    if (code == MPI_SUCCESS && me == from) code = MPI_Pready_range(0, a.partitions - 1, request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    return code == MPI_SUCCESS;
}

int describe_pairs(int *count, char ***values, const arguments &a) {
    setenv("MPIX_EXPLAIN", "1", 1);
    if (MPI_Init(count, values) != MPI_SUCCESS) return 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int me = 0, ranks = 0, failed = 0, any_failed = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2) {
        mpix::tell_too_few_ranks("--pairs");
        MPI_Finalize();
        return 2;
    }
    std::vector<char> buffer(static_cast<std::size_t>(a.bytes) + 1);  // an address also for an empty message
    for (int from = 0; from < ranks; ++from)
        for (int to = from + 1; to < ranks; ++to) {
            if ((me == from || me == to) && !try_pair(me, from, to, a, buffer)) failed = 1;
            MPI_Barrier(MPI_COMM_WORLD);  // one pair's tables after another's
        }
    MPI_Allreduce(&failed, &any_failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return any_failed;
}

}  // namespace

int main(int count, char **values) {
    if (count == 2 && (std::strcmp(values[1], "--help") == 0 || std::strcmp(values[1], "-h") == 0)) {
        print(usage);
        return 0;
    }
    arguments a;
    if (const mpix::status bad = read_arguments(count, values, a); !bad.ok()) {
        std::fprintf(stderr, "mpix_info: %s\n%s", bad.message().c_str(), usage);
        return 2;
    }
    if (a.pairs) return describe_pairs(&count, &values, a);
    if (a.check && mpix::started_by_launcher()) return mpix::test_in_ranks(&count, &values, a.path);
    if (!a.check && a.required.empty()) return describe();
    std::vector<mpix::ability> abilities;
    if (const int bad = find_abilities(abilities); bad != 0) return bad;
    if (a.check) return mpix::check_paths(abilities, a.launcher.empty() ? MPIX_LAUNCHER : a.launcher);
    switch (mpix::has_all(abilities, a.required)) {
        case mpix::answer::yes:
            return 0;
        case mpix::answer::no:
            return 1;
        default:
            return 2;
    }
}
