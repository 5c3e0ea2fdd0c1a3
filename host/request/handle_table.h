// SPDX-License-Identifier: BSD-3-Clause
//
// From a handle to our object, without a lock on the reading side: MPI_Pready looks its request up on every
// call, from any number of threads, while other threads may be making and freeing other requests.
#ifndef MPIX_HOST_REQUEST_HANDLE_TABLE_H
#define MPIX_HOST_REQUEST_HANDLE_TABLE_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace mpix {

// Open addressing with linear probing. A reader that misses costs one probe in an empty table. Keys are
// handles, pointer or int, widened to 64 bits; `key_empty` never is one (MPI never hands it out: it would
// be an odd pointer, or an int of neither sign extension).
template <class Object>
class handle_table {
public:
    handle_table() { current_.store(add_slots(64), std::memory_order_release); }  // pairs: H1
    handle_table(const handle_table &) = delete;
    handle_table &operator=(const handle_table &) = delete;

    // The object of `key`, or null. The caller knows that nobody removes this key meanwhile (MPI: a request
    // is not freed while another thread uses it).
    Object *find(std::uint64_t key) const {
        // acquire: pairs with the release in rebuild, so that the new slots' contents are there.
        const slots &table = *current_.load(std::memory_order_acquire);  // pairs: H1
        for (std::size_t at = hash(key) & table.mask;;) {
            const entry_type &e = table.entry[at];
            const std::uint64_t here = e.key.load(std::memory_order_acquire);  // pairs: H2
            if (here != key) [[unlikely]] {
                if (here == key_empty) return nullptr;
                at = (at + 1) & table.mask;
                continue;
            }
            // acquire: pairs with the release in put, so that who sees another key's object sees that this key had left
            // the slot before: a tombstone may go, and its slot be taken, between the two loads.
            Object *const object = e.object.load(std::memory_order_acquire);  // pairs: H2
            if (e.key.load(std::memory_order_relaxed) == key) return object;
            at = hash(key) & table.mask;
        }
    }

    void insert(std::uint64_t key, Object *object) {
        const std::lock_guard lock(mutex_);
        slots *table = current_.load(std::memory_order_relaxed);
        if ((used_ + 1) * 2 > table->mask + 1) table = rebuild(*table);
        put(*table, key, object);
        live_.fetch_add(1, std::memory_order_relaxed);
    }

    void remove(std::uint64_t key) {
        const std::lock_guard lock(mutex_);
        slots &table = *current_.load(std::memory_order_relaxed);
        for (std::size_t at = hash(key) & table.mask;; at = (at + 1) & table.mask) {
            const std::uint64_t here = table.entry[at].key.load(std::memory_order_relaxed);
            if (here == key_empty) return;
            if (here != key) continue;
            // pairs: H2
            if (table.entry[at].object.exchange(nullptr, std::memory_order_acq_rel) != nullptr)
                live_.fetch_sub(1, std::memory_order_relaxed);
            // The key stays as a tombstone that finds nothing, so that probes past it go on; but no probe
            // goes past the last of a run, so from there backwards tombstones become empty again.
            while (table.entry[(at + 1) & table.mask].key.load(std::memory_order_relaxed) == key_empty &&
                   table.entry[at].key.load(std::memory_order_relaxed) != key_empty &&
                   table.entry[at].object.load(std::memory_order_relaxed) == nullptr) {
                table.entry[at].key.store(key_empty, std::memory_order_release);  // pairs: H2
                --used_;
                at = (at - 1) & table.mask;
            }
            return;
        }
    }

    std::size_t size() const { return live_.load(std::memory_order_relaxed); }

    static constexpr std::uint64_t key_empty = 0x8000000000000001u;

private:
    struct entry_type {
        std::atomic<std::uint64_t> key{key_empty};
        std::atomic<Object *> object{nullptr};
    };
    struct slots {
        explicit slots(std::size_t n) : mask(n - 1), entry(n) {}
        std::size_t mask;
        std::vector<entry_type> entry;
    };

    static std::size_t hash(std::uint64_t key) {
        key *= 0x9e3779b97f4a7c15u;
        return static_cast<std::size_t>(key ^ (key >> 29));
    }

    slots *add_slots(std::size_t n) {
        all_.push_back(std::make_unique<slots>(n));
        return all_.back().get();
    }

    void put(slots &table, std::uint64_t key, Object *object) {
        for (std::size_t at = hash(key) & table.mask;; at = (at + 1) & table.mask) {
            const std::uint64_t here = table.entry[at].key.load(std::memory_order_relaxed);
            if (here != key && here != key_empty) continue;
            table.entry[at].object.store(object, std::memory_order_release);  // pairs: H2
            if (here == key_empty) {
                ++used_;
                // release: a reader that sees the key sees the object.
                table.entry[at].key.store(key, std::memory_order_release);  // pairs: H2
            }
            return;
        }
    }

    // A table without tombstones, larger if that is needed. Old tables stay, since readers may still be in
    // them.
    slots *rebuild(const slots &old) {
        std::size_t n = 64;
        while (n < (size() + 1) * 4) n *= 2;
        slots *table = add_slots(n);
        used_ = 0;
        for (const entry_type &e : old.entry)
            if (Object *object = e.object.load(std::memory_order_relaxed))
                put(*table, e.key.load(std::memory_order_relaxed), object);
        current_.store(table, std::memory_order_release);  // pairs: H1
        return table;
    }

    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<slots>> all_;
    std::atomic<slots *> current_{nullptr};
    std::size_t used_ = 0;
    std::atomic<std::size_t> live_{0};  // changed under the mutex
};

}  // namespace mpix

#endif  // MPIX_HOST_REQUEST_HANDLE_TABLE_H
