// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of libibverbs, libmlx5 and CUDA by which a queue pair is opened, as tables: the libraries are loaded
// when they are first asked for, and a test puts its own in.
#ifndef MPIX_TRANSPORT_IB_MLX5_CALLS_H
#define MPIX_TRANSPORT_IB_MLX5_CALLS_H

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "transport/transport.h"

namespace mpix::transport::mlx5 {

// Called under their own names; the header wraps some of them in macros of the same name.
#define MPIX_MLX5_IBV_FUNCTIONS(F) \
    F(ibv_dealloc_pd)              \
    F(ibv_dereg_mr)                \
    F(ibv_reg_mr_iova2)            \
    F(ibv_create_cq)               \
    F(ibv_destroy_cq)              \
    F(ibv_modify_qp)               \
    F(ibv_destroy_qp)
#define MPIX_MLX5_DV_FUNCTIONS(F) \
    F(mlx5dv_is_supported)        \
    F(mlx5dv_init_obj)

struct verbs_calls {
#define MPIX_MLX5_MEMBER(function) decltype(&::function) function = nullptr;
    MPIX_MLX5_IBV_FUNCTIONS(MPIX_MLX5_MEMBER)
    MPIX_MLX5_DV_FUNCTIONS(MPIX_MLX5_MEMBER)
#undef MPIX_MLX5_MEMBER
    decltype(&::ibv_reg_dmabuf_mr) ibv_reg_dmabuf_mr = nullptr;  // null: a library that is too old for it
    // These go through the device's context and are no symbols of the library.
    ibv_qp *(*create_qp_ex)(ibv_context *, ibv_qp_init_attr_ex *) = nullptr;
    ibv_td *(*alloc_td)(ibv_context *, ibv_td_init_attr *) = nullptr;
    int (*dealloc_td)(ibv_td *) = nullptr;
    ibv_pd *(*alloc_parent_domain)(ibv_context *, ibv_parent_domain_init_attr *) = nullptr;

    /** Fails where they cannot be had. The libraries stay loaded. */
    status load();
};

struct gpu_calls {
    /**
     * Pages of the host become the GPUs'. `registers`: a device's registers, not memory. `already`: somebody had done
     * so.
     */
    status (*map_pages)(void *pages, std::size_t bytes, bool registers, bool &already) = nullptr;
    void (*unmap_pages)(void *pages) = nullptr;
    /** By which address the GPUs reach what was mapped. */
    status (*gpu_address)(void *host, void **gpu) = nullptr;
    /** The allocation of a GPU that an address lies in; `bytes` 0: it is no GPU's memory. */
    status (*allocation_of)(std::uint64_t address, std::uint64_t &base, std::uint64_t &bytes, int &device) = nullptr;
    /** Copies by CUDA into that allocation are done when the call for them returns: a NIC does not know of streams. */
    status (*keep_synchronous)(std::uint64_t address) = nullptr;
    /** A file descriptor for these pages, the caller's to close. */
    status (*export_dmabuf)(std::uint64_t begin, std::uint64_t bytes, int &fd) = nullptr;
    status (*write_ordering)(int device, int &ordering) = nullptr;

    /** Fails where there is no GPU to be asked. */
    status load();
};

}  // namespace mpix::transport::mlx5

#endif  // MPIX_TRANSPORT_IB_MLX5_CALLS_H
