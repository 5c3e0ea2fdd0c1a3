// SPDX-License-Identifier: BSD-3-Clause
//
// A queue pair of a ConnectX is opened, connected and closed, and memory registered, on libraries that play it: the
// order of the calls, every failure of one, and that all is given back.
#include <fcntl.h>

#include "tests/catch.hpp"
#include "tests/unit/mlx5_fakes.hpp"
#include "transport/ib/mlx5/memory.h"
#include "transport/ib/mlx5/queue_pair.h"

using namespace mlx5_fakes;

namespace {

struct fixture {
    world w;
    verbs_calls verbs = verbs_table();
    gpu_calls gpu = gpu_table();
    gpu_pages pages{gpu, 4096};
    rdma::port at;
    fixture() {
        now = &w;
        w.context.device = &w.device;
    }
    status find(const device_spec &spec = {}) { return rdma::find_port(port_table(), &w.context, spec, at); }
    status open(queue_pair &q, bool on_gpu = true) {
        status bad = q.open(verbs, &w.context, &w.domain, at, 8);
        if (bad.ok() && on_gpu) bad = q.map_for_gpu(pages);
        if (!bad.ok()) q.close();
        return bad;
    }
};

bool contains(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }
bool contains(const status &what, const char *part) { return contains(what.message(), part); }

}  // namespace

TEST_CASE("a port is found, by its address of RoCE version 2 and IPv4 before others") {
    fixture f;
    REQUIRE(f.find().ok());
    CHECK(f.at.number == 2);
    CHECK(f.at.by_gid);
    CHECK(f.at.gid_index == 2);
    CHECK(f.at.gid.raw[15] == 3);
    f.w.ethernet = false;
    REQUIRE(f.find().ok());
    CHECK(!f.at.by_gid);
    f.w.state = IBV_PORT_DOWN;
    CHECK(contains(f.find(), "no port"));
}

TEST_CASE("a port and a GID that are wished are taken, or it is said what the device lacks") {
    fixture f;
    std::strcpy(f.w.device.name, "mlx5_3");
    REQUIRE(f.find({"mlx5_3", 2, 1}).ok());
    CHECK((f.at.number == 2 && f.at.gid_index == 1 && f.at.gid.raw[15] == 2));
    CHECK(rdma::name_of(&f.w.context, f.at) == "mlx5_3, port 2, GID 1");
    REQUIRE(f.find({"mlx5_3", 0, 0}).ok());
    CHECK(f.at.gid_index == 0);
    CHECK(f.find({"mlx5_3", 1, -1}).message() == "mlx5_3 has no link on port 1 (MPIX_VERBS_DEVICE)");
    CHECK(f.find({"mlx5_3", 3, -1}).message() == "mlx5_3 has no port 3 (MPIX_VERBS_DEVICE)");
    CHECK(f.find({"mlx5_3", 2, 3}).message() == "mlx5_3 has no GID 3 on port 2 (MPIX_VERBS_DEVICE)");
    CHECK(f.find({"mlx5_3", 2, 9}).message() == "mlx5_3 has no GID 9 on port 2 (MPIX_VERBS_DEVICE)");
    f.w.ethernet = false;
    REQUIRE(f.find({"mlx5_3", 2, -1}).ok());
    CHECK(rdma::name_of(&f.w.context, f.at) == "mlx5_3, port 2");
}

