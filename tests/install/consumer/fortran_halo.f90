! SPDX-License-Identifier: BSD-3-Clause
program fortran_halo
  use mpi_f08
  use mpix_halo
  implicit none
  integer, target, asynchronous :: u(0:4)
  integer :: rank, ranks, radius(-1:1, -1:1, -1:1)
  type(MPIX_Halo_grid) :: grid
  type(MPIX_Halo_exchange) :: exchange
  type(MPIX_Halo_field) :: field

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPIX_Halo_grid_create(MPI_COMM_WORLD, [3 * ranks], grid, periodic=[.true.])
  call MPIX_Halo_radius_faces(1, radius)
  call MPIX_Halo_field_init(u, radius, field)
  call MPIX_Halo_exchange_create(grid, [field], exchange)
  u = 10 * rank + [0, 1, 2, 3, 4]
  call MPIX_Halo_start(exchange)
  call MPIX_Halo_finish(exchange)
  if (u(0) /= 10 * mod(rank + ranks - 1, ranks) + 3 .or. u(4) /= 10 * mod(rank + 1, ranks) + 1) error stop 'wrong'
  call MPIX_Halo_exchange_free(exchange)
  call MPIX_Halo_grid_free(grid)
  call MPI_Finalize()
end program
