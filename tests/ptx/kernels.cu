// SPDX-License-Identifier: BSD-3-Clause
//
// One kernel for each ordered access of order.h, and for each way that a partition goes. check_ptx.py reads what the
// compiler makes of them; nobody runs them.
#include <cooperative_groups.h>
#include <mpi.h>
#include <mpix/device.cuh>
#include <mpix/halo.cuh>
#include <mpix/impl/work_queue/queue.cuh>

namespace cg = cooperative_groups;
using namespace mpix::detail;

#define KERNEL extern "C" __global__ void

// ---- order.h ----

KERNEL order_load_relaxed(uint64_t *w, uint64_t *out) { *out = load_relaxed(w); }
KERNEL order_store_relaxed(uint64_t *w) { store_relaxed(w, 1); }
KERNEL order_load_acquire(uint64_t *w, uint64_t *out) { *out = load_acquire(w); }
KERNEL order_store_release(uint64_t *w) { store_release(w, 1); }
KERNEL order_store_release_after_fence(uint64_t *w) {
    fence_acq_rel();
    store_release_after_fence(w, 1);
}
KERNEL order_reached_acquire(uint64_t *w, bool *out) { *out = reached_acquire(w, 1); }
KERNEL order_load_acquire_pair(uint64_t *w, uint64_t *out) { load_acquire_pair(w, out, out + 1); }
KERNEL order_load_relaxed_pair(uint64_t *w, uint64_t *out) { load_relaxed_pair(w, out, out + 1); }
KERNEL order_store_relaxed_pair(uint64_t *w) { store_relaxed_pair(w, 1, 2); }
KERNEL order_load_acquire_gpu(uint64_t *w, uint64_t *out) { *out = load_acquire_gpu(w); }
KERNEL order_store_release_gpu(uint64_t *w) { store_release_gpu(w, 1); }
KERNEL order_fetch_max_relaxed_gpu(uint64_t *w, uint64_t *out) { *out = fetch_max_relaxed_gpu(w, 1); }
KERNEL order_fetch_add_one_acq_rel_gpu(uint64_t *w, uint64_t *out) { *out = fetch_add_acq_rel_gpu(w); }
KERNEL order_fetch_add_acq_rel_gpu(uint64_t *w, uint64_t *out) { *out = fetch_add_acq_rel_gpu(w, 2); }
KERNEL order_fetch_add_one_relaxed_gpu(uint64_t *w, uint64_t *out) { *out = fetch_add_relaxed_gpu(w); }
KERNEL order_fetch_add_relaxed_gpu(uint64_t *w, uint64_t *out) { *out = fetch_add_relaxed_gpu(w, 2); }
KERNEL order_increment_release_gpu(uint64_t *w) { increment_release_gpu(w); }
KERNEL order_increment_relaxed_gpu(uint64_t *w) { increment_relaxed_gpu(w); }
KERNEL order_cas_acq_rel_gpu(uint64_t *w, uint64_t *out) { *out = cas_acq_rel_gpu(w, 1, 2); }
KERNEL order_store_release_record(uint32_t *record) { store_release_record(record, 1); }
KERNEL order_store_release_mmio(uint64_t *doorbell) { store_release_mmio(doorbell, 1); }

// ---- the ways of a partition ----