TEST_CASE("a queue pair whose rings and doorbell the GPU reaches") {
    fixture f;
    f.w.gpu_shift = GENERATE(0, 0x10000000);
    REQUIRE(f.find().ok());
    queue_pair q;
    REQUIRE(f.open(q).ok());
    CHECK(q.rung_by() == bell::by_poster);
    CHECK(q.why_proxy().ok());
    CHECK(q.number() == 0x12f);
    const mpix_queue_rings &host = q.host_rings(), &gpu = q.rings();
    CHECK(reinterpret_cast<unsigned char *>(host.sq) == f.w.sq + 64);
    const auto shifted = [&](const void *of_host, const void *of_gpu) {
        return static_cast<const char *>(of_host) + f.w.gpu_shift == of_gpu;
    };
    CHECK((shifted(host.sq, gpu.sq) && shifted(host.cq, gpu.cq) && shifted(host.sq_record, gpu.sq_record)));
    CHECK((shifted(host.cq_record, gpu.cq_record) && shifted(host.doorbell, gpu.doorbell)));
    CHECK((gpu.log_sq == 3 && gpu.log_cq == 4 && gpu.qpn == 0x12f));
    // 512 bytes of blocks, one page; one of completions; both records on one; one of registers.
    CHECK(f.w.called("map_pages") == 3);
    CHECK(f.w.called("map_registers") == 1);
    CHECK(f.pages.held() == 4);
    REQUIRE(f.w.modified.size() == 1);
    CHECK(f.w.modified[0].qp_state == IBV_QPS_INIT);
    CHECK(f.w.modified[0].qp_access_flags == IBV_ACCESS_REMOTE_WRITE);
    CHECK(f.w.modified[0].port_num == 2);
    q.close();
    CHECK(f.w.clean());
    CHECK(f.w.place("unmap_pages") < f.w.place("destroy_qp"));
    CHECK(f.w.place("destroy_qp") < f.w.place("destroy_cq"));
    CHECK(f.w.place("destroy_cq") < f.w.place("dealloc_pd"));
    CHECK(f.w.place("dealloc_pd") < f.w.place("dealloc_td"));
    q.close();
    CHECK(f.w.called("destroy_qp") == 1);
}

TEST_CASE("without a GPU nothing is mapped") {
    fixture f;
    REQUIRE(f.find().ok());
    queue_pair q;
    REQUIRE(f.open(q, false).ok());
    CHECK(q.rings().doorbell == q.host_rings().doorbell);
    CHECK(f.w.called("map_pages") == 0);
}

TEST_CASE("a doorbell that the GPU may not map is rung by a thread of the host") {
    fixture f;
    f.w.registers_map = false;
    REQUIRE(f.find().ok());
    queue_pair q;
    REQUIRE(f.open(q).ok());
    CHECK(q.rung_by() == bell::by_proxy);
    CHECK(contains(q.why_proxy(), "operation not permitted"));
    CHECK(q.rings().doorbell == nullptr);
    CHECK(q.host_rings().doorbell != nullptr);
    CHECK(q.rings().sq != nullptr);
    q.close();
    CHECK(f.w.clean());
}

TEST_CASE("every call of opening may fail: a sentence, and nothing is left") {
    int failures = 0, opened = 0;
    for (int at = 0; opened == 0; ++at) {
        fixture f;
        REQUIRE(f.find().ok());
        f.w.calls.clear();
        f.w.fail_at = at;
        queue_pair q;
        const status bad = f.open(q);
        if (static_cast<int>(f.w.calls.size()) <= at) {
            CHECK(bad.ok());
            ++opened;
            continue;
        }
        const std::string &failed = f.w.calls[static_cast<std::size_t>(at)];
        INFO("call " << at << ", " << failed << ": " << bad.message());
        if (bad.ok()) {  // the doorbell's page alone is not needed
            CHECK((failed == "map_registers" || failed == "gpu_address"));
            CHECK(q.rung_by() == bell::by_proxy);
            q.close();
        } else {
            ++failures;
        }
        CHECK(f.w.clean());
        CHECK(f.pages.held() == 0);
    }
    CHECK(failures == 12);
}

TEST_CASE("a queue that is not as we need it is refused, and given back") {
    fixture f;
    REQUIRE(f.find().ok());
    queue_pair q;
    SECTION("stride") { f.w.stride = 128; }
    SECTION("entries") { f.w.entries = 4; }
    CHECK(contains(f.open(q), "mlx5dv_init_obj"));
    CHECK(f.w.clean());
    CHECK(!f.open(q, false).ok());
    CHECK(contains(q.open(f.verbs, &f.w.context, &f.w.domain, f.at, 40000), "32768"));
}

TEST_CASE("two queue pairs are connected by each other's address") {
    fixture f;
    f.w.ethernet = GENERATE(false, true);
    REQUIRE(f.find().ok());
    queue_pair q;
    REQUIRE(f.open(q).ok());
    REQUIRE(q.connect(q.address()).ok());
    REQUIRE(f.w.modified.size() == 3);
    const ibv_qp_attr &rtr = f.w.modified[1], &rts = f.w.modified[2];
    CHECK(rtr.qp_state == IBV_QPS_RTR);
    CHECK(rtr.dest_qp_num == 0x12f);
    CHECK(rtr.path_mtu == IBV_MTU_4096);
    CHECK(rtr.ah_attr.port_num == 2);
    CHECK(rtr.ah_attr.dlid == 17);
    CHECK(rtr.ah_attr.is_global == (f.w.ethernet ? 1 : 0));
    if (f.w.ethernet) CHECK((rtr.ah_attr.grh.sgid_index == 2 && rtr.ah_attr.grh.dgid.raw[15] == 3));
    CHECK(rts.qp_state == IBV_QPS_RTS);
    CHECK(rts.sq_psn == rtr.rq_psn);  // its own peer
    CHECK(f.w.masks[2] == (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC));
}

