// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <mpix/halo.hpp>

#include "host/format.h"
#include "host/halo/collective.h"
#include "host/halo/grid_state.h"
#include "host/halo/layout.h"
#include "host/halo/message.h"
#include "host/report.h"

namespace mpix::halo {

// A copy from a rank's own cells to its own ghost cells.
struct own_copy {
    runs from, to;
};

struct exchange_state {
    exchange_state() = default;
    exchange_state(const exchange_state &) = delete;
    exchange_state &operator=(const exchange_state &) = delete;
    ~exchange_state();

    std::shared_ptr<const grid_state> grid;
    transfer how = transfer::packed;
    std::vector<field_view> fields;
    std::vector<message> receives, sends;
    std::vector<MPI_Request> requests;         // of the receives, then of the sends
    std::vector<std::vector<own_copy>> own;    // of each field
    std::vector<std::vector<std::byte>> room;  // for these
    box interior;
    std::vector<box> boundary;

    std::mutex mutex;  // of what follows
    bool active = false;
    std::vector<bool> ready;  // fields, in this exchange
    int unready = 0;          // fields whose bytes have not been sent
};

namespace {

constexpr const char *where = "mpix::halo::exchange";

MPI_Request *send_requests(exchange_state &x) { return x.requests.data() + x.receives.size(); }

status make_fields(exchange_state &x, const std::vector<field> &fields) {
    if (x.how != transfer::packed && x.how != transfer::datatype)
        return failure(MPI_ERR_ARG, format("options.transfer is {}, which is none", static_cast<int>(x.how)));
    const domain &d = x.grid->domain;
    for (std::size_t f = 0; f < fields.size(); ++f) {
        x.fields.emplace_back();
        const status s = field_view::make(fields[f], d.boxes[x.grid->rank], d.dimensions, x.fields.back());
        if (!s.ok()) return s.in_context(format("fields[{}]{}", f, class_of(s) == MPI_ERR_COUNT ? ": " : "."));
    }
    if (d.boxes[x.grid->rank].empty()) return {};
    for (std::size_t f = 0; f < fields.size(); ++f)
        for (std::size_t other = 0; other < f; ++other)
            if (fields[f].data == fields[other].data)
                return failure(MPI_ERR_ARG,
                               format("fields[{}].data is that of fields[{}], too; fields do not overlap", f, other));
    return {};
}

std::vector<argument> arguments(const exchange_state &x) {
    std::vector<argument> all{{"the number of fields", {static_cast<std::int64_t>(x.fields.size())}},
                              {"options.transfer", {static_cast<std::int64_t>(x.how)}}};
    for (std::size_t f = 0; f < x.fields.size(); ++f) {
        const field_view &field = x.fields[f];
        all.push_back({format("fields[{}].value_bytes", f), {field.value_bytes()}});
        all.push_back({format("fields[{}].layout.components", f), {field.components()}});
        all.push_back({format("fields[{}].layout.interleaved", f), {field.interleaved()}});
        append_radius(all, format("fields[{}].reach", f), field.reach());
    }
    return all;
}

// Of each field, what `receiver` gets from `owner`; of the source cells, or of the ghost cells. Empty if it gets nothing.
std::vector<std::vector<runs>> parts(const exchange_state &x, int receiver, int owner, box piece::*side) {
    std::vector<std::vector<runs>> all;
    bool some = false;
    for (const field_view &field : x.fields) {
        all.emplace_back();
        for (const piece &p : pieces_between(x.grid->domain, receiver, owner, field.reach()))
            all.back().push_back(field.of(p.*side));
        some = some || !all.back().empty();
    }
    if (!some) all.clear();
    return all;
}

void make_messages(exchange_state &x) {
    const int me = x.grid->rank;
    for (int peer = 0; peer < x.grid->ranks; ++peer) {
        if (peer == me) continue;
        if (auto to = parts(x, me, peer, &piece::ghosts); !to.empty())
            x.receives.emplace_back(peer, std::move(to), x.how);
        if (auto from = parts(x, peer, me, &piece::source); !from.empty())
            x.sends.emplace_back(peer, std::move(from), x.how);
    }
    // The longest are sent first.
    std::vector<std::size_t> order(x.sends.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return x.sends[a].bytes() > x.sends[b].bytes(); });
    std::vector<message> sorted;
    for (const std::size_t i : order) sorted.push_back(std::move(x.sends[i]));
    x.sends.swap(sorted);

