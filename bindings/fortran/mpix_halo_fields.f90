! SPDX-License-Identifier: BSD-3-Clause
!
! MPIX_Halo_field_init of the module mpix_halo, which programs use.
module mpix_halo_fields
  use, intrinsic :: iso_c_binding, only: c_associated, c_int, c_loc, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  use mpi_f08, only: MPI_Datatype, MPI_COMPLEX8, MPI_COMPLEX16, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, &
                     MPI_INTEGER8, MPI_REAL4, MPI_REAL8, MPI_SUCCESS
  use mpix_halo_types
  implicit none
  private
  public :: MPIX_Halo_field_init, MPIX_Halo_field_init_boxes, mpix_halo_address

  ! With a datatype nothing is known of the array but where it begins.
  interface MPIX_Halo_field_init
    module procedure init_real32, init_real64, init_int8, init_int16, init_int32, init_int64, init_complex32, &
      init_complex64, init_type_f08, init_type
  end interface

  interface MPIX_Halo_field_init_boxes
    module procedure init_boxes_f08, init_boxes
  end interface

  integer, parameter :: unknown = -1

  interface
    subroutine field_init(data, rank, shape, other, other_rank, other_shape, faults, datatype, radius, interleaved, &
                          components, below, above, staggered, field, ierror) bind(C, name="mpix_halo_field_init_")
      import :: c_int, c_ptr, MPIX_Halo_field
      type(c_ptr), intent(in) :: data, other
      integer(c_int), intent(in) :: rank, shape(*), other_rank, other_shape(*), faults(2), datatype, &
                                    radius(27), interleaved, components, below(3), above(3), staggered(3)
      type(MPIX_Halo_field), intent(out) :: field
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
  end interface