TEST_CASE("an address of the peer's that cannot be is refused") {
    fixture f;
    REQUIRE(f.find().ok());
    queue_pair q;
    CHECK(contains(q.connect({}), "not open"));
    REQUIRE(f.open(q).ok());
    rdma::qp_address address = q.address();
    const char *part = "malformed";
    SECTION("version") { address.version = 9; }
    SECTION("queue pair") { address.qpn |= 1u << 24; }
    SECTION("sequence number") { address.psn |= 1u << 24; }
    SECTION("MTU") { address.mtu = IBV_MTU_4096 + 1; }
    SECTION("by GID, not a bool") { address.by_gid = 2; }
    SECTION("other kind of port") { address.by_gid = 0, part = "InfiniBand's"; }
    CHECK(contains(q.connect(address), part));
    CHECK(f.w.modified.size() == 1);  // only what open() did
}

TEST_CASE("pages are mapped once, and unmapped by the last one who holds them") {
    fixture f;
    void *first = nullptr, *second = nullptr;
    REQUIRE(f.pages.hold(f.w.registers + 0x800, 8, true, first).ok());
    REQUIRE(f.pages.hold(f.w.registers + 0x900, 8, true, second).ok());
    CHECK(static_cast<char *>(second) - static_cast<char *>(first) == 0x100);
    CHECK(f.w.called("map_registers") == 1);
    f.pages.release(f.w.registers + 0x800, 8);
    CHECK(f.w.mapped.size() == 1);
    f.pages.release(f.w.registers + 0x900, 8);
    CHECK(f.w.clean());
    SECTION("what somebody else has mapped stays") {
        gpu_calls others = f.gpu;
        others.map_pages = [](void *, std::size_t, bool, bool &already) -> status {
            already = true;
            return {};
        };
        gpu_pages theirs(others, 4096);
        REQUIRE(theirs.hold(f.w.cq, 100, false, first).ok());
        theirs.release(f.w.cq, 100);
        CHECK(f.w.called("unmap_pages") == 1);
    }
    SECTION("pages that are no neighbours for the GPU") {
        gpu_calls scattered = f.gpu;
        scattered.gpu_address = [](void *host, void **gpu) -> status {
            *gpu = host == now->sq + 4096 ? nullptr : host;
            return {};
        };
        gpu_pages apart(scattered, 4096);
        CHECK(contains(apart.hold(f.w.sq, sizeof f.w.sq, false, first), "neighbours"));
        CHECK(apart.held() == 0);
        CHECK(f.w.clean());
    }
}