KERNEL way_direct(mpix_prequest *r, int p) { ready(cg::this_thread_block(), p, r, group_mover<false>{}); }
KERNEL way_inline_send(mpix_prequest *r, int p, uint64_t *out) {
    const stored s = store_small<false>(cg::this_thread_block(), r, p, {});
    *out = 2 * s.epoch + s.sent_inline;
}
KERNEL way_inline_take(mpix_prequest *r, awaited w, unsigned i, bool *out) {
    w.sole = false;
    *out = take_inline(cg::this_thread_block(), r, w, i, false, false);
}
// A handle whose bits the compiler knows.
__device__ mpix_prequest *handle_of(mpix_prequest *r, uint64_t bits) {
    return reinterpret_cast<mpix_prequest *>((reinterpret_cast<uint64_t>(r) & ~uint64_t{MPIX_HANDLE_BITS}) | bits);
}
KERNEL way_inline_at_once(mpix_prequest *r, int j, bool *out) {
    claimed_question question{};
    *out = wait_inline_fast<false>(cg::this_thread_block(), handle_of(r, MPIX_HANDLE_INLINE), j, {},
                                   mpix::default_timeout, question);
}
KERNEL way_inline_at_once_sole(mpix_prequest *r, int j, bool *out) {
    claimed_question question{};
    *out = wait_inline_fast<false>(cg::this_thread_block(), handle_of(r, MPIX_HANDLE_INLINE | MPIX_HANDLE_SOLE), j, {},
                                   mpix::default_timeout, question);
}
KERNEL way_inline_take_sole(mpix_prequest *r, awaited w, unsigned i, bool *out) {
    w.sole = true;
    *out = take_inline(cg::this_thread_block(), r, w, i, false, false);
}
KERNEL way_stored_at_once(mpix_prequest *r, int p, int *out) {
    const stored s = store_direct(cg::this_thread_block(), r, p);
    *out = conclude_direct<MPIX_CALL_PREADY>(cg::this_thread_block(), p, r, s.epoch, r->flags);
}
KERNEL way_bulk(mpix_prequest *r, int p, int *out) {
    __shared__ mpix::bulk_buffer<8192> shared;
    uint64_t *flags = nullptr;
    const stored s = store_bulk(cg::this_thread_block(), r, p, shared, &flags);
    *out = conclude_direct<MPIX_CALL_PREADY>(cg::this_thread_block(), p, r, s.epoch, flags);
}
KERNEL way_ask(mpix_prequest *r, uint64_t *out) {
    *out = read_host(r, [](const host_says &) {}).second;
}
KERNEL way_together(mpix_prequest *r, int j, waited *out) {
    *out = await_together(cg::this_thread_block(), r, j, waiters::any, false, 0, false);
}
KERNEL way_flags(awaited w, bool *out) { *out = all_flagged(cg::this_thread_block(), w, 64); }
KERNEL way_count(mpix_prequest *r, uint64_t epoch) { count_ready<false, false>(r, epoch); }
KERNEL way_count_inline(mpix_prequest *r, uint64_t epoch) { count_ready<false, true>(r, epoch); }
KERNEL way_share(mpix_prequest *r, int p, uint64_t begin, uint64_t bytes, int *out) {
    *out = contribute_share(cg::this_thread_block(), p, r, begin, bytes);
}
KERNEL way_share_counted(mpix_prequest *r, int p, uint64_t bytes, uint64_t *flags, admitted *a, bool *whole) {
    *whole = count_share(r, p, bytes, flags, *a);
}
KERNEL way_prepared_flag(mpix::prepared_receive v, int j, bool *out) {
    *out = flagged(cg::this_thread_block(), v.request, v.state, j, 64);
}
KERNEL way_prepared_send(mpix::prepared_send s, int p, int *out) { *out = mpix::pready(cg::this_thread_block(), p, s); }

// ---- epochs that kernels start ----

KERNEL way_sent(const mpix_prequest *r, uint64_t epoch, bool *out) {
    *out = is_sent(r, epoch, load_acquire_gpu(&r->told_epoch), false);
}
KERNEL way_flagged_all(const uint64_t *flags, uint64_t epoch, bool *out) { *out = is_flagged(flags, 8, epoch, 0, 1); }
KERNEL way_end(mpix_prequest *r, uint64_t epoch) { end_epoch(r, epoch); }
KERNEL way_clear_to_send(mpix_prequest *r, uint64_t epoch, bool *out) {
    *out = look_at_kernel_clear_to_send(r, epoch, kernel_route_of(r));
}
KERNEL way_start_one(mpix_prequest *r, int *out) { *out = start_one(r); }
KERNEL way_start(MPIX_Prequest r, int *out) { *out = mpix::start(cg::this_thread_block(), r); }
KERNEL way_start_list(const MPIX_Prequest *list, int n, int *out) {
    *out = mpix::start(cg::this_thread_block(), n, list);
}
KERNEL way_wait(MPIX_Prequest r, int *out) { *out = mpix::wait(cg::this_thread_block(), r); }
KERNEL way_wait_list(const MPIX_Prequest *list, int n, int *out) {
    *out = mpix::wait(cg::this_thread_block(), n, list);
}
KERNEL way_next_list(const MPIX_Prequest *list, int n, int *out) {
    *out = mpix::next_epoch(cg::this_thread_block(), n, list);
}
KERNEL way_next_send(mpix::prepared_send s, int p, int *out) {
    *out = mpix::next_epoch(cg::this_thread_block(), s);
    mpix::pready(cg::this_thread_block(), p, s);
}
KERNEL way_next_receive(mpix::prepared_receive v, int *out, mpix::prepared_receive *next) {
    *out = mpix::next_epoch(cg::this_thread_block(), v);
    *next = v;
}

