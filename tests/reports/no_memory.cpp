// SPDX-License-Identifier: BSD-3-Clause
//
// A process that runs out of memory. In each round rank 0 uses a pair of requests in each direction, from init to free,
// and the next allocation of the library fails, in whatever thread. The result is MPI_ERR_NO_MEM, after which the call
// can be repeated, or a request that fails at both ends; never an abort, a hang or wrong data. Nothing leaks.
//
// no_memory [exported] [only <n>]: with exported, host threads run kernels' code; with only, just the n-th allocation
// of a new process fails. no_memory lasting: in one round, all allocations of both ranks fail from their first
// MPI_Start on, until one of that rank's waits has failed.
#include <dlfcn.h>
#include <link.h>
#include <mpix/device.cuh>
#include <mpix/mpix.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mpix/host_group.hpp>
#include <new>

// ---- memory, in front of the library's ------------------------------------------------------------------------------

namespace {

std::atomic<bool> armed{false};
std::atomic<long> seen{0}, failing{0}, in_use{0};
thread_local bool our_own = false;  // allocations of this program's

bool lasting = false;

bool fails() {
    if (!armed.load() || our_own) return false;
    const long number = seen.fetch_add(1) + 1;
    return lasting ? number >= failing.load() : number == failing.load();
}

void *take(std::size_t bytes, std::size_t alignment) {
    if (fails()) return nullptr;
    void *const taken =
        std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment + (bytes == 0) * alignment);
    if (taken != nullptr) in_use.fetch_add(1);
    return taken;
}
void *take_or_throw(std::size_t bytes, std::size_t alignment) {
    if (void *const taken = take(bytes, alignment); taken != nullptr) return taken;
    throw std::bad_alloc();
}
void give(void *taken) {
    if (taken == nullptr) return;
    in_use.fetch_sub(1);
    std::free(taken);
}

constexpr std::size_t usual = alignof(std::max_align_t);

}  // namespace

void *operator new(std::size_t n) { return take_or_throw(n, usual); }
void *operator new[](std::size_t n) { return take_or_throw(n, usual); }
void *operator new(std::size_t n, std::align_val_t a) { return take_or_throw(n, static_cast<std::size_t>(a)); }
void *operator new[](std::size_t n, std::align_val_t a) { return take_or_throw(n, static_cast<std::size_t>(a)); }
void *operator new(std::size_t n, const std::nothrow_t &) noexcept { return take(n, usual); }
void *operator new[](std::size_t n, const std::nothrow_t &) noexcept { return take(n, usual); }
void operator delete(void *p) noexcept { give(p); }
void operator delete[](void *p) noexcept { give(p); }
void operator delete(void *p, std::size_t) noexcept { give(p); }
void operator delete[](void *p, std::size_t) noexcept { give(p); }
void operator delete(void *p, std::align_val_t) noexcept { give(p); }
void operator delete[](void *p, std::align_val_t) noexcept { give(p); }
void operator delete(void *p, std::size_t, std::align_val_t) noexcept { give(p); }
void operator delete[](void *p, std::size_t, std::align_val_t) noexcept { give(p); }

#if defined(REPLACES_CALLOC) && defined(__GLIBC__)
// The library's own calls of calloc fail as well.
extern "C" void *__libc_calloc(std::size_t n, std::size_t bytes);
namespace {
std::uintptr_t library_begin = 0, library_end = 0;
int find_library(dl_phdr_info *info, std::size_t, void *) {
    if (std::strstr(info->dlpi_name, "libmpix") == nullptr) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD || (info->dlpi_phdr[i].p_flags & PF_X) == 0) continue;
        library_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        library_end = library_begin + info->dlpi_phdr[i].p_memsz;
    }
    return 1;
}
}  // namespace
extern "C" void *calloc(std::size_t n, std::size_t bytes) {
    const auto caller = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
    if (caller >= library_begin && caller < library_end && fails()) return nullptr;
    return __libc_calloc(n, bytes);
}
#else
namespace {
int find_library(dl_phdr_info *, std::size_t, void *) { return 1; }
}  // namespace
#endif

// ---- what the program does ------------------------------------------------------------------------------------------

