! SPDX-License-Identifier: BSD-3-Clause
!
! What an error of the module mpix_halo says.
module halo_expected_errors
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only: error_unit
  use checks
  use mpix_halo
  implicit none
  private
  public :: expect, expect_refused

  integer, parameter, public :: nx = 9, ny = 7
  integer, public :: code, ranks
  character(len=120), public :: words
  type(MPIX_Halo_grid), public :: plane

contains

  subroutine expect(wanted, words)
    integer, intent(in) :: wanted
    character(len=*), intent(in) :: words
    character(len=MPI_MAX_ERROR_STRING) :: text
    integer :: class, length
    call MPI_Error_class(code, class)
    call MPI_Error_string(code, text, length)
    if (class /= wanted .or. index(text, words) == 0) write (error_unit, '(a,i0,2a)') 'class ', class, ': ', trim(text)
    call check(class == wanted .and. index(text, words) > 0, 'the error says: ' // words)
    call check(index(text, '[') == 0 .and. index(text, 'options') == 0, 'it has the names of Fortran')
  end subroutine

  subroutine expect_refused(fields, wanted, words)
    type(MPIX_Halo_field), intent(in) :: fields(:)
    integer, intent(in) :: wanted
    character(len=*), intent(in) :: words
    type(MPIX_Halo_exchange) :: exchange
    call MPIX_Halo_exchange_create(plane, fields, exchange, code)
    call expect(wanted, words)
  end subroutine

end module
