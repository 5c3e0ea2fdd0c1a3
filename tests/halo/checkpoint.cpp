// SPDX-License-Identifier: BSD-3-Clause
//
// Checkpoints. Random programs: some ranks write fields, others read them, with other boxes and layouts, and every byte
// of the file and of all memory is compared. Files that are damaged, cut short, or of another program; files that cannot
// be written. Linked with the library's own parts, for pieces of any length.
//
//   checkpoint [--seed N] [--programs N]
//   checkpoint write|end|read PATH STEP        for killed.py; end: of the program, in the middle of writing
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "host/halo/grid_internals.h"
#include "host/halo_files/checkpoint.h"
#include "host/halo_files/field_data.h"
#include "host/halo_files/shared_file.h"
#include "tests/halo/file_test.hpp"
#include "tests/halo/sample_fields.hpp"

using namespace file_test;
using namespace sample_fields;

namespace {

// ---- files ---------------------------------------------------------------------------------------------

void store(const std::string &path, const bytes &content) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char *>(content.data()), static_cast<std::streamsize>(content.size()));
}
bool is_there(const std::string &path) { return ::access(path.c_str(), F_OK) == 0; }

std::int64_t number_at(const bytes &file, std::size_t place) {
    std::int64_t number = 0;
    std::memcpy(&number, file.data() + place, sizeof number);
    return number;
}

// ---- random programs -----------------------------------------------------------------------------------

class program {
public:
    program(unsigned seed, std::string path) : path_(std::move(path)), shared_(seed) {
        own_.seed(seed * 64 + static_cast<unsigned>(world_rank));
    }

    void run() {
        for (int a = 0, dimensions = pick(1, 3); a < dimensions; ++a)
            extent_.push_back(dimensions == 1 ? pick(4, 90) : pick(a == 0 ? 4 : 1, 9));
        for (int f = pick(0, 3); f > 0; --f) shapes_.push_back(random_shape(f));
        const auto step = static_cast<std::int64_t>((std::uint64_t{shared_()} << 32) + shared_());
        const int writers = pick(1, world_size), readers = pick(1, world_size);
        constexpr std::array<std::int64_t, 4> lengths{1, 40, 300, halo::usual_piece_bytes};
        const std::int64_t written = lengths[static_cast<std::size_t>(pick(0, 3))];
        const std::int64_t read = lengths[static_cast<std::size_t>(pick(0, 3))];
        // Of the same shapes, and in any order; some of them are not read.
        std::vector<shape> wanted = shapes_;
        std::shuffle(wanted.begin(), wanted.end(), shared_);
        if (!wanted.empty() && pick(0, 2) == 0) wanted.pop_back();
        for (shape &s : wanted)
            if (pick(0, 3) == 0) s.type = halo::value_type::bytes;

        on(writers, world_rank < writers, -world_rank, [&](const halo::grid &g) {
            std::vector<memory> all = memories(g, shapes_);
            for (memory &m : all) m.fill();
            halo::write_checkpoint_checked(g, path_, descriptions(all), step, {}, written);
            for (const memory &m : all) expect(m.is_filled(), "writing has changed a field");
        });
        if (world_rank == 0) check_file(step);
        on(readers, world_size - world_rank <= readers, world_rank, [&](const halo::grid &g) {
            std::vector<memory> all = memories(g, wanted);
            const std::int64_t found = halo::read_checkpoint_checked(g, path_, descriptions(all), {}, read);
            expect(found == step, "the step is another one");
            for (const memory &m : all) expect(m.is_filled(), "reading gives other bytes");
        });
    }

private:
    int pick(int least, int most) {
        return least + static_cast<int>(shared_() % static_cast<unsigned>(most - least + 1));
    }

    shape random_shape(int number) {
        constexpr std::array<std::size_t, 6> sizes{1, 2, 3, 4, 8, 24};
        shape s;
        s.name = std::string(static_cast<std::size_t>(pick(0, 20)), '<') + std::to_string(number);
        s.value = sizes[static_cast<std::size_t>(pick(0, 5))];
        s.components = pick(1, 3);
        s.key = shared_();
        for (std::size_t a = 0; a < extent_.size(); ++a) s.staggered[a] = pick(0, 2) == 0;
        if (s.value == 4 && pick(0, 1)) s.type = halo::value_type::float32;
        if (s.value == 8 && pick(0, 1)) s.type = halo::value_type::uint64;
        return s;
    }