namespace {

constexpr int parts = 4, count = 3, length = parts * count, pitch = 2, tag = 11, epochs = 2;

int rank = 0, other = 0;
long round_number = 0;
bool by_kernels = false;

[[noreturn]] void fail(const char *what, int code = MPI_SUCCESS) {
    armed = false;
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    if (code != MPI_SUCCESS) MPI_Error_string(code, text, &n);
    std::fprintf(stderr, "FAILED: rank %d, allocation %ld%s: %s %s\n", rank, round_number,
                 by_kernels ? ", exported" : "", what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::_Exit(1);
}
void require(bool condition, const char *what, int code = MPI_SUCCESS) {
    if (!condition) fail(what, code);
}

// A call may fail for want of memory; it has had no effect then, and succeeds when it is made again.
template <class Call>
void again(const char *name, const Call &call) {
    int code = call();
    if (code == MPI_SUCCESS) return;
    require(rank == 0 && code == MPI_ERR_NO_MEM, name, code);
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    MPI_Error_string(code, text, &n);
    require(std::strncmp(text, name, std::strlen(name)) == 0, "the sentence names another call:", code);
    code = call();
    require(code == MPI_SUCCESS, name, code);
}

struct pair {
    int out[length], in[length * pitch];
    MPI_Request send = MPI_REQUEST_NULL, receive = MPI_REQUEST_NULL;
    MPIX_Prequest sends = MPIX_PREQUEST_NULL, receives = MPIX_PREQUEST_NULL;
};

int value(int from, int epoch, int i) { return static_cast<int>(round_number) * 1000 + epoch * 100 + from * 50 + i; }

// Whether the request has succeeded. If its Wait fails, it may not have ended yet: a second one tells.
bool succeeded(MPI_Request &request, int source) {
    MPI_Status status;
    status.MPI_SOURCE = -100;
    int code = MPI_Wait(&request, &status);
    if (code == MPI_SUCCESS) return true;
    if (lasting) {
        armed = false;
        char text[MPI_MAX_ERROR_STRING] = "";
        int n = 0;
        MPI_Error_string(code, text, &n);
        require(std::strstr(text, "no memory") != nullptr, "not for want of memory:", code);
    }
    require(rank == 1 || lasting || code == MPI_ERR_NO_MEM, "MPI_Wait", code);
    code = MPI_Wait(&request, &status);
    require(code == MPI_SUCCESS || rank == 1 || lasting || code == MPI_ERR_NO_MEM, "the second MPI_Wait", code);
    // Of an inactive request it knows no source.
    return code == MPI_SUCCESS && source >= 0 && status.MPI_SOURCE == source;
}

void run_kernel(MPIX_Prequest send, MPIX_Prequest receive) {
    our_own = true;  // the threads that play it
    mpix::host_launch(1, 1, [=](const mpix::host_group &block) {
        for (int p = 0; p < parts; ++p) static_cast<void>(mpix::pready(block, p, send));
        for (int p = 0; p < parts; ++p) static_cast<void>(mpix::wait_arrived(block, receive, p));
    });
    our_own = false;
}

void use_pair(bool failing_round) {
    static pair x;
    MPI_Datatype one, spread;
    MPI_Comm comm;
    if (failing_round) armed = rank == 0 && !lasting;
    again("MPI_Comm_dup", [&] { return MPI_Comm_dup(MPI_COMM_WORLD, &comm); });
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Type_vector(1, 1, pitch, MPI_INT, &one);
    MPI_Type_create_resized(one, 0, pitch * sizeof(int), &spread);
    MPI_Type_commit(&spread);
    again("MPI_Psend_init",
          [&] { return MPI_Psend_init(x.out, parts, count, MPI_INT, other, tag, comm, MPI_INFO_NULL, &x.send); });
    again("MPI_Precv_init",
          [&] { return MPI_Precv_init(x.in, parts, count, spread, other, tag, comm, MPI_INFO_NULL, &x.receive); });
    if (by_kernels) {
        again("MPIX_Prequest_create", [&] { return MPIX_Prequest_create(x.send, MPI_INFO_NULL, &x.sends); });
        again("MPIX_Prequest_create", [&] { return MPIX_Prequest_create(x.receive, MPI_INFO_NULL, &x.receives); });
    }
    for (int epoch = 0; epoch < epochs; ++epoch) {
        for (int i = 0; i < length; ++i) x.out[i] = value(rank, epoch, i);
        std::memset(x.in, 0x5a, sizeof x.in);
        if (failing_round && lasting) armed = true;
        again("MPI_Start", [&] { return MPI_Start(&x.receive); });
        again("MPI_Start", [&] { return MPI_Start(&x.send); });
        if (by_kernels) {
            run_kernel(x.sends, x.receives);
        } else {
            for (int p = 0; p < parts; ++p) again("MPI_Pready", [&] { return MPI_Pready(p, x.send); });
        }
        const bool received = succeeded(x.receive, other), sent = succeeded(x.send, -1);
        int told[2] = {received, sent}, others[2];
        // Not by MPI_Sendrecv, in which mpix makes no progress: the other rank may still need this one's.
        MPI_Request both[2];
        MPI_Irecv(others, 2, MPI_INT, other, 1, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(told, 2, MPI_INT, other, 1, MPI_COMM_WORLD, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        require(!received || others[1] || rank == 1 || lasting, "received what was not sent");
        if (received)
            for (int i = 0; i < length; ++i) require(x.in[pitch * i] == value(other, epoch, i), "wrong data");
        int untouched;
        std::memset(&untouched, 0x5a, sizeof untouched);
        for (int i = 0; i < length; ++i) require(x.in[pitch * i + 1] == untouched, "a gap was written to");
        if (!failing_round) require(received && sent, "without a failure all succeeds");
        if (failing_round && lasting) require(!received, "the receive must fail");
        if (!received || !sent || !others[0] || !others[1]) break;
    }
    if (by_kernels) {
        again("MPIX_Prequest_free", [&] { return MPIX_Prequest_free(&x.sends); });
        again("MPIX_Prequest_free", [&] { return MPIX_Prequest_free(&x.receives); });
    }
    again("MPI_Request_free", [&] { return MPI_Request_free(&x.send); });
    again("MPI_Request_free", [&] { return MPI_Request_free(&x.receive); });
    const int code = MPI_Pready(-1, MPI_REQUEST_NULL);
    require(code == MPI_ERR_REQUEST || (rank == 0 && code == MPI_ERR_NO_MEM), "MPI_Pready of no request", code);
    MPI_Type_free(&spread);
    MPI_Type_free(&one);
    again("MPI_Comm_free", [&] { return MPI_Comm_free(&comm); });
    armed = false;
}

// Both take in what the other one has still to say, until no more than so many blocks are in use at either. A request
// that was freed lives on until then.
bool settles(long most) {
    MPI_Request nothing;
    MPI_Psend_init(nullptr, 1, 0, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &nothing);
    int all = 0;
    for (const double start = MPI_Wtime(); !all && MPI_Wtime() - start < 20;) {
        char path[32];
        for (int i = 0; i < 100; ++i) MPIX_Request_path(nothing, path, sizeof path);  // which makes progress
        const int mine = in_use <= most;
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
    MPI_Request_free(&nothing);
    return all != 0;
}

}  // namespace

int main(int argc, char **argv) {
    long only = 0;
    for (int i = 1; i < argc; ++i) {
        by_kernels = by_kernels || std::strcmp(argv[i], "exported") == 0;
        lasting = lasting || std::strcmp(argv[i], "lasting") == 0;
        if (std::strcmp(argv[i], "only") == 0 && i + 1 < argc) only = std::atol(argv[++i]);
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    dl_iterate_phdr(find_library, nullptr);
    other = 1 - rank;
    if (only == 0)
        for (int i = 0; i < 3; ++i) use_pair(false);
    long before = 0;
    for (round_number = only == 0 ? 1 : only;; ++round_number) {
        seen = 0;
        failing = round_number;
        use_pair(true);
        const long made = seen;
        use_pair(false);  // which also takes in what the other one says of the round before
        if (before == 0) before = in_use;
        int failed = made >= round_number;
        MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (!failed || only != 0 || lasting) break;
    }
    // What the library keeps for later use may grow.
    const bool settled = settles(before + 25);
    if (rank == 0 || !settled)
        std::printf("rank %d: %ld allocations failed, %ld blocks more in use\n", rank, round_number - 1,
                    in_use - before);
    require(settled, "memory leaks");
    MPI_Finalize();
    return 0;
}
