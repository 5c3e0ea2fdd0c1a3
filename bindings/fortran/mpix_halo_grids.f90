! SPDX-License-Identifier: BSD-3-Clause
!
! Radii and grids of the module mpix_halo, which programs use.
module mpix_halo_grids
  use, intrinsic :: iso_c_binding, only: c_double, c_int, c_loc
  use mpi_f08, only: MPI_Comm
  use mpix_halo_types
  implicit none
  private
  public :: MPIX_Halo_radius_all, MPIX_Halo_radius_faces, MPIX_Halo_radius_of
  public :: MPIX_Halo_grid_create, MPIX_Halo_grid_free, MPIX_Halo_grid_get, MPIX_Halo_grid_boxes, MPIX_Halo_grid_box
  public :: MPIX_Halo_grid_box_rank, MPIX_Halo_grid_local, MPIX_Halo_grid_owner, MPIX_Halo_grid_neighbours
  public :: MPIX_Halo_points, MPIX_Halo_global_index, MPIX_Halo_deep_radius, MPIX_Halo_deep_valid, MPIX_Halo_difference

  ! ---- radii ------------------------------------------------------------------------------------

  interface
    subroutine MPIX_Halo_radius_all(cells, radius, ierror) bind(C, name="mpix_halo_radius_all_")
      import :: c_int
      integer(c_int), intent(in) :: cells
      integer(c_int), intent(out) :: radius(-1:1, -1:1, -1:1)
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_radius_faces(cells, radius, ierror) bind(C, name="mpix_halo_radius_faces_")
      import :: c_int
      integer(c_int), intent(in) :: cells
      integer(c_int), intent(out) :: radius(-1:1, -1:1, -1:1)
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine radius_of(rows, count, offsets, radius, ierror) bind(C, name="mpix_halo_radius_of_")
      import :: c_int
      integer(c_int), intent(in) :: rows, count, offsets(*)
      integer(c_int), intent(out) :: radius(27)
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
  end interface

  ! ---- grids ------------------------------------------------------------------------------------

  interface MPIX_Halo_grid_create
    module procedure grid_create_f08, grid_create
  end interface

  interface MPIX_Halo_grid_local
    module procedure local_of_only
    subroutine local_of(i, grid, box, ierror) bind(C, name="mpix_halo_grid_local_")
      import :: c_int, MPIX_Halo_box, MPIX_Halo_grid
      integer(c_int), intent(in) :: i
      type(MPIX_Halo_grid), intent(in) :: grid
      type(MPIX_Halo_box), intent(out) :: box
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Halo_global_index
    module procedure index_in_only
    subroutine index_in(grid, i, local, global, ierror) bind(C, name="mpix_halo_global_index_")
      import :: c_int, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      integer(c_int), intent(in) :: i, local(3)
      integer(c_int), intent(out) :: global(3)
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
  end interface

  interface
    subroutine MPIX_Halo_grid_free(grid, ierror) bind(C, name="mpix_halo_grid_free_")
      import :: c_int, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(inout) :: grid
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_grid_box(grid, number, box, ierror) bind(C, name="mpix_halo_grid_box_")
      import :: c_int, MPIX_Halo_box, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      integer(c_int), intent(in) :: number
      type(MPIX_Halo_box), intent(out) :: box
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    ! Which rank owns the box.
    subroutine MPIX_Halo_grid_box_rank(grid, number, rank, ierror) bind(C, name="mpix_halo_grid_box_rank_")
      import :: c_int, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      integer(c_int), intent(in) :: number
      integer(c_int), intent(out) :: rank
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_grid_owner(grid, cell, rank, ierror) bind(C, name="mpix_halo_grid_owner_")
      import :: c_int, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      integer(c_int), intent(in) :: cell(3)
      integer(c_int), intent(out) :: rank
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_deep_radius(grid, stencil, every, radius, ierror) bind(C, name="mpix_halo_deep_radius_")
      import :: c_int, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      integer(c_int), intent(in) :: stencil(-1:1, -1:1, -1:1), every
      integer(c_int), intent(out) :: radius(-1:1, -1:1, -1:1)
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Halo_difference(outer, inner, boxes, count, ierror) bind(C, name="mpix_halo_difference_")
      import :: c_int, MPIX_Halo_box
      type(MPIX_Halo_box), intent(in) :: outer, inner
      type(MPIX_Halo_box), intent(inout) :: boxes(6)
      integer(c_int), intent(out) :: count
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine grid_create_c(comm, dimensions, extent, options, grid, ierror) bind(C, name="mpix_halo_grid_create_")
      import :: c_int, MPIX_Halo_grid, mpix_halo_grid_options
      integer(c_int), intent(in) :: comm, dimensions, extent(*)
      type(mpix_halo_grid_options), intent(in) :: options
      type(MPIX_Halo_grid), intent(out) :: grid
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine grid_get(grid, dimensions, extent, periodic, rank, ranks, boxes, ierror) &
      bind(C, name="mpix_halo_grid_get_")
      import :: c_int, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      integer(c_int), optional, intent(out) :: dimensions, extent(3), rank, ranks, boxes, ierror
      integer(c_int), intent(out) :: periodic(3)
    end subroutine
    subroutine grid_boxes(grid, size, numbers, count, ierror) bind(C, name="mpix_halo_grid_boxes_")
      import :: c_int, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      integer(c_int), intent(in) :: size
      integer(c_int), intent(inout) :: numbers(*)
      integer(c_int), intent(out) :: count
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine grid_neighbours(grid, direction, depth, size, ranks, count, ierror) &
      bind(C, name="mpix_halo_grid_neighbours_")
      import :: c_int, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      integer(c_int), intent(in) :: direction(3), depth, size
      integer(c_int), intent(inout) :: ranks(*)
      integer(c_int), intent(out) :: count
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine points_of(grid, cells, staggered, points, ierror) bind(C, name="mpix_halo_points_")
      import :: c_int, MPIX_Halo_box, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      type(MPIX_Halo_box), intent(in) :: cells
      integer(c_int), intent(in) :: staggered(3)
      type(MPIX_Halo_box), intent(out) :: points
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
    subroutine deep_valid(grid, i, stencil, every, steps, staggered, box, ierror) bind(C, name="mpix_halo_deep_valid_")
      import :: c_int, MPIX_Halo_box, MPIX_Halo_grid
      type(MPIX_Halo_grid), intent(in) :: grid
      integer(c_int), intent(in) :: i, stencil(27), every, steps, staggered(3)
      type(MPIX_Halo_box), intent(out) :: box
      integer(c_int), optional, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Halo_deep_valid
    module procedure deep_valid_in_only, deep_valid_in
  end interface

