// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Pack and MPI_Unpack of memory of a GPU, or of the host: random types, rows of all lengths, tables, many bytes,
// all kinds of memory on the packed side. Both buffers are poisoned and every byte of them is checked, against the
// offsets that the standard gives the types.
#include <mpi.h>
#include <mpix/mpix.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/device/harness.hpp"
#include "tests/unit/arena.hpp"
#include "tests/unit/random_type.hpp"

using namespace device_test;

namespace {

using bytes = std::vector<char>;

// What dies without a word of its own has its part named.
void begin(const char *part) {
    std::printf("part: %s\n", part);
    std::fflush(stdout);
}

// Memory of the executor, exactly as long as asked for, so that compute-sanitizer sees what is outside.
class memory {
public:
    memory(session &s, std::size_t size, int skew = 0) : s_(s), size_(size), skew_(static_cast<std::size_t>(skew)) {
        base_ = static_cast<char *>(s.device->allocate(size + skew_ + 1));
    }
    ~memory() { s_.device->release(base_); }
    memory(const memory &) = delete;
    memory &operator=(const memory &) = delete;

    char *at() const { return base_ + skew_; }
    void put(const bytes &from) { s_.device->upload(at(), from.data(), from.size()); }
    bytes get() const {
        bytes out(size_);
        s_.device->download(out.data(), at(), size_);
        return out;
    }

private:
    session &s_;
    std::size_t size_, skew_;
    char *base_;
};

void commit(sample &type) {
    if (!type.named) must(MPI_Type_commit(&type.type), "MPI_Type_commit");
}

void same(session &s, const bytes &found, const bytes &expected, const char *what) {
    if (found == expected) return;
    const auto at = std::mismatch(found.begin(), found.end(), expected.begin()).first - found.begin();
    REQUIRE(false, "%s: %s: byte %lld of %zu is wrong", s.what.c_str(), what, static_cast<long long>(at), found.size());
}

// There and back, with other bytes before and behind in the packed buffer.
void round_trip(session &s, const sample &type, int count, std::mt19937_64 &random) {
    const auto at = offsets(type, count);
    const int size = static_cast<int>(at.size()), lead = static_cast<int>(random() % 3 * 8 + random() % 2);
    const int outsize = lead + size + 5;
    arena model(type, count);
    fill(model.bytes, random);
    memory elements(s, model.bytes.size(), static_cast<int>(random() % 4 == 0 ? random() % 16 : 0));
    memory packed(s, static_cast<std::size_t>(outsize), static_cast<int>(random() % 4 == 0 ? random() % 16 : 0));
    elements.put(model.bytes);
    bytes expected(static_cast<std::size_t>(outsize));
    fill(expected, random);
    packed.put(expected);
    for (std::size_t n = 0; n < at.size(); ++n) expected[static_cast<std::size_t>(lead) + n] = model.buffer()[at[n]];
    int position = lead;
    must(MPI_Pack(elements.at() + model.origin, count, type.type, packed.at(), outsize, &position, MPI_COMM_SELF),
         "MPI_Pack");
    REQUIRE(position == lead + size, "%s: position is %d", s.what.c_str(), position);
    same(s, packed.get(), expected, "packed bytes");
    same(s, elements.get(), model.bytes, "memory after packing");

    if (overlaps(at)) return;
    fill(expected, random);
    packed.put(expected);
    for (std::size_t n = 0; n < at.size(); ++n) model.buffer()[at[n]] = expected[static_cast<std::size_t>(lead) + n];
    position = lead;
    must(MPI_Unpack(packed.at(), outsize, &position, elements.at() + model.origin, count, type.type, MPI_COMM_SELF),
         "MPI_Unpack");
    REQUIRE(position == lead + size, "%s: position is %d", s.what.c_str(), position);
    same(s, elements.get(), model.bytes, "unpacked memory");
    same(s, packed.get(), expected, "packed bytes after unpacking");
}

void random_types(session &s, std::mt19937_64 &random) {
    type_maker maker(s.seed);
    const int types = s.quick ? 60 : 400;
    for (int n = 0; n < types; ++n) {
        sample type = maker.make(n % 4);
        s.what = "type " + std::to_string(n) + ": " + type.text;
        commit(type);
        round_trip(s, type, maker.between(1, 3), random);
    }
}

sample rows(int count, int run, int pitch) {
    sample out;
    out.named = false;
    MPI_Type_create_hvector(count, run, pitch, MPI_BYTE, &out.type);
    for (int r = 0; r < count; ++r)
        for (int n = 0; n < run; ++n) out.map.push_back(std::int64_t{r} * pitch + n);
    commit(out);
    return out;
}

sample blocks(std::mt19937_64 &random, int count, int unit, bool equal) {
    sample out;
    out.named = false;
    std::vector<int> lengths;
    std::vector<MPI_Aint> at;
    MPI_Aint next = 0;
    for (int b = 0; b < count; ++b) {
        lengths.push_back(unit * (equal ? 3 : 1 + static_cast<int>(random() % 9)));
        at.push_back(next);
        for (int n = 0; n < lengths.back(); ++n) out.map.push_back(next + n);
        next += lengths.back() + unit * (1 + static_cast<MPI_Aint>(random() % 12));
    }
    MPI_Type_create_hindexed(count, lengths.data(), at.data(), MPI_BYTE, &out.type);
    commit(out);
    return out;
}

void rows_of_all_lengths(session &s, std::mt19937_64 &random) {
    const int total = s.quick ? 20'000 : 200'000;
    for (const int run : {1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 20, 24, 31, 32, 48, 63, 64, 100, 128, 333, 1000, 4096})
        for (const int pitch : {run + 1, 2 * run, run + 60, 1024 + run / 1024 * 4096}) {
            if (pitch <= run) continue;
            s.what = "rows of " + std::to_string(run) + " bytes at " + std::to_string(pitch);
            round_trip(s, rows(std::max(2, total / (run + pitch)), run, pitch), 1, random);
        }
}

void tables(session &s, std::mt19937_64 &random) {
    for (const int unit : {1, 2, 4, 8, 16})
        for (const bool equal : {false, true}) {
            s.what = std::string(equal ? "equal" : "unequal") + " blocks of " + std::to_string(unit);
            round_trip(s, blocks(random, s.quick ? 200 : 3000, unit, equal), 3, random);
        }
}

// Rows in planes, so that they do not all follow each other at one distance.
sample planes(int count, int height, int run, int pitch) {
    const sample plane = rows(height, run, pitch);
    sample out;
    out.named = false;
    const MPI_Aint distance = MPI_Aint{height} * pitch + 37;
    MPI_Type_create_hvector(count, 1, distance, plane.type, &out.type);
    for (int p = 0; p < count; ++p)
        for (const std::int64_t at : plane.map) out.map.push_back(p * distance + at);
    commit(out);
    return out;
}

// Above the size from which a thread has several units, and some go through shared memory.
void many_bytes(session &s, std::mt19937_64 &random) {
    const int total = 6 << 20;
    // One or more of each way that pack_staged.cuh has.
    struct shape {
        int run, pitch;
    };
    for (const shape r : {shape{1, 3},
                          {3, 6},
                          {2, 20},
                          {5, 11},
                          {12, 25},
                          {4, 64},
                          {12, 24},
                          {20, 40},
                          {20, 80},
                          {33, 128},
                          {48, 96},
                          {48, 128},
                          {48, 97},
                          {100, 200},
                          {100, 201},
                          {200, 401},
                          {333, 400},
                          {5000, 5013}}) {
        s.what = "4.5 MiB in rows of " + std::to_string(r.run) + " at " + std::to_string(r.pitch);
        round_trip(s, rows((9 << 19) / r.run, r.run, r.pitch), 1, random);
    }
    for (const shape r : {shape{3, 7}, {12, 24}, {100, 201}, {300, 450}}) {
        s.what = "4.5 MiB in planes of rows of " + std::to_string(r.run);
        round_trip(s, planes((9 << 19) / 1500 / r.run + 1, 1500, r.run, r.pitch), 1, random);
    }
    for (const int run : {4, 8, 16, 48, 1000, 4096, 4097}) {
        s.what = "6 MiB in rows of " + std::to_string(run);
        round_trip(s, rows(total / run, run, run + (run % 16 == 0 ? 16 : 8)), 1, random);
    }
    for (const int unit : {4, 16}) {
        s.what = "6 MiB in blocks of " + std::to_string(unit);
        round_trip(s, blocks(random, total / unit / 5, unit, false), 1, random);
    }
}

// ---- errors --------------------------------------------------------------------------------------------------

void errors(session &s) {
    s.what = "errors";
    const sample type = rows(4, 3, 8);  // 12 bytes
    memory elements(s, 128), packed(s, 64);
    const bytes before(64, 'p');
    packed.put(before);
    elements.put(bytes(128, 'e'));
    const auto pack = [&](int count, MPI_Datatype t, int outsize, int position, MPI_Comm comm) {
        const int given = position;
        const int code = MPI_Pack(elements.at(), count, t, packed.at(), outsize, &position, comm);
        REQUIRE(code == MPI_SUCCESS || position == given, "a failed MPI_Pack moved the position");
        return code;
    };
    const auto unpack = [&](int count, MPI_Datatype t, int insize, int position, MPI_Comm comm) {
        return MPI_Unpack(packed.at(), insize, &position, elements.at(), count, t, comm);
    };
    MPI_Comm comm;
    must(MPI_Comm_dup(MPI_COMM_SELF, &comm), "MPI_Comm_dup");
    must(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    must_refuse(pack(1, type.type, 11, 0, comm), MPI_ERR_TRUNCATE, "MPI_Pack into too few bytes");
    must_refuse(pack(1, type.type, 15, 4, comm), MPI_ERR_TRUNCATE, "MPI_Pack from a position too far");
    must_refuse(pack(1, type.type, 12, 13, comm), MPI_ERR_TRUNCATE, "MPI_Pack from beyond the end");
    must_refuse(pack(-1, type.type, 64, 0, comm), MPI_ERR_COUNT, "MPI_Pack of -1 elements");
    must_refuse(pack(1, MPI_DATATYPE_NULL, 64, 0, comm), MPI_ERR_TYPE, "MPI_Pack of no type");
    must_refuse(pack(1, type.type, -1, 0, comm), MPI_ERR_ARG, "MPI_Pack into -1 bytes");
    must_refuse(pack(1, type.type, 64, -1, comm), MPI_ERR_ARG, "MPI_Pack at position -1");
    must_refuse(pack(1, type.type, 64, 0, MPI_COMM_NULL), MPI_ERR_COMM, "MPI_Pack on no communicator");
    must_refuse(unpack(1, type.type, 11, 0, comm), MPI_ERR_TRUNCATE, "MPI_Unpack of too few bytes");
    must_refuse(unpack(2, type.type, 20, 0, comm), MPI_ERR_TRUNCATE, "MPI_Unpack of too many elements");
    must_refuse(unpack(1, type.type, 64, 0, MPI_COMM_NULL), MPI_ERR_COMM, "MPI_Unpack on no communicator");
    int at = 0;
    must_refuse(MPI_Pack(nullptr, 1, type.type, packed.at(), 64, &at, comm), MPI_ERR_BUFFER,
                "MPI_Pack of a null inbuf");
    must_refuse(MPI_Pack(elements.at(), 1, type.type, nullptr, 64, &at, comm), MPI_ERR_BUFFER,
                "MPI_Pack into a null outbuf");
    must_refuse(MPI_Unpack(packed.at(), 64, &at, nullptr, 1, type.type, comm), MPI_ERR_BUFFER,
                "MPI_Unpack into a null outbuf");
    must(pack(0, type.type, 64, 3, comm), "MPI_Pack of nothing");
    must(unpack(0, type.type, 64, 3, comm), "MPI_Unpack of nothing");
    same(s, packed.get(), before, "packed bytes after errors");
    must(pack(1, type.type, 12, 0, comm), "MPI_Pack into just enough");
    int size = 0;
    must(MPI_Pack_size(5, type.type, comm, &size), "MPI_Pack_size");
    REQUIRE(size == 60, "MPI_Pack_size says %d", size);
    must_refuse(MPI_Pack_size(-1, type.type, comm, &size), MPI_ERR_COUNT, "MPI_Pack_size of -1 elements");
    must(MPI_Comm_free(&comm), "MPI_Comm_free");
}

#ifdef __CUDACC__

// ---- what only a GPU has -----------------------------------------------------------------------------------

// A stand-in for a kernel of the user's that waits for something the calling thread does after the call.
__global__ void wait_for(const std::uint64_t *word, std::uint64_t *gave_up) {
    const std::uint64_t deadline = mpix::detail::now_ns() + patience_ns;
    while (mpix::detail::observe(word) == 0)
        if (mpix::detail::now_ns() > deadline) {
            *gave_up = 1;
            return;
        }
}

// The first call of the process loads kernels and measures what they cost. The second one has nothing to wait for.
void second_call(session &s, std::mt19937_64 &random) {
    s.what = "the second call";
    const sample type = rows(64, 16, 48);
    memory elements(s, 64 * 48), packed(s, 64 * 16);
    bytes content(64 * 48), expected;
    fill(content, random);
    elements.put(content);
    for (const std::int64_t at : type.map) expected.push_back(content[static_cast<std::size_t>(at)]);
    auto *const words = static_cast<std::uint64_t *>(s.device->allocate_shared(2 * sizeof(std::uint64_t)));
    words[0] = words[1] = 0;
    cudaStream_t stream;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    const auto pack = [&] {
        int position = 0;
        must(MPI_Pack(elements.at(), 1, type.type, packed.at(), 64 * 16, &position, MPI_COMM_SELF), "MPI_Pack");
    };
    pack();
    packed.put(bytes(64 * 16, 'p'));
    if (!s.quick) wait_for<<<1, 1, 0, stream>>>(words, words + 1);  // compute-sanitizer has launches wait
    check_cuda(cudaGetLastError(), "launch");
    pack();
    mpix::detail::publish(words, 1);
    check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    REQUIRE(words[1] == 0, "%s: it waited for a kernel that waits for its end", s.what.c_str());
    same(s, packed.get(), expected, "packed bytes");
    check_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
    s.device->release_shared(words);
}

// The packed side in page-locked, pageable and device memory, the elements in device and in host memory; enough
// bytes for several pieces of staging.
void kinds_of_memory(session &s, std::mt19937_64 &random) {
    const int total = s.quick ? 100'000 : 40 << 20, run = 20, pitch = 36;
    const sample type = rows(total / run, run, pitch);
    const int size = static_cast<int>(type.map.size());
    arena model(type, 1);
    fill(model.bytes, random);
    bytes expected;
    for (const std::int64_t at : type.map) expected.push_back(model.buffer()[at]);
    const bytes blank(model.bytes.size(), 'b');
    bytes filled = blank;
    for (std::size_t n = 0; n < type.map.size(); ++n)
        filled[static_cast<std::size_t>(model.origin + type.map[n])] = expected[n];
    memory elements(s, model.bytes.size()), packed(s, expected.size());
    bytes pageable(expected.size());
    char *const pinned = static_cast<char *>(s.device->allocate_shared(expected.size()));
    const auto check = [&](const char *what, char *from, char *through) {
        s.what = what;
        int position = 0;
        must(MPI_Pack(from + model.origin, 1, type.type, through, size, &position, MPI_COMM_SELF), "MPI_Pack");
        bytes found(expected.size());
        s.device->download(found.data(), through, found.size());
        same(s, found, expected, "packed bytes");
        s.device->upload(from, blank.data(), blank.size());
        position = 0;
        must(MPI_Unpack(through, size, &position, from + model.origin, 1, type.type, MPI_COMM_SELF), "MPI_Unpack");
        bytes back(blank.size());
        s.device->download(back.data(), from, back.size());
        same(s, back, filled, "unpacked memory");
        s.device->upload(from, model.bytes.data(), model.bytes.size());
    };
    elements.put(model.bytes);
    check("device to device", elements.at(), packed.at());
    check("device to pageable", elements.at(), pageable.data());
    check("device to page-locked", elements.at(), pinned);
    bytes host = model.bytes;
    check("host to device", host.data(), packed.at());
    s.device->release_shared(pinned);
}

cudaGraph_t capture(cudaStream_t stream, const auto &work) {
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    work();
    check_cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    return graph;
}

std::size_t nodes_of(cudaGraph_t graph) {
    std::size_t nodes = 0;
    check_cuda(cudaGraphGetNodes(graph, nullptr, &nodes), "cudaGraphGetNodes");
    return nodes;
}

// What a call puts into the stream: one launch, whatever the type, and none for no bytes.
void launches(session &s, std::mt19937_64 &random) {
    cudaStream_t stream;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    sample types[] = {rows(100, 3, 7), blocks(random, 500, 4, false), rows(1, 64, 128)};
    for (const sample &type : types) {
        memory elements(s, 1 << 20), packed(s, 1 << 20);
        const auto enqueue = [&](MPI_Count count) {
            MPI_Count position = 0;
            must(MPIX_Pack_enqueue(elements.at(), count, type.type, packed.at(), 1 << 20, &position, MPI_COMM_SELF,
                                   stream),
                 "MPIX_Pack_enqueue");
        };
        enqueue(2);  // tables are made outside of the graph
        check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        for (const int count : {0, 2}) {
            s.what = std::to_string(count) + " elements in a graph";
            cudaGraph_t graph = capture(stream, [&] { enqueue(count); });
            REQUIRE(nodes_of(graph) == (count == 0 ? 0u : 1u), "%s: %zu nodes", s.what.c_str(), nodes_of(graph));
            check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
        }
    }
    check_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

// The type is freed while the kernel that uses its table waits for the stream; meanwhile others are made and used. None
// of it may wait for that kernel, and nothing here frees device memory, which would.
void freed_in_use(session &s, std::mt19937_64 &random) {
    s.what = "a type freed in use";
    constexpr std::size_t room = 1 << 20;
    cudaStream_t stream;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    memory elements(s, room), packed(s, room), others(s, room), others_packed(s, room);
    bytes expected, content(room);
    fill(content, random);
    elements.put(content);
    auto *const gate = static_cast<std::uint64_t *>(s.device->allocate_shared(sizeof(std::uint64_t)));
    {
        const sample type = blocks(random, 2000, 4, false);
        for (const std::int64_t at : type.map) expected.push_back(content[static_cast<std::size_t>(at)]);
        const auto wait = [](void *word) {
            const std::uint64_t deadline = mpix::detail::now_ns() + patience_ns;
            while (mpix::detail::observe(static_cast<std::uint64_t *>(word)) == 0 && mpix::detail::now_ns() < deadline)
                host_poll_pause();
        };
        check_cuda(cudaLaunchHostFunc(stream, wait, gate), "cudaLaunchHostFunc");
        MPI_Count position = 0;
        must(MPIX_Pack_enqueue(elements.at(), 1, type.type, packed.at(), room, &position, MPI_COMM_SELF, stream),
             "MPIX_Pack_enqueue");
        REQUIRE(position == static_cast<MPI_Count>(expected.size()), "position is %lld",
                static_cast<long long>(position));
    }  // frees it
    for (int n = 0; n < 4; ++n) {
        const sample type = blocks(random, 2000, 4, false);
        int position = 0;
        must(MPI_Pack(others.at(), 1, type.type, others_packed.at(), room, &position, MPI_COMM_SELF), "MPI_Pack");
    }
    REQUIRE(cudaStreamQuery(stream) == cudaErrorNotReady, "something waited for the kernel");
    (void)cudaGetLastError();
    mpix::detail::publish(gate, 1);
    check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    bytes found = packed.get();
    found.resize(expected.size());
    same(s, found, expected, "packed bytes");
    s.device->release_shared(gate);
    check_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

// Every second byte, more of them than an int can count.
struct fill_bytes {
    char *to;
    std::uint64_t count;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        const std::uint64_t step = static_cast<std::uint64_t>(block.num_threads()) * blocks;
        for (std::uint64_t i = block_index * static_cast<std::uint64_t>(block.num_threads()) + block.thread_rank();
             i < count; i += step)
            to[i] = static_cast<char>(message_byte(1, i));
    }
};
struct check_bytes {
    const char *in;
    std::uint64_t count, stride;  // byte i is the message's byte i * stride
    report *errors;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        const std::uint64_t step = static_cast<std::uint64_t>(block.num_threads()) * blocks;
        for (std::uint64_t i = block_index * static_cast<std::uint64_t>(block.num_threads()) + block.thread_rank();
             i < count; i += step) {
            const auto expected = message_byte(1, i * stride), found = static_cast<unsigned char>(in[i]);
            if (expected != found) complain(errors, wrong::byte, 0, 0, i, expected, found);
        }
    }
};

void more_than_an_int(session &s) {
    s.what = "more than 2^31 elements";
    const std::uint64_t count = (1ull << 31) + 17;
    MPI_Datatype other;
    must(MPI_Type_create_resized(MPI_BYTE, 0, 2, &other), "MPI_Type_create_resized");
    must(MPI_Type_commit(&other), "MPI_Type_commit");
    memory elements(s, 2 * count), packed(s, count);
    s.run(2048, 512, fill_bytes{elements.at(), 2 * count});
    s.device->set(packed.at(), 0, count);
    cudaStream_t stream;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    const auto n = static_cast<MPI_Count>(count);
    MPI_Count position = 0;
    must(MPIX_Pack_enqueue(elements.at(), n, other, packed.at(), n, &position, MPI_COMM_SELF, stream),
         "MPIX_Pack_enqueue");
    REQUIRE(position == n, "position is %lld", static_cast<long long>(position));
    check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    s.run(2048, 512, check_bytes{packed.at(), count, 2, s.errors});
    // Back into other memory, of which every byte is then as it was.
    position = 0;
    must(MPIX_Unpack_enqueue(packed.at(), n, &position, elements.at(), n, other, MPI_COMM_SELF, stream),
         "MPIX_Unpack_enqueue");
    check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    s.run(2048, 512, check_bytes{elements.at(), 2 * count, 1, s.errors});
    check_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
    must(MPI_Type_free(&other), "MPI_Type_free");
}

void only_on_a_gpu(session &s, std::mt19937_64 &random) {
    begin("kinds of memory");
    kinds_of_memory(s, random);
    begin("launches");
    launches(s, random);
    if (!s.quick) {  // compute-sanitizer may have launches wait, and so the first of these
        begin("freed in use");
        freed_in_use(s, random);
        begin("more than an int");
        more_than_an_int(s);
    }
    begin("host memory in a stream");
    int host = 0;
    MPI_Count position = 0;
    must_refuse(MPIX_Pack_enqueue(&host, 1, MPI_INT, &host, 4, &position, MPI_COMM_WORLD, nullptr), MPI_ERR_BUFFER,
                "MPIX_Pack_enqueue of host memory");
}

#else

// ---- what only the host has: the MPI library takes part -------------------------------------------------------

// One side packs with mpix, the other unpacks with the MPI library, and the other way round; and both agree on sizes.
void with_the_library(session &s, std::mt19937_64 &random) {
    type_maker maker(s.seed + 1);
    for (int n = 0; n < 300; ++n) {
        sample type = maker.make(n % 4);
        s.what = "type " + std::to_string(n) + ": " + type.text;
        commit(type);
        const auto at = offsets(type, 2);
        // What the libraries themselves get wrong: see plan_test.cpp.
        if (at.empty() || type.empty_part || type.backwards || type.long_double || overlaps(at)) continue;
        const int size = static_cast<int>(at.size());
        arena from(type, 2), to(type, 2);
        fill(from.bytes, random);
        arena expected = to;
        for (const std::int64_t byte : at) expected.buffer()[byte] = from.buffer()[byte];
        for (const bool pack_by_library : {false, true}) {
            bytes packed(at.size());
            int in = 0, out = 0, bound = 0;
            must((pack_by_library ? PMPI_Pack : MPI_Pack)(from.buffer(), 2, type.type, packed.data(), size, &in,
                                                          MPI_COMM_WORLD),
                 "MPI_Pack");
            must((pack_by_library ? MPI_Unpack : PMPI_Unpack)(packed.data(), size, &out, to.buffer(), 2, type.type,
                                                              MPI_COMM_WORLD),
                 "MPI_Unpack");
            must(MPI_Pack_size(2, type.type, MPI_COMM_WORLD, &bound), "MPI_Pack_size");
            REQUIRE(in == size && out == size && bound == size, "%s: %d, %d, %d bytes", s.what.c_str(), in, out, bound);
            same(s, to.bytes, expected.bytes,
                 pack_by_library ? "by the library, then mpix" : "by mpix, then the library");
            std::fill(to.bytes.begin(), to.bytes.end(), char{});
        }
    }
}

// A type that does not explain itself is the library's business.
void fall_through(session &s) {
    s.what = "a Fortran type";
    MPI_Datatype real;
    if (MPI_Type_create_f90_real(6, 30, &real) != MPI_SUCCESS) return;
    const float from[] = {1.5f, 2.5f};
    float to[2] = {};
    char packed[64];
    int position = 0, size = 0;
    must(MPI_Pack_size(2, real, MPI_COMM_WORLD, &size), "MPI_Pack_size");
    must(MPI_Pack(from, 2, real, packed, size, &position, MPI_COMM_WORLD), "MPI_Pack");
    REQUIRE(position == 8, "position is %d", position);
    position = 0;
    must(MPI_Unpack(packed, size, &position, to, 2, real, MPI_COMM_WORLD), "MPI_Unpack");
    REQUIRE(to[0] == 1.5f && to[1] == 2.5f, "%f, %f", to[0], to[1]);
}

#if MPI_VERSION >= 4
void large_counts(session &s) {
    s.what = "large counts";
    const sample type = rows(4, 3, 8);
    bytes from(64), packed(16), to(64);
    for (std::size_t n = 0; n < from.size(); ++n) from[n] = static_cast<char>(n + 1);
    MPI_Count position = 2, size = 0;
    must(MPI_Pack_size_c(MPI_Count{1} << 40, type.type, MPI_COMM_WORLD, &size), "MPI_Pack_size_c");
    REQUIRE(size == MPI_Count{12} << 40, "%lld bytes", static_cast<long long>(size));
    must(MPI_Pack_c(from.data(), 1, type.type, packed.data(), 14, &position, MPI_COMM_WORLD), "MPI_Pack_c");
    REQUIRE(position == 14, "position is %lld", static_cast<long long>(position));
    must_refuse(MPI_Pack_c(from.data(), MPI_Count{1} << 60, type.type, packed.data(), 14, &position, MPI_COMM_WORLD),
                MPI_ERR_COUNT, "MPI_Pack_c of more bytes than can be counted");
    position = 2;
    must(MPI_Unpack_c(packed.data(), 14, &position, to.data(), 1, type.type, MPI_COMM_WORLD), "MPI_Unpack_c");
    for (const std::int64_t at : type.map) REQUIRE(to[at] == from[at], "byte %lld", static_cast<long long>(at));
    int small = 0;
    must_refuse(MPI_Pack_size(1 << 30, type.type, MPI_COMM_WORLD, &small), MPI_ERR_COUNT,
                "MPI_Pack_size beyond an int");
    REQUIRE(small == MPI_UNDEFINED, "MPI_Pack_size says %d", small);
}
#else
void large_counts(session &) {}
#endif

void only_on_the_host(session &s, std::mt19937_64 &random) {
    begin("with the library");
    with_the_library(s, random);
    fall_through(s);
    large_counts(s);
    int host = 0;
    MPI_Count position = 0;
    must_refuse(MPIX_Pack_enqueue(&host, 1, MPI_INT, &host, 4, &position, MPI_COMM_WORLD, nullptr), MPI_ERR_BUFFER,
                "MPIX_Pack_enqueue of host memory");
}

#endif

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device pack");
    std::mt19937_64 random(s.seed);
#ifdef __CUDACC__
    begin("the second call");
    second_call(s, random);
#endif
    begin("random types");
    random_types(s, random);
    begin("rows of all lengths");
    rows_of_all_lengths(s, random);
    begin("tables");
    tables(s, random);
    begin("many bytes");
    many_bytes(s, random);
    begin("errors");
    errors(s);
#ifdef __CUDACC__
    only_on_a_gpu(s, random);
#else
    only_on_the_host(s, random);
#endif
    return s.finish();
}
