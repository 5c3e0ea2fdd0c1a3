// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <charconv>
#include <stdexcept>
#include <string_view>

#include <getopt.h>

namespace jacobi3d {

const char *const usage =
    "Usage: mpirun -n RANKS jacobi3d [OPTION]...\n"
    "Heat conduction on a 3-D grid. The kernel itself sends the faces of each rank's box, tile by tile,\n"
    "and waits for those of its neighbours.\n"
    "\n"
    "  --grid XxYxZ         cells along each axis (default 128x128x128)\n"
    "  --iterations N       how many (default 100)\n"
    "  --periodic[=AXES]    periodic along AXES, for example xz; without AXES along all.\n"
    "                       Elsewhere the values beyond the grid are those that its outermost cells\n"
    "                       have at the beginning, and stay so.\n"
    "  --precision P        float (default) or double\n"
    "  --input FILE         initial field: a NumPy volume FILE.npy (C order, axes z y x, f4 or f8), or\n"
    "                       any other file as raw cells, x fastest, of the precision chosen (needs --grid)\n"
    "  --device D           auto (default), cuda or host\n"
    "  --blocks N           blocks of the kernel (default: as many as the GPU holds at the same time; on\n"
    "                       the host its hardware threads divided by its ranks)\n"
    "  --threads N          threads of a block (default 256 on a GPU, 1 on the host)\n"
    "  --tiles N            tiles of a face, each a partition of its requests (default: of at least\n"
    "                       1024 cells, at most 64)\n"
    "  --enqueue            on GPUs: all launches and epochs are enqueued on a stream, and the host waits once\n"
    "  --persistent         one launch runs all iterations: the kernel starts and ends the epochs as well\n"
    "  --halo               the same on mpix's halo exchange (<mpix/halo.hpp>)\n"
    "  --brick XxYxZ        with --persistent and --halo: cells of a brick, which one block computes (default: as\n"
    "                       suits the box and the blocks)\n"
    "  --compare            compute everything on rank 0 alone as well; the results must have the same bits\n"
    "  --output DIR         write slice_z.png and field.vti there (default: write no files)\n"
    "  --help               print this and do nothing\n"
    "\n"
    "Exit status: 0, or 1 if a comparison or the run failed, or 2 for a bad option or input file.\n";

namespace {

int number(const char *option, std::string_view text, int least, int most) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
        throw std::invalid_argument(std::string("--") + option + ": '" + std::string(text) +
                                    "' is not a whole number from " + std::to_string(least) + " to " +
                                    std::to_string(most));
    return value;
}

extent3 extents(const char *option, std::string_view text) {
    extent3 result;
    const std::string whole(text);
    for (int axis = 0; axis < 3; ++axis) {
        const std::size_t end = axis < 2 ? text.find('x') : text.size();
        if (end == text.npos)
            throw std::invalid_argument(std::string("--") + option + ": '" + whole + "' is not of the form XxYxZ");
        result[axis] = number(option, text.substr(0, end), 1, max_axis);
        text.remove_prefix(axis < 2 ? end + 1 : end);
    }
    return result;
}

std::array<bool, 3> axes(const char *text) {
    if (!text) return {true, true, true};
    std::array<bool, 3> result = {false, false, false};
    for (const char *c = text; *c; ++c) {
        if (*c < 'x' || *c > 'z')
            throw std::invalid_argument(std::string("--periodic: '") + text + "' has other letters than x, y, z");
        result[*c - 'x'] = true;
    }
    return result;
}

// The position of `text` in the list of words.
template <std::size_t N>
int choice(const char *option, std::string_view text, const std::string_view (&words)[N]) {
    std::string list;
    for (std::size_t i = 0; i < N; ++i) {
        if (text == words[i]) return static_cast<int>(i);
        list += (i == 0 ? "" : i + 1 < N ? ", " : " or ") + std::string(words[i]);
    }
    throw std::invalid_argument(std::string("--") + option + ": '" + std::string(text) + "' is not " + list);
}

}  // namespace

