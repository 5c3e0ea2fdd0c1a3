// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_files/file_fields.h"

#include <mpi.h>

#include <array>

#include "host/field/reduction.h"
#include "host/format.h"
#include "host/halo_files/checkpoint_header.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

// A failure names the member that is wrong, as "fields[1].name".
status make_file_fields(const grid_state &g, const std::vector<named_field> &fields, std::vector<file_field> &made) {
    if (fields.size() > most_fields)
        return failure(MPI_ERR_ARG, format("there are {} fields; at most {}", fields.size(), most_fields));
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const auto &[name, field] = fields[i];
        if (const std::string why = why_no_name(name); !why.empty())
            return failure(MPI_ERR_ARG, format("fields[{}].name {}", i, why));
        for (std::size_t j = 0; j < i; ++j)
            if (fields[j].name == name)
                return failure(MPI_ERR_ARG, format("fields[{}].name is {}, which is that of fields[{}]", i, name, j));
        const std::array<bool, 3> &staggered = field.layout.staggered;
        file_field &f = made.emplace_back(file_field{name, {}, points_of(g.domain, staggered), {}});
        status s = f.memory.make(g, field, f.view);
        if (!s.ok()) return s.in_context(format("fields[{}].field{}", i, class_of(s) == MPI_ERR_COUNT ? ": " : "."));
        if (f.view.value_bytes() > most_cell_bytes / f.view.components())
            return failure(MPI_ERR_COUNT,
                           format("fields[{}].field: the values of a cell take {} x {} bytes; a file has "
                                  "at most 2^30",
                                  i, f.view.components(), f.view.value_bytes()));
    }
    return {};
}

// What all ranks give alike.
void append_fields(std::vector<argument> &to, const std::vector<file_field> &fields) {
    to.push_back(
        {.name = "fields", .values = {static_cast<std::int64_t>(fields.size())}, .verb = "has", .counted = " entries"});
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const auto &[name, view, points, memory] = fields[i];
        const std::string prefix = format("fields[{}].", i);
        to.push_back(argument::text(prefix + "name", name));
        to.push_back(
            {.name = prefix + "field: values", .values = {view.value_bytes()}, .verb = "have", .counted = " bytes"});
        to.push_back({.name = prefix + "field.type",
                      .values = {static_cast<std::int64_t>(view.type())},
                      .name_of = [](std::int64_t type) { return name_of(static_cast<value_type>(type)); }});
        to.push_back({prefix + "field.layout.components", {view.components()}});
        to.push_back({prefix + "field.layout.staggered", {view.staggered().begin(), view.staggered().end()}});
    }
}

}  // namespace

std::vector<file_field> check_file_fields(const grid_state &g, const char *where, const std::string &path,
                                          const std::vector<named_field> &fields, const status &given,
                                          std::vector<argument> more) {
    std::vector<file_field> made;
    status bad = given;
    if (bad.ok() && path.empty()) bad = failure(MPI_ERR_ARG, "path is empty");
    if (bad.ok() && path.find('\0') != std::string::npos) bad = failure(MPI_ERR_ARG, "path has a null character");
    if (bad.ok()) bad = make_file_fields(g, fields, made);
    more.push_back(argument::text("path", path));
    append_fields(more, made);
    check_collectively(g.comm, where, bad, more);
    return made;
}

}  // namespace mpix::halo
