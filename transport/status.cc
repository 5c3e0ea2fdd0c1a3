// SPDX-License-Identifier: BSD-3-Clause
#include "transport/status.h"

#include <utility>

namespace mpix {
namespace {

// Never destroyed, since threads may ask at exit; both texts are short enough to need no memory.
union lasting_text {
    std::string text;
    explicit lasting_text(const char *of) : text(of) {}
    ~lasting_text() {}
};

}  // namespace

const std::string &status::message() const noexcept {
    static const lasting_text of_success(""), of_no_memory("no memory");
    if (message_ != nullptr) return *message_;
    return out_of_memory_ ? of_no_memory.text : of_success.text;
}

status failure(int error_class, std::string message) {
    status made;
    made.message_ = std::make_shared<const std::string>(std::move(message));
    made.given_class_ = error_class;
    return made;
}

status failure(std::string message) { return failure(0, std::move(message)); }

status from_sentence(std::string sentence) { return sentence.empty() ? status{} : failure(std::move(sentence)); }

status no_memory() noexcept {
    status made;
    made.out_of_memory_ = true;
    return made;
}

status status::in_context(std::string_view context) const {
    if (ok()) return {};
    status made = failure(given_class_, std::string(context) + message());
    made.printed_ = printed_;
    return made;
}

status status::of_class(int error_class) const noexcept {
    status made = *this;
    if (!ok()) made.given_class_ = error_class;
    return made;
}

status status::after_printing() const noexcept {
    status made = *this;
    made.printed_ = !ok();
    return made;
}

std::string reason::text() const {
    if (const auto *const made = std::get_if<std::shared_ptr<const std::string>>(&is_)) return **made;
    const auto &[fixed, number] = std::get<0>(is_);
    std::string text = fixed;
    if (const std::size_t at = text.find("{}"); at != std::string::npos) text.replace(at, 2, std::to_string(number));
    return text;
}

}  // namespace mpix
