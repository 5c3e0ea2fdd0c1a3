// SPDX-License-Identifier: BSD-3-Clause
//
// How a function says that it has failed: by one sentence for the user, which names the call and what was wrong.
// Transports and host return it. The class of the error in MPI's terms is decided in one place, class_of() in
// host/report.h. And how one says why something is not so, where that is no failure.
#ifndef MPIX_TRANSPORT_STATUS_H
#define MPIX_TRANSPORT_STATUS_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

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

    friend class reason;
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

// Why something is not so, as a sentence for the user. Each pair of requests has several, and most are never printed;
// so one that is a literal takes no memory, also with a number in it.
class reason {
public:
    reason() = default;  // none: it is so
    // "{}" in the literal stands for the number.
    template <std::size_t Length>
    reason(const char (&text)[Length], std::uint64_t number = 0) : is_(literal{text, number}) {}
    // Copies share the text. An empty one is none.
    reason(std::string text) {
        if (!text.empty()) is_ = std::make_shared<const std::string>(std::move(text));
    }
    // What has failed; of success none.
    reason(const status &bad) {
        if (bad.message_ != nullptr) is_ = bad.message_;
        if (bad.out_of_memory()) *this = reason("no memory");
    }

    bool empty() const {
        const auto *const fixed = std::get_if<literal>(&is_);
        return fixed != nullptr && *fixed->text == '\0';
    }
    std::string text() const;

private:
    struct literal {
        const char *text;
        std::uint64_t number;
    };
    std::variant<literal, std::shared_ptr<const std::string>> is_ = literal{"", 0};
};

}  // namespace mpix

#endif  // MPIX_TRANSPORT_STATUS_H
