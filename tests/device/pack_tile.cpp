// SPDX-License-Identifier: BSD-3-Clause
//
// mpix::pack_tile and unpack_tile in kernels: random types cut into intervals at any byte, each by one group, all at
// the same time. Every byte of both sides is checked.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/device/harness.hpp"
#include "tests/unit/arena.hpp"
#include "tests/unit/random_type.hpp"

using namespace device_test;

namespace {

struct pieces {
    MPIX_Typemap type;
    char *buffer, *packed;
    const std::int64_t *cut;  // of piece i: [cut[i], cut[i+1])
    int count;
    bool unpack;
    scope by;
    report *errors;

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        as_group(block, by, [&](const auto &group, int index, int groups) {
            for (int i = block_index * groups + index; i < count; i += blocks * groups) {
                const std::int64_t begin = cut[i], bytes = cut[i + 1] - begin;
                const int code = unpack ? mpix::unpack_tile(group, type, buffer, begin, bytes, packed + begin)
                                        : mpix::pack_tile(group, type, buffer, begin, bytes, packed + begin);
                expect_code(errors, 0, i, MPI_SUCCESS, code);
            }
        });
    }
};

struct misuse {
    MPIX_Typemap type;
    report *errors;
    template <class Block>
    DEVICE_FN void operator()(const Block &, int, int) const {
        char byte = 0;
        const auto one = mpix::this_thread();
        expect_code(errors, 0, 0, MPI_ERR_TYPE, mpix::pack_tile(one, MPIX_TYPEMAP_NULL, &byte, 0, 1, &byte));
        expect_code(errors, 0, 1, MPI_ERR_ARG, mpix::pack_tile(one, type, &byte, -1, 1, &byte));
        expect_code(errors, 0, 2, MPI_ERR_ARG, mpix::unpack_tile(one, type, &byte, 0, -1, &byte));
        expect_code(errors, 0, 3, MPI_SUCCESS, mpix::unpack_tile(one, type, &byte, 5, 0, &byte));
    }
};

using bytes = std::vector<char>;

bytes read(session &s, const char *from, std::size_t count) {
    bytes out(count);
    s.device->download(out.data(), from, count);
    return out;
}

void one_type(session &s, const sample &type, int device, type_maker &maker, std::mt19937_64 &random) {
    const int count = maker.between(1, 3);
    const auto at = offsets(type, count);
    if (at.empty()) return;
    const auto size = static_cast<std::int64_t>(at.size());
    arena model(type, count);
    fill(model.bytes, random);
    MPIX_Typemap map;
    must(MPIX_Typemap_create(type.type, device, &map), "MPIX_Typemap_create");

    // Neighbouring intervals, some of them empty; what is before the first and after the last stays as it is.
    std::vector<std::int64_t> cut;
    for (int n = maker.between(2, 12); n > 0; --n) cut.push_back(maker.between(0, static_cast<int>(size)));
    std::sort(cut.begin(), cut.end());
    char *const buffer = static_cast<char *>(s.device->allocate(model.bytes.size()));
    char *const packed = static_cast<char *>(s.device->allocate(at.size() + 16));
    auto *const cuts = static_cast<std::int64_t *>(s.device->allocate(cut.size() * sizeof cut[0]));
    s.device->upload(buffer, model.bytes.data(), model.bytes.size());
    s.device->upload(cuts, cut.data(), cut.size() * sizeof cut[0]);
    bytes expected(at.size() + 16);
    fill(expected, random);
    s.device->upload(packed, expected.data(), expected.size());
    const int skew = maker.below(16);
    constexpr scope scopes[] = {scope::block, scope::thread, scope::warp, scope::tile4, scope::partial_warp};
    const scope by = scopes[maker.below(executor::is_gpu ? 5 : 2)];
    pieces work{map, buffer + model.origin, packed + skew, cuts, static_cast<int>(cut.size()) - 1, false, by, s.errors};
    const int threads = executor::is_gpu ? 64 : 2;
    s.run(2, threads, work);
    for (std::int64_t n = cut.front(); n < cut.back(); ++n)
        expected[static_cast<std::size_t>(skew + n)] = model.buffer()[at[static_cast<std::size_t>(n)]];
    REQUIRE(read(s, packed, expected.size()) == expected, "%s: packed bytes", s.what.c_str());

    if (!overlaps(at)) {
        fill(expected, random);
        s.device->upload(packed, expected.data(), expected.size());
        for (std::int64_t n = cut.front(); n < cut.back(); ++n)
            model.buffer()[at[static_cast<std::size_t>(n)]] = expected[static_cast<std::size_t>(skew + n)];
        work.unpack = true;
        s.run(2, threads, work);
        REQUIRE(read(s, buffer, model.bytes.size()) == model.bytes, "%s: unpacked memory", s.what.c_str());
    }
    for (void *p : {static_cast<void *>(buffer), static_cast<void *>(packed), static_cast<void *>(cuts)})
        s.device->release(p);
    must(MPIX_Typemap_free(&map), "MPIX_Typemap_free");
    REQUIRE(map == MPIX_TYPEMAP_NULL, "a freed map is not null");
}

void errors(session &s, int device) {
    MPIX_Typemap map;
    MPI_Datatype empty;
    must(MPI_Type_contiguous(0, MPI_INT, &empty), "MPI_Type_contiguous");
    must_refuse(MPIX_Typemap_create(empty, device, &map), MPI_ERR_TYPE, "MPIX_Typemap_create of no bytes");
    must(MPI_Type_free(&empty), "MPI_Type_free");
    must_refuse(MPIX_Typemap_create(MPI_DATATYPE_NULL, device, &map), MPI_ERR_TYPE, "MPIX_Typemap_create of no type");
    must_refuse(MPIX_Typemap_create(MPI_INT, 1000, &map), MPI_ERR_ARG, "MPIX_Typemap_create on device 1000");
    must_refuse(MPIX_Typemap_create(MPI_INT, device, nullptr), MPI_ERR_ARG, "MPIX_Typemap_create to nowhere");
    must(MPIX_Typemap_create(MPI_INT, device, &map), "MPIX_Typemap_create");
    s.what = "misuse";
    s.run(1, 1, misuse{map, s.errors});
    MPIX_Typemap copy = map;
    must(MPIX_Typemap_free(&map), "MPIX_Typemap_free");
    must(MPIX_Typemap_free(&map), "MPIX_Typemap_free of a null map");
    must_refuse(MPIX_Typemap_free(&copy), MPI_ERR_ARG, "MPIX_Typemap_free of a freed map");
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device pack_tile");
    type_maker maker(s.seed + 3);
    std::mt19937_64 random(s.seed + 4);
    const int device = executor::is_gpu ? 0 : MPIX_ON_HOST, types = s.quick ? 40 : 300;
    for (int n = 0; n < types; ++n) {
        const sample type = maker.make(n % 4);
        s.what = "type " + std::to_string(n) + ": " + type.text;
        one_type(s, type, device, maker, random);
    }
    errors(s, device);
    return s.finish();
}
