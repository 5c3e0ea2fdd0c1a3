// SPDX-License-Identifier: BSD-3-Clause
#include "volume.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace jacobi3d {

template <class Real>
void write_vti(const std::string &path, const std::vector<Real> &cells, const extent3 &grid) {
    const std::string extent =
        "0 " + std::to_string(grid[0]) + " 0 " + std::to_string(grid[1]) + " 0 " + std::to_string(grid[2]);
    const double edge = 1.0 / *std::max_element(grid.begin(), grid.end());
    char spacing[96];
    std::snprintf(spacing, sizeof spacing, "%.17g %.17g %.17g", edge, edge, edge);
    const std::string order = std::endian::native == std::endian::big ? "BigEndian" : "LittleEndian";
    const std::string type = std::is_same_v<Real, float> ? "Float32" : "Float64";
    std::string head = "<?xml version=\"1.0\"?>\n";
    head += "<VTKFile type=\"ImageData\" version=\"1.0\" byte_order=\"" + order + "\" header_type=\"UInt64\">\n";
    head += "  <ImageData WholeExtent=\"" + extent + "\" Origin=\"0 0 0\" Spacing=\"" + spacing + "\">\n";
    head += "    <Piece Extent=\"" + extent + "\">\n";
    head += "      <CellData Scalars=\"temperature\">\n";
    head += "        <DataArray type=\"" + type + "\" Name=\"temperature\" format=\"appended\" offset=\"0\"/>\n";
    head += "      </CellData>\n    </Piece>\n  </ImageData>\n";
    head += "  <AppendedData encoding=\"raw\">\n_";
    const std::string tail = "\n  </AppendedData>\n</VTKFile>\n";
    const std::uint64_t bytes = cells.size() * sizeof(Real);

    std::FILE *file = std::fopen(path.c_str(), "wb");
    if (!file) throw std::runtime_error(path + ": " + std::strerror(errno));
    bool good = std::fwrite(head.data(), 1, head.size(), file) == head.size();
    good = good && std::fwrite(&bytes, sizeof bytes, 1, file) == 1;
    good = good && std::fwrite(cells.data(), sizeof(Real), cells.size(), file) == cells.size();
    good = good && std::fwrite(tail.data(), 1, tail.size(), file) == tail.size();
    const int error = errno;
    // A full disk may show up only when the last bytes are flushed.
    if (std::fclose(file) != 0) throw std::runtime_error(path + ": " + std::strerror(good ? errno : error));
    if (!good) throw std::runtime_error(path + ": " + std::strerror(error));
}

template void write_vti(const std::string &, const std::vector<float> &, const extent3 &);
template void write_vti(const std::string &, const std::vector<double> &, const extent3 &);

}  // namespace jacobi3d