    // Runs on the ranks that are `in`; all ranks wait for them.
    void on(int ranks, bool in, int key, const std::function<void(const halo::grid &)> &work) {
        halo::grid_options options;
        // Not all domains can be cut into more than four boxes that are not empty.
        if (pick(0, 1) || ranks > 4) choose_boxes(extent_, ranks, shared_, options);
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, in ? 0 : MPI_UNDEFINED, key, &comm);
        if (in) {
            work(halo::grid(comm, extent_, options));
            MPI_Comm_free(&comm);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }

    std::vector<memory> memories(const halo::grid &g, const std::vector<shape> &shapes) {
        std::vector<memory> all;
        for (const shape &s : shapes) all.emplace_back(g, s, own_);
        return all;
    }
    static std::vector<halo::named_field> descriptions(std::vector<memory> &all) {
        std::vector<halo::named_field> described;
        for (memory &m : all) described.push_back(m.description());
        return described;
    }

    // Cell by cell, x fastest, each field at a multiple of 64 bytes.
    void check_file(std::int64_t step) const {
        const bytes file = content_of(path_);
        expect(file.size() >= 64 && number_at(file, 24) == step, "the file has another step");
        if (file.size() < 64) return;
        bytes expected(static_cast<std::size_t>(number_at(file, 16)));
        std::copy_n(file.begin(), std::min(expected.size(), file.size()), expected.begin());
        for (const shape &s : shapes_) {
            expected.resize((expected.size() + 63) / 64 * 64);
            for_each_cell(domain_of(extent_, s.staggered), [&](const index3 &cell) {
                for (std::size_t byte = 0; byte < s.cell(); ++byte) expected.push_back(s.at(cell, byte));
            });
        }
        expect(file == expected, "the file has other bytes");
        expect(!is_there(path_ + ".partial"), "the temporary file is left");
    }

    std::string path_;
    std::mt19937 shared_, own_;
    std::vector<std::int64_t> extent_;
    std::vector<shape> shapes_;
};

// ---- failures ------------------------------------------------------------------------------------------

constexpr std::int64_t nx = 30, ny = 20;

struct sample {
    explicit sample(std::vector<std::int64_t> extent = {nx, ny})
        : g(MPI_COMM_WORLD, extent),
          u(g, {"u", 8, halo::value_type::float64, 3, 11}, random),
          v(g, {"v", 4, halo::value_type::int32, 1, 12}, random) {}
    std::vector<halo::named_field> fields() { return {u.description(), v.description()}; }
    void fill() {
        u.fill();
        v.fill();
    }

    halo::grid g;
    std::mt19937 random{static_cast<unsigned>(world_rank)};
    memory u, v;
};

