! SPDX-License-Identifier: BSD-3-Clause
!
! Partitioned transfers around a ring, by mpi_f08: every rank sends to its right neighbour and receives from its left
! one; itself, if it is alone.
module ring
  use mpi_f08
#if !MPIX_LIBRARY_IS_PARTITIONED
  use mpix
#endif
  use checks
  implicit none

  integer, parameter :: poison = -77, tag = 5

  type :: transfer
    integer :: sends, receives                     ! partitions
    integer, allocatable :: out(:), in(:)
    type(MPI_Request) :: both(2)                   ! send, receive
    integer :: left                                ! whose data comes, by rank in MPI_COMM_WORLD
  end type

contains

  ! A number that only one case, epoch and rank have.
  pure integer function key_of(case, epoch, rank)
    integer, intent(in) :: case, epoch, rank
    key_of = (case * 10000 + epoch) * 100 + rank
  end function

  subroutine make(t, sends, receives, elements, comm)
    type(transfer), intent(inout), target :: t
    integer, intent(in) :: sends, receives, elements
    type(MPI_Comm), intent(in) :: comm
    integer :: rank, size, right, left
    type(MPI_Group) :: group, world
    integer :: of_world(1)
    call check(mod(elements, sends) == 0 .and. mod(elements, receives) == 0, 'the partitions divide the message')
    call MPI_Comm_rank(comm, rank)
    call MPI_Comm_size(comm, size)
    right = mod(rank + 1, size)
    left = mod(rank + size - 1, size)
    call MPI_Comm_group(comm, group)
    call MPI_Comm_group(MPI_COMM_WORLD, world)
    call MPI_Group_translate_ranks(group, 1, [left], world, of_world)
    call MPI_Group_free(group)
    call MPI_Group_free(world)
    t%left = of_world(1)
    t%sends = sends
    t%receives = receives
    allocate (t%out(elements), t%in(elements))
    call MPI_Psend_init(t%out, sends, int(elements / sends, MPI_COUNT_KIND), MPI_INTEGER, right, tag, comm, &
                        MPI_INFO_NULL, t%both(1))
    call MPI_Precv_init(t%in, receives, int(elements / receives, MPI_COUNT_KIND), MPI_INTEGER, left, tag, comm, &
                        MPI_INFO_NULL, t%both(2))
  end subroutine

  subroutine fill_both(t, case, epoch)
    type(transfer), intent(inout) :: t
    integer, intent(in) :: case, epoch
    call fill(t%out, key_of(case, epoch, own_rank))
    t%in = poison
  end subroutine

  subroutine check_all(t, case, epoch)
    type(transfer), intent(in) :: t
    integer, intent(in) :: case, epoch
    call check_data(t%in, key_of(case, epoch, t%left), 1, size(t%in))
  end subroutine

  ! All partitions, in one of the ways that there are.
  subroutine ready_all(t)
    type(transfer), intent(in) :: t
    integer :: order(t%sends), i, cut
    select case (below(4))
    case (0)
      call shuffle(order)
      do i = 1, t%sends
        call MPI_Pready(order(i), t%both(1))
      end do
    case (1)
      call MPI_Pready_range(0, t%sends - 1, t%both(1))
    case (2)
      cut = below(t%sends)
      call MPI_Pready_range(cut, t%sends - 1, t%both(1))
      do i = 0, cut - 1
        call MPI_Pready(i, t%both(1))
      end do
    case default
      call shuffle(order)
      cut = below(t%sends) + 1
      call MPI_Pready_list(cut, order(1:cut), t%both(1))
      call MPI_Pready_list(t%sends - cut, order(cut + 1:), t%both(1))
    end select
  end subroutine

  subroutine free_transfer(t)
    type(transfer), intent(inout) :: t
    call MPI_Request_free(t%both(1))
    call MPI_Request_free(t%both(2))
    call check(t%both(1) == MPI_REQUEST_NULL .and. t%both(2) == MPI_REQUEST_NULL, 'a freed request is null')
    deallocate (t%out, t%in)
  end subroutine

  ! Some epochs on a communicator.
  subroutine exchange(case, sends, receives, elements, comm, epochs)
    integer, intent(in) :: case, sends, receives, elements, epochs
    type(MPI_Comm), intent(in) :: comm
    type(transfer), target :: t
    integer :: epoch
    call make(t, sends, receives, elements, comm)
    do epoch = 1, epochs
      call fill_both(t, case, epoch)
      call MPI_Start(t%both(2))
      call MPI_Start(t%both(1))
      call ready_all(t)
      call MPI_Wait(t%both(1), MPI_STATUS_IGNORE)
      call MPI_Wait(t%both(2), MPI_STATUS_IGNORE)
      call check_all(t, case, epoch)
    end do
    call free_transfer(t)
  end subroutine

  logical function too_late(since)
    double precision, intent(in) :: since
    too_late = MPI_Wtime() - since > 45
  end function

end module
