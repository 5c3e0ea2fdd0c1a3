! SPDX-License-Identifier: BSD-3-Clause
!
! Exchanges of the module mpix_halo, which programs use.
module mpix_halo_exchanges
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int64_t, c_ptr
  use mpi_f08, only: MPI_Op
  use mpix_halo_types
  implicit none
  private
  public :: MPIX_Halo_exchange_create, MPIX_Halo_reverse_create, MPIX_Halo_exchange_free
  public :: MPIX_Halo_start, MPIX_Halo_finish, MPIX_Halo_begin, MPIX_Halo_ready, MPIX_Halo_active
  public :: MPIX_Halo_swap, MPIX_Halo_data, MPIX_Halo_interior, MPIX_Halo_boundary, MPIX_Halo_ghost_pieces
  public :: MPIX_Halo_sent, MPIX_Halo_measure, MPIX_Halo_report, MPIX_Halo_compare_transfers

  ! If transfer is absent it is MPIX_HALO_AUTOMATIC.
  interface MPIX_Halo_exchange_create
    module procedure create_automatic, create
  end interface

  interface MPIX_Halo_reverse_create
    module procedure reverse_create_f08, reverse_create
  end interface

  interface MPIX_Halo_data
    module procedure data_in_only
    subroutine data_in(field, i, exchange, data, ierror) bind(C, name="mpix_halo_data_")
      import :: c_int, c_ptr, MPIX_Halo_exchange
      integer(c_int), intent(in) :: field, i
      type(MPIX_Halo_exchange), intent(in) :: exchange
      type(c_ptr), intent(inout) :: data
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Halo_interior
    module procedure interior_of_only
    subroutine interior_of(i, exchange, box, ierror) bind(C, name="mpix_halo_interior_")
      import :: c_int, MPIX_Halo_box, MPIX_Halo_exchange
      integer(c_int), intent(in) :: i
      type(MPIX_Halo_exchange), intent(in) :: exchange
      type(MPIX_Halo_box), intent(out) :: box
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Halo_boundary
    module procedure boundary_of_only
    subroutine boundary_of(i, exchange, boxes, count, ierror) bind(C, name="mpix_halo_boundary_")
      import :: c_int, MPIX_Halo_box, MPIX_Halo_exchange
      integer(c_int), intent(in) :: i
      type(MPIX_Halo_exchange), intent(in) :: exchange
      type(MPIX_Halo_box), intent(inout) :: boxes(6)
      integer(c_int), intent(out) :: count
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Halo_ghost_pieces
    module procedure ghost_pieces_of_only, ghost_pieces_of
  end interface

  interface
    subroutine MPIX_Halo_exchange_free(exchange, ierror) bind(C, name="mpix_halo_exchange_free_")
      import :: c_int, MPIX_Halo_exchange
      type(MPIX_Halo_exchange), intent(inout) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_start(exchange, ierror) bind(C, name="mpix_halo_start_")
      import :: c_int, MPIX_Halo_exchange
      type(MPIX_Halo_exchange), intent(in) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_finish(exchange, ierror) bind(C, name="mpix_halo_finish_")
      import :: c_int, MPIX_Halo_exchange
      type(MPIX_Halo_exchange), intent(in) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_begin(exchange, ierror) bind(C, name="mpix_halo_begin_")
      import :: c_int, MPIX_Halo_exchange
      type(MPIX_Halo_exchange), intent(in) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_ready(field, exchange, ierror) bind(C, name="mpix_halo_ready_")
      import :: c_int, MPIX_Halo_exchange
      integer(c_int), intent(in) :: field
      type(MPIX_Halo_exchange), intent(in) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_swap(field, exchange, ierror) bind(C, name="mpix_halo_swap_")
      import :: c_int, MPIX_Halo_exchange
      integer(c_int), intent(in) :: field
      type(MPIX_Halo_exchange), intent(in) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_sent(exchange, messages, bytes, ierror) bind(C, name="mpix_halo_sent_")
      import :: c_int, c_int64_t, MPIX_Halo_exchange
      type(MPIX_Halo_exchange), intent(in) :: exchange
      integer(c_int), intent(out) :: messages
      integer(c_int64_t), intent(out) :: bytes
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine exchange_create(grid, count, fields, transfer, exchange, ierror) &
      bind(C, name="mpix_halo_exchange_create_")
      import :: c_int, MPIX_Halo_exchange, MPIX_Halo_field, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      integer(c_int), intent(in) :: count, transfer
      type(MPIX_Halo_field), intent(in) :: fields(*)
      type(MPIX_Halo_exchange), intent(out) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine reverse_create_c(grid, count, fields, op, exchange, ierror) bind(C, name="mpix_halo_reverse_create_")
      import :: c_int, MPIX_Halo_exchange, MPIX_Halo_field, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      integer(c_int), intent(in) :: count, op
      type(MPIX_Halo_field), intent(in) :: fields(*)
      type(MPIX_Halo_exchange), intent(out) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine active_c(exchange, flag, ierror) bind(C, name="mpix_halo_active_")
      import :: c_int, MPIX_Halo_exchange
      type(MPIX_Halo_exchange), intent(in) :: exchange
      integer(c_int), intent(inout) :: flag
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine ghost_pieces(field, i, exchange, size, pieces, count, ierror) bind(C, name="mpix_halo_ghost_pieces_")
      import :: c_int, MPIX_Halo_exchange, MPIX_Halo_ghost_piece
      integer(c_int), intent(in) :: field, i, size
      type(MPIX_Halo_exchange), intent(in) :: exchange
      type(MPIX_Halo_ghost_piece), intent(inout) :: pieces(*)
      integer(c_int), intent(out) :: count
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine measure_c(flag, exchange, ierror) bind(C, name="mpix_halo_measure_")
      import :: c_int, MPIX_Halo_exchange
      integer(c_int), intent(in) :: flag
      type(MPIX_Halo_exchange), intent(in) :: exchange
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine report_c(exchange, text, length, ierror) bind(C, name="mpix_halo_report_")
      import :: c_char, c_int, MPIX_Halo_exchange
      type(MPIX_Halo_exchange), intent(in) :: exchange
      integer(c_int), intent(in) :: length
      character(kind=c_char), intent(inout) :: text(*)
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine compare_c(grid, count, fields, exchanges, seconds, fastest, ierror) &
      bind(C, name="mpix_halo_compare_transfers_")
      import :: c_double, c_int, MPIX_Halo_field, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      integer(c_int), intent(in) :: count, exchanges
      type(MPIX_Halo_field), intent(in) :: fields(*)
      real(c_double), intent(inout) :: seconds(3)
      integer(c_int), intent(out) :: fastest
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
  end interface