contains

  ! offsets(:, n) are the three numbers of one offset.
  subroutine MPIX_Halo_radius_of(offsets, radius, ierror)
    integer, intent(in) :: offsets(:, :)
    integer, intent(out) :: radius(-1:1, -1:1, -1:1)
    integer, optional, intent(out) :: ierror
    call radius_of(size(offsets, 1), size(offsets, 2), offsets, radius, ierror)
  end subroutine

  ! extent, periodic and shortest have an entry for each axis. boxes(n + 1) is box n, and owners(n + 1) its rank.
  ! within_node has the bandwidths between two ranks of a node, row by row.
  subroutine grid_create(comm, extent, grid, periodic, boxes, owners, boxes_per_rank, shortest, within_node, network, &
                         typical_radius, typical_bytes_per_cell, ierror)
    integer, intent(in) :: comm, extent(:)
    type(MPIX_Halo_grid), intent(out) :: grid
    logical, optional, intent(in) :: periodic(:)
    type(MPIX_Halo_box), optional, intent(in) :: boxes(:)
    integer, optional, intent(in) :: owners(:), boxes_per_rank, shortest(:), typical_radius(-1:1, -1:1, -1:1)
    real(c_double), optional, intent(in) :: within_node(:), network, typical_bytes_per_cell
    integer, optional, intent(out) :: ierror
    type(mpix_halo_grid_options) :: options
    type(MPIX_Halo_box), allocatable, target :: given_boxes(:)
    integer(c_int), allocatable, target :: given_owners(:)
    integer(c_int), target :: given_radius(-1:1, -1:1, -1:1)
    real(c_double), allocatable, target :: given_bandwidths(:)
    integer :: axes
    options%periodic_count = size(extent)
    options%shortest_count = size(extent)
    if (present(periodic)) then
      axes = min(size(periodic), 3)
      options%periodic(1:axes) = merge(1, 0, periodic(1:axes))
      options%periodic_count = size(periodic)
    end if
    if (present(boxes)) then
      allocate (given_boxes(max(size(boxes), 1)))
      given_boxes(1:size(boxes)) = boxes
      options%boxes = c_loc(given_boxes)
      options%box_count = size(boxes)
    end if
    if (present(owners)) then
      allocate (given_owners(max(size(owners), 1)))
      given_owners(1:size(owners)) = owners
      options%owners = c_loc(given_owners)
      options%owner_count = size(owners)
    end if
    if (present(boxes_per_rank)) options%boxes_per_rank = boxes_per_rank
    if (present(shortest)) then
      axes = min(size(shortest), 3)
      options%shortest(1:axes) = shortest(1:axes)
      options%shortest_count = size(shortest)
    end if
    if (present(within_node)) then
      if (size(within_node) > 0) then
        given_bandwidths = within_node
        options%within_node = c_loc(given_bandwidths)
        options%entries = size(within_node)
      end if
    end if
    if (present(network)) options%network = network
    if (present(typical_radius)) then
      given_radius = typical_radius
      options%typical_radius = c_loc(given_radius)
    end if
    if (present(typical_bytes_per_cell)) options%typical_bytes_per_cell = typical_bytes_per_cell
    call grid_create_c(comm, size(extent), extent, options, grid, ierror)
  end subroutine

  subroutine grid_create_f08(comm, extent, grid, periodic, boxes, owners, boxes_per_rank, shortest, within_node, &
                             network, typical_radius, typical_bytes_per_cell, ierror)
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: extent(:)
    type(MPIX_Halo_grid), intent(out) :: grid
    logical, optional, intent(in) :: periodic(:)
    type(MPIX_Halo_box), optional, intent(in) :: boxes(:)
    integer, optional, intent(in) :: owners(:), boxes_per_rank, shortest(:), typical_radius(-1:1, -1:1, -1:1)
    real(c_double), optional, intent(in) :: within_node(:), network, typical_bytes_per_cell
    integer, optional, intent(out) :: ierror
    call grid_create(comm%MPI_VAL, extent, grid, periodic, boxes, owners, boxes_per_rank, shortest, within_node, &
                     network, typical_radius, typical_bytes_per_cell, ierror)
  end subroutine

  subroutine MPIX_Halo_grid_get(grid, periodic, dimensions, extent, rank, ranks, boxes, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    integer, optional, intent(out) :: dimensions, extent(3), rank, ranks, boxes, ierror
    logical, optional, intent(out) :: periodic(3)
    integer(c_int) :: as_numbers(3)
    as_numbers = 0
    call grid_get(grid, dimensions, extent, as_numbers, rank, ranks, boxes, ierror)
    if (present(periodic)) periodic = as_numbers /= 0
  end subroutine

  ! The first `count` entries, or as many as there is room for.
  subroutine MPIX_Halo_grid_boxes(grid, numbers, count, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    integer, intent(inout) :: numbers(:)
    integer, intent(out) :: count
    integer, optional, intent(out) :: ierror
    call grid_boxes(grid, size(numbers), numbers, count, ierror)
  end subroutine

  ! The first `count` ranks, or as many as there is room for. A direction is [x, y, z].
  subroutine MPIX_Halo_grid_neighbours(grid, direction, depth, ranks, count, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    integer, intent(in) :: direction(3), depth
    integer, intent(inout) :: ranks(:)
    integer, intent(out) :: count
    integer, optional, intent(out) :: ierror
    call grid_neighbours(grid, direction, depth, size(ranks), ranks, count, ierror)
  end subroutine

  subroutine local_of_only(grid, box, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    type(MPIX_Halo_box), intent(out) :: box
    integer, optional, intent(out) :: ierror
    call local_of(1, grid, box, ierror)
  end subroutine

  subroutine index_in_only(grid, local, global, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    integer, intent(in) :: local(3)
    integer, intent(out) :: global(3)
    integer, optional, intent(out) :: ierror
    call index_in(grid, 1, local, global, ierror)
  end subroutine

  subroutine MPIX_Halo_points(grid, cells, staggered, points, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    type(MPIX_Halo_box), intent(in) :: cells
    logical, intent(in) :: staggered(3)
    type(MPIX_Halo_box), intent(out) :: points
    integer, optional, intent(out) :: ierror
    call points_of(grid, cells, merge(1, 0, staggered), points, ierror)
  end subroutine

  subroutine deep_valid_in(grid, i, stencil, every, steps, box, staggered, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    integer, intent(in) :: i, stencil(-1:1, -1:1, -1:1), every, steps
    type(MPIX_Halo_box), intent(out) :: box
    logical, optional, intent(in) :: staggered(3)
    integer, optional, intent(out) :: ierror
    integer(c_int) :: as_numbers(3)
    as_numbers = 0
    if (present(staggered)) as_numbers = merge(1, 0, staggered)
    call deep_valid(grid, i, stencil, every, steps, as_numbers, box, ierror)
  end subroutine

  subroutine deep_valid_in_only(grid, stencil, every, steps, box, staggered, ierror)
    type(MPIX_Halo_grid), intent(in) :: grid
    integer, intent(in) :: stencil(-1:1, -1:1, -1:1), every, steps
    type(MPIX_Halo_box), intent(out) :: box
    logical, optional, intent(in) :: staggered(3)
    integer, optional, intent(out) :: ierror
    call deep_valid_in(grid, 1, stencil, every, steps, box, staggered, ierror)
  end subroutine

end module
