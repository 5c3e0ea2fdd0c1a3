// SPDX-License-Identifier: BSD-3-Clause
//
// The format is that of "VTK XML file formats": https://docs.vtk.org/en/latest/vtk_file_formats/vtkxml_file_format.html
#include "host/halo_files/vti.h"

#include <mpi.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "host/field/reduction.h"
#include "host/format.h"
#include "host/halo/collective.h"
#include "host/halo/grid_internals.h"
#include "host/halo_files/file_fields.h"
#include "host/halo_files/file_order.h"
#include "host/halo_files/posix_file.h"

namespace mpix::halo {
namespace {

constexpr const char *vti_call = "mpix::halo::write_vti";
constexpr std::string_view ending = ".pvti";
constexpr std::size_t buffered = std::size_t{1} << 16;  // bytes of each write

// Null if VTK has none.
const char *vtk_name_of(value_type type) {
    switch (type) {
        case value_type::int8:
            return "Int8";
        case value_type::int16:
            return "Int16";
        case value_type::int32:
            return "Int32";
        case value_type::int64:
            return "Int64";
        case value_type::uint8:
            return "UInt8";
        case value_type::uint16:
            return "UInt16";
        case value_type::uint32:
            return "UInt32";
        case value_type::uint64:
            return "UInt64";
        case value_type::float32:
            return "Float32";
        case value_type::float64:
            return "Float64";
        default:
            return nullptr;
    }
}

// As the value of an attribute.
std::string escaped(std::string_view text) {
    std::string all;
    for (const char c : text) switch (c) {
            case '&':
                all += "&amp;";
                break;
            case '<':
                all += "&lt;";
                break;
            case '>':
                all += "&gt;";
                break;
            case '"':
                all += "&quot;";
                break;
            default:
                all += c;
        }
    return all;
}

std::string three(const std::array<double, 3> &numbers) {
    return format("{} {} {}", numbers[0], numbers[1], numbers[2]);
}

// VTK counts points: n cells lie between n + 1 of them, and an axis that the domain lacks has one.
std::string extent_of(const box &b, int dimensions) {
    std::string all;
    for (int a = 0; a < 3; ++a)
        all += format("{}{} {}", a > 0 ? " " : "", a < dimensions ? b.lo[a] : 0, a < dimensions ? b.hi[a] : 0);
    return all;
}

std::string beginning(const char *type) {
    return format(
        "<?xml version=\"1.0\"?>\n"
        "<VTKFile type=\"{}\" version=\"1.0\" byte_order=\"{}\" header_type=\"UInt64\">\n",
        type, std::endian::native == std::endian::little ? "LittleEndian" : "BigEndian");
}

std::string array_of(const char *element, const file_field &f, const std::string &more) {
    return format("      <{} type=\"{}\" Name=\"{}\" NumberOfComponents=\"{}\"{}/>\n", element,
                  vtk_name_of(f.view.type()), escaped(f.name), f.view.components(), more);
}

struct image {
    const grid_state &grid;
    const vti_options &options;
    const std::vector<file_field> &fields;

    // All of a piece but the numbers.
    std::string head_of_piece(const box &cells) const {
        const std::string extent = extent_of(cells, grid.domain.dimensions);
        std::string all = beginning("ImageData") + format(
                                                       "  <ImageData WholeExtent=\"{}\" Origin=\"{}\" Spacing=\"{}\">\n"
                                                       "    <Piece Extent=\"{}\">\n    <CellData>\n",
                                                       extent, three(options.origin), three(options.spacing), extent);
        std::int64_t offset = 0;
        for (const file_field &f : fields) {
            all += array_of("DataArray", f, format(" format=\"appended\" offset=\"{}\"", offset));
            offset += 8 + cells.cells() * f.view.components() * f.view.value_bytes();
        }
        return all + "    </CellData>\n    </Piece>\n  </ImageData>\n  <AppendedData encoding=\"raw\">\n_";
    }

