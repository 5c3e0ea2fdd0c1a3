// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_kernels/kernel_exchange_state.h"

#include <mpix/halo.cuh>

#include <algorithm>
#include <string>
#include <utility>

#include "host/config.h"
#include "host/field/layout.h"
#include "host/format.h"
#include "host/halo/collective.h"
#include "host/halo/exchanged_fields.h"
#include "host/halo_report/lifetime_error.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

using detail::device_copy;
using detail::device_parcel;
using detail::device_tile;

// As exchanges on the host, these are made in one order on all ranks; MPI matches in the order of the init calls.
constexpr int kernel_tag = 1;

status check_options(const kernel_exchange_options &o, int dimensions) {
    for (int a = 0; a < 3; ++a) {
        if (o.tile[a] < 0)
            return failure(MPI_ERR_ARG, format("options.tile[{}] is {}; it is at least 0", a, o.tile[a]));
        if (a >= dimensions && o.tile[a] > 1)
            return failure(MPI_ERR_ARG,
                           format("options.tile[{}] is {}; the domain has {} axes", a, o.tile[a], dimensions));
    }
    constexpr int most = kernel_exchange_options::most_sets;
    if (o.sets < 2 || o.sets > most)
        return failure(MPI_ERR_ARG, format("options.sets is {}; it is 2 to {}", o.sets, most));
    return {};
}

std::string place_text(const transport::placement &where) {
    return where.owner == nullptr ? std::string("host memory") : format("memory of GPU {}", where.device);
}

status check_place(const void *memory, const transport::placement &wanted, const std::string &name,
                   const std::string &first) {
    const transport::placement here = transport::locate(memory);
    if (here.owner == wanted.owner && here.device == wanted.device) return {};
    return failure(MPI_ERR_BUFFER, format("{} is {}, and {} is {}", name, place_text(here), first, place_text(wanted)));
}

status make_fields(kernel_exchange_state &x, const std::vector<field> &fields) {
    const grid_state &g = *x.grid;
    if (fields.empty()) return failure(MPI_ERR_ARG, "fields is empty");
    // Where the first allocation is that has cells.
    std::string first;
    for (std::size_t f = 0; f < fields.size(); ++f) {
        for (std::size_t i = 0; i < g.mine.size() && first.empty(); ++i) {
            if (g.local(static_cast<int>(i)).empty()) continue;
            x.where = transport::locate(allocation_of(fields[f], i).data);
            first = format("fields[{}].{}data", f, allocation_name(fields[f], i));
        }
        x.views.emplace_back();
        const status s = field_view::make(fields[f], g.local_points(fields[f].layout.staggered), g.domain.dimensions,
                                          x.views.back(), x.where.owner != nullptr);
        if (!s.ok()) return s.in_context(format("fields[{}]{}", f, class_of(s) == MPI_ERR_COUNT ? ": " : "."));
        for (std::size_t i = 0; i < g.mine.size(); ++i) {
            const allocation its = allocation_of(fields[f], i);
            x.data.push_back({its.data, its.other == nullptr ? its.data : its.other});
            for (void *const memory : {its.data, its.other})
                x.memory.add(static_cast<int>(f), memory, static_cast<std::size_t>(x.views.back().bytes(i)));
            if (g.local(static_cast<int>(i)).empty()) continue;
            const std::string name = format("fields[{}].{}", f, allocation_name(fields[f], i));
            if (status bad = check_place(its.data, x.where, name + "data", first); !bad.ok()) return bad;
            if (its.other == nullptr) continue;
            if (status bad = check_place(its.other, x.where, name + "other", first); !bad.ok()) return bad;
        }
    }
    return check_memory(g, x.views, fields);
}

std::vector<argument> arguments(const std::vector<field_view> &fields, const kernel_exchange_options &o,
                                ghost_waiters waiters) {
    std::vector<argument> all{as_argument(waiters == ghost_waiters::library ? collective_call::stream_exchange
                                                                            : collective_call::kernel_exchange),
                              {"the number of fields", {static_cast<std::int64_t>(fields.size())}}};
    for (std::size_t f = 0; f < fields.size(); ++f) append_field(all, f, fields[f]);
    // A tile that the library has chosen depends on the fields.
    all.push_back({"options.tile", {o.tile[0], o.tile[1], o.tile[2]}});
    all.push_back({"options.sets", {o.sets}});
    return all;
}

