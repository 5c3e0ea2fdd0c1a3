// SPDX-License-Identifier: BSD-3-Clause
//
// The command line.
#ifndef JACOBI3D_OPTIONS_HPP
#define JACOBI3D_OPTIONS_HPP

#include "decomposition.hpp"

#include <array>
#include <string>

namespace jacobi3d {

enum class device_kind { automatic, cuda, host };

struct options {
    extent3 grid = {128, 128, 128};
    bool grid_given = false;
    int iterations = 100;
    std::array<bool, 3> periodic = {false, false, false};
    bool double_precision = false;
    std::string input;  // empty: the analytic field
    device_kind device = device_kind::automatic;
    int blocks = 0, threads = 0;  // 0: chosen by the executor
    int tiles = 0;                // as in cut_face
    bool persistent = false;      // all iterations in one launch
    bool halo = false;            // the same, on mpix's halo exchange
    bool enqueue = false;         // epochs in the order of the stream, without the host
    extent3 brick = {0, 0, 0};    // 0: chosen by the executor
    bool compare = false;
    std::string output;  // empty: none
    bool help = false;
};

/** Throws std::invalid_argument with a sentence that names the option. */
options parse_options(int argc, char *argv[]);

extern const char *const usage;

}  // namespace jacobi3d

#endif  // JACOBI3D_OPTIONS_HPP
