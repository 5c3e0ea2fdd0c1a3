! SPDX-License-Identifier: BSD-3-Clause
!
! Exchanges in the order of a stream, and inside kernels, by the module mpix_halo: of fields in host memory, where the
! calling thread does the part of the library's kernels, and host threads play the program's (tests/halo/c/player.cpp).
module halo_played
  use, intrinsic :: iso_c_binding
  use checks, only: check, own_rank, subject
  use halo_cells
  use mpix_halo
  implicit none

  integer, parameter :: nx = 11, ny = 9, most = 1000003
  real(8), parameter :: poison = -9
  type(MPIX_Halo_box) :: mine
  integer :: key = 0, looks = 0

  type, bind(C) :: box_in_c
    integer(c_int64_t) :: lo(3), hi(3)
  end type
  type, bind(C) :: computation
    integer(c_int) :: fields
    type(c_funptr) :: fill, look
  end type

  interface
    integer(c_int) function play_steps(x, what, groups, threads, by_boxes) bind(C)
      import :: c_int, computation, MPIX_Halo_device_exchange
      type(MPIX_Halo_device_exchange), value :: x
      type(computation), value :: what
      integer(c_int), value :: groups, threads, by_boxes
    end function
  end interface

contains

  function array_at(address) result(u)
    type(c_ptr), intent(in) :: address
    real(8), pointer :: u(:, :), from_one(:, :)
    call c_f_pointer(address, from_one, mine%hi(1:2) - mine%lo(1:2) + 3)
    u(mine%lo(1) - 1:, mine%lo(2) - 1:) => from_one
  end function

  ! Several threads call it, for a tile each.
  recursive subroutine fill(field, values, tile, step) bind(C, name="")
    integer(c_int), value :: field
    type(c_ptr), value :: values
    type(box_in_c), value :: tile
    integer(c_int64_t), value :: step
    real(8), pointer :: u(:, :)
    integer :: x, y
    u => array_at(values)
    do y = int(tile%lo(2)) + 1, int(tile%hi(2))
      do x = int(tile%lo(1)) + 1, int(tile%hi(1))
        u(x, y) = cell_value(key + int(step) + field, 1, [x, y, 1], most)
      end do
    end do
  end subroutine

  ! Periodic along the first axis; across faces, so that the corners stay as they are.
  recursive subroutine look(field, values, step) bind(C, name="")
    integer(c_int), value :: field
    type(c_ptr), value :: values
    integer(c_int64_t), value :: step
    real(8), pointer :: u(:, :)
    real(8) :: wanted
    integer :: x, y
    u => array_at(values)
    do y = lbound(u, 2), ubound(u, 2)
      do x = lbound(u, 1), ubound(u, 1)
        wanted = cell_value(key + int(step) + field, 1, [modulo(x - 1, nx) + 1, y, 1], most)
        if (y < 1 .or. y > ny) wanted = poison
        if ((x < mine%lo(1) .or. x > mine%hi(1)) .and. (y < mine%lo(2) .or. y > mine%hi(2))) wanted = poison
        call check(nint(u(x, y)) == nint(wanted), 'every cell and ghost cell is right')
      end do
    end do
    looks = looks + 1
  end subroutine

end module

program halo_gpu
  use mpi_f08
  use halo_played
  implicit none
  integer :: ranks, code, class, faces(-1:1, -1:1, -1:1), length
  type(MPIX_Halo_grid) :: grid
  type(MPIX_Halo_field) :: field
  real(8), pointer, contiguous :: u(:, :), v(:, :)
  character(len=MPI_MAX_ERROR_STRING) :: text

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, own_rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, periodic=[.true., .false.])
  call MPIX_Halo_grid_local(grid, mine)
  allocate (u(mine%lo(1) - 1:mine%hi(1) + 1, mine%lo(2) - 1:mine%hi(2) + 1))
  allocate (v, mold=u)
  call MPIX_Halo_radius_faces(1, faces)
  call MPIX_Halo_field_init(u, faces, field, other=v)
  call in_the_order_of_a_stream
  call inside_kernels
  call MPIX_Halo_grid_free(grid)
  call MPI_Finalize()
  if (own_rank == 0) print '(a)', 'passed'

