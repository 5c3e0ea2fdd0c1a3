/* SPDX-License-Identifier: BSD-3-Clause
 * For NVRTC, by which no header of an MPI library compiles. Kernels use of MPI its error classes, which are not the same in all
 * libraries: the options of the compilation define them (mpix.nvrtc_options() in Python). */
#ifndef MPIX_COMPAT_NVRTC_MPI_H
#define MPIX_COMPAT_NVRTC_MPI_H

#define MPI_SUCCESS 0
#if !defined MPI_ERR_ARG || !defined MPI_ERR_OTHER || !defined MPI_ERR_PENDING || !defined MPI_ERR_REQUEST || \
    !defined MPI_ERR_TYPE || !defined MPI_PROC_NULL
#error "mpix: define MPI_ERR_ARG, _OTHER, _PENDING, _REQUEST, _TYPE and MPI_PROC_NULL to the values of the MPI library"
#endif
#define MPI_VERSION 4 /* nothing is declared in place of the library */

typedef struct mpix_nvrtc_request *MPI_Request;
typedef struct mpix_nvrtc_comm *MPI_Comm;
typedef struct mpix_nvrtc_info *MPI_Info;
typedef struct mpix_nvrtc_datatype *MPI_Datatype;
typedef long long MPI_Count;

#endif
