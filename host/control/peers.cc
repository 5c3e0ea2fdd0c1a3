// SPDX-License-Identifier: BSD-3-Clause
#include "host/control/peers.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "host/control/finish_collective.h"

namespace mpix {
namespace {

std::string read_file(const std::string &path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

// When the process started; 0 if that cannot be read. The second field, the program's name, may contain anything; the
// 22nd is the time. Takes no memory from the heap, so that the end of a process is noticed even when memory has run
// out.
std::uint64_t start_time(std::int64_t pid) {
    char text[1024];
    std::snprintf(text, sizeof text, "/proc/%lld/stat", static_cast<long long>(pid));
    const int fd = open(text, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    const ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[std::max<ssize_t>(length, 0)] = '\0';
    const char *at = std::strrchr(text, ')');
    for (int field = 2; field < 22 && at != nullptr; ++field) {
        at = std::strchr(at, ' ');
        if (at != nullptr) ++at;
    }
    return at == nullptr ? 0 : std::strtoull(at, nullptr, 10);
}

// Processes in the same scope see the same process ids and clock.
std::uint64_t scope_here() {
    std::string all = read_file("/proc/sys/kernel/random/boot_id");
    if (all.empty()) return 0;
    for (const char *space : {"/proc/self/ns/pid", "/proc/self/ns/time"}) {
        struct stat status;
        if (stat(space, &status) == 0) all += std::to_string(status.st_ino) + "/";
    }
    return std::hash<std::string>{}(all);
}

}  // namespace

process this_process() {
    const std::int64_t pid = getpid();
    const std::uint64_t started = start_time(pid);
    return {started != 0 ? scope_here() : 0, pid, started};
}

bool has_ended(const process &p) {
    static const std::uint64_t here = scope_here();
    if (p.scope == 0 || p.scope != here) return false;
    const int fd = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(p.pid), 0));
    if (fd < 0) return errno == ESRCH;
    // The descriptor is readable once all threads of the process are gone, even if nobody has waited for it yet.
    struct pollfd watched = {fd, POLLIN, 0};
    const bool gone = poll(&watched, 1, 0) == 1;
    close(fd);
    if (gone) return true;
    const std::uint64_t started = start_time(p.pid);
    return started != 0 && started != p.started;  // the id has been reused
}

void process_table::exchange(bool told_one_node) {
    // MPI_Comm_split_type takes Open MPI up to 30 ms at times. It is left out if the launcher has told all processes that
    // the job is on one node. It is collective, so all must decide alike.
    const int told = told_one_node;
    int all_were_told = 0;
    MPI_Request agreement = MPI_REQUEST_NULL;
    PMPI_Iallreduce(&told, &all_were_told, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &agreement);
    finish_collective(agreement);
    MPI_Comm node = MPI_COMM_WORLD;
    if (!all_were_told &&
        PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) != MPI_SUCCESS)
        return;
    int size = 0, job_size = 0;
    PMPI_Comm_size(node, &size);
    PMPI_Comm_size(MPI_COMM_WORLD, &job_size);
    PMPI_Comm_rank(MPI_COMM_WORLD, &me_);
    neighbour mine{this_process(), {}, transport::probe_of_this_process(), me_};
    const auto senders = static_cast<std::size_t>(size);
    // A large region is a sparse mapping of its own: only FIFOs that are used take memory.
    constexpr std::uint64_t sparse = 1u << 20;
    const std::uint64_t bytes = std::max(inbox_bytes(senders), sparse);
    if (!own_inbox_ && transport::node_memory().allocate(bytes, transport::on_host, own_inbox_).ok())
        inbox_.open(own_inbox_.address, senders);
    // It fails only for regions of others.
    if (own_inbox_) static_cast<void>(transport::node_memory().describe(own_inbox_, mine.inbox));
    std::vector<neighbour> all(senders);
    MPI_Request gathered = MPI_REQUEST_NULL;
    PMPI_Iallgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, node, &gathered);
    finish_collective(gathered);
    world_ranks_.clear();
    for (const neighbour &n : all) {
        if (n.world_rank == me_)
            our_place_ = world_ranks_.size();
        else
            neighbours_[static_cast<int>(n.world_rank)] = n;
        world_ranks_.push_back(static_cast<int>(n.world_rank));
    }
    // All processes must agree: a process that cannot map a peer's memory sends to it by MPI, and the peer must look
    // there. If containers separate some of them, then also some two that are neighbours in a ring.
    const int next = world_ranks_[(our_place_ + 1) % senders];
    const int shares = own_inbox_ && outbox_to(next) != nullptr;
    int all_share = 0;
    MPI_Request agreed = MPI_REQUEST_NULL;
    PMPI_Iallreduce(&shares, &all_share, 1, MPI_INT, MPI_MIN, node, &agreed);
    finish_collective(agreed);
    if (node != MPI_COMM_WORLD) PMPI_Comm_free(&node);
    all_share_memory_.store(all_share != 0 && size == job_size, std::memory_order_relaxed);
}

// Null: memory may not be shared (MPIX_TRANSPORTS).
process_table::mapped *process_table::map(int world_rank) {
    if (!transport::may_share_memory()) return nullptr;
    const auto known = mapped_.find(world_rank);
    if (known != mapped_.end()) return &known->second;
    mapped m;
    if (world_rank == me_)
        m.inbox = own_inbox_;
    else if (const auto it = neighbours_.find(world_rank); it != neighbours_.end())
        static_cast<void>(transport::node_memory().attach(it->second.inbox, transport::on_host, m.inbox));
    if (m.inbox && m.inbox.bytes >= inbox_bytes(world_ranks_.size()))
        m.outbox = {m.inbox.address, world_ranks_.size(), our_place_};
    else
        note_one_without_memory();
    return &mapped_.emplace(world_rank, m).first->second;
}

bool process_table::shares_memory(int world_rank) {
    const mapped *const m = map(world_rank);
    return m != nullptr && (world_rank == me_ || m->inbox);
}

control_outbox *process_table::outbox_to(int world_rank) {
    mapped *const m = map(world_rank);
    return m != nullptr && m->outbox ? &m->outbox : nullptr;
}

bool process_table::receive(int &world_rank, control_packet &out) {
    std::size_t sender = 0;
    if (!inbox_.receive(sender, out)) return false;
    world_rank = world_ranks_[sender];
    return true;
}

const transport::peer_memory *process_table::memory_of(int world_rank, status &why_not) {
    auto known = reached_.find(world_rank);
    if (known == reached_.end()) {
        reached r;
        if (const auto found = neighbours_.find(world_rank); world_rank == me_)
            r.why_not = transport::reach_memory(transport::probe_of_this_process(), r.memory);
        else if (found != neighbours_.end())
            r.why_not = transport::reach_memory(found->second.own, r.memory);
        else
            r.why_not = failure("it is on another node");
        known = reached_.emplace(world_rank, std::move(r)).first;
    }
    why_not = known->second.why_not;
    return why_not.ok() ? &known->second.memory : nullptr;
}

bool process_table::ended(int world_rank) {
    if (known_to_have_ended(world_rank)) return true;
    const auto it = neighbours_.find(world_rank);
    if (it == neighbours_.end() || !has_ended(it->second.who)) return false;
    ended_.insert(world_rank);
    return true;
}

int process_table::any_ended() {
    if (!ended_.empty()) return *ended_.begin();
    for (const auto &[world_rank, n] : neighbours_)
        if (ended(world_rank)) return world_rank;
    return -1;
}

}  // namespace mpix
