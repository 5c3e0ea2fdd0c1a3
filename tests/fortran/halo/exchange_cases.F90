! SPDX-License-Identifier: BSD-3-Clause
!
! Exchanges of fields that MPIX_Halo_field_init describes in other ways than by an array alone; reverse exchanges; ghost
! cells that stay in messages; files; and what an exchange tells of itself.
module halo_exchange_cases
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_associated, c_f_pointer, c_intptr_t, c_loc, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: int8, int64
  use checks
  use mpix_halo
  implicit none
  private
  public :: run_exchange_cases

contains

  subroutine run_exchange_cases(ranks)
    integer, intent(in) :: ranks
    call first_element(ranks)
    call several_boxes(ranks)
    call reverse(ranks)
    call in_messages(ranks)
    call files(ranks)
    call reports(ranks)
  end subroutine

  pure integer function value_of(x, y)
    integer, intent(in) :: x, y
    value_of = 1000 * x + y
  end function

  ! A datatype of the program's; an array of assumed size; and every other column of an array, by its first element.
  subroutine first_element(ranks)
    integer, intent(in) :: ranks
    integer, parameter :: three = 3
    type(MPIX_Halo_grid) :: grid
    type(MPIX_Halo_exchange) :: exchange
    type(MPIX_Halo_field) :: fields(3)
    type(MPIX_Halo_box) :: mine
    type(MPI_Datatype) :: triple
    integer(int8), allocatable, target, asynchronous :: bytes(:, :, :)
    integer, allocatable, target, asynchronous :: plain(:, :), columns(:, :)
    integer :: radius(-1:1, -1:1, -1:1), x, y, lo(2), hi(2), from(2)
    integer(int64) :: taken
    subject = 'fields by a datatype and by their first element'
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [3 * ranks, 5], grid, periodic=[.true., .true.])
    call MPIX_Halo_grid_local(grid, mine)
    lo = mine%lo(1:2) - 1
    hi = mine%hi(1:2) + 1
    call MPIX_Halo_radius_all(1, radius)
    call MPI_Type_contiguous(three, MPI_INTEGER1, triple)
    call MPI_Type_commit(triple)
    allocate (bytes(three, lo(1):hi(1), lo(2):hi(2)), plain(lo(1):hi(1), lo(2):hi(2)))
    allocate (columns(lo(1):hi(1), 2 * lo(2):2 * hi(2) + 1))
    bytes = -1
    plain = -1
    columns = -1
    do y = mine%lo(2), mine%hi(2)
      do x = mine%lo(1), mine%hi(1)
        bytes(:, x, y) = int([x, y, x + y], int8)
        plain(x, y) = value_of(x, y)
        columns(x, 2 * y) = value_of(x, y)
      end do
    end do
    call MPIX_Halo_field_init(bytes, triple, radius, fields(1))
    call MPIX_Halo_field_bytes(grid, fields(1), taken)
    call check(taken == size(bytes), 'MPIX_Halo_field_bytes')
    call init_assumed_size(plain, fields(2))
    call MPIX_Halo_field_init(columns(lo(1), 2 * lo(2)), radius, fields(3))
    fields(3)%layout%row_bytes = 2 * size(columns, 1) * (storage_size(columns) / 8)
    call MPIX_Halo_exchange_create(grid, fields, exchange)
    call MPI_Type_free(triple)
    call MPIX_Halo_start(exchange)
    call MPIX_Halo_finish(exchange)
    do y = lo(2), hi(2)
      do x = lo(1), hi(1)
        from = [modulo(x - 1, 3 * ranks) + 1, modulo(y - 1, 5) + 1]
        call check(all(bytes(:, x, y) == int([from(1), from(2), from(1) + from(2)], int8)), 'three bytes')
        call check(plain(x, y) == value_of(from(1), from(2)), 'an array of assumed size')
        call check(columns(x, 2 * y) == value_of(from(1), from(2)), 'every other column')
        call check(columns(x, 2 * y + 1) == -1, 'the columns between are not touched')
      end do
    end do
    call MPIX_Halo_exchange_free(exchange)
    call MPIX_Halo_grid_free(grid)

  contains

    subroutine init_assumed_size(u, field)
      integer, target, asynchronous, intent(in) :: u(lo(1):hi(1), lo(2):*)
      type(MPIX_Halo_field), intent(out) :: field
      call MPIX_Halo_field_init(u, radius, field)
      call check(field%allocated == 0 .and. field%layout%row_bytes == size(u, 1) * (storage_size(u) / 8), &
                 'the length of an array of assumed size is not known')
    end subroutine

  end subroutine

  subroutine several_boxes(ranks)
    integer, intent(in) :: ranks
    type :: part
      integer, pointer, contiguous :: u(:, :), v(:, :)
    end type
    type(part) :: parts(2)
    type(MPIX_Halo_allocation), target :: allocations(2)
    type(MPIX_Halo_grid) :: grid
    type(MPIX_Halo_exchange) :: exchange
    type(MPIX_Halo_field) :: field
    type(MPIX_Halo_box) :: box, inner, outer(6)
    type(c_ptr) :: address
    integer :: radius(-1:1, -1:1, -1:1), i, x, y, boxes, n, cells
    subject = 'an exchange of several boxes'
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [4 * ranks, 6], grid, boxes_per_rank=2, periodic=[.true., .true.])
    call MPIX_Halo_radius_all(1, radius)
    do i = 1, 2
      call MPIX_Halo_grid_local(i, grid, box)
      allocate (parts(i)%u(box%lo(1) - 1:box%hi(1) + 1, box%lo(2) - 1:box%hi(2) + 1))
      allocate (parts(i)%v, mold=parts(i)%u)
      parts(i)%u = -1
      do y = box%lo(2), box%hi(2)
        do x = box%lo(1), box%hi(1)
          parts(i)%u(x, y) = value_of(x, y)
        end do
      end do
      allocations(i) = MPIX_Halo_allocation(c_loc(parts(i)%u), c_loc(parts(i)%v), size(parts(i)%u) * 4_int64)
    end do
    call MPIX_Halo_field_init_boxes(allocations, MPI_INTEGER, radius, field)
    call MPIX_Halo_exchange_create(grid, [field], exchange)
    call MPIX_Halo_start(exchange)
    call MPIX_Halo_finish(exchange)
    do i = 1, 2
      call MPIX_Halo_grid_local(i, grid, box)
      do y = lbound(parts(i)%u, 2), ubound(parts(i)%u, 2)
        do x = lbound(parts(i)%u, 1), ubound(parts(i)%u, 1)
          call check(parts(i)%u(x, y) == value_of(modulo(x - 1, 4 * ranks) + 1, modulo(y - 1, 6) + 1), 'every cell')
        end do
      end do
      call MPIX_Halo_interior(i, exchange, inner)
      call MPIX_Halo_boundary(i, exchange, outer, boxes)
      cells = product(max(inner%hi - inner%lo + 1, 0))
      do n = 1, boxes
        cells = cells + product(outer(n)%hi - outer(n)%lo + 1)
      end do
      call check(cells == product(box%hi - box%lo + 1), 'the interior and the boundary have the cells of the i-th box')
      call MPIX_Halo_data(1, i, exchange, address)
      call check(c_associated(address, allocations(i)%data), 'MPIX_Halo_data')
    end do
    call MPIX_Halo_swap(1, exchange)
    call MPIX_Halo_data(1, exchange, address)
    call check(c_associated(address, allocations(1)%other), 'MPIX_Halo_data after MPIX_Halo_swap')
    call MPIX_Halo_exchange_free(exchange)
    call MPIX_Halo_grid_free(grid)
  end subroutine

  ! Each ghost cell adds one to the cell that it is a copy of.
  subroutine reverse(ranks)
    integer, intent(in) :: ranks
    type(MPIX_Halo_grid) :: grid
    type(MPIX_Halo_exchange) :: exchange
    type(MPIX_Halo_field) :: field
    type(MPIX_Halo_box) :: mine
    real(8), allocatable, target, asynchronous :: u(:)
    integer :: radius(-1:1, -1:1, -1:1), x, wanted
    logical :: flag
    subject = 'a reverse exchange'
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [4 * ranks], grid)
    call MPIX_Halo_grid_local(grid, mine)
    allocate (u(mine%lo(1) - 1:mine%hi(1) + 1))
    call MPIX_Halo_radius_faces(1, radius)
    call MPIX_Halo_field_init(u, radius, field)
    call MPIX_Halo_reverse_create(grid, [field], MPI_SUM, exchange)
    u = 1
    call MPIX_Halo_active(exchange, flag)
    call check(.not. flag, 'it is not active before MPIX_Halo_start')
    call MPIX_Halo_start(exchange)
    call MPIX_Halo_active(exchange, flag)
    call check(flag, 'it is active between MPIX_Halo_start and MPIX_Halo_finish')
    call MPIX_Halo_finish(exchange)
    do x = mine%lo(1), mine%hi(1)
      wanted = 1
      if (x == mine%lo(1) .and. x > 1) wanted = wanted + 1
      if (x == mine%hi(1) .and. x < 4 * ranks) wanted = wanted + 1
      call check(nint(u(x)) == wanted, 'the sum is right')
    end do
    call MPIX_Halo_exchange_free(exchange)
    call MPIX_Halo_grid_free(grid)
  end subroutine

  subroutine in_messages(ranks)
    integer, intent(in) :: ranks
    type(MPIX_Halo_grid) :: grid
    type(MPIX_Halo_exchange) :: exchange
    type(MPIX_Halo_field) :: field
    type(MPIX_Halo_box) :: mine
    type(MPIX_Halo_ghost_piece) :: pieces(30)
    integer, allocatable, target, asynchronous :: u(:, :)
    integer, pointer :: value
    integer(int64) :: at
    integer :: radius(-1:1, -1:1, -1:1), x, y, n, count, cells
    subject = 'ghost cells in messages'
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [3 * ranks, 5], grid, periodic=[.true., .true.])
    call MPIX_Halo_grid_local(grid, mine)
    allocate (u(mine%lo(1):mine%hi(1), mine%lo(2):mine%hi(2)))
    do y = mine%lo(2), mine%hi(2)
      do x = mine%lo(1), mine%hi(1)
        u(x, y) = value_of(x, y)
      end do
    end do
    call MPIX_Halo_radius_all(1, radius)
    call MPIX_Halo_field_init(u, radius, field, below=[0, 0, 0], above=[0, 0, 0])
    call MPIX_Halo_exchange_create(grid, [field], ior(MPIX_HALO_AUTOMATIC, MPIX_HALO_IN_MESSAGES), exchange)
    call MPIX_Halo_start(exchange)
    call MPIX_Halo_finish(exchange)
    call MPIX_Halo_ghost_pieces(1, exchange, pieces(1:0), count)
    call check(count >= 8 .and. count <= size(pieces), 'their number may be asked alone')
    call MPIX_Halo_ghost_pieces(1, 1, exchange, pieces, count)
    cells = 0
    do n = 1, count
      associate (p => pieces(n))
        call check(all((p%direction(1:2) < 0) .eqv. (p%cells%hi(1:2) < mine%lo(1:2))) .and. &
                   all((p%direction(1:2) > 0) .eqv. (p%cells%lo(1:2) > mine%hi(1:2))), 'the direction of a piece')
        do y = p%cells%lo(2), p%cells%hi(2)
          do x = p%cells%lo(1), p%cells%hi(1)
            at = (x - p%cells%lo(1)) * p%stride(1) + (y - p%cells%lo(2)) * p%stride(2)
            call c_f_pointer(moved(p%first, at), value)
            call check(value == value_of(modulo(x - 1, 3 * ranks) + 1, modulo(y - 1, 5) + 1), 'a cell in a message')
            cells = cells + 1
          end do
        end do
      end associate
    end do
    call check(cells == product(mine%hi(1:2) - mine%lo(1:2) + 3) - size(u), 'the pieces have all ghost cells')
    call MPIX_Halo_exchange_free(exchange)
    call MPIX_Halo_grid_free(grid)
  end subroutine

  type(c_ptr) function moved(address, bytes)
    type(c_ptr), intent(in) :: address
    integer(int64), intent(in) :: bytes
    moved = transfer(transfer(address, 0_c_intptr_t) + bytes, address)
  end function

  subroutine files(ranks)
    integer, intent(in) :: ranks
    type(MPIX_Halo_grid) :: grid
    type(MPIX_Halo_field) :: field
    type(MPIX_Halo_box) :: mine
    type(MPIX_Halo_named_field) :: named(1)
    real(8), allocatable, target, asynchronous :: u(:, :)
    real(8), allocatable :: before(:, :)
    integer :: radius(-1:1, -1:1, -1:1), step, code, class
    integer(int64) :: long_step
    character(len=100) :: name
    logical :: there
    subject = 'files'
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [3 * ranks, 5], grid)
    call MPIX_Halo_grid_local(grid, mine)
    allocate (u(mine%lo(1) - 1:mine%hi(1) + 1, mine%lo(2) - 1:mine%hi(2) + 1))
    call random_number(u)
    allocate (before, source=u)
    call MPIX_Halo_radius_all(1, radius)
    call MPIX_Halo_field_init(u, radius, field)
    named = [MPIX_Halo_named_field('temperature', field)]
    write (name, '(a,i0)') 'halo_calls.np', ranks  ! several runs may be at work in this folder
    call MPIX_Halo_write_checkpoint(grid, trim(name) // '.checkpoint', named, 17)
    u = 0
    call MPIX_Halo_read_checkpoint(grid, trim(name) // '.checkpoint', named, step)
    associate (lo => mine%lo, hi => mine%hi)
      call check(step == 17, 'the number of the step')
      call check(all(u(lo(1):hi(1), lo(2):hi(2)) == before(lo(1):hi(1), lo(2):hi(2))), 'what is read was written')
    end associate
    call MPIX_Halo_write_checkpoint(grid, trim(name) // '.checkpoint   ', named, 5000000000_int64)
    call MPIX_Halo_read_checkpoint(grid, trim(name) // '.checkpoint', named, long_step)
    call check(long_step == 5000000000_int64, 'a step of eight bytes, and blanks behind a path')
    call MPIX_Halo_write_vti(grid, trim(name) // '.pvti', named, origin=[1d0, 2d0, 0d0], spacing=[0.5d0, 0.5d0, 1d0])
    inquire (file=trim(name) // '.pvti', exist=there)
    call check(there, 'MPIX_Halo_write_vti')
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPIX_Halo_grid_free(grid)
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [3 * ranks, 5], grid)
    call MPIX_Halo_write_png(grid, trim(name) // '.png', field, 0d0, 1d0, colors=MPIX_HALO_BLUE_RED, ierror=code)
    call MPI_Error_class(code, class)
    if (class /= MPI_ERR_UNSUPPORTED_OPERATION) then  ! mpix may have been built without libpng
      call check(code == MPI_SUCCESS, 'MPIX_Halo_write_png succeeds')
      inquire (file=trim(name) // '.png', exist=there)
      call check(there, 'MPIX_Halo_write_png')
    end if
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL)
    call MPIX_Halo_grid_free(grid)
  end subroutine

  subroutine reports(ranks)
    integer, intent(in) :: ranks
    type(MPIX_Halo_grid) :: grid
    type(MPIX_Halo_exchange) :: exchange
    type(MPIX_Halo_field) :: field
    type(MPIX_Halo_step_report) :: report
    type(MPIX_Halo_box) :: mine
    integer, allocatable, target, asynchronous :: u(:)
    integer :: radius(-1:1, -1:1, -1:1), messages, fastest
    integer(int64) :: bytes
    real(8) :: seconds(0:2)
    character(len=2000) :: text
    subject = 'reports'
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [4 * ranks], grid)
    call MPIX_Halo_grid_local(grid, mine)
    allocate (u(mine%lo(1) - 1:mine%hi(1) + 1))
    u = 0
    call MPIX_Halo_radius_faces(1, radius)
    call MPIX_Halo_field_init(u, radius, field)
    call MPIX_Halo_exchange_create(grid, [field], MPIX_HALO_PACKED, exchange)
    call MPIX_Halo_sent(exchange, messages, bytes)
    call check(messages == count([own_rank > 0, own_rank < ranks - 1]), 'how many messages are sent')
    call check(bytes == 4 * messages, 'and how many bytes')
    call MPIX_Halo_measure(.true., exchange)
    call MPIX_Halo_start(exchange)
    call MPIX_Halo_finish(exchange)
    text = 'x'
    call MPIX_Halo_report(exchange, text)
    call check(index(text, 'packed') > 0 .and. text(2000:) == ' ', 'MPIX_Halo_report, and blanks behind it')
    call MPIX_Halo_report(exchange, text(1:5))
    call MPIX_Halo_compare_transfers(grid, [field], 2, seconds, fastest)
    call check(fastest >= 0 .and. fastest <= 2, 'MPIX_Halo_compare_transfers')
    call check(all(seconds >= 0) .and. seconds(fastest) > 0, 'its times')
    call MPIX_Halo_step_report_create(grid, 10, bytes, report)
    call MPIX_Halo_step_report_done(10, report)
    call MPIX_Halo_step_report_free(report)
    call check(.not. c_associated(report%address), 'the handle of a freed report is null')
    call MPIX_Halo_exchange_free(exchange)
    call MPIX_Halo_grid_free(grid)
  end subroutine

end module
