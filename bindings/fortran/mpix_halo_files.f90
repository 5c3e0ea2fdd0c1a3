! SPDX-License-Identifier: BSD-3-Clause
!
! Whole fields, files, and the line that tells how far a run is, of the module mpix_halo, which programs use.
module mpix_halo_files
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int64_t, c_ptr
  use, intrinsic :: iso_fortran_env, only: int32, int64
  use mpix_halo_fields, only: mpix_halo_address
  use mpix_halo_types
  implicit none
  private
  public :: MPIX_Halo_field_bytes, MPIX_Halo_gather
  public :: MPIX_Halo_write_checkpoint, MPIX_Halo_read_checkpoint, MPIX_Halo_write_vti, MPIX_Halo_write_png
  public :: MPIX_Halo_step_report_create, MPIX_Halo_step_report_done, MPIX_Halo_step_report_free

  interface MPIX_Halo_field_bytes
    module procedure bytes_in_only
    subroutine bytes_in(grid, i, field, bytes, ierror) bind(C, name="mpix_halo_field_bytes_")
      import :: c_int, c_int64_t, MPIX_Halo_field, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      integer(c_int), intent(in) :: i
      type(MPIX_Halo_field), intent(in) :: field
      integer(c_int64_t), intent(out) :: bytes
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
  end interface

  ! `step` is an integer of 4 or 8 bytes.
  interface MPIX_Halo_write_checkpoint
    module procedure write_with_int32, write_with_int64
  end interface
  interface MPIX_Halo_read_checkpoint
    module procedure read_with_int32, read_with_int64
  end interface

  type, bind(C) :: vti_options
    real(c_double) :: origin(3) = 0, spacing(3) = 0
  end type

  interface
    subroutine MPIX_Halo_step_report_create(grid, steps, bytes_sent, report, ierror) &
      bind(C, name="mpix_halo_step_report_create_")
      import :: c_int, c_int64_t, MPIX_Halo_grid, MPIX_Halo_step_report
      type(MPIX_Halo_grid), intent(in) :: grid
      integer(c_int), intent(in) :: steps
      integer(c_int64_t), intent(in) :: bytes_sent
      type(MPIX_Halo_step_report), intent(out) :: report
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_step_report_done(steps, report, ierror) bind(C, name="mpix_halo_step_report_done_")
      import :: c_int, MPIX_Halo_step_report
      integer(c_int), intent(in) :: steps
      type(MPIX_Halo_step_report), intent(in) :: report
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_step_report_free(report, ierror) bind(C, name="mpix_halo_step_report_free_")
      import :: c_int, MPIX_Halo_step_report
      type(MPIX_Halo_step_report), intent(inout) :: report
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine get_element_bytes(array, bytes) bind(C, name="mpix_halo_element_bytes_")
      import :: c_int64_t
      type(*), dimension(..), intent(in) :: array
      integer(c_int64_t), intent(out) :: bytes
    end subroutine
    subroutine gather(grid, from, global, axes, shape, element_bytes, root, ierror) bind(C, name="mpix_halo_gather_")
      import :: c_int, c_int64_t, c_ptr, MPIX_Halo_field, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      type(MPIX_Halo_field), intent(in) :: from
      type(c_ptr), intent(in) :: global
      integer(c_int), intent(in) :: axes, shape(*), root
      integer(c_int64_t), intent(in) :: element_bytes
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine write_checkpoint(grid, path, length, count, names, fields, step, ierror) &
      bind(C, name="mpix_halo_write_checkpoint_")
      import :: c_char, c_int, c_int64_t, MPIX_Halo_field, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      character(kind=c_char), intent(in) :: path(*), names(*)
      integer(c_int), intent(in) :: length, count
      type(MPIX_Halo_field), intent(in) :: fields(*)
      integer(c_int64_t), intent(in) :: step
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine read_checkpoint(grid, path, length, count, names, fields, step, ierror) &
      bind(C, name="mpix_halo_read_checkpoint_")
      import :: c_char, c_int, c_int64_t, MPIX_Halo_field, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      character(kind=c_char), intent(in) :: path(*), names(*)
      integer(c_int), intent(in) :: length, count
      type(MPIX_Halo_field), intent(in) :: fields(*)
      integer(c_int64_t), intent(inout) :: step
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine write_vti(grid, path, length, count, names, fields, options, ierror) bind(C, name="mpix_halo_write_vti_")
      import :: c_char, c_int, vti_options, MPIX_Halo_field, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      character(kind=c_char), intent(in) :: path(*), names(*)
      integer(c_int), intent(in) :: length, count
      type(MPIX_Halo_field), intent(in) :: fields(*)
      type(vti_options), intent(in) :: options
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine write_png(grid, path, length, from, low, high, axis, at, component, colors, ierror) &
      bind(C, name="mpix_halo_write_png_")
      import :: c_char, c_double, c_int, MPIX_Halo_field, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int), intent(in) :: length, axis, at, component, colors
      type(MPIX_Halo_field), intent(in) :: from
      real(c_double), intent(in) :: low, high
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
  end interface

