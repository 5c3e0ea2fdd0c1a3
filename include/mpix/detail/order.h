// SPDX-License-Identifier: BSD-3-Clause
//
// Atomic accesses, with the memory order in the name. Words that a GPU, a NIC or another process shares go through
// these; the host's own atomics state a std::memory_order. Each use that orders carries a tag, `// pairs: A1`, which
// docs/dev/memory-order.md explains.
//
// On the device these are operations of the PTX memory model (PTX ISA, "Memory Consistency Model"), on the host of
// C++20's. `_gpu` means device scope, no suffix system scope.
#ifndef MPIX_DETAIL_ORDER_H
#define MPIX_DETAIL_ORDER_H

#include <stdint.h>

#ifdef __CUDACC__
#define MPIX_FN __host__ __device__ __forceinline__
// Cold path; never inlined.
#define MPIX_COLD_FN inline __host__ __device__ __noinline__
// On a GPU a function of its own: in a kernel with bounds it spills less. (Without bounds nvcc gives it registers beside the
// caller's.)
#define MPIX_APART_FN inline __host__ __device__ __noinline__
#else
#define MPIX_FN inline
#define MPIX_COLD_FN __attribute__((noinline, cold)) inline
#define MPIX_APART_FN inline
#endif

// Whether device functions take the paths of GPU threads: on a GPU, and in tests whose host threads stand in for one.
// (The accesses below are the executor's own either way.)
#if defined(__CUDA_ARCH__) || defined(MPIX_FAKE_GPU)
#define MPIX_ON_GPU 1
#else
#define MPIX_ON_GPU 0
#endif

#if !defined(__CUDA_ARCH__)
#include <atomic>
#endif

namespace mpix::detail {

#ifdef __CUDA_ARCH__
// All shared words lie in global memory, a GPU's or mapped. Saying so spares each access the code for shared and local
// memory.
__device__ __forceinline__ uint64_t in_global(const uint64_t *word) { return __cvta_generic_to_global(word); }
#endif

// load_relaxed, store_relaxed: for a value that is complete in itself (a counter, a hint, a write-once word).
MPIX_FN uint64_t load_relaxed(const uint64_t *word) {
#ifdef __CUDA_ARCH__
    uint64_t value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(in_global(word)) : "memory");
    return value;
#else
    return std::atomic_ref<uint64_t>(*const_cast<uint64_t *>(word)).load(std::memory_order_relaxed);
#endif
}

MPIX_FN void store_relaxed(uint64_t *word, uint64_t value) {
#ifdef __CUDA_ARCH__
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(in_global(word)), "l"(value) : "memory");
#else
    std::atomic_ref<uint64_t>(*word).store(value, std::memory_order_relaxed);
#endif
}

// load_pointer, store_pointer: the same for pointers. On the host they acquire and release, which costs nothing there:
// the thread that stored a pointer may have made, or mapped, what it points to.
template <class T>
MPIX_FN T *load_pointer(T *const *word) {
#ifdef __CUDA_ARCH__
    return reinterpret_cast<T *>(load_relaxed(reinterpret_cast<const uint64_t *>(word)));
#else
    return reinterpret_cast<T *>(
        std::atomic_ref<uint64_t>(*const_cast<uint64_t *>(reinterpret_cast<const uint64_t *>(word)))
            .load(std::memory_order_acquire));
#endif
}

template <class T>
MPIX_FN void store_pointer(T **word, T *value) {
#ifdef __CUDA_ARCH__
    store_relaxed(reinterpret_cast<uint64_t *>(word), reinterpret_cast<uint64_t>(value));
#else
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t *>(word))
        .store(reinterpret_cast<uint64_t>(value), std::memory_order_release);
#endif
}

// load_pointer_weak: a write-once pointer. Null may be out of date; anything else is final. On a GPU an ordinary load,
// which a nearer cache may serve.
template <class T>
MPIX_FN T *load_pointer_weak(T *const *word) {
#ifdef __CUDA_ARCH__
    return *word;
#else
    return load_pointer(word);
#endif
}

// load_weak: the same of a number.
MPIX_FN uint64_t load_weak(const uint64_t *word) {
#ifdef __CUDA_ARCH__
    return *word;
#else
    return load_relaxed(word);
#endif
}

MPIX_FN uint64_t load_weak(const uint32_t *word) {
#ifdef __CUDA_ARCH__
    return *word;
#else
    return std::atomic_ref<uint32_t>(*const_cast<uint32_t *>(word)).load(std::memory_order_relaxed);
#endif
}

// load_acquire: all that its writer released before this value is visible to the caller from here on.
MPIX_FN uint64_t load_acquire(const uint64_t *word) {
#ifdef __CUDA_ARCH__
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(in_global(word)) : "memory");
    return value;
