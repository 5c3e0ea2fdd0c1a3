! SPDX-License-Identifier: BSD-3-Clause
!
! Exchanges in the order of a stream, and inside kernels, by the module mpix_halo: of random fields in GPU memory, or in
! host memory, where the calling thread does the part of the library's kernels, and host threads play the program's
! (tests/fortran/kernels/executor.cpp). `gpu --seed N` repeats a failure; `--wrong value` and `--wrong unsent` show that a
! cell that is wrong is found.
module halo_gpu_cases
  use, intrinsic :: iso_c_binding
  use mpi_f08
  use checks
  use executors
  use halo_cells
  use halo_gpu_fields
  use mpix_halo
  implicit none
  private
  public :: in_the_order_of_a_stream, inside_kernels

  integer :: key = 0
  integer, parameter :: wrong_step = 2

contains

  ! All steps are enqueued before the host looks at any of them.
  subroutine in_the_order_of_a_stream(exchange, u, stream, steps)
    type(MPIX_Halo_stream_exchange), intent(in) :: exchange
    type(gpu_field), intent(in) :: u(:)
    integer(c_intptr_t), intent(in) :: stream
    integer, intent(in) :: steps
    type(c_ptr) :: given(size(u)), seen(size(u)), poisoned(size(u)), other_seen(size(u)), address
    integer :: step, f, now
    character(len=len(subject)) :: about
    about = subject
    do f = 1, size(u)
      given(f) = executor_allocate_on_host(u(f)%bytes * steps)
      seen(f) = executor_allocate_on_host(u(f)%bytes * steps)
      other_seen(f) = executor_allocate_on_host(u(f)%bytes * steps)
      poisoned(f) = executor_allocate_on_host(u(f)%bytes)
      call fill_image(u(f), poisoned(f))
      do step = 1, steps
        call fill_image(u(f), image(given(f), u(f), step), key + 10 * step + f)
      end do
    end do
    if (own_rank == 0 .and. fault == 'value') call spoil(image(given(1), u(1), wrong_step), own_cell(u(1)))
    do step = 1, steps
      do f = 1, size(u)
        now = merge(2 - mod(step, 2), 1, u(f)%two)
        call MPIX_Halo_stream_data(f, exchange, address)
        call check(c_associated(address, u(f)%memory(now)), 'MPIX_Halo_stream_data')
        call executor_copy(address, image(given(f), u(f), step), u(f)%bytes, stream)
        if (u(f)%two) call executor_copy(u(f)%memory(3 - now), poisoned(f), u(f)%bytes, stream)
      end do
      if (common(2) == 0) then
        call MPIX_Halo_stream_run(exchange, stream)
      else
        call MPIX_Halo_stream_start(exchange, stream)
        call MPIX_Halo_stream_finish(exchange, stream)
      end if
      do f = 1, size(u)
        now = merge(2 - mod(step, 2), 1, u(f)%two)
        if (own_rank == 0 .and. fault == 'unsent' .and. step == wrong_step .and. f == 1) &
          call executor_copy(behind(u(f)%memory(now), u(f)%bytes - u(f)%cell_bytes), &
                             behind(given(f), own_cell(u(f))), u(f)%cell_bytes, stream)
        call executor_copy(image(seen(f), u(f), step), u(f)%memory(now), u(f)%bytes, stream)
        if (u(f)%two) call executor_copy(image(other_seen(f), u(f), step), u(f)%memory(3 - now), u(f)%bytes, stream)
      end do
      call MPIX_Halo_stream_swap(exchange)
    end do
    call executor_synchronise(stream)
    call MPIX_Halo_stream_check(exchange)
    do f = 1, size(u)
      do step = 1, steps
        write (subject, '(a,2(a,i0))') trim(about), ', field ', f, ', step ', step
        call verify_image(u(f), image(seen(f), u(f), step), key + 10 * step + f)
        if (u(f)%two) call verify_poison(u(f), image(other_seen(f), u(f), step))
      end do
      call executor_release_on_host(given(f))
      call executor_release_on_host(seen(f))
      call executor_release_on_host(other_seen(f))
      call executor_release_on_host(poisoned(f))
    end do
    key = key + 10 * steps + 10
    subject = about
  end subroutine

  ! `used`: the allocation of the first step, of fields that have two. The kernel computes the values of each step, and
  ! keeps what the field has then, with its ghost cells.
  subroutine inside_kernels(exchange, u, steps, used, by_boxes)
    type(MPIX_Halo_kernel_exchange), intent(in) :: exchange
    type(gpu_field), intent(in) :: u(:)
    integer, intent(in) :: steps
    integer, intent(inout) :: used
    logical, intent(in) :: by_boxes
    type(MPIX_Halo_device_exchange) :: device
    type(field_images) :: images(size(u))
    type(c_ptr) :: on_host(size(u)), address
    integer(c_intptr_t) :: stream
    integer :: step, f, m, blocks, threads
    logical :: flag
    character(len=len(subject)) :: about
    about = subject
    stream = executor_stream()
    do f = 1, size(u)
      images(f)%given = executor_allocate(u(f)%bytes * max(steps, 1))
      images(f)%seen = executor_allocate(u(f)%bytes * max(steps, 1))
      images(f)%bytes = u(f)%bytes
      images(f)%cell_bytes = u(f)%cell_bytes
      images(f)%first = u(f)%lo - 1
      images(f)%cells = u(f)%n
      on_host(f) = executor_allocate_on_host(u(f)%bytes * (steps + 1))
      do step = 1, steps
        call fill_image(u(f), image(on_host(f), u(f), step), key + 10 * step + f)
      end do
      if (own_rank == 0 .and. fault == 'value' .and. f == 1 .and. steps >= wrong_step) &
        call spoil(image(on_host(f), u(f), wrong_step), own_cell(u(f)))
      call executor_copy(images(f)%given, on_host(f), u(f)%bytes * steps, stream)
      call executor_synchronise(stream)
      call fill_image(u(f), on_host(f))
      call executor_copy(images(f)%seen, on_host(f), u(f)%bytes, stream)
      do m = 1, merge(2, 1, u(f)%two)
        call executor_copy(u(f)%memory(m), on_host(f), u(f)%bytes, stream)
      end do
    end do
    call executor_synchronise(stream)

    call MPIX_Halo_kernel_start(steps, exchange, device)
    call MPIX_Halo_kernel_active(exchange, flag)
    call check(flag, 'it is active')
    blocks = 1 + below(4)
    threads = merge(32 * (1 + below(4)), 1 + below(2), executor_is_gpu() /= 0)
    call check(run_halo_steps(device, size(u), images, blocks, threads, merge(1, 0, by_boxes)) == 0, &
               'all calls of the kernel succeed')
    call MPIX_Halo_kernel_finish(exchange)
    call MPIX_Halo_kernel_active(exchange, flag)
    call check(.not. flag, 'it is not active any more')

    if (mod(steps, 2) /= 0) used = 3 - used
    do f = 1, size(u)
      call MPIX_Halo_kernel_data(f, exchange, address)
      call check(c_associated(address, u(f)%memory(merge(used, 1, u(f)%two))), 'MPIX_Halo_kernel_data')
      if (own_rank == 0 .and. fault == 'unsent' .and. f == 1 .and. steps >= wrong_step) &
        call executor_copy(image(images(f)%seen, u(f), wrong_step), behind(images(f)%given, own_cell(u(f))), &
                           u(f)%cell_bytes, stream)
      call executor_copy(on_host(f), images(f)%seen, u(f)%bytes * steps, stream)
      call executor_synchronise(stream)
      do step = 1, steps
        write (subject, '(a,2(a,i0))') trim(about), ', field ', f, ', step ', step
        call verify_image(u(f), image(on_host(f), u(f), step), key + 10 * step + f)
      end do
      call executor_release_on_host(on_host(f))
      call executor_release(images(f)%given)
      call executor_release(images(f)%seen)
    end do
    key = key + 10 * steps + 10
    subject = about
  end subroutine

  ! The first one is at the address.
  type(c_ptr) function image(address, u, number)
    type(c_ptr), intent(in) :: address
    type(gpu_field), intent(in) :: u
    integer, intent(in) :: number
    image = behind(address, (number - 1) * u%bytes)
  end function

  ! Where the box's last cell is in an image.
  integer(c_size_t) function own_cell(u)
    type(gpu_field), intent(in) :: u
    integer :: at(3)
    at = u%whole%mine%hi - u%lo
    own_cell = ((at(3) * u%n(2) + at(2)) * u%n(1) + at(1)) * u%cell_bytes
  end function

  subroutine spoil(address, at)
    type(c_ptr), intent(in) :: address
    integer(c_size_t), intent(in) :: at
    real(8), pointer :: value
    call c_f_pointer(behind(address, at), value)
    value = value + 1
  end subroutine

