// SPDX-License-Identifier: BSD-3-Clause
//
// What packing costs on a GPU, as it is measured once in a process: the kernels and the copy engine, timed from the call to
// the end of the stream, the best of a few. The
// GPU's memory is given back.
#include <cuda_runtime.h>
#include <mpix/device/device_state.h>
#include <mpix/device/pack_launch.h>

#include <algorithm>
#include <chrono>

namespace mpix::gpu {
namespace {

constexpr int64_t KiB = 1024, MiB = KiB * KiB;
// Of elements and packed bytes: together more than a second-level cache holds.
constexpr int64_t memory_bytes = 96 * MiB, packed_bytes = 48 * MiB;
// Of page-locked memory, which is kept: cudaFreeHost would wait for the user's kernels.
constexpr int64_t host_bytes = 256 * KiB;
constexpr int repeats = 4;

// Rows at a pitch, endlessly.
mpix_typemap rows_of(int64_t width, int64_t pitch) {
    mpix_typemap type{};
    type.version = MPIX_ABI_VERSION;
    type.kind = MPIX_TYPEMAP_GRID;
    type.size = width;
    type.extent = pitch;
    type.by_size = detail::make_divisor(width);
    type.high = width;
    type.alignment = static_cast<uint64_t>(width);
    type.grid.end = type.grid.run = width;
    type.grid.dimensions = 1;
    type.grid.by_cells = detail::make_divisor(width / 16 + (width % 16 + 30) / 16);
    type.grid.step[0] = {type.by_size, pitch, int64_t{1} << 62};
    return type;
}

class bench {
public:
    explicit bench(int device) {
        // Another thread may be capturing a graph; nothing of this is to be in it, or forbidden by it.
        cudaThreadExchangeStreamCaptureMode(&mode_);
        cudaMemPoolProps properties{};
        properties.allocType = cudaMemAllocationTypePinned;
        properties.location.type = cudaMemLocationTypeDevice;
        properties.location.id = device;
        note(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        note(cudaMemPoolCreate(&pool_, &properties));
        void *memory = nullptr;
        if (good_) note(cudaMallocFromPoolAsync(&memory, memory_bytes + packed_bytes, pool_, stream_));
        memory_ = static_cast<char *>(memory);
        if (good_) note(cudaHostAlloc(&host_, host_bytes, cudaHostAllocMapped | cudaHostAllocPortable));
    }
    ~bench() {
        if (memory_ != nullptr) cudaFreeAsync(memory_, stream_);
        if (stream_ != nullptr) cudaStreamSynchronize(stream_);
        if (pool_ != nullptr) cudaMemPoolDestroy(pool_);
        if (stream_ != nullptr) cudaStreamDestroy(stream_);
        cudaThreadExchangeStreamCaptureMode(&mode_);
        cudaGetLastError();
    }
    bench(const bench &) = delete;
    bench &operator=(const bench &) = delete;

    bool good() const { return good_; }

    double kernel_us(int64_t width, int64_t pitch, int64_t bytes, bool unpack, bool host) {
#if MPIX_HAVE_NVCC
        const mpix_typemap type = rows_of(width, pitch);
        const message m{&type, memory_, 0, packed(host), 0, bytes / width * width, unpack};
        return best_us([&] { note(static_cast<cudaError_t>(launch_pack(m, stream_))); });
#else
        static_cast<void>(unpack);
        return rows_us(width, pitch, bytes, host);
#endif
    }
    double rows_us(int64_t width, int64_t pitch, int64_t bytes, bool host) {
        const auto w = static_cast<std::size_t>(width), p = static_cast<std::size_t>(pitch);
        const auto rows = static_cast<std::size_t>(bytes / width);
        return best_us(
            [&] { note(cudaMemcpy2DAsync(packed(host), w, memory_, p, w, rows, cudaMemcpyDefault, stream_)); });
    }

private:
    void note(cudaError_t error) { good_ = good_ && error == cudaSuccess; }
    char *packed(bool host) const { return host ? static_cast<char *>(host_) : memory_ + memory_bytes; }

    template <class Work>
    double best_us(const Work &work) {
        using clock = std::chrono::steady_clock;
        double best = 0;
        for (int i = 0; i <= repeats && good_; ++i) {
            const auto begin = clock::now();
            work();
            note(cudaStreamSynchronize(stream_));
            const double us = std::chrono::duration<double, std::micro>(clock::now() - begin).count();
            if (i == 1 || (i > 1 && us < best)) best = us;  // the first one loads the kernel
        }
        return best;
    }

    bool good_ = true;
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
    cudaStream_t stream_ = nullptr;
    cudaMemPool_t pool_ = nullptr;
    char *memory_ = nullptr;
    void *host_ = nullptr;
};

// Bytes per microsecond of what took longer than nothing.
double rate(int64_t bytes, double us, double nothing) {
    return static_cast<double>(bytes) / std::max(us - nothing, 0.1);
}

}  // namespace

pack_costs measure_costs(int device) {
    bench b(device);
    pack_costs c;
    int cache = 0;
    if (cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device) == cudaSuccess && cache > 0)
        c.cache_bytes = cache / 2.0;
    c.kernel = b.kernel_us(KiB, 2 * KiB, 4 * KiB, false, false);
    c.copy = b.rows_us(KiB, 2 * KiB, 4 * KiB, false);
    const int64_t some = 4 * MiB, more = packed_bytes;
    c.cached = rate(2 * some, b.kernel_us(KiB, 2 * KiB, some, false, false), c.kernel);
    c.memory = rate(2 * more, b.kernel_us(KiB, 2 * KiB, more, false, false), c.kernel);
    c.copied_rows = rate(2 * some, b.rows_us(KiB, 2 * KiB, some, false), c.copy);
    c.row = 1 / rate(MiB / 16, b.rows_us(16, 32, MiB, false), c.copy);
    c.host = rate(host_bytes, b.kernel_us(KiB, 2 * KiB, host_bytes, false, true), c.kernel);
    c.copied_host = rate(host_bytes, b.rows_us(KiB, 2 * KiB, host_bytes, true), c.copy);
    c.host_row = 1 / rate(64 * KiB / 16, b.rows_us(16, 32, 64 * KiB, true), c.copy);
    constexpr int64_t width[word_classes] = {1, 7, 4, 8, 16};
    for (const bool unpack : {false, true})
        for (int w = 0; w < word_classes; ++w)
            c.moved[unpack ? 1 : 0][w] =
                rate(2 * MiB, b.kernel_us(width[w], 2 * width[w], 2 * MiB, unpack, false), c.kernel);
    if (!b.good()) return {};
    c.measured = true;
    return c;
}

}  // namespace mpix::gpu
