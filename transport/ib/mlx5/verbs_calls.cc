// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>

#include <cerrno>
#include <cstddef>
#include <string>

#include "transport/ib/mlx5/calls.h"

namespace mpix::transport::mlx5 {

status verbs_calls::load() {
    status bad;
    const auto open = [&](const char *name) -> void * {
        void *const handle = bad.ok() ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : nullptr;
        if (handle == nullptr && bad.ok()) bad = failure(std::string(name) + " cannot be loaded: " + dlerror());
        return handle;
    };
    void *const verbs = open("libibverbs.so.1");
    // The provider that libibverbs itself loads is the same file.
    void *const direct = open("libmlx5.so.1");
    if (!bad.ok()) return bad;
    const auto find = [&](void *library, const char *library_name, const char *name) {
        void *const symbol = dlsym(library, name);
        if (symbol == nullptr && bad.ok()) bad = failure(std::string(library_name) + " lacks " + name);
        return symbol;
    };
#define MPIX_MLX5_FIND(function) \
    function = reinterpret_cast<decltype(function)>(find(verbs, "libibverbs.so.1", #function));
    MPIX_MLX5_IBV_FUNCTIONS(MPIX_MLX5_FIND)
#undef MPIX_MLX5_FIND
#define MPIX_MLX5_FIND(function) \
    function = reinterpret_cast<decltype(function)>(find(direct, "libmlx5.so.1", #function));
    MPIX_MLX5_DV_FUNCTIONS(MPIX_MLX5_FIND)
#undef MPIX_MLX5_FIND
    ibv_reg_dmabuf_mr = reinterpret_cast<decltype(ibv_reg_dmabuf_mr)>(dlsym(verbs, "ibv_reg_dmabuf_mr"));
    // Not by the header's inline function, which falls back on a symbol that would have to be linked.
    create_qp_ex = [](ibv_context *c, ibv_qp_init_attr_ex *a) -> ibv_qp * {
        verbs_context *const extended = verbs_get_ctx(c);
        // The structure grows at its beginning, and says how much of it there is.
        constexpr std::size_t least = sizeof *extended - offsetof(verbs_context, create_qp_ex);
        if (extended != nullptr && extended->sz >= least && extended->create_qp_ex != nullptr)
            return extended->create_qp_ex(c, a);
        errno = EOPNOTSUPP;
        return nullptr;
    };
    alloc_td = [](ibv_context *c, ibv_td_init_attr *a) { return ::ibv_alloc_td(c, a); };
    dealloc_td = [](ibv_td *t) { return ::ibv_dealloc_td(t); };
    alloc_parent_domain = [](ibv_context *c, ibv_parent_domain_init_attr *a) {
        return ::ibv_alloc_parent_domain(c, a);
    };
    return bad;
}

}  // namespace mpix::transport::mlx5
