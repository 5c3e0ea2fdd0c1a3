// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/module_loading.h"

#include <cuda.h>
#include <mpix/detail/cuda_host.h>

#include <cstdlib>
#include <cstring>

namespace mpix::gpu {
namespace {

constexpr const char *variable = "CUDA_MODULE_LOADING", *knob = "MPIX_CUDA_EAGER_LOADING";
bool set_here;

// The driver reads the variable once, in cuInit. So this runs before the library's other constructors, before main, and before
// the constructors of a program that is linked with the library. MPI_Init reports a malformed knob.
[[gnu::constructor(101)]] void ask_for_eager_loading() {
    const char *const setting = std::getenv(knob);
    if (std::getenv(variable) != nullptr || (setting != nullptr && std::strcmp(setting, "0") == 0)) return;
    set_here = setenv(variable, "EAGER", 0) == 0;
}

}  // namespace

std::string module_loading_setting() {
    const char *const value = std::getenv(variable);
    if (value == nullptr) return std::string(variable) + " is not set";
    return std::string(variable) + "=" + value + (set_here ? ", set by mpix" : ", from the environment");
}

bool loads_lazily() {
    CUmoduleLoadingMode mode{};
    const auto ask = detail::driver_function<CUresult (*)(CUmoduleLoadingMode *)>("cuModuleGetLoadingMode");
    return ask != nullptr && ask(&mode) == CUDA_SUCCESS && mode == CU_MODULE_LAZY_LOADING;
}

}  // namespace mpix::gpu
