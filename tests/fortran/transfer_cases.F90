! SPDX-License-Identifier: BSD-3-Clause
!
! Every element of every epoch, arrival by partition, what statuses say, and requests with nobody.
module transfer_cases
  use mpi_f08
#if !MPIX_LIBRARY_IS_PARTITIONED
  use mpix
#endif
  use checks
  use ring
  implicit none
  private
  public :: run_transfer_cases

contains

  subroutine run_transfer_cases
    call unequal_partitions
    call arrival
    call statuses
    call proc_null
    call absolute_addresses
    call sections
    call freed_unstarted
  end subroutine

  subroutine unequal_partitions
    subject = 'unequal partitions'
    call exchange(1, 1, 1, 1, MPI_COMM_WORLD, 20)
    call exchange(2, 6, 4, 24, MPI_COMM_WORLD, 50)
    call exchange(3, 4, 6, 1200, MPI_COMM_WORLD, 50)
    call exchange(4, 7, 1, 700, MPI_COMM_WORLD, 20)
    call exchange(5, 1, 16, 64000, MPI_COMM_WORLD, 10)
    if (own_rank == 0) call exchange(6, 5, 3, 15, MPI_COMM_SELF, 10)
  end subroutine

  ! A partition has arrived when it is marked ready, and not before; and then its data is there.
  subroutine arrival
    integer, parameter :: partitions = 8, elements = 800
    type(transfer), target :: t
    integer :: order(partitions), theirs(partitions), epoch, i, p, each, right, left, size
    logical :: flag
    double precision :: since
    subject = 'arrival by partition'
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    right = mod(own_rank + 1, size)
    left = mod(own_rank + size - 1, size)
    call make(t, partitions, partitions, elements, MPI_COMM_WORLD)
    each = elements / partitions
    do epoch = 1, 5
      call fill_both(t, 10, epoch)
      call MPI_Startall(2, t%both)
      call shuffle(order)
      call MPI_Sendrecv(order, partitions, MPI_INTEGER, right, 1, theirs, partitions, MPI_INTEGER, left, 1, &
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      do i = 1, partitions
        do p = i, partitions
          flag = .true.
          call MPI_Parrived(t%both(2), theirs(p), flag)
          call check(.not. flag, 'no partition has arrived that is not ready')
        end do
        call MPI_Barrier(MPI_COMM_WORLD)
        call MPI_Pready(order(i), t%both(1))
        p = theirs(i)
        since = MPI_Wtime()
        do
          flag = .false.
          call MPI_Parrived(t%both(2), p, flag)
          if (flag) exit
          call check(.not. too_late(since), 'a partition arrives in time')
        end do
        call check_data(t%in, key_of(10, epoch, t%left), p * each + 1, (p + 1) * each)
      end do
      call MPI_Waitall(2, t%both, MPI_STATUSES_IGNORE)
      flag = .false.
      call MPI_Parrived(t%both(2), 0, flag)
      call check(flag, 'of an inactive request all partitions have arrived')
    end do
    call free_transfer(t)
  end subroutine

  subroutine statuses
    type(transfer), target :: t
    type(MPI_Status) :: status
    type(MPI_Request) :: both(2)
    type(MPI_Status) :: all(2)
    integer :: epoch, count, left, size, ignored
    logical :: flag
    subject = 'statuses'
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    left = mod(own_rank + size - 1, size)
    call make(t, 3, 2, 18, MPI_COMM_WORLD)
    do epoch = 1, 4
      call fill_both(t, 20, epoch)
      both = t%both
      call MPI_Startall(2, both)
      call check(both(1) == t%both(1) .and. both(2) == t%both(2), 'MPI_Startall leaves the handles as they are')
      call ready_all(t)
      status%MPI_SOURCE = -9
      status%MPI_TAG = -9
      if (mod(epoch, 2) == 0) then
        all%MPI_SOURCE = -9
        call MPI_Waitall(2, both, all)
        status = all(2)
      else
        ignored = MPI_STATUS_IGNORE%MPI_TAG
        call MPI_Wait(t%both(1), MPI_STATUS_IGNORE)
        call check(MPI_STATUS_IGNORE%MPI_TAG == ignored, 'nothing is written to MPI_STATUS_IGNORE')
        flag = .false.
        do while (.not. flag)
          call MPI_Request_get_status(t%both(2), flag, status)
        end do
        call check_status(status, left)
        status%MPI_SOURCE = -9
        flag = .false.
        do while (.not. flag)
          call MPI_Test(t%both(2), flag, status)
        end do
      end if
      call check_status(status, left)
      call check_all(t, 20, epoch)
      call MPI_Wait(t%both(2), status)
      call MPI_Get_count(status, MPI_INTEGER, count)
      call check(status%MPI_SOURCE == MPI_ANY_SOURCE .and. status%MPI_TAG == MPI_ANY_TAG .and. count == 0, &
                 'the status of an inactive request is empty')
    end do
    call free_transfer(t)

  contains

    subroutine check_status(status, left)
      type(MPI_Status), intent(in) :: status
      integer, intent(in) :: left
      call check(status%MPI_SOURCE == left .and. status%MPI_TAG == tag, 'a status has source and tag')
      call MPI_Get_count(status, MPI_INTEGER, count)
      call check(count == 18, 'a status has the count')
    end subroutine

  end subroutine

  subroutine proc_null
    integer, target :: buffer(4)
    type(MPI_Request) :: both(2)
    type(MPI_Status) :: status
    integer :: count, epoch
    logical :: flag
    subject = 'MPI_PROC_NULL'
    buffer = poison
    call MPI_Psend_init(buffer, 2, 2_MPI_COUNT_KIND, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &
                        both(1))
    call MPI_Precv_init(buffer, 2, 2_MPI_COUNT_KIND, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &
                        both(2))
    do epoch = 1, 2
      call MPI_Startall(2, both)
      call MPI_Pready_range(0, 1, both(1))
      call MPI_Parrived(both(2), 1, flag)
      call check(flag, 'from MPI_PROC_NULL all has arrived')
      call MPI_Wait(both(2), status)
      call MPI_Get_count(status, MPI_INTEGER, count)
      call check(status%MPI_SOURCE == MPI_PROC_NULL .and. count == 0, 'the status is that of MPI_PROC_NULL')
      call MPI_Wait(both(1), MPI_STATUS_IGNORE)
      call check(all(buffer == poison), 'nothing is written')
    end do
    call MPI_Request_free(both(1))
    call MPI_Request_free(both(2))
  end subroutine

  ! MPI_BOTTOM, with a datatype that has the address.
  subroutine absolute_addresses
    integer, parameter :: elements = 12
    integer, allocatable, asynchronous :: out(:), in(:)
    type(MPI_Datatype) :: out_type, in_type
    type(MPI_Request) :: both(2)
    integer(MPI_ADDRESS_KIND) :: address(1)
    integer :: size, epoch
    subject = 'MPI_BOTTOM'
    allocate (out(elements), in(elements))
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    call MPI_Get_address(out, address(1))
    call MPI_Type_create_hindexed(1, [elements], address, MPI_INTEGER, out_type)
    call MPI_Type_commit(out_type)
    call MPI_Get_address(in, address(1))
    call MPI_Type_create_hindexed(1, [elements], address, MPI_INTEGER, in_type)
    call MPI_Type_commit(in_type)
    call MPI_Psend_init(MPI_BOTTOM, 1, 1_MPI_COUNT_KIND, out_type, mod(own_rank + 1, size), tag, MPI_COMM_WORLD, &
                        MPI_INFO_NULL, both(1))
    call MPI_Precv_init(MPI_BOTTOM, 1, 1_MPI_COUNT_KIND, in_type, mod(own_rank + size - 1, size), tag, MPI_COMM_WORLD, &
                        MPI_INFO_NULL, both(2))
    do epoch = 1, 3
      call fill(out, key_of(30, epoch, own_rank))
      in = poison
      call MPI_F_sync_reg(out)
      call MPI_F_sync_reg(in)
      call MPI_Startall(2, both)
      call MPI_Pready(0, both(1))
      call MPI_Waitall(2, both, MPI_STATUSES_IGNORE)
      call MPI_F_sync_reg(in)
      call check_data(in, key_of(30, epoch, mod(own_rank + size - 1, size)), 1, elements)
    end do
    call MPI_Request_free(both(1))
    call MPI_Request_free(both(2))
    call MPI_Type_free(out_type)
    call MPI_Type_free(in_type)
  end subroutine

  ! Parts of arrays: those without gaps are buffers like others; the module mpix refuses those with gaps, of which the
  ! compiler would pass a copy.
  subroutine sections
    integer, target, asynchronous :: out(4, 6), in(6, 4), flat(12)
    type(MPI_Request) :: both(2)
    integer :: size, epoch
#if !MPIX_LIBRARY_IS_PARTITIONED
    integer :: code, class
#endif
    subject = 'array sections'
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    call MPI_Psend_init(out(:, 2:4), 3, 4_MPI_COUNT_KIND, MPI_INTEGER, mod(own_rank + 1, size), tag, MPI_COMM_WORLD, &
                        MPI_INFO_NULL, both(1))
    call MPI_Precv_init(in(:, 3:), 2, 6_MPI_COUNT_KIND, MPI_INTEGER, mod(own_rank + size - 1, size), tag, &
                        MPI_COMM_WORLD, &
                        MPI_INFO_NULL, both(2))
    do epoch = 1, 3
      out = poison
      in = poison
      call fill(flat, key_of(40, epoch, own_rank))
      out(:, 2:4) = reshape(flat, [4, 3])
      call MPI_Startall(2, both)
      call MPI_Pready_range(0, 2, both(1))
      call MPI_Waitall(2, both, MPI_STATUSES_IGNORE)
      call check_data(reshape(in(:, 3:), [12]), key_of(40, epoch, mod(own_rank + size - 1, size)), 1, 12)
      call check(all(in(:, :2) == poison), 'nothing is written beside the section')
    end do
    call MPI_Request_free(both(1))
    call MPI_Request_free(both(2))
#if !MPIX_LIBRARY_IS_PARTITIONED
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    both = MPI_REQUEST_NULL
    call MPI_Psend_init(out(::2, :), 3, 4_MPI_COUNT_KIND, MPI_INTEGER, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &
                        both(1), code)
    call MPI_Error_class(code, class)
    call check(class == MPI_ERR_BUFFER .and. both(1) == MPI_REQUEST_NULL, 'a send buffer with gaps is refused')
    call MPI_Precv_init(in(1, :), 2, 2_MPI_COUNT_KIND, MPI_INTEGER, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, both(2), &
                        code)
    call MPI_Error_class(code, class)
    call check(class == MPI_ERR_BUFFER .and. both(2) == MPI_REQUEST_NULL, 'a receive buffer with gaps is refused')
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL)
#endif
  end subroutine

  subroutine freed_unstarted
    type(transfer) :: t
    integer :: i
    subject = 'requests that are freed unstarted'
    do i = 1, 3
      call make(t, 2, 2, 8, MPI_COMM_WORLD)
      call free_transfer(t)
    end do
    call exchange(50, 2, 4, 8, MPI_COMM_WORLD, 2)
  end subroutine

end module