options parse_options(int argc, char *argv[]) {
    enum {
        o_grid = 256,
        o_iterations,
        o_periodic,
        o_precision,
        o_input,
        o_device,
        o_blocks,
        o_threads,
        o_tiles,
        o_enqueue,
        o_persistent,
        o_halo,
        o_brick,
        o_compare,
        o_output,
        o_help
    };
    static const option table[] = {
        {"grid", required_argument, nullptr, o_grid},
        {"iterations", required_argument, nullptr, o_iterations},
        {"periodic", optional_argument, nullptr, o_periodic},
        {"precision", required_argument, nullptr, o_precision},
        {"input", required_argument, nullptr, o_input},
        {"device", required_argument, nullptr, o_device},
        {"blocks", required_argument, nullptr, o_blocks},
        {"threads", required_argument, nullptr, o_threads},
        {"tiles", required_argument, nullptr, o_tiles},
        {"enqueue", no_argument, nullptr, o_enqueue},
        {"persistent", no_argument, nullptr, o_persistent},
        {"halo", no_argument, nullptr, o_halo},
        {"brick", required_argument, nullptr, o_brick},
        {"compare", no_argument, nullptr, o_compare},
        {"output", required_argument, nullptr, o_output},
        {"help", no_argument, nullptr, o_help},
        {nullptr, 0, nullptr, 0},
    };
    constexpr int many = 1000000;
    options result;
    opterr = 0;  // our own messages: one, from one rank
    optind = 1;
    for (;;) {
        const int at = optind;
        const int code = getopt_long(argc, argv, "+:", table, nullptr);
        if (code == -1) break;
        switch (code) {
            case o_grid:
                result.grid = extents("grid", optarg);
                result.grid_given = true;
                break;
            case o_iterations:
                result.iterations = number("iterations", optarg, 0, 1000 * many);
                break;
            case o_periodic:
                result.periodic = axes(optarg);
                break;
            case o_precision:
                result.double_precision = choice("precision", optarg, {"float", "double"}) == 1;
                break;
            case o_input:
                result.input = optarg;
                if (result.input.empty()) throw std::invalid_argument("--input: an empty file name");
                break;
            case o_device:
                result.device = static_cast<device_kind>(choice("device", optarg, {"auto", "cuda", "host"}));
                break;
            case o_blocks:
                result.blocks = number("blocks", optarg, 1, many);
                break;
            case o_threads:
                result.threads = number("threads", optarg, 1, 1024);
                break;
            case o_tiles:
                result.tiles = number("tiles", optarg, 1, many);
                break;
            case o_enqueue:
                result.enqueue = true;
                break;
            case o_persistent:
                result.persistent = true;
                break;
            case o_halo:
                result.halo = true;
                break;
            case o_brick:
                result.brick = extents("brick", optarg);
                break;
            case o_compare:
                result.compare = true;
                break;
            case o_output:
                result.output = optarg;
                if (result.output.empty()) throw std::invalid_argument("--output: an empty directory name");
                break;
            case o_help:
                result.help = true;
                break;
            case ':':
                throw std::invalid_argument(std::string(argv[at]) + ": its value is missing");
            default:
                throw std::invalid_argument(std::string(argv[at]) + ": no such option, or a wrong use of one");
        }
    }
    if (optind < argc) {
        std::string hint;
        if (optind > 1 && std::string_view(argv[optind - 1]) == "--periodic")
            hint = std::string(" (write --periodic=") + argv[optind] + ")";
        throw std::invalid_argument(std::string("unexpected argument '") + argv[optind] + "'" + hint);
    }
    if (result.enqueue + result.persistent + result.halo > 1)
        throw std::invalid_argument("--enqueue, --persistent and --halo are ways to run the epochs; choose one");
    return result;
}

}  // namespace jacobi3d
