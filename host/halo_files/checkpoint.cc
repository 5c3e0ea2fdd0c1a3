// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_files/checkpoint.h"

#include <mpi.h>

#include <algorithm>

#include "host/field/reduction.h"
#include "host/format.h"
#include "host/halo/collective.h"
#include "host/halo/grid_internals.h"
#include "host/halo_files/checkpoint_header.h"
#include "host/halo_files/file_fields.h"
#include "host/halo_files/posix_file.h"
#include "host/halo_files/shared_file.h"

namespace mpix::halo {
namespace {

constexpr const char *to_write = "mpix::halo::write_checkpoint", *to_read = "mpix::halo::read_checkpoint";

std::string cells_text(const index3 &cells) { return format("{} x {} x {}", cells[0], cells[1], cells[2]); }

// Keeps the first failure.
void note(status &first, const status &next) {
    if (first.ok()) first = next;
}

// ---- writing -------------------------------------------------------------------------------------------

// Collective; what went wrong on this rank.
status write_all(const grid_state &g, const std::string &path, const std::vector<file_field> &fields, std::int64_t step,
                 std::int64_t piece_bytes) {
    checkpoint_header header{.step = step, .extent = g.domain.extent};
    for (const auto &[name, view, points, memory] : fields)
        header.fields.push_back({name, points.extent, view.value_bytes(), view.components(), view.type()});
    shared_file file;
    check_collectively(g.comm, to_write, file.open(path, MPI_MODE_WRONLY).in_context(path + ": "));
    status failed;
    if (g.rank == 0) {
        const std::vector<std::byte> bytes = to_bytes(header);
        failed = file.write_at(0, bytes.data(), static_cast<std::int64_t>(bytes.size()));
    }
    for (std::size_t f = 0; f < fields.size(); ++f)
        note(failed, field_data(g, fields[f], piece_bytes).write(file, header.place_of(f)));
    note(failed, file.sync());
    note(failed, file.close());
    return failed.in_context(path + ": ");
}

}  // namespace

void write_checkpoint_checked(const grid &g, const std::string &path, const std::vector<named_field> &fields,
                              std::int64_t step, const status &given, std::int64_t piece_bytes) {
    const grid_state &state = *grid_internals::state_of(g, to_write);
    const bool first = state.rank == 0;
    const std::vector<file_field> checked = check_file_fields(state, to_write, path, fields, given, {{"step", {step}}});
    const std::string partial = path + ".partial";
    status s;
    if (first) s = remove_file(partial);
    if (first && s.ok()) s = posix_file().create(partial);
    check_collectively(state.comm, to_write, s);
    try {
        check_collectively(state.comm, to_write, write_all(state, partial, checked, step, piece_bytes));
        if (first) s = rename_file(partial, path);
        check_collectively(state.comm, to_write, s);
    } catch (...) {
        if (first) static_cast<void>(remove_file(partial));
        throw;
    }
}

void write_checkpoint(const grid &g, const std::string &path, const std::vector<named_field> &fields,
                      std::int64_t step) {
    write_checkpoint_checked(g, path, fields, step, {});
}

// ---- reading -------------------------------------------------------------------------------------------

namespace {

// The bytes of the header, which are those of one.
status read_header(const std::string &path, std::vector<std::byte> &bytes) {
    posix_file file;
    std::int64_t all = 0, length = 0;
    checkpoint_header header;
    if (status s = file.open(path); !s.ok()) return s;
    if (status s = file.size(all); !s.ok()) return s;
    bytes.resize(static_cast<std::size_t>(std::min<std::int64_t>(all, preamble_bytes)));
    if (status s = file.read(bytes.data(), bytes.size()); !s.ok()) return s;
    if (status s = header_bytes_of(bytes, length); !s.ok()) return s.in_context(path + ": ");
    if (length > all)
        return failure(MPI_ERR_IO, format("{}: header_bytes is {}; the file has {} bytes", path, length, all));
    bytes.resize(static_cast<std::size_t>(length));
    if (status s = file.read(bytes.data() + preamble_bytes, bytes.size() - preamble_bytes); !s.ok()) return s;
    if (status s = parse(bytes, header); !s.ok()) return s.in_context(path + ": ");
    if (const std::int64_t needed = header.place_of(header.fields.size()); needed != all)
        return failure(MPI_ERR_IO, format("{}: it has {} bytes; by its header it has {}", path, all, needed));
    return {};
}

// The same on all ranks.
checkpoint_header share_header(const grid_state &g, const std::string &path) {
    std::vector<std::byte> bytes;
    check_collectively(g.comm, to_read, g.rank == 0 ? read_header(path, bytes) : status{});
    auto length = static_cast<int>(bytes.size());
    demand(MPI_Bcast(&length, 1, MPI_INT, 0, g.comm), "MPI_Bcast");
    bytes.resize(static_cast<std::size_t>(length));
    demand(MPI_Bcast(bytes.data(), length, MPI_BYTE, 0, g.comm), "MPI_Bcast");
    checkpoint_header header;
    check_collectively(g.comm, to_read, parse(bytes, header));
    return header;
}

// Which field of the file a field of the program is.
status find(const checkpoint_header &header, const file_field &wanted, std::size_t &found) {
    const auto at = std::find_if(header.fields.begin(), header.fields.end(),
                                 [&](const checkpoint_field &f) { return f.name == wanted.name; });
    if (at == header.fields.end()) {
        std::string all;
        for (const checkpoint_field &f : header.fields) all += (all.empty() ? "" : ", ") + f.name;
        return failure(MPI_ERR_ARG, format("name is {}; the file has {}", wanted.name, all.empty() ? "none" : all));
    }
    found = static_cast<std::size_t>(at - header.fields.begin());
    const field_view &view = wanted.view;
    const index3 &extent = wanted.points.extent;
    if (at->extent != extent)
        return failure(MPI_ERR_ARG, format("field has {} cells; {} has {} in the file", cells_text(extent), at->name,
                                           cells_text(at->extent)));
    if (at->value_bytes != view.value_bytes())
        return failure(MPI_ERR_ARG, format("field: values have {} bytes; those of {} have {} in the file",
                                           view.value_bytes(), at->name, at->value_bytes));
    if (at->type != view.type() && at->type != value_type::bytes && view.type() != value_type::bytes)
        return failure(MPI_ERR_ARG, format("field.type is {}; that of {} is {} in the file", name_of(view.type()),
                                           at->name, name_of(at->type)));
    if (at->components != view.components())
        return failure(MPI_ERR_ARG, format("field.layout.components is {}; {} has {} in the file", view.components(),
                                           at->name, at->components));
    return {};
}

// Of each field of the program.
status find_all(const checkpoint_header &header, const std::vector<file_field> &fields, const index3 &extent,
                std::vector<std::size_t> &found) {
    if (header.extent != extent)
        return failure(MPI_ERR_ARG, format("the file's domain has {} cells, and that of the grid {}",
                                           cells_text(header.extent), cells_text(extent)));
    found.resize(fields.size());
    for (std::size_t f = 0; f < fields.size(); ++f)
        if (status s = find(header, fields[f], found[f]); !s.ok()) return s.in_context(format("fields[{}].", f));
    return {};
}

}  // namespace

std::int64_t read_checkpoint_checked(const grid &g, const std::string &path, const std::vector<named_field> &fields,
                                     const status &given, std::int64_t piece_bytes) {
    const grid_state &state = *grid_internals::state_of(g, to_read);
    const std::vector<file_field> checked = check_file_fields(state, to_read, path, fields, given, {});
    const checkpoint_header header = share_header(state, path);
    const std::string name = path + ": ";
    std::vector<std::size_t> found;
    check_collectively(state.comm, to_read, find_all(header, checked, state.domain.extent, found).in_context(name));
    shared_file file;
    check_collectively(state.comm, to_read, file.open(path, MPI_MODE_RDONLY).in_context(name));
    status failed;
    for (std::size_t f = 0; f < checked.size(); ++f)
        note(failed, field_data(state, checked[f], piece_bytes).read(file, header.place_of(found[f])));
    note(failed, file.close());
    for (std::size_t f = 0; failed.ok() && f < checked.size(); ++f)
        note(failed, checked[f].memory.write_back().in_context(format("fields[{}].", f)));
    check_collectively(state.comm, to_read, failed.in_context(name));
    return header.step;
}

std::int64_t read_checkpoint(const grid &g, const std::string &path, const std::vector<named_field> &fields) {
    return read_checkpoint_checked(g, path, fields, {});
}

}  // namespace mpix::halo
