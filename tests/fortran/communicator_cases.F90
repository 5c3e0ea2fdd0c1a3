! SPDX-License-Identifier: BSD-3-Clause
!
! Transfers on communicators from each of the constructors.
module communicator_cases
  use mpi_f08
  use checks
  use ring
  implicit none
  private
  public :: run_communicator_cases

contains

  subroutine run_communicator_cases
    type(MPI_Comm) :: comm, parent, half
    type(MPI_Group) :: group
    type(MPI_Request) :: request
    integer :: ranks, right, left, none(1), from(1), to(1)

    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    right = mod(own_rank + 1, ranks)
    left = mod(own_rank + ranks - 1, ranks)
    none = 0

    call MPI_Comm_dup(MPI_COMM_WORLD, parent)
    call use_of('MPI_Comm_dup', 1, parent)

    call MPI_Comm_dup_with_info(parent, MPI_INFO_NULL, comm)
    call use_and_free('MPI_Comm_dup_with_info', 2, comm)

    call MPI_Comm_idup(parent, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call use_and_free('MPI_Comm_idup', 3, comm)

    call MPI_Comm_split(parent, mod(own_rank, 2), -own_rank, half)
    call use_of('MPI_Comm_split', 4, half)
    call MPI_Comm_split(parent, merge(MPI_UNDEFINED, 0, own_rank == 0), 0, comm)
    call check((own_rank == 0) .eqv. (comm == MPI_COMM_NULL), 'no communicator where the colour is MPI_UNDEFINED')
    if (comm /= MPI_COMM_NULL) call use_and_free('MPI_Comm_split with MPI_UNDEFINED', 5, comm)

    call MPI_Comm_split_type(parent, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, comm)
    call use_and_free('MPI_Comm_split_type', 6, comm)

    call MPI_Comm_group(parent, group)
    call MPI_Comm_create(parent, group, comm)
    call use_and_free('MPI_Comm_create', 7, comm)
    call MPI_Comm_create_group(parent, group, 3, comm)
    call use_and_free('MPI_Comm_create_group', 8, comm)
#if MPIX_MPI_VERSION >= 4
    call MPI_Comm_create_from_group(group, 'a name with blanks  ', MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, comm)
    call use_and_free('MPI_Comm_create_from_group', 9, comm)
    call MPI_Comm_idup_with_info(parent, MPI_INFO_NULL, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call use_and_free('MPI_Comm_idup_with_info', 10, comm)
#endif
    call MPI_Group_free(group)

    call topologies

    if (ranks > 1) call intercommunicators
    call MPI_Comm_free(half)
    call MPI_Comm_disconnect(parent)
    call check(parent == MPI_COMM_NULL, 'MPI_Comm_disconnect sets the handle to null')

  contains

    subroutine topologies
      type(MPI_Comm) :: grid
      integer :: i, dims(2), coordinates(2), held(2)
      logical :: periods(2)
      call MPI_Cart_create(parent, 2, [ranks, 1], [.true., .false.], .false., grid)
      call use_of('MPI_Cart_create', 11, grid)
      call MPI_Cart_get(grid, 2, dims, periods, coordinates)
      call check(dims(1) == ranks .and. periods(1) .and. .not. periods(2), 'the grid is periodic where it was to be')
      call MPI_Cart_sub(grid, [.true., .false.], comm)
      call MPI_Comm_size(comm, i)
      call check(i == ranks, 'MPI_Cart_sub keeps the dimension that it was to keep')
      call use_and_free('MPI_Cart_sub', 12, comm)
      call MPI_Comm_free(grid)

      call MPI_Graph_create(parent, ranks, [(i, i = 1, ranks)], [(mod(i + 1, ranks), i = 0, ranks - 1)], .false., comm)
      call use_and_free('MPI_Graph_create', 13, comm)

      ! Of several ranks Open MPI 4.1 hangs there now and then, also without mpix.
      if (ranks == 1 .or. MPIX_MPI_VERSION >= 4) then
        call MPI_Dist_graph_create(parent, 1, [own_rank], [1], [right], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., comm)
        call check(.not. weighted(comm), 'a graph without weights')
        call use_and_free('MPI_Dist_graph_create', 14, comm)
        call MPI_Dist_graph_create(parent, 1, [own_rank], [1], [right], [7], MPI_INFO_NULL, .false., comm)
        call check(weighted(comm), 'a graph with weights')
        call use_and_free('MPI_Dist_graph_create with weights', 15, comm)
      end if

      call MPI_Dist_graph_create_adjacent(parent, 1, [left], MPI_UNWEIGHTED, 1, [right], MPI_UNWEIGHTED, &
                                          MPI_INFO_NULL, .false., comm)
      call check(.not. weighted(comm), 'an adjacent graph without weights')
      call use_and_free('MPI_Dist_graph_create_adjacent', 16, comm)
      call MPI_Dist_graph_create_adjacent(parent, 1, [left], [5], 1, [right], [8], MPI_INFO_NULL, .false., comm)
      call check(weighted(comm), 'an adjacent graph with weights')
      call MPI_Dist_graph_neighbors(comm, 1, from, held(1:1), 1, to, held(2:2))
      call check(held(1) == 5 .and. held(2) == 8, 'the weights are those that were given')
      call use_and_free('MPI_Dist_graph_create_adjacent with weights', 17, comm)
      call MPI_Dist_graph_create_adjacent(parent, 0, none, MPI_WEIGHTS_EMPTY, 0, none, MPI_WEIGHTS_EMPTY, &
                                          MPI_INFO_NULL, .false., comm)
      call use_and_free('MPI_Dist_graph_create_adjacent with MPI_WEIGHTS_EMPTY', 18, comm)
    end subroutine

    logical function weighted(graph)
      type(MPI_Comm), intent(in) :: graph
      integer :: in, out
      call MPI_Dist_graph_neighbors_count(graph, in, out, weighted)
    end function

    subroutine intercommunicators
      type(MPI_Comm) :: inter
      integer :: size, order, i
      type(MPI_Group) :: merged, world
      ! Rank 0 of a half is its last process.
      call MPI_Comm_split(parent, mod(own_rank, 2), own_rank, comm)
      call MPI_Intercomm_create(comm, 0, parent, 1 - mod(own_rank, 2), 4, inter)
      call MPI_Comm_free(comm)
      call MPI_Intercomm_merge(inter, mod(own_rank, 2) == 0, comm)
      call MPI_Comm_size(comm, size)
      call check(size == ranks, 'both sides are in the merged communicator')
      call MPI_Comm_group(comm, merged)
      call MPI_Comm_group(MPI_COMM_WORLD, world)
      call MPI_Group_rank(merged, order)
      if (mod(own_rank, 2) == 1) call check(order < size / 2, 'the low side comes first')
      call MPI_Group_free(merged)
      call MPI_Group_free(world)
      call use_and_free('MPI_Intercomm_merge', 19, comm)
      call MPI_Comm_free(inter)
#if MPIX_MPI_VERSION >= 4
      block
        type(MPI_Group) :: of_half, other
        integer, allocatable :: members(:)
        members = pack([(i, i = 0, ranks - 1)], [(mod(i, 2) == mod(own_rank, 2), i = 0, ranks - 1)])
        call MPI_Comm_group(MPI_COMM_WORLD, world)
        call MPI_Group_incl(world, size_of(members), members, of_half)
        call MPI_Group_excl(world, size_of(members), members, other)
        call MPI_Intercomm_create_from_groups(of_half, 0, other, 0, 'halves', MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &
                                              inter)
        call MPI_Group_free(world)
        call MPI_Group_free(of_half)
        call MPI_Group_free(other)
        call MPI_Intercomm_merge(inter, mod(own_rank, 2) == 0, comm)
        call use_and_free('MPI_Intercomm_create_from_groups', 20, comm)
        call MPI_Comm_free(inter)
      end block
#else
      i = 0
#endif
    end subroutine

  end subroutine

  pure integer function size_of(array)
    integer, intent(in) :: array(:)
    size_of = size(array)
  end function

  subroutine use_of(constructor, number, comm)
    character(len=*), intent(in) :: constructor
    integer, intent(in) :: number
    type(MPI_Comm), intent(in) :: comm
    subject = constructor
    call exchange(300 + number, 3, 2, 6, comm, 2)
  end subroutine

  subroutine use_and_free(constructor, number, comm)
    character(len=*), intent(in) :: constructor
    integer, intent(in) :: number
    type(MPI_Comm), intent(inout) :: comm
    call use_of(constructor, number, comm)
    call MPI_Comm_free(comm)
    call check(comm == MPI_COMM_NULL, 'MPI_Comm_free sets the handle to null')
  end subroutine

end module
