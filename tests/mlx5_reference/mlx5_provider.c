// SPDX-License-Identifier: BSD-3-Clause
//
// Built by tests/mlx5_reference/run together with the provider's own sources, whose private structures it fills by
// hand, as the provider does when the kernel has made the queues.
#include "mlx5.c"  // the provider's; what exports a queue is static there
#include "mlx5_provider.h"

struct provider_queue {
    struct mlx5_context context;
    struct mlx5_qp qp;
    struct mlx5_cq cq;
    struct mlx5_bf bell;
    struct mlx5_qp *by_number[1 << MLX5_QP_TABLE_SHIFT];
    struct mlx5_resource *by_index[1 << MLX5_UIDX_TABLE_SHIFT];
    __be32 records[2], cq_record[2];
};

static void *zeroed(size_t alignment, size_t bytes) {
    void *const memory = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (memory == NULL) abort();
    return memset(memory, 0, bytes);
}

static void make_send_queue(struct provider_queue *q, const struct provider_shape *s) {
    struct mlx5_qp *const qp = &q->qp;
    const unsigned blocks = 1u << s->log_sq;
    qp->sq_start = qp->buf.buf = zeroed(4096, (size_t)blocks * MLX5_SEND_WQE_BB);
    qp->sq.qend = (char *)qp->sq_start + (size_t)blocks * MLX5_SEND_WQE_BB;
    qp->sq.wrid = calloc(blocks, sizeof *qp->sq.wrid);
    qp->sq.wqe_head = calloc(blocks, sizeof *qp->sq.wqe_head);
    qp->sq.wr_data = calloc(blocks, sizeof *qp->sq.wr_data);
    if (qp->sq.wrid == NULL || qp->sq.wqe_head == NULL || qp->sq.wr_data == NULL) abort();
    qp->sq.wqe_cnt = qp->sq.max_post = blocks;
    qp->sq.wqe_shift = 6;
    qp->sq.cur_post = qp->sq.head = qp->sq.tail = s->first_block;
    qp->sq.max_gs = qp->sq.qp_state_max_gs = 1;
    qp->max_inline_data = 28;
    qp->atomics_enabled = 1;
    qp->db = q->records;
    qp->bf = &q->bell;
    q->bell.reg = zeroed(4096, 4096);
    q->bell.uuarn = s->lines;
    q->bell.buf_size = s->lines != 0 ? 256 : 0;
}

static void make_completion_queue(struct provider_queue *q, const struct provider_shape *s) {
    const unsigned entries = 1u << s->log_cq;
    struct mlx5_cqe64 *const ring = zeroed(4096, entries * sizeof *ring);
    for (unsigned i = 0; i < entries; ++i) ring[i].op_own = MLX5_CQE_INVALID << 4;
    q->cq.buf_a.buf = ring;
    q->cq.active_buf = &q->cq.buf_a;
    q->cq.verbs_cq.cq.cqe = (int)entries - 1;
    q->cq.verbs_cq.cq.context = &q->context.ibv_ctx.context;
    q->cq.cqe_sz = sizeof *ring;
    q->cq.cons_index = s->first_entry;
    q->cq.dbrec = q->cq_record;
    q->cq.cqn = 0x42;
}

static struct provider_queue *open_queue(const struct provider_shape *s) {
    struct provider_queue *const q = zeroed(64, sizeof *q);
    q->context.cqe_version = (int)s->cqe_version;
    q->context.dbg_fp = fopen("/dev/null", "w");
    make_send_queue(q, s);
    make_completion_queue(q, s);
    struct ibv_qp *const base = &q->qp.verbs_qp.qp;
    q->qp.ibv_qp = base;
    base->context = &q->context.ibv_ctx.context;
    base->qp_num = s->qpn;
    base->qp_type = IBV_QPT_RC;
    base->send_cq = base->recv_cq = &q->cq.verbs_cq.cq;
    q->qp.rsc.type = MLX5_RSC_TYPE_QP;
    // By one of the two a completion leads to its queue pair. Index 0 is ours, as no entry here names another.
    q->qp.rsc.rsn = s->cqe_version != 0 ? 0 : s->qpn;
    const uint32_t row = s->qpn >> MLX5_QP_TABLE_SHIFT;
    q->context.qp_table[row].table = q->by_number;
    q->context.qp_table[row].refcnt = 1;
    q->by_number[s->qpn & MLX5_QP_TABLE_MASK] = &q->qp;
    q->context.uidx_table[0].table = q->by_index;
    q->context.uidx_table[0].refcnt = 1;
    q->by_index[0] = &q->qp.rsc;
    struct ibv_qp_init_attr_ex wanted = {0};
    wanted.qp_type = IBV_QPT_RC;
    wanted.send_ops_flags =
        IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    if (q->context.dbg_fp == NULL || mlx5_qp_fill_wr_pfns(&q->qp, &wanted, NULL) != 0) abort();
    return q;
}

