// SPDX-License-Identifier: BSD-3-Clause
//
// What a target's corpus has to reach; replay.cc says what it did not.
#ifndef MPIX_TESTS_FUZZ_LANDMARK_H
#define MPIX_TESTS_FUZZ_LANDMARK_H

#include <string>
#include <utility>
#include <vector>

namespace fuzz {

// A variable of static storage. `excuse`: why this machine does not let it be reached; else empty.
class landmark {
public:
    explicit landmark(const char *what, std::string excuse = {}) : what_(what), excuse_(std::move(excuse)) {
        all().push_back(this);
    }
    landmark(const landmark &) = delete;
    landmark &operator=(const landmark &) = delete;
    void reach() { reached_ = true; }
    bool reached() const { return reached_; }
    const char *what() const { return what_; }
    const std::string &excuse() const { return excuse_; }
    static std::vector<landmark *> &all() {
        static std::vector<landmark *> list;
        return list;
    }

private:
    const char *const what_;
    const std::string excuse_;
    bool reached_ = false;
};

}  // namespace fuzz

#endif  // MPIX_TESTS_FUZZ_LANDMARK_H
