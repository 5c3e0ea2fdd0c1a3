// SPDX-License-Identifier: BSD-3-Clause
//
// The control and performance variables of mpix, as a tool sees them: before MPI_Init, while messages go to and fro, and,
// where the MPI library can, after MPI_Finalize. Run on two ranks; the arguments are the variables of the environment that mpix knows.
// TOLD_ON_RANK=<n>: that rank sets MPIX_REPORT=1, and no other.
#include <mpi.h>
#include <mpix/mpix.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>

#include "tests/tool_information/categories.hpp"
#include "tests/tool_information/control_variables.hpp"
#include "tests/tool_information/names.hpp"
#include "tests/tool_information/performance_variables.hpp"

using namespace tool_information;

namespace {

std::string name_of_knob(std::string variable) {
    std::transform(variable.begin(), variable.end(), variable.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return variable;
}

}  // namespace

int main(int argc, char **argv) {
    // Which rank this will be, as the launchers of Open MPI and MPICH say.
    const char *told = std::getenv("TOLD_ON_RANK"), *mine = std::getenv("OMPI_COMM_WORLD_RANK");
    if (mine == nullptr) mine = std::getenv("PMI_RANK");
    if (told != nullptr && mine != nullptr && std::strcmp(told, mine) == 0) setenv("MPIX_REPORT", "1", 1);

    int n = 0, level = 0;
    CHECK(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
    const std::map<std::string, int> controls = our_controls(), counters = our_counters();
    CHECK(static_cast<int>(controls.size()) == argc - 1);
    for (int i = 1; i < argc; ++i) {
        int index = -1;
        OK(MPI_T_cvar_get_index(name_of_knob(argv[i]).c_str(), &index));
        CHECK(controls.at(name_of_knob(argv[i])) == index);
    }
    CHECK(MPI_T_cvar_get_index("mpix_colour", &n) != MPI_SUCCESS);
    check_text_lengths(controls.at("mpix_eager_bytes"));
    check_enumeration();
    check_categories(controls, counters);
    std::mt19937_64 random(std::random_device{}());
    const expected_knobs set = set_knobs(random);

    OK(MPI_Init(nullptr, nullptr));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_in_world);
    // The library may have more now; ours are where they were.
    CHECK(our_controls() == controls && our_counters() == counters);
    check_categories(controls, counters);
    check_after_init(set);
    std::uint64_t seed = random();
    OK(MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD));
    if (rank_in_world == 0) std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    std::mt19937_64 shared(seed);
    check_counters(counters, set.transports.empty() ? "shm" : set.transports, shared);
    if (set.transports.empty()) check_later_change(counters);
        // Open MPI 4.1 crashes, by itself, in an MPI_T_finalize that comes after MPI_Finalize.
#ifdef OPEN_MPI
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
#else
    OK(MPI_Finalize());
    CHECK(control("mpix_stall_seconds").read<double>() == set.stall);
    OK(MPI_T_finalize());
#endif
    CHECK(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
    std::printf("world rank %d: all as it should be\n", rank_in_world);
    return 0;
}