#else
    return std::atomic_ref<uint64_t>(*const_cast<uint64_t *>(word)).load(std::memory_order_acquire);
#endif
}

// store_release: all that the caller did, or acquired, is visible to a thread that acquires this value.
MPIX_FN void store_release(uint64_t *word, uint64_t value) {
#ifdef __CUDA_ARCH__
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(in_global(word)), "l"(value) : "memory");
#else
    std::atomic_ref<uint64_t>(*word).store(value, std::memory_order_release);
#endif
}

// fence_acquire: after a load_relaxed of `word`: all that was released before the value loaded, or a later one, is
// visible from here on. Apart from the load because a GPU drops its first-level cache for it. A fence that only
// acquires (PTX 8.6) need not wait for the caller's stores. On the host a load_acquire of the word.
MPIX_FN void fence_acquire(const uint64_t *word) {
#ifdef __CUDA_ARCH__
    (void)word;
#if __CUDA_ARCH__ >= 900 && (__CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 8))
    asm volatile("fence.acquire.sys;" ::: "memory");
#else
    asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
#else
    load_acquire(word);
#endif
}

// reached_acquire: whether a word that only rises is at least `value`; acquires if so. For polling.
MPIX_FN bool reached_acquire(const uint64_t *word, uint64_t value) {
    if (load_relaxed(word) < value) return false;
    fence_acquire(word);
    return true;
}

// load_acquire_pair: two neighbouring words, 16-byte aligned, in one access; acquires both.
MPIX_FN void load_acquire_pair(const uint64_t *words, uint64_t *first, uint64_t *second) {
#ifdef __CUDA_ARCH__
    // PTX allows acquire on scalar loads only; the relaxed vector load followed by the fence is the same pattern by the
    // model.
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(*first), "=l"(*second)
                 : "l"(in_global(words))
                 : "memory");
    fence_acquire(words);
#else
    *first = load_acquire(words);
    *second = load_acquire(words + 1);
#endif
}

// fence_acq_rel: the caller's earlier writes, and those of the group it has synchronised with, are visible to the whole
// system (peer GPUs, host, NIC) before any later store_release_after_fence of the caller. The two together are a
// store_release, split so that one fence can serve several words.
MPIX_FN void fence_acq_rel() {
#ifdef __CUDA_ARCH__
    asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
    // Host: store_release_after_fence is itself a release store there (a stand-alone fence is invisible to
    // ThreadSanitizer).
}

MPIX_FN void store_release_after_fence(uint64_t *word, uint64_t value) {
#ifdef __CUDA_ARCH__
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(in_global(word)), "l"(value) : "memory");
#else
    std::atomic_ref<uint64_t>(*word).store(value, std::memory_order_release);
#endif
}

// Words in their executor's own memory (a GPU's, or the host's): device scope is enough.

MPIX_FN uint64_t load_acquire_gpu(const uint64_t *word) {
#ifdef __CUDA_ARCH__
    uint64_t value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(in_global(word)) : "memory");
    return value;
#else
    return load_acquire(word);
#endif
}

MPIX_FN void store_release_gpu(uint64_t *word, uint64_t value) {
#ifdef __CUDA_ARCH__
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(in_global(word)), "l"(value) : "memory");
#else
    store_release(word, value);
#endif
}

// fetch_max_relaxed_gpu: raise a word to a value, unless it is as high already; returns what it was. On the host acq_rel
// if it does: who finds the value in pready_fast_path::all_moved has what came before it.
MPIX_FN uint64_t fetch_max_relaxed_gpu(uint64_t *word, uint64_t value) {
#ifdef __CUDA_ARCH__
    uint64_t old;
    asm volatile("atom.relaxed.gpu.global.max.u64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(in_global(word)), "l"(value)
                 : "memory");
    return old;
#else
    const std::atomic_ref<uint64_t> shared(*word);
    uint64_t old = shared.load(std::memory_order_relaxed);
    while (old < value &&
           !shared.compare_exchange_weak(old, value, std::memory_order_acq_rel, std::memory_order_relaxed)) {
    }
    return old;
#endif
}

// fetch_max_single_writer: the same where no other thread writes the word meanwhile.
MPIX_FN uint64_t fetch_max_single_writer(uint64_t *word, uint64_t value) {
    const uint64_t old = load_relaxed(word);
    if (old < value) store_relaxed(word, value);
    return old;
}

// fetch_add_acq_rel_gpu: add, by default one, and return the value before. The counter chains its callers: all that
// earlier ones did before their call is visible to later ones, so the last of n callers may speak for all.
MPIX_FN uint64_t fetch_add_acq_rel_gpu(uint64_t *counter) {
#ifdef __CUDA_ARCH__
    uint64_t old;
    asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], 1;" : "=l"(old) : "l"(in_global(counter)) : "memory");
    return old;