end module

program halo_gpu
  use, intrinsic :: iso_c_binding
  use mpi_f08
  use checks
  use executors
  use halo_cells
  use halo_gpu_cases
  use halo_gpu_fields
  use mpix_halo
  implicit none
  integer, parameter :: cases = 6
  integer(c_intptr_t), parameter :: null_stream = 0
  integer :: ranks, n, code, class, length, f
  type(MPIX_Halo_grid) :: grid
  type(MPIX_Halo_field) :: fields(2)
  type(gpu_field) :: u(2)
  character(len=MPI_MAX_ERROR_STRING) :: text

  call open_executor(ranks)
  do n = 0, cases
    ! The first case has nothing but errors and questions; in the others errors end the program.
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, merge(MPI_ERRORS_RETURN, MPI_ERRORS_ARE_FATAL, n == 0))
    u(:)%whole = random_domain(ranks)
    do f = 1, 2
      call random_radius(u(f)%whole%axes, u(f)%radius)
    end do
    if (n <= 1) then
      ! Of which it is known what they send.
      u(:)%whole = domain(axes=2, extent=[11, 9, 1], periodic=[.true., .false., .false.])
      call MPIX_Halo_radius_faces(1, u(1)%radius)
      call MPIX_Halo_radius_all(2, u(2)%radius)
      u(1)%radius(:, :, [-1, 1]) = 0
      u(2)%radius(:, :, [-1, 1]) = 0
    end if
    associate (whole => u(1)%whole)
      call MPIX_Halo_grid_create(MPI_COMM_WORLD, whole%extent(1:whole%axes), grid, whole%periodic(1:whole%axes))
      call MPIX_Halo_grid_local(grid, u(1)%whole%mine)
      u(2)%whole%mine = u(1)%whole%mine
    end associate
    u(:)%two = [.true., .false.]
    do f = 1, 2
      call describe(u(f), fields(f))
    end do
    call stream_case
    call kernel_case
    do f = 1, 2
      call release(u(f))
    end do
    call MPIX_Halo_grid_free(grid)
  end do
  call close_executor

