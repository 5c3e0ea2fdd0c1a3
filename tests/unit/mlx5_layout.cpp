// SPDX-License-Identifier: BSD-3-Clause
//
// Our structures against the vendor's header. Compiled only where that is installed; nothing to run.
#include <mpix/detail/work_queue.h>

#include <infiniband/mlx5dv.h>

namespace {

using namespace mpix::detail;

static_assert(sizeof(wqe_control) == sizeof(mlx5_wqe_ctrl_seg));
static_assert(offsetof(wqe_control, index_opcode) == offsetof(mlx5_wqe_ctrl_seg, opmod_idx_opcode));
static_assert(offsetof(wqe_control, qpn_ds) == offsetof(mlx5_wqe_ctrl_seg, qpn_ds));
static_assert(offsetof(wqe_control, fm_ce_se) == offsetof(mlx5_wqe_ctrl_seg, fm_ce_se));
static_assert(offsetof(wqe_control, immediate) == offsetof(mlx5_wqe_ctrl_seg, imm));
static_assert(sizeof(wqe_remote) == sizeof(mlx5_wqe_raddr_seg));
static_assert(offsetof(wqe_remote, address) == offsetof(mlx5_wqe_raddr_seg, raddr));
static_assert(offsetof(wqe_remote, key) == offsetof(mlx5_wqe_raddr_seg, rkey));
static_assert(sizeof(wqe_data) == sizeof(mlx5_wqe_data_seg));
static_assert(offsetof(wqe_data, bytes) == offsetof(mlx5_wqe_data_seg, byte_count));
static_assert(offsetof(wqe_data, key) == offsetof(mlx5_wqe_data_seg, lkey));
static_assert(offsetof(wqe_data, address) == offsetof(mlx5_wqe_data_seg, addr));
static_assert(offsetof(wqe_inline, words) == sizeof(mlx5_wqe_inl_data_seg));
static_assert(sizeof(wqe) == MLX5_SEND_WQE_BB);

static_assert(wqe_nop == MLX5_OPCODE_NOP && wqe_rdma_write == MLX5_OPCODE_RDMA_WRITE);
static_assert(wqe_signalled == MLX5_WQE_CTRL_CQ_UPDATE);
static_assert(wqe_inline_bit == static_cast<uint32_t>(MLX5_INLINE_SEG));

static_assert(sizeof(cqe) == sizeof(mlx5_cqe64) && sizeof(cqe) == sizeof(mlx5_err_cqe));
static_assert(offsetof(cqe, bytes) == offsetof(mlx5_cqe64, byte_cnt));
static_assert(offsetof(cqe, opcode_qpn) == offsetof(mlx5_cqe64, sop_drop_qpn));
static_assert(offsetof(cqe, opcode_qpn) == offsetof(mlx5_err_cqe, s_wqe_opcode_qpn));
static_assert(offsetof(cqe, vendor_syndrome) == offsetof(mlx5_err_cqe, vendor_err_synd));
static_assert(offsetof(cqe, syndrome) == offsetof(mlx5_err_cqe, syndrome));
static_assert(offsetof(cqe, last_word) == offsetof(mlx5_cqe64, wqe_counter));
static_assert(offsetof(cqe, last_word) + 3 == offsetof(mlx5_cqe64, op_own));

static_assert(cqe_requester == MLX5_CQE_REQ && cqe_requester_error == MLX5_CQE_REQ_ERR &&
              cqe_invalid == MLX5_CQE_INVALID);
static_assert(syndrome_local_length == MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
static_assert(syndrome_local_operation == MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
static_assert(syndrome_local_protection == MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
static_assert(syndrome_flushed == MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
static_assert(syndrome_remote_access == MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
static_assert(syndrome_remote_operation == MLX5_CQE_SYNDROME_REMOTE_OP_ERR);
static_assert(syndrome_retries_exceeded == MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);

// Words of a doorbell record.
static_assert(MLX5_RCV_DBR == 0 && MLX5_SND_DBR == 1);

}  // namespace
