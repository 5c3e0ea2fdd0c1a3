! SPDX-License-Identifier: BSD-3-Clause
!
! Exchanges in the order of a CUDA stream, and inside kernels, of the module mpix_halo, which programs use: the calls of
! <mpix/halo_gpu.h>. A stream is a cudaStream_t as CUDA Fortran and OpenACC have it: an integer.
module mpix_halo_gpu
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_int64_t, c_intptr_t, c_null_ptr, c_ptr
  use mpix_halo_types
  implicit none
  private
  public :: MPIX_Halo_stream_create, MPIX_Halo_stream_free, MPIX_Halo_stream_start, MPIX_Halo_stream_finish
  public :: MPIX_Halo_stream_run, MPIX_Halo_stream_check, MPIX_Halo_stream_swap, MPIX_Halo_stream_data
  public :: MPIX_Halo_stream_interior, MPIX_Halo_stream_boundary, MPIX_Halo_stream_sent, MPIX_Halo_stream_measure
  public :: MPIX_Halo_stream_report
  public :: MPIX_Halo_kernel_create, MPIX_Halo_kernel_free, MPIX_Halo_kernel_start, MPIX_Halo_kernel_finish
  public :: MPIX_Halo_kernel_active, MPIX_Halo_kernel_data, MPIX_Halo_kernel_sent, MPIX_Halo_kernel_measure
  public :: MPIX_Halo_kernel_report

  type, bind(C), public :: MPIX_Halo_stream_exchange
    type(c_ptr) :: address = c_null_ptr
  end type
  type, bind(C), public :: MPIX_Halo_kernel_exchange
    type(c_ptr) :: address = c_null_ptr
  end type
  type(MPIX_Halo_stream_exchange), parameter, public :: &
    MPIX_HALO_STREAM_EXCHANGE_NULL = MPIX_Halo_stream_exchange(c_null_ptr)
  type(MPIX_Halo_kernel_exchange), parameter, public :: &
    MPIX_HALO_KERNEL_EXCHANGE_NULL = MPIX_Halo_kernel_exchange(c_null_ptr)

  ! What kernels take, by value: an mpix::halo::device_exchange in C++.
  type, bind(C), public :: MPIX_Halo_device_exchange
    integer(c_int64_t) :: opaque(24) = 0
  end type

  ! ---- in the order of a stream -----------------------------------------------------------------

  interface MPIX_Halo_stream_data
    module procedure stream_data_in_only
    subroutine stream_data_in(field, i, exchange, data, ierror) bind(C, name="mpix_halo_stream_data_")
      import :: c_int, c_ptr, MPIX_Halo_stream_exchange
      integer(c_int), intent(in) :: field, i
      type(MPIX_Halo_stream_exchange), intent(in) :: exchange
      type(c_ptr), intent(inout) :: data
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Halo_stream_interior
    module procedure interior_of_only
    subroutine interior_of(i, exchange, box, ierror) bind(C, name="mpix_halo_stream_interior_")
      import :: c_int, MPIX_Halo_box, MPIX_Halo_stream_exchange
      integer(c_int), intent(in) :: i
      type(MPIX_Halo_stream_exchange), intent(in) :: exchange
      type(MPIX_Halo_box), intent(out) :: box
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Halo_stream_boundary
    module procedure boundary_of_only
    subroutine boundary_of(i, exchange, boxes, count, ierror) bind(C, name="mpix_halo_stream_boundary_")
      import :: c_int, MPIX_Halo_box, MPIX_Halo_stream_exchange
      integer(c_int), intent(in) :: i
      type(MPIX_Halo_stream_exchange), intent(in) :: exchange
      type(MPIX_Halo_box), intent(inout) :: boxes(6)
      integer(c_int), intent(out) :: count
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
  end interface

  interface
    subroutine stream_create(grid, count, fields, tile, direct, exchange, ierror) &
        bind(C, name="mpix_halo_stream_create_")
      import :: c_int, MPIX_Halo_field, MPIX_Halo_grid, MPIX_Halo_stream_exchange
      type(MPIX_Halo_grid), intent(in) :: grid
      integer(c_int), intent(in) :: count, tile(3), direct
      type(MPIX_Halo_field), intent(in) :: fields(*)
      type(MPIX_Halo_stream_exchange), intent(out) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_stream_free(exchange, ierror) bind(C, name="mpix_halo_stream_free_")
      import :: c_int, MPIX_Halo_stream_exchange
      type(MPIX_Halo_stream_exchange), intent(inout) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_stream_start(exchange, stream, ierror) bind(C, name="mpix_halo_stream_start_")
      import :: c_int, c_intptr_t, MPIX_Halo_stream_exchange
      type(MPIX_Halo_stream_exchange), intent(in) :: exchange
      integer(c_intptr_t), intent(in) :: stream
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_stream_finish(exchange, stream, ierror) bind(C, name="mpix_halo_stream_finish_")
      import :: c_int, c_intptr_t, MPIX_Halo_stream_exchange
      type(MPIX_Halo_stream_exchange), intent(in) :: exchange
      integer(c_intptr_t), intent(in) :: stream
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_stream_run(exchange, stream, ierror) bind(C, name="mpix_halo_stream_run_")
      import :: c_int, c_intptr_t, MPIX_Halo_stream_exchange
      type(MPIX_Halo_stream_exchange), intent(in) :: exchange
      integer(c_intptr_t), intent(in) :: stream
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_stream_check(exchange, ierror) bind(C, name="mpix_halo_stream_check_")
      import :: c_int, MPIX_Halo_stream_exchange
      type(MPIX_Halo_stream_exchange), intent(in) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_stream_swap(exchange, ierror) bind(C, name="mpix_halo_stream_swap_")
      import :: c_int, MPIX_Halo_stream_exchange
      type(MPIX_Halo_stream_exchange), intent(in) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_stream_sent(exchange, messages, bytes, ierror) bind(C, name="mpix_halo_stream_sent_")
      import :: c_int, c_int64_t, MPIX_Halo_stream_exchange
      type(MPIX_Halo_stream_exchange), intent(in) :: exchange
      integer(c_int), intent(out) :: messages
      integer(c_int64_t), intent(out) :: bytes
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine stream_measure(flag, exchange, ierror) bind(C, name="mpix_halo_stream_measure_")
      import :: c_int, MPIX_Halo_stream_exchange
      integer(c_int), intent(in) :: flag
      type(MPIX_Halo_stream_exchange), intent(in) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine stream_report(exchange, text, length, ierror) bind(C, name="mpix_halo_stream_report_")
      import :: c_char, c_int, MPIX_Halo_stream_exchange
      type(MPIX_Halo_stream_exchange), intent(in) :: exchange
      integer(c_int), intent(in) :: length
      character(kind=c_char), intent(inout) :: text(*)
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
  end interface

  ! ---- inside kernels ---------------------------------------------------------------------------

  interface MPIX_Halo_kernel_data
    module procedure kernel_data_in_only
    subroutine kernel_data_in(field, i, exchange, data, ierror) bind(C, name="mpix_halo_kernel_data_")
      import :: c_int, c_ptr, MPIX_Halo_kernel_exchange
      integer(c_int), intent(in) :: field, i
      type(MPIX_Halo_kernel_exchange), intent(in) :: exchange
      type(c_ptr), intent(inout) :: data
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
  end interface

  interface
    subroutine kernel_create(grid, count, fields, tile, sets, box_waits, exchange, ierror) &
      bind(C, name="mpix_halo_kernel_create_")
      import :: c_int, MPIX_Halo_field, MPIX_Halo_grid, MPIX_Halo_kernel_exchange
      type(MPIX_Halo_grid), intent(in) :: grid
      integer(c_int), intent(in) :: count, tile(3), sets, box_waits
      type(MPIX_Halo_field), intent(in) :: fields(*)
      type(MPIX_Halo_kernel_exchange), intent(out) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_kernel_free(exchange, ierror) bind(C, name="mpix_halo_kernel_free_")
      import :: c_int, MPIX_Halo_kernel_exchange
      type(MPIX_Halo_kernel_exchange), intent(inout) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_kernel_start(steps, exchange, device, ierror) bind(C, name="mpix_halo_kernel_start_")
      import :: c_int, MPIX_Halo_device_exchange, MPIX_Halo_kernel_exchange
      integer(c_int), intent(in) :: steps
      type(MPIX_Halo_kernel_exchange), intent(in) :: exchange
      type(MPIX_Halo_device_exchange), intent(inout) :: device
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_kernel_finish(exchange, ierror) bind(C, name="mpix_halo_kernel_finish_")
      import :: c_int, MPIX_Halo_kernel_exchange
      type(MPIX_Halo_kernel_exchange), intent(in) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine kernel_active(exchange, flag, ierror) bind(C, name="mpix_halo_kernel_active_")
      import :: c_int, MPIX_Halo_kernel_exchange
      type(MPIX_Halo_kernel_exchange), intent(in) :: exchange
      integer(c_int), intent(inout) :: flag
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_kernel_sent(exchange, messages, bytes, ierror) bind(C, name="mpix_halo_kernel_sent_")
      import :: c_int, c_int64_t, MPIX_Halo_kernel_exchange
      type(MPIX_Halo_kernel_exchange), intent(in) :: exchange
      integer(c_int), intent(out) :: messages
      integer(c_int64_t), intent(out) :: bytes
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine kernel_measure(flag, exchange, ierror) bind(C, name="mpix_halo_kernel_measure_")
      import :: c_int, MPIX_Halo_kernel_exchange
      integer(c_int), intent(in) :: flag
      type(MPIX_Halo_kernel_exchange), intent(in) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine kernel_report(exchange, text, length, ierror) bind(C, name="mpix_halo_kernel_report_")
      import :: c_char, c_int, MPIX_Halo_kernel_exchange
      type(MPIX_Halo_kernel_exchange), intent(in) :: exchange
      integer(c_int), intent(in) :: length
      character(kind=c_char), intent(inout) :: text(*)
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
  end interface

