! SPDX-License-Identifier: BSD-3-Clause
!
! Partitioned requests whose buffers are arrays where kernels run, around a ring. The epochs are run by the host, by a
! kernel for each of them, by one for all (executor.cpp), or, on a GPU, by a stream. Every element is compared.
! `requests --seed N` repeats a failure; `--wrong value` and `--wrong unsent` show that an element that is wrong is found.
module requests_of_kernels
  use, intrinsic :: iso_c_binding
  use mpi_f08
  use mpix
  use checks
  use executors
  implicit none

  integer, parameter :: epochs = 6, wrong_epoch = 2
  integer, parameter :: by_host = 1, by_kernels = 2, by_one_kernel = 3, by_stream = 4
  character(len=40), parameter :: names(4) = [character(len=40) :: 'by the host', 'by a kernel for each epoch', &
                                              'by one kernel for all epochs', 'in the order of a stream']

  type :: ring
    type(MPI_Request) :: both(2)          ! send, receive
    type(MPIX_Prequest) :: send, receive
    type(two_messages) :: of              ! with images for all epochs
    integer(c_size_t) :: bytes            ! of a message
  end type

contains

  ! Messages of sends * receives * each integers, in arrays that have a column for each partition.
  subroutine make(t, sends, receives, each, tag)
    type(ring), intent(out) :: t
    integer, intent(in) :: sends, receives, each, tag
    integer, pointer, contiguous, asynchronous :: out(:, :), in(:, :)
    integer :: ranks
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    t%bytes = 4_c_size_t * sends * receives * each
    t%of = two_messages(executor_allocate(t%bytes), executor_allocate(t%bytes), &
                        executor_allocate(t%bytes * epochs), executor_allocate(t%bytes * epochs), &
                        t%bytes, sends, receives)
    call c_f_pointer(t%of%out, out, [receives * each, sends])
    call c_f_pointer(t%of%in, in, [sends * each, receives])
    call MPI_Psend_init(out, sends, int(receives * each, MPI_COUNT_KIND), MPI_INTEGER, mod(own_rank + 1, ranks), tag, &
                        MPI_COMM_WORLD, MPI_INFO_NULL, t%both(1))
    call MPI_Precv_init(in, receives, int(sends * each, MPI_COUNT_KIND), MPI_INTEGER, mod(own_rank + ranks - 1, ranks), &
                        tag, MPI_COMM_WORLD, MPI_INFO_NULL, t%both(2))
  end subroutine

  subroutine export_both(t)
    type(ring), intent(inout) :: t
    type(MPI_Info) :: info
    call MPI_Info_create(info)
    if (executor_is_gpu() == 0) call MPI_Info_set(info, 'mpix_device', 'host')
    call MPIX_Prequest_create(t%both(1), info, t%send)
    call MPIX_Prequest_create(t%both(2), info, t%receive)
    call MPI_Info_free(info)
  end subroutine

  subroutine unmake(t)
    type(ring), intent(inout) :: t
    call MPIX_Prequest_free(t%send)
    call MPIX_Prequest_free(t%receive)
    call MPI_Request_free(t%both(1))
    call MPI_Request_free(t%both(2))
    call executor_release(t%of%out)
    call executor_release(t%of%in)
    call executor_release(t%of%given)
    call executor_release(t%of%seen)
  end subroutine

  ! What is sent in each epoch goes from the images `given` to the buffer, and what comes to the images `seen`.
  subroutine run(t, way, stream)
    type(ring), intent(inout) :: t
    integer, intent(in) :: way
    integer(c_intptr_t), intent(in) :: stream
    type(two_messages) :: now
    integer :: epoch, p, blocks, threads
    logical :: arrived
    blocks = 1 + below(4)
    threads = merge(32 * (1 + below(4)), 1 + below(2), executor_is_gpu() /= 0)
    now = t%of
    do epoch = 1, epochs
      now%given = behind(t%of%given, (epoch - 1) * t%bytes)
      now%seen = behind(t%of%seen, (epoch - 1) * t%bytes)
      if (epoch == 1 .or. way == by_host .or. way == by_kernels) call MPI_Startall(2, t%both)
      if (epoch == 1 .and. match_first) call MPIX_Pbuf_prepare_all(2, t%both)
      select case (way)
      case (by_host)
        call executor_copy(now%out, now%given, t%bytes, stream)
        call executor_synchronise(stream)
        do p = now%sends - 1, 0, -1
          call MPI_Pready(p, t%both(1))
        end do
        arrived = .false.
        do while (.not. arrived)
          call MPI_Parrived(t%both(2), 0, arrived)
        end do
      case (by_kernels)
        call succeed(run_message_epochs(now, t%send%address, t%receive%address, 1, blocks, threads))
      case (by_one_kernel)
        if (epoch == 1) call succeed(run_message_epochs(now, t%send%address, t%receive%address, epochs, 1, threads))
      case (by_stream)
        call MPIX_Startall_enqueue(2, t%both, stream)
        call executor_copy(now%out, now%given, t%bytes, stream)
        call MPIX_Pready_enqueue(0, t%both(1), stream)
        if (now%sends > 1) call MPIX_Pready_range_enqueue(1, now%sends - 1, t%both(1), stream)
        call MPIX_Pwaitall_enqueue(2, t%both, stream)
        call executor_copy(now%seen, now%in, t%bytes, stream)
        if (epoch == epochs) call executor_synchronise(stream)
      end select
      if (epoch == epochs .or. way == by_host .or. way == by_kernels) call MPI_Waitall(2, t%both, MPI_STATUSES_IGNORE)
      if (way == by_host) call executor_copy(now%seen, now%in, t%bytes, stream)
    end do
  end subroutine

  subroutine succeed(failed)
    integer(c_int), intent(in) :: failed
    call check(failed == 0, 'all calls of the kernel succeed')
  end subroutine

