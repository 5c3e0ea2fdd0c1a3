// SPDX-License-Identifier: BSD-3-Clause
#include "image.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#ifdef JACOBI3D_PNG
#include <png.h>
#endif

namespace jacobi3d {

namespace {

// OKLab (B. Ottosson, 2020) to 8-bit sRGB.
std::array<std::uint8_t, 3> oklab_to_srgb(double lightness, double a, double b) {
    const auto cube = [](double v) { return v * v * v; };
    const double l = cube(lightness + 0.3963377774 * a + 0.2158037573 * b);
    const double m = cube(lightness - 0.1055613458 * a - 0.0638541728 * b);
    const double s = cube(lightness - 0.0894841775 * a - 1.2914855480 * b);
    const double linear[3] = {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
                              -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
                              -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
    std::array<std::uint8_t, 3> rgb;
    for (int i = 0; i < 3; ++i) {
        const double v = std::clamp(linear[i], 0.0, 1.0);
        const double encoded = v <= 0.0031308 ? 12.92 * v : 1.055 * std::pow(v, 1 / 2.4) - 0.055;
        rgb[i] = static_cast<std::uint8_t>(std::lround(255 * encoded));
    }
    return rgb;
}

}  // namespace

std::array<std::uint8_t, 3> heat_colour(double t) {
    if (std::isnan(t)) return {128, 128, 128};
    t = std::clamp(t, 0.0, 1.0);
    // The hue turns from violet through red to yellow; colourfulness is greatest in the middle, where the
    // screen can show most of it.
    constexpr double pi = 3.14159265358979323846;
    const double lightness = 0.12 + 0.84 * t;
    const double hue = (300 + 170 * t) * pi / 180;
    const double chroma = 0.03 + 0.64 * t * (1 - t);
    return oklab_to_srgb(lightness, chroma * std::cos(hue), chroma * std::sin(hue));
}

#ifdef JACOBI3D_PNG

bool can_write_png() { return true; }

template <class Real>
void write_slice_png(const std::string &path, const std::vector<Real> &cells, const extent3 &grid, int z) {
    const Real *layer = cells.data() + std::int64_t{z} * grid[1] * grid[0];
    const std::int64_t count = std::int64_t{grid[0]} * grid[1];
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (std::int64_t i = 0; i < count; ++i)
        if (std::isfinite(layer[i])) {
            low = std::min<double>(low, layer[i]);
            high = std::max<double>(high, layer[i]);
        }
    const double span = high > low ? high - low : 1;

    // Small grids are enlarged, of large ones every n-th cell is taken.
    const int longer = std::max(grid[0], grid[1]);
    const int scale = std::max(1, 512 / longer), skip = (longer - 1) / 4096 + 1;
    const int width = (grid[0] - 1) / skip * scale + scale, height = (grid[1] - 1) / skip * scale + scale;
    std::vector<std::array<std::uint8_t, 3>> colours(1024);
    for (std::size_t i = 0; i < colours.size(); ++i) colours[i] = heat_colour(i / (colours.size() - 1.0));
    const auto colour = [&](double value) {
        const double t = (value - low) / span;
        return std::isfinite(t) ? colours[std::lround(t * (colours.size() - 1.0))] : heat_colour(t);
    };
    std::vector<std::uint8_t> pixels(std::size_t(width) * height * 3);
    std::uint8_t *to = pixels.data();
    for (int row = 0; row < height; ++row)
        for (int column = 0; column < width; ++column) {
            const std::int64_t x = column / scale * skip, y = (height - 1 - row) / scale * skip;
            for (const std::uint8_t part : colour(layer[y * grid[0] + x])) *to++ = part;
        }

    png_image image = {};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width);
    image.height = static_cast<png_uint_32>(height);
    image.format = PNG_FORMAT_RGB;
    if (!png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr))
        throw std::runtime_error(path + ": " + image.message);
}

#else

bool can_write_png() { return false; }

template <class Real>
void write_slice_png(const std::string &path, const std::vector<Real> &, const extent3 &, int) {
    throw std::runtime_error(path + ": this program was built without libpng");
}

#endif

template void write_slice_png(const std::string &, const std::vector<float> &, const extent3 &, int);
template void write_slice_png(const std::string &, const std::vector<double> &, const extent3 &, int);

}  // namespace jacobi3d
