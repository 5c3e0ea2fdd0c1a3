// SPDX-License-Identifier: BSD-3-Clause
#include "host/info/check_paths.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "host/format.h"
#include "host/info/self_test.h"

namespace mpix {
namespace {

// The ranks give up after MPIX_STALL_SECONDS; this is for what hangs before them.
constexpr auto longest = std::chrono::seconds(180);

struct ended_job {
    int exit_status = -1;  // -1: it was ended
    std::string output;
};

ended_job run(const std::vector<std::string> &words) {
    ended_job job;
    int ends[2];
    if (pipe(ends) != 0) return {1, "pipe: no file descriptors"};
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        std::vector<char *> arguments;
        for (const std::string &word : words) arguments.push_back(const_cast<char *>(word.c_str()));
        arguments.push_back(nullptr);
        execvp(arguments[0], arguments.data());
        std::fprintf(stderr, "%s: %s\n", arguments[0], std::strerror(errno));
        _exit(127);
    }
    close(ends[1]);
    const auto since = std::chrono::steady_clock::now();
    bool open = child > 0, late = false;
    while (open && !late) {
        const auto left = longest - (std::chrono::steady_clock::now() - since);
        const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
        pollfd reading{ends[0], POLLIN, 0};
        if (milliseconds <= 0 || poll(&reading, 1, static_cast<int>(milliseconds)) == 0) {
            late = true;
            kill(-child, SIGTERM);
            break;
        }
        char text[4096];
        const ssize_t n = read(ends[0], text, sizeof text);
        if (n > 0)
            job.output.append(text, static_cast<std::size_t>(n));
        else if (n == 0 || errno != EINTR)
            open = false;
    }
    close(ends[0]);
    int ended = 0;
    if (child > 0 && waitpid(child, &ended, 0) == child && WIFEXITED(ended) && !late)
        job.exit_status = WEXITSTATUS(ended);
    if (late) job.output = format("no end after {} s", longest.count());
    return job;
}

// What mpix_info's ranks have said, or mpix, or else the last line there is.
std::string reason_in(const std::string &output) {
    std::istringstream lines(output);
    std::string line, last, of_mpix;
    while (std::getline(lines, line)) {
        if (line.rfind("mpix_info: ", 0) == 0) return line.substr(std::strlen("mpix_info: "));
        if (line.rfind("mpix: ", 0) == 0 && of_mpix.empty()) of_mpix = line;
        if (line.find_first_not_of(" -=") != std::string::npos) last = line;
    }
    return of_mpix.empty() ? last : of_mpix;
}

std::string this_program() {
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    return n > 0 ? std::string(path, static_cast<std::size_t>(n)) : "mpix_info";
}

}  // namespace

int check_paths(const std::vector<ability> &abilities, const std::string &launcher) {
    std::vector<std::string> words;
    std::istringstream list(launcher);
    for (std::string word; list >> word;) words.push_back(word);
    // On a node of one core, too.
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
    setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 0);
    for (const char *const word : {"-n", "2"}) words.emplace_back(word);
    words.push_back(this_program());
    words.emplace_back("--check");
    words.emplace_back("--path");
    words.emplace_back();
    std::printf("paths, by two processes of this node (%s):\n", launcher.c_str());
    bool all = true;
    for (const checked_path &path : checked_paths()) {
        const auto has = std::find_if(abilities.begin(), abilities.end(),
                                      [&path](const ability &one) { return one.name == path.name; });
        std::string found;
        if (has != abilities.end() && !has->why_not.ok()) {
            found = "not usable: " + has->why_not.message();
        } else {
            words.back() = path.name;
            const ended_job job = run(words);
            const bool works = job.exit_status == 0;
            found = works ? "works" : "FAILED: " + reason_in(job.output);
            all = all && works;
        }
        std::printf("  %-12s %s\n", path.name, found.c_str());
        std::fflush(stdout);
    }
    return all ? 0 : 1;
}

}  // namespace mpix
