// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_T_pvar_*: the counters. Each handle counts from its allocation, or its start, on.
#include <mpi.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "host/mpi/symbol.h"
#include "host/mpi/tools.h"
#include "host/progress.h"
#include "host/statistics/counters.h"
#include "host/tool_information/entry.h"
#include "host/tool_information/index_space.h"

using namespace mpix;
using namespace mpix::tool_information;

namespace {

int class_of(counter_kind kind) {
    switch (kind) {
        case counter_kind::events:
            return MPI_T_PVAR_CLASS_COUNTER;
        case counter_kind::sum:
            return MPI_T_PVAR_CLASS_AGGREGATE;
        case counter_kind::timer:
            return MPI_T_PVAR_CLASS_TIMER;
        default:
            return MPI_T_PVAR_CLASS_LEVEL;
    }
}

bool is_timer(const counter &what) { return what.kind == counter_kind::timer; }

// What a handle of ours points to. A level has its value, everything else a difference.
struct counter_handle {
    MPI_T_pvar_session session;
    std::size_t index;
    bool running = true;       // a timer begins stopped
    std::uint64_t before = 0;  // counted before it was last started, or written
    std::uint64_t since = 0;   // the counter's value then

    const counter &what() const { return counters()[index]; }
    std::uint64_t value() const {
        const std::uint64_t now = running ? read_counter(index) : since;
        return what().kind == counter_kind::level ? now : before + (now - since);
    }
    void set(std::uint64_t value) {
        before = value;
        since = read_counter(index);
    }
    void start() {
        if (running) return;
        time_waits(+1);
        since = read_counter(index);
        running = true;
    }
    void stop() {
        if (!running) return;
        before = value();
        since = read_counter(index);
        running = false;
        time_waits(-1);
    }
};

struct counter_handles {
    std::mutex mutex;
    std::vector<MPI_T_pvar_session> sessions;
    std::vector<std::unique_ptr<counter_handle>> all;

    // The mutex is held.
    auto place_of(MPI_T_pvar_handle handle) {
        return std::find_if(all.begin(), all.end(),
                            [handle](const auto &one) { return static_cast<void *>(one.get()) == handle; });
    }
    bool has(MPI_T_pvar_session session) const {
        return std::find(sessions.begin(), sessions.end(), session) != sessions.end();
    }
};
counter_handles &handles_of_counters() {
    static auto *const all = new counter_handles;
    return *all;
}

// Calls `own` with the handle if it is one of ours, `of_library` otherwise.
template <class Own, class OfLibrary>
int with_handle(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const Own &own, const OfLibrary &of_library) {
    {
        const std::lock_guard lock(handles_of_counters().mutex);
        if (const auto at = handles_of_counters().place_of(handle); at != handles_of_counters().all.end()) {
            if (const int code = ready(); code != MPI_SUCCESS) return code;
            if (!handles_of_counters().has(session)) return MPI_T_ERR_INVALID_SESSION;
            if ((*at)->session != session) return MPI_T_ERR_INVALID_HANDLE;
            return own(**at);
        }
    }
    return of_library();
}

// Of all in the session that can be, as MPI_T_PVAR_ALL_HANDLES asks for; after the library's.
template <class Do>
int with_all(MPI_T_pvar_session session, int code, const Do &act) {
    const std::lock_guard lock(handles_of_counters().mutex);
    for (const auto &one : handles_of_counters().all)
        if (one->session == session) act(*one);
    return code;
}

void give_value(const counter_handle &from, void *buf) {
    const std::uint64_t value = from.value();
    if (is_timer(from.what())) {
        const double seconds = static_cast<double>(value) / 1e9;
        std::memcpy(buf, &seconds, sizeof seconds);
    } else {
        const unsigned long long number = value;
        std::memcpy(buf, &number, sizeof number);
    }
}

}  // namespace

