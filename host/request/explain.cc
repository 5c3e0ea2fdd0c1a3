// SPDX-License-Identifier: BSD-3-Clause
#include "host/request/explain.h"

#include <mpix/impl/inline/packet.cuh>
#include <mpix/impl/rget/rget.cuh>
#include <mpix/impl/work_queue/post.cuh>

#include <limits>
#include <new>
#include <string_view>

#include "device/cuda/driver_settings.h"
#include "host/config.h"
#include "host/explain_text.h"
#include "host/format.h"
#include "host/protocol/slot_budget.h"
#include "host/request/upcalls.h"
#include "host/staging/chunks.h"

namespace mpix {
namespace {

constexpr std::size_t longest_name = 32;

std::string shortened(const char *name) {
    const std::string whole = name;
    return whole.size() <= longest_name ? whole : format("{}...", whole.substr(0, longest_name - 3));
}

class table : public explain_text {
public:
    explicit table(const request &r) {
        line(format("{} rank {}, tag {}, communicator \"{}\"", r.kind == MPIX_KIND_SEND ? "send to" : "receive from",
                    r.null_peer() ? "MPI_PROC_NULL"
                                  : (format("{}", r.op.peer) +
                                     (r.op.peer == r.peer_world() ? "" : format(" (world rank {})", r.peer_world()))),
                    r.op.tag, r.op.names->communicator));
        if (r.op.no_partitions)
            line("  no partitions");
        else
            line(format("  {} partition{} of {} {}: {} bytes, {}, {} memory", r.op.partitions,
                        r.op.partitions == 1 ? "" : "s", r.op.count, r.op.names->datatype, r.total_bytes(),
                        r.gapless ? "in one piece" : "with gaps",
                        r.place.owner == nullptr ? "host" : format("GPU {}", r.place.device)));
        if (r.place.owner == nullptr) return;
        line(format("  kernels are loaded {}: {}",
                    gpu::loads_lazily() ? "at their first launch, which may wait for kernels that run"
                                        : "with the CUDA context",
                    gpu::module_loading_setting()));
        line(format("  hardware queues of the streams: {}", gpu::connections_setting()));
    }

