// SPDX-License-Identifier: BSD-3-Clause
#include "tests/tool_information/control_variables.hpp"

namespace tool_information {

void check_text_lengths(int index) {
    int needed = 0, room_of_three = 3;
    OK(MPI_T_cvar_get_info(index, nullptr, &needed, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr));
    const std::string whole = control_name(index);
    CHECK(needed == static_cast<int>(whole.size()) + 1);
    char cut[4] = "zzz";
    OK(MPI_T_cvar_get_info(index, cut, &room_of_three, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr));
    CHECK(std::string(cut) == whole.substr(0, 2) && room_of_three == needed && cut[3] == '\0');
    name_buffer meaning;
    meaning.length = 0;
    OK(MPI_T_cvar_get_info(index, nullptr, nullptr, nullptr, nullptr, nullptr, meaning.text, &meaning.length, nullptr,
                           nullptr));
    CHECK(meaning.length > 20 && meaning.text[0] == '\0');
}

void check_enumeration() {
    const control progress("mpix_progress");
    CHECK(progress.type == MPI_INT && progress.elements == 1);
    int n = 0;
    name_buffer name;
    OK(MPI_T_enum_get_info(progress.names, &n, name.text, &name.length));
    CHECK(n == 3 && std::string(name.text) == "mpix_progress");
    const char *const expected[] = {"auto", "always", "never"};
    for (int i = 0; i < n; ++i) {
        name_buffer item;
        int value = -1;
        OK(MPI_T_enum_get_item(progress.names, i, &value, item.text, &item.length));
        CHECK(std::string(item.text) == expected[i] && value == i);
    }
    CHECK(MPI_T_enum_get_item(progress.names, n, nullptr, nullptr, nullptr) != MPI_SUCCESS);
    CHECK(progress.read<int>() == 0);
    OK(progress.write(2));
    CHECK(progress.read<int>() == 2);
    CHECK(progress.write(3) == MPI_T_ERR_INVALID && progress.write(-1) == MPI_T_ERR_INVALID);
    CHECK(progress.read<int>() == 2);
    OK(progress.write(0));
}

expected_knobs set_knobs(std::mt19937_64 &random) {
    const control eager("mpix_eager_bytes"), landing("mpix_landing_bytes"), in_line("mpix_inline_bytes"),
        stall("mpix_stall_seconds"), transports("mpix_transports"), check("mpix_check"),
        loading("mpix_cuda_eager_loading"), cpus("mpix_progress_cpus");
    CHECK(landing.read<number>() == 12345 && eager.read<number>() == 17);
    CHECK(eager.type == MPI_UNSIGNED_LONG_LONG && stall.type == MPI_DOUBLE && transports.type == MPI_CHAR);
    CHECK(in_line.type == MPI_COUNT && in_line.read<MPI_Count>() == -1);
    CHECK(transports.scope == MPI_T_SCOPE_ALL_EQ && eager.scope == MPI_T_SCOPE_LOCAL);
    const expected_knobs set{1000000 + random() % 1000000, static_cast<MPI_Count>(random() % 8192),
                             static_cast<double>(random() % 256) / 1024 + 0.25, transports.read_text()};
    OK(eager.write(set.eager));
    CHECK(eager.read<number>() == set.eager);
    OK(in_line.write(MPI_Count{7}));
    OK(in_line.write(MPI_Count{-1}));
    CHECK(in_line.read<MPI_Count>() == -1);
    OK(in_line.write(set.in_line));
    CHECK(in_line.write(MPI_Count{-2}) == MPI_T_ERR_INVALID);
    OK(stall.write(set.stall));
    CHECK(stall.write(-1.0) == MPI_T_ERR_INVALID);
    CHECK(stall.read<double>() == set.stall);
    CHECK(check.write(2) == MPI_T_ERR_INVALID && check.read<int>() == 0);
    CHECK(loading.scope == MPI_T_SCOPE_CONSTANT && loading.write(1) == MPI_T_ERR_CVAR_SET_NEVER);
    CHECK(transports.write_text("shm,carrier_pigeons") == MPI_T_ERR_INVALID);
    CHECK(transports.read_text() == set.transports);
    OK(transports.write_text("shm"));
    CHECK(transports.read_text() == "shm");
    OK(transports.write_text(set.transports));
    CHECK(cpus.write_text("3-") == MPI_T_ERR_INVALID && cpus.read_text().empty());
    std::vector<char> endless(static_cast<std::size_t>(cpus.elements), '1');
    CHECK(MPI_T_cvar_write(cpus.handle, endless.data()) == MPI_T_ERR_INVALID);
    return set;
}

void check_after_init(const expected_knobs &set) {
    const control eager("mpix_eager_bytes"), in_line("mpix_inline_bytes"), stall("mpix_stall_seconds"),
        landing("mpix_landing_bytes"), loading("mpix_cuda_eager_loading");
    CHECK(eager.read<number>() == set.eager && in_line.read<MPI_Count>() == set.in_line);
    CHECK(stall.read<double>() == set.stall && landing.read<number>() == 12345);
    CHECK(stall.write(1.0) == MPI_T_ERR_CVAR_SET_NOT_NOW && stall.read<double>() == set.stall);
    CHECK(in_line.write(MPI_Count{1}) == MPI_T_ERR_CVAR_SET_NOT_NOW);
    CHECK(loading.write(1) == MPI_T_ERR_CVAR_SET_NEVER);
}

}  // namespace tool_information
