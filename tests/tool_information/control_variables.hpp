// SPDX-License-Identifier: BSD-3-Clause
//
// The control variables, before and after MPI_Init.
#ifndef MPIX_TESTS_TOOL_INFORMATION_CONTROL_VARIABLES_HPP
#define MPIX_TESTS_TOOL_INFORMATION_CONTROL_VARIABLES_HPP

#include <random>
#include <string>
#include <vector>

#include "tests/tool_information/names.hpp"

namespace tool_information {

class control {
public:
    explicit control(const char *name) {
        int index = -1;
        OK(MPI_T_cvar_get_index(name, &index));
        OK(MPI_T_cvar_get_info(index, nullptr, nullptr, nullptr, &type, &names, nullptr, nullptr, &bound, &scope));
        OK(MPI_T_cvar_handle_alloc(index, nullptr, &handle, &elements));
        CHECK(bound == MPI_T_BIND_NO_OBJECT);
    }
    ~control() {
        OK(MPI_T_cvar_handle_free(&handle));
        CHECK(handle == MPI_T_CVAR_HANDLE_NULL);
    }
    control(const control &) = delete;
    control &operator=(const control &) = delete;

    template <class Value>
    Value read() const {
        Value value{};
        OK(MPI_T_cvar_read(handle, &value));
        return value;
    }
    std::string read_text() const {
        std::vector<char> text(static_cast<std::size_t>(elements), 'x');
        OK(MPI_T_cvar_read(handle, text.data()));
        return text.data();
    }
    template <class Value>
    int write(Value value) const {
        return MPI_T_cvar_write(handle, &value);
    }
    int write_text(std::string text) const {
        text.resize(static_cast<std::size_t>(elements));
        return MPI_T_cvar_write(handle, text.data());
    }

    MPI_T_cvar_handle handle{};
    MPI_Datatype type{};
    MPI_T_enum names{};
    int bound = 0, scope = 0, elements = 0;
};

struct expected_knobs {
    number eager;
    MPI_Count in_line;
    double stall;
    std::string transports;
};

// Names that do not fit into what the tool gives.
void check_text_lengths(int index);
void check_enumeration();
// What a tool may do before MPI_Init. The environment has MPIX_LANDING_BYTES=12345 and MPIX_EAGER_BYTES=17.
expected_knobs set_knobs(std::mt19937_64 &random);
void check_after_init(const expected_knobs &set);

}  // namespace tool_information

#endif  // MPIX_TESTS_TOOL_INFORMATION_CONTROL_VARIABLES_HPP
