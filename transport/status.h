// SPDX-License-Identifier: BSD-3-Clause
//
// How a function says that it has failed: by one sentence for the user, which names the call and what was wrong.
// Transports and host return it. The class of the error in MPI's terms is decided in one place, class_of() in
// host/report.h.
#ifndef MPIX_TRANSPORT_STATUS_H
#define MPIX_TRANSPORT_STATUS_H

#include <memory>
#include <string>
#include <string_view>

namespace mpix {

// Success, or a failure. Success holds no text, and copying allocates nothing: the copies of a failure share its text.
class [[nodiscard]] status {
public:
    status() noexcept = default;  // success

    bool ok() const noexcept { return message_ == nullptr && !out_of_memory_; }
    // There was no memory, not even to say for what.
    bool out_of_memory() const noexcept { return out_of_memory_; }
    // The sentence for the user; empty for success.
    const std::string &message() const noexcept;
    // MPI's, where the failure was made with one; else 0. A caller of MPI functions asks class_of() instead.
    int given_class() const noexcept { return given_class_; }
    // The message is on stderr already.
    bool printed() const noexcept { return printed_; }

    // The same failure with `context`, as "while ...: ", in front of its message, or of this class, or printed. Of
    // success: success.
    status in_context(std::string_view context) const;
    status of_class(int error_class) const noexcept;
    status after_printing() const noexcept;

    friend status failure(std::string message);
    friend status failure(int error_class, std::string message);
    friend status no_memory() noexcept;

private:
    std::shared_ptr<const std::string> message_;  // null for success, and out of memory
    int given_class_ = 0;
    bool out_of_memory_ = false;
    bool printed_ = false;
};

status failure(std::string message);
status failure(int error_class, std::string message);
// A failure that is made without memory.
status no_memory() noexcept;
// What device code and its helpers return: a sentence, empty for success.
status from_sentence(std::string sentence);

}  // namespace mpix

#endif  // MPIX_TRANSPORT_STATUS_H