#else
    return std::atomic_ref<uint64_t>(*counter).fetch_add(1, std::memory_order_acq_rel);
#endif
}

MPIX_FN uint64_t fetch_add_acq_rel_gpu(uint64_t *counter, uint64_t by) {
#ifdef __CUDA_ARCH__
    uint64_t old;
    asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(in_global(counter)), "l"(by)
                 : "memory");
    return old;
#else
    return std::atomic_ref<uint64_t>(*counter).fetch_add(by, std::memory_order_acq_rel);
#endif
}

// increment_release_gpu: add one. Whoever acquires the sum sees what all that have added to it did before.
MPIX_FN void increment_release_gpu(uint64_t *counter) {
#ifdef __CUDA_ARCH__
    asm volatile("red.release.gpu.global.add.u64 [%0], 1;" ::"l"(in_global(counter)) : "memory");
#else
    std::atomic_ref<uint64_t>(*counter).fetch_add(1, std::memory_order_release);
#endif
}

// increment_relaxed_gpu: the same without order.
MPIX_FN void increment_relaxed_gpu(uint64_t *counter) {
#ifdef __CUDA_ARCH__
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], 1;" ::"l"(in_global(counter)) : "memory");
#else
    std::atomic_ref<uint64_t>(*counter).fetch_add(1, std::memory_order_acq_rel);  // as fetch_add_relaxed_gpu
#endif
}

// fetch_add_relaxed_gpu: as fetch_add_acq_rel_gpu, without order. With a fence_acq_rel before and one behind it chains the callers as
// well. On the host acq_rel, since a fence by itself is nothing there.
MPIX_FN uint64_t fetch_add_relaxed_gpu(uint64_t *counter) {
#ifdef __CUDA_ARCH__
    uint64_t old;
    asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], 1;" : "=l"(old) : "l"(in_global(counter)) : "memory");
    return old;
#else
    return fetch_add_acq_rel_gpu(counter);
#endif
}

MPIX_FN uint64_t fetch_add_relaxed_gpu(uint64_t *counter, uint64_t by) {
#ifdef __CUDA_ARCH__
    uint64_t old;
    asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(in_global(counter)), "l"(by)
                 : "memory");
    return old;
#else
    return fetch_add_acq_rel_gpu(counter, by);
#endif
}

// fetch_add_single_writer: add one where no other thread writes the word meanwhile; the caller orders its calls.
MPIX_FN uint64_t fetch_add_single_writer(uint64_t *counter) {
    const uint64_t old = load_relaxed(counter);
    store_relaxed(counter, old + 1);
    return old;
}

// compare_exchange_acq_rel_gpu: replace *expected by `desired` if it is there; otherwise *expected becomes what is.
// Acquires what was found either way; releases on success.
MPIX_FN bool compare_exchange_acq_rel_gpu(uint64_t *word, uint64_t *expected, uint64_t desired) {
#ifdef __CUDA_ARCH__
    uint64_t old;
    asm volatile("atom.acq_rel.gpu.global.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(old)
                 : "l"(in_global(word)), "l"(*expected), "l"(desired)
                 : "memory");
    const bool done = old == *expected;
    *expected = old;
    return done;
#else
    return std::atomic_ref<uint64_t>(*word).compare_exchange_strong(*expected, desired, std::memory_order_acq_rel);
#endif
}

// cas_acq_rel_gpu: the same without saying what was found.
MPIX_FN bool cas_acq_rel_gpu(uint64_t *word, uint64_t expected, uint64_t desired) {
    return compare_exchange_acq_rel_gpu(word, &expected, desired);
}

// cas_relaxed_gpu: without order, for a counter whose value alone decides. (The free slots are acquired elsewhere.)
MPIX_FN bool cas_relaxed_gpu(uint64_t *counter, uint64_t expected, uint64_t desired) {
#ifdef __CUDA_ARCH__
    uint64_t old;
    asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(old)
                 : "l"(in_global(counter)), "l"(expected), "l"(desired)
                 : "memory");
    return old == expected;
#else
    return std::atomic_ref<uint64_t>(*counter).compare_exchange_strong(expected, desired, std::memory_order_relaxed);
#endif
}

// set_flag_seq_cst, test_flag_seq_cst: for two parties without a common atomic exchange (a GPU and a host, across
// PCIe). Each sets its own flag, then tests the other's: at least one of them finds the other's set (Dekker). A party
// that finds it clear has also acquired what came before it was cleared by store_release.
MPIX_FN void set_flag_seq_cst(uint64_t *own) {
#ifdef __CUDA_ARCH__
    asm volatile("st.relaxed.sys.global.u64 [%0], 1;\n\tfence.sc.sys;" ::"l"(in_global(own)) : "memory");
#else
    std::atomic_ref<uint64_t>(*own).store(1, std::memory_order_seq_cst);
#endif
}
MPIX_FN bool test_flag_seq_cst(const uint64_t *others) {
#ifdef __CUDA_ARCH__
    return load_acquire(others) != 0;  // behind the fence of set_flag_seq_cst
#else
    return std::atomic_ref<uint64_t>(*const_cast<uint64_t *>(others)).load(std::memory_order_seq_cst) != 0;
#endif
}

