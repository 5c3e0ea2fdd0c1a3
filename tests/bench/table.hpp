// SPDX-License-Identifier: BSD-3-Clause
//
// A bench's table: text with a heading for people, after the OSU benchmarks, and the same as CSV. A cell of something
// that is not there says "absent"; one of something that is not measured is empty in CSV, and "-" in the text.
#ifndef MPIX_TESTS_BENCH_TABLE_HPP
#define MPIX_TESTS_BENCH_TABLE_HPP

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/bench/csv_file.hpp"

namespace bench {

inline std::string cell(double value, int digits = 3) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}
inline std::string cell(uint64_t value) { return std::to_string(value); }
inline std::string cell(int value) { return std::to_string(value); }
inline const std::string absent = "absent";
inline const std::string unmeasured;

// The text's width of a column is at least its name's.
struct column {
    column(const char *text, int least = 8) : name(text), width(std::max(least, static_cast<int>(name.size()))) {}
    std::string name;
    int width;
};

class table {
public:
    // `csv`: a file, "-" for CSV in place of the text, or null. `names`, `values`: of the columns that are the
    // same in all rows, which the text has in its heading.
    table(const std::string &title, const char *csv, std::vector<column> columns, const std::string &names,
          const std::string &values)
        : columns_(std::move(columns)), machine_values_(values), file_(csv) {
        if (csv_ != nullptr) {
            for (const column &c : columns_) std::fprintf(csv_, "%s,", c.name.c_str());
            std::fprintf(csv_, "%s\n", names.c_str());
        }
        if (text_ == nullptr) return;
        std::fprintf(text_, "# mpix: %s\n# %s\n", title.c_str(), values.c_str());
        for (std::size_t i = 0; i < columns_.size(); ++i)
            std::fprintf(text_, "%s%*s", i == 0 ? "# " : " ", i == 0 ? -10 : columns_[i].width,
                         columns_[i].name.c_str());
        std::fputc('\n', text_);
    }

    void row(const std::vector<std::string> &cells) {
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            if (csv_ != nullptr) std::fprintf(csv_, "%s,", cells.at(i).c_str());
            if (text_ != nullptr)
                std::fprintf(text_, "%s%*s", i == 0 ? "" : " ", i == 0 ? -12 : columns_[i].width,
                             cells.at(i).empty() ? "-" : cells.at(i).c_str());
        }
        if (csv_ != nullptr) std::fprintf(csv_, "%s\n", machine_values_.c_str());
        if (text_ != nullptr) std::fputc('\n', text_);
        std::fflush(stdout);
        if (csv_ != nullptr) std::fflush(csv_);
    }

private:
    std::vector<column> columns_;
    std::string machine_values_;
    const csv_file file_;
    std::FILE *const csv_ = file_.get(), *const text_ = file_.text();
};

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_TABLE_HPP