contains

  subroutine create(grid, fields, transfer, exchange, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    type(MPIX_Halo_field), intent(in) :: fields(:)
    integer, intent(in) :: transfer
    type(MPIX_Halo_exchange), intent(out) :: exchange
    integer, optional, intent(out) :: ierror
    call exchange_create(grid, size(fields), fields, transfer, exchange, ierror)
  end subroutine

  subroutine create_automatic(grid, fields, exchange, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    type(MPIX_Halo_field), intent(in) :: fields(:)
    type(MPIX_Halo_exchange), intent(out) :: exchange
    integer, optional, intent(out) :: ierror
    call create(grid, fields, MPIX_HALO_AUTOMATIC, exchange, ierror)
  end subroutine

  subroutine reverse_create(grid, fields, op, exchange, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    type(MPIX_Halo_field), intent(in) :: fields(:)
    integer, intent(in) :: op
    type(MPIX_Halo_exchange), intent(out) :: exchange
    integer, optional, intent(out) :: ierror
    call reverse_create_c(grid, size(fields), fields, op, exchange, ierror)
  end subroutine

  subroutine reverse_create_f08(grid, fields, op, exchange, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    type(MPIX_Halo_field), intent(in) :: fields(:)
    type(MPI_Op), intent(in) :: op
    type(MPIX_Halo_exchange), intent(out) :: exchange
    integer, optional, intent(out) :: ierror
    call reverse_create_c(grid, size(fields), fields, op%MPI_VAL, exchange, ierror)
  end subroutine

  subroutine MPIX_Halo_active(exchange, flag, ierror)
    type(MPIX_Halo_exchange), intent(in) :: exchange
    logical, intent(out) :: flag
    integer, optional, intent(out) :: ierror
    integer(c_int) :: as_number
    as_number = 0
    call active_c(exchange, as_number, ierror)
    flag = as_number /= 0
  end subroutine

  subroutine data_in_only(field, exchange, data, ierror)
    integer, intent(in) :: field
    type(MPIX_Halo_exchange), intent(in) :: exchange
    type(c_ptr), intent(inout) :: data
    integer, optional, intent(out) :: ierror
    call data_in(field, 1, exchange, data, ierror)
  end subroutine

  subroutine interior_of_only(exchange, box, ierror)
    type(MPIX_Halo_exchange), intent(in) :: exchange
    type(MPIX_Halo_box), intent(out) :: box
    integer, optional, intent(out) :: ierror
    call interior_of(1, exchange, box, ierror)
  end subroutine

  subroutine boundary_of_only(exchange, boxes, count, ierror)
    type(MPIX_Halo_exchange), intent(in) :: exchange
    type(MPIX_Halo_box), intent(inout) :: boxes(6)
    integer, intent(out) :: count
    integer, optional, intent(out) :: ierror
    call boundary_of(1, exchange, boxes, count, ierror)
  end subroutine

  ! The first `count` entries, or as many as there is room for.
  subroutine ghost_pieces_of(field, i, exchange, pieces, count, ierror)
    integer, intent(in) :: field, i
    type(MPIX_Halo_exchange), intent(in) :: exchange
    type(MPIX_Halo_ghost_piece), intent(inout) :: pieces(:)
    integer, intent(out) :: count
    integer, optional, intent(out) :: ierror
    call ghost_pieces(field, i, exchange, size(pieces), pieces, count, ierror)
  end subroutine

  subroutine ghost_pieces_of_only(field, exchange, pieces, count, ierror)
    integer, intent(in) :: field
    type(MPIX_Halo_exchange), intent(in) :: exchange
    type(MPIX_Halo_ghost_piece), intent(inout) :: pieces(:)
    integer, intent(out) :: count
    integer, optional, intent(out) :: ierror
    call ghost_pieces_of(field, 1, exchange, pieces, count, ierror)
  end subroutine

  subroutine MPIX_Halo_measure(flag, exchange, ierror)
    logical, intent(in) :: flag
    type(MPIX_Halo_exchange), intent(in) :: exchange
    integer, optional, intent(out) :: ierror
    call measure_c(merge(1, 0, flag), exchange, ierror)
  end subroutine

  ! As much of it as there is room for, with blanks behind it. Lines end with new_line('a').
  subroutine MPIX_Halo_report(exchange, text, ierror)
    type(MPIX_Halo_exchange), intent(in) :: exchange
    character(len=*), intent(inout) :: text
    integer, optional, intent(out) :: ierror
    call report_c(exchange, text, len(text), ierror)
  end subroutine

  ! seconds(t) is the time of transfer t: MPIX_HALO_PACKED, MPIX_HALO_DATATYPE, MPIX_HALO_PLAIN.
  subroutine MPIX_Halo_compare_transfers(grid, fields, exchanges, seconds, fastest, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    type(MPIX_Halo_field), intent(in) :: fields(:)
    integer, intent(in) :: exchanges
    real(c_double), intent(inout) :: seconds(0:2)
    integer, intent(out) :: fastest
    integer, optional, intent(out) :: ierror
    call compare_c(grid, size(fields), fields, exchanges, seconds, fastest, ierror)
  end subroutine

end module
