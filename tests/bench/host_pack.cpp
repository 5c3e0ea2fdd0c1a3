// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Pack and MPI_Unpack between two pieces of host memory: through mpix, through the MPI library's own (the PMPI_
// names), and by the loop that one would write by hand, in the same run. The three take turns, and the figure is the
// median of each. All three are checked byte for byte, against the blocks written down one by one, before they are
// timed.
#include <mpi.h>
#include <mpix/mpix.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/bench/command_line.hpp"
#include "tests/bench/csv_file.hpp"
#include "tests/bench/host_machine.hpp"
#include "tests/bench/pack_types.hpp"

namespace {

using bench::bench_type;

struct options {
    int rounds = 15;
    double seconds = 0.0002;         // of one turn, at least
    std::int64_t largest = 8 << 20;  // payload
    std::string only;
    const char *csv = nullptr;
};

[[noreturn]] void fail(const std::string &what) {
    std::fprintf(stderr, "bench.host_pack: %s\n", what.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

// ---- types -----------------------------------------------------------------------------------------------------

struct layout {
    std::string kind;
    std::int64_t row = 0, pitch = 0;  // of a vector
    bench_type type;
    int count = 1;  // of elements in a call
};

constexpr std::int64_t most_span = std::int64_t{128} << 20;

// Rows, of the widest basic type that fits: a library may look at it.
layout rows_of(std::int64_t row, std::int64_t pitch, std::int64_t bytes) {
    layout out{"rows", row, pitch, {}, 1};
    const std::int64_t rows = std::max<std::int64_t>(1, std::min(bytes / row, most_span / pitch));
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT, MPI_SHORT, MPI_BYTE};
    int width = 8, t = 0;
    for (; row % width != 0; width /= 2) ++t;
    MPI_Type_vector(static_cast<int>(rows), static_cast<int>(row / width), static_cast<int>(pitch / width), types[t],
                    &out.type.type);
    for (std::int64_t r = 0; r < rows; ++r) out.type.add(r * pitch, row);
    out.type.commit();
    return out;
}

// An n by n matrix of elements of `width` bytes, column by column: contiguous in a resized vector.
layout transpose(int width, std::int64_t bytes) {
    layout out{"transpose of " + std::to_string(width) + "-byte elements", 0, 0, {}, 1};
    int n = 1;
    while (std::int64_t{n + 1} * (n + 1) * width <= bytes) ++n;
    MPI_Datatype element, column, next;
    MPI_Type_contiguous(width / 4, MPI_FLOAT, &element);
    MPI_Type_vector(n, 1, n, element, &column);
    MPI_Type_create_resized(column, 0, width, &next);
    MPI_Type_contiguous(n, next, &out.type.type);
    for (MPI_Datatype *t : {&element, &column, &next}) MPI_Type_free(t);
    for (std::int64_t c = 0; c < n; ++c)
        for (std::int64_t r = 0; r < n; ++r) out.type.add((r * n + c) * width, width);
    out.type.commit();
    return out;
}

// The array of structs, as as many elements as it has.
layout several_structs(std::int64_t bytes) {
    layout out{"structs of 20 and 2 bytes as elements", 0, 0, bench::structs(bytes), 1};
    MPI_Aint at, whole, one;
    MPI_Type_get_extent(out.type.type, &at, &whole);
    out.count = static_cast<int>(out.type.at.size() / 2);
    MPI_Type_free(&out.type.type);
    bench_type single = bench::structs(22);
    MPI_Type_get_extent(single.type, &at, &one);
    if (one * out.count != whole) fail("structs are not where they should be");
    out.type.type = single.type;
    return out;
}

// ---- by hand ---------------------------------------------------------------------------------------------------

// A loop that knows its row, but not the pitch.
template <std::int64_t Row>
void rows_by_hand(char *memory, std::int64_t pitch, std::int64_t rows, char *packed, bool unpack) {
    if (unpack)
        for (std::int64_t r = 0; r < rows; ++r) std::memcpy(memory + r * pitch, packed + r * Row, Row);
    else
        for (std::int64_t r = 0; r < rows; ++r) std::memcpy(packed + r * Row, memory + r * pitch, Row);
}

struct row_loop {
    std::int64_t row;
    void (*loop)(char *, std::int64_t, std::int64_t, char *, bool);
};
template <std::int64_t... Row>
constexpr std::array<row_loop, sizeof...(Row)> loops_for{{{Row, rows_by_hand<Row>}...}};
constexpr auto row_loops = loops_for<1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 100, 128, 256, 1024, 4096>;

// One copy per block, from a list.
void blocks_by_hand(const bench_type &t, char *memory, char *packed, bool unpack) {
    for (std::size_t n = 0; n < t.at.size(); ++n) {
        const auto length = static_cast<std::size_t>(t.length[n]);
        if (unpack)
            std::memcpy(memory + t.at[n], packed, length);
        else
            std::memcpy(packed, memory + t.at[n], length);
        packed += length;
    }
}

// ---- one type, one direction -------------------------------------------------------------------------------------

struct buffers {
    std::vector<char> memory, packed;
};

using work = std::function<void()>;

// Of this thread: on a machine that others use as well, it may have to wait for its turn.
double now() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}
double seconds_of(const work &w, int times) {
    const double start = now();
    for (int n = 0; n < times; ++n) w();
    return (now() - start) / times;
}

// The median time of each, in microseconds.
template <std::size_t N>
std::array<double, N> medians(const std::array<work, N> &ways, const options &o) {
    std::array<int, N> times;
    for (std::size_t w = 0; w < N; ++w) {
        times[w] = 1;
        while (seconds_of(ways[w], times[w]) * times[w] < o.seconds) times[w] *= 2;
    }
    std::array<std::vector<double>, N> took;
    for (int round = 0; round < o.rounds; ++round)
        for (std::size_t turn = 0; turn < N; ++turn) {
            const std::size_t w = (turn + static_cast<std::size_t>(round)) % N;
            took[w].push_back(seconds_of(ways[w], times[w]) * 1e6);
        }
    std::array<double, N> out;
    for (std::size_t w = 0; w < N; ++w) {
        std::sort(took[w].begin(), took[w].end());
        out[w] = took[w][took[w].size() / 2];
    }
    return out;
}

// More than 100 MiB may have to be filled, so it should be quick.
void fill(std::vector<char> &bytes, std::uint64_t seed) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof seed) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const std::uint64_t word = seed ^ seed >> 32;
        std::memcpy(&bytes[at], &word, std::min(sizeof word, bytes.size() - at));
    }
}

