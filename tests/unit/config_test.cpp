// SPDX-License-Identifier: BSD-3-Clause
//
// The knobs: what their parsers take, and what they say of the rest.
#include "host/config.h"
#include "host/unknown_names.h"

#include <array>
#include <clocale>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace mpix;

namespace {

std::map<std::string, std::string> environment;

status read(configuration &out) {
    return read_configuration(
        [](const char *name) -> const char * {
            const auto it = environment.find(name);
            return it == environment.end() ? nullptr : it->second.c_str();
        },
        out);
}

std::vector<int> cpus(const std::string &list) {
    std::vector<int> out;
    CAPTURE(list);
    CHECK(parse_cpu_list(list, out));
    return out;
}

}  // namespace

TEST_CASE("an empty environment gives the defaults") {
    environment.clear();
    configuration c;
    CHECK(read(c).ok());
    CHECK(c.progress == progress_mode::automatic);
    CHECK(c.progress_cpus.empty());
    CHECK(c.stall_seconds == 300);
    CHECK(c.eager_bytes == 1048576);
    CHECK(config().eager_bytes == 1048576);
    CHECK(c.single_copy_bytes == 131072);
    CHECK(c.landing_bytes == 1048576);
    CHECK(c.pack == pack_mode::none);
    CHECK(c.transfer == halo_transfer::program);
    CHECK(c.stream_exchanges == halo_stream::kernels);
    CHECK(c.copy_engine_bytes.automatic);
    CHECK(c.inline_bytes.automatic);
    CHECK(c.rget_bytes.automatic);
    CHECK_FALSE(c.explain);
}

// The first locale of the system's that has a decimal comma; the C locale where there is none.
static void set_comma() {
    for (const char *name : {"de_DE.utf8", "de_DE.UTF-8", "fr_FR.utf8", "fr_FR.UTF-8", "es_ES.utf8", "es_ES.UTF-8"})
        if (std::setlocale(LC_ALL, name) != nullptr && std::strcmp(std::localeconv()->decimal_point, ",") == 0) return;
    std::setlocale(LC_ALL, "C");
}

TEST_CASE("numbers have a decimal point in every locale") {
    set_comma();
    configuration c;
    environment = {{"MPIX_STALL_SECONDS", "0.5"}};
    const status problem = read(c);
    environment = {{"MPIX_STALL_SECONDS", "0,5"}};
    const status other_problem = read(c);
    std::setlocale(LC_ALL, "C");
    CHECK(problem.ok());
    CHECK(other_problem.message().find("MPIX_STALL_SECONDS") != std::string::npos);
}

TEST_CASE("good values are taken") {
    environment = {{"MPIX_PROGRESS", "never"},      {"MPIX_PROGRESS_CPUS", "3,8-11"}, {"MPIX_STALL_SECONDS", "0.25"},
                   {"MPIX_EAGER_BYTES", "0"},       {"MPIX_PACK", "kernel"},          {"MPIX_EXPLAIN", "1"},
                   {"MPIX_ENGINE_BYTES", "4096"},   {"MPIX_INLINE_BYTES", "0"},       {"MPIX_RGET_BYTES", "0"},
                   {"MPIX_HALO_TRANSFER", "plain"}, {"MPIX_HALO_STREAM", "packed"}};
    configuration c;
    CHECK(read(c).ok());
    CHECK(c.progress == progress_mode::never);
    CHECK(c.progress_cpus == "3,8-11");
    CHECK(c.stall_seconds == 0.25);
    CHECK(c.eager_bytes == 0);
    CHECK(c.pack == pack_mode::kernel);
    CHECK(c.transfer == halo_transfer::plain);
    CHECK(c.stream_exchanges == halo_stream::packed);
    CHECK(c.explain);
    CHECK_FALSE(c.copy_engine_bytes.automatic);
    CHECK(c.copy_engine_bytes.number == 4096);
    CHECK_FALSE(c.inline_bytes.automatic);
    CHECK(c.inline_bytes.number == 0);
    CHECK_FALSE(c.rget_bytes.automatic);
    CHECK(c.rget_bytes.number == 0);
    environment = {{"MPIX_PROGRESS", "always"}, {"MPIX_STALL_SECONDS", "1e3"}, {"MPIX_PACK", "copy"},
                   {"MPIX_EXPLAIN", "0"},       {"MPIX_ENGINE_BYTES", "auto"}, {"MPIX_INLINE_BYTES", "auto"},
                   {"MPIX_RGET_BYTES", "auto"}};
    CHECK(read(c).ok());
    CHECK(c.progress == progress_mode::always);
    CHECK(c.stall_seconds == 1000);
    CHECK(c.pack == pack_mode::rows);
    CHECK(c.copy_engine_bytes.automatic);
    CHECK(c.inline_bytes.automatic);
    CHECK(c.rget_bytes.automatic);
    CHECK(c.eager_bytes == 1048576);  // back to its default
    CHECK_FALSE(c.explain);
}