contains

  ! An array's first element; null if its elements have gaps between them.
  type(c_ptr) function mpix_halo_address(array) result(address)
    type(*), dimension(..), target, asynchronous :: array
    address = c_null_ptr
    if (is_contiguous(array)) address = c_loc(array)
  end function

  ! Why an array cannot be a field's memory: 1 there are gaps between its elements, 2 there is no array, 3 it has no
  ! elements; or 0. What is not allocated has no shape.
  integer(c_int) function fault_of(array) result(fault)
    type(*), dimension(..), target, asynchronous :: array
    fault = 0
    if (.not. c_associated(c_loc(array))) then
      fault = 2
    else if (any(shape(array) == 0)) then
      fault = 3
    else if (.not. is_contiguous(array)) then
      fault = 1
    end if
  end function

  ! typed: the elements are values of the datatype.
  subroutine describe(typed, data, datatype, radius, field, interleaved, other, components, below, above, staggered, &
                      ierror)
    logical, intent(in) :: typed
    type(*), dimension(..), target, asynchronous :: data
    integer, intent(in) :: datatype, radius(-1:1, -1:1, -1:1)
    type(MPIX_Halo_field), intent(out) :: field
    logical, optional, intent(in) :: interleaved
    type(*), dimension(..), target, asynchronous, optional :: other
    integer, optional, intent(in) :: components, below(3), above(3)
    logical, optional, intent(in) :: staggered(3)
    integer, optional, intent(out) :: ierror
    integer(c_int) :: ranks(2), lengths(15, 2), faults(2), lower(3), upper(3), between(3)
    type(c_ptr) :: other_address
    integer :: together, values
    ranks = unknown
    lengths = 0
    other_address = c_null_ptr
    faults = [fault_of(data), 0]
    if (typed) then
      ranks(1) = rank(data)
      lengths(1:rank(data), 1) = int(shape(data), c_int)
    end if
    if (present(other)) then
      other_address = mpix_halo_address(other)
      faults(2) = fault_of(other)
      if (typed) then
        ranks(2) = rank(other)
        lengths(1:rank(other), 2) = int(shape(other), c_int)
      end if
    end if
    together = 0
    if (present(interleaved)) together = merge(1, 0, interleaved)
    values = 1
    if (present(components)) values = components
    lower = -1
    if (present(below)) lower = below
    upper = -1
    if (present(above)) upper = above
    between = 0
    if (present(staggered)) between = merge(1, 0, staggered)
    call field_init(mpix_halo_address(data), ranks(1), lengths(:, 1), other_address, ranks(2), lengths(:, 2), faults, &
                    datatype, radius, together, values, lower, upper, between, field, ierror)
  end subroutine

  ! Where this rank has several boxes, or none: allocations(i) is the memory of the i-th. The array is a target, and
  ! stays as it is until the exchange is made.
  subroutine init_boxes(allocations, datatype, radius, field, interleaved, components, below, above, staggered, ierror)
    type(MPIX_Halo_allocation), target :: allocations(:)
    integer, intent(in) :: datatype, radius(-1:1, -1:1, -1:1)
    type(MPIX_Halo_field), intent(out) :: field
    logical, optional, intent(in) :: interleaved
    integer, optional, intent(in) :: components, below(3), above(3)
    logical, optional, intent(in) :: staggered(3)
    integer, optional, intent(out) :: ierror
    integer, target :: not_used
    integer :: code
    call describe(.false., not_used, datatype, radius, field, interleaved, components=components, below=below, &
                  above=above, staggered=staggered, ierror=code)
    field%data = c_null_ptr
    if (present(ierror)) ierror = code
    if (code /= MPI_SUCCESS) return
    if (size(allocations) > 0) field%allocations = c_loc(allocations)
    field%allocation_count = size(allocations)
  end subroutine

  subroutine init_boxes_f08(allocations, datatype, radius, field, interleaved, components, below, above, staggered, &
                            ierror)
    type(MPIX_Halo_allocation), target :: allocations(:)
    type(MPI_Datatype), intent(in) :: datatype
    integer, intent(in) :: radius(-1:1, -1:1, -1:1)
    type(MPIX_Halo_field), intent(out) :: field
    logical, optional, intent(in) :: interleaved
    integer, optional, intent(in) :: components, below(3), above(3)
    logical, optional, intent(in) :: staggered(3)
    integer, optional, intent(out) :: ierror
    call init_boxes(allocations, datatype%MPI_VAL, radius, field, interleaved, components, below, above, staggered, &
                    ierror)
  end subroutine

  subroutine init_type(data, datatype, radius, field, interleaved, other, components, below, above, staggered, ierror)
    type(*), dimension(..), target, asynchronous :: data
    integer, intent(in) :: datatype, radius(-1:1, -1:1, -1:1)
    type(MPIX_Halo_field), intent(out) :: field
    logical, optional, intent(in) :: interleaved
    type(*), dimension(..), target, asynchronous, optional :: other
    integer, optional, intent(in) :: components, below(3), above(3)
    logical, optional, intent(in) :: staggered(3)
    integer, optional, intent(out) :: ierror
    call describe(.false., data, datatype, radius, field, interleaved, other, components, below, above, staggered, &
                  ierror)
  end subroutine

  subroutine init_type_f08(data, datatype, radius, field, interleaved, other, components, below, above, staggered, &
                           ierror)
    type(*), dimension(..), target, asynchronous :: data
    type(MPI_Datatype), intent(in) :: datatype
    integer, intent(in) :: radius(-1:1, -1:1, -1:1)
    type(MPIX_Halo_field), intent(out) :: field
    logical, optional, intent(in) :: interleaved
    type(*), dimension(..), target, asynchronous, optional :: other
    integer, optional, intent(in) :: components, below(3), above(3)
    logical, optional, intent(in) :: staggered(3)
    integer, optional, intent(out) :: ierror
    call describe(.false., data, datatype%MPI_VAL, radius, field, interleaved, other, components, below, above, &
                  staggered, ierror)
  end subroutine

  subroutine init_real32(data, radius, field, interleaved, other, components, below, above, staggered, ierror)
    real(real32), dimension(..), target, asynchronous :: data
    integer, intent(in) :: radius(-1:1, -1:1, -1:1)
    type(MPIX_Halo_field), intent(out) :: field
    logical, optional, intent(in) :: interleaved
    real(real32), dimension(..), target, asynchronous, optional :: other
    integer, optional, intent(in) :: components, below(3), above(3)
    logical, optional, intent(in) :: staggered(3)
    integer, optional, intent(out) :: ierror
    call describe(.true., data, MPI_REAL4%MPI_VAL, radius, field, interleaved, other, components, below, above, &
                  staggered, ierror)
  end subroutine

  subroutine init_real64(data, radius, field, interleaved, other, components, below, above, staggered, ierror)
    real(real64), dimension(..), target, asynchronous :: data
    integer, intent(in) :: radius(-1:1, -1:1, -1:1)
    type(MPIX_Halo_field), intent(out) :: field
    logical, optional, intent(in) :: interleaved
    real(real64), dimension(..), target, asynchronous, optional :: other
    integer, optional, intent(in) :: components, below(3), above(3)
    logical, optional, intent(in) :: staggered(3)
    integer, optional, intent(out) :: ierror
    call describe(.true., data, MPI_REAL8%MPI_VAL, radius, field, interleaved, other, components, below, above, &
                  staggered, ierror)
  end subroutine

  subroutine init_int8(data, radius, field, interleaved, other, components, below, above, staggered, ierror)
    integer(int8), dimension(..), target, asynchronous :: data
    integer, intent(in) :: radius(-1:1, -1:1, -1:1)
    type(MPIX_Halo_field), intent(out) :: field
    logical, optional, intent(in) :: interleaved
    integer(int8), dimension(..), target, asynchronous, optional :: other
    integer, optional, intent(in) :: components, below(3), above(3)
    logical, optional, intent(in) :: staggered(3)
    integer, optional, intent(out) :: ierror
    call describe(.true., data, MPI_INTEGER1%MPI_VAL, radius, field, interleaved, other, components, below, above, &
                  staggered, ierror)
  end subroutine

  subroutine init_int16(data, radius, field, interleaved, other, components, below, above, staggered, ierror)
    integer(int16), dimension(..), target, asynchronous :: data
    integer, intent(in) :: radius(-1:1, -1:1, -1:1)
    type(MPIX_Halo_field), intent(out) :: field
    logical, optional, intent(in) :: interleaved
    integer(int16), dimension(..), target, asynchronous, optional :: other
    integer, optional, intent(in) :: components, below(3), above(3)
    logical, optional, intent(in) :: staggered(3)
    integer, optional, intent(out) :: ierror
    call describe(.true., data, MPI_INTEGER2%MPI_VAL, radius, field, interleaved, other, components, below, above, &
                  staggered, ierror)
  end subroutine

  subroutine init_int32(data, radius, field, interleaved, other, components, below, above, staggered, ierror)
    integer(int32), dimension(..), target, asynchronous :: data
    integer, intent(in) :: radius(-1:1, -1:1, -1:1)
    type(MPIX_Halo_field), intent(out) :: field
    logical, optional, intent(in) :: interleaved
    integer(int32), dimension(..), target, asynchronous, optional :: other
    integer, optional, intent(in) :: components, below(3), above(3)
    logical, optional, intent(in) :: staggered(3)
    integer, optional, intent(out) :: ierror
    call describe(.true., data, MPI_INTEGER4%MPI_VAL, radius, field, interleaved, other, components, below, above, &
                  staggered, ierror)
  end subroutine

  subroutine init_int64(data, radius, field, interleaved, other, components, below, above, staggered, ierror)
    integer(int64), dimension(..), target, asynchronous :: data
    integer, intent(in) :: radius(-1:1, -1:1, -1:1)
    type(MPIX_Halo_field), intent(out) :: field
    logical, optional, intent(in) :: interleaved
    integer(int64), dimension(..), target, asynchronous, optional :: other
    integer, optional, intent(in) :: components, below(3), above(3)
    logical, optional, intent(in) :: staggered(3)
    integer, optional, intent(out) :: ierror
    call describe(.true., data, MPI_INTEGER8%MPI_VAL, radius, field, interleaved, other, components, below, above, &
                  staggered, ierror)
  end subroutine

  subroutine init_complex32(data, radius, field, interleaved, other, components, below, above, staggered, ierror)
    complex(real32), dimension(..), target, asynchronous :: data
    integer, intent(in) :: radius(-1:1, -1:1, -1:1)
    type(MPIX_Halo_field), intent(out) :: field
    logical, optional, intent(in) :: interleaved
    complex(real32), dimension(..), target, asynchronous, optional :: other
    integer, optional, intent(in) :: components, below(3), above(3)
    logical, optional, intent(in) :: staggered(3)
    integer, optional, intent(out) :: ierror
    call describe(.true., data, MPI_COMPLEX8%MPI_VAL, radius, field, interleaved, other, components, below, above, &
                  staggered, ierror)
  end subroutine

  subroutine init_complex64(data, radius, field, interleaved, other, components, below, above, staggered, ierror)
    complex(real64), dimension(..), target, asynchronous :: data
    integer, intent(in) :: radius(-1:1, -1:1, -1:1)
    type(MPIX_Halo_field), intent(out) :: field
    logical, optional, intent(in) :: interleaved
    complex(real64), dimension(..), target, asynchronous, optional :: other
    integer, optional, intent(in) :: components, below(3), above(3)
    logical, optional, intent(in) :: staggered(3)
    integer, optional, intent(out) :: ierror
    call describe(.true., data, MPI_COMPLEX16%MPI_VAL, radius, field, interleaved, other, components, below, above, &
                  staggered, ierror)
  end subroutine

end module
