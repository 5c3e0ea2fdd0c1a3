// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Pack, MPI_Unpack, MPI_Pack_size, and their stream-ordered variants. The packed form is that of the MPI libraries
// on machines of one kind: the bytes of the basic elements one after another.
//
// The MPI library packs types that have no plan, small messages, and types of many blocks until they are used often
// enough for a plan to pay; but not if the call names GPU memory, which the library may not support.
#include <mpi.h>
#include <mpix/mpix.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "device/kernels/gpu_pack.h"
#include "host/config.h"
#include "host/datatype/contents.h"
#include "host/datatype/decode.h"
#include "host/datatype/host_copy.h"
#include "host/datatype/typemap.h"
#include "host/format.h"
#include "host/mpi/boundary.h"
#include "host/mpi/symbol.h"
#include "host/mpi/thread_check.h"
#include "host/mpi/tools.h"
#include "host/protocol/pack_explain.h"
#include "host/report.h"
#include "host/wireup/wireup.h"
#include "transport/select.h"

using namespace mpix;

namespace {

// Of either direction: `memory` holds `count` elements, `packed` has `size` bytes.
struct call {
    const char *name;
    bool unpack;
    void *memory;
    std::int64_t count;
    MPI_Datatype datatype;
    void *packed;
    std::int64_t size, position;
    MPI_Comm comm;

