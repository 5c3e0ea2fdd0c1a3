// SPDX-License-Identifier: BSD-3-Clause
//
// The indices that a tool sees: those of the MPI library first, then ours. The library may get more while the program
// runs, as when it loads its components in MPI_Init, and an index never changes: so ours lie behind those that the library
// had when a tool first asked, and what it gets later comes behind ours.
#ifndef MPIX_HOST_TOOL_INFORMATION_INDEX_SPACE_H
#define MPIX_HOST_TOOL_INFORMATION_INDEX_SPACE_H

#include <mpi.h>

#include <atomic>

namespace mpix::tool_information {

class index_space {
public:
    // `library_number`: the library's function that says how many it has.
    constexpr index_space(int (*library_number)(int *), int (*own_number)())
        : library_number_(library_number), own_number_(own_number) {}

    // Of the library's and ours. The library's error code.
    int number(int &all) {
        int begin = 0, of_library = 0;
        if (const int code = look(begin, of_library); code != MPI_SUCCESS) return code;
        all = of_library + own_number_();
        return MPI_SUCCESS;
    }

    // What an index stands for: number `index` of the library's, or of ours. Others are errors here: not all libraries
    // look.
    struct place {
        bool ours;
        int index;
    };
    int find(int index, place &out) {
        int begin = 0, of_library = 0;
        if (const int code = look(begin, of_library); code != MPI_SUCCESS) return code;
        if (index < 0 || index >= of_library + own_number_()) return MPI_T_ERR_INVALID_INDEX;
        if (index < begin)
            out = {false, index};
        else if (index - begin < own_number_())
            out = {true, index - begin};
        else
            out = {false, index - own_number_()};
        return MPI_SUCCESS;
    }

    // The index of one of ours.
    int of_ours(int own, int &out) {
        int begin = 0, of_library = 0;
        if (const int code = look(begin, of_library); code != MPI_SUCCESS) return code;
        out = begin + own;
        return MPI_SUCCESS;
    }
    // The index of one of the library's, which it has given us: so look() has succeeded, or would.
    int of_library(int theirs) {
        int begin = 0, of_library = 0;
        return look(begin, of_library) != MPI_SUCCESS || theirs < begin ? theirs : theirs + own_number_();
    }

private:
    int look(int &begin, int &of_library) {
        if (const int code = library_number_(&of_library); code != MPI_SUCCESS) return code;
        begin = begin_.load(std::memory_order_relaxed);  // nothing but the number itself
        if (begin < 0 && begin_.compare_exchange_strong(begin, of_library, std::memory_order_relaxed))
            begin = of_library;
        return MPI_SUCCESS;
    }

    int (*library_number_)(int *);
    int (*own_number_)();
    std::atomic<int> begin_{-1};  // of ours; -1: no tool has asked
};

// Of control variables, performance variables and categories.
index_space &control_indices();
index_space &performance_indices();
index_space &category_indices();

}  // namespace mpix::tool_information

#endif  // MPIX_HOST_TOOL_INFORMATION_INDEX_SPACE_H