// An info that is freed again.
class info {
public:
    info() { demand(MPI_Info_create(&info_), "MPI_Info_create"); }
    ~info() { MPI_Info_free(&info_); }
    info(const info &) = delete;
    info &operator=(const info &) = delete;
    void set(const char *key, const std::string &value) {
        demand(MPI_Info_set(info_, key, value.c_str()), "MPI_Info_set");
    }
    MPI_Info get() const { return info_; }

private:
    MPI_Info info_ = MPI_INFO_NULL;
};

void demand_ok(const status &s) {
    if (!s.ok()) throw error(class_of(s), s.message());
}

// The messages of all sets: their memory, requests and handles.
void make_messages(kernel_exchange_state &x, const kernel_plan &p) {
    const MPI_Comm comm = x.grid->comm;
    demand_ok(x.messages_memory.allocate(x.where, static_cast<std::uint64_t>(x.device.sets_) * p.set_bytes));
    x.device.messages_ = x.messages_memory.address();
    x.device.set_bytes_ = static_cast<std::int64_t>(p.set_bytes);
    info of_sends, of_receives;
    const std::string device = x.where.owner == nullptr ? "host" : format("{}", x.where.device);
    for (info *const i : {&of_sends, &of_receives}) i->set("mpix_device", device);

    for (int set = 0; set < x.device.sets_; ++set) {
        std::byte *const messages = x.device.messages_ + set * x.device.set_bytes_;
        for (const peer_message &m : p.receives) {
            demand(MPI_Precv_init(messages + m.at, m.cut.count(), m.cut.bytes, MPI_BYTE, m.peer, kernel_tag, comm,
                                  MPI_INFO_NULL, &x.requests.emplace_back(MPI_REQUEST_NULL)),
                   "MPI_Precv_init");
            of_receives.set("mpix_waiters", m.one_reader ? "1" : "any");
            demand(
                MPIX_Prequest_create(x.requests.back(), of_receives.get(), &x.handles.emplace_back(MPIX_PREQUEST_NULL)),
                "MPIX_Prequest_create");
        }
        for (const peer_message &m : p.sends) {
            demand(MPI_Psend_init(messages + m.at, m.cut.count(), m.cut.bytes, MPI_BYTE, m.peer, kernel_tag, comm,
                                  MPI_INFO_NULL, &x.requests.emplace_back(MPI_REQUEST_NULL)),
                   "MPI_Psend_init");
            demand(MPIX_Prequest_create(x.requests.back(), of_sends.get(), &x.handles.emplace_back(MPIX_PREQUEST_NULL)),
                   "MPIX_Prequest_create");
        }
    }
}

// Puts the tables where kernels find them.
void upload(kernel_exchange_state &x, const device_tables &t) {
    memory_layout layout;
    // The words come first: the host finds them there.
    const auto words =
        static_cast<std::uint64_t>(device_exchange::begun_at + x.device.sets_ + 2 * t.claims * x.device.sets_);
    layout.place<std::uint64_t>(words);
    std::vector<void *> data;
    for (const std::array<void *, 2> &both : x.data) data.insert(data.end(), both.begin(), both.end());
    struct table {
        const void *from;
        std::uint64_t bytes, at;
    };
    std::vector<table> all;
    const auto place = [&]<class T>(const std::vector<T> &values) {
        all.push_back({values.data(), values.size() * sizeof(T), layout.place<T>(values.size())});
        return all.size() - 1;
    };
    const auto sets = static_cast<std::size_t>(x.device.sets_);
    // Of no exchange.
    const std::vector<detail::stored_handle<prepared_receive>> receive_handles(
        sets * static_cast<std::size_t>(x.device.receives_));
    const std::vector<detail::stored_handle<prepared_send>> send_handles(sets *
                                                                         static_cast<std::size_t>(x.device.sends_));
    const std::size_t tiles = place(t.tiles), order = place(t.order), parcels = place(t.parcels),
                      copies = place(t.copies), bases = place(data), handles = place(x.handles),
                      of_boxes = place(t.ghosts), reach = place(t.reach), of_receives = place(receive_handles),
                      of_sends = place(send_handles);
    demand_ok(x.tables.allocate(x.where, layout.bytes()));
    for (const table &one : all)
        if (one.bytes != 0) demand_ok(x.tables.write(one.at, one.from, one.bytes));
    const auto address = [&](std::size_t number) { return x.tables.address() + all[number].at; };
    device_exchange &d = x.device;
    d.tiles_ = reinterpret_cast<const device_tile *>(address(tiles));
    d.order_ = reinterpret_cast<const std::int32_t *>(address(order));
    d.parcels_ = reinterpret_cast<const device_parcel *>(address(parcels));
    d.copies_ = reinterpret_cast<const device_copy *>(address(copies));
    d.data_ = reinterpret_cast<std::byte *const *>(address(bases));
    d.requests_ = reinterpret_cast<const MPIX_Prequest *>(address(handles));
    d.receive_handles_ = address(of_receives);
    d.send_handles_ = address(of_sends);
    d.ghosts_ = reinterpret_cast<const detail::device_ghosts *>(address(of_boxes));
    d.reach_ = reinterpret_cast<const detail::device_reach *>(address(reach));
    d.words_ = reinterpret_cast<std::uint64_t *>(x.tables.address());
}