end module

program requests
  use requests_of_kernels
  implicit none
  integer :: ranks, left, n

  call open_executor(ranks)
  left = mod(own_rank + ranks - 1, ranks)
  do n = 1, 4
    call run_case(1 + common(8), 1 + common(8), 1 + common(40))
  end do
  n = 5
  call run_case(4, 2, 65536)
  n = 6
  call run_case(1, 3, 100000)
  call close_executor

contains

  subroutine run_case(sends, receives, each)
    integer, intent(in) :: sends, receives, each
    type(ring) :: t
    integer, pointer :: words(:, :)
    type(c_ptr) :: images
    integer(c_intptr_t) :: stream
    integer :: way, epoch
    character(len=16) :: path
    call make(t, sends, receives, each, n)
    images = executor_allocate_on_host(t%bytes * epochs)
    call c_f_pointer(images, words, [sends * receives * each, epochs])
    stream = executor_stream()
    do way = by_host, merge(by_stream, by_one_kernel, executor_is_gpu() /= 0)
      write (subject, '(5(a,i0),2a)') 'case ', n, ', ', sends, ' to ', receives, ' partitions of ', t%bytes, &
             ' bytes, ', epochs, ' epochs ', trim(names(way))
      if (way == by_kernels) call export_both(t)  ! requests of the host alone come first
      do epoch = 1, epochs
        call fill(words(:, epoch), key_of(way, epoch, own_rank))
      end do
      if (own_rank == 0 .and. fault == 'value') words(1, wrong_epoch) = words(1, wrong_epoch) + 1
      call executor_copy(t%of%given, images, t%bytes * epochs, stream)
      call executor_synchronise(stream)
      words = -1
      call executor_copy(t%of%seen, images, t%bytes * epochs, stream)
      call executor_copy(t%of%in, images, t%bytes, stream)
      call executor_synchronise(stream)
      call run(t, way, stream)
      if (own_rank == 0 .and. fault == 'unsent') &
        call executor_copy(behind(t%of%seen, t%bytes * wrong_epoch - 4), t%of%out, 4_c_size_t, stream)
      call executor_copy(images, t%of%seen, t%bytes * epochs, stream)
      call executor_synchronise(stream)
      do epoch = 1, epochs
        call check_data(words(:, epoch), key_of(way, epoch, left), 1, size(words, 1))
      end do
      call MPIX_Request_path(t%both(1), path)
      call report(trim(subject) // ', path ' // trim(path))
    end do
    call executor_release_on_host(images)
    call unmake(t)
  end subroutine

  ! A number that only one case, way, epoch and rank have.
  integer function key_of(way, epoch, rank)
    integer, intent(in) :: way, epoch, rank
    key_of = ((n * 10 + way) * 100 + epoch) * 1000 + rank
  end function

end program
