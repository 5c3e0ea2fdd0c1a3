// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/driver_settings.h"

#include <cuda.h>
#include <dlfcn.h>
#include <mpix/detail/cuda_host.h>

#include <cstdlib>
#include <cstring>

namespace mpix::gpu {
namespace {

constexpr const char *eager_loading_knob = "MPIX_CUDA_EAGER_LOADING";

// Whether the driver was in the process before libmpix. Then it may have read the variables.
bool driver_was_first = false;

struct setting {
    const char *variable, *value;
    bool set_here = false;

    void set() {
        if (std::getenv(variable) == nullptr) set_here = setenv(variable, value, 0) == 0;
    }
    std::string text() const {
        const char *const now = std::getenv(variable);
        if (now == nullptr) return std::string(variable) + " is not set";
        const char *const whose = !set_here ? ", from the environment"
                                  : driver_was_first
                                      ? ", set by mpix, perhaps too late: the CUDA driver was loaded before"
                                      : ", set by mpix";
        return std::string(variable) + "=" + now + whose;
    }
};

constinit setting module_loading{"CUDA_MODULE_LOADING", "EAGER"};
constinit setting connections{"CUDA_DEVICE_MAX_CONNECTIONS", "32"};

// The driver reads the variables once, in cuInit. So this runs before the library's other constructors, before main, and before
// the constructors of a program that is linked with the library. MPI_Init reports a malformed knob.
[[gnu::constructor(101)]] void set_for_driver() {
    if (void *const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
        driver_was_first = true;
        dlclose(driver);
    }
    const char *const eager_loading = std::getenv(eager_loading_knob);
    if (eager_loading == nullptr || std::strcmp(eager_loading, "0") != 0) module_loading.set();
    connections.set();
}

}  // namespace

std::string module_loading_setting() { return module_loading.text(); }

std::string connections_setting() { return connections.text(); }

bool loads_lazily() {
    CUmoduleLoadingMode mode{};
    const auto ask = detail::driver_function<CUresult (*)(CUmoduleLoadingMode *)>("cuModuleGetLoadingMode");
    return ask != nullptr && ask(&mode) == CUDA_SUCCESS && mode == CU_MODULE_LAZY_LOADING;
}

}  // namespace mpix::gpu
