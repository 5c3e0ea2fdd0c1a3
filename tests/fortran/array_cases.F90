! SPDX-License-Identifier: BSD-3-Clause
!
! The completion calls on arrays that mix partitioned, ordinary and null requests; and logicals that had any bits before.
module array_cases
  use mpi_f08
#if !MPIX_LIBRARY_IS_PARTITIONED
  use mpix
#endif
  use checks
  use ring
  implicit none
  private
  public :: run_array_cases

  enum, bind(C)
    enumerator :: wait_all, test_all, wait_any, test_any, wait_some, test_some, wait_some_ignored, n_ways
  end enum

  ! In the array: a partitioned receive, a null request, an ordinary receive, a partitioned send, an ordinary send, an
  ! inactive partitioned send.
  integer, parameter :: n = 6, partitioned_receive = 1, ordinary_receive = 3, partitioned_send = 4, ordinary_send = 5, &
                        inactive = 6
  logical, parameter :: active(n) = [.true., .false., .true., .true., .true., .false.]
  integer, parameter :: ordinary_tag = 6, more_than_on_stack = 100

contains

  subroutine run_array_cases
    integer :: way, round
    do round = 1, 3
      do way = 0, n_ways - 1
        write (subject, '(a,i0)') 'completion in arrays, way ', way
        call mixed(way, round)
      end do
    end do
    call long_array
    call any_bits_before
  end subroutine

  subroutine mixed(way, round)
    integer, intent(in) :: way, round
    type(transfer), target :: t, other
    type(MPI_Request) :: requests(n), ours, theirs
    type(MPI_Status) :: statuses(n), status
    integer :: epoch, token_out, token_in, size, left, right, i, index, outcount, indices(n), case
    logical :: flag, done(n)
    double precision :: since
    case = 100 + way * 10 + round
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    right = mod(own_rank + 1, size)
    left = mod(own_rank + size - 1, size)
    call make(t, 4, 3, 120, MPI_COMM_WORLD)
    call make(other, 2, 2, 4, MPI_COMM_WORLD)
    ours = t%both(1)
    theirs = t%both(2)
    do epoch = 1, 4
      call fill_both(t, case, epoch)
      token_out = key_of(case, epoch, own_rank)
      token_in = poison
      requests = MPI_REQUEST_NULL
      requests(partitioned_receive) = t%both(2)
      requests(partitioned_send) = t%both(1)
      requests(inactive) = other%both(1)
      call MPI_Startall(1, requests(partitioned_receive:partitioned_receive))
      call MPI_Start(requests(partitioned_send))
      call MPI_Irecv(token_in, 1, MPI_INTEGER, left, ordinary_tag, MPI_COMM_WORLD, requests(ordinary_receive))
      call MPI_Isend(token_out, 1, MPI_INTEGER, right, ordinary_tag, MPI_COMM_WORLD, requests(ordinary_send))
      call ready_all(t)
      done = .false.
      do i = 1, n
        statuses(i)%MPI_SOURCE = -9
        statuses(i)%MPI_TAG = -9
      end do
      since = MPI_Wtime()
      do while (any(active .and. .not. done))
        call check(.not. too_late(since), 'requests complete in time')
        select case (way)
        case (wait_all)
          call MPI_Waitall(n, requests, statuses)
          done = active
        case (test_all)
          call MPI_Testall(n, requests, flag, statuses)
          if (flag) done = active
        case (wait_any)
          call MPI_Waitany(n, requests, index, status)
          call complete(index, status)
        case (test_any)
          call MPI_Testany(n, requests, index, flag, status)
          if (flag) then
            call complete(index, status)
          else
            call check(index == MPI_UNDEFINED, 'MPI_Testany gives no index if nothing has completed')
          end if
        case (wait_some)
          call MPI_Waitsome(n, requests, outcount, indices, statuses)
          call check(outcount >= 1 .and. outcount <= n, 'MPI_Waitsome completes something')
          do i = 1, outcount
            call complete(indices(i), statuses(i))
          end do
        case (test_some)
          call MPI_Testsome(n, requests, outcount, indices, statuses)
          call check(outcount >= 0 .and. outcount <= n, 'MPI_Testsome gives a count')
          do i = 1, outcount
            call complete(indices(i), statuses(i))
          end do
        case (wait_some_ignored)
          call MPI_Waitsome(n, requests, outcount, indices, MPI_STATUSES_IGNORE)
          do i = 1, outcount
            call complete(indices(i))
          end do
        end select
      end do
      if (way == wait_all .or. way == test_all) then
        do i = 1, n
          if (active(i)) call check_status(i, statuses(i))
        end do
        call check(statuses(2)%MPI_SOURCE == MPI_ANY_SOURCE, 'the status of a null request is empty')
        call check(statuses(inactive)%MPI_SOURCE == MPI_ANY_SOURCE, 'the status of an inactive request is empty')
      end if
      call check(token_in == key_of(case, epoch, left), 'the ordinary message has arrived')
      call check_all(t, case, epoch)
      call check(requests(ordinary_receive) == MPI_REQUEST_NULL .and. requests(ordinary_send) == MPI_REQUEST_NULL, &
                 'ordinary requests are null when they have completed')
      call check(requests(partitioned_receive) == theirs .and. requests(partitioned_send) == ours, &
                 'partitioned requests persist')
      ! Nothing is active now.
      index = -5
      flag = .false.
      call MPI_Waitany(n, requests, index, status)
      call check(index == MPI_UNDEFINED, 'MPI_Waitany finds nothing active')
      call MPI_Testany(n, requests, index, flag, MPI_STATUS_IGNORE)
      call check(flag .and. index == MPI_UNDEFINED, 'MPI_Testany finds nothing active')
      call MPI_Waitsome(n, requests, outcount, indices, statuses)
      call check(outcount == MPI_UNDEFINED, 'MPI_Waitsome finds nothing active')
      call MPI_Testsome(n, requests, outcount, indices, MPI_STATUSES_IGNORE)
      call check(outcount == MPI_UNDEFINED, 'MPI_Testsome finds nothing active')
      flag = .false.
      call MPI_Testall(n, requests, flag, MPI_STATUSES_IGNORE)
      call check(flag, 'MPI_Testall is true if nothing is active')
    end do
    call free_transfer(t)
    call free_transfer(other)

  contains

    subroutine complete(index, status)
      integer, intent(in) :: index
      type(MPI_Status), intent(in), optional :: status
      call check(index >= 1 .and. index <= n, 'an index is one of the array')
      call check(active(index) .and. .not. done(index), 'each active request completes once')
      done(index) = .true.
      if (present(status)) call check_status(index, status)
    end subroutine

    subroutine check_status(index, status)
      integer, intent(in) :: index
      type(MPI_Status), intent(in) :: status
      integer :: count
      if (index == partitioned_receive) then
        call check(status%MPI_SOURCE == left .and. status%MPI_TAG == tag, &
                   'the status is that of the partitioned receive')
        call MPI_Get_count(status, MPI_INTEGER, count)
        call check(count == 120, 'the status has the count of the partitioned receive')
      else if (index == ordinary_receive) then
        call check(status%MPI_SOURCE == left .and. status%MPI_TAG == ordinary_tag, &
                   'the status is that of the ordinary receive')
        call MPI_Get_count(status, MPI_INTEGER, count)
        call check(count == 1, 'the status has the count of the ordinary receive')
      end if
    end subroutine

  end subroutine

  ! A flag is an intent(out): whatever bits it had, it is .true. or .false. afterwards.
  subroutine any_bits_before
    integer, parameter :: before(5) = [0, 1, 2, -1, 256]
    type(MPI_Request) :: requests(2)
    type(transfer), target :: t
    integer :: i, index, bits
    logical :: flag
    equivalence(bits, flag)
    subject = 'flags'
    call make(t, 2, 2, 4, MPI_COMM_WORLD)
    do i = 1, size(before)
      requests = MPI_REQUEST_NULL
      bits = before(i)
      call MPI_Test(requests(1), flag, MPI_STATUS_IGNORE)
      call check_flag('MPI_Test', .true.)
      bits = before(i)
      call MPI_Testall(2, requests, flag, MPI_STATUSES_IGNORE)
      call check_flag('MPI_Testall', .true.)
      bits = before(i)
      call MPI_Testany(2, requests, index, flag, MPI_STATUS_IGNORE)
      call check_flag('MPI_Testany', .true.)
      bits = before(i)
      call MPI_Request_get_status(requests(1), flag, MPI_STATUS_IGNORE)
      call check_flag('MPI_Request_get_status', .true.)

      call fill_both(t, 300, i)
      requests = t%both
      call MPI_Start(requests(2))
      bits = before(i)
      call MPI_Parrived(requests(2), 0, flag)
      call check_flag('MPI_Parrived', .false.)
      bits = before(i)
      call MPI_Test(requests(2), flag, MPI_STATUS_IGNORE)
      call check_flag('MPI_Test', .false.)
      bits = before(i)
      call MPI_Testall(1, requests(2:2), flag, MPI_STATUSES_IGNORE)
      call check_flag('MPI_Testall', .false.)
      bits = before(i)
      call MPI_Testany(1, requests(2:2), index, flag, MPI_STATUS_IGNORE)
      call check_flag('MPI_Testany', .false.)
      bits = before(i)
      call MPI_Request_get_status(requests(2), flag, MPI_STATUS_IGNORE)
      call check_flag('MPI_Request_get_status', .false.)
      call MPI_Barrier(MPI_COMM_WORLD)  ! nobody has sent before it
      call MPI_Start(requests(1))
      call ready_all(t)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      call check_all(t, 300, i)
    end do
    call free_transfer(t)

  contains

    subroutine check_flag(call_name, wanted)
      character(len=*), intent(in) :: call_name
      logical, intent(in) :: wanted
      call check(bits == merge(1, 0, wanted), call_name//' sets the whole flag')
    end subroutine

  end subroutine

  ! More requests than calls keep without asking for memory.
  subroutine long_array
    type(MPI_Request) :: requests(2 * more_than_on_stack)
    type(MPI_Status) :: statuses(2 * more_than_on_stack)
    type(transfer), target :: t(more_than_on_stack)
    integer :: i, epoch, size
    subject = 'long arrays'
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    do i = 1, more_than_on_stack
      call make(t(i), 2, 1, 4, MPI_COMM_WORLD)
      requests(2 * i - 1) = t(i)%both(1)
      requests(2 * i) = t(i)%both(2)
    end do
    do epoch = 1, 3
      do i = 1, more_than_on_stack
        call fill_both(t(i), 200 + i, epoch)
      end do
      call MPI_Startall(2 * more_than_on_stack, requests)
      do i = 1, more_than_on_stack
        call ready_all(t(i))
      end do
      call MPI_Waitall(2 * more_than_on_stack, requests, statuses)
      do i = 1, more_than_on_stack
        call check_all(t(i), 200 + i, epoch)
        call check(statuses(2 * i)%MPI_SOURCE == mod(own_rank + size - 1, size), 'each receive has its status')
      end do
    end do
    do i = 1, more_than_on_stack
      call free_transfer(t(i))
    end do
  end subroutine

end module