contains

  subroutine stream_case
    type(MPIX_Halo_stream_exchange) :: exchange
    type(MPIX_Halo_box) :: inner, outer(6)
    type(c_ptr) :: address
    integer(c_intptr_t) :: stream
    integer :: boxes, b, cells, messages, tile(3)
    integer(c_int64_t) :: bytes
    write (subject, '(a,i0,a)') 'case ', n, ', an exchange in the order of a stream'
    if (n == 0) then
      call MPIX_Halo_stream_create(grid, fields, exchange, tile=[4, -4], ierror=code)
      call expect(MPI_ERR_ARG, 'tile(2) is -4; it is at least 0')
    end if
    tile = [4, 1 + common(4), common(4)]
    call MPIX_Halo_stream_create(grid, fields, exchange, tile=tile(1:u(1)%whole%axes), direct=mod(n, 2) == 0)
    call MPIX_Halo_stream_interior(exchange, inner)
    call MPIX_Halo_stream_boundary(exchange, outer, boxes)
    cells = product(max(inner%hi - inner%lo + 1, 0))
    do b = 1, boxes
      cells = cells + product(max(outer(b)%hi - outer(b)%lo + 1, 0))
    end do
    associate (mine => u(1)%whole%mine)
      call check(cells == product(mine%hi - mine%lo + 1), 'the interior and the boundary have the cells of the box')
    end associate
    if (n > 0) then
      call MPIX_Halo_stream_measure(.true., exchange)
      stream = executor_stream()
      call in_the_order_of_a_stream(exchange, u, stream, 6)
      call in_the_order_of_a_stream(exchange, u, null_stream, 4)
      call MPIX_Halo_stream_report(exchange, text)
      call check(index(text, '10 finished') > 0, 'MPIX_Halo_stream_report')
    else
      call MPIX_Halo_stream_finish(exchange, null_stream, code)
      call expect(MPI_ERR_REQUEST, 'MPIX_Halo_stream_finish: ')
      call MPIX_Halo_stream_sent(exchange, messages, bytes)
      call check((messages > 0) .eqv. (ranks > 1), 'messages to the neighbours')
      call MPIX_Halo_stream_data(3, 1, exchange, address, code)
      call expect(MPI_ERR_ARG, 'field is 3; there are 2')
    end if
    call MPIX_Halo_stream_free(exchange)
    if (n == 0) then
      call MPIX_Halo_stream_swap(exchange, code)
      call expect(MPI_ERR_ARG, 'exchange is null')
    end if
    call report(trim(subject))
  end subroutine

  subroutine kernel_case
    type(MPIX_Halo_kernel_exchange) :: exchange
    type(MPIX_Halo_device_exchange) :: device
    type(c_ptr) :: address
    integer :: messages, used, activation, tile(3)
    integer(c_int64_t) :: bytes
    write (subject, '(a,i0,a)') 'case ', n, ', an exchange inside kernels'
    if (n == 0) then
      call MPIX_Halo_kernel_create(grid, fields, exchange, sets=1, ierror=code)
      call expect(MPI_ERR_ARG, 'sets is 1; it is 2 to 64')
    end if
    tile = [3, 2 + common(3), common(4)]
    call MPIX_Halo_kernel_create(grid, fields, exchange, tile=tile(1:u(1)%whole%axes), sets=2 + common(3), &
                                 box_waits=.true.)
    if (n > 0) then
      call MPIX_Halo_kernel_measure(.true., exchange)
      used = 1
      do activation = 1, 3
        call inside_kernels(exchange, u, merge(5, common(12), activation == 1), used, by_boxes=common(2) == 0)
      end do
      call MPIX_Halo_kernel_report(exchange, text)
      call check(index(text, 'finished') > 0, 'MPIX_Halo_kernel_report')
    else
      call MPIX_Halo_kernel_sent(exchange, messages, bytes)
      call check((messages > 0) .eqv. (ranks > 1), 'messages to the neighbours')
      call MPIX_Halo_kernel_start(-1, exchange, device, code)
      call expect(MPI_ERR_ARG, 'steps is -1; it is at least 0')
      call MPIX_Halo_kernel_data(1, 2, exchange, address, code)
      call expect(MPI_ERR_ARG, 'i is 2; this rank has 1 boxes')
    end if
    call MPIX_Halo_kernel_free(exchange)
    if (n == 0) then
      call MPIX_Halo_kernel_finish(exchange, code)
      call expect(MPI_ERR_ARG, 'exchange is null')
    end if
    call report(trim(subject))
  end subroutine

  subroutine expect(wanted, words)
    integer, intent(in) :: wanted
    character(len=*), intent(in) :: words
    call MPI_Error_class(code, class)
    call MPI_Error_string(code, text, length)
    if (class /= wanted .or. index(text, words) == 0) print '(a,i0,2a)', 'class ', class, ': ', trim(text)
    call check(class == wanted .and. index(text, words) > 0, 'the error says: ' // words)
  end subroutine

end program
