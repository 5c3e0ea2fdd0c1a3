// SPDX-License-Identifier: BSD-3-Clause
#include "host/control/channel.h"

#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "host/config.h"
#include "host/control/finish_collective.h"
#include "host/format.h"
#include "host/progress.h"

namespace mpix {
namespace {

// Whether the message gives up access to that process's memory while puts of ours are still on their way there.
bool overtakes(int world_rank, const control_message &message, std::unique_ptr<transport::transfer> &flush) {
    const bool gives_up =
        std::holds_alternative<detach_body>(message.body) || std::holds_alternative<withdraw_body>(message.body);
    transport::network *const network = transport::network_in_use();
    if (network == nullptr || !gives_up) return false;
    try {
        flush = network->flush(world_rank);
    } catch (const std::bad_alloc &) {
        return true;  // perhaps not, but nothing tells
    }
    return flush != nullptr;
}

}  // namespace

void control_channel::open() {
    MPI_Request made = MPI_REQUEST_NULL;
    if (PMPI_Comm_idup(MPI_COMM_WORLD, &comm_, &made) == MPI_SUCCESS) finish_collective(made);
    PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    post_receive();
}

// Libraries check the datatype when a persistent receive is made, so one from MPI_PROC_NULL is made, and never started.
// It is made on our communicator, so that the user's error handler is not called.
bool control_channel::takes(MPI_Datatype datatype) const {
    char nothing = 0;
    MPI_Request probe = MPI_REQUEST_NULL;
    const int code = PMPI_Recv_init(&nothing, 1, datatype, MPI_PROC_NULL, 0, comm_, &probe);
    if (code == MPI_SUCCESS) {
        PMPI_Request_free(&probe);
        return true;
    }
    int error_class = MPI_SUCCESS;
    PMPI_Error_class(code, &error_class);
    return error_class != MPI_ERR_TYPE;
}

void control_channel::begin_barrier(MPI_Request &out) { PMPI_Ibarrier(comm_, &out); }

void control_channel::forget() {
    control_packet unneeded;
    came_ = first_was_taken_ = false;
    to_itself_.clear();
    for (int source; processes_.receive(source, unneeded);) continue;
    held_.clear();
    overflow_.clear();
    left_to_callers_.clear();
    holding_.store(0, std::memory_order_release);  // pairs: H6
    introduced_to_.clear();
    introductions_.clear();
}

// A send may make progress only while its receiver calls MPI. So a process that has nothing left to send still
// receives, until a barrier says that no process has anything left.
bool control_channel::emptied() {
    for (int arrived = 1; arrived;) {
        arrived = 0;
        if (PMPI_Test(&receiving_, &arrived, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            arrived = receiving_ == MPI_REQUEST_NULL;
        if (arrived) post_receive();
    }
    if (!all_sent_) {
        clear_sent();
        if (!sending_.empty()) return false;
        begin_barrier(emptied_);
        all_sent_ = true;
    }
    int empty = 0;
    PMPI_Test(&emptied_, &empty, MPI_STATUS_IGNORE);
    return empty != 0;
}

void control_channel::close() {
    PMPI_Cancel(&receiving_);
    PMPI_Wait(&receiving_, MPI_STATUS_IGNORE);
    PMPI_Comm_free(&comm_);
    all_sent_ = false;
}

// ---- sending -----------------------------------------------------------------------------------

void control_channel::post(int world_rank, const control_message &message) {
    if (world_rank == processes_.this_rank() && processes_.outbox_to(world_rank) != nullptr)
        to_itself_.push_back(message);
    else
        post_packet(world_rank, encode_control(message));
}

void control_channel::post_packet(int world_rank, const control_packet &packet) {
    if (control_outbox *const outbox = processes_.outbox_to(world_rank); outbox != nullptr) {
        if (const auto before = overflow_.find(world_rank); before != overflow_.end()) {
            before->second.push_back(packet);
        } else if (!outbox->put(packet)) {
            overflow_[world_rank].push_back(packet);
            holding_.fetch_add(1, std::memory_order_acq_rel);  // pairs: H6
            progress_wake();
        }
        return;
    }
    if (!may_call_mpi()) {
        left_to_callers_.push_back({world_rank, packet});
        holding_.fetch_add(1, std::memory_order_acq_rel);  // pairs: H6
        return;
    }
    post_left();  // which came before
    post_by_mpi(world_rank, packet);
}

void control_channel::post_by_mpi(int world_rank, const control_packet &packet) {
    sending_.push_back({packet, MPI_REQUEST_NULL});
    auto &out = sending_.back();
    PMPI_Isend(&out.packet, static_cast<int>(sizeof out.packet), MPI_BYTE, world_rank, 0, comm_, &out.request);
}

void control_channel::post_left() {
    for (; !left_to_callers_.empty(); left_to_callers_.pop_front()) {
        post_by_mpi(left_to_callers_.front().world_rank, left_to_callers_.front().packet);
        holding_.fetch_sub(1, std::memory_order_acq_rel);  // pairs: H6
    }
}

void control_channel::fill_outboxes() {
    for (auto it = overflow_.begin(); it != overflow_.end();) {
        auto &[world_rank, packets] = *it;
        if (processes_.known_to_have_ended(world_rank)) packets.clear();
        while (!packets.empty() && processes_.outbox_to(world_rank)->put(packets.front())) packets.pop_front();
        if (!packets.empty()) {
            ++it;
            continue;
        }
        it = overflow_.erase(it);
        holding_.fetch_sub(1, std::memory_order_acq_rel);  // pairs: H6
    }
}

// Forget the sends that have finished, up to the first that has not. That one goes to the end of the list, because each
// vain MPI_Test takes time.
void control_channel::clear_sent() {
    while (!sending_.empty()) {
        int sent = 0;
        PMPI_Test(&sending_.front().request, &sent, MPI_STATUS_IGNORE);
        if (!sent) {
            sending_.splice(sending_.end(), sending_, sending_.begin());
            return;
        }
        sending_.pop_front();
    }
}

void control_channel::send(int world_rank, const control_message &message) {
    if (processes_.known_to_have_ended(world_rank)) return;
    if (const auto before = held_.find(world_rank); before != held_.end()) {
        before->second.messages.push_back(message);
        return;
    }
    std::unique_ptr<transport::transfer> flush;
    if (!overtakes(world_rank, message, flush)) return post(world_rank, message);
    held &waiting = held_[world_rank];
    waiting.flush = std::move(flush);
    waiting.messages.push_back(message);
    holding_.fetch_add(1, std::memory_order_acq_rel);  // pairs: H6
    progress_wake();
}

void control_channel::release_held() {
    for (auto it = held_.begin(); it != held_.end();) {
        auto &[flush, messages] = it->second;
        status lost;  // if it is set, nothing is on its way any more
        if (flush == nullptr ? overtakes(it->first, messages.front(), flush) : !flush->finished(lost)) {
            ++it;
            continue;
        }
        flush = nullptr;
        if (processes_.known_to_have_ended(it->first)) messages.clear();
        if (!messages.empty()) {  // the flush was for this one, whatever was put since
            post(it->first, messages.front());
            messages.pop_front();
        }
        while (!messages.empty() && !overtakes(it->first, messages.front(), flush)) {
            post(it->first, messages.front());
            messages.pop_front();
        }
        if (!messages.empty()) {
            ++it;
            continue;
        }
        it = held_.erase(it);
        holding_.fetch_sub(1, std::memory_order_acq_rel);  // pairs: H6
    }
}

void control_channel::advance() {
    fill_outboxes();
    if (may_call_mpi()) {
        post_left();
        clear_sent();
    }
    release_held();
}

// ---- receiving ---------------------------------------------------------------------------------

void control_channel::post_receive() {
    PMPI_Irecv(&incoming_, static_cast<int>(sizeof incoming_), MPI_BYTE, MPI_ANY_SOURCE, 0, comm_, &receiving_);
}

bool control_channel::receive_by_mpi(int &source, control_message &out) {
    for (;;) {
        int arrived = 0;
        MPI_Status status;
        if (PMPI_Test(&receiving_, &arrived, &status) != MPI_SUCCESS) {
            if (receiving_ == MPI_REQUEST_NULL) post_receive();
            return false;
        }
        if (!arrived) return false;
        int bytes = 0;
        PMPI_Get_count(&status, MPI_BYTE, &bytes);
        const auto bad = check_control(&incoming_, static_cast<std::size_t>(bytes < 0 ? 0 : bytes), out);
        post_receive();
        source = status.MPI_SOURCE;
        processes_.note_one_without_memory();  // the sender cannot map our memory
        if (bad.ok()) return true;
        say(format("ignored {} from world rank {}", bad.message(), source));
    }
}

const control_message *control_channel::receive(int &source) {
    if (!meet_introduced()) return nullptr;  // the next message may need these addresses
    if (!came_) message_that_came_ = take_next(came_from_);
    if (message_that_came_ == nullptr) return nullptr;
    came_ = true;
    static_cast<void>(processes_.outbox_to(came_from_));  // an answer must not fail for want of memory to map the inbox
    came_ = false;
    source = came_from_;
    return message_that_came_;
}

const control_message *control_channel::take_next(int &source) {
    if (std::exchange(first_was_taken_, false)) to_itself_.pop_front();
    if (!to_itself_.empty()) {
        first_was_taken_ = true;
        source = processes_.this_rank();
        return &to_itself_.front();
    }
    for (control_packet put; processes_.receive(source, put);) {
        const auto bad = check_control(&put, sizeof put, decoded_);
        if (bad.ok()) return &decoded_;
        say(format("ignored {} from world rank {}", bad.message(), source));
    }
    return may_call_mpi() && receive_by_mpi(source, decoded_) ? &decoded_ : nullptr;
}

// ---- introductions -----------------------------------------------------------------------------

status control_channel::introduce_to(int world_rank, transport::network &network) {
    if (introduced_to_.count(world_rank) != 0) return {};
    std::vector<std::uint8_t> address;
    if (auto bad = network.introduce(world_rank, address); !bad.ok()) return bad;
    if (address.size() > introduction_limit) return failure("our address in the network is too long");
    introduced_to_.insert(world_rank);
    for (std::size_t at = 0; at < address.size(); at += introduction_piece) {
        introduce_body part{
            .network = network.id(), .offset = static_cast<std::uint32_t>(at), .address_bytes = address.size()};
        std::memcpy(part.piece, address.data() + at, part.piece_bytes());
        send(world_rank, {.body = part});
    }
    return {};
}

void control_channel::take_introduction(int source, const introduce_body &part) {
    introduction &told = introductions_[source];
    if (told.bytes != 0 || told.address.size() != part.offset) {  // its pieces come in order
        introductions_.erase(source);
        return;
    }
    told.address.insert(told.address.end(), part.piece, part.piece + part.piece_bytes());
    if (told.address.size() != part.address_bytes) return;
    told.bytes = part.address_bytes;
    told.network = part.network;
    static_cast<void>(meet_introduced());
}

// Give the network the addresses that are complete. False: memory ran out, and it will be tried again.
bool control_channel::meet_introduced() {
    bool all = true;
    for (auto it = introductions_.begin(); it != introductions_.end();) {
        const auto &[source, told] = *it;
        try {
            if (told.bytes == 0) {
                ++it;
                continue;
            }
            status bad;
            transport::network *const network = transport::between_nodes(bad);
            if (network != nullptr && told.network != network->id())
                bad = failure(
                    format("it does not use {}, as we do (MPIX_TRANSPORTS, or a library or device that it lacks)",
                           network->name()));
            else if (network != nullptr)
                bad = network->meet(source, {told.address.begin(), told.address.end()});
            if (!bad.ok()) say(format("world rank {} cannot be reached: {}", source, bad));
            it = introductions_.erase(it);
        } catch (const std::bad_alloc &) {
            all = false;
            ++it;
        }
    }
    return all;
}

}  // namespace mpix