void wrong_arguments(const std::string &path) {
    sample s;
    const std::string last = "rank " + std::to_string(world_size - 1) + ": ";
    const bool am_last = world_rank == world_size - 1;
    const auto with = [&](int error_class, const std::string &words, auto change) {
        std::vector<halo::named_field> fields = s.fields();
        std::string where = path;
        change(where, fields);
        refused(error_class, "mpix::halo::write_checkpoint, " + words,
                [&] { halo::write_checkpoint(s.g, where, fields); });
        refused(error_class, "mpix::halo::read_checkpoint, " + words,
                [&] { halo::read_checkpoint(s.g, where, fields); });
    };
    with(MPI_ERR_ARG, "rank 0: path is empty", [](auto &where, auto &) { where.clear(); });
    with(MPI_ERR_ARG, "rank 0: path has a null character", [](auto &where, auto &) { where.push_back('\0'); });
    with(MPI_ERR_ARG, "rank 0: fields[1].name is empty", [](auto &, auto &f) { f[1].name.clear(); });
    with(MPI_ERR_ARG, "rank 0: fields[0].name has 256 characters; at most 255",
         [](auto &, auto &f) { f[0].name.assign(256, 'x'); });
    with(MPI_ERR_ARG, "rank 0: fields[0].name has a character that is not printable ASCII",
         [](auto &, auto &f) { f[0].name = "\xcf\x81"; });
    with(MPI_ERR_ARG, "rank 0: fields[1].name is u, which is that of fields[0]",
         [](auto &, auto &f) { f[1].name = "u"; });
    with(MPI_ERR_ARG, "rank 0: there are 1025 fields; at most 1024", [](auto &, auto &f) { f.resize(1025, f[0]); });
    with(MPI_ERR_BUFFER, last + "fields[0].field.data is null", [&](auto &, auto &f) {
        if (am_last) f[0].field.data = nullptr;
    });
    with(MPI_ERR_COUNT, "rank 0: fields[0].field: the values of a cell take 3 x 536870912 bytes", [](auto &, auto &f) {
        f[0].field.value_bytes = std::size_t{1} << 29;
        f[0].field.type = halo::value_type::bytes;
        f[0].field.layout.row_bytes = f[0].field.layout.plane_bytes = f[0].field.layout.component_bytes = 0;
    });
    if (world_size == 1) return;
    with(MPI_ERR_ARG, last + "path is " + path + "x here, and " + path + " on rank 0", [&](auto &where, auto &) {
        if (am_last) where += "x";
    });
    with(MPI_ERR_ARG, last + "fields[1].name is w here, and v on rank 0", [&](auto &, auto &f) {
        if (am_last) f[1].name = "w";
    });
    with(MPI_ERR_ARG, last + "fields[0].field.type is uint64 here, and float64 on rank 0", [&](auto &, auto &f) {
        if (am_last) f[0].field.type = halo::value_type::uint64;
    });
    with(MPI_ERR_ARG, last + "fields has 1 entries here, and 2 on rank 0", [&](auto &, auto &f) {
        if (am_last) f.pop_back();
    });
    refused(MPI_ERR_ARG, last + "step is 1 here, and 0 on rank 0",
            [&] { halo::write_checkpoint(s.g, path, s.fields(), am_last); });
}

// Files that a program cannot read: it says why, and no field is changed.
void wrong_files(const std::string &path) {
    sample s;
    const auto unread = [&](int error_class, const std::string &words, const std::vector<halo::named_field> &fields) {
        refused(error_class, "mpix::halo::read_checkpoint, rank 0: " + path + ": " + words,
                [&] { halo::read_checkpoint(s.g, path, fields); });
        expect(s.u.is_fresh() && s.v.is_fresh(), words + ": a field has changed");
    };
    // What rank 0 puts there.
    const auto put = [&](const bytes &content) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (world_rank == 0) store(path, content);
    };
    if (world_rank == 0) std::remove(path.c_str());
    unread(MPI_ERR_NO_SUCH_FILE, "open: No such file or directory", s.fields());
    {
        sample written;
        written.fill();
        halo::write_checkpoint(written.g, path, written.fields(), 7);
    }
    const bytes good = content_of(path);
    const auto changed = [&](auto change) {
        std::vector<halo::named_field> fields = s.fields();
        change(fields[1]);
        return fields;
    };
    unread(MPI_ERR_ARG, "fields[1].name is w; the file has u, v", changed([](auto &f) { f.name = "w"; }));
    unread(MPI_ERR_ARG, "fields[1].field: values have 2 bytes; those of v have 4 in the file", changed([](auto &f) {
               f.field.type = halo::value_type::int16;
               f.field.value_bytes = 2;
           }));
    unread(MPI_ERR_ARG, "fields[1].field.type is float32; that of v is int32 in the file",
           changed([](auto &f) { f.field.type = halo::value_type::float32; }));
    unread(MPI_ERR_ARG, "fields[1].field.layout.components is 1; u has 3 in the file", [&] {
        std::vector<halo::named_field> fields{s.fields()[0]};
        fields.insert(fields.begin(), s.fields()[1]);
        fields[0].name = "other";
        fields[1].field.layout.components = 1;
        fields[0].name = "v";
        return fields;
    }());
    {
        sample other({nx, ny + 1});
        refused(MPI_ERR_ARG, path + ": the file's domain has 30 x 20 x 1 cells, and that of the grid 30 x 21 x 1",
                [&] { halo::read_checkpoint(other.g, path, other.fields()); });
    }

    // Cut short anywhere, or longer.
    const std::size_t header = static_cast<std::size_t>(number_at(good, 16));
    for (std::size_t length = 0; length < good.size(); length += length < header ? 23 : 4001) {
        put(bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)));
        unread(MPI_ERR_IO, "", s.fields());
    }
    bytes longer = good;
    longer.push_back(poison);
    put(longer);
    unread(MPI_ERR_IO,
           "it has " + std::to_string(longer.size()) + " bytes; by its header it has " + std::to_string(good.size()),
           s.fields());
    // The header: unit.checkpoint_header has the rest.
    for (std::size_t at = 0; at < header; at += 7) {
        bytes damaged = good;
        damaged[at] ^= std::byte{0x10};
        put(damaged);
        unread(MPI_ERR_IO, at < 24 ? "" : "checksum is wrong", s.fields());
    }
    put(bytes(4000, std::byte{'x'}));
    unread(MPI_ERR_IO, "it is no checkpoint: it does not begin with mpixhalo", s.fields());
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0 && (std::remove(path.c_str()) != 0 || ::mkdir(path.c_str(), 0777) != 0)) ++failures;
    unread(MPI_ERR_BAD_FILE, "it is no ordinary file", s.fields());
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0) ::rmdir(path.c_str());
}

