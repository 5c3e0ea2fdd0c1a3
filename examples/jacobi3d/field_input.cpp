// SPDX-License-Identifier: BSD-3-Clause
#include "field_input.hpp"

#include "npy.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace jacobi3d {

namespace {

[[noreturn]] void fail(const std::string &path, const std::string &what) {
    throw std::runtime_error(path + ": " + what);
}

class input_file {
public:
    explicit input_file(const std::string &path) : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        if (descriptor_ < 0) fail(path, std::strerror(errno));
        struct stat status;
        if (fstat(descriptor_, &status) != 0) {
            const int error = errno;
            close(descriptor_);
            fail(path, std::strerror(error));
        }
        if (!S_ISREG(status.st_mode)) {
            close(descriptor_);
            fail(path, "not a regular file");
        }
        size_ = static_cast<std::uint64_t>(status.st_size);
    }
    input_file(const input_file &) = delete;
    input_file &operator=(const input_file &) = delete;
    ~input_file() { close(descriptor_); }

    std::uint64_t size() const { return size_; }

    void read(void *to, std::uint64_t bytes, std::uint64_t offset) const {
        char *at = static_cast<char *>(to);
        while (bytes > 0) {
            // No system call moves more than 2 GiB at once.
            const std::uint64_t piece = std::min<std::uint64_t>(bytes, std::uint64_t{1} << 30);
            const ssize_t got = pread(descriptor_, at, piece, static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) fail(path_, std::strerror(errno));
            if (got == 0) fail(path_, "ends at byte " + std::to_string(offset) + ", before the last cell");
            at += got;
            offset += static_cast<std::uint64_t>(got);
            bytes -= static_cast<std::uint64_t>(got);
        }
    }

private:
    std::string path_;
    int descriptor_;
    std::uint64_t size_ = 0;
};

std::uint64_t data_bytes(const extent3 &grid, int element_size) {
    return static_cast<std::uint64_t>(box3{{0, 0, 0}, grid}.cells()) * static_cast<std::uint64_t>(element_size);
}

template <class Element>
Element swapped(Element value) {
    unsigned char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    std::reverse(bytes, bytes + sizeof value);
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

// Rows of `Element` from the file, converted to Real.
template <class Element, class Real>
void read_rows(const field_file &file, const input_file &input, const box3 &box, std::vector<Real> &cells) {
    const extent3 size = box.size(), &grid = file.grid;
    // What is contiguous in the file is read at once: rows, or whole layers where the box spans x.
    const int rows_at_once = size[0] == grid[0] ? size[1] : 1;
    std::vector<Element> row(static_cast<std::size_t>(size[0]) * rows_at_once);
    Real *to = cells.data();
    for (int z = box.begin[2]; z < box.end[2]; ++z)
        for (int y = box.begin[1]; y < box.end[1]; y += rows_at_once) {
            const std::uint64_t first = (std::uint64_t(z) * grid[1] + y) * grid[0] + box.begin[0];
            input.read(row.data(), row.size() * sizeof(Element), file.data_offset + first * sizeof(Element));
            for (const Element element : row) *to++ = static_cast<Real>(file.swap_bytes ? swapped(element) : element);
        }
}

}  // namespace

field_file open_raw(const std::string &path, const extent3 &grid, int element_size) {
    const input_file input(path);
    const std::uint64_t expected = data_bytes(grid, element_size);
    if (input.size() != expected)
        fail(path, "has " + std::to_string(input.size()) + " bytes, but a raw grid of " + to_string(grid) +
                       " cells of " + std::to_string(element_size) + " bytes has " + std::to_string(expected));
    return {path, grid, element_size, false, 0};
}

field_file open_npy(const std::string &path) {
    const input_file input(path);
    std::string start(std::min(input.size(), npy_max_header), '\0');
    input.read(start.data(), start.size(), 0);
    npy_header header;
    try {
        header = parse_npy_header(start);
    } catch (const std::runtime_error &error) {
        fail(path, error.what());
    }
    if (header.fortran_order) fail(path, "is in Fortran order; save it in C order (numpy.ascontiguousarray)");
    if (header.shape.size() != 3)
        fail(path, "has " + std::to_string(header.shape.size()) + " axes; a volume has 3 (z, y, x)");
    extent3 grid;
    for (int axis = 0; axis < 3; ++axis) {
        const std::uint64_t cells = header.shape[2 - axis];
        if (cells < 1 || cells > static_cast<std::uint64_t>(max_axis))
            fail(path,
                 "has an axis of " + std::to_string(cells) + " cells; an axis has 1 to " + std::to_string(max_axis));
        grid[axis] = static_cast<int>(cells);
    }
    // Bytes after the array are allowed: numpy.save appends to an open file.
    const std::uint64_t expected = header.data_offset + data_bytes(grid, header.element_size);
    if (input.size() < expected)
        fail(path, "is cut short: " + std::to_string(input.size()) + " bytes, of " + std::to_string(expected) +
                       " that its header announces");
    return {path, grid, header.element_size, header.big_endian != (std::endian::native == std::endian::big),
            header.data_offset};
}

template <class Real>
std::vector<Real> read_box(const field_file &file, const box3 &box) {
    const input_file input(file.path);
    std::vector<Real> cells(box.cells());
    if (file.element_size == 4)
        read_rows<float>(file, input, box, cells);
    else
        read_rows<double>(file, input, box, cells);
    return cells;
}

template std::vector<float> read_box(const field_file &, const box3 &);
template std::vector<double> read_box(const field_file &, const box3 &);

template <class Real>
std::vector<Real> analytic_box(const extent3 &grid, const box3 &box) {
    const int longest = *std::max_element(grid.begin(), grid.end());
    const auto bump = [](double t) { return 4 * t * (1 - t); };
    // Centres of cells, along each axis from 0 to 1, and from the sphere's centre in lengths of the longest.
    const auto along = [&](int axis, int cell) { return (cell + 0.5) / grid[axis]; };
    const double centre[3] = {0.35, 0.6, 0.5}, radius = 0.15;
    const auto from_centre = [&](int axis, int cell) { return (cell + 0.5 - centre[axis] * grid[axis]) / longest; };
    std::vector<Real> cells(box.cells());
    Real *to = cells.data();
    for (int z = box.begin[2]; z < box.end[2]; ++z)
        for (int y = box.begin[1]; y < box.end[1]; ++y)
            for (int x = box.begin[0]; x < box.end[0]; ++x) {
                const double px = along(0, x), py = along(1, y), pz = along(2, z);
                const double dx = from_centre(0, x), dy = from_centre(1, y), dz = from_centre(2, z);
                double value = 0.5 * bump(px) * bump(py) * bump(pz) + 0.3 * px + 0.15 * py + 0.05 * pz;
                if (dx * dx + dy * dy + dz * dz < radius * radius) value += 1;
                *to++ = static_cast<Real>(value);
            }
    return cells;
}

template std::vector<float> analytic_box(const extent3 &, const box3 &);
template std::vector<double> analytic_box(const extent3 &, const box3 &);

}  // namespace jacobi3d
