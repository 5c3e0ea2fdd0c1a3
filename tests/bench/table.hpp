// SPDX-License-Identifier: BSD-3-Clause
//
// A bench's table: text with a heading for people, after the OSU benchmarks, and the same as CSV. A cell of something
// that is not there says "absent"; one of something that is not measured is empty in CSV, and "-" in the text.
#ifndef MPIX_TESTS_BENCH_TABLE_HPP
#define MPIX_TESTS_BENCH_TABLE_HPP

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

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
        : columns_(std::move(columns)), machine_values_(values) {
        const bool instead = csv != nullptr && std::strcmp(csv, "-") == 0;
        if (csv != nullptr) csv_ = instead ? stdout : std::fopen(csv, "w");
        if (csv != nullptr && csv_ == nullptr) throw std::runtime_error(std::string("cannot write ") + csv);
        if (!instead) text_ = stdout;
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
    ~table() {
        if (csv_ != nullptr && csv_ != stdout) std::fclose(csv_);
    }
    table(const table &) = delete;
    table &operator=(const table &) = delete;

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
    std::FILE *csv_ = nullptr, *text_ = nullptr;
};

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_TABLE_HPP