// What is read is not all there, though it was when the header was checked: the rank whose part it is says so.
void missing_data(const std::string &path) {
    const halo::grid g(MPI_COMM_WORLD, {7 * world_size});
    const halo::grid_state &state = *halo::grid_internals::state_of(g, "missing_data");
    bytes values(7 * 8, poison);
    halo::file_field field{.name = {}, .view = {}, .points = state.domain};
    const halo::field f(values.data(), 8, halo::radius{});
    expect(halo::field_view::make(f, state.local_points({}), 1, field.view).ok(), "no field");
    if (world_rank == 0) store(path, bytes(values.size() * static_cast<std::size_t>(world_size) - 3));
    MPI_Barrier(MPI_COMM_WORLD);
    halo::shared_file file;
    expect(file.open(path, MPI_MODE_RDONLY).ok(), "not opened");
    const mpix::status s = halo::field_data(state, field, halo::usual_piece_bytes).read(file, 0);
    expect(s.message() == (world_rank == world_size - 1 ? "MPI_File_read_at: 53 of 56 bytes" : ""), s.message());
    expect(world_rank == world_size - 1 || values == bytes(values.size()), "reading gives other bytes");
    expect(file.close().ok(), "not closed");
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0) std::remove(path.c_str());
}

// The file that was there remains, and no other one.
void unwritable(const std::string &path) {
    sample s;
    s.fill();
    halo::write_checkpoint(s.g, path, s.fields(), 1);
    const bytes before = content_of(path);
    const auto check = [&](const std::string &words) {
        MPI_Barrier(MPI_COMM_WORLD);
        expect(content_of(path) == before, words + ": the file has changed");
        expect(!is_there(path + ".partial"), words + ": the temporary file is left");
        expect(s.u.is_filled() && s.v.is_filled(), words + ": a field has changed");
        MPI_Barrier(MPI_COMM_WORLD);  // before rank 0 changes something
    };
    std::signal(SIGXFSZ, SIG_IGN);
    // In the header, in the first field, and in the last one.
    for (const std::size_t length : {std::size_t{100}, std::size_t{9000}, before.size() - 1}) {
        limit_files(length);
        refused(-1, path + ".partial: MPI_File_", [&] { halo::write_checkpoint(s.g, path, s.fields(), 2); });
        limit_files(0);
        check("a limit of " + std::to_string(length));
    }
    refused(MPI_ERR_NO_SUCH_FILE, "rank 0: no folder/" + path + ".partial: create: No such file or directory",
            [&] { halo::write_checkpoint(s.g, "no folder/" + path, s.fields(), 2); });
    const std::string folder = path + ".folder";
    if (world_rank == 0) ::mkdir(folder.c_str(), 0777);
    refused(MPI_ERR_BAD_FILE, "rank 0: " + folder + ": rename: Is a directory",
            [&] { halo::write_checkpoint(s.g, folder, s.fields(), 2); });
    MPI_Barrier(MPI_COMM_WORLD);  // rank 0 removes the temporary file before it returns, others may return earlier
    expect(!is_there(folder + ".partial"), "the temporary file is left");
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0) ::rmdir(folder.c_str());
    // One that a program has left, which is longer.
    if (world_rank == 0) store(path + ".partial", bytes(100000, poison));
    halo::write_checkpoint(s.g, path, s.fields(), 1);
    check("a file of another program");
    if (world_rank == 0) std::remove(path.c_str());
}

