! SPDX-License-Identifier: BSD-3-Clause
!
! MPI_Psend_init and MPI_Precv_init without `info`, as the MPI library's own mpi_f08 declares them: around a ring, with
! `ierror` and without it, on whole arrays and on sections without gaps.
program init_without_info
  use mpi_f08
  use checks
  implicit none
  integer, parameter :: partitions = 6, each = 50, epochs = 5, poison = -77
  integer, asynchronous :: out(partitions * each, 3), in(partitions * each, 3)
  type(MPI_Request) :: sends(2), receives(2)
  integer :: ranks, right, left, epoch, p, i, code, length
  logical :: arrived
  character(len=MPI_MAX_ERROR_STRING) :: text

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, own_rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call system_clock(seed)
  seed = mod(seed, 1000000007_8)
  call MPI_Bcast(seed, 1, MPI_INTEGER8, 0, MPI_COMM_WORLD)
  right = mod(own_rank + 1, ranks)
  left = mod(own_rank + ranks - 1, ranks)

  subject = 'initialisation'
  code = -1
  call MPI_Psend_init(out(:, 1), partitions, int(each, MPI_COUNT_KIND), MPI_INTEGER, right, 1, MPI_COMM_WORLD, &
                      sends(1), code)
  call check(code == MPI_SUCCESS, 'MPI_Psend_init with ierror succeeds')
  code = -1
  call MPI_Precv_init(in(:, 1), partitions / 2, int(2 * each, MPI_COUNT_KIND), MPI_INTEGER, left, 1, MPI_COMM_WORLD, &
                      receives(1), code)
  call check(code == MPI_SUCCESS, 'MPI_Precv_init with ierror succeeds')
  ! Columns 2 and 3.
  call MPI_Psend_init(out(:, 2:), 2, int(partitions * each, MPI_COUNT_KIND), MPI_INTEGER, right, 2, MPI_COMM_WORLD, &
                      sends(2))
  call MPI_Precv_init(in(:, 2:), 1, int(2 * partitions * each, MPI_COUNT_KIND), MPI_INTEGER, left, 2, MPI_COMM_WORLD, &
                      receives(2))

  do epoch = 1, epochs
    write (subject, '(a,i0)') 'epoch ', epoch
    do i = 1, 3
      call fill(out(:, i), key_of(epoch, own_rank, i))
    end do
    in = poison
    call MPI_Startall(2, receives)
    call MPI_Startall(2, sends)
    call MPI_Parrived(receives(2), 0, arrived)
    do p = partitions - 1, 0, -1
      call MPI_Pready(p, sends(1))
    end do
    call MPI_Pready_range(0, 1, sends(2))
    arrived = .false.
    do while (.not. arrived)
      call MPI_Parrived(receives(1), 0, arrived)
    end do
    call check_data(in(:, 1), key_of(epoch, left, 1), 1, 2 * each)
    call MPI_Waitall(2, receives, MPI_STATUSES_IGNORE)
    call MPI_Waitall(2, sends, MPI_STATUSES_IGNORE)
    do i = 1, 3
      call check_data(in(:, i), key_of(epoch, left, i), 1, partitions * each)
    end do
  end do

  subject = 'the end'
  do i = 1, 2
    call MPI_Request_free(sends(i))
    call MPI_Request_free(receives(i))
    call check(sends(i) == MPI_REQUEST_NULL .and. receives(i) == MPI_REQUEST_NULL, 'a freed request is null')
  end do
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPI_Psend_init(out(:, 1), -1, int(each, MPI_COUNT_KIND), MPI_INTEGER, right, 1, MPI_COMM_WORLD, sends(1), code)
  call MPI_Error_string(code, text, length)
  call check(index(text, 'partitions is -1; it must be at least 0') > 0, 'the error is told in the words of mpix')
  call MPI_Finalize()
  if (own_rank == 0) print '(a)', 'passed'

contains

  pure integer function key_of(epoch, rank, column)
    integer, intent(in) :: epoch, rank, column
    key_of = (epoch * 100 + rank) * 10 + column
  end function

end program