// What each way leaves behind is what the blocks say.
void check(const layout &l, buffers &b, const work &way, const char *name, bool unpack) {
    fill(b.memory, 1);
    fill(b.packed, 2);
    buffers wanted = b;
    std::size_t from = 0;
    for (std::size_t n = 0; n < l.type.at.size(); ++n)
        for (std::int64_t i = 0; i < l.type.length[n]; ++i, ++from) {
            char &element = wanted.memory[static_cast<std::size_t>(l.type.at[n] + i)];
            if (unpack)
                element = wanted.packed[from];
            else
                wanted.packed[from] = element;
        }
    way();
    if (b.memory != wanted.memory || b.packed != wanted.packed)
        fail(std::string(name) + (unpack ? ": unpacked" : ": packed") + " bytes are wrong: " + l.kind + ", rows of " +
             std::to_string(l.row) + " at " + std::to_string(l.pitch));
}

void measure(const layout &l, const options &o, std::FILE *csv) {
    const bench_type &t = l.type;
    const std::int64_t bytes = t.bytes();
    std::int64_t reach = 0;
    for (std::size_t n = 0; n < t.at.size(); ++n) reach = std::max(reach, t.at[n] + t.length[n]);
    buffers b{std::vector<char>(static_cast<std::size_t>(reach)), std::vector<char>(static_cast<std::size_t>(bytes))};
    char *const memory = b.memory.data(), *const packed = b.packed.data();
    const int size = static_cast<int>(bytes);
    for (const bool unpack : {false, true}) {
        work by_hand = [&] { blocks_by_hand(t, memory, packed, unpack); };
        for (const row_loop &known : row_loops)
            if (known.row == l.row)
                by_hand = [&, loop = known.loop, rows = static_cast<std::int64_t>(t.at.size())] {
                    loop(memory, l.pitch, rows, packed, unpack);
                };
        const work mpix = [&] {
            int at = 0;
            unpack ? MPI_Unpack(packed, size, &at, memory, l.count, t.type, MPI_COMM_SELF)
                   : MPI_Pack(memory, l.count, t.type, packed, size, &at, MPI_COMM_SELF);
        };
        const work library = [&] {
            int at = 0;
            unpack ? PMPI_Unpack(packed, size, &at, memory, l.count, t.type, MPI_COMM_SELF)
                   : PMPI_Pack(memory, l.count, t.type, packed, size, &at, MPI_COMM_SELF);
        };
        check(l, b, mpix, "mpix", unpack);
        check(l, b, library, "the library", unpack);
        check(l, b, by_hand, "by hand", unpack);
        const auto us = medians<3>({mpix, library, by_hand}, o);
        std::fprintf(csv, "%s,%s,%lld,%lld,%lld,%.4g,%.4g,%.4g,%.2f,%s,%s,%s,%s\n", unpack ? "unpack" : "pack",
                     l.kind.c_str(), static_cast<long long>(l.row), static_cast<long long>(l.pitch),
                     static_cast<long long>(bytes), us[0], us[1], us[2], us[1] / us[0], bench::library_name().c_str(),
                     bench::cpu_model().c_str(), bench::load().c_str(), bench::today().c_str());
        std::fflush(csv);
    }
}