// Opened on all ranks but the last, which looks into another folder: all ranks throw, and no rank keeps a file open.
void opened_by_some(const std::string &path) {
    if (world_size == 1) return;
    sample s;
    s.fill();
    halo::write_checkpoint(s.g, path, s.fields(), 1);
    const bytes before = content_of(path);
    const bool am_last = world_rank == world_size - 1;
    const std::string last = "rank " + std::to_string(world_size - 1) + ": " + path, folder = path + ".elsewhere";
    const int here = ::open(".", O_RDONLY | O_DIRECTORY);
    if (am_last) {
        // A folder in place of the file that is written, and none that is read.
        std::filesystem::create_directories(folder + "/" + path + ".partial");
        expect(::chdir(folder.c_str()) == 0, "no folder");
    }
    refused(-1, last + ".partial: MPI_File_open: ", [&] { halo::write_checkpoint(s.g, path, s.fields(), 2); });
    refused(MPI_ERR_NO_SUCH_FILE, last + ": MPI_File_open: ", [&] { halo::read_checkpoint(s.g, path, s.fields()); });
    expect(open_files(path) == 0, "a file is still open");
    if (am_last) expect(::fchdir(here) == 0, "no way back");
    ::close(here);
    MPI_Barrier(MPI_COMM_WORLD);  // rank 0 removes what is left
    expect(content_of(path) == before && !is_there(path + ".partial"), "the file has changed, or another one is left");
    MPI_Barrier(MPI_COMM_WORLD);
    // The same grid goes on.
    halo::write_checkpoint(s.g, path, s.fields(), 3);
    expect(halo::read_checkpoint(s.g, path, s.fields()) == 3, "another step");
    expect(open_files(path) == 0, "a file is still open");
    if (am_last) std::filesystem::remove_all(folder);
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0) std::remove(path.c_str());
}

// ---- main ----------------------------------------------------------------------------------------------

// For killed.py.
int step_of_script(const std::string &what, const std::string &path, std::int64_t step) {
    sample s;
    if (what == "read") {
        expect(halo::read_checkpoint(s.g, path, s.fields()) == step, "the step is another one");
        expect(s.u.is_filled() && s.v.is_filled(), "reading gives other bytes");
        return failures;
    }
    s.fill();
    if (what == "end") {  // by SIGXFSZ
        const rlimit none{};
        setrlimit(RLIMIT_CORE, &none);
        limit_files(9000);
    }
    halo::write_checkpoint(s.g, path, s.fields(), step);
    return failures;
}

int all(int argc, char **argv) {
    if (argc == 4 && argv[1][0] != '-') return step_of_script(argv[1], argv[2], std::atoll(argv[3]));
    unsigned first = 1, programs = 10;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--seed") == 0) first = static_cast<unsigned>(std::strtoull(argv[i + 1], nullptr, 10));
        if (std::strcmp(argv[i], "--programs") == 0) programs = static_cast<unsigned>(std::atoi(argv[i + 1]));
    }
    auto process = static_cast<int>(::getpid());
    MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD);
    const std::string path = "checkpoint." + std::to_string(process);
    for (unsigned seed = first; seed < first + programs; ++seed) {
        const int before = failures;
        program(seed, path).run();
        if (failures > before) std::printf("rank %d: seed %u\n", world_rank, seed);
    }
    wrong_arguments(path);
    wrong_files(path);
    missing_data(path);
    unwritable(path);
    opened_by_some(path);
    return failures;
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    int failed = 0, total = 0;
    try {
        failed = all(argc, argv);
    } catch (const halo::error &e) {
        std::printf("rank %d: %s\n", world_rank, e.what());
        std::fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Allreduce(&failed, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return total > 0;
}
