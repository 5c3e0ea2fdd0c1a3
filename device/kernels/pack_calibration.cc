// SPDX-License-Identifier: BSD-3-Clause
//
// What packing costs on a GPU, as it is measured once in a process: by the kernels and the copy engine. The GPU's memory is
// given back.
#include <cuda_runtime.h>

#include <algorithm>

#include "device/kernels/best_time.h"
#include "device/kernels/device_state.h"
#include "device/kernels/launch.h"

namespace mpix::gpu {
namespace {

constexpr int64_t KiB = 1024, MiB = KiB * KiB;
// Of elements and packed bytes: together more than a second-level cache holds.
constexpr int64_t memory_bytes = 96 * MiB, packed_bytes = 48 * MiB;
// Of page-locked memory, which is kept: cudaFreeHost would wait for the user's kernels.
constexpr int64_t host_bytes = 2 * MiB;

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
        cudaGetLastError();
    }
    bench(const bench &) = delete;
    bench &operator=(const bench &) = delete;

    bool good() const { return good_; }

    double kernel_us(int64_t width, int64_t pitch, int64_t bytes, bool unpack, bool host) {
#if MPIX_HAVE_NVCC
        const mpix_typemap type = rows_of(width, pitch);
        const message m{&type, memory_, 0, packed(host), 0, bytes / width * width, unpack};
        return best_us([&] { return static_cast<cudaError_t>(launch_pack(m, stream_)); });
#else
        static_cast<void>(unpack);
        return rows_us(width, pitch, bytes, host);
#endif
    }
    double rows_us(int64_t width, int64_t pitch, int64_t bytes, bool host) {
        const auto w = static_cast<std::size_t>(width), p = static_cast<std::size_t>(pitch);
        const auto rows = static_cast<std::size_t>(bytes / width);
        return best_us(
            [&] { return cudaMemcpy2DAsync(packed(host), w, memory_, p, w, rows, cudaMemcpyDefault, stream_); });
    }

private:
    void note(cudaError_t error) { good_ = good_ && error == cudaSuccess; }
    char *packed(bool host) const { return host ? static_cast<char *>(host_) : memory_ + memory_bytes; }

    template <class Submit>
    double best_us(const Submit &submit) {
        cudaError_t error = good_ ? cudaSuccess : cudaErrorNotReady;
        const double best = best_time_us(stream_, error, submit);
        note(error);
        return best;
    }

    bool good_ = true;
    cudaStream_t stream_ = nullptr;
    cudaMemPool_t pool_ = nullptr;
    char *memory_ = nullptr;
    void *host_ = nullptr;
};

// Bytes per microsecond of what took longer than nothing.
double rate(int64_t bytes, double us, double nothing) {
    return static_cast<double>(bytes) / std::max(us - nothing, 0.1);
}

// Whoever else used the GPU meanwhile may have made nonsense of it. No GPU is beyond these.
bool plausible(const pack_costs &c) {
    return c.kernel < 100 && c.copy < 100 && c.memory > 1e4 && c.memory < 2e7 && c.cached > 1e4 && c.cached < 1e8 &&
           c.copied_rows[0] < 2e7 && c.copied_rows[1] < 2e7;
}

}  // namespace

pack_costs measure_costs(int device) {
    bench b(device);
    pack_costs c;
    int cache = 0;
    if (cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device) == cudaSuccess && cache > 0)
        c.cache_bytes = cache / 2.0;
    b.kernel_us(KiB, 2 * KiB, packed_bytes, false, false);  // idle clocks are slow ones
    c.kernel = b.kernel_us(KiB, 2 * KiB, 4 * KiB, false, false);
    c.copy = b.rows_us(KiB, 2 * KiB, 4 * KiB, false);
    const int64_t some = 4 * MiB, more = packed_bytes;
    c.cached = rate(2 * some, b.kernel_us(KiB, 2 * KiB, some, false, false), c.kernel);
    c.memory = rate(2 * more, b.kernel_us(KiB, 2 * KiB, more, false, false), c.kernel);
    for (const int odd : {0, 1}) {
        c.copied_rows[odd] = rate(2 * some, b.rows_us(4 * KiB - odd, 8 * KiB - odd, some, false), c.copy);
        const int64_t short_row = odd == 0 ? 16 : 65, rows = MiB / short_row;
        c.row[odd] = 1 / rate(rows, b.rows_us(short_row, 2 * short_row, rows * short_row, false), c.copy);
    }
    c.host = rate(host_bytes, b.kernel_us(KiB, 2 * KiB, host_bytes, false, true), c.kernel);
    c.copied_host = rate(host_bytes, b.rows_us(KiB, 2 * KiB, host_bytes, true), c.copy);
    c.host_row = 1 / rate(host_bytes / 32, b.rows_us(32, 64, host_bytes, true), c.copy);
    constexpr int64_t width[word_classes] = {1, 7, 4, 8, 16, 4 * KiB - 1}, joined = 333;
    for (const int way : {0, 1}) {
        const auto us = [&](int64_t w, int64_t bytes) { return b.kernel_us(w, 2 * w, bytes, way == 1, false); };
        for (int w = 0; w < word_classes; ++w) c.moved[way][w] = rate(2 * MiB, us(width[w], 2 * MiB), c.kernel);
        // Beyond what its bytes take.
        const double bytes = static_cast<double>(some) / c.moved[way][long_joined];
        c.joined_run[way] = std::max(0.0, us(joined, some) - c.kernel - bytes) / static_cast<double>(some / joined);
    }
    if (!b.good() || !plausible(c)) return {};
    c.measured = true;
    return c;
}

}  // namespace mpix::gpu