// ---- between an executor and a NIC, hardware or software ----
//
// Doorbell records and the last word of a completion-queue entry have 32 bits.

#ifdef __CUDA_ARCH__
__device__ __forceinline__ uint64_t in_global(const uint32_t *word) { return __cvta_generic_to_global(word); }
#endif

// store_release_record: the work-queue entries that the caller wrote or acquired, and their payload, are visible to the
// NIC before this doorbell record.
MPIX_FN void store_release_record(uint32_t *record, uint32_t value) {
#ifdef __CUDA_ARCH__
    asm volatile("fence.acq_rel.sys;\n\tst.relaxed.sys.global.u32 [%0], %1;" ::"l"(in_global(record)), "r"(value)
                 : "memory");
#else
    std::atomic_ref<uint32_t>(*record).store(value, std::memory_order_release);
#endif
}

// load_acquire_record: the software NIC's counterpart: what was handed over with this doorbell record can be read.
inline uint32_t load_acquire_record(const uint32_t *record) {
#ifdef __CUDA_ARCH__
    return 0;  // host only
#else
    return std::atomic_ref<uint32_t>(*const_cast<uint32_t *>(record)).load(std::memory_order_acquire);
#endif
}

// store_release_mmio: ring the NIC's doorbell register, after the doorbell record, which the NIC then reads. The host
// may have mapped the register write-combining, for which C++ has no order; hence the processor's barriers, the second
// so that the store does not linger.
MPIX_FN void store_release_mmio(uint64_t *doorbell, uint64_t value) {
#ifdef __CUDA_ARCH__
    asm volatile("fence.acq_rel.sys;\n\tst.mmio.relaxed.sys.global.u64 [%0], %1;" ::"l"(in_global(doorbell)), "l"(value)
                 : "memory");
#else
    const auto drain_stores = [] {
#if defined(__x86_64__)
        asm volatile("sfence" ::: "memory");
#elif defined(__aarch64__)
        asm volatile("dmb oshst" ::: "memory");
#endif
    };
    drain_stores();
    std::atomic_ref<uint64_t>(*doorbell).store(value, std::memory_order_relaxed);
    drain_stores();
#endif
}

// load_relaxed, store_relaxed of 32 bits.
MPIX_FN uint32_t load_relaxed(const uint32_t *word) {
#ifdef __CUDA_ARCH__
    uint32_t value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(in_global(word)) : "memory");
    return value;
#else
    return std::atomic_ref<uint32_t>(*const_cast<uint32_t *>(word)).load(std::memory_order_relaxed);
#endif
}
MPIX_FN void store_relaxed(uint32_t *word, uint32_t value) {
#ifdef __CUDA_ARCH__
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(in_global(word)), "r"(value) : "memory");
#else
    std::atomic_ref<uint32_t>(*word).store(value, std::memory_order_relaxed);
#endif
}

// load_relaxed_pair, store_relaxed_pair: two neighbouring words, 16-byte aligned, in one access; each is whole by
// itself.
MPIX_FN void load_relaxed_pair(const uint64_t *words, uint64_t *first, uint64_t *second) {
#ifdef __CUDA_ARCH__
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(*first), "=l"(*second)
                 : "l"(in_global(words))
                 : "memory");
#else
    *first = load_relaxed(words);
    *second = load_relaxed(words + 1);
#endif
}
MPIX_FN void store_relaxed_pair(uint64_t *words, uint64_t first, uint64_t second) {
#ifdef __CUDA_ARCH__
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(in_global(words)), "l"(first), "l"(second)
                 : "memory");
#else
    store_relaxed(words, first);
    store_relaxed(words + 1, second);
#endif
}

// exchange_acquire: the host takes a word that kernels may store to at any time: what is stored later is not lost.
inline uint64_t exchange_acquire(uint64_t *word, uint64_t value) {
#ifdef __CUDA_ARCH__
    return 0;  // host only
#else
    return std::atomic_ref<uint64_t>(*word).exchange(value, std::memory_order_acquire);
#endif
}

// A clock in nanoseconds, for deadlines.
MPIX_FN uint64_t now_ns();

}  // namespace mpix::detail

#if !defined(__CUDA_ARCH__)
#include <time.h>
#endif

namespace mpix::detail {

MPIX_FN uint64_t now_ns() {
#ifdef __CUDA_ARCH__
    uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
#endif
}

}  // namespace mpix::detail

#endif  // MPIX_DETAIL_ORDER_H
