// SPDX-License-Identifier: BSD-3-Clause
//
// libibverbs, libmlx5 and CUDA as tables of functions that keep count of what was taken and given back, note the order
// of the calls, and fail when told.
#ifndef MPIX_TESTS_UNIT_MLX5_FAKES_HPP
#define MPIX_TESTS_UNIT_MLX5_FAKES_HPP

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "transport/ib/mlx5/calls.h"
#include "transport/ib/rc.h"

namespace mlx5_fakes {

using namespace mpix::transport;
using namespace mpix::transport::mlx5;
using mpix::failure;
using mpix::status;

struct world {
    // What the "hardware" is like.
    bool is_mlx5 = true, ethernet = true, dmabuf_works = true, peer_memory_works = true, registers_map = true;
    ibv_port_state state = IBV_PORT_ACTIVE;
    std::uint32_t stride = 64, blocks = 8, entries = 16;
    std::uint64_t gpu_begin = 0x700000000000, gpu_bytes = 0x400000;
    int ordering = 100;
    std::ptrdiff_t gpu_shift = 0;  // of host pages in the GPUs' eyes

    // What was done.
    std::vector<std::string> calls;
    std::set<void *> taken;
    std::set<void *> mapped;
    bool wrong = false;  // given back what was not taken, or taken twice
    int fail_at = -1;    // this call fails
    std::vector<ibv_qp_attr> modified;
    std::vector<int> masks;
    std::vector<unsigned> access;
    std::vector<int> fds;

    alignas(4096) unsigned char sq[8192];
    alignas(4096) unsigned char cq[4096];
    alignas(4096) unsigned char records[4096];  // those of both queues, as the provider has them on one page
    alignas(4096) unsigned char registers[4096]{};

    ibv_device device{};
    ibv_context context{};
    ibv_pd domain{}, parent{};
    ibv_cq completions{};
    ibv_qp queue{};
    ibv_td thread{};
    ibv_mr region{};

