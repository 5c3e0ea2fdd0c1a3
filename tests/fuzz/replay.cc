// SPDX-License-Identifier: BSD-3-Clause
//
// A fuzz target without libFuzzer: `program <corpus folder> [<runs> [<seed>]]` runs every file of the folder, and then
// so many random variants of them. An input that ends the program is left in a file. 77, "skipped": all went well, but
// the machine does not let the corpus reach all that it should.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "tests/fuzz/input.h"
#include "tests/fuzz/landmark.h"

namespace {

using bytes = std::vector<std::uint8_t>;

bytes current;

extern "C" void keep_input(int signal) {
    std::FILE *const file = std::fopen("crash.input", "wb");
    if (file != nullptr) {
        std::fwrite(current.data(), 1, current.size(), file);
        std::fclose(file);
    }
    std::fprintf(stderr, "the input is in crash.input\n");
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

void run(const bytes &input) {
    current = input;
    const bytes copy(current);  // exactly as long, so that a sanitizer sees reads past its end
    LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

void vary(bytes &input, const std::vector<bytes> &corpus, std::mt19937_64 &random) {
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % std::max<std::size_t>(n, 1)); };
    const auto at = [&](std::size_t i) { return input.begin() + static_cast<std::ptrdiff_t>(i); };
    for (std::size_t changes = 1 + below(6); changes > 0; --changes) {
        const std::size_t place = below(input.size());
        switch (input.empty() ? 3 : below(6)) {
            case 0:
                input[place] ^= static_cast<std::uint8_t>(1u << below(8));
                break;
            case 1:
                input[place] = static_cast<std::uint8_t>(random());
                break;
            case 2:
                input.erase(at(place), at(std::min(input.size(), place + 1 + below(8))));
                break;
            case 3: {
                bytes more(1 + below(24));
                for (auto &b : more) b = static_cast<std::uint8_t>(random());
                input.insert(at(place), more.begin(), more.end());
                break;
            }
            case 4: {  // a piece of another one
                const bytes &other = corpus[below(corpus.size())];
                const std::size_t from = below(other.size()), n = std::min(other.size() - from, below(64));
                const auto first = other.begin() + static_cast<std::ptrdiff_t>(from);
                input.insert(at(place), first, first + static_cast<std::ptrdiff_t>(n));
                break;
            }
            default: {  // a number at its limits
                static constexpr std::uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff};
                for (std::size_t i = place; i < std::min(input.size(), place + 4); ++i) input[i] = edges[below(5)];
            }
        }
    }
    if (input.size() > 4096) input.resize(4096);
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    const std::size_t runs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
    std::mt19937_64 random(argc > 3 ? std::strtoull(argv[3], nullptr, 10) : std::random_device{}());
    std::signal(SIGABRT, keep_input);
    std::signal(SIGSEGV, keep_input);
    std::vector<std::filesystem::path> names;
    for (const auto &entry : std::filesystem::directory_iterator(argv[1])) names.push_back(entry.path());
    std::sort(names.begin(), names.end());
    std::vector<bytes> corpus{{}};
    for (const auto &name : names) {
        std::ifstream file(name, std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    for (const bytes &input : corpus) run(input);
    bool excused = false;
    for (const fuzz::landmark *mark : fuzz::landmark::all()) {
        if (mark->reached()) continue;
        std::printf("%s: not reached: %s%s%s\n", mark->excuse().empty() ? "FAILED" : "SKIP", mark->what(),
                    mark->excuse().empty() ? "" : ": ", mark->excuse().c_str());
        if (mark->excuse().empty()) return 1;
        excused = true;
    }
    for (std::size_t i = 0; i < runs; ++i) {
        bytes input = corpus[random() % corpus.size()];
        vary(input, corpus, random);
        run(input);
    }
    std::printf("%zu inputs of the corpus and %zu variants\n", corpus.size(), runs);
    return excused ? 77 : 0;
}
