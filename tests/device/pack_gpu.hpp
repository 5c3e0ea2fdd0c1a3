// SPDX-License-Identifier: BSD-3-Clause
//
// Packing on a GPU, what hosts have not: streams and graphs, kinds of memory, a type freed while a kernel uses its
// table, more elements than an int counts.
#ifndef MPIX_TESTS_DEVICE_PACK_GPU_HPP
#define MPIX_TESTS_DEVICE_PACK_GPU_HPP

#include "tests/device/pack_samples.hpp"

namespace pack_test {

// A stand-in for a kernel of the user's that waits for something the calling thread does after the call.
static __global__ void wait_for(const std::uint64_t *word, std::uint64_t *gave_up) {
    const std::uint64_t deadline = mpix::detail::now_ns() + patience_ns;
    while (mpix::detail::load_acquire(word) == 0)
        if (mpix::detail::now_ns() > deadline) {
            *gave_up = 1;
            return;
        }
}

// The first call of the process loads kernels and measures what they cost. The second one has nothing to wait for.
inline void second_call(session &s, std::mt19937_64 &random) {
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
    mpix::detail::store_release(words, 1);
    check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    REQUIRE(words[1] == 0, "%s: it waited for a kernel that waits for its end", s.what.c_str());
    same(s, packed.get(), expected, "packed bytes");
    check_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
    s.device->release_shared(words);
}

// The packed side in page-locked, pageable and device memory, the elements in device and in host memory; enough
// bytes for several pieces of staging.
inline void kinds_of_memory(session &s, std::mt19937_64 &random) {
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

inline cudaGraph_t capture(cudaStream_t stream, const auto &work) {
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    work();
    check_cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    return graph;
}

inline std::size_t nodes_of(cudaGraph_t graph) {
    std::size_t nodes = 0;
    check_cuda(cudaGraphGetNodes(graph, nullptr, &nodes), "cudaGraphGetNodes");
    return nodes;
}

// What a call puts into the stream: one launch, whatever the type, and none for no bytes.
inline void launches(session &s, std::mt19937_64 &random) {
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
inline void freed_in_use(session &s, std::mt19937_64 &random) {
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
            while (mpix::detail::load_acquire(static_cast<std::uint64_t *>(word)) == 0 &&
                   mpix::detail::now_ns() < deadline)
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
    mpix::detail::store_release(gate, 1);
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

inline void more_than_an_int(session &s) {
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

inline void only_on_a_gpu(session &s, std::mt19937_64 &random) {
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
}

}  // namespace pack_test

#endif  // MPIX_TESTS_DEVICE_PACK_GPU_HPP