MPIX_SYMBOL int MPI_T_pvar_get_num(int *num_pvar) try {
    if (num_pvar == nullptr) return next.T_pvar_get_num(num_pvar);
    return performance_indices().number(*num_pvar);
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_pvar_get_info(int pvar_index, char *name, int *name_len, int *verbosity, int *var_class,
                                    MPI_Datatype *datatype, MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind,
                                    int *readonly, int *continuous, int *atomic) try {
    index_space::place at{};
    if (const int code = performance_indices().find(pvar_index, at); code != MPI_SUCCESS) return code;
    if (!at.ours)
        return next.T_pvar_get_info(at.index, name, name_len, verbosity, var_class, datatype, enumtype, desc, desc_len,
                                    bind, readonly, continuous, atomic);
    const counter &what = counters()[static_cast<std::size_t>(at.index)];
    const bool level = what.kind == counter_kind::level;
    give_text(name, name_len, what.name);
    give(verbosity, int{MPI_T_VERBOSITY_USER_BASIC});
    give(var_class, class_of(what.kind));
    give(datatype, is_timer(what) ? MPI_DOUBLE : MPI_UNSIGNED_LONG_LONG);
    give(enumtype, MPI_T_ENUM_NULL);
    give_text(desc, desc_len, what.meaning);
    give(bind, int{MPI_T_BIND_NO_OBJECT});
    give(readonly, int{level});
    give(continuous, int{!is_timer(what)});
    give(atomic, int{!level});
    return MPI_SUCCESS;
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_pvar_get_index(const char *name, int var_class, int *pvar_index) try {
    if (name != nullptr && pvar_index != nullptr)
        for (std::size_t i = 0; i < counters().size(); ++i) {
            if (counters()[i].name != name) continue;
            if (class_of(counters()[i].kind) != var_class) return MPI_T_ERR_INVALID_NAME;
            return performance_indices().of_ours(static_cast<int>(i), *pvar_index);
        }
    const int code = next.T_pvar_get_index(name, var_class, pvar_index);
    if (code == MPI_SUCCESS) *pvar_index = performance_indices().of_library(*pvar_index);
    return code;
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_pvar_session_create(MPI_T_pvar_session *session) try {
    const std::lock_guard lock(handles_of_counters().mutex);
    handles_of_counters().sessions.reserve(handles_of_counters().sessions.size() + 1);
    const int code = next.T_pvar_session_create(session);
    if (code == MPI_SUCCESS) handles_of_counters().sessions.push_back(*session);
    return code;
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_pvar_session_free(MPI_T_pvar_session *session) try {
    const MPI_T_pvar_session freed = session == nullptr ? MPI_T_PVAR_SESSION_NULL : *session;
    const int code = next.T_pvar_session_free(session);
    if (code != MPI_SUCCESS) return code;
    const std::lock_guard lock(handles_of_counters().mutex);
    std::erase(handles_of_counters().sessions, freed);
    std::erase_if(handles_of_counters().all, [freed](const auto &one) {
        if (one->session != freed) return false;
        if (is_timer(one->what())) one->stop();
        return true;
    });
    return code;
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void *obj_handle,
                                        MPI_T_pvar_handle *handle, int *count) try {
    index_space::place at{};
    if (const int code = performance_indices().find(pvar_index, at); code != MPI_SUCCESS) return code;
    if (!at.ours) return next.T_pvar_handle_alloc(session, at.index, obj_handle, handle, count);
    if (handle == nullptr || count == nullptr) return MPI_ERR_ARG;
    const std::lock_guard lock(handles_of_counters().mutex);
    if (!handles_of_counters().has(session)) return MPI_T_ERR_INVALID_SESSION;
    auto made = std::make_unique<counter_handle>(counter_handle{session, static_cast<std::size_t>(at.index)});
    made->running = !is_timer(made->what());
    made->set(0);
    const auto shown = reinterpret_cast<MPI_T_pvar_handle>(made.get());
    handles_of_counters().all.push_back(std::move(made));
    *handle = shown;
    *count = 1;
    return MPI_SUCCESS;
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *handle) try {
    if (handle == nullptr) return next.T_pvar_handle_free(session, handle);
    return with_handle(
        session, *handle,
        [handle](counter_handle &mine) {
            if (is_timer(mine.what())) mine.stop();
            handles_of_counters().all.erase(handles_of_counters().place_of(*handle));
            *handle = MPI_T_PVAR_HANDLE_NULL;
            return MPI_SUCCESS;
        },
        [&] { return next.T_pvar_handle_free(session, handle); });
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) try {
    if (handle == MPI_T_PVAR_ALL_HANDLES)
        return with_all(session, next.T_pvar_start(session, handle), [](counter_handle &mine) {
            if (is_timer(mine.what())) mine.start();
        });
    return with_handle(
        session, handle,
        [](counter_handle &mine) {
            if (!is_timer(mine.what())) return MPI_T_ERR_PVAR_NO_STARTSTOP;
            mine.start();
            return MPI_SUCCESS;
        },
        [&] { return next.T_pvar_start(session, handle); });
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) try {
    if (handle == MPI_T_PVAR_ALL_HANDLES)
        return with_all(session, next.T_pvar_stop(session, handle), [](counter_handle &mine) {
            if (is_timer(mine.what())) mine.stop();
        });
    return with_handle(
        session, handle,
        [](counter_handle &mine) {
            if (!is_timer(mine.what())) return MPI_T_ERR_PVAR_NO_STARTSTOP;
            mine.stop();
            return MPI_SUCCESS;
        },
        [&] { return next.T_pvar_stop(session, handle); });
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf) try {
    return with_handle(
        session, handle,
        [buf](const counter_handle &mine) {
            if (buf == nullptr) return MPI_ERR_ARG;
            give_value(mine, buf);
            return MPI_SUCCESS;
        },
        [&] { return next.T_pvar_read(session, handle, buf); });
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buf) try {
    return with_handle(
        session, handle,
        [buf](counter_handle &mine) {
            if (mine.what().kind == counter_kind::level) return MPI_T_ERR_PVAR_NO_WRITE;
            if (buf == nullptr) return MPI_ERR_ARG;
            if (!is_timer(mine.what())) {
                unsigned long long number = 0;
                std::memcpy(&number, buf, sizeof number);
                mine.set(number);
                return MPI_SUCCESS;
            }
            double seconds = 0;
            std::memcpy(&seconds, buf, sizeof seconds);
            if (!(seconds >= 0 && seconds < 1e9)) return MPI_T_ERR_INVALID;
            mine.set(static_cast<std::uint64_t>(seconds * 1e9));
            return MPI_SUCCESS;
        },
        [&] { return next.T_pvar_write(session, handle, buf); });
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) try {
    if (handle == MPI_T_PVAR_ALL_HANDLES)
        return with_all(session, next.T_pvar_reset(session, handle), [](counter_handle &mine) {
            if (mine.what().kind != counter_kind::level) mine.set(0);
        });
    return with_handle(
        session, handle,
        [](counter_handle &mine) {
            if (mine.what().kind == counter_kind::level) return MPI_T_ERR_PVAR_NO_WRITE;
            mine.set(0);
            return MPI_SUCCESS;
        },
        [&] { return next.T_pvar_reset(session, handle); });
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf) try {
    return with_handle(
        session, handle,
        [buf](counter_handle &mine) {
            if (mine.what().kind == counter_kind::level) return MPI_T_ERR_PVAR_NO_ATOMIC;
            if (buf == nullptr) return MPI_ERR_ARG;
            // What is counted between the two is counted as from now on.
            const std::uint64_t now = read_counter(mine.index);
            counter_handle as_of_now = mine;
            as_of_now.running = false;
            as_of_now.before = mine.running ? mine.before + (now - mine.since) : mine.before;
            give_value(as_of_now, buf);
            mine.before = 0;
            if (mine.running) mine.since = now;
            return MPI_SUCCESS;
        },
        [&] { return next.T_pvar_readreset(session, handle, buf); });
}
MPIX_TOOL_BOUNDARY
