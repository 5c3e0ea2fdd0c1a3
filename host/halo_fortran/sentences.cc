// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_fortran/sentences.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <mpix/halo.hpp>

#include "host/halo_c/handles.h"

namespace mpix::halo {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool in_name(char c) { return starts_name(c) || is_digit(c); }

// The C functions make all error strings, so that each check exists once; here their names and numbers become
// Fortran's.
class translator {
public:
    explicit translator(std::string_view from) : from_(from) {}

    std::string all() {
        while (!done()) {
            if (starts_name(from_[at_]) && (at_ == 0 || !in_name(from_[at_ - 1])))
                name();
            else if (!triple())
                copy();
        }
        return std::move(to_);
    }

private:
    bool done() const { return at_ >= from_.size(); }
    char look(std::size_t ahead = 0) const { return at_ + ahead < from_.size() ? from_[at_ + ahead] : '\0'; }
    void copy() { to_ += from_[at_++]; }

    // The number here, perhaps negative; false if there is none, and then nothing is read.
    bool number(long long &value) {
        std::size_t end = at_ + (look() == '-' ? 1 : 0);
        if (end >= from_.size() || !is_digit(from_[end])) return false;
        while (end < from_.size() && is_digit(from_[end])) ++end;
        const auto [last, error] = std::from_chars(from_.data() + at_, from_.data() + end, value);
        if (error != std::errc{} || value == std::numeric_limits<long long>::max()) return false;  // of no position
        at_ = end;
        return true;
    }

    bool word(std::string_view wanted) {
        if (!from_.substr(at_).starts_with(wanted)) return false;
        at_ += wanted.size();
        return true;
    }

    // [0, 0, 0] is a cell, and [0, 0, 0] to [4, 4, 1] are cells without the last ones.
    bool cell(std::array<long long, 3> &c) {
        const std::size_t before = at_;
        if (word("[") && number(c[0]) && word(", ") && number(c[1]) && word(", ") && number(c[2]) && word("]"))
            return true;
        at_ = before;
        return false;
    }

    bool triple() {
        std::array<long long, 3> lo, hi;
        if (!cell(lo)) return false;
        const std::size_t before = at_;
        const bool section = word(" to ") && cell(hi);
        if (!section) at_ = before;
        to_ += '(';
        for (std::size_t a = 0; a < 3; ++a) {
            if (a > 0) to_ += ", ";
            to_ += std::to_string(lo[a] + 1);
            if (section) to_.append(1, ':').append(std::to_string(hi[a]));
        }
        to_ += ')';
        return true;
    }

    // A word, or a path such as fields[0].layout.below[1].
    void name() {
        const bool within = at_ > 0 && std::string_view("/.-'").find(from_[at_ - 1]) != std::string_view::npos;
        if (within || to_.ends_with("path is ")) {  // a file's name
            while (!done() && look() != ' ') copy();
            return;
        }
        std::string path;
        bool is_argument = false;
        const std::size_t before = at_;
        std::size_t root = 0;  // its length
        for (;;) {
            if (in_name(look())) {
                path += from_[at_++];
            } else if (look() == '.' && starts_name(look(1))) {
                if (root == 0) root = path.size();
                path += '%';
                ++at_;
            } else if (look() == '[') {
                const std::size_t bracket = at_++;
                long long position = 0;
                if (!number(position) || !word("]")) {
                    at_ = bracket;
                    break;
                }
                if (root == 0) root = path.size();
                path += '(' + std::to_string(position + 1) + ')';
                is_argument = true;
            } else {
                break;
            }
        }
        const std::string_view first = std::string_view(path).substr(0, root);
        constexpr std::string_view structures[] = {"field", "from", "layout", "options", "shown"};
        is_argument =
            is_argument || std::find(std::begin(structures), std::end(structures), first) != std::end(structures);
        if (root > 0 && !is_argument) {  // such as pvti.png
            to_ += from_.substr(before, at_ - before);
            return;
        }
        numbers_behind(path);
    }

    void numbers_behind(std::string path) {
        const auto drop = [&](std::string_view beginning) {
            const bool there = path.starts_with(beginning);
            if (there) path.erase(0, beginning.size());
            return there;
        };
        const bool of_slice = drop("shown%");
        if (drop("options%")) {
            if (path == "links") path = "within_node";
            drop("links%");
        }
        to_ += path;
        if (path == "direction") return direction();
        if (path == "i" || path == "field") return position();
        const bool of_cells = path == "axis" || path == "at" || path == "component";
        const bool lowest_of_box = path.starts_with("boxes(") && path.ends_with("%lo");
        if ((of_slice && of_cells) || lowest_of_box) all_from_one();
    }

    // "direction is 4 (-z)" is (0, 0, -1).
    void direction() {
        const std::size_t before = at_;
        long long n = 0;
        if (!word(" is ") || !number(n) || n < 0 || n >= directions) {
            at_ = before;
            return;
        }
        if (look() == ' ' && look(1) == '(') at_ = std::min(from_.find(')', at_), from_.size() - 1) + 1;
        const auto [x, y, z] = halo::direction(static_cast<int>(n));
        to_ += " is (" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ')';
    }

    // "field is 2" and "field 2".
    void position() {
        const std::size_t before = at_;
        long long n = 0;
        const bool says = word(" is ") || word(" ");
        const std::string between(from_.substr(before, at_ - before));
        if (says && number(n))
            to_ += between + std::to_string(n + 1);
        else
            at_ = before;
    }

    // Whatever values the sentence tells; not the rank behind them.
    void all_from_one() {
        for (long long n = 0; !done() && !from_.substr(at_).starts_with("rank");)
            if (!in_name(from_[at_ - 1]) && number(n))
                to_ += std::to_string(n + 1);
            else
                copy();
    }

    std::string_view from_;
    std::size_t at_ = 0;
    std::string to_;
};

}  // namespace

std::string in_fortran(std::string sentence) {
    sentence = with_names(std::move(sentence), {{"hi is below lo;", "hi is below lo - 1;"},
                                                {"has hi equal to lo", "has hi equal to lo - 1"},
                                                {"options.boxes, which is null", "boxes, which are missing"},
                                                {"global is null", "global is not allocated, or has gaps"}});
    return translator(sentence).all();
}

}  // namespace mpix::halo
