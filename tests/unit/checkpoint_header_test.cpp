// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_files/checkpoint_header.h"

#include <cstring>
#include <functional>

#include "tests/catch.hpp"

using namespace mpix;
using namespace mpix::halo;

namespace {

checkpoint_header example() {
    return {
        .step = -5,
        .extent = {10, 20, 1},
        .fields = {{"density", {10, 20, 1}, 8, 3, value_type::float64}, {"a", {11, 20, 1}, 5, 1, value_type::bytes}}};
}

using bytes = std::vector<std::byte>;

void put(bytes &to, std::size_t place, std::int64_t number) { std::memcpy(to.data() + place, &number, sizeof number); }
void repair(bytes &of) { put(of, of.size() - 8, static_cast<std::int64_t>(checksum_of(of))); }

// What parse() says of the example after a change, with a checksum that is right.
std::string said_of(const std::function<void(bytes &)> &change) {
    bytes header = to_bytes(example());
    change(header);
    repair(header);
    checkpoint_header made;
    const status s = parse(header, made);
    return s.ok() ? "nothing" : s.message();
}
std::string said_of(std::size_t place, std::int64_t number) {
    return said_of([&](bytes &b) { put(b, place, number); });
}

}  // namespace

TEST_CASE("a header's bytes are those that docs/halo.md describes") {
    bytes expected(256);
    const auto text = [&](std::size_t place, const char *of) {
        std::memcpy(expected.data() + place, of, std::strlen(of));
    };
    text(0, "mpixhalo");
    put(expected, 8, 0x0000000101020304);
    put(expected, 16, 256);
    put(expected, 24, -5);
    std::size_t place = 32;
    for (const std::int64_t number : {10, 20, 1, 2, 10, 20, 1, 8, 3, 10, 7}) {
        put(expected, place, number);
        place += 8;
    }
    text(place, "density");
    place += 8;
    for (const std::int64_t number : {11, 20, 1, 5, 1, 0, 1}) {
        put(expected, place, number);
        place += 8;
    }
    text(place, "a");
    repair(expected);
    CHECK(to_bytes(example()) == expected);
    CHECK(example().place_of(0) == 256);
    CHECK(example().place_of(1) == 256 + 4800);         // a multiple of 64
    CHECK(example().place_of(2) == 256 + 4800 + 1100);  // where the file ends
}

TEST_CASE("a header is read as it was written") {
    for (const checkpoint_header &header : {checkpoint_header{}, example()}) {
        const bytes written = to_bytes(header);
        std::int64_t length = 0;
        REQUIRE(header_bytes_of(std::span(written).first(preamble_bytes), length).ok());
        CHECK(length == static_cast<std::int64_t>(written.size()));
        checkpoint_header read;
        REQUIRE(parse(written, read).ok());
        CHECK(to_bytes(read) == written);
        CHECK(read.fields.size() == header.fields.size());
    }
}

TEST_CASE("what is wrong in a header is named") {
    CHECK(said_of([](bytes &b) { b[3] = std::byte{'X'}; }) == "it is no checkpoint: it does not begin with mpixhalo");
    CHECK(said_of(8, 0x0000000104030201) == "byte_order: it is of a machine of the other byte order");
    CHECK(said_of(8, 0x0000000101020305) == "byte_order is 0x1020305; it is 0x1020304");
    CHECK(said_of(8, 0x0000000201020304) == "version is 2; this library reads version 1");
    CHECK(said_of(16, 255) == "header_bytes is 255; it is a multiple of 64, up to 1048576");
    CHECK(said_of(16, 0) == "header_bytes is 0; it is a multiple of 64, up to 1048576");
    CHECK(said_of(16, 320) == "header_bytes is 320, and there are 256");
    CHECK(said_of(32, 0) == "extent[0] is 0; it is at least 1");
    CHECK(said_of(40, -1) == "extent[1] is -1; it is at least 1");
    CHECK(said_of(48, INT64_MAX) == "extent: more than 2^62 cells");
    CHECK(said_of(56, -1) == "field_count is -1; it is 0 to 1024");
    CHECK(said_of(56, 1025) == "field_count is 1025; it is 0 to 1024");
    CHECK(said_of(56, 1) == "header_bytes is 256; the fields take 192, and zeros follow");
    CHECK(said_of(56, 3) == "fields[2].extent[0] is 0; it is at least 1");
    CHECK(said_of(64, 0) == "fields[0].extent[0] is 0; it is at least 1");
    CHECK(said_of(64, INT64_MAX) == "fields[0].extent: more than 2^62 cells");
    CHECK(said_of(64, std::int64_t{1} << 55) == "fields[0]: more than 2^62 bytes");
    CHECK(said_of(88, 0) == "fields[0].value_bytes is 0; it is at least 1");
    CHECK(said_of(88, 4) == "fields[0].value_bytes is 4; values of its type, float64, have 8");
    CHECK(said_of(96, -3) == "fields[0].components is -3; it is at least 1");
    CHECK(said_of(96, 1 << 28) == "fields[0]: the values of a cell take more than 2^30 bytes");
    CHECK(said_of(104, 12) == "fields[0].type is 12; it is 0 to 11");
    CHECK(said_of(104, -1) == "fields[0].type is -1; it is 0 to 11");
    CHECK(said_of(112, 0) == "fields[0].name_bytes is 0; it is 1 to 255");
    CHECK(said_of(112, 256) == "fields[0].name_bytes is 256; it is 1 to 255");
    CHECK(said_of(112, 200) == "fields[0].name is cut short by the end of the header");
    CHECK(said_of(112, 6) == "fields[0].name is not followed by zeros");
    CHECK(said_of([](bytes &b) { b[121] = std::byte{'\n'}; }) ==
          "fields[0].name has a character that is not printable ASCII");
    CHECK(said_of(176, 0) == "fields[1].name_bytes is 0; it is 1 to 255");
    CHECK(said_of(200, 1) == "header_bytes is 256; the fields take 256, and zeros follow");
    bytes header = to_bytes(example());
    header[60] ^= std::byte{1};
    checkpoint_header made;
    CHECK(parse(header, made).message() == "checksum is wrong: the header is damaged");
    CHECK(parse(bytes(20), made).message() == "it is no checkpoint: it does not begin with mpixhalo");
    CHECK(parse(std::span(header).first(20), made).message() == "it has 20 bytes; that is no whole header");
    checkpoint_header twice = example();
    twice.fields[1].name = "density";
    CHECK(parse(to_bytes(twice), made).message() == "fields[1].name is density, which is that of fields[0]");
    checkpoint_header large = example();
    for (const char *name : {"2", "3", "4", "5"})
        large.fields.push_back({name, {std::int64_t{1} << 40, 1 << 20, 1}, 1, 1, value_type::bytes});
    CHECK(parse(to_bytes(large), made).message() == "fields[5]: more than 2^62 bytes with those before");
}
