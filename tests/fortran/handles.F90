! SPDX-License-Identifier: BSD-3-Clause
!
! Handles as integers: by the module mpi, or by mpif.h with external procedures (INCLUDE_MPIF). A smaller program than
! that of mpi_f08.
program handles
#if !defined(INCLUDE_MPIF)
#if MPIX_LIBRARY_IS_PARTITIONED
  use mpi, with_integer_flag => MPI_Parrived  ! whose flag MPICH 4.0 declares as an integer
#else
  use mpi
  use mpix
#endif
#endif
  use checks
  implicit none
#if defined(INCLUDE_MPIF)
  include 'mpif.h'
  ! As MPI-4 has it; mpif.h of an older MPI says nothing of these.
  external :: MPI_Psend_init, MPI_Precv_init, MPI_Pready, MPI_Pready_range, MPI_Pready_list, MPI_Parrived
#elif MPIX_LIBRARY_IS_PARTITIONED
  external :: MPI_Parrived
#endif
  integer, parameter :: sends = 6, receives = 4, elements = 240, poison = -77, tag = 5, ordinary_tag = 6
  integer, target, asynchronous :: out(elements), in(elements)
  integer :: code, class, provided, size, right, left, comm, requests(5), epoch, way, i, p, key, length
  integer :: token_out, token_in, status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 5), index, outcount, indices(5), &
                                         count
  logical :: flag, done(5)
  logical, parameter :: active(5) = [.true., .true., .false., .true., .true.]
  integer(MPI_COUNT_KIND) :: n
  character(len=MPI_MAX_ERROR_STRING) :: text

  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, code)
  call check(code == MPI_SUCCESS .and. provided == MPI_THREAD_FUNNELED, 'MPI_Init_thread gives what was asked for')
  call MPI_Query_thread(provided, code)
  call check(provided == MPI_THREAD_FUNNELED, 'MPI_Query_thread gives what was asked for')
  call MPI_Comm_rank(MPI_COMM_WORLD, own_rank, code)
  call system_clock(seed)
  seed = mod(seed, 1000000007_8)
  call MPI_Bcast(seed, 1, MPI_INTEGER8, 0, MPI_COMM_WORLD, code)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, 0, comm, code)
  call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, code)
  call MPI_Comm_size(comm, size, code)
  right = mod(own_rank + 1, size)
  left = mod(own_rank + size - 1, size)
  requests = MPI_REQUEST_NULL
  n = elements / sends
  call MPI_Psend_init(out, sends, n, MPI_INTEGER, right, tag, comm, MPI_INFO_NULL, requests(1), code)
  call check(code == MPI_SUCCESS, 'MPI_Psend_init succeeds')
  n = elements / receives
  call MPI_Precv_init(in, receives, n, MPI_INTEGER, left, tag, comm, MPI_INFO_NULL, requests(2), code)
  call check(code == MPI_SUCCESS, 'MPI_Precv_init succeeds')

  do epoch = 1, 24
    way = mod(epoch, 6)
    write (subject, '(a,i0)') 'completion in arrays, way ', way
    key = epoch * 100
    call fill(out, key + own_rank)
    in = poison
    token_out = key + own_rank
    token_in = poison
    call MPI_Startall(2, requests, code)
    call check(code == MPI_SUCCESS, 'MPI_Startall succeeds')
    call MPI_Irecv(token_in, 1, MPI_INTEGER, left, ordinary_tag, comm, requests(4), code)
    call MPI_Isend(token_out, 1, MPI_INTEGER, right, ordinary_tag, comm, requests(5), code)
    call MPI_Pready(3, requests(1), code)
    call MPI_Pready_list(2, [5, 0], requests(1), code)
    call MPI_Pready_range(1, 2, requests(1), code)
    flag = .true.
    call MPI_Parrived(requests(2), receives - 1, flag, code)
    call check(.not. flag, 'no partition has arrived that is not ready')
    call MPI_Barrier(comm, code)
    call MPI_Pready(4, requests(1), code)
    call check(code == MPI_SUCCESS, 'MPI_Pready succeeds')
    do p = 0, receives - 1
      flag = .false.
      do while (.not. flag)
        call MPI_Parrived(requests(2), p, flag, code)
        call check(code == MPI_SUCCESS, 'MPI_Parrived succeeds')
      end do
      call check_data(in, key + left, p * elements / receives + 1, (p + 1) * elements / receives)
    end do
    statuses = -9
    done = .false.
    do while (any(active .and. .not. done))
      select case (way)
      case (0)
        call MPI_Waitall(5, requests, statuses, code)
        done = active
      case (1)
        call MPI_Testall(5, requests, flag, statuses, code)
        if (flag) done = active
      case (2)
        call MPI_Waitany(5, requests, index, status, code)
        call complete(index, status)
      case (3)
        call MPI_Testany(5, requests, index, flag, status, code)
        if (flag) call complete(index, status)
      case (4)
        call MPI_Waitsome(5, requests, outcount, indices, statuses, code)
        do i = 1, outcount
          call complete(indices(i), statuses(:, i))
        end do
      case default
        call MPI_Testsome(5, requests, outcount, indices, statuses, code)
        do i = 1, outcount
          call complete(indices(i), statuses(:, i))
        end do
      end select
      call check(code == MPI_SUCCESS, 'requests complete without an error')
    end do
    if (way < 2) then
      call check_status(statuses(:, 2), tag, elements)
      call check_status(statuses(:, 4), ordinary_tag, 1)
    end if
    call check(token_in == key + left, 'the ordinary message has arrived')
    call check_data(in, key + left, 1, elements)
    call check(requests(4) == MPI_REQUEST_NULL .and. requests(5) == MPI_REQUEST_NULL, 'ordinary requests are null')
    call MPI_Waitany(5, requests, index, MPI_STATUS_IGNORE, code)
    ! MPICH 4.0 adds 1, as to the place of an element, also without mpix.
    call check(index == MPI_UNDEFINED .or. index == MPI_UNDEFINED + 1, 'MPI_Waitany finds nothing active')
    call MPI_Waitall(5, requests, MPI_STATUSES_IGNORE, code)
    call check(code == MPI_SUCCESS, 'MPI_Waitall of what is not active succeeds')
  end do

  ! One by one, with and without a status.
  subject = 'single completion'
  do epoch = 1, 2
    call fill(out, 7000 + epoch * 100 + own_rank)
    in = poison
    call MPI_Start(requests(2), code)
    call MPI_Start(requests(1), code)
    call MPI_Pready_range(0, sends - 1, requests(1), code)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, code)
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status(requests(2), flag, status, code)
    end do
    call check_status(status, tag, elements)
    status = -9
    if (epoch == 1) then
      call MPI_Wait(requests(2), status, code)
    else
      flag = .false.
      do while (.not. flag)
        call MPI_Test(requests(2), flag, status, code)
      end do
    end if
    call check_status(status, tag, elements)
    call check_data(in, 7000 + epoch * 100 + left, 1, elements)
  end do

  subject = 'errors'
  call MPI_Pready(0, requests(1), code)
  call MPI_Error_string(code, text, length, i)
  call check(len_trim(text) == length .and. scan(text, 'active') > 0, 'MPI_Error_string has a sentence')
  call MPI_Error_class(code, class, i)
  call check(class == MPI_ERR_REQUEST, 'MPI_Pready of an inactive request is an error')
  do i = 1, 2
    call MPI_Request_free(requests(i), code)
    call check(code == MPI_SUCCESS .and. requests(i) == MPI_REQUEST_NULL, 'a freed request is null')
  end do
  call MPI_Comm_free(comm, code)
  call check(comm == MPI_COMM_NULL, 'a freed communicator is null')
  call MPI_Finalize(code)
  if (own_rank == 0) print '(a)', 'passed'

contains

  subroutine complete(index, status)
    integer, intent(in) :: index, status(MPI_STATUS_SIZE)
    call check(index >= 1 .and. index <= 5, 'an index is one of the array')
    call check(active(index) .and. .not. done(index), 'each active request completes once')
    done(index) = .true.
    if (index == 2) call check_status(status, tag, elements)
    if (index == 4) call check_status(status, ordinary_tag, 1)
  end subroutine

  subroutine check_status(status, wanted_tag, wanted_count)
    integer, intent(in) :: status(MPI_STATUS_SIZE), wanted_tag, wanted_count
    integer :: ignored
    call check(status(MPI_SOURCE) == left .and. status(MPI_TAG) == wanted_tag, 'a status has source and tag')
    call MPI_Get_count(status, MPI_INTEGER, count, ignored)
    call check(count == wanted_count, 'a status has the count')
  end subroutine

end program
