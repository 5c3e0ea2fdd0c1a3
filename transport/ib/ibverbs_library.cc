// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ib/ibverbs_library.h"

#include <dlfcn.h>

namespace mpix::transport::verbs {

status ibverbs_library::load() {
    void *const handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return failure(std::string("libibverbs cannot be loaded: ") + dlerror());
    const char *missing = nullptr;
    const auto find = [&](const char *name) {
        void *const symbol = dlsym(handle, name);
        if (symbol == nullptr && missing == nullptr) missing = name;
        return symbol;
    };
#define MPIX_IBV_FIND(function) function = reinterpret_cast<decltype(function)>(find(#function));
    MPIX_IBV_FUNCTIONS(MPIX_IBV_FIND)
#undef MPIX_IBV_FIND
    reg_mr = reinterpret_cast<decltype(reg_mr)>(find("ibv_reg_mr"));
    query_port = reinterpret_cast<decltype(query_port)>(find("ibv_query_port"));
    if (missing != nullptr) return failure(std::string("libibverbs.so.1 lacks ") + missing);
    return {};
}

}  // namespace mpix::transport::verbs