TEST_CASE("a malformed value is refused, with the variable's name and the value") {
    const std::vector<std::pair<std::string, std::string>> bad = {{"MPIX_PROGRESS", ""},
                                                                  {"MPIX_PROGRESS", "Auto"},
                                                                  {"MPIX_PROGRESS", "always "},
                                                                  {"MPIX_PROGRESS", "1"},
                                                                  {"MPIX_STALL_SECONDS", ""},
                                                                  {"MPIX_STALL_SECONDS", "-1"},
                                                                  {"MPIX_STALL_SECONDS", "5s"},
                                                                  {"MPIX_STALL_SECONDS", "nan"},
                                                                  {"MPIX_STALL_SECONDS", "inf"},
                                                                  {"MPIX_STALL_SECONDS", "1e99"},
                                                                  {"MPIX_EAGER_BYTES", ""},
                                                                  {"MPIX_EAGER_BYTES", "-1"},
                                                                  {"MPIX_EAGER_BYTES", "+1"},
                                                                  {"MPIX_EAGER_BYTES", "1k"},
                                                                  {"MPIX_EAGER_BYTES", " 1"},
                                                                  {"MPIX_EAGER_BYTES", "0x10"},
                                                                  {"MPIX_EAGER_BYTES", "1.5"},
                                                                  {"MPIX_EAGER_BYTES", "99999999999999999999"},
                                                                  {"MPIX_PROGRESS_CPUS", "1,"},
                                                                  {"MPIX_PROGRESS_CPUS", "3-1"},
                                                                  {"MPIX_PROGRESS_CPUS", "a"},
                                                                  {"MPIX_EXPLAIN", ""},
                                                                  {"MPIX_EXPLAIN", "2"},
                                                                  {"MPIX_EXPLAIN", "yes"},
                                                                  {"MPIX_PACK", ""},
                                                                  {"MPIX_ENGINE_BYTES", ""},
                                                                  {"MPIX_ENGINE_BYTES", "Auto"},
                                                                  {"MPIX_ENGINE_BYTES", "-1"},
                                                                  {"MPIX_ENGINE_BYTES", "4k"},
                                                                  {"MPIX_INLINE_BYTES", "automatic"},
                                                                  {"MPIX_INLINE_BYTES", ""},
                                                                  {"MPIX_RGET_BYTES", ""},
                                                                  {"MPIX_RGET_BYTES", "-1"},
                                                                  {"MPIX_PACK", "rows"},
                                                                  {"MPIX_HALO_TRANSFER", "Packed"}};
    for (const auto &[name, value] : bad) {
        CAPTURE(name, value);
        environment = {{name, value}};
        configuration c;
        const status problem = read(c);
        CHECK(problem.message().find(name + "=\"" + value + "\" is malformed: it takes ") == 0);
    }
}

TEST_CASE("of a malformed value nothing is kept") {  // waits read MPIX_STALL_SECONDS before the program is told
    for (const char *const value : {"nan", "inf", "1e308", "-1", "3s"}) {
        CAPTURE(value);
        environment = {{"MPIX_STALL_SECONDS", value}};
        configuration c;
        CHECK(!read(c).ok());
        CHECK(c.stall_seconds == 300);
    }
    environment = {{"MPIX_EAGER_BYTES", "1k"}, {"MPIX_WORK_QUEUE", "no"}, {"MPIX_RGET_BYTES", "4k"}};
    configuration c;
    CHECK(!read(c).ok());
    CHECK(c.eager_bytes == 1048576);
    CHECK(c.work_queue);
    CHECK(c.rget_bytes.automatic);
}

