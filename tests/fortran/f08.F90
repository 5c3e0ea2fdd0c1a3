! SPDX-License-Identifier: BSD-3-Clause
!
! The core of the conformance tests in Fortran, by mpi_f08, on any number of ranks. `f08 <seed>` repeats a failure.
program f08
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only: int64
  use array_cases
  use checks
  use communicator_cases
  use error_cases
  use transfer_cases
  implicit none
  integer :: code
  character(len=20) :: argument

  call MPI_Init(code)
  call check(code == MPI_SUCCESS, 'MPI_Init succeeds')
  call MPI_Comm_rank(MPI_COMM_WORLD, own_rank)
  call system_clock(seed)
  if (command_argument_count() > 0) then
    call get_command_argument(1, argument)
    read (argument, *) seed
  end if
  seed = mod(seed, 1000000007_int64)
  call MPI_Bcast(seed, 1, MPI_INTEGER8, 0, MPI_COMM_WORLD)
  call check_thread_level(MPI_THREAD_SINGLE)
  call run_transfer_cases
  call run_array_cases
  call run_communicator_cases
  call run_error_cases
  call MPI_Finalize()
  if (own_rank == 0) print '(a)', 'passed'
end program