TEST_CASE("memory is registered by dma-buf, by the driver's peer memory, or as the host's") {
    fixture f;
    memory m;
    const auto add = [&](std::uint64_t at, contents what) {
        return m.add(f.verbs, &f.gpu, &f.w.domain, reinterpret_cast<void *>(at), 100, what, 4096);
    };
    SECTION("dma-buf") {
        REQUIRE(add(f.w.gpu_begin + 0x1010, contents::payload_landing).ok());
        CHECK(m.by() == memory::way::dmabuf);
        CHECK(m.device() == 3);
        CHECK(f.w.place("keep_synchronous") < f.w.place("export_dmabuf"));
        CHECK(f.w.called("reg_mr") == 0);
        CHECK(fcntl(f.w.fds.at(0), F_GETFD) == -1);  // closed
        CHECK((f.w.access.at(0) & IBV_ACCESS_RELAXED_ORDERING) != 0);
    }
    SECTION("flags") {
        REQUIRE(add(f.w.gpu_begin, contents::flags).ok());
        CHECK((f.w.access.at(0) & IBV_ACCESS_RELAXED_ORDERING) == 0);
    }
    SECTION("no dma-buf by CUDA") {
        f.w.dmabuf_works = false;
        REQUIRE(add(f.w.gpu_begin, contents::payload_landing).ok());
        CHECK(m.by() == memory::way::peer_memory);
    }
    SECTION("no dma-buf by libibverbs") {
        f.verbs.ibv_reg_dmabuf_mr = nullptr;
        REQUIRE(add(f.w.gpu_begin, contents::payload_landing).ok());
        CHECK(m.by() == memory::way::peer_memory);
        CHECK(f.w.called("export_dmabuf") == 0);
    }
    SECTION("no dma-buf by the kernel") {
        f.w.fail_at = 2;
        REQUIRE(add(f.w.gpu_begin, contents::payload_landing).ok());
        CHECK(f.w.calls.at(2) == "reg_dmabuf_mr");
        CHECK(m.by() == memory::way::peer_memory);
        CHECK(fcntl(f.w.fds.at(0), F_GETFD) == -1);
    }
    SECTION("neither") {
        f.w.dmabuf_works = f.w.peer_memory_works = false;
        const status why = add(f.w.gpu_begin, contents::payload_landing);
        CHECK((contains(why, "dma-buf (not supported)") && contains(why, "nvidia-peermem (ibv_reg_mr: Bad address)")));
        CHECK(m.by() == memory::way::none);
    }
    SECTION("CUDA's copies cannot be kept synchronous") {
        f.w.fail_at = 0;
        CHECK(contains(add(f.w.gpu_begin, contents::payload_source), "invalid value"));
    }
    SECTION("the host's") {
        REQUIRE(add(reinterpret_cast<std::uint64_t>(f.w.sq), contents::payload_source).ok());
        CHECK(m.by() == memory::way::host);
        CHECK(m.device() == on_host);
        CHECK(f.w.called("keep_synchronous") == 0);
    }
    m.release();
    CHECK(f.w.clean());
}

TEST_CASE("whether flags are believed depends on where both lie") {
    fixture f;
    world other;  // one registration a world
    memory on_gpu, in_host;
    REQUIRE(on_gpu.add(f.verbs, &f.gpu, &f.w.domain, reinterpret_cast<void *>(f.w.gpu_begin), 8, contents::flags, 4096)
                .ok());
    now = &other;
    REQUIRE(in_host.add(f.verbs, nullptr, &other.domain, other.sq, 8, contents::flags, 4096).ok());
    now = &f.w;
    using enum flag_reader;
    CHECK(flags_not_believable(&f.gpu, on_gpu, on_gpu, owner_gpu).ok());
    f.w.ordering = ordering_none;
    CHECK(contains(flags_not_believable(&f.gpu, on_gpu, on_gpu, owner_gpu), "a flush is needed"));
    CHECK(flags_not_believable(&f.gpu, in_host, in_host, host).ok());
    CHECK(contains(flags_not_believable(&f.gpu, on_gpu, in_host, owner_gpu), "two places"));
    CHECK(contains(flags_not_believable(&f.gpu, in_host, on_gpu, owner_gpu), "two places"));
    on_gpu.release();
    now = &other;
    in_host.release();
}

TEST_CASE("the libraries that are here have what is called, or say what they lack") {
    verbs_calls v;
    const status why = v.load();
    INFO(why.message());
    CHECK((why.ok() || contains(why, "cannot be loaded")));
    if (!why.ok()) return;
    CHECK((v.mlx5dv_init_obj != nullptr && v.ibv_reg_mr_iova2 != nullptr && v.create_qp_ex != nullptr));
    // A provider without the extended calls.
    ibv_context plain{};
    ibv_qp_init_attr_ex wanted = wanted_queue(nullptr, nullptr, 8);
    ibv_td_init_attr thread{};
    CHECK((v.create_qp_ex(&plain, &wanted) == nullptr && errno == EOPNOTSUPP));
    CHECK((v.alloc_td(&plain, &thread) == nullptr && errno == EOPNOTSUPP));
    verbs_context extended{};
    extended.sz = sizeof extended;
    extended.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    CHECK((v.create_qp_ex(&extended.context, &wanted) == nullptr && errno == EOPNOTSUPP));
    static ibv_qp made{};
    extended.create_qp_ex = [](ibv_context *, ibv_qp_init_attr_ex *) { return &made; };
    CHECK(v.create_qp_ex(&extended.context, &wanted) == &made);
    gpu_calls g;
    if (g.load().ok()) CHECK(g.map_pages != nullptr);
}