    bool fails(const char *name) {
        calls.emplace_back(name);
        if (static_cast<int>(calls.size()) - 1 != fail_at) return false;
        errno = EAGAIN;
        return true;
    }
    template <class T>
    T *take(const char *name, T &object) {
        if (fails(name)) return nullptr;
        if (!taken.insert(&object).second) wrong = true;
        return &object;
    }
    int give(const char *name, void *object) {
        calls.emplace_back(name);
        if (taken.erase(object) == 0) wrong = true;
        return 0;
    }
    std::ptrdiff_t called(const std::string &name) const { return std::count(calls.begin(), calls.end(), name); }
    std::ptrdiff_t place(const std::string &name) const {
        return std::find(calls.begin(), calls.end(), name) - calls.begin();
    }
    bool clean() const { return taken.empty() && mapped.empty() && !wrong; }
};

inline world *now = nullptr;  // the tables are of plain functions

inline verbs_calls verbs_table() {
    verbs_calls v;
    v.mlx5dv_is_supported = [](ibv_device *) { return now->is_mlx5; };
    v.alloc_td = [](ibv_context *, ibv_td_init_attr *) { return now->take("alloc_td", now->thread); };
    v.dealloc_td = [](ibv_td *t) { return now->give("dealloc_td", t); };
    v.alloc_parent_domain = [](ibv_context *, ibv_parent_domain_init_attr *a) {
        if (a->pd != &now->domain || a->td != &now->thread) now->wrong = true;
        return now->take("alloc_parent_domain", now->parent);
    };
    v.ibv_dealloc_pd = [](ibv_pd *p) { return now->give("dealloc_pd", p); };
    v.ibv_create_cq = [](ibv_context *, int, void *, ibv_comp_channel *, int) {
        return now->take("create_cq", now->completions);
    };
    v.ibv_destroy_cq = [](ibv_cq *c) { return now->give("destroy_cq", c); };
    v.create_qp_ex = [](ibv_context *, ibv_qp_init_attr_ex *a) {
        if (a->pd != &now->parent || a->send_cq != &now->completions) now->wrong = true;
        now->queue.qp_num = 0x12f;
        return now->take("create_qp", now->queue);
    };
    v.ibv_destroy_qp = [](ibv_qp *q) { return now->give("destroy_qp", q); };
    v.ibv_modify_qp = [](ibv_qp *, ibv_qp_attr *a, int mask) {
        now->modified.push_back(*a);
        now->masks.push_back(mask);
        return now->fails("modify_qp") ? EAGAIN : 0;
    };
    v.mlx5dv_init_obj = [](mlx5dv_obj *o, std::uint64_t type) {
        if (now->fails("init_obj")) return EAGAIN;
        if (type != (MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ) || o->qp.in != &now->queue || o->cq.in != &now->completions)
            now->wrong = true;
        o->qp.out->sq.buf = now->sq + 64;  // behind the receive queue
        o->qp.out->sq.wqe_cnt = now->blocks;
        o->qp.out->sq.stride = now->stride;
        o->qp.out->dbrec = reinterpret_cast<__be32 *>(now->records);
        o->qp.out->bf.reg = now->registers + 0x800;
        o->cq.out->buf = now->cq;
        o->cq.out->cqe_cnt = now->entries;
        o->cq.out->cqe_size = 64;
        o->cq.out->dbrec = reinterpret_cast<__be32 *>(now->records + 64);
        return 0;
    };
    v.ibv_reg_mr_iova2 = [](ibv_pd *, void *address, std::size_t, std::uint64_t iova, unsigned access) -> ibv_mr * {
        now->access.push_back(access);
        const bool gpu = iova >= now->gpu_begin && iova < now->gpu_begin + now->gpu_bytes;
        if (reinterpret_cast<std::uint64_t>(address) != iova) now->wrong = true;
        if (gpu && !now->peer_memory_works) {
            now->calls.emplace_back("reg_mr");
            errno = EFAULT;
            return nullptr;
        }
        return now->take("reg_mr", now->region);
    };
    v.ibv_reg_dmabuf_mr = [](ibv_pd *, std::uint64_t offset, std::size_t, std::uint64_t iova, int fd, int access) {
        now->access.push_back(static_cast<unsigned>(access));
        if (iova % 4096 != offset || fd != now->fds.back()) now->wrong = true;
        return now->take("reg_dmabuf_mr", now->region);
    };
    v.ibv_dereg_mr = [](ibv_mr *m) { return now->give("dereg_mr", m); };
    return v;
}

inline rdma::port_calls port_table() {
    rdma::port_calls v;
    v.query_device = [](ibv_context *, ibv_device_attr *a) {
        a->phys_port_cnt = 2;
        return now->fails("query_device") ? EAGAIN : 0;
    };
    v.query_port = [](ibv_context *, std::uint8_t number, ibv_port_attr *a) {
        *a = {};
        a->state = number == 2 ? now->state : IBV_PORT_DOWN;
        a->active_mtu = IBV_MTU_4096;
        a->max_msg_sz = 1u << 30;
        a->lid = 17;
        a->gid_tbl_len = 4;
        a->link_layer = now->ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
        return 0;
    };
    v.query_gid = [](ibv_context *, std::uint32_t, std::uint32_t i, ibv_gid_entry *e, std::uint32_t, std::size_t) {
        // 0: version 1; 1: version 2 of IPv6; 2: version 2 of IPv4; 3: nothing
        if (i == 3) return ENODATA;
        e->gid_type = i == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
        if (i != 1) e->gid.raw[10] = e->gid.raw[11] = 0xff;
        e->gid.raw[15] = static_cast<std::uint8_t>(i + 1);
        return 0;
    };
    return v;
}

inline gpu_calls gpu_table() {
    gpu_calls g;
    g.map_pages = [](void *pages, std::size_t, bool registers, bool &already) -> status {
        already = false;
        if (now->fails(registers ? "map_registers" : "map_pages")) return failure("out of memory");
        if (registers && !now->registers_map) return failure("operation not permitted");
        if (registers != (pages == now->registers) || !now->mapped.insert(pages).second) now->wrong = true;
        return {};
    };
    g.unmap_pages = [](void *pages) {
        now->calls.emplace_back("unmap_pages");
        if (now->mapped.erase(pages) == 0) now->wrong = true;
    };
    g.gpu_address = [](void *host, void **gpu) -> status {
        if (now->fails("gpu_address")) return failure("no address");
        *gpu = static_cast<char *>(host) + now->gpu_shift;
        return {};
    };
    g.allocation_of = [](std::uint64_t at, std::uint64_t &base, std::uint64_t &bytes, int &device) -> status {
        bytes = 0;
        if (at < now->gpu_begin || at >= now->gpu_begin + now->gpu_bytes) return {};
        base = now->gpu_begin;
        bytes = now->gpu_bytes;
        device = 3;
        return {};
    };
    g.keep_synchronous = [](std::uint64_t) -> status {
        return now->fails("keep_synchronous") ? failure("invalid value") : status{};
    };
    g.export_dmabuf = [](std::uint64_t begin, std::uint64_t bytes, int &fd) -> status {
        if (now->fails("export_dmabuf") || !now->dmabuf_works) return failure("not supported");
        if (begin % 4096 != 0 || bytes % 4096 != 0) now->wrong = true;
        fd = dup(0);
        now->fds.push_back(fd);
        return {};
    };
    g.write_ordering = [](int device, int &ordering) -> status {
        if (device != 3) now->wrong = true;
        ordering = now->ordering;
        return {};
    };
    return g;
}

}  // namespace mlx5_fakes

#endif  // MPIX_TESTS_UNIT_MLX5_FAKES_HPP
