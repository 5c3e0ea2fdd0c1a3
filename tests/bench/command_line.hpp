// SPDX-License-Identifier: BSD-3-Clause
//
// A bench's command line: long options with a value each, or none.
#ifndef MPIX_TESTS_BENCH_COMMAND_LINE_HPP
#define MPIX_TESTS_BENCH_COMMAND_LINE_HPP

#include <getopt.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace bench {

class command_line {
public:
    // `started_by`: what stands before the program's name, "mpirun -n 2 " or nothing; `known`: all the options, and
    // what is to be said of them.
    command_line(const char *started_by, const char *known) : started_by_(started_by), known_(known) {}

    // `--name VALUE`. What is not a whole number of its type, or a number, is refused; whatever else there is to ask of
    // it is asked in read().
    void value(const char *name, std::uint64_t &out) {
        add(name, true, [&out](const char *text) {
            return parsed(text, out, [](const char *from, char **end) { return std::strtoull(from, end, 0); });
        });
    }
    void value(const char *name, std::int64_t &out) {
        add(name, true, [&out](const char *text) {
            return parsed(text, out, [](const char *from, char **end) { return std::strtoll(from, end, 10); });
        });
    }
    void value(const char *name, int &out) {
        add(name, true, [&out](const char *text) { return whole(text, out); });
    }
    void value(const char *name, double &out) {
        add(name, true, [&out](const char *text) { return number(text, out); });
    }
    void value(const char *name, const char *&out) {
        add(name, true, [&out](const char *text) { return out = text, true; });
    }
    void value(const char *name, std::string &out) {
        add(name, true, [&out](const char *text) { return out = text, true; });
    }
    // The list is that one number.
    void only(const char *name, std::vector<int> &out) {
        add(name, true, [&out](const char *text) {
            out.assign(1, 0);
            return whole(text, out[0]);
        });
    }
    // `--name N,N,...`, in place of what is in the list.
    void list(const char *name, std::vector<int> &out) {
        add(name, true, [&out](const char *text) {
            out.clear();
            return split(text, [&out](const std::string &part) {
                out.push_back(0);
                return whole(part.c_str(), out.back());
            });
        });
    }
    // `--name VALUE`, as often as one likes: in place of what is in the list.
    void each(const char *name, std::vector<double> &out) {
        add(name, true, [&out, given = false](const char *text) mutable {
            if (!given) out.clear();
            given = true;
            out.push_back(0);
            return number(text, out.back());
        });
    }
    // `--name WORD`: false refuses it.
    void word(const char *name, std::function<bool(const char *)> take) { add(name, true, std::move(take)); }
    // `--name WORD,WORD,...`: `begin` first, then each of them.
    void words(const char *name, std::function<void()> begin, std::function<bool(const std::string &)> take) {
        add(name, true, [begin = std::move(begin), take = std::move(take)](const char *text) {
            begin();
            return split(text, take);
        });
    }
    // `--name`, which makes it true, or false.
    void with(const char *name, bool &out) {
        add(name, false, [&out](const char *) { return out = true; });
    }
    void without(const char *name, bool &out) {
        add(name, false, [&out](const char *) { return out = false, true; });
    }

    // All of it; then `good` is asked whether the values go together. If not it says how the program is used.
    template <class Good>
    bool read(int argc, char **argv, const Good &good) {
        std::vector<::option> all;
        for (const entry &e : entries_)
            all.push_back({e.name, e.has_value ? required_argument : no_argument, nullptr, first_});
        for (std::size_t i = 0; i < all.size(); ++i) all[i].val += static_cast<int>(i);
        all.push_back({nullptr, 0, nullptr, 0});
        bool right = true;
        for (int c; right && (c = getopt_long(argc, argv, "", all.data(), nullptr)) != -1;)
            right = c >= first_ && entries_[static_cast<std::size_t>(c - first_)].take(optarg);
        if (right && optind == argc && good()) return true;
        std::fprintf(stderr, "usage: %s%s %s\n", started_by_, argv[0], known_);
        return false;
    }

private:
    struct entry {
        const char *name;
        bool has_value;
        std::function<bool(const char *)> take;
    };
    static constexpr int first_ = 256;  // no character

    template <class T, class Parse>
    static bool parsed(const char *text, T &out, const Parse &parse) {
        char *end = nullptr;
        errno = 0;
        out = static_cast<T>(parse(text, &end));
        return end != text && *end == '\0' && errno == 0;
    }
    static bool whole(const char *text, int &out) {
        std::int64_t wide = 0;
        const bool good = parsed(text, wide, [](const char *from, char **end) { return std::strtoll(from, end, 10); });
        out = static_cast<int>(wide);
        return good && out == wide;
    }
    static bool number(const char *text, double &out) {
        return parsed(text, out, [](const char *from, char **end) { return std::strtod(from, end); });
    }
    // Each part between commas, until one is refused.
    template <class Take>
    static bool split(const std::string &text, const Take &take) {
        for (std::size_t begin = 0, end; begin <= text.size(); begin = end + 1) {
            end = std::min(text.find(',', begin), text.size());
            if (!take(text.substr(begin, end - begin))) return false;
        }
        return true;
    }
    void add(const char *name, bool has_value, std::function<bool(const char *)> take) {
        entries_.push_back({name, has_value, std::move(take)});
    }

    const char *started_by_, *known_;
    std::vector<entry> entries_;
};

// What several benches ask of their numbers.
template <class T>
bool power_of_two(T x, std::type_identity_t<T> least, std::type_identity_t<T> most) {
    return x >= least && x <= most && (x & (x - 1)) == 0;
}
inline bool whole_warps(int threads, int most = 512) { return threads >= 32 && threads <= most && threads % 32 == 0; }

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_COMMAND_LINE_HPP