    for (const message &m : x.receives) x.requests.push_back(m.request_for_receive(x.grid->comm));
    for (const message &m : x.sends) x.requests.push_back(m.request_for_send(x.grid->comm));
}

void make_own_copies(exchange_state &x) {
    const int me = x.grid->rank;
    for (const field_view &field : x.fields) {
        x.own.emplace_back();
        std::int64_t most = 0;
        for (const piece &p : pieces_between(x.grid->domain, me, me, field.reach())) {
            x.own.back().push_back({field.of(p.source), field.of(p.ghosts)});
            most = std::max(most, x.own.back().back().from.total());
        }
        x.room.emplace_back(static_cast<std::size_t>(most));
    }
}

// Each side on which somebody owns ghost cells is as deep as the field's radius, whichever of them are filled: a
// stencil that reaches far in the direction of a corner reads ghost cells of the faces, too.
void find_interior(exchange_state &x) {
    const domain &d = x.grid->domain;
    const box &local = d.boxes[x.grid->rank];
    std::array<index3, 2> depth{};
    for (const field_view &field : x.fields) {
        const std::array<index3, 2> most = ghost_depth(field.reach(), d.dimensions);
        for (int owner = 0; owner < x.grid->ranks; ++owner)
            for (const piece &p : pieces_between(d, x.grid->rank, owner, field.reach()))
                for (int a = 0; a < 3; ++a)
                    if (const int step = direction(p.direction)[a]; step != 0)
                        depth[step > 0][a] = std::max(depth[step > 0][a], most[step > 0][a]);
    }
    x.interior = shrunk(local, depth);
    x.boundary = around(local, x.interior);
}

// Throws, if `call` of finish() has failed. `error_class`: of the request that has.
void demand_completion(int code, int error_class, const char *call) {
    if (code != MPI_SUCCESS) throw error(error_class, format("{}::finish: {}", where, text_of(code, call)));
}

void wait_for_all(int count, MPI_Request *requests) {
    if (count == 0) return;
    std::vector<MPI_Status> statuses(static_cast<std::size_t>(count));
    const int code = MPI_Waitall(count, requests, statuses.data());
    int error_class = MPI_SUCCESS;
    MPI_Error_class(code, &error_class);
    if (error_class == MPI_ERR_IN_STATUS) {
        error_class = MPI_ERR_PENDING;  // unless another one has failed
        for (const MPI_Status &s : statuses)
            if (s.MPI_ERROR != MPI_SUCCESS && s.MPI_ERROR != MPI_ERR_PENDING)
                MPI_Error_class(s.MPI_ERROR, &error_class);
    }
    demand_completion(code, error_class, "MPI_Waitall");
}

int wait_for_any(int count, MPI_Request *requests) {
    int which = MPI_UNDEFINED, error_class = MPI_SUCCESS;
    const int code = MPI_Waitany(count, requests, &which, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &error_class);
    demand_completion(code, error_class, "MPI_Waitany");
    return which;
}

error wrong_state(const char *function, const std::string &what) {
    return {MPI_ERR_REQUEST, format("{}::{}: {}", where, function, what)};
}

// begin(), as `function` calls it.
void begin_for(exchange_state &x, const char *function) {
    {
        const std::lock_guard lock(x.mutex);
        if (x.active) throw wrong_state(function, "it is active; finish() it first");
        x.active = true;
        x.ready.assign(x.ready.size(), false);
        x.unready = static_cast<int>(x.ready.size());
    }
    // Open MPI refuses an empty array without an address.
    if (!x.requests.empty())
        demand(MPI_Startall(static_cast<int>(x.requests.size()), x.requests.data()), "MPI_Startall");
}

}  // namespace