// ---- what a call adds to a kernel: size_<call>_<group> ----

__device__ auto this_warp() { return cg::tiled_partition<32>(cg::this_thread_block()); }

KERNEL size_nothing_thread(MPIX_Prequest, int, int *) {}
KERNEL size_pready_thread(MPIX_Prequest r, int p, int *out) { *out = mpix::pready(mpix::this_thread(), p, r); }
KERNEL size_pready_warp(MPIX_Prequest r, int p, int *out) { *out = mpix::pready(this_warp(), p, r); }
KERNEL size_pready_block(MPIX_Prequest r, int p, int *out) { *out = mpix::pready(cg::this_thread_block(), p, r); }
KERNEL size_pready_typed_block(MPIX_Prequest r, int p, int *out) {
    *out = mpix::pready_typed(cg::this_thread_block(), p, r);
}
KERNEL size_pready_contribute_block(MPIX_Prequest r, int p, int *out) {
    *out = mpix::pready_contribute(cg::this_thread_block(), p, r);
}
KERNEL size_pready_share_thread(MPIX_Prequest r, int p, int *out) {
    *out = mpix::pready_contribute(mpix::this_thread(), p, r, 64, 640);
}
KERNEL size_pready_share_warp(MPIX_Prequest r, int p, int *out) {
    *out = mpix::pready_contribute(this_warp(), p, r, 64, 640);
}
KERNEL size_pready_share_block(MPIX_Prequest r, int p, int *out) {
    *out = mpix::pready_contribute(cg::this_thread_block(), p, r, 64, 640);
}
KERNEL size_pready_bulk_thread(MPIX_Prequest r, int p, int *out) {
    __shared__ mpix::bulk_buffer<8192> shared;
    *out = mpix::pready(mpix::this_thread(), p, r, shared);
}
KERNEL size_pready_bulk_block(MPIX_Prequest r, int p, int *out) {
    __shared__ mpix::bulk_buffer<8192> shared;
    *out = mpix::pready(cg::this_thread_block(), p, r, shared);
}
KERNEL size_pready_range_thread(MPIX_Prequest r, int n, int *out) {
    *out = mpix::pready_range(mpix::this_thread(), 0, n, r);
}
KERNEL size_pready_range_block(MPIX_Prequest r, int n, int *out) {
    *out = mpix::pready_range(cg::this_thread_block(), 0, n, r);
}
KERNEL size_parrived_thread(MPIX_Prequest r, int p, int *out) { *out = mpix::parrived(mpix::this_thread(), r, p); }
KERNEL size_parrived_warp(MPIX_Prequest r, int p, int *out) { *out = mpix::parrived(this_warp(), r, p); }
KERNEL size_parrived_block(MPIX_Prequest r, int p, int *out) { *out = mpix::parrived(cg::this_thread_block(), r, p); }
KERNEL size_wait_arrived_thread(MPIX_Prequest r, int p, int *out) {
    *out = mpix::wait_arrived(mpix::this_thread(), r, p);
}
KERNEL size_wait_arrived_warp(MPIX_Prequest r, int p, int *out) { *out = mpix::wait_arrived(this_warp(), r, p); }
KERNEL size_wait_arrived_block(MPIX_Prequest r, int p, int *out) {
    *out = mpix::wait_arrived(cg::this_thread_block(), r, p);
}
KERNEL size_pready_prepared_thread(MPIX_Prequest r, int p, int *out) {
    *out = mpix::pready(mpix::this_thread(), p, mpix::prepare_send(mpix::this_thread(), r));
}
KERNEL size_pready_prepared_warp(MPIX_Prequest r, int p, int *out) {
    *out = mpix::pready(this_warp(), p, mpix::prepare_send(this_warp(), r));
}
KERNEL size_pready_prepared_block(MPIX_Prequest r, int p, int *out) {
    *out = mpix::pready(cg::this_thread_block(), p, mpix::prepare_send(cg::this_thread_block(), r));
}
KERNEL size_parrived_prepared_thread(MPIX_Prequest r, int p, int *out) {
    *out = mpix::parrived(mpix::this_thread(), mpix::prepare_receive(mpix::this_thread(), r), p);
}
KERNEL size_parrived_prepared_block(MPIX_Prequest r, int p, int *out) {
    *out = mpix::parrived(cg::this_thread_block(), mpix::prepare_receive(cg::this_thread_block(), r), p);
}
KERNEL size_wait_arrived_prepared_block(MPIX_Prequest r, int p, int *out) {
    *out = mpix::wait_arrived(cg::this_thread_block(), mpix::prepare_receive(cg::this_thread_block(), r), p);
}
KERNEL size_wait_block(MPIX_Prequest r, int, int *out) { *out = mpix::wait(cg::this_thread_block(), r); }
KERNEL size_start_block(MPIX_Prequest r, int, int *out) { *out = mpix::start(cg::this_thread_block(), r); }
KERNEL size_next_epoch_thread(MPIX_Prequest r, int, int *out) { *out = mpix::next_epoch(mpix::this_thread(), r); }
KERNEL size_next_epoch_warp(MPIX_Prequest r, int, int *out) { *out = mpix::next_epoch(this_warp(), r); }
KERNEL size_next_epoch_block(MPIX_Prequest r, int, int *out) { *out = mpix::next_epoch(cg::this_thread_block(), r); }
KERNEL size_next_epoch_list_block(MPIX_Prequest r, int n, int *out) {
    const MPIX_Prequest list[] = {r, r};
    *out = mpix::next_epoch(cg::this_thread_block(), n, list);
}
KERNEL size_halo_send_block(mpix::halo::device_exchange x, int tile, int *out) {
    *out = mpix::halo::send(cg::this_thread_block(), x, tile, 1);
}
KERNEL size_halo_wait_block(mpix::halo::device_exchange x, int tile, int *out) {
    *out = mpix::halo::wait(cg::this_thread_block(), x, tile, 1);
}
KERNEL size_halo_send_prepared_block(mpix::halo::device_exchange x, mpix::halo::prepared_tile *tile, int *out) {
    *out = mpix::halo::send(cg::this_thread_block(), x, *tile, 9);
}
KERNEL size_halo_sync_prepared_block(mpix::halo::device_exchange x, mpix::halo::prepared_tile *tile, int *out) {
    *out = mpix::halo::sync_blocks(cg::this_thread_block(), x, 2, tile, 1, 9);
}
KERNEL size_halo_next_block(mpix::halo::device_exchange x, int, int *out) {
    *out = mpix::halo::next(cg::this_thread_block(), x, 1);
}
KERNEL size_halo_send_warp(mpix::halo::device_exchange x, int tile, int *out) {
    *out = mpix::halo::send(this_warp(), x, tile, 1);
}
KERNEL size_halo_wait_warp(mpix::halo::device_exchange x, int tile, int *out) {
    *out = mpix::halo::wait(this_warp(), x, tile, 1);
}
KERNEL size_halo_wait_box_block(mpix::halo::device_exchange x, mpix::halo::box cells, int *out) {
    *out = mpix::halo::wait(cg::this_thread_block(), x, cells, 1);
}
