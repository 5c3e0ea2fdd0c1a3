// SPDX-License-Identifier: BSD-3-Clause
//
// The header of a checkpoint as any bytes, or, if the first byte is odd, with the length and the checksum that they
// should have: what passes comes out as it went in, and speaks of a file of a possible length.
#include "host/halo_files/checkpoint_header.h"

#include <cstring>
#include <vector>

#include "tests/fuzz/input.h"
#include "tests/fuzz/landmark.h"

using namespace mpix::halo;

namespace {

fuzz::landmark accepted("a header with fields is accepted");

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    if (size == 0) return 0;
    std::vector<std::byte> bytes(size - 1);
    if (!bytes.empty()) std::memcpy(bytes.data(), data + 1, bytes.size());
    if (data[0] % 2 == 1) {
        bytes.resize((std::max<std::size_t>(bytes.size(), 72) + 63) / 64 * 64);
        const auto length = static_cast<std::int64_t>(bytes.size());
        std::memcpy(bytes.data() + 16, &length, sizeof length);
        const std::uint64_t sum = checksum_of(bytes);
        std::memcpy(bytes.data() + bytes.size() - sizeof sum, &sum, sizeof sum);
    }
    checkpoint_header header;
    if (const mpix::status s = parse(bytes, header); !s.ok()) {
        FUZZ_CHECK(!s.message().empty());
        return 0;
    }
    FUZZ_CHECK(to_bytes(header) == bytes);
    std::int64_t place = header.bytes();
    for (std::size_t f = 0; f < header.fields.size(); ++f) {
        FUZZ_CHECK(header.place_of(f) >= place && header.fields[f].bytes() >= 1);
        place = header.place_of(f) + header.fields[f].bytes();
        accepted.reach();
    }
    FUZZ_CHECK(header.place_of(header.fields.size()) == place);
    return 0;
}