TEST_CASE("the sentence says what a variable takes") {
    const std::vector<std::array<std::string, 2>> takes = {{"MPIX_EAGER_BYTES", "a whole number, at least 0"},
                                                           {"MPIX_INLINE_BYTES", "auto, or a whole number, at least 0"},
                                                           {"MPIX_EXPLAIN", "0 or 1"},
                                                           {"MPIX_STALL_SECONDS", "a number of seconds, at least 0"},
                                                           {"MPIX_PROGRESS", "auto, always or never"},
                                                           {"MPIX_PROGRESS_CPUS", "a list of CPUs such as 3,8-11"},
                                                           {"MPIX_PACK", "auto, kernel or copy"}};
    for (const auto &[name, what] : takes) {
        environment = {{name, "x"}};
        configuration c;
        CHECK(read(c).message() == name + "=\"x\" is malformed: it takes " + what);
    }
}

TEST_CASE("the first of several malformed values is named") {
    environment = {{"MPIX_PROGRESS", "x"}, {"MPIX_EAGER_BYTES", "y"}};
    configuration c;
    CHECK(read(c).message().find("MPIX_PROGRESS=") == 0);
}

TEST_CASE("CPU lists") {
    CHECK(cpus("") == std::vector<int>{});
    CHECK(cpus("0") == std::vector<int>{0});
    CHECK(cpus("3,8-11") == std::vector<int>{3, 8, 9, 10, 11});
    CHECK(cpus("5-5,2") == std::vector<int>{5, 2});
    CHECK(cpus("65535") == std::vector<int>{65535});
    for (const char *list :
         {",",  "1,", ",1", "1,,2", "-1",    "1-",      "1--2",        "2-1",       "1-2-3", "1 ,2", " 1",
          "1 ", "a",  "1a", "0x1",  "65536", "0-65536", "99999999999", "0-65535,7", "+1",    "1.5",  "1;2"}) {
        std::vector<int> out;
        CAPTURE(list);
        CHECK_FALSE(parse_cpu_list(list, out));
    }
}

TEST_CASE("the nearest name is found") {
    const std::vector<std::string_view> names = {"MPIX_TRANSPORTS", "MPIX_PACK", "MPIX_PROGRESS", "MPIX_PROGRESS_CPUS"};
    CHECK(nearest_name("MPIX_TRANSPORT", names) == "MPIX_TRANSPORTS");
    CHECK(nearest_name("MPIX_TRNASPORTS", names) == "MPIX_TRANSPORTS");
    CHECK(nearest_name("MPIX_PROGRES", names) == "MPIX_PROGRESS");
    CHECK(nearest_name("MPIX_PROGRESS_CPU", names) == "MPIX_PROGRESS_CPUS");
    CHECK(nearest_name("MPIX_SOMETHING_ELSE", names).empty());
    CHECK(nearest_name("MPIX_PACK", {}).empty());
}

TEST_CASE("variables that mpix does not know are warned of") {
    const char *const variables[] = {"PATH=/bin",        "MPIX_PACK=auto", "MPIX_STALL_SECOND=1",
                                     "MPIX_TEST_SEED=4", "MPIX_ROOT=/opt", "MPIX_STALL_SECONDS=1",
                                     "MPIX_QUITE_ELSE",  nullptr};
    const std::vector<std::string> lines = unknown_variables(variables);
    REQUIRE(lines.size() == 2);
    CHECK(lines[0].find("has MPIX_STALL_SECOND,") != std::string::npos);
    CHECK(lines[0].find("did you mean MPIX_STALL_SECONDS?") != std::string::npos);
    CHECK(lines[1].find("has MPIX_QUITE_ELSE,") != std::string::npos);
    CHECK(lines[1].find("did you mean") == std::string::npos);
    CHECK(unknown_variables(nullptr).empty());
}