    const char *size_name() const { return unpack ? "insize" : "outsize"; }
    const char *count_name() const { return unpack ? "outcount" : "incount"; }
};

// What is to be done; `bytes` may be 0.
struct work {
    std::shared_ptr<const plan> type;
    std::int64_t bytes = 0;
    transport::placement memory, packed;
    bool on_gpu() const { return memory.owner != nullptr || packed.owner != nullptr; }
};

status check(const call &c) {
    if (c.comm == MPI_COMM_NULL) return failure(MPI_ERR_COMM, "comm is MPI_COMM_NULL");
    if (c.count < 0) return failure(MPI_ERR_COUNT, format("{} is {}", c.count_name(), c.count));
    if (c.datatype == MPI_DATATYPE_NULL) return failure(MPI_ERR_TYPE, "datatype is MPI_DATATYPE_NULL");
    if (c.size < 0) return failure(MPI_ERR_ARG, format("{} is {}", c.size_name(), c.size));
    if (c.position < 0) return failure(MPI_ERR_ARG, format("position is {}", c.position));
    return {};
}

// The plan, the room, and where the buffers are. Without a plan the MPI library packs: if `why_not` is success, since a
// plan does not pay yet; otherwise since no plan is possible.
status prepare(const call &c, work &out, status &why_not) {
    type_facts facts;
    bool by_library = library_packs_small(c.datatype, c.count, facts);
    if (!by_library) {
        out.type = plan_at_hand(c.datatype);
        if (out.type == nullptr && !is_committed(c.datatype)) return not_committed();
        by_library = out.type == nullptr && library_packs_sooner(c.datatype, c.count, facts);
        if (out.type == nullptr && !by_library) out.type = plan_of(c.datatype, why_not);
    }
    if (by_library) why_not = facts.error;
    if (out.type == nullptr && !why_not.ok()) {
        out.memory = transport::locate(c.memory);
        out.packed = transport::locate(c.packed);
        return {};
    }
    const std::int64_t room = c.size - c.position, size = by_library ? facts.size : out.type->size;
    if (size != 0 && c.count > std::numeric_limits<std::int64_t>::max() / size)
        return failure(MPI_ERR_COUNT, format("{} is {}: more bytes than can be counted", c.count_name(), c.count));
    out.bytes = size * c.count;
    if (out.bytes > room)
        return failure(MPI_ERR_TRUNCATE, format("{} bytes do not fit between position {} and {} {}", out.bytes,
                                                c.position, c.size_name(), c.size));
    if (out.bytes == 0) return {};
    if (c.packed == nullptr)
        return failure(MPI_ERR_BUFFER, format("{} is a null pointer", c.unpack ? "inbuf" : "outbuf"));
    const std::int64_t some_byte = by_library ? facts.true_lower : out.type->first_offset();
    if (c.memory == nullptr && some_byte == 0)  // otherwise it is MPI_BOTTOM
        return failure(MPI_ERR_BUFFER, format("{} is a null pointer", c.unpack ? "outbuf" : "inbuf"));
    // By a byte of the datatype's: the address itself may be MPI_BOTTOM.
    out.memory = transport::locate(static_cast<char *>(c.memory) + some_byte);
    out.packed = transport::locate(c.packed);
    if (by_library && out.on_gpu()) {
        if (!is_committed(c.datatype)) return not_committed();
        out.type = plan_of(c.datatype, why_not);
    }
    return {};
}

#if MPIX_HAVE_CUDA
gpu::message message_of(const call &c, const work &w, const typemap &map) {
    return {&map.map,
            static_cast<char *>(c.memory),
            w.memory.device,
            static_cast<char *>(c.packed) + c.position,
            0,
            w.bytes,
            c.unpack};
}

// The elements are in host memory, the packed bytes on a GPU: by way of host memory, in pieces.
status move_across(const call &c, const work &w) {
    constexpr std::int64_t piece = std::int64_t{8} << 20;
    std::vector<char> staging(static_cast<std::size_t>(std::min(w.bytes, piece)));
    char *const memory = static_cast<char *>(c.memory), *const packed = static_cast<char *>(c.packed) + c.position;
    for (std::int64_t at = 0; at < w.bytes; at += piece) {
        const std::int64_t n = std::min(piece, w.bytes - at);
        if (!c.unpack) pack_range(*w.type, memory, at, n, staging.data());
        const status bad = from_sentence(c.unpack ? gpu::copy(staging.data(), packed + at, n, w.packed.device)
                                                  : gpu::copy(packed + at, staging.data(), n, w.packed.device));
        if (!bad.ok()) return bad;
        if (c.unpack) unpack_range(*w.type, memory, at, n, staging.data());
    }
    return {};
}

status move_on_gpu(const call &c, const work &w) {
    if (w.memory.owner == nullptr) return move_across(c, w);
    const auto map = typemap_of(*w.type);
    const gpu::message m = message_of(c, w, *map);
    return config().explain ? run_explained(c.name, *w.type, m) : from_sentence(gpu::run(m));
}
#else
status move_on_gpu(const call &, const work &) { return failure("mpix was built without CUDA"); }
#endif

void move_on_host(const call &c, const work &w) {
    char *const memory = static_cast<char *>(c.memory), *const packed = static_cast<char *>(c.packed) + c.position;
    if (c.unpack)
        unpack_range(*w.type, memory, 0, w.bytes, packed);
    else
        pack_range(*w.type, memory, 0, w.bytes, packed);
}

// The whole call. `by_library` makes it in the MPI library.
template <class Count, class Library>
int carry_out(const call &c, Count *position, const Library &by_library) {
    if (position == nullptr || !mpi_is_up()) return from_library(by_library());
    status bad = check(c);
    work w;
    status why_not;
    if (bad.ok()) bad = prepare(c, w, why_not);
    if (!bad.ok()) return raise(c.comm, c.name, bad);
    if (w.type == nullptr && (w.bytes != 0 || !why_not.ok())) {
        if (!w.on_gpu()) return from_library(by_library());
        return raise(c.comm, c.name, why_not.of_class(MPI_ERR_TYPE));
    }
    if (w.bytes != 0) {
        if (w.on_gpu()) {
            if (const status failed = move_on_gpu(c, w); !failed.ok())
                return raise(c.comm, c.name, failed.of_class(MPI_ERR_OTHER));
        } else {
            move_on_host(c, w);
        }
    }
    *position += static_cast<Count>(w.bytes);
    return MPI_SUCCESS;
}

template <class Count>
call packing(const char *name, const void *inbuf, Count incount, MPI_Datatype datatype, void *outbuf, Count outsize,
             const Count *position, MPI_Comm comm) {
    return {name, false, const_cast<void *>(inbuf), incount, datatype, outbuf, outsize, position ? *position : 0, comm};
}
template <class Count>
call unpacking(const char *name, const void *inbuf, Count insize, const Count *position, void *outbuf, Count outcount,
               MPI_Datatype datatype, MPI_Comm comm) {
    return {name, true, outbuf, outcount, datatype, const_cast<void *>(inbuf), insize, position ? *position : 0, comm};
}

// What MPI_Pack takes of the buffer, exactly.
template <class Count, class Library>
int pack_size(const char *name, Count incount, MPI_Datatype datatype, MPI_Comm comm, Count *size,
              const Library &by_library) {
    if (size == nullptr || !mpi_is_up()) return from_library(by_library());
    if (const status bad = check({name, false, nullptr, incount, datatype, nullptr, 0, 0, comm}); !bad.ok())
        return raise(comm, name, bad);
    if (!envelope_of(datatype).error.ok()) return from_library(by_library());
    MPI_Count each = 0;
    PMPI_Type_size_x(datatype, &each);
    if (each != 0 && incount > std::numeric_limits<Count>::max() / each) {
        *size = MPI_UNDEFINED;
        return raise(comm, name,
                     failure(MPI_ERR_COUNT, format("{} elements have more bytes than size can say", incount)));
    }
    *size = static_cast<Count>(incount * each);
    return MPI_SUCCESS;
}

int enqueue(const call &c, MPI_Count *position, gpu::stream_handle stream) {
    if (position == nullptr) return raise(c.comm, c.name, failure(MPI_ERR_ARG, "position is a null pointer"));
    demand_mpi(c.name);
    status bad = check(c);
    work w;
    status why_not;
    if (bad.ok()) bad = prepare(c, w, why_not);
    if (bad.ok()) bad = why_not.of_class(MPI_ERR_TYPE);
    if (bad.ok() && w.bytes != 0) {
        if (w.memory.owner == nullptr) {
            bad = failure(MPI_ERR_BUFFER, format("{} is not GPU memory", c.unpack ? "outbuf" : "inbuf"));
        } else {
#if MPIX_HAVE_CUDA
            const auto map = typemap_of(*w.type);
            const gpu::message m = message_of(c, w, *map);
            const status failed = config().explain ? enqueue_explained(c.name, *w.type, m, stream)
                                                   : from_sentence(gpu::enqueue(m, stream));
            bad = failed.of_class(MPI_ERR_OTHER);
#else
            static_cast<void>(stream);
#endif
        }
    }
    if (!bad.ok()) return raise(c.comm, c.name, bad);
    *position += w.bytes;
    return MPI_SUCCESS;
}

}  // namespace

