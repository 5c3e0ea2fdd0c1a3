// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/fake_mpi.h"

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

std::deque<fake_mpi::message> fake_mpi::inbox;
std::deque<fake_mpi::message> fake_mpi::sent;
std::vector<std::string> fake_mpi::neighbours;
std::string fake_mpi::told;
int fake_mpi::least_of_neighbours = 1, fake_mpi::splits = 0;
bool fake_mpi::sends_held_up, fake_mpi::keeps_sent;
int fake_mpi::barriers_begun, fake_mpi::barriers_that_end = fake_mpi::all;

namespace {

template <class Handle>
Handle handle_of(std::uintptr_t number) {
    if constexpr (sizeof(Handle) == sizeof(int))
        return (Handle)(int)number;
    else
        return (Handle)number;
}

const auto receiving = handle_of<MPI_Request>(0x1000), sending = handle_of<MPI_Request>(0x2000),
           at_barrier = handle_of<MPI_Request>(0x3000);
void *receive_buffer;
std::size_t receive_bytes, received;

}  // namespace

extern "C" {

int PMPI_Comm_idup(MPI_Comm comm, MPI_Comm *made, MPI_Request *request) {
    *made = comm;
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}
int PMPI_Comm_free(MPI_Comm *comm) {
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}
int PMPI_Comm_set_errhandler(MPI_Comm, MPI_Errhandler) { return MPI_SUCCESS; }
int PMPI_Comm_rank(MPI_Comm, int *rank) {
    *rank = 0;
    return MPI_SUCCESS;
}
int PMPI_Comm_split_type(MPI_Comm comm, int, int, MPI_Info, MPI_Comm *node) {
    *node = comm;
    ++fake_mpi::splits;
    return fake_mpi::neighbours.empty() ? MPI_ERR_OTHER : MPI_SUCCESS;
}
int PMPI_Comm_size(MPI_Comm, int *size) {
    *size = 1 + static_cast<int>(fake_mpi::neighbours.size());
    return MPI_SUCCESS;
}
int PMPI_Iallgather(const void *mine, int bytes, MPI_Datatype, void *all, int, MPI_Datatype, MPI_Comm,
                    MPI_Request *request) {
    auto *at = static_cast<char *>(all);
    *request = MPI_REQUEST_NULL;
    fake_mpi::told.assign(static_cast<const char *>(mine), static_cast<std::size_t>(bytes));
    std::memcpy(at, mine, static_cast<std::size_t>(bytes));
    for (const std::string &theirs : fake_mpi::neighbours) {
        if (theirs.size() != static_cast<std::size_t>(bytes)) return MPI_ERR_TRUNCATE;
        std::memcpy(at += bytes, theirs.data(), theirs.size());
    }
    return MPI_SUCCESS;
}
int PMPI_Iallreduce(const void *mine, void *all, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *request) {
    *request = MPI_REQUEST_NULL;
    *static_cast<int *>(all) = std::min(*static_cast<const int *>(mine), fake_mpi::least_of_neighbours);
    return MPI_SUCCESS;
}
int PMPI_Initialized(int *flag) {
    *flag = 0;
    return MPI_SUCCESS;
}
int PMPI_Finalized(int *flag) {
    *flag = 0;
    return MPI_SUCCESS;
}

int PMPI_Irecv(void *buffer, int count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *request) {
    receive_buffer = buffer;
    receive_bytes = static_cast<std::size_t>(count);
    *request = receiving;
    return MPI_SUCCESS;
}
int PMPI_Isend(const void *buffer, int count, MPI_Datatype, int rank, int, MPI_Comm, MPI_Request *request) {
    std::string bytes(static_cast<const char *>(buffer), static_cast<std::size_t>(count));
    if (rank == 0)
        fake_mpi::inbox.push_back({0, std::move(bytes)});
    else if (fake_mpi::keeps_sent)
        fake_mpi::sent.push_back({rank, std::move(bytes)});
    *request = sending;
    return MPI_SUCCESS;
}
int PMPI_Ibarrier(MPI_Comm, MPI_Request *request) {
    ++fake_mpi::barriers_begun;
    *request = at_barrier;
    return MPI_SUCCESS;
}
int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
    const bool receives = *request == receiving;
    if (receives)
        *flag = !fake_mpi::inbox.empty();
    else if (*request == sending)
        *flag = !fake_mpi::sends_held_up;
    else
        *flag = *request != at_barrier || fake_mpi::barriers_begun <= fake_mpi::barriers_that_end;
    if (*flag) *request = MPI_REQUEST_NULL;
    if (!receives || !*flag) return MPI_SUCCESS;
    const fake_mpi::message m = std::move(fake_mpi::inbox.front());
    fake_mpi::inbox.pop_front();
    if (m.bytes.size() > receive_bytes) return MPI_ERR_TRUNCATE;
    std::memcpy(receive_buffer, m.bytes.data(), m.bytes.size());
    received = m.bytes.size();
    if (status != MPI_STATUS_IGNORE) status->MPI_SOURCE = m.source;
    return MPI_SUCCESS;
}
int PMPI_Get_count(const MPI_Status *, MPI_Datatype, int *count) {
    *count = static_cast<int>(received);
    return MPI_SUCCESS;
}
int PMPI_Cancel(MPI_Request *) { return MPI_SUCCESS; }
int PMPI_Wait(MPI_Request *request, MPI_Status *) {
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

}  // extern "C"