static void close_queue(struct provider_queue *q) {
    fclose(q->context.dbg_fp);
    free(q->qp.buf.buf);
    free(q->qp.sq.wrid);
    free(q->qp.sq.wqe_head);
    free(q->qp.sq.wr_data);
    free(q->bell.reg);
    free(q->cq.buf_a.buf);
    free(q);
}

static void describe_queue(struct provider_queue *q, void *qp, void *cq) {
    struct mlx5dv_obj object = {0};
    object.qp.in = q->qp.ibv_qp;
    object.qp.out = qp;
    object.cq.in = &q->cq.verbs_cq.cq;
    object.cq.out = cq;
    if (_mlx5dv_init_obj(&object, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ) != 0) abort();
}

static int post_list(struct provider_queue *q, const struct provider_request *r, int count) {
    struct ibv_send_wr *const wrs = calloc((size_t)count, sizeof *wrs), *refused = NULL;
    struct ibv_sge *const pieces = calloc((size_t)count, sizeof *pieces);
    if (wrs == NULL || pieces == NULL) abort();
    for (int i = 0; i < count; ++i) {
        pieces[i] = (struct ibv_sge){.addr = r[i].from, .length = r[i].bytes, .lkey = r[i].from_key};
        wrs[i].wr_id = r[i].id;
        wrs[i].next = i + 1 < count ? &wrs[i + 1] : NULL;
        wrs[i].sg_list = &pieces[i];
        wrs[i].num_sge = r[i].pieces;
        wrs[i].opcode = IBV_WR_RDMA_WRITE;
        wrs[i].send_flags = (r[i].signalled ? IBV_SEND_SIGNALED : 0) | (r[i].is_inline ? IBV_SEND_INLINE : 0);
        wrs[i].wr.rdma.remote_addr = r[i].to;
        wrs[i].wr.rdma.rkey = r[i].to_key;
    }
    const int error = mlx5_post_send(q->qp.ibv_qp, wrs, &refused);
    free(wrs);
    free(pieces);
    return error;
}

static int post_by_calls(struct provider_queue *q, const struct provider_request *r, int count) {
    struct ibv_qp_ex *const qp = &q->qp.verbs_qp.qp_ex;
    ibv_wr_start(qp);
    for (int i = 0; i < count; ++i) {
        qp->wr_id = r[i].id;
        qp->wr_flags = r[i].signalled ? IBV_SEND_SIGNALED : 0;
        ibv_wr_rdma_write(qp, r[i].to_key, r[i].to);
        if (r[i].is_inline)
            ibv_wr_set_inline_data(qp, (void *)(uintptr_t)r[i].from, r[i].bytes);
        else
            ibv_wr_set_sge(qp, r[i].from_key, r[i].from, r[i].bytes);
    }
    return ibv_wr_complete(qp);
}

static int post(struct provider_queue *q, const struct provider_request *r, int count, enum provider_posting by) {
    return by == provider_post_send ? post_list(q, r, count) : post_by_calls(q, r, count);
}

static int poll(struct provider_queue *q, struct provider_completion *out, int most) {
    for (int i = 0; i < most; ++i) {
        struct ibv_wc wc;
        memset(&wc, 0, sizeof wc);
        const int n = (q->context.cqe_version != 0 ? mlx5_poll_cq_v1 : mlx5_poll_cq)(&q->cq.verbs_cq.cq, 1, &wc);
        if (n < 0) return n;
        if (n == 0) return i;
        out[i] = (struct provider_completion){
            .id = wc.wr_id, .qpn = wc.qp_num, .status = wc.status, .vendor = wc.vendor_err, .opcode = wc.opcode};
    }
    return most;
}

__attribute__((visibility("default"))) const struct provider_code *mlx5_provider(void) {
    static const struct provider_code one = {
        .open = open_queue,
        .close = close_queue,
        .describe = describe_queue,
        .post = post,
        .poll = poll,
        .statuses = {.success = IBV_WC_SUCCESS,
                     .local_length = IBV_WC_LOC_LEN_ERR,
                     .local_operation = IBV_WC_LOC_QP_OP_ERR,
                     .local_protection = IBV_WC_LOC_PROT_ERR,
                     .flushed = IBV_WC_WR_FLUSH_ERR,
                     .remote_access = IBV_WC_REM_ACCESS_ERR,
                     .remote_operation = IBV_WC_REM_OP_ERR,
                     .retries_exceeded = IBV_WC_RETRY_EXC_ERR,
                     .opcode_write = IBV_WC_RDMA_WRITE},
    };
    return &one;
}
