// SPDX-License-Identifier: BSD-3-Clause
#include "host/info/node.h"

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "device/cuda/node_gpus.h"
#include "host/format.h"
#include "host/info/siblings.h"
#include "transport/select.h"

namespace mpix {
namespace {

std::string mebibytes(std::uint64_t bytes) { return format("{} MiB", bytes >> 20); }

// What Yama allows, where the kernel has it: 0 all processes of the user, 1 descendants, 2 root, 3 nobody.
std::string ptrace_scope() {
    std::FILE *const file = std::fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (file == nullptr) return {};
    const int scope = std::fgetc(file);
    std::fclose(file);
    return scope > '0' ? format("; kernel.yama.ptrace_scope is {}, where 0 allows it", static_cast<char>(scope)) : "";
}

// What RDMA registers is locked, and what CUDA locks is not counted.
ability locked_memory() {
    constexpr rlim_t least = rlim_t{64} << 20;
    ability memlock{"memlock", "", {}};
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        memlock.why_not = failure(format("getrlimit: {}", std::strerror(errno)));
    else if (limit.rlim_cur == RLIM_INFINITY)
        memlock.meaning = "memory may be locked without limit";
    else if (limit.rlim_cur >= least)
        memlock.meaning = format("up to {} may be locked", mebibytes(limit.rlim_cur));
    else
        memlock.why_not = failure(
            format("only {} KiB may be locked (ulimit -l), and RDMA locks what it registers: 64 MiB at the least",
                   limit.rlim_cur >> 10));
    return memlock;
}

// mpix itself uses memory files, which have no limit there.
ability dev_shm() {
    constexpr std::uint64_t least = std::uint64_t{16} << 20;
    ability shm{"dev_shm", "", {}};
    struct statvfs found {};
    if (statvfs("/dev/shm", &found) != 0) {
        shm.why_not = failure(format("/dev/shm: {}; MPI libraries need it, mpix does not", std::strerror(errno)));
        return shm;
    }
    const std::uint64_t all = std::uint64_t{found.f_blocks} * found.f_frsize, free = found.f_bavail * found.f_frsize;
    shm.meaning = format("{} of {} are free in /dev/shm, for the MPI library", mebibytes(free), mebibytes(all));
    if (free < least) shm.why_not = failure(format("{}, which is little (docker run --shm-size)", shm.meaning));
    return shm;
}

void add_gpus(std::vector<ability> &all) {
    const gpu::node_gpus gpus = gpu::find_gpus();
    const auto why = [](const std::string &sentence) { return sentence.empty() ? status{} : failure(sentence); };
    std::string names;
    for (const std::string &one : gpus.names) names += (names.empty() ? "" : "; ") + one;
    all.push_back({"gpus", names, why(gpus.why_none)});
    const std::size_t n = gpus.names.size();
    std::string why_no_pairs = gpus.why_none;
    if (why_no_pairs.empty() && n < 2) why_no_pairs = "there is one GPU";
    for (const std::string &pair : gpus.apart)
        why_no_pairs += (why_no_pairs.empty() ? "no access to the other's memory: " : ", ") + pair;
    all.push_back({"gpu_pairs", format("all {} GPUs reach each other's memory", n), why(why_no_pairs)});
    all.push_back({"gpu_ipc", "other processes of the node can map GPU memory", why(gpus.why_no_ipc)});
    all.push_back({"gpu_fabric", "GPU memory can be mapped across nodes", why(gpus.why_no_fabric)});
}

}  // namespace

std::vector<ability> node_abilities() {
    const siblings_memory memory = try_siblings();  // while this process has no threads
    std::vector<ability> all;
    status no_shm = memory.no_shared_memory;
    if (!transport::may_share_memory()) no_shm = failure("MPIX_TRANSPORTS leaves shm out");
    all.push_back({"shm", "processes map each other's memory", no_shm});
    status no_copy = memory.no_single_copy;
    if (!no_copy.ok()) no_copy = failure(no_copy.message() + ptrace_scope());
    all.push_back({"single_copy",
                   "processes copy from and to each other's memory (process_vm_readv, process_vm_writev)", no_copy});
    all.push_back(dev_shm());
    all.push_back(locked_memory());
    add_gpus(all);
    for (const transport::availability &one : transport::available()) {
        if (std::strcmp(one.name, "shm") == 0) continue;
        all.push_back({one.name, one.device.empty() ? "" : "by " + one.device, one.why_not});
    }
    return all;
}

answer has_all(const std::vector<ability> &abilities, const std::string &names) {
    answer all = answer::yes;
    for (std::size_t at = 0; at <= names.size();) {
        const std::size_t end = std::min(names.find(',', at), names.size());
        const std::string name = names.substr(at, end - at);
        at = end + 1;
        const auto found =
            std::find_if(abilities.begin(), abilities.end(), [&name](const ability &one) { return one.name == name; });
        if (found == abilities.end()) {
            std::string known;
            for (const ability &one : abilities) known += (known.empty() ? "" : ", ") + one.name;
            std::fprintf(stderr, "mpix_info: \"%s\" is nothing that --require knows: %s\n", name.c_str(),
                         known.c_str());
            return answer::unknown_name;
        }
        if (found->why_not.ok()) continue;
        std::fprintf(stderr, "mpix_info: no %s: %s\n", name.c_str(), found->why_not.message().c_str());
        all = answer::no;
    }
    return all;
}

}  // namespace mpix
