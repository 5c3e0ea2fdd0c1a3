// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Pack and MPI_Unpack of memory of a GPU, or of the host: random types, rows of all lengths, tables, many bytes,
// errors. Both buffers are poisoned and every byte of them is checked, against the offsets that the standard gives the
// types.
#include "tests/device/pack_samples.hpp"

#ifdef __CUDACC__
#include "tests/device/pack_gpu.hpp"
#else
#include "tests/device/pack_library.hpp"
#endif

using namespace pack_test;

namespace {

// There and back, with other bytes before and behind in the packed buffer.
void round_trip(session &s, const sample &type, int count, std::mt19937_64 &random) {
    const auto at = offsets(type, count);
    const int size = static_cast<int>(at.size()), lead = static_cast<int>(random() % 3 * 8 + random() % 2);
    const int outsize = lead + size + 5;
    arena model(type, count);
    fill(model.bytes, random);
    memory elements(s, model.bytes.size(), static_cast<int>(random() % 4 == 0 ? random() % 16 : 0));
    memory packed(s, static_cast<std::size_t>(outsize), static_cast<int>(random() % 4 == 0 ? random() % 16 : 0));
    elements.put(model.bytes);
    bytes expected(static_cast<std::size_t>(outsize));
    fill(expected, random);
    packed.put(expected);
    for (std::size_t n = 0; n < at.size(); ++n) expected[static_cast<std::size_t>(lead) + n] = model.buffer()[at[n]];
    int position = lead;
    must(MPI_Pack(elements.at() + model.origin, count, type.type, packed.at(), outsize, &position, MPI_COMM_SELF),
         "MPI_Pack");
    REQUIRE(position == lead + size, "%s: position is %d", s.what.c_str(), position);
    same(s, packed.get(), expected, "packed bytes");
    same(s, elements.get(), model.bytes, "memory after packing");

    if (overlaps(at)) return;
    fill(expected, random);
    packed.put(expected);
    for (std::size_t n = 0; n < at.size(); ++n) model.buffer()[at[n]] = expected[static_cast<std::size_t>(lead) + n];
    position = lead;
    must(MPI_Unpack(packed.at(), outsize, &position, elements.at() + model.origin, count, type.type, MPI_COMM_SELF),
         "MPI_Unpack");
    REQUIRE(position == lead + size, "%s: position is %d", s.what.c_str(), position);
    same(s, elements.get(), model.bytes, "unpacked memory");
    same(s, packed.get(), expected, "packed bytes after unpacking");
}

void random_types(session &s, std::mt19937_64 &random) {
    type_maker maker(s.seed);
    const int types = s.quick ? 60 : 400;
    for (int n = 0; n < types; ++n) {
        sample type = maker.make(n % 4);
        s.what = "type " + std::to_string(n) + ": " + type.text;
        commit(type);
        round_trip(s, type, maker.between(1, 3), random);
    }
}

void rows_of_all_lengths(session &s, std::mt19937_64 &random) {
    const int total = s.quick ? 20'000 : 200'000;
    for (const int run : {1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 20, 24, 31, 32, 48, 63, 64, 100, 128, 333, 1000, 4096})
        for (const int pitch : {run + 1, 2 * run, run + 60, 1024 + run / 1024 * 4096}) {
            if (pitch <= run) continue;
            s.what = "rows of " + std::to_string(run) + " bytes at " + std::to_string(pitch);
            round_trip(s, rows(std::max(2, total / (run + pitch)), run, pitch), 1, random);
        }
}

void tables(session &s, std::mt19937_64 &random) {
    for (const int unit : {1, 2, 4, 8, 16})
        for (const bool equal : {false, true}) {
            s.what = std::string(equal ? "equal" : "unequal") + " blocks of " + std::to_string(unit);
            round_trip(s, blocks(random, s.quick ? 200 : 3000, unit, equal), 3, random);
        }
}

// Rows in planes, so that they do not all follow each other at one distance.
sample planes(int count, int height, int run, int pitch) {
    const sample plane = rows(height, run, pitch);
    sample out;
    out.named = false;
    const MPI_Aint distance = MPI_Aint{height} * pitch + 37;
    MPI_Type_create_hvector(count, 1, distance, plane.type, &out.type);
    for (int p = 0; p < count; ++p)
        for (const std::int64_t at : plane.map) out.map.push_back(p * distance + at);
    commit(out);
    return out;
}

// Above the size from which a thread has several units, and some go through shared memory.
void many_bytes(session &s, std::mt19937_64 &random) {
    // Less of it where a sanitizer looks at every byte of host memory.
    const int scale = s.quick && !executor::is_gpu ? 16 : 1, total = (6 << 20) / scale, most = (9 << 19) / scale;
    // One or more of each way that pack/staged.cuh has.
    struct shape {
        int run, pitch;
    };
    for (const shape r : {shape{1, 3},
                          {3, 6},
                          {2, 20},
                          {5, 11},
                          {12, 25},
                          {4, 64},
                          {17, 130},
                          {12, 24},
                          {20, 40},
                          {20, 80},
                          {33, 128},
                          {48, 96},
                          {48, 128},
                          {48, 97},
                          {100, 200},
                          {100, 201},
                          {200, 401},
                          {333, 400},
                          {5000, 5013}}) {
        s.what = "many bytes in rows of " + std::to_string(r.run) + " at " + std::to_string(r.pitch);
        round_trip(s, rows(most / r.run, r.run, r.pitch), 1, random);
    }
    for (const shape r : {shape{3, 7}, {7, 64}, {12, 24}, {100, 201}, {300, 450}}) {
        s.what = "many bytes in planes of rows of " + std::to_string(r.run);
        round_trip(s, planes(most / 1500 / r.run + 1, 1500, r.run, r.pitch), 1, random);
    }
    for (const int run : {4, 8, 16, 48, 1000, 4096, 4097}) {
        s.what = "many bytes in rows of " + std::to_string(run);
        round_trip(s, rows(total / run, run, run + (run % 16 == 0 ? 16 : 8)), 1, random);
    }
    for (const int unit : {4, 16}) {
        s.what = "many bytes in blocks of " + std::to_string(unit);
        round_trip(s, blocks(random, total / unit / 5, unit, false), 1, random);
    }
}

// ---- errors --------------------------------------------------------------------------------------------------

void errors(session &s) {
    s.what = "errors";
    const sample type = rows(4, 3, 8);  // 12 bytes
    memory elements(s, 128), packed(s, 64);
    const bytes before(64, 'p');
    packed.put(before);
    elements.put(bytes(128, 'e'));
    const auto pack = [&](int count, MPI_Datatype t, int outsize, int position, MPI_Comm comm) {
        const int given = position;
        const int code = MPI_Pack(elements.at(), count, t, packed.at(), outsize, &position, comm);
        REQUIRE(code == MPI_SUCCESS || position == given, "a failed MPI_Pack moved the position");
        return code;
    };
    const auto unpack = [&](int count, MPI_Datatype t, int insize, int position, MPI_Comm comm) {
        return MPI_Unpack(packed.at(), insize, &position, elements.at(), count, t, comm);
    };
    MPI_Comm comm;
    must(MPI_Comm_dup(MPI_COMM_SELF, &comm), "MPI_Comm_dup");
    must(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    must_refuse(pack(1, type.type, 11, 0, comm), MPI_ERR_TRUNCATE, "MPI_Pack into too few bytes");
    must_refuse(pack(1, type.type, 15, 4, comm), MPI_ERR_TRUNCATE, "MPI_Pack from a position too far");
    must_refuse(pack(1, type.type, 12, 13, comm), MPI_ERR_TRUNCATE, "MPI_Pack from beyond the end");
    must_refuse(pack(-1, type.type, 64, 0, comm), MPI_ERR_COUNT, "MPI_Pack of -1 elements");
    must_refuse(pack(1, MPI_DATATYPE_NULL, 64, 0, comm), MPI_ERR_TYPE, "MPI_Pack of no type");
    must_refuse(pack(1, type.type, -1, 0, comm), MPI_ERR_ARG, "MPI_Pack into -1 bytes");
    must_refuse(pack(1, type.type, 64, -1, comm), MPI_ERR_ARG, "MPI_Pack at position -1");
    must_refuse(pack(1, type.type, 64, 0, MPI_COMM_NULL), MPI_ERR_COMM, "MPI_Pack on no communicator");
    must_refuse(unpack(1, type.type, 11, 0, comm), MPI_ERR_TRUNCATE, "MPI_Unpack of too few bytes");
    must_refuse(unpack(2, type.type, 20, 0, comm), MPI_ERR_TRUNCATE, "MPI_Unpack of too many elements");
    must_refuse(unpack(1, type.type, 64, 0, MPI_COMM_NULL), MPI_ERR_COMM, "MPI_Unpack on no communicator");
    int at = 0;
    must_refuse(MPI_Pack(nullptr, 1, type.type, packed.at(), 64, &at, comm), MPI_ERR_BUFFER,
                "MPI_Pack of a null inbuf");
    must_refuse(MPI_Pack(elements.at(), 1, type.type, nullptr, 64, &at, comm), MPI_ERR_BUFFER,
                "MPI_Pack into a null outbuf");
    must_refuse(MPI_Unpack(packed.at(), 64, &at, nullptr, 1, type.type, comm), MPI_ERR_BUFFER,
                "MPI_Unpack into a null outbuf");
    must(pack(0, type.type, 64, 3, comm), "MPI_Pack of nothing");
    must(unpack(0, type.type, 64, 3, comm), "MPI_Unpack of nothing");
    same(s, packed.get(), before, "packed bytes after errors");
    must(pack(1, type.type, 12, 0, comm), "MPI_Pack into just enough");
    int size = 0;
    must(MPI_Pack_size(5, type.type, comm, &size), "MPI_Pack_size");
    REQUIRE(size == 60, "MPI_Pack_size says %d", size);
    must_refuse(MPI_Pack_size(-1, type.type, comm, &size), MPI_ERR_COUNT, "MPI_Pack_size of -1 elements");
    must(MPI_Comm_free(&comm), "MPI_Comm_free");
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device pack");
    std::mt19937_64 random(s.seed);
#ifdef __CUDACC__
    begin("the second call");
    second_call(s, random);
#endif
    begin("random types");
    random_types(s, random);
    begin("rows of all lengths");
    rows_of_all_lengths(s, random);
    begin("tables");
    tables(s, random);
    begin("many bytes");
    many_bytes(s, random);
    begin("errors");
    errors(s);
    begin("host memory in a stream");
    int host = 0;
    MPI_Count position = 0;
    must_refuse(MPIX_Pack_enqueue(&host, 1, MPI_INT, &host, 4, &position, MPI_COMM_WORLD, nullptr), MPI_ERR_BUFFER,
                "MPIX_Pack_enqueue of host memory");
#ifdef __CUDACC__
    only_on_a_gpu(s, random);
#else
    only_on_the_host(s, random);
#endif
    return s.finish();
}
