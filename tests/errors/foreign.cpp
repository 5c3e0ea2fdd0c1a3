// SPDX-License-Identifier: BSD-3-Clause
//
// World rank 1 sends what is nobody's over the channel on which mpix sets pairs up: noise, wrong lengths, and messages
// that look right but name other processes' requests. Ranks 0 and 2 exchange data meanwhile and must not notice.
#include <dlfcn.h>
#include <mpi.h>
#include <mpix/mpix.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "host/control/message.h"

using namespace mpix;

namespace {

MPI_Comm channel = MPI_COMM_NULL;
MPI_Comm *channel_is_at = nullptr;  // complete after MPI_Init

#define REQUIRE(condition)                                                                                        \
    do {                                                                                                          \
        if (!(condition)) {                                                                                       \
            std::fprintf(stderr, "FAILED foreign.cpp:%d, world rank %d: %s\n", __LINE__, world_rank, #condition); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                         \
        }                                                                                                         \
    } while (0)

int world_rank = -1;
constexpr int tag = 4, parts = 6, count = 300, epochs = 60, good_epochs_after = 5;

unsigned char byte_of(int from, int epoch, std::size_t i) {
    return static_cast<unsigned char>(from * 91 + epoch * 57 + static_cast<int>(i % 251));
}

void exchange(MPI_Request both[2], std::vector<unsigned char> &out, std::vector<unsigned char> &in, int peer,
              int epoch) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = byte_of(world_rank, epoch, i);
    std::memset(in.data(), 0xee, in.size());
    REQUIRE(MPI_Startall(2, both) == MPI_SUCCESS);
    for (int p = 0; p < parts; ++p) REQUIRE(MPI_Pready(p, both[0]) == MPI_SUCCESS);
    REQUIRE(MPI_Waitall(2, both, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    for (std::size_t i = 0; i < in.size(); ++i) REQUIRE(in[i] == byte_of(peer, epoch, i));
}

void make_pair(MPI_Request both[2], std::vector<unsigned char> &out, std::vector<unsigned char> &in, int peer) {
    REQUIRE(MPI_Psend_init(out.data(), parts, count, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]) ==
            MPI_SUCCESS);
    REQUIRE(MPI_Precv_init(in.data(), parts, count, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]) ==
            MPI_SUCCESS);
}

void send_foreign_messages(unsigned seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    for (int n = 0; n < 400; ++n) {
        const auto partitions = static_cast<std::int32_t>(1 + below(8));
        const std::uint64_t all_bytes = static_cast<std::uint64_t>(partitions) * count;
        const auto refusal = static_cast<refusal_reason>(below(3));
        const control_body bodies[] = {
            offer_body{.communicator = random(),
                       .tag = static_cast<int>(below(8)),
                       .partitions = partitions,
                       .bytes = all_bytes,
                       .flags = {below(3)}},
            accept_body{.refusal = refusal, .partitions = partitions, .bytes = all_bytes, .slots = below(3)},
            connect_body{.refusal = refusal}, started_body{},
            withdraw_body{.by = below(3) == 0 ? pair_side::send : pair_side::receive}};
        const control_body &body = bodies[below(5)];
        const bool to_nobody = std::holds_alternative<offer_body>(body) || std::holds_alternative<started_body>(body);
        const control_packet packet =
            encode_control({.from = 1 + below(20), .to = to_nobody ? 0 : 1 + below(20), .body = body});
        char raw[sizeof packet + 64];
        for (char &c : raw) c = static_cast<char>(random());
        unsigned bytes = sizeof packet;
        if (below(4) != 0) std::memcpy(raw, &packet, sizeof packet);  // otherwise noise
        if (below(4) == 0) raw[below(sizeof packet)] ^= static_cast<char>(1u << below(8));
        if (below(8) == 0) bytes = below(sizeof raw + 1);
        PMPI_Send(raw, static_cast<int>(bytes), MPI_BYTE, 2 * static_cast<int>(below(2)), 0, channel);
    }
}

}  // namespace

// The channel is the first duplicate of MPI_COMM_WORLD, which MPI_Init of mpix makes.
extern "C" int PMPI_Comm_idup(MPI_Comm comm, MPI_Comm *made, MPI_Request *request) {
    using function = int (*)(MPI_Comm, MPI_Comm *, MPI_Request *);
    static const auto real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "PMPI_Comm_idup"));
    if (comm == MPI_COMM_WORLD && channel_is_at == nullptr) channel_is_at = made;
    return real(comm, made, request);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    REQUIRE(channel_is_at != nullptr);
    channel = *channel_is_at;
    unsigned seed = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : std::random_device{}();
    MPI_Bcast(&seed, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
    if (world_rank == 0) std::printf("seed %u\n", seed);
    std::vector<unsigned char> out(parts * count), in(parts * count);
    const int peer = 2 - world_rank;
    if (world_rank == 1) {
        send_foreign_messages(seed);
    } else {
        for (int epoch = 0; epoch < epochs; epoch += 3) {
            MPI_Request both[2];
            make_pair(both, out, in, peer);
            for (int e = epoch; e < epoch + 3; ++e) exchange(both, out, in, peer, e);
            REQUIRE(MPI_Request_free(&both[0]) == MPI_SUCCESS);
            REQUIRE(MPI_Request_free(&both[1]) == MPI_SUCCESS);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    // All of it has been sent; what comes now must still be right.
    if (world_rank != 1) {
        MPI_Request both[2];
        make_pair(both, out, in, peer);
        for (int e = 0; e < good_epochs_after; ++e) exchange(both, out, in, peer, e);
        REQUIRE(MPI_Request_free(&both[0]) == MPI_SUCCESS);
        REQUIRE(MPI_Request_free(&both[1]) == MPI_SUCCESS);
    }
    MPI_Finalize();
    if (world_rank == 0) std::printf("came through\n");
    return 0;
}
