// SPDX-License-Identifier: BSD-3-Clause
//
// What the entry points of the tool information interface have in common. Its errors are codes alone: no error handler
// is called, and MPI need not be initialised.
#ifndef MPIX_HOST_TOOL_INFORMATION_ENTRY_H
#define MPIX_HOST_TOOL_INFORMATION_ENTRY_H

#include <cxxabi.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <string_view>

// Ends such an entry point, a function-try-block.
#define MPIX_TOOL_BOUNDARY                 \
    catch (const abi::__forced_unwind &) { \
        throw;                             \
    }                                      \
    catch (const std::bad_alloc &) {       \
        return MPI_T_ERR_MEMORY;           \
    }                                      \
    catch (...) {                          \
        return MPI_ERR_INTERN;             \
    }

namespace mpix::tool_information {

// MPI_SUCCESS between MPI_T_init_thread and MPI_T_finalize: the library knows.
inline int ready() {
    int number = 0;
    return PMPI_T_cvar_get_num(&number);
}

template <class Value>
void give(Value *out, Value value) {
    if (out != nullptr) *out = value;
}

// As the standard says of strings: cut to the room of *length, which then is what the whole needs.
inline void give_text(char *out, int *length, std::string_view text) {
    if (length == nullptr) return;
    if (out != nullptr && *length > 0) {
        const std::size_t n = std::min(text.size(), static_cast<std::size_t>(*length) - 1);
        std::memcpy(out, text.data(), n);
        out[n] = '\0';
    }
    *length = static_cast<int>(text.size()) + 1;
}

}  // namespace mpix::tool_information

#endif  // MPIX_HOST_TOOL_INFORMATION_ENTRY_H