    void row(const std::string &first, const char *second, const std::string &third) {
        line(format("  {:<9} {:<9} {}", first, second, third));
    }
};

void add_candidates(table &out, const transport::choice &choice, bool refused) {
    for (const transport::candidate &c : choice.candidates()) {
        const bool first = c.works && c.id == choice.taken;
        out.row(c.name, !first ? "not used" : refused ? "failed" : "chosen", c.why.text());
    }
}

void add_progress(table &out) {
    const char *const how = config().progress == progress_mode::never    ? "MPI calls only"
                            : config().progress == progress_mode::always ? "a thread that never sleeps, and MPI calls"
                                                                         : "a thread while it is needed, and MPI calls";
    out.line(format("  progress engine: {}{}", how,
                    setup_in_background() ? "" : "; setup in MPI calls only, without MPI_THREAD_MULTIPLE"));
}

// Where the sender's bytes go.
const char *destination(const movement &how, const transport::ends &pair) {
    return pair.receiver_on_gpu && !how.forwarded ? "the receive buffer" : "the receiver's landing";
}

std::string engine_moves(const movement &how, const transport::ends &pair) {
    const std::string what = how.packed_first ? "packs it into a buffer, and that is " : "";
    const char *const to = destination(how, pair);
    switch (how.engine) {
        case mover::network:
            if (pair.sender_on_gpu && how.staged.empty())
                return format("put into {} by the network, which reads the GPU's memory itself", to);
            if (pair.sender_on_gpu)
                return format(
                    "read from the GPU into page-locked memory, {} KiB at a time, and put into {} by the network",
                    chunk_bytes / 1024, to);
            return format("{}put into {} by the network", what, to);
        case mover::copy_engine:
            return format("{}copied into {} by a GPU's copy engine", what, to);
        case mover::kernel:
            return format("{}moved into {} by a kernel of the library, which knows where the gaps are", what, to);
        case mover::system:
            return "written into the receive buffer, or read out of the send buffer, by the system";
        case mover::cpu:
            break;
    }
    return format("copied into {} by the CPU", to);
}

std::string size_range(const slot_range &range) {
    if (range.most == std::numeric_limits<std::uint64_t>::max()) return format("{}..inf", range.least);
    return format("{}..{}", range.least, range.most);
}

// How UCX puts from host memory into host memory.
void add_puts(table &out, const request &r) {
    const std::uint64_t eager = transport::network_in_use()->eager_limit(r.peer_world()),
                        no_limit = std::numeric_limits<std::uint64_t>::max();
    out.line("    by UCX, by partition size (MPIX_UCX_EAGER_BYTES):");
    const auto range = [&](const slot_range &sizes, const char *how) {
        const bool here = r.partition_bytes >= sizes.least && r.partition_bytes <= sizes.most;
        out.line(format("      {:<18} {}{}", size_range(sizes), how,
                        here ? format("  <- {} bytes", r.partition_bytes) : ""));
    };
    if (eager > 0) range({0, eager, 0}, "in a message with the flag, which the receiver's process stores");
    if (eager < no_limit)
        range({eager > 0 ? eager + 1 : 0, no_limit, 0}, "a put, and the flag once that is known to have arrived");
}

// Once it is exported, between nodes.
void add_posting(table &out, const request &r, const movement &how, const transport::ends &pair) {
    const std::string call = !pair.sender_on_gpu ? "exported, pready"
                             : r.gapless         ? "pready in a kernel"
                                                 : "pready_typed in a kernel";
    if (!how.not_posted.empty())
        return out.line(format("  {}: left to the progress engine too, for {}", call, how.not_posted.text()));
    std::string who;
    if (pair.sender_on_gpu)
        who = format("by groups of {} threads or more ({} bytes for each), ", least_posting_threads(r.partition_bytes),
                     detail::most_staged_per_thread);
    const bool staged = pair.sender_on_gpu || !r.gapless;
    out.line(format("  {}: {}posted to a work queue{}", call, who,
                    staged ? format(" (messages of up to {} MiB)", most_staged / (1024 * 1024)) : ""));
    out.line(format("    {}where the queue is full: left to the progress engine too",
                    !pair.sender_on_gpu ? ""
                    : r.gapless         ? "by smaller groups, or "
                                        : "by smaller groups, by pready, or "));
}

void add_sender(table &out, const request &r, const movement &how, const transport::choice &choice) {
    const transport::ends &pair = choice.pair;
    const std::string engine = engine_moves(how, pair);
    if (how.by_caller && how.engine == mover::system) {
        out.line(
            "  MPI_Pready: the caller has the system write the partition into the receive buffer, or leaves it to the "
            "receiver, which has the system read it; whichever is faster, as measured");
        out.line("  host threads' pready: the caller has the system write it");
        out.line("  ready before the receiver is: the same, later; the progress engine writes");
    } else if (how.by_caller) {
        out.line(format("  MPI_Pready, or host threads' pready: the caller {} into the receiver's landing",
                        r.gapless ? "copies the partition" : "packs the partition, in one go,"));
        out.line("  ready before there is room: the progress engine does the same, later");
    } else {
        out.line(format("  MPI_Pready{}: left to the progress engine, always:",
                        pair.sender_on_gpu ? "" : ", or host threads' pready"));
        out.line("    " + engine);
        if (!how.staged.empty()) out.line("    not straight from the GPU's memory: " + how.staged);
        const bool host_to_host = !pair.receiver_on_gpu && (!pair.sender_on_gpu || !how.staged.empty());
        if (choice.taken == transport::id_ucx && host_to_host) add_puts(out, r);
    }
    if (how.engine == mover::network && config().work_queue) return add_posting(out, r, how, pair);
    if (!pair.sender_on_gpu) return;
    if (!how.by_kernels)
        return out.line(format("  pready in a kernel: left to the progress engine too{}",
                               how.too_many ? ", for there are too many partitions" : ""));
    const char *const to = destination(how, pair);
    out.line(how.typed_only ? format("  in a kernel: pready_typed stores into {}, pready leaves it to the engine", to)
                            : format("  pready in a kernel: its threads store into {}", to));
    if (how.by_inline)
        out.line(
            format("    once kernels receive it: {}into their inline buffer, the arrival in the data, by groups of {} "
                   "threads or more",
                   !how.typed_only ? ""
                   : r.gapless     ? "both "
                                   : "pready_typed ",
                   detail::least_inline_threads(r.partition_bytes)));
    if (how.sent_inline.bytes != 0)
        out.line("    inline, where the receiver has a buffer for it: " + described(how.sent_inline));
    if (const copy_engine_threshold &share = how.to_engine; share.by_model && share.bytes != 0)
        out.line(format(
            "    left to the engine too from {} bytes for each thread on (MPIX_ENGINE_BYTES): a thread stores {:.0f} "
            "bytes a us, the copy engine takes {:.1f} us for a word",
            share.bytes, share.costs.thread_bytes_per_us, share.costs.word_us));
    else if (share.bytes != 0)
        out.line(
            format("    left to the engine too from {} bytes for each thread on (MPIX_ENGINE_BYTES)", share.bytes));
    if (how.rget_bytes != 0)
        out.line(format(
            "    left to the receiver's kernels by groups of at most {} threads, from {} bytes for each thread on "
            "(MPIX_RGET_BYTES), where a group of them waits: it reads",
            detail::most_offering_threads, how.rget_bytes));
    else
        out.line("    not left to the receiver's kernels to read: " + how.no_rget.text());
    out.line("  ready in a kernel before the receiver is: left to the progress engine too");
}

void add_receiver(table &out, const request &r, const transport::choice &choice, const landing_kind &kind) {
    if (kind.by_puts)
        return out.line("  landing: the receive buffer itself, which the network puts to: nothing is copied out");
    if (kind.in_place)
        return out.line(
            "  landing: the receive buffer itself, which the sender writes to or this process fills by reading the "
            "send "
            "buffer");
    if (!kind.forwarded.empty()) {
        out.line("  landing: GPU memory of the library's, which the sender maps: " + kind.forwarded);
        return out.line(format("  forwarded into the receive buffer{} by the progress engine, as partitions come",
                               r.gapless ? "" : ", into its gaps by a kernel,"));
    }
    if (choice.pair.receiver_on_gpu && !choice.pair.by_network) {
        out.line("  landing: the receive buffer itself, for messages of any size: nothing is copied out");
        if (!r.gapless) out.line("  gaps: the sender has been told of them, and leaves them as they are");
        if (kind.no_rget.empty())
            out.line(format(
                "  wait_arrived by {} threads or more reads what few threads send out of the send buffer, up to {} "
                "bytes for each",
                detail::least_reading_threads, detail::most_read_per_thread));
        else
            out.line("  nothing is read out of the send buffer: " + kind.no_rget);
        return;
    }
    out.line(format("  landing: memory of this process that the sender {}, by message size (MPIX_EAGER_BYTES):",
                    choice.pair.by_network ? "puts to" : "maps"));
    for (const slot_range &range : slot_ranges(config().eager_bytes)) {
        if (range.least > range.most || (range.slots == 1 && range.least == 0)) continue;
        const bool here = r.total_bytes() >= range.least && r.total_bytes() <= range.most;
        out.line(format("    {:<20} {}{}", size_range(range),
                        range.slots == 2 ? "2 slots: stored up to an epoch before this rank's MPI_Start"
                                         : "1 slot: stored after this rank's MPI_Start",
                        here ? format("  <- {} bytes", r.total_bytes()) : ""));
    }
    if (kind.slots > 2 && choice.pair.by_network)
        out.line(format("  {} slots instead of 2: the sender runs ahead by {} epochs (MPIX_LANDING_BYTES)", kind.slots,
                        kind.slots - 1));
    else if (kind.slots > 2)
        out.line(
            format("  {} slots instead of 2, used in turn: memory that has left this rank's caches is faster to write "
                   "(MPIX_LANDING_BYTES)",
                   kind.slots));
    else if (kind.slots == 2 && !choice.pair.by_network && !choice.pair.receiver_on_gpu &&
             wanted_slots(r.total_bytes(), config().landing_bytes) > 2)
        out.line(
            "  not more: others of this process have what MPIX_LANDING_BYTES allows, or an earlier match was undone");
    if (choice.pair.receiver_on_gpu) {
        out.line(format("  forwarded into the GPU{} by the progress engine, up to {} KiB at a time as it comes",
                        r.gapless ? "" : ", into its gaps by a kernel,", chunk_bytes / 1024));
        out.line("  not straight into the GPU's memory: " + kind.staged);
        return;
    }
    out.line(format("  copied out of it{}, by whoever asks: MPI_Parrived, MPI_Wait ..., parrived of host threads",
                    r.gapless ? "" : ", gaps put in"));
    if (choice.pair.by_network) out.line("  what the network brings may appear only while this process makes progress");
}

}  // namespace

std::shared_ptr<const argument_names> names_of(MPI_Comm comm, MPI_Datatype datatype) {
    if (!config().explain) return nullptr;
    char comm_name[MPI_MAX_OBJECT_NAME] = "", type_name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    PMPI_Comm_get_name(comm, comm_name, &length);
    PMPI_Type_get_name(datatype, type_name, &length);
    return std::make_shared<argument_names>(argument_names{
        shortened(comm_name), type_name[0] == '\0' ? "elements of a derived datatype" : shortened(type_name)});
}

void explain_send(const request &r, const transport::choice &choice, const movement &how, std::uint64_t slots,
                  const std::string &refusal) try {
    if (r.op.names == nullptr) return;
    table out(r);
    add_candidates(out, choice, !refusal.empty());
    if (!refusal.empty()) {
        out.line("  no path: " + refusal);
    } else {
        add_sender(out, r, how, choice);
        if (how.forwarded)
            out.line("  landing: GPU memory of the receiver's library, which forwards it into the receive buffer");
        else if (choice.pair.receiver_on_gpu || how.engine == mover::system)
            out.line("  landing: the receive buffer itself; nothing is copied out");
        else
            out.line(format("  landing: {} slot{}, by message size and the receiver's {}; the receiver copies out",
                            slots, slots == 1 ? "" : "s", slots > 2 ? "MPIX_LANDING_BYTES" : "MPIX_EAGER_BYTES"));
        if (!how.two_copies.empty()) out.line("  not straight into the receive buffer: " + how.two_copies.text());
        add_progress(out);
    }
    out.print();
} catch (const std::bad_alloc &) {  // it is not explained
}

void explain_queue(const request &r, const std::string &executed_by) try {
    if (r.op.names == nullptr) return;
    table out(r);
    out.line("  work queue: executed by " + executed_by);
    out.print();
} catch (const std::bad_alloc &) {  // it is not explained
}

void explain_receive(const request &r, const transport::choice *choice, const landing_kind &landing,
                     const char *refusal) try {
    if (r.op.names == nullptr) return;
    table out(r);
    const bool refused = *refusal != '\0';
    if (choice != nullptr) add_candidates(out, *choice, refused);
    if (refused)
        out.line(std::string("  no path: ") + refusal);
    else if (choice != nullptr)
        add_receiver(out, r, *choice, landing);
    out.print();
} catch (const std::bad_alloc &) {  // it is not explained
}

void explain_refusal(const request &r, const char *reason) try {
    if (r.op.names == nullptr) return;
    table out(r);
    out.line(std::string("  no path, says the receiver: ") + reason);
    out.print();
} catch (const std::bad_alloc &) {  // it is not explained
}

void explain_null(const request &r) try {
    if (r.op.names == nullptr) return;
    table out(r);
    out.line("  nothing moves: every partition is ready, and arrived, at once");
    out.print();
} catch (const std::bad_alloc &) {  // it is not explained
}

std::chrono::steady_clock::time_point explain_clock(const operation &op) {
    return op.names == nullptr ? std::chrono::steady_clock::time_point() : std::chrono::steady_clock::now();
}

void explain_time(const request &r, const char *part, std::chrono::steady_clock::time_point since) try {
    if (r.op.names == nullptr || r.place.owner == nullptr) return;
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - since;
    table out(r);
    out.line(format("  setup: {:.2f} ms to {}", taken.count(), part));
    out.print();
} catch (const std::bad_alloc &) {  // it is not explained
}

}  // namespace mpix
