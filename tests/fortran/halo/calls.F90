! SPDX-License-Identifier: BSD-3-Clause
!
! The calls of the module mpix_halo that random exchanges do not make, and what they give, by mpi_f08.
program halo_calls
  use mpi_f08
  use checks
  use halo_exchange_cases
  use halo_grid_cases
  implicit none
  integer :: ranks

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, own_rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call run_grid_cases(ranks)
  call run_exchange_cases(ranks)
  call MPI_Finalize()
  if (own_rank == 0) print '(a)', 'passed'
end program
