// SPDX-License-Identifier: BSD-3-Clause
//
// The vendor's own code for a queue pair of a ConnectX, as far as the oracle asks it: what posts work requests, what
// polls completions, and what exports both. No device: the queues lie in ordinary memory.
#ifndef MPIX_TESTS_MLX5_REFERENCE_MLX5_PROVIDER_H
#define MPIX_TESTS_MLX5_REFERENCE_MLX5_PROVIDER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct provider_queue;

enum provider_posting { provider_post_send = 0, provider_wr_calls = 1 };  // ibv_post_send, or ibv_wr_start and so on

struct provider_shape {
    uint32_t log_sq, log_cq, qpn;
    uint32_t first_block, first_entry;  // where the counts begin
    uint32_t cqe_version;               // 0: entries name the queue pair's number; 1: the program's own number for it
    uint32_t lines;                     // not 0: the register takes whole entries (BlueFlame), and of two halves
};

// An RDMA WRITE.
struct provider_request {
    uint64_t id;
    uint64_t to, from;
    uint32_t to_key, from_key;
    uint32_t bytes;
    uint8_t is_inline, signalled;
    uint8_t pieces;  // 0: no scatter/gather entry at all, of a WRITE of nothing
};

struct provider_completion {
    uint64_t id;
    uint32_t qpn, status, vendor, opcode;  // the last two of failed and of good ones
};

// The statuses of libibverbs, by the names of its enumerators.
struct provider_statuses {
    uint32_t success, local_length, local_operation, local_protection, flushed, remote_access, remote_operation,
        retries_exceeded;
    uint32_t opcode_write;
};

struct provider_code {
    struct provider_queue *(*open)(const struct provider_shape *);
    void (*close)(struct provider_queue *);
    // What mlx5dv_init_obj says, in a struct mlx5dv_qp and a struct mlx5dv_cq.
    void (*describe)(struct provider_queue *, void *qp, void *cq);
    // All of them, then one doorbell. 0, or an error number.
    int (*post)(struct provider_queue *, const struct provider_request *, int count, enum provider_posting);
    // How many were there; negative: an error.
    int (*poll)(struct provider_queue *, struct provider_completion *, int most);
    struct provider_statuses statuses;
};

typedef const struct provider_code *mlx5_provider_function(void);
const struct provider_code *mlx5_provider(void);

#ifdef __cplusplus
}
#endif

#endif  // MPIX_TESTS_MLX5_REFERENCE_MLX5_PROVIDER_H