void make_all(kernel_exchange_state &x, const kernel_exchange_options &options, ghost_waiters waiters) {
    for (const field_view &f : x.views)
        x.fields.push_back({f.value_bytes() * f.components(), f.radius(), f.staggered()});
    x.tile = options.tile;
    const kernel_plan p = plan_kernel_exchange({*x.grid, x.fields, x.views, x.tile, waiters, x.data});
    x.parcels = p.for_device.known;
    for (const device_tile &t : p.for_device.tiles) x.tiles.push_back(t.cells);
    device_exchange &d = x.device;
    d.version_ = MPIX_ABI_VERSION;
    d.tiles_count_ = static_cast<std::int32_t>(p.for_device.tiles.size());
    d.boundary_count_ = p.for_device.boundary;
    d.boxes_count_ = static_cast<std::int32_t>(x.grid->mine.size());
    d.receives_ = static_cast<std::int32_t>(p.receives.size());
    d.sends_ = static_cast<std::int32_t>(p.sends.size());
    d.sets_ = options.sets;
    d.claims_ = p.for_device.claims;
    d.box_waits_ = options.box_waits;
    d.received_begin_ = p.for_device.received;
    d.received_end_ = p.for_device.received_end;
    d.received_copies_ = p.for_device.received_copies;
    d.received_copies_end_ = p.for_device.received_copies_end;
    d.stall_ns_ = static_cast<std::uint64_t>(config().stall_seconds * 1e9);
    for (const peer_message &m : p.sends) x.bytes_sent += m.bytes();
    for (const peer_message &m : p.receives) x.report.receives.push_back({m.peer, m.by_direction});
    for (const peer_message &m : p.sends) x.report.sends.push_back({m.peer, m.by_direction});
    x.report.own_bytes = p.own_bytes;
    make_messages(x, p);
    upload(x, p.for_device);
}

}  // namespace

std::unique_ptr<kernel_exchange_state> make_kernel_exchange_state(std::shared_ptr<const grid_state> grid,
                                                                  const std::vector<field> &fields,
                                                                  const kernel_exchange_options &options,
                                                                  ghost_waiters waiters, const char *caller,
                                                                  const status &given) {
    auto made = std::make_unique<kernel_exchange_state>();
    kernel_exchange_state &x = *made;
    x.grid = std::move(grid);
    status s = given.ok() ? check_options(options, x.grid->domain.dimensions) : given;
    if (s.ok()) s = make_fields(x, fields);
    check_collectively(x.grid->comm, caller, s, arguments(x.views, options, waiters));
    s = outcome_of([&] { make_all(x, options, waiters); });
    check_collectively(x.grid->comm, caller, s);
    return made;
}

int kernel_exchange_state::requests_of(std::int64_t steps) const {
    return static_cast<int>(std::min<std::int64_t>(device.sets_, steps)) * messages();
}

void kernel_exchange_state::demand_arrays(const char *kind, const char *function, bool while_active) const {
    const int field = memory.destroyed_field();
    if (field < 0) return;
    ghosts_under_way ghosts(fields[static_cast<std::size_t>(field)].radius);
    for (const report_data::message &m : report.receives) ghosts.add(m.peer, m.by_direction);
    throw lifetime_error(format("{}::{}", kind, function), grid->rank, field, end_of_memory::array_destroyed,
                         while_active ? &ghosts : nullptr);
}

bool kernel_exchange_state::free_requests() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized) return true;
    bool all = true;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        // Both refuse those that are active.
        if (i < handles.size() && handles[i] != MPIX_PREQUEST_NULL) MPIX_Prequest_free(&handles[i]);
        if (requests[i] != MPI_REQUEST_NULL && MPI_Request_free(&requests[i]) != MPI_SUCCESS) all = false;
    }
    return all;
}

kernel_exchange_state::~kernel_exchange_state() { free_requests(); }

}  // namespace mpix::halo