contains

  subroutine bytes_in_only(grid, field, bytes, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    type(MPIX_Halo_field), intent(in) :: field
    integer(c_int64_t), intent(out) :: bytes
    integer, optional, intent(out) :: ierror
    call bytes_in(grid, 1, field, bytes, ierror)
  end subroutine

  ! `global` has the extents of the domain, and before or behind them an axis of the components, as the field has. It is
  ! not looked at on other ranks than the root.
  subroutine MPIX_Halo_gather(grid, from, global, root, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    type(MPIX_Halo_field), intent(in) :: from
    type(*), dimension(..), target, asynchronous :: global
    integer, intent(in) :: root
    integer, optional, intent(out) :: ierror
    integer(c_int) :: lengths(15)
    integer(c_int64_t) :: element_bytes
    lengths(1:rank(global)) = int(shape(global), c_int)
    call get_element_bytes(global, element_bytes)
    call gather(grid, from, mpix_halo_address(global), rank(global), lengths, element_bytes, root, ierror)
  end subroutine

  subroutine write_with_int64(grid, path, fields, step, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    character(len=*), intent(in) :: path
    type(MPIX_Halo_named_field), intent(in) :: fields(:)
    integer(int64), intent(in) :: step
    integer, optional, intent(out) :: ierror
    call write_checkpoint(grid, path, len(path), size(fields), fields%name, fields%field, step, ierror)
  end subroutine

  subroutine write_with_int32(grid, path, fields, step, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    character(len=*), intent(in) :: path
    type(MPIX_Halo_named_field), intent(in) :: fields(:)
    integer(int32), intent(in) :: step
    integer, optional, intent(out) :: ierror
    call write_with_int64(grid, path, fields, int(step, int64), ierror)
  end subroutine

  subroutine read_with_int64(grid, path, fields, step, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    character(len=*), intent(in) :: path
    type(MPIX_Halo_named_field), intent(in) :: fields(:)
    integer(int64), intent(inout) :: step
    integer, optional, intent(out) :: ierror
    call read_checkpoint(grid, path, len(path), size(fields), fields%name, fields%field, step, ierror)
  end subroutine

  subroutine read_with_int32(grid, path, fields, step, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    character(len=*), intent(in) :: path
    type(MPIX_Halo_named_field), intent(in) :: fields(:)
    integer(int32), intent(inout) :: step
    integer, optional, intent(out) :: ierror
    integer(int64) :: long
    long = step
    call read_with_int64(grid, path, fields, long, ierror)
    step = int(long, int32)
  end subroutine

  subroutine MPIX_Halo_write_vti(grid, path, fields, origin, spacing, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    character(len=*), intent(in) :: path
    type(MPIX_Halo_named_field), intent(in) :: fields(:)
    real(c_double), optional, intent(in) :: origin(3), spacing(3)
    integer, optional, intent(out) :: ierror
    type(vti_options) :: options
    if (present(origin)) options%origin = origin
    if (present(spacing)) options%spacing = spacing
    call write_vti(grid, path, len(path), size(fields), fields%name, fields%field, options, ierror)
  end subroutine

  ! The plane of cells with the index `at` along `axis`: by default the first one across the third axis.
  subroutine MPIX_Halo_write_png(grid, path, from, low, high, axis, at, component, colors, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    character(len=*), intent(in) :: path
    type(MPIX_Halo_field), intent(in) :: from
    real(c_double), optional, intent(in) :: low, high
    integer, optional, intent(in) :: axis, at, component, colors
    integer, optional, intent(out) :: ierror
    real(c_double) :: values(2)
    integer(c_int) :: plane(2), which, how
    values = 0
    if (present(low)) values(1) = low
    if (present(high)) values(2) = high
    plane = [3, 1]
    if (present(axis)) plane(1) = axis
    if (present(at)) plane(2) = at
    which = 1
    if (present(component)) which = component
    how = MPIX_HALO_GREY
    if (present(colors)) how = colors
    call write_png(grid, path, len(path), from, values(1), values(2), plane(1), plane(2), which, how, ierror)
  end subroutine

end module