contains

  ! tile: the cells along each axis that one block packs or unpacks. direct: .true. stores cells directly into the ghost
  ! cells of neighbours on this node, where that is possible; .false. if absent.
  subroutine MPIX_Halo_stream_create(grid, fields, exchange, tile, direct, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    type(MPIX_Halo_field), intent(in) :: fields(:)
    type(MPIX_Halo_stream_exchange), intent(out) :: exchange
    integer, optional, intent(in) :: tile(:)
    logical, optional, intent(in) :: direct
    integer, optional, intent(out) :: ierror
    integer(c_int) :: direct_in_c
    direct_in_c = 0
    if (present(direct)) direct_in_c = merge(1, 0, direct)
    call stream_create(grid, size(fields), fields, tile_of(tile), direct_in_c, exchange, ierror)
  end subroutine

  pure function tile_of(given) result(tile)
    integer, optional, intent(in) :: given(:)
    integer(c_int) :: tile(3)
    tile = 0
    if (present(given)) tile(1:min(size(given), 3)) = given(1:min(size(given), 3))
  end function

  subroutine stream_data_in_only(field, exchange, data, ierror)
    integer, intent(in) :: field
    type(MPIX_Halo_stream_exchange), intent(in) :: exchange
    type(c_ptr), intent(inout) :: data
    integer, optional, intent(out) :: ierror
    call stream_data_in(field, 1, exchange, data, ierror)
  end subroutine

  subroutine interior_of_only(exchange, box, ierror)
    type(MPIX_Halo_stream_exchange), intent(in) :: exchange
    type(MPIX_Halo_box), intent(out) :: box
    integer, optional, intent(out) :: ierror
    call interior_of(1, exchange, box, ierror)
  end subroutine

  subroutine boundary_of_only(exchange, boxes, count, ierror)
    type(MPIX_Halo_stream_exchange), intent(in) :: exchange
    type(MPIX_Halo_box), intent(inout) :: boxes(6)
    integer, intent(out) :: count
    integer, optional, intent(out) :: ierror
    call boundary_of(1, exchange, boxes, count, ierror)
  end subroutine

  subroutine MPIX_Halo_stream_measure(flag, exchange, ierror)
    logical, intent(in) :: flag
    type(MPIX_Halo_stream_exchange), intent(in) :: exchange
    integer, optional, intent(out) :: ierror
    call stream_measure(merge(1, 0, flag), exchange, ierror)
  end subroutine

  subroutine MPIX_Halo_stream_report(exchange, text, ierror)
    type(MPIX_Halo_stream_exchange), intent(in) :: exchange
    character(len=*), intent(inout) :: text
    integer, optional, intent(out) :: ierror
    call stream_report(exchange, text, len(text), ierror)
  end subroutine

  ! The arguments are as in MPIX_Halo_kernel_options. By default a tile is the whole box, and there are four sets.
  subroutine MPIX_Halo_kernel_create(grid, fields, exchange, tile, sets, box_waits, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    type(MPIX_Halo_field), intent(in) :: fields(:)
    type(MPIX_Halo_kernel_exchange), intent(out) :: exchange
    integer, optional, intent(in) :: tile(:), sets
    logical, optional, intent(in) :: box_waits
    integer, optional, intent(out) :: ierror
    integer(c_int) :: given_sets, waits
    given_sets = 0
    if (present(sets)) given_sets = sets
    waits = 0
    if (present(box_waits)) waits = merge(1, 0, box_waits)
    call kernel_create(grid, size(fields), fields, tile_of(tile), given_sets, waits, exchange, ierror)
  end subroutine

  subroutine MPIX_Halo_kernel_active(exchange, flag, ierror)
    type(MPIX_Halo_kernel_exchange), intent(in) :: exchange
    logical, intent(out) :: flag
    integer, optional, intent(out) :: ierror
    integer(c_int) :: as_number
    as_number = 0
    call kernel_active(exchange, as_number, ierror)
    flag = as_number /= 0
  end subroutine

  subroutine kernel_data_in_only(field, exchange, data, ierror)
    integer, intent(in) :: field
    type(MPIX_Halo_kernel_exchange), intent(in) :: exchange
    type(c_ptr), intent(inout) :: data
    integer, optional, intent(out) :: ierror
    call kernel_data_in(field, 1, exchange, data, ierror)
  end subroutine

  subroutine MPIX_Halo_kernel_measure(flag, exchange, ierror)
    logical, intent(in) :: flag
    type(MPIX_Halo_kernel_exchange), intent(in) :: exchange
    integer, optional, intent(out) :: ierror
    call kernel_measure(merge(1, 0, flag), exchange, ierror)
  end subroutine

  subroutine MPIX_Halo_kernel_report(exchange, text, ierror)
    type(MPIX_Halo_kernel_exchange), intent(in) :: exchange
    character(len=*), intent(inout) :: text
    integer, optional, intent(out) :: ierror
    call kernel_report(exchange, text, len(text), ierror)
  end subroutine

end module
