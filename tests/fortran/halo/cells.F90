! SPDX-License-Identifier: BSD-3-Clause
!
! What a cell of a field holds in an epoch, and which ghost cells an exchange fills: reckoned by every rank for itself.
module halo_cells
  use, intrinsic :: iso_fortran_env, only: int64
  use checks, only: common, seed
  use mpix_halo
  implicit none
  private
  public :: cell_value, is_filled, wrapped, random_domain, random_radius

  type, public :: domain
    integer :: axes = 3, extent(3) = 1
    logical :: periodic(3) = .false.
    type(MPIX_Halo_box) :: mine
  end type

  ! A field of one kind of numbers, in memory that is larger than the box and its ghost cells.
  type, abstract, public :: memory
    integer :: components = 1, radius(-1:1, -1:1, -1:1) = 0, below(3) = 0, above(3) = 0
    logical :: interleaved = .false., swapped = .false.
    type(domain) :: whole
  contains
    procedure :: first, last, place_first, place_last, depth
    procedure(describe_interface), deferred :: describe
    procedure(fill_interface), deferred :: fill
    procedure(verify_interface), deferred :: verify
    procedure(gather_interface), deferred :: verify_gathered
    procedure(release_interface), deferred :: release
  end type

  abstract interface
    ! Allocate it, and say what it is.
    subroutine describe_interface(this, field)
      import :: memory, MPIX_Halo_field
      class(memory), intent(inout) :: this
      type(MPIX_Halo_field), intent(out) :: field
    end subroutine
    ! The cells of the box in the allocation in use; all others are poisoned.
    subroutine fill_interface(this, key)
      import :: memory
      class(memory), intent(inout) :: this
      integer, intent(in) :: key
    end subroutine
    ! Every cell of both allocations.
    subroutine verify_interface(this, key)
      import :: memory
      class(memory), intent(inout) :: this
      integer, intent(in) :: key
    end subroutine
    subroutine gather_interface(this, grid, field, key)
      import :: memory, MPIX_Halo_field, MPIX_Halo_grid
      class(memory), intent(inout) :: this
      type(MPIX_Halo_grid), intent(in) :: grid
      type(MPIX_Halo_field), intent(in) :: field
      integer, intent(in) :: key
    end subroutine
    subroutine release_interface(this)
      import :: memory
      class(memory), intent(inout) :: this
    end subroutine
  end interface

contains

  ! The memory has five axes: interleaved components are along the first, others along the last.
  pure integer function first(this)
    class(memory), intent(in) :: this
    first = merge(this%components, 1, this%interleaved)
  end function

  pure integer function last(this)
    class(memory), intent(in) :: this
    last = merge(1, this%components, this%interleaved)
  end function

  pure integer function place_first(this, component)
    class(memory), intent(in) :: this
    integer, intent(in) :: component
    place_first = merge(component, 1, this%interleaved)
  end function

  pure integer function place_last(this, component)
    class(memory), intent(in) :: this
    integer, intent(in) :: component
    place_last = merge(1, component, this%interleaved)
  end function

  ! The ghost cells that the radius needs along each axis, below (-1) or above (1).
  pure function depth(this, side) result(cells)
    class(memory), intent(in) :: this
    integer, intent(in) :: side
    integer :: cells(3)
    cells = [maxval(this%radius(side, :, :)), maxval(this%radius(:, side, :)), maxval(this%radius(:, :, side))]
  end function

  ! 0 to most - 1.
  pure integer function cell_value(key, component, at, most)
    integer, intent(in) :: key, component, at(3), most
    integer(int64), parameter :: prime = 2147483647_int64
    integer(int64) :: h
    integer :: a
    h = mod(seed + int(key, int64) * 7919_int64 + component, prime)
    do a = 1, 3
      h = mod(h * 48271_int64 + at(a) + 12345_int64, prime)
    end do
    cell_value = int(mod(mod(h * 48271_int64, prime) / 11, int(most, int64)))
  end function

  ! Whether an exchange stores something in this cell, which is not one of the box.
  pure logical function is_filled(of, radius, at)
    type(domain), intent(in) :: of
    integer, intent(in) :: radius(-1:1, -1:1, -1:1), at(3)
    integer :: direction(3), distance(3)
    distance = max(of%mine%lo - at, at - of%mine%hi, 0)
    direction = merge(-1, merge(1, 0, at > of%mine%hi), at < of%mine%lo)
    is_filled = all(distance <= radius(direction(1), direction(2), direction(3))) .and. &
                all(of%periodic .or. (at >= 1 .and. at <= of%extent)) .and. all(of%mine%hi >= of%mine%lo)
  end function

  pure function wrapped(of, at) result(cell)
    type(domain), intent(in) :: of
    integer, intent(in) :: at(3)
    integer :: cell(3)
    cell = modulo(at - 1, of%extent) + 1
  end function

  ! The same on all ranks.
  type(domain) function random_domain(ranks) result(made)
    integer, intent(in) :: ranks
    integer :: a
    made%axes = 1 + common(3)
    do a = 1, made%axes
      made%extent(a) = 4 + common(6)
      made%periodic(a) = common(2) == 0
    end do
    made%extent(1 + common(made%axes)) = 4 * ranks + common(4)  ! so that there is a box for each rank
  end function

  subroutine random_radius(axes, radius)
    integer, intent(in) :: axes
    integer, intent(out) :: radius(-1:1, -1:1, -1:1)
    integer :: x, y, z, sides
    select case (common(3))
    case (0)
      call MPIX_Halo_radius_all(common(3), radius)
    case (1)
      call MPIX_Halo_radius_faces(1 + common(2), radius)
    case default
      radius = 0
      do z = -1, 1
        do y = -1, 1
          do x = -1, 1
            sides = abs(x) + abs(y) + abs(z)
            if (sides > 0) radius(x, y, z) = common(3)
          end do
        end do
      end do
    end select
    if (axes < 3) radius(:, :, [-1, 1]) = 0
    if (axes < 2) radius(:, [-1, 1], :) = 0
  end subroutine

end module