    std::string list(const std::string &stem) const {
        const domain &d = grid.domain;
        std::string all =
            beginning("PImageData") +
            format("  <PImageData WholeExtent=\"{}\" GhostLevel=\"0\" Origin=\"{}\" Spacing=\"{}\">\n    <PCellData>\n",
                   extent_of({{}, d.extent}, d.dimensions), three(options.origin), three(options.spacing));
        for (const file_field &f : fields) all += array_of("PDataArray", f, "");
        all += "    </PCellData>\n";
        const std::size_t slash = stem.rfind('/');
        const std::string name = escaped(slash == std::string::npos ? stem : stem.substr(slash + 1));
        for (std::size_t number = 0; number < d.boxes.size(); ++number)
            if (const box &cells = d.boxes[number]; !cells.empty())
                all += format("    <Piece Extent=\"{}\" Source=\"{}_{}.vti\"/>\n", extent_of(cells, d.dimensions), name,
                              number);
        return all + "  </PImageData>\n</VTKFile>\n";
    }
};

// That of the rank's box at position i.
status write_piece(const image &of, std::size_t i, const std::string &path) {
    const grid_state &g = of.grid;
    const box &cells = g.local(static_cast<int>(i));
    posix_file file;
    std::vector<std::byte> bytes;
    status failed = file.create(path);
    // `next` bytes will follow.
    const auto room_for = [&](std::size_t next) {
        if (bytes.size() + next > buffered) {
            if (failed.ok()) failed = file.write(bytes.data(), bytes.size());
            bytes.clear();
        }
        bytes.resize(bytes.size() + next);
        return bytes.data() + bytes.size() - next;
    };
    const auto put = [&](const void *from, std::size_t length) { std::memcpy(room_for(length), from, length); };
    const std::string head = of.head_of_piece(cells);
    put(head.data(), head.size());
    for (const file_field &f : of.fields) {
        row_copy rows(f.view);
        const auto length = static_cast<std::uint64_t>(cells.cells() * rows.cell_bytes());
        put(&length, sizeof length);
        for_each_row(cells, g.domain.extent, {0, cells_of(g.domain.extent)}, [&](const box &row, std::int64_t) {
            rows.to_file(i, row, room_for(static_cast<std::size_t>((row.hi[0] - row.lo[0]) * rows.cell_bytes())));
        });
    }
    constexpr std::string_view end = "\n  </AppendedData>\n</VTKFile>\n";
    put(end.data(), end.size());
    if (failed.ok()) failed = file.write(bytes.data(), bytes.size());
    return failed.ok() ? file.close() : failed;
}

status write_text(const std::string &path, const std::string &text) {
    posix_file file;
    if (status s = file.create(path); !s.ok()) return s;
    if (status s = file.write(text.data(), text.size()); !s.ok()) return s;
    return file.close();
}

status check(const std::string &path, const vti_options &options) {
    if (!path.ends_with(ending)) return failure(MPI_ERR_ARG, format("path is {}; it ends in {}", path, ending));
    for (std::size_t a = 0; a < 3; ++a) {
        if (!std::isfinite(options.origin[a]))
            return failure(MPI_ERR_ARG, format("options.origin[{}] is {}; it is finite", a, options.origin[a]));
        if (!(options.spacing[a] > 0) || !std::isfinite(options.spacing[a]))
            return failure(MPI_ERR_ARG,
                           format("options.spacing[{}] is {}; it is above 0 and finite", a, options.spacing[a]));
    }
    return {};
}

status check(const std::vector<file_field> &fields) {
    for (std::size_t f = 0; f < fields.size(); ++f) {
        for (std::size_t a = 0; a < 3; ++a)
            if (fields[f].view.staggered()[a])
                return failure(
                    MPI_ERR_ARG,
                    format("fields[{}].field.layout.staggered[{}]: a file of VTK has values of cells", f, a));
        if (const value_type type = fields[f].view.type(); vtk_name_of(type) == nullptr)
            return failure(MPI_ERR_TYPE,
                           format("fields[{}].field.type is {}; VTK has integers of 1 to 8 bytes, float and "
                                  "double",
                                  f, name_of(type)));
    }
    return {};
}

}  // namespace

void write_vti_checked(const grid &g, const std::string &path, const std::vector<named_field> &fields,
                       const vti_options &options, const status &given) {
    const grid_state &state = *grid_internals::state_of(g, vti_call);
    std::vector<argument> more;
    for (std::size_t a = 0; a < 3; ++a) {
        more.push_back(argument::real(format("options.origin[{}]", a), options.origin[a]));
        more.push_back(argument::real(format("options.spacing[{}]", a), options.spacing[a]));
    }
    const std::vector<file_field> checked =
        check_file_fields(state, vti_call, path, fields, given.ok() ? check(path, options) : given, std::move(more));
    check_collectively(state.comm, vti_call, check(checked));

    const image all{state, options, checked};
    const std::string stem = path.substr(0, path.size() - ending.size());
    struct piece_file {
        std::size_t box;
        std::string path, partial;
    };
    std::vector<piece_file> pieces;
    for (std::size_t i = 0; i < state.mine.size(); ++i) {
        if (state.local(static_cast<int>(i)).empty()) continue;
        const std::string name = format("{}_{}.vti", stem, state.mine[i]);
        pieces.push_back({i, name, name + ".partial"});
    }
    const bool first = state.rank == 0;
    const std::string partial_list = path + ".partial";
    try {
        status s;
        for (const piece_file &p : pieces) {
            if (s.ok()) s = remove_file(p.partial);
            if (s.ok()) s = write_piece(all, p.box, p.partial);
        }
        if (s.ok() && first) s = remove_file(partial_list);
        if (s.ok() && first) s = write_text(partial_list, all.list(stem));
        check_collectively(state.comm, vti_call, s);
        for (const piece_file &p : pieces)
            if (s.ok()) s = rename_file(p.partial, p.path);
        check_collectively(state.comm, vti_call, s);
        if (first) s = rename_file(partial_list, path);
        check_collectively(state.comm, vti_call, s);
    } catch (...) {
        for (const piece_file &p : pieces) static_cast<void>(remove_file(p.partial));
        if (first) static_cast<void>(remove_file(partial_list));
        throw;
    }
}

void write_vti(const grid &g, const std::string &path, const std::vector<named_field> &fields,
               const vti_options &options) {
    write_vti_checked(g, path, fields, options, {});
}

}  // namespace mpix::halo