void measure_all(const options &o, std::FILE *csv) {
    const auto take = [&](layout &&l) {
        if (l.kind.find(o.only) != std::string::npos) measure(l, o, csv);
        l.type.free();
    };
    for (const std::int64_t bytes : {std::int64_t{32} << 10, std::int64_t{8} << 20}) {
        if (bytes > o.largest) break;
        for (const row_loop &known : row_loops) {
            const std::int64_t row = known.row, far = std::max<std::int64_t>(1024, 2 * row);
            // 3 or 6 bytes do not divide 1024, so those rows are of bytes or shorts.
            take(rows_of(row, 2 * row, bytes));
            if (far != 2 * row) take(rows_of(row, far, bytes));
        }
        take({"indexed blocks of 1 to 16 doubles", 0, 0, bench::indexed(bytes), 1});
        take({"array of structs of 20 and 2 bytes", 0, 0, bench::structs(bytes), 1});
        take(several_structs(bytes));
        take({"subarray of 4 dimensions", 0, 0, bench::subarray_4d(bytes), 1});
        take(transpose(8, bytes));
        take(transpose(16, bytes));
    }
}

bool parse(int argc, char **argv, options &o) {
    bench::command_line line("", "[--rounds N] [--seconds S] [--largest BYTES] [--only KIND] [--csv FILE|-]");
    line.value("rounds", o.rounds);
    line.value("seconds", o.seconds);
    line.value("largest", o.largest);
    line.value("only", o.only);
    line.value("csv", o.csv);
    return line.read(argc, argv, [&o] { return o.rounds >= 1; });
}

}  // namespace

int main(int argc, char **argv) {
    options o;
    if (!parse(argc, argv, o)) return 2;
    MPI_Init(&argc, &argv);
    const bench::csv_file csv(o.csv != nullptr ? o.csv : "-");
    std::fprintf(csv.get(),
                 "direction,type,row,pitch,bytes,mpix_us,library_us,by_hand_us,library_by_mpix,mpi,cpu,load,date\n");
    measure_all(o, csv.get());
    MPI_Finalize();
    return 0;
}
