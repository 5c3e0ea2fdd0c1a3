// SPDX-License-Identifier: BSD-3-Clause
#include "host/info/siblings.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "host/format.h"
#include "transport/select.h"

namespace mpix {
namespace {

// What the first child tells the second, and the second tells us.
struct introduction {
    transport::memory_probe probe;
    transport::wire_region region;
    char failed[200];
};
struct findings {
    char no_shared_memory[200], no_single_copy[200];
};

template <std::size_t Room>
void put(char (&to)[Room], std::string_view text) {
    const std::size_t n = text.copy(to, Room - 1);
    to[n] = '\0';
}

template <class Message>
bool send(int to, const Message &message) {
    return write(to, &message, sizeof message) == sizeof message;  // less than PIPE_BUF
}
template <class Message>
bool receive(int from, Message &message) {
    return read(from, &message, sizeof message) == sizeof message;
}

struct pipe_ends {
    int read = -1, write = -1;
    bool open() {
        int ends[2];
        if (pipe(ends) != 0) return false;
        read = ends[0];
        write = ends[1];
        return true;
    }
    void close_all() const {
        for (const int end : {read, write})
            if (end >= 0) close(end);
    }
};

constexpr char word[] = "a word";

// Lends memory until `until` is closed.
void lend(int tell, int until) {
    introduction mine{};
    mine.probe = transport::probe_of_this_process();
    transport::region region;
    status bad = transport::node_memory().allocate(sizeof word, transport::on_host, region);
    if (bad.ok()) {
        std::memcpy(region.address, word, sizeof word);
        bad = transport::node_memory().describe(region, mine.region);
    }
    put(mine.failed, bad.message());
    char nothing = 0;
    if (send(tell, mine)) static_cast<void>(!read(until, &nothing, 1));
}

void borrow(int from, int tell) {
    introduction theirs{};
    findings found{};
    if (!receive(from, theirs)) return;
    put(found.no_shared_memory, theirs.failed);
    if (theirs.failed[0] == '\0') {
        transport::region region;
        const status bad = transport::node_memory().attach(theirs.region, transport::on_host, region);
        if (!bad.ok())
            put(found.no_shared_memory, bad.message());
        else if (std::memcmp(region.address, word, sizeof word) != 0)
            put(found.no_shared_memory, "the other process's memory is not what is mapped here");
    }
    transport::peer_memory reached;
    if (const status bad = transport::reach_memory(theirs.probe, reached); !bad.ok())
        put(found.no_single_copy, bad.message());
    static_cast<void>(send(tell, found));
}

template <class Work>
pid_t start(const Work &work) {
    const pid_t child = fork();
    if (child != 0) return child;
    work();
    _exit(0);
}

status as_status(const char *text) { return *text == '\0' ? status{} : failure(text); }

}  // namespace

siblings_memory try_siblings() {
    const auto neither = [](const status &why) { return siblings_memory{why, why}; };
    pipe_ends introductions, results, hold;
    if (!introductions.open() || !results.open() || !hold.open()) return neither(failure("pipe: no file descriptors"));
    const pid_t lender = start([&] {
        close(hold.write);
        close(results.write);  // or the parent would not see that the other one has ended
        lend(introductions.write, hold.read);
    });
    const pid_t borrower = start([&] {
        close(introductions.write);
        close(hold.write);
        borrow(introductions.read, results.write);
    });
    close(std::exchange(introductions.write, -1));
    close(std::exchange(results.write, -1));
    findings found{};
    const bool told = lender > 0 && borrower > 0 && receive(results.read, found);
    close(std::exchange(hold.write, -1));
    for (const pid_t child : {lender, borrower})
        if (child > 0) waitpid(child, nullptr, 0);
    for (const pipe_ends &one : {introductions, results, hold}) one.close_all();
    if (!told) return neither(failure("two processes to try it could not be started"));
    return {as_status(found.no_shared_memory), as_status(found.no_single_copy)};
}

}  // namespace mpix
