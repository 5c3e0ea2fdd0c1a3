// SPDX-License-Identifier: BSD-3-Clause
#include "host/tool_information/knob_variables.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "host/format.h"

namespace mpix::tool_information {
namespace {

// A text's room, at least; more where the environment has a longer one.
constexpr std::size_t room_for_text = 4096;

template <class Knob>
constexpr bool is_named = std::is_enum_v<Knob>;

template <class Number>
Number number_in(const void *buffer) {
    Number value;
    std::memcpy(&value, buffer, sizeof value);
    return value;
}
template <class Number>
void put(void *buffer, Number value) {
    std::memcpy(buffer, &value, sizeof value);
}

// ---- each type of knob -----------------------------------------------------------------------------------------------

template <class Knob>
MPI_Datatype type_of() {
    if constexpr (std::is_same_v<Knob, count>)
        return MPI_UNSIGNED_LONG_LONG;
    else if constexpr (std::is_same_v<Knob, count_or_auto>)
        return MPI_COUNT;
    else if constexpr (std::is_same_v<Knob, seconds>)
        return MPI_DOUBLE;
    else if constexpr (std::is_same_v<Knob, text>)
        return MPI_CHAR;
    else
        return MPI_INT;
}

void read_knob(const count &knob, void *buffer, int) { put(buffer, static_cast<unsigned long long>(knob)); }
void read_knob(const count_or_auto &knob, void *buffer, int) {
    put(buffer, knob.automatic ? MPI_Count{-1} : static_cast<MPI_Count>(knob.number));
}
void read_knob(const seconds &knob, void *buffer, int) { put(buffer, knob); }
void read_knob(const on_off &knob, void *buffer, int) { put(buffer, static_cast<int>(knob)); }
void read_knob(const text &knob, void *buffer, int elements) {
    const std::size_t n = std::min(knob.size(), static_cast<std::size_t>(elements) - 1);
    std::memcpy(buffer, knob.data(), n);
    static_cast<char *>(buffer)[n] = '\0';
}
template <class Knob>
requires is_named<Knob>
void read_knob(const Knob &knob, void *buffer, int) { put(buffer, static_cast<int>(knob)); }

bool written_to(const count &, const void *buffer, int, std::string &value) {
    value = std::to_string(number_in<unsigned long long>(buffer));
    return true;
}
bool written_to(const count_or_auto &, const void *buffer, int, std::string &value) {
    const auto number = number_in<MPI_Count>(buffer);
    value = number == -1 ? "auto" : std::to_string(number);
    return number >= -1;
}
bool written_to(const seconds &, const void *buffer, int, std::string &value) {
    value = format("{}", number_in<double>(buffer));
    return true;
}
bool written_to(const on_off &, const void *buffer, int, std::string &value) {
    value = std::to_string(number_in<int>(buffer));
    return true;
}
bool written_to(const text &, const void *buffer, int elements, std::string &value) {
    const auto *const begin = static_cast<const char *>(buffer);
    const void *const end = std::memchr(begin, '\0', static_cast<std::size_t>(elements));
    if (end == nullptr) return false;
    value.assign(begin, static_cast<const char *>(end));
    return true;
}
template <class Knob>
requires is_named<Knob>
bool written_to(const Knob &, const void *buffer, int, std::string &value) {
    constexpr std::array names = names_of(Knob{});
    const int i = number_in<int>(buffer);
    if (i < 0 || static_cast<std::size_t>(i) >= names.size()) return false;
    value = names[static_cast<std::size_t>(i)];
    return true;
}

// ---- the table -------------------------------------------------------------------------------------------------------

std::string name_of(std::string_view variable) {
    std::string name(variable);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return name;
}

template <class Knob>
const value_names *names_for(const char *variable) {
    if constexpr (is_named<Knob>) {
        constexpr std::array names = names_of(Knob{});
        static const auto *const made = new value_names{name_of(variable), {names.begin(), names.end()}};
        return made;
    } else {
        return nullptr;
    }
}

int scope_of(std::string_view variable) {
    if (variable == "MPIX_CUDA_EAGER_LOADING") return MPI_T_SCOPE_CONSTANT;  // read when the library is loaded
    if (variable == "MPIX_TRANSPORTS") return MPI_T_SCOPE_ALL_EQ;            // all pairs of nodes need one network
    return MPI_T_SCOPE_LOCAL;
}

template <class Knob>
std::string meaning_of(std::string_view meaning) {
    std::string all(meaning);
    if (std::is_same_v<Knob, count_or_auto>) all += "; -1 stands for auto";
    return all;
}

template <class Knob>
int elements_of(const Knob &now) {
    if constexpr (std::is_same_v<Knob, text>) return static_cast<int>(std::max(room_for_text, now.size() + 1));
    return 1;
}

std::vector<knob_variable> make_variables() {
    std::vector<knob_variable> all;
    const configuration now = configuration_so_far();
#define MPIX_KNOB(member, knob_type, variable, initial, meaning)                                                  \
    all.push_back(                                                                                                \
        {name_of(variable), variable, meaning_of<knob_type>(meaning), type_of<knob_type>(),                       \
         names_for<knob_type>(variable), scope_of(variable), elements_of<knob_type>(now.member),                  \
         [](const configuration &from, void *buffer, int elements) { read_knob(from.member, buffer, elements); }, \
         [](const void *buffer, int elements, std::string &value) {                                               \
             return written_to(knob_type{}, buffer, elements, value);                                             \
         }});
#include "host/config.def"
#undef MPIX_KNOB
    return all;
}

}  // namespace

const std::vector<knob_variable> &knob_variables() {
    static const auto *const all = new std::vector<knob_variable>(make_variables());
    return *all;
}

const value_names *as_value_names(MPI_T_enum names) {
    for (const knob_variable &one : knob_variables())
        if (one.names != nullptr && as_enum(one.names) == names) return one.names;
    return nullptr;
}

}  // namespace mpix::tool_information