exchange::exchange(const grid &g, const std::vector<field> &fields, const exchange_options &options)
    : state_(std::make_unique<exchange_state>()) {
    exchange_state &x = *state_;
    x.grid = g.state_;
    x.how = options.transfer;
    const MPI_Comm comm = x.grid->comm;
    const status made = make_fields(x, fields);
    check_collectively(comm, where, made, arguments(x));
    x.ready.resize(fields.size());
    find_interior(x);
    make_own_copies(x);
    status s;
    try {
        make_messages(x);
    } catch (const error &e) {
        s = failure(e.error_class(), e.what());
    }
    check_collectively(comm, where, s);
}

exchange_state::~exchange_state() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    for (MPI_Request &request : requests)
        if (!finalized) MPI_Request_free(&request);
}

exchange::~exchange() {
    if (!state_ || !active()) return;
    say("mpix::halo::exchange: destroyed while active; finish() it first. Its memory is kept");
    static_cast<void>(state_.release());
}

exchange::exchange(exchange &&) noexcept = default;

exchange &exchange::operator=(exchange &&other) noexcept {
    std::swap(state_, other.state_);
    return *this;
}

bool exchange::active() const {
    const std::lock_guard lock(state_->mutex);
    return state_->active;
}

void exchange::begin() { begin_for(*state_, "begin"); }

void exchange::ready(int field) {
    exchange_state &x = *state_;
    {
        const std::lock_guard lock(x.mutex);
        if (!x.active) throw wrong_state("ready", "it is not active; begin() first");
        if (field < 0 || field >= static_cast<int>(x.ready.size()))
            throw error(MPI_ERR_ARG, format("{}::ready: field is {}; there are {}", where, field, x.ready.size()));
        if (x.ready[field]) throw wrong_state("ready", format("field {} is ready already", field));
        x.ready[field] = true;
    }
    if (x.how == transfer::packed)
        for (std::size_t i = 0; i < x.sends.size(); ++i) x.sends[i].send(field, send_requests(x)[i]);
    for (const own_copy &c : x.own[field]) copy(c.from, c.to, x.room[field].data());

    // The mutex orders the other fields' cells, which other threads may have written, before their message.
    const std::lock_guard lock(x.mutex);
    if (--x.unready == 0 && x.how == transfer::datatype)
        for (std::size_t i = 0; i < x.sends.size(); ++i) demand(MPI_Pready(0, send_requests(x)[i]), "MPI_Pready");
}

void exchange::start() {
    begin_for(*state_, "start");
    for (int f = 0; f < static_cast<int>(state_->fields.size()); ++f) ready(f);
}

void exchange::finish() {
    exchange_state &x = *state_;
    {
        const std::lock_guard lock(x.mutex);
        if (!x.active) throw wrong_state("finish", "it is not active; start() first");
        if (x.unready > 0)
            throw wrong_state("finish", format("field {} is not ready",
                                               std::find(x.ready.begin(), x.ready.end(), false) - x.ready.begin()));
    }
    const int receives = static_cast<int>(x.receives.size());
    if (x.how == transfer::packed)
        for (int i = 0; i < receives; ++i) {
            const int which = wait_for_any(receives, x.requests.data());
            if (which == MPI_UNDEFINED) break;  // an earlier finish() has completed some, and failed
            x.receives[which].unpack();
        }
    else
        wait_for_all(receives, x.requests.data());
    wait_for_all(static_cast<int>(x.sends.size()), send_requests(x));
    const std::lock_guard lock(x.mutex);
    x.active = false;
}

const box &exchange::interior() const { return state_->interior; }
const std::vector<box> &exchange::boundary() const { return state_->boundary; }
int exchange::messages_sent() const { return static_cast<int>(state_->sends.size()); }

std::int64_t exchange::bytes_sent() const {
    std::int64_t bytes = 0;
    for (const message &m : state_->sends) bytes += m.bytes();
    return bytes;
}

}  // namespace mpix::halo
