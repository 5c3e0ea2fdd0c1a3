! SPDX-License-Identifier: BSD-3-Clause
!
! What the Fortran tests share, without MPI: data that every rank can make for itself, and checks that say where they
! failed.
module checks
  use, intrinsic :: iso_fortran_env, only: error_unit, int64
  implicit none
  private
  public :: check, check_data, fill, below, common, shuffle, seed, own_rank, subject

  integer(int64) :: seed = 1          ! the same on all ranks
  integer :: own_rank = 0
  character(len=100) :: subject = ''  ! what the test is at

  integer(int64), parameter :: prime = 2147483647_int64
  integer(int64) :: state = 1, common_state = 1

contains

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: what
    if (condition) return
    write (error_unit, '(a,i0,a,i0,5a)') 'FAILED on rank ', own_rank, ', seed ', seed, ', ', trim(subject), &
           ': not so: ', what, '.'
    flush (error_unit)
    error stop 1
  end subroutine

  pure integer(int64) function step(x)
    integer(int64), intent(in) :: x
    step = mod(x * 48271_int64 + 11_int64, prime)
  end function

  ! At least 0, and so never the poison.
  pure integer function word(key, i)
    integer, intent(in) :: key, i
    word = int(step(step(mod(step(mod(seed, prime)) + step(int(key, int64)), prime) + int(i, int64) * 7_int64)))
  end function

  subroutine fill(words, key)
    integer, intent(out) :: words(:)
    integer, intent(in) :: key
    integer :: i
    words = [(word(key, i), i = 1, size(words))]
  end subroutine

  ! Elements first to last of what the sender has filled with the key.
  subroutine check_data(words, key, first, last)
    integer, intent(in) :: words(:), key, first, last
    integer :: i
    do i = first, last
      call check(words(i) == word(key, i), 'every element is the one that was sent')
    end do
  end subroutine

  ! 0 to n - 1, of this rank's own.
  integer function below(n)
    integer, intent(in) :: n
    state = step(mod(state + seed + int(own_rank, int64) * 101_int64, prime))
    below = int(mod(state / 7, int(n, int64)))
  end function

  ! 0 to n - 1, the same on all ranks if all of them ask for the same numbers.
  integer function common(n)
    integer, intent(in) :: n
    common_state = step(mod(common_state + seed, prime))
    common = int(mod(common_state / 7, int(n, int64)))
  end function

  subroutine shuffle(order)  ! 0 to size - 1
    integer, intent(out) :: order(:)
    integer :: i, j, keep
    order = [(i - 1, i = 1, size(order))]
    do i = size(order), 2, -1
      j = below(i) + 1
      keep = order(i)
      order(i) = order(j)
      order(j) = keep
    end do
  end subroutine

end module
