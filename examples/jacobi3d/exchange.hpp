// SPDX-License-Identifier: BSD-3-Clause
//
// The partitioned requests of one box: a send and a receive per face that has a neighbour.
#ifndef JACOBI3D_EXCHANGE_HPP
#define JACOBI3D_EXCHANGE_HPP

#include "mpi_support.hpp"
#include "subdomain.hpp"

#include <mpix/mpix.h>

#include <array>
#include <string>
#include <type_traits>
#include <vector>

namespace jacobi3d {

template <class Real>
class exchange {
public:
    /**
     * Make the requests and hand them to the kernel. `neighbours[f]`: the rank beyond face f, or -1. All
     * ranks call this, in any order; nobody waits for anybody.
     */
    exchange(subdomain<Real> &box, const std::array<int, num_faces> &neighbours, MPI_Comm comm,
             const std::string &mpix_device)
        : box_(box), neighbours_(neighbours) {
        MPI_Info info;
        mpi_check(MPI_Info_create(&info), "MPI_Info_create");
        mpi_check(MPI_Info_set(info, "mpix_device", mpix_device.c_str()), "MPI_Info_set");
        const MPI_Datatype type = std::is_same_v<Real, float> ? MPI_FLOAT : MPI_DOUBLE;
        for (int f = 0; f < num_faces; ++f) {
            if (neighbours[f] < 0) continue;
            face_data<Real> &face = box.face(f);
            const face_shape &shape = face.shape;
            // The tag is the direction in which the message travels. Two ranks may be neighbours on both
            // sides, and a rank its own, so the peer alone would not tell two messages apart.
            MPI_Request send, recv;
            mpi_check(MPI_Psend_init(face.send, shape.tiles, shape.tile_cells(), type, neighbours[f], f, comm,
                                     MPI_INFO_NULL, &send),
                      "MPI_Psend_init");
            requests_.push_back(send);
            mpi_check(MPI_Precv_init(box.ghost(f), shape.tiles, shape.tile_cells(), type, neighbours[f],
                                     opposite_face(f), comm, MPI_INFO_NULL, &recv),
                      "MPI_Precv_init");
            requests_.push_back(recv);
            sends_[f] = send;
            mpi_check(MPIX_Prequest_create(send, info, &face.send_request), "MPIX_Prequest_create");
            mpi_check(MPIX_Prequest_create(recv, info, &face.recv_request), "MPIX_Prequest_create");
        }
        mpi_check(MPI_Info_free(&info), "MPI_Info_free");
    }
    exchange(const exchange &) = delete;
    exchange &operator=(const exchange &) = delete;

    /** Before the kernel of an iteration is launched. */
    void start() {
        if (requests_.empty()) return;  // Open MPI takes no empty array here
        mpi_check(MPI_Startall(static_cast<int>(requests_.size()), requests_.data()), "MPI_Startall");
    }

    /** While it runs: lets MPI make progress, completes nothing. */
    void poll() {
        // All of them: there may be nothing to do for one that is through.
        for (const MPI_Request request : requests_) {
            int flag;
            mpi_check(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE), "MPI_Request_get_status");
        }
    }

    /** After it was launched: returns when all faces have been sent and received. */
    void wait() {
        if (requests_.empty()) return;
        mpi_check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
                  "MPI_Waitall");
    }

    /** The same in the order of a stream, between start() and wait(), any number of times. */
    void start_in(CUstream_st *stream) {
        mpi_check(MPIX_Startall_enqueue(static_cast<int>(requests_.size()), requests_.data(), stream),
                  "MPIX_Startall_enqueue");
    }
    void wait_in(CUstream_st *stream) {
        mpi_check(MPIX_Pwaitall_enqueue(static_cast<int>(requests_.size()), requests_.data(), stream),
                  "MPIX_Pwaitall_enqueue");
    }

    /** One line per face that is sent: where to, in how many tiles, and the path that they take. */
    std::string describe(int rank) const {
        std::string text;
        for (int f = 0; f < num_faces; ++f) {
            if (neighbours_[f] < 0) continue;
            const face_shape &shape = box_.face(f).shape;
            char path[64];
            mpi_check(MPIX_Request_path(sends_[f], path, sizeof path), "MPIX_Request_path");
            text += "rank " + std::to_string(rank) + " face " + face_name(f) + " -> rank " +
                    std::to_string(neighbours_[f]) + ": " + std::to_string(shape.tiles) +
                    (shape.tiles == 1 ? " tile of " : " tiles of ") +
                    std::to_string(shape.tile_cells() * sizeof(Real)) + " B, path " + path + "\n";
        }
        return text;
    }

    /** Frees the requests; no kernel may be running. Not in a destructor, since it can fail. */
    void close() {
        for (int f = 0; f < num_faces; ++f) {
            mpi_check(MPIX_Prequest_free(&box_.face(f).send_request), "MPIX_Prequest_free");
            mpi_check(MPIX_Prequest_free(&box_.face(f).recv_request), "MPIX_Prequest_free");
        }
        for (MPI_Request &request : requests_) mpi_check(MPI_Request_free(&request), "MPI_Request_free");
        requests_.clear();
    }

private:
    subdomain<Real> &box_;
    std::array<int, num_faces> neighbours_;
    std::array<MPI_Request, num_faces> sends_{};
    std::vector<MPI_Request> requests_;
};

}  // namespace jacobi3d

#endif  // JACOBI3D_EXCHANGE_HPP