contains

  subroutine in_the_order_of_a_stream
    integer(c_intptr_t), parameter :: stream = 0
    type(MPIX_Halo_stream_exchange) :: exchange
    type(MPIX_Halo_box) :: inner, outer(6)
    type(c_ptr) :: address
    integer :: step, boxes, n, cells, messages
    integer(c_int64_t) :: bytes
    subject = 'an exchange in the order of a stream'
    call MPIX_Halo_stream_create(grid, [field], exchange, tile=[4, -4], ierror=code)
    call expect(MPI_ERR_ARG, 'tile(2) is -4; it is at least 0')
    call MPIX_Halo_stream_create(grid, [field], exchange, tile=[4, 4], direct=.true.)
    call MPIX_Halo_stream_sent(exchange, messages, bytes)
    call check((messages > 0) .eqv. (ranks > 1), 'messages to the neighbours')
    call MPIX_Halo_stream_interior(exchange, inner)
    call MPIX_Halo_stream_boundary(exchange, outer, boxes)
    cells = product(max(inner%hi - inner%lo + 1, 0))
    do n = 1, boxes
      cells = cells + product(outer(n)%hi - outer(n)%lo + 1)
    end do
    call check(cells == product(mine%hi - mine%lo + 1), 'the interior and the boundary have the cells of the box')
    call MPIX_Halo_stream_finish(exchange, stream, code)
    call expect(MPI_ERR_REQUEST, 'MPIX_Halo_stream_finish: ')
    call MPIX_Halo_stream_measure(.true., exchange)
    do step = 1, 6
      key = 100 * step
      u = poison
      v = poison
      call MPIX_Halo_stream_data(1, exchange, address)
      call check(c_associated(address, first_of(u)) .eqv. mod(step, 2) == 1, 'MPIX_Halo_stream_data')
      call fill(0, address, whole_box(), 0_c_int64_t)
      if (step > 3) then
        call MPIX_Halo_stream_run(exchange, stream)
      else
        call MPIX_Halo_stream_start(exchange, stream)
        call MPIX_Halo_stream_finish(exchange, stream)
      end if
      call MPIX_Halo_stream_check(exchange)
      call look(0, address, 0_c_int64_t)
      call MPIX_Halo_stream_swap(exchange)
    end do
    call MPIX_Halo_stream_report(exchange, text)
    call check(index(text, '6 finished') > 0, 'MPIX_Halo_stream_report')
    call MPIX_Halo_stream_data(2, 1, exchange, address, code)
    call expect(MPI_ERR_ARG, 'field is 2; there are 1')
    call MPIX_Halo_stream_free(exchange)
    call MPIX_Halo_stream_swap(exchange, code)
    call expect(MPI_ERR_ARG, 'exchange is null')
  end subroutine

  subroutine inside_kernels
    integer, parameter :: steps = 5
    type(MPIX_Halo_kernel_exchange) :: exchange
    type(MPIX_Halo_device_exchange) :: device
    type(c_ptr) :: address
    integer :: messages
    integer(c_int64_t) :: bytes
    logical :: flag
    subject = 'an exchange inside kernels'
    call MPIX_Halo_kernel_create(grid, [field], exchange, sets=1, ierror=code)
    call expect(MPI_ERR_ARG, 'sets is 1; it is at least 2')
    call MPIX_Halo_kernel_create(grid, [field], exchange, tile=[3, 3], box_waits=.true.)
    u = poison
    v = poison
    key = 1000
    looks = 0
    call MPIX_Halo_kernel_measure(.true., exchange)
    call MPIX_Halo_kernel_start(steps, exchange, device)
    call MPIX_Halo_kernel_active(exchange, flag)
    call check(flag, 'it is active')
    code = play_steps(device, computation(1, c_funloc(fill), c_funloc(look)), 2, 2, 1)
    call check(code == MPI_SUCCESS, 'the played kernel succeeds')
    call MPIX_Halo_kernel_finish(exchange)
    call MPIX_Halo_kernel_active(exchange, flag)
    call check(.not. flag .and. looks == steps, 'all steps were looked at')
    call MPIX_Halo_kernel_data(1, exchange, address)
    call check(c_associated(address, first_of(v)), 'the allocation after an odd number of steps')
    call MPIX_Halo_kernel_sent(exchange, messages, bytes)
    call check((messages > 0) .eqv. (ranks > 1), 'messages to the neighbours')
    call MPIX_Halo_kernel_report(exchange, text)
    call check(index(text, 'finished') > 0, 'MPIX_Halo_kernel_report')
    call MPIX_Halo_kernel_start(-1, exchange, device, code)
    call expect(MPI_ERR_ARG, 'steps is -1; it is at least 0')
    call MPIX_Halo_kernel_data(1, 2, exchange, address, code)
    call expect(MPI_ERR_ARG, 'i is 2; this rank has 1 boxes')
    call MPIX_Halo_kernel_free(exchange)
    call MPIX_Halo_kernel_finish(exchange, code)
    call expect(MPI_ERR_ARG, 'exchange is null')
  end subroutine

  type(c_ptr) function first_of(array)
    real(8), target, intent(in) :: array(*)
    first_of = c_loc(array)
  end function

  type(box_in_c) function whole_box()
    whole_box = box_in_c(mine%lo - 1, mine%hi)
  end function

  subroutine expect(wanted, words)
    integer, intent(in) :: wanted
    character(len=*), intent(in) :: words
    call MPI_Error_class(code, class)
    call MPI_Error_string(code, text, length)
    if (class /= wanted .or. index(text, words) == 0) print '(a,i0,2a)', 'class ', class, ': ', trim(text)
    call check(class == wanted .and. index(text, words) > 0, 'the error says: ' // words)
  end subroutine

end program
