// SPDX-License-Identifier: BSD-3-Clause
#include "tests/random/execute.hpp"

#include <unistd.h>

#include <algorithm>

namespace random_test {
namespace {

constexpr unsigned char own_poison = 0x5a;

// Between two looks of a loop that waits for others: they may need this core.
void pause_polling() { usleep(50); }

}  // namespace

execution::execution(const program &p, device &d, int rank, bool several_threads, totals &done)
    : p_(p),
      device_(d),
      rank_(rank),
      several_threads_(several_threads),
      done_(done),
      lives_(2 * p.pairs.size()),
      sends_(p.messages.size()),
      receives_(p.messages.size()),
      seen_(p.messages.size()),
      comms_(p.comms.size(), MPI_COMM_NULL) {
    comms_[0] = MPI_COMM_WORLD;
    comms_[program::at(1 + rank)] = MPI_COMM_SELF;
}

void execution::run() {
    for (std::size_t n = 0; n < p_.steps.size(); ++n) {
        set_step(static_cast<int>(n));
        if (p_.steps[n].rank < 0 || p_.steps[n].rank == rank_) carry_out(p_.steps[n]);
    }
    finish();
    ++done_.programs;
}

void execution::carry_out(const step &s) {
    switch (s.what) {
        case action::construct:
            return construct(p_.constructions[program::at(s.index)]);
        case action::free_comm:
            return free_comm(s.index);
        case action::checkpoint:
            return checkpoint(s);
        case action::make:
            return make(s.requests[0]);
        case action::free:
            return free(s.requests[0]);
        case action::start:
            return start(s);
        case action::ready:
            return ready(s);
        case action::ready_beside:
            return ready_beside(s);
        case action::join_threads:
            return join_threads();
        case action::launch:
            return launch(s);
        case action::launch_epochs:
            return launch_epochs(s);
        case action::join_kernel:
            return join_kernel();
        case action::arrived:
            return arrived(s);
        case action::prepare:
            return prepare(s);
        case action::look:
        case action::unready:
            return look(s);
        case action::complete:
            return complete(s);
        case action::post_send:
            return post_send(s.index);
        case action::post_receive:
            return post_receive(s.index);
    }
}

// Nobody readies anything while everybody looks.
void execution::checkpoint(const step &s) {
    must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    for (const part &one : s.parts) {
        if (!mine(one.request)) continue;
        if (one.there)
            while (!parrived(one)) pause_polling();
        else if (parrived(one))
            fail("MPI_Parrived of request %d says that partition %d is there, which was not readied", one.request,
                 one.partition);
        if (one.there) continue;
        int flag = 0;
        MPI_Request copy = of(one.request).handle;
        must(MPI_Test(&copy, &flag, MPI_STATUS_IGNORE), "MPI_Test");
        if (flag)
            fail("MPI_Test of request %d says complete, and partition %d was not readied", one.request, one.partition);
    }
    must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
}

// ---- requests -----------------------------------------------------------------------------------------------

void execution::make(int request) {
    const end &e = p_.end_of(request);
    const pair &q = with(request);
    live &l = of(request);
    l.host.resize(static_cast<std::size_t>(e.room));
    char *address = reinterpret_cast<char *>(l.host.data());
    if (e.exported) {
        address = l.on_device = device_.allocate(l.host.size());
        device_memory_.push_back(l.on_device);
        l.packed = device_.allocate_shared(static_cast<std::size_t>(p_.bytes(request)) + 1);
        shared_memory_.push_back(l.packed);
        if (!p_.type_of(request).dense) {
            const std::size_t bytes = static_cast<std::size_t>(p_.bytes(request));
            unsigned char *const block = device_.allocate_shared(sizeof(std::int64_t) * (bytes + 1));
            shared_memory_.push_back(block);
            l.places = reinterpret_cast<std::int64_t *>(block);
            for (std::size_t b = 0; b < bytes; ++b)
                l.places[b] = static_cast<std::int64_t>(position(p_, request, static_cast<std::int64_t>(b)));
        }
    }
    address += e.origin;
    if (p_.bytes(request) == 0 && !e.exported && request % 3 == 0) address = nullptr;
    MPI_Datatype type = p_.type_of(request).made.type;
    if (e.type_freed_early) {
        MPI_Type_dup(type, &type);
        MPI_Type_commit(&type);
    }
    const int peer =
        q.null_peer ? MPI_PROC_NULL : p_.comms[program::at(q.comm)].rank_of(q.ends[1 - request % 2].rank, rank_);
    const MPI_Comm comm = comms_[program::at(q.comm)];
    if (is_send(request))
        must(MPI_Psend_init(address, e.partitions, e.count, type, peer, q.tag, comm, MPI_INFO_NULL, &l.handle),
             "MPI_Psend_init");
    else
        must(MPI_Precv_init(address, e.partitions, e.count, type, peer, q.tag, comm, MPI_INFO_NULL, &l.handle),
             "MPI_Precv_init");
    if (e.type_freed_early) MPI_Type_free(&type);
    ++done_.requests;
    if (!e.exported) return;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_contributors", std::to_string(e.contributors).c_str());
    must(MPIX_Prequest_create(l.handle, info, &l.exported), "MPIX_Prequest_create");
    MPI_Info_free(&info);
}

void execution::free(int request) {
    live &l = of(request);
    must(MPIX_Prequest_free(&l.exported), "MPIX_Prequest_free");
    must(MPI_Request_free(&l.handle), "MPI_Request_free");
    if (l.handle != MPI_REQUEST_NULL) fail("MPI_Request_free left the handle of request %d", request);
    l = live{};  // its memory too: nobody may touch it any more
}

void execution::begin_epoch(int request) {
    live &l = of(request);
    const end &e = p_.end_of(request);
    l.started = ++l.epoch;
    l.active = true;
    l.expected = after(p_, request, l.epoch);
    // A byte that is in several partitions cannot wait for one of them.
    const memory now = is_send(request) && e.self_overlapping ? l.expected : before(p_, request, l.epoch);
    std::copy(now.begin(), now.end(), l.host.begin());
    ++done_.epochs;
    if (!e.exported) return;
    device_.upload(l.on_device, l.host.data(), l.host.size());
    for (std::int64_t b = 0; b < p_.bytes(request); ++b) l.packed[b] = l.expected[position(p_, request, b)];
}

void execution::start(const step &s) {
    std::vector<MPI_Request> all;
    for (const int request : s.requests) {
        begin_epoch(request);
        all.push_back(of(request).handle);
    }
    if (s.together)
        must(MPI_Startall(static_cast<int>(all.size()), all.data()), "MPI_Startall");
    else
        for (MPI_Request &one : all) must(MPI_Start(&one), "MPI_Start");
    for (std::size_t n = 0; n < all.size(); ++n)
        if (all[n] != of(s.requests[n]).handle) fail("starting changed the handle of request %d", s.requests[n]);
}

// The fresh data of one partition, just before it is readied by the host.
void execution::fill(int request, int partition) {
    live &l = of(request);
    const end &e = p_.end_of(request);
    const std::int64_t bytes = p_.partition_bytes(request), first = partition * bytes;
    if (!e.self_overlapping)
        for (std::int64_t b = first; b < first + bytes; ++b) {
            const std::size_t at = position(p_, request, b);
            l.host[at] = l.expected[at];
        }
    if (e.exported && l.places != nullptr && !e.self_overlapping)
        device_.scatter(l.on_device, l.places + first, l.packed + first, static_cast<std::size_t>(bytes));
    else if (e.exported && l.places == nullptr)
        device_.upload(l.on_device + e.origin + first, l.host.data() + e.origin + first,
                       static_cast<std::size_t>(bytes));
}

void execution::ready(const step &s) {
    const MPI_Request handle = of(s.parts[0].request).handle;
    std::vector<int> list;
    for (const part &one : s.parts) {
        list.push_back(one.partition);
        fill(one.request, one.partition);
        if (s.form == ready_form::single) must(MPI_Pready(one.partition, handle), "MPI_Pready");
    }
    if (s.form == ready_form::range) must(MPI_Pready_range(list.front(), list.back(), handle), "MPI_Pready_range");
    if (s.form == ready_form::list)
        must(MPI_Pready_list(static_cast<int>(list.size()), list.data(), handle), "MPI_Pready_list");
    done_.partitions += list.size();
}

void execution::ready_beside(const step &s) {
    const auto share = [this, &s](int first, int stride) {
        for (std::size_t n = program::at(first); n < s.parts.size(); n += program::at(stride)) {
            fill(s.parts[n].request, s.parts[n].partition);
            must(MPI_Pready(s.parts[n].partition, of(s.parts[n].request).handle), "MPI_Pready by a thread");
        }
    };
    if (several_threads_)
        for (int n = 0; n < s.threads; ++n) threads_.emplace_back(share, n, s.threads);
    else
        share(0, 1);
    done_.partitions += s.parts.size();
}

void execution::join_threads() {
    for (std::thread &one : threads_) one.join();
    threads_.clear();
}

void execution::launch(const step &s) {
    const auto tasks = tasks_of(s.parts, s, [this](int request) { return of(request).packed; });
    device_.launch(tasks, s.blocks, s.threads, s.whole_blocks);
}

void execution::join_kernel() {
    if (const std::string wrong = device_.join(); !wrong.empty()) fail("%s", wrong.c_str());
    for (unsigned char *block : memory_of_kernel_) device_.release_shared(block);
    memory_of_kernel_.clear();
}

std::vector<kernel_task> execution::tasks_of(const std::vector<part> &parts, const step &s,
                                             const packed_message &packed) {
    std::vector<kernel_task> tasks;
    // What follows a task's last partition is readied with it, wherever it stands in the list: earlier does no harm.
    // Not of all requests.
    std::vector<bool> taken(parts.size());
    const auto extend = [&](kernel_task &range) {
        for (bool found = range.send && !range.contribute && range.request % 3 != 0; found;) {
            found = false;
            for (std::size_t n = 0; n < parts.size() && !found; ++n) {
                const part &one = parts[n];
                if (taken[n] || one.request != range.request || one.partition != range.last + 1 || one.slices > 1)
                    continue;
                found = taken[n] = true;
                ++range.last;
                range.bytes += static_cast<std::uint64_t>(p_.partition_bytes(one.request));
                ++done_.partitions;
            }
        }
    };
    for (std::size_t n = 0; n < parts.size(); ++n) {
        if (taken[n]) continue;
        const part &one = parts[n];
        taken[n] = true;
        const live &l = of(one.request);
        const std::int64_t bytes = p_.partition_bytes(one.request);
        const std::int64_t first = offset(one) + bytes * one.slice / one.slices;
        const std::int64_t last = offset(one) + bytes * (one.slice + 1) / one.slices;
        // By calls or by bytes, all contributions to a partition alike.
        const bool share = one.slices > 1 && (one.request / 2 + one.partition + s.blocks + s.threads) % 2 == 0;
        tasks.push_back(
            {l.handle, l.exported, one.request, one.partition, one.partition, is_send(one.request), one.slices > 1,
             share, static_cast<std::uint64_t>(first - offset(one)),
             l.places != nullptr ? l.on_device : l.on_device + p_.end_of(one.request).origin + first,
             l.places != nullptr ? l.places + first : nullptr,
             p_.end_of(one.request).self_overlapping ? nullptr : packed(one.request) + first,
             with(one.request).null_peer && !is_send(one.request) ? 0 : static_cast<std::uint64_t>(last - first)});
        done_.partitions += is_send(one.request) && one.slice == 0;
        extend(tasks.back());
    }
    return tasks;
}

// ---- arrivals ---------------------------------------------------------------------------------------------------

// With the bytes checked at the moment at which it says yes.
bool execution::parrived(const part &one) {
    int flag = -1;
    const int code = MPI_Parrived(of(one.request).handle, one.partition, &flag);
    if (code != MPI_SUCCESS && with(one.request).truncated) {
        int error_class = MPI_SUCCESS;
        MPI_Error_class(code, &error_class);
        if (error_class != MPI_ERR_TRUNCATE || flag != 1)
            fail("MPI_Parrived gave class %d and flag = %d for sizes that differ", error_class, flag);
        return true;
    }
    must(code, "MPI_Parrived");
    if (flag != 0 && flag != 1) fail("MPI_Parrived gave flag = %d", flag);
    if (flag && !with(one.request).truncated && !with(one.request).null_peer)
        check_partition(one.request, one.partition);
    return flag != 0;
}

void execution::arrived(const step &s) {
    for (const part &one : s.parts)
        while (!parrived(one) && s.must) pause_polling();
}

void execution::prepare(const step &s) {
    if (of(s.requests[0]).active) must(MPIX_Pbuf_prepare(of(s.requests[0]).handle), "MPIX_Pbuf_prepare");
}

void execution::check_partition(int request, int partition) {
    live &l = of(request);
    const end &e = p_.end_of(request);
    const std::int64_t bytes = p_.partition_bytes(request), first = partition * bytes;
    if (e.exported && l.places != nullptr)
        device_.gather(l.host, l.on_device, l.places + first, static_cast<std::size_t>(bytes));
    else if (e.exported)
        device_.download(l.host.data() + e.origin + first, l.on_device + e.origin + first,
                         static_cast<std::size_t>(bytes));
    for (std::int64_t b = first; b < first + bytes; ++b) {
        const std::size_t at = position(p_, request, b);
        if (l.host[at] != l.expected[at])
            fail("request %d, epoch %d: partition %d is said to have arrived, but byte %lld of it is %#x, not %#x",
                 request, l.epoch, partition, static_cast<long long>(b - first), l.host[at], l.expected[at]);
    }
    done_.bytes += static_cast<std::uint64_t>(bytes);
}

// All of a request's memory, at the end of an epoch: the message, and what nobody may have touched.
void execution::check_memory(int request) {
    live &l = of(request);
    if (p_.end_of(request).exported) device_.download(l.host.data(), l.on_device, l.host.size());
    const auto [found, expected] = std::mismatch(l.host.begin(), l.host.end(), l.expected.begin());
    if (found != l.host.end())
        fail("request %d, epoch %d: byte %lld of its memory is %#x, not %#x%s", request, l.epoch,
             static_cast<long long>(found - l.host.begin() - p_.end_of(request).origin), *found, *expected,
             is_send(request) ? " (a send's!)" : "");
    done_.bytes += l.host.size();
}

// ---- the user's own messages --------------------------------------------------------------------------------------

void execution::post_send(int n) {
    const message &m = p_.messages[program::at(n)];
    own &o = sends_[program::at(n)];
    o.buffer = contents(p_, n);
    o.active = true;
    const int to = p_.comms[program::at(m.comm)].rank_of(m.to, rank_);
    const MPI_Comm comm = comms_[program::at(m.comm)];
    if (m.persistent_send) {
        must(MPI_Send_init(o.buffer.data(), m.bytes, MPI_BYTE, to, m.tag, comm, &o.handle), "MPI_Send_init");
        must(MPI_Start(&o.handle), "MPI_Start");
    } else {
        must(MPI_Isend(o.buffer.data(), m.bytes, MPI_BYTE, to, m.tag, comm, &o.handle), "MPI_Isend");
    }
}

void execution::post_receive(int n) {
    const message &m = p_.messages[program::at(n)];
    own &o = receives_[program::at(n)];
    int most = 0;
    for (const message &other : p_.messages) most = std::max(most, other.bytes);
    o.buffer.assign(program::at(most + 16), own_poison);
    o.active = true;
    const int from = m.any_source ? MPI_ANY_SOURCE : p_.comms[program::at(m.comm)].rank_of(m.from, rank_);
    const int tag = m.any_tag ? MPI_ANY_TAG : m.tag;
    const MPI_Comm comm = comms_[program::at(m.comm)];
    if (m.persistent_receive) {
        must(MPI_Recv_init(o.buffer.data(), most, MPI_BYTE, from, tag, comm, &o.handle), "MPI_Recv_init");
        must(MPI_Start(&o.handle), "MPI_Start");
    } else {
        must(MPI_Irecv(o.buffer.data(), most, MPI_BYTE, from, tag, comm, &o.handle), "MPI_Irecv");
    }
}

// Which message came is open; that it is one of its kind, whole, and came once only, is not.
void execution::check_own_message(int receive, const MPI_Status *status) {
    const own &o = receives_[program::at(receive)];
    int n = 0;
    for (std::size_t b = 0; b < 4; ++b) n |= o.buffer[b] << (8 * b);
    if (n < 0 || n >= static_cast<int>(p_.messages.size()) || seen_[program::at(n)] ||
        p_.messages[program::at(n)].kind != p_.messages[program::at(receive)].kind)
        fail("an ordinary receive got a message that is not for it: %d instead of one like %d", n, receive);
    seen_[program::at(n)] = true;
    const message &m = p_.messages[program::at(n)];
    memory wanted = contents(p_, n);
    wanted.resize(o.buffer.size(), own_poison);
    if (o.buffer != wanted) fail("ordinary message %d has wrong bytes", n);
    done_.bytes += wanted.size();
    if (status == nullptr) return;
    expected_status expected;
    expected.source = p_.comms[program::at(m.comm)].rank_of(m.from, rank_);
    expected.tag = m.tag;
    expected.bytes = m.bytes;
    check_source(expected, *status);
}

void execution::finish() {
    must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    for (int comm = 0; comm <= p_.where.ranks; ++comm) free_own(comm);
    int flag = 0;
    must(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE), "MPI_Iprobe");
    if (flag) fail("there is a message on MPI_COMM_WORLD that nobody has sent");
    must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");  // before others send in the next program
    for (char *block : device_memory_) device_.release(block);
    for (unsigned char *block : shared_memory_) device_.release_shared(block);
}

}  // namespace random_test
