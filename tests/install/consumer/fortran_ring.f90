! SPDX-License-Identifier: BSD-3-Clause
program fortran_ring
  use mpi_f08
  use mpix
  implicit none
  integer, asynchronous :: out, in
  integer :: rank, ranks, left, epoch
  type(MPI_Request) :: both(2)
  character(len=8) :: path

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  left = mod(rank + ranks - 1, ranks)
  call MPI_Psend_init(out, 1, 1_MPI_COUNT_KIND, MPI_INTEGER, mod(rank + 1, ranks), 0, MPI_COMM_WORLD, &
                      MPI_INFO_NULL, both(1))
  call MPI_Precv_init(in, 1, 1_MPI_COUNT_KIND, MPI_INTEGER, left, 0, MPI_COMM_WORLD, MPI_INFO_NULL, both(2))
  do epoch = 1, 3
    out = 100 * epoch + rank
    in = -1
    call MPI_Startall(2, both)
    call MPI_Pready(0, both(1))
    call MPI_Waitall(2, both, MPI_STATUSES_IGNORE)
    call MPI_F_sync_reg(in)
    if (in /= 100 * epoch + left) error stop 'the wrong number arrived'
  end do
  call MPIX_Request_path(both(1), path)
  if (path /= 'shm') error stop 'the wrong path'
  call MPI_Request_free(both(1))
  call MPI_Request_free(both(2))
  call MPI_Finalize()
end program