MPIX_SYMBOL int MPI_Pack(const void *inbuf, int incount, MPI_Datatype datatype, void *outbuf, int outsize,
                         int *position, MPI_Comm comm) try {
    MPIX_CHECK_THREAD("MPI_Pack", of_comm(comm));
    return carry_out(packing("MPI_Pack", inbuf, incount, datatype, outbuf, outsize, position, comm), position,
                     [=] { return next.Pack(inbuf, incount, datatype, outbuf, outsize, position, comm); });
}
MPIX_BOUNDARY("MPI_Pack", of_comm(comm))

MPIX_SYMBOL int MPI_Unpack(const void *inbuf, int insize, int *position, void *outbuf, int outcount,
                           MPI_Datatype datatype, MPI_Comm comm) try {
    MPIX_CHECK_THREAD("MPI_Unpack", of_comm(comm));
    return carry_out(unpacking("MPI_Unpack", inbuf, insize, position, outbuf, outcount, datatype, comm), position,
                     [=] { return next.Unpack(inbuf, insize, position, outbuf, outcount, datatype, comm); });
}
MPIX_BOUNDARY("MPI_Unpack", of_comm(comm))

MPIX_SYMBOL int MPI_Pack_size(int incount, MPI_Datatype datatype, MPI_Comm comm, int *size) try {
    MPIX_CHECK_THREAD("MPI_Pack_size", of_comm(comm));
    return pack_size("MPI_Pack_size", incount, datatype, comm, size,
                     [=] { return next.Pack_size(incount, datatype, comm, size); });
}
MPIX_BOUNDARY("MPI_Pack_size", of_comm(comm))

#if MPI_VERSION >= 4
MPIX_SYMBOL int MPI_Pack_c(const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf, MPI_Count outsize,
                           MPI_Count *position, MPI_Comm comm) try {
    MPIX_CHECK_THREAD("MPI_Pack_c", of_comm(comm));
    return carry_out(packing("MPI_Pack_c", inbuf, incount, datatype, outbuf, outsize, position, comm), position,
                     [=] { return next.Pack_c(inbuf, incount, datatype, outbuf, outsize, position, comm); });
}
MPIX_BOUNDARY("MPI_Pack_c", of_comm(comm))

MPIX_SYMBOL int MPI_Unpack_c(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf, MPI_Count outcount,
                             MPI_Datatype datatype, MPI_Comm comm) try {
    MPIX_CHECK_THREAD("MPI_Unpack_c", of_comm(comm));
    return carry_out(unpacking("MPI_Unpack_c", inbuf, insize, position, outbuf, outcount, datatype, comm), position,
                     [=] { return next.Unpack_c(inbuf, insize, position, outbuf, outcount, datatype, comm); });
}
MPIX_BOUNDARY("MPI_Unpack_c", of_comm(comm))

MPIX_SYMBOL int MPI_Pack_size_c(MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count *size) try {
    MPIX_CHECK_THREAD("MPI_Pack_size_c", of_comm(comm));
    return pack_size("MPI_Pack_size_c", incount, datatype, comm, size,
                     [=] { return next.Pack_size_c(incount, datatype, comm, size); });
}
MPIX_BOUNDARY("MPI_Pack_size_c", of_comm(comm))
#endif

MPIX_SYMBOL int MPIX_Pack_enqueue(const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf,
                                  MPI_Count outsize, MPI_Count *position, MPI_Comm comm, CUstream_st *stream) try {
    MPIX_CHECK_THREAD("MPIX_Pack_enqueue", of_comm(comm));
    return enqueue(packing("MPIX_Pack_enqueue", inbuf, incount, datatype, outbuf, outsize, position, comm), position,
                   stream);
}
MPIX_BOUNDARY("MPIX_Pack_enqueue", of_comm(comm))

MPIX_SYMBOL int MPIX_Unpack_enqueue(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
                                    MPI_Count outcount, MPI_Datatype datatype, MPI_Comm comm, CUstream_st *stream) try {
    MPIX_CHECK_THREAD("MPIX_Unpack_enqueue", of_comm(comm));
    return enqueue(unpacking("MPIX_Unpack_enqueue", inbuf, insize, position, outbuf, outcount, datatype, comm),
                   position, stream);
}
MPIX_BOUNDARY("MPIX_Unpack_enqueue", of_comm(comm))
