// SPDX-License-Identifier: BSD-3-Clause
//
// The partitioned requests of a persistent kernel (persistent.hpp): for each set a send and a receive per face that has a
// neighbour. The host starts them once; then the kernel runs their epochs.
#ifndef JACOBI3D_EPOCHS_HPP
#define JACOBI3D_EPOCHS_HPP

#include "mpi_support.hpp"
#include "persistent_box.hpp"

#include <mpix/mpix.h>

#include <array>
#include <string>
#include <type_traits>
#include <vector>

namespace jacobi3d {

template <class Real>
class epochs {
public:
    /** As the constructor of exchange. */
    epochs(persistent_box<Real> &box, const std::array<int, num_faces> &neighbours, MPI_Comm comm,
           const std::string &mpix_device)
        : box_(box), neighbours_(neighbours) {
        MPI_Info info;
        mpi_check(MPI_Info_create(&info), "MPI_Info_create");
        mpi_check(MPI_Info_set(info, "mpix_device", mpix_device.c_str()), "MPI_Info_set");
        // A tile is read by the block that waits for it, and by no other.
        mpi_check(MPI_Info_set(info, "mpix_waiters", "1"), "MPI_Info_set");
        const MPI_Datatype type = std::is_same_v<Real, float> ? MPI_FLOAT : MPI_DOUBLE;
        persistent<Real> &kernel = box.kernel();
        for (int set = 0; set < box.started_sets(); ++set) {
            int &n = kernel.request_count = 0;
            for (int f = 0; f < num_faces; ++f) {
                if (neighbours[f] < 0) continue;
                message<Real> &m = kernel.messages[set][f];
                const int tiles = box.bricks().tiles(f);
                const MPI_Count cells = box.bricks().tile_cells(f);
                // As in exchange, the tag tells messages between the same ranks apart.
                const auto tag = [set](int face) { return set * num_faces + face; };
                MPI_Request send, recv;
                mpi_check(MPI_Psend_init(m.send, tiles, cells, type, neighbours[f], tag(f), comm, MPI_INFO_NULL, &send),
                          "MPI_Psend_init");
                requests_.push_back(send);
                mpi_check(MPI_Precv_init(box.ghost(set, f), tiles, cells, type, neighbours[f], tag(opposite_face(f)),
                                         comm, MPI_INFO_NULL, &recv),
                          "MPI_Precv_init");
                requests_.push_back(recv);
                mpi_check(MPIX_Prequest_create(send, info, &m.send_request), "MPIX_Prequest_create");
                mpi_check(MPIX_Prequest_create(recv, info, &m.recv_request), "MPIX_Prequest_create");
                kernel.requests[set][n++] = m.recv_request;
                kernel.requests[set][n++] = m.send_request;
            }
        }
        mpi_check(MPI_Info_free(&info), "MPI_Info_free");
    }
    epochs(const epochs &) = delete;
    epochs &operator=(const epochs &) = delete;

    /** Once, before the kernel is launched. Returns when the neighbours have done so too. */
    void start() {
        if (requests_.empty()) return;
        mpi_check(MPI_Startall(count(), requests_.data()), "MPI_Startall");
        mpi_check(MPIX_Pbuf_prepare_all(count(), requests_.data()), "MPIX_Pbuf_prepare_all");
    }

    /** Once, after the kernel's end. */
    void wait() {
        if (requests_.empty()) return;
        if (box_.failed()) report_failure();
        mpi_check(MPI_Waitall(count(), requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }

    /** As of exchange. */
    std::string describe(int rank) const {
        std::string text;
        for (int f = 0, i = 0; f < num_faces && !requests_.empty(); ++f) {
            if (neighbours_[f] < 0) continue;
            char path[64];
            mpi_check(MPIX_Request_path(requests_[i], path, sizeof path), "MPIX_Request_path");
            i += 2;
            const int tiles = box_.bricks().tiles(f);
            text += "rank " + std::to_string(rank) + " face " + face_name(f) + " -> rank " +
                    std::to_string(neighbours_[f]) + ": " + std::to_string(tiles) +
                    (tiles == 1 ? " tile of " : " tiles of ") +
                    std::to_string(box_.bricks().tile_cells(f) * sizeof(Real)) + " B, path " + path + "\n";
        }
        return text;
    }

    void close() {
        for (auto &set : box_.kernel().messages)
            for (message<Real> &m : set) {
                mpi_check(MPIX_Prequest_free(&m.send_request), "MPIX_Prequest_free");
                mpi_check(MPIX_Prequest_free(&m.recv_request), "MPIX_Prequest_free");
            }
        for (MPI_Request &request : requests_) mpi_check(MPI_Request_free(&request), "MPI_Request_free");
        requests_.clear();
    }

private:
    int count() const { return static_cast<int>(requests_.size()); }

    // The error that the kernel has kept with a request. The others may never complete.
    [[noreturn]] void report_failure() {
        for (MPI_Request &request : requests_) {
            int flag;
            mpi_check(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), "MPI_Test");
        }
        throw std::runtime_error("the kernel could not wait for a face, or send one");
    }

    persistent_box<Real> &box_;
    std::array<int, num_faces> neighbours_;
    std::vector<MPI_Request> requests_;
};

}  // namespace jacobi3d

#endif  // JACOBI3D_EPOCHS_HPP
