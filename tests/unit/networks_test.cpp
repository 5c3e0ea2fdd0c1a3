// SPDX-License-Identifier: BSD-3-Clause
//
// Which network is chosen, and what those that are built in do with addresses that are none. (Connections are tested
// with MPI programs, where there is a network.)
#include <cstring>
#include <filesystem>

#include "tests/catch.hpp"
#include "transport/backends.h"
#include "transport/select.h"
#if MPIX_HAVE_UCX
#include "transport/ucx/exposed_memory.h"
#include "transport/ucx/gpu_memory.h"
#endif

namespace transport = mpix::transport;

TEST_CASE("where every network is left out, the reason names each of them") {
    REQUIRE(transport::use_only("shm").ok());
    mpix::status why;
    CHECK(transport::between_nodes(why) == nullptr);
    CHECK(why.message() == "MPIX_TRANSPORTS leaves ucx out; MPIX_TRANSPORTS leaves verbs out");
    CHECK(transport::network_in_use() == nullptr);
    CHECK(transport::use_only("shm,pigeon").message().find("\"pigeon\"") != std::string::npos);
    REQUIRE(transport::use_only("").ok());
}

TEST_CASE("which RDMA device, as a user says it") {
    using transport::parse_device_spec;
    transport::device_spec spec;
    REQUIRE(parse_device_spec("mlx5_0:2:11", spec).ok());
    CHECK((spec.name == "mlx5_0" && spec.port == 2 && spec.gid == 11));
    REQUIRE(parse_device_spec("rxe0:1", spec).ok());
    CHECK((spec.name == "rxe0" && spec.port == 1 && spec.gid == -1));
    REQUIRE(parse_device_spec("rxe0", spec).ok());
    CHECK((spec.name == "rxe0" && spec.port == 0 && spec.gid == -1));
    REQUIRE(parse_device_spec("", spec).ok());
    CHECK((spec.name.empty() && spec.port == 0 && spec.gid == -1));
    for (const char *bad :
         {":1", "a:", "a:0", "a:256", "a:x", "a:1:", "a:1:-1", "a:1:256", "a::3", "a:1:2:3", "a:1 "}) {
        INFO(bad);
        CHECK_FALSE(parse_device_spec(bad, spec).ok());
    }
    CHECK(transport::use_rdma_device("a:b").message().find("name[:port[:GID index]]") != std::string::npos);
    CHECK(transport::use_rdma_device("").ok());
}

#if MPIX_HAVE_UCX
TEST_CASE("UCX is asked for GPU memory where it is wanted, known, and in order") {
    using transport::ucx::why_no_gpu_memory;
    CHECK(why_no_gpu_memory({true, false}, {1, 16, true}).ok());
    CHECK(why_no_gpu_memory({true, false}, {2, 0, true}).ok());
    CHECK(why_no_gpu_memory({false, false}, {1, 22, true}).message() == "MPIX_UCX_GPU is 0");
    CHECK(why_no_gpu_memory({true, false}, {1, 22, false}).message().find("UCX 1.22 knows no GPU memory") == 0);
    CHECK(why_no_gpu_memory({true, false}, {1, 15, true}).message().find("UCX 1.15 reaches GPU memory, if it does") ==
          0);
    // Played GPUs are host memory.
    CHECK(why_no_gpu_memory({true, true}, {1, 13, false}).ok());
    CHECK(why_no_gpu_memory({false, true}, {1, 13, false}).message() == "MPIX_UCX_GPU is 0");
}

TEST_CASE("UCX: a description of one part is host memory, of two a GPU's, and keys end where they say") {
    struct {
        std::uint64_t address = 0x1000;
        std::uint32_t key_bytes = 7, reserved = 0;
        std::uint8_t key[160] = {};
    } told;
    for (std::size_t i = 0; i < sizeof told.key; ++i) told.key[i] = static_cast<std::uint8_t>(i);
    transport::wire_region wire{}, rest{};
    for (std::size_t i = 0; i < sizeof rest.address; ++i) rest.address[i] = static_cast<std::uint8_t>(160 + i);
    transport::ucx::remote_memory out;
    const auto read = [&](int device, const transport::wire_region *more) {
        wire.transport = transport::id_ucx;
        wire.device = device;
        wire.bytes = 100;
        std::memcpy(wire.address, &told, sizeof told);
        return transport::ucx::read_description(wire, more, out).ok();
    };
    const auto whole = [&out](std::size_t bytes) {
        for (std::size_t i = 0; i < out.key.size(); ++i)
            if (out.key[i] != static_cast<std::uint8_t>(i)) return false;
        return out.key.size() == bytes && out.address == 0x1000;
    };
    CHECK((read(-1, nullptr) && whole(7)));
    CHECK((read(0, &rest) && whole(7)));
    CHECK_FALSE(read(0, nullptr));
    CHECK_FALSE(read(-1, &rest));
    CHECK_FALSE(read(-2, nullptr));
    for (const std::uint32_t bytes : {160u, 161u, 336u, 337u, 0u, ~0u}) {
        CAPTURE(bytes);
        told.key_bytes = bytes;
        CHECK(read(-1, nullptr) == (bytes == 160));
        CHECK(read(3, &rest) == (bytes >= 160 && bytes <= 336));
        if (bytes >= 160 && bytes <= 336) CHECK(whole(bytes));
    }
    told.key_bytes = 7;
    told.address = 0;
    CHECK_FALSE(read(-1, nullptr));
    told.address = ~std::uint64_t{0} - 99;
    CHECK_FALSE(read(-1, nullptr));
}
#endif

#if MPIX_HAVE_VERBS
TEST_CASE("libibverbs is usable where there is an RDMA device, and says so where there is none") {
    transport::network &verbs = transport::verbs_transport({});
    std::error_code none;
    const std::filesystem::directory_iterator devices("/sys/class/infiniband", none), end;
    const bool any = !none && devices != end;
    mpix::status why;
    const bool usable = verbs.usable(why);
    CHECK(usable == why.ok());
    if (!any) CHECK(why.message() == "there is no RDMA device");
}

TEST_CASE("libibverbs: addresses and regions that are none are refused") {
    transport::network &verbs = transport::verbs_transport({});
    CHECK_FALSE(verbs.meet(1, {}).ok());
    // Of the right size, and of another version; of the right one, and with an MTU that there is not.
    std::vector<std::uint8_t> address(64, 0xff);
    CHECK(verbs.meet(1, address).message() == "a malformed address of its queue pair");
    address[0] = 1;
    address[1] = address[2] = address[3] = 0;
    CHECK(verbs.meet(1, address).message() == "a malformed address of its queue pair");
    // A good one, with one for the NIC's queue that is not.
    address.assign(64, 0);
    address[0] = 1;
    address[14] = 5;
    address[32] = 2;
    CHECK(verbs.meet(1, address).message() == "a malformed address of its queue pair");
    CHECK_FALSE(verbs.meet(1, std::vector<std::uint8_t>(4096, 0)).ok());
    transport::wire_region wire{};
    transport::region out;
    CHECK_FALSE(verbs.attach(wire, 1, out).ok());
    wire.transport = transport::id_verbs;
    CHECK_FALSE(verbs.attach(wire, 1, out).ok());
    wire.address[0] = 1;
    CHECK_FALSE(verbs.attach(wire, 1, out).ok());  // of a peer that nobody has heard of
    CHECK_FALSE(out);
    CHECK(verbs.lost(1).ok());
    CHECK(verbs.flush(1) == nullptr);
    verbs.give_up(1);
    verbs.progress();
}
#endif
