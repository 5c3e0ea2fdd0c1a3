! SPDX-License-Identifier: BSD-3-Clause
!
! What a grid tells: cells and positions from 1, ranks and the numbers of boxes from 0.
module halo_grid_cases
  use mpi_f08
  use checks
  use mpix_halo
  implicit none
  private
  public :: run_grid_cases

  integer, parameter :: nx = 13, ny = 11, nz = 9

contains

  subroutine run_grid_cases(ranks)
    integer, intent(in) :: ranks
    call radii
    call one_box_each(ranks)
    call several_boxes(ranks)
    call boxes_of_the_program(ranks)
    call deep(ranks)
    call pieces
  end subroutine

  subroutine radii
    integer :: radius(-1:1, -1:1, -1:1), x, y, z
    subject = 'radii'
    call MPIX_Halo_radius_faces(2, radius)
    do z = -1, 1
      do y = -1, 1
        do x = -1, 1
          call check(radius(x, y, z) == merge(2, 0, abs(x) + abs(y) + abs(z) == 1), 'faces only')
        end do
      end do
    end do
    call MPIX_Halo_radius_all(3, radius)
    call check(radius(0, 0, 0) == 0 .and. sum(radius) == 26 * 3, 'all directions')
    ! Two offsets, as columns: the stencil reads (x + 2, y, z) and (x, y - 1, z).
    call MPIX_Halo_radius_of(reshape([2, 0, 0, 0, -1, 0], [3, 2]), radius)
    call check(radius(1, 0, 0) == 2 .and. radius(0, -1, 0) == 1 .and. sum(radius) == 3, 'of two offsets')
  end subroutine

  subroutine one_box_each(ranks)
    integer, intent(in) :: ranks
    type(MPIX_Halo_grid) :: grid
    type(MPIX_Halo_box) :: box, mine, points
    integer :: n, dimensions, extent(3), rank, all_ranks, boxes, owner, count, list(ranks + 1), cell(3), global(3)
    integer :: owned(nx, ny, nz)
    logical :: periodic(3)
    subject = 'a grid'
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny, nz], grid, [.true., .false., .false.], shortest=[1, 2, 1])
    call MPIX_Halo_grid_get(grid, periodic, dimensions, extent, rank, all_ranks, boxes)
    call check(dimensions == 3 .and. all(extent == [nx, ny, nz]) .and. rank == own_rank .and. all_ranks == ranks &
               .and. boxes == ranks, 'MPIX_Halo_grid_get')
    call check(all(periodic .eqv. [.true., .false., .false.]), 'which axes are periodic')
    call MPIX_Halo_grid_local(grid, mine)
    call MPIX_Halo_grid_box(grid, own_rank, box)
    call check(all(box%lo == mine%lo) .and. all(box%hi == mine%hi), 'the number of a rank''s box is the rank')
    ! Every cell is in one box, and its owner is that box's rank.
    owned = -1
    do n = 0, boxes - 1
      call MPIX_Halo_grid_box(grid, n, box)
      call MPIX_Halo_grid_box_rank(grid, n, rank)
      call check(rank == n, 'MPIX_Halo_grid_box_rank')
      associate (part => owned(box%lo(1):box%hi(1), box%lo(2):box%hi(2), box%lo(3):box%hi(3)))
        call check(all(part == -1), 'boxes do not overlap')
        part = rank
      end associate
    end do
    call check(all(owned >= 0), 'the boxes have all cells')
    do n = 0, nx * ny * nz - 1
      cell = [mod(n, nx) + 1, mod(n / nx, ny) + 1, n / (nx * ny) + 1]
      call MPIX_Halo_grid_owner(grid, cell, owner)
      call check(owner == owned(cell(1), cell(2), cell(3)), 'MPIX_Halo_grid_owner')
    end do
    call MPIX_Halo_grid_boxes(grid, list, count)
    call check(count == 1 .and. list(1) == own_rank, 'MPIX_Halo_grid_boxes')
    call MPIX_Halo_global_index(grid, [1, 1, 1], global)
    call check(all(global == mine%lo), 'a box''s lowest cell is its cell (1, 1, 1)')
    call MPIX_Halo_global_index(grid, 1, mine%hi - mine%lo + 1, global)
    call check(all(global == mine%hi), 'and its highest cell')
    ! Ghost cells above along x are there on every rank, for x is periodic.
    list = -1
    call MPIX_Halo_grid_neighbours(grid, [1, 0, 0], 1, list, count)
    cell = [merge(1, mine%hi(1) + 1, mine%hi(1) == nx), mine%lo(2), mine%lo(3)]
    call check(count >= 1 .and. any(list(1:count) == owned(cell(1), cell(2), cell(3))), 'MPIX_Halo_grid_neighbours')
    call MPIX_Halo_grid_neighbours(grid, [0, -1, 0], 1, list, count)
    call check((count == 0) .eqv. (mine%lo(2) == 1), 'there is nobody below the lowest cells of y')
    ! One point more at the upper end of y, which is not periodic.
    call MPIX_Halo_points(grid, mine, [.true., .true., .false.], points)
    mine%hi(2) = mine%hi(2) + merge(1, 0, mine%hi(2) == ny)
    call check(all(points%lo == mine%lo) .and. all(points%hi == mine%hi), 'points')
    call MPIX_Halo_grid_free(grid)
    call MPIX_Halo_grid_free(grid)  ! does nothing
  end subroutine

  subroutine several_boxes(ranks)
    integer, intent(in) :: ranks
    type(MPIX_Halo_grid) :: grid
    type(MPIX_Halo_box) :: box, same
    integer :: i, count, numbers(2), boxes, global(3)
    subject = 'several boxes for each rank'
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [16, 16], grid, boxes_per_rank=2, typical_bytes_per_cell=16d0)
    call MPIX_Halo_grid_get(grid, boxes=boxes)
    call MPIX_Halo_grid_boxes(grid, numbers, count)
    call check(boxes == 2 * ranks .and. count == 2 .and. numbers(1) < numbers(2), 'their numbers')
    do i = 1, 2
      call MPIX_Halo_grid_local(i, grid, box)
      call MPIX_Halo_grid_box(grid, numbers(i), same)
      call check(all(box%lo == same%lo) .and. all(box%hi == same%hi), 'MPIX_Halo_grid_local counts from 1')
      call MPIX_Halo_global_index(grid, i, [2, 1, 1], global)
      call check(all(global == box%lo + [1, 0, 0]), 'MPIX_Halo_global_index counts from 1')
    end do
    call MPIX_Halo_grid_free(grid)
  end subroutine

  ! Columns of unequal width, the first one for the last rank; and an empty box for rank 0.
  subroutine boxes_of_the_program(ranks)
    integer, intent(in) :: ranks
    type(MPIX_Halo_grid) :: grid
    type(MPIX_Halo_box) :: boxes(ranks + 1), box
    integer :: owners(ranks + 1), n, first, rank
    subject = 'boxes of the program'
    first = 1
    do n = 1, ranks
      boxes(n)%lo = [first, 1, 1]
      boxes(n)%hi = [first + n, 5, 1]
      owners(n) = ranks - n
      first = first + n + 1
    end do
    boxes(ranks + 1)%lo = [1, 1, 1]
    boxes(ranks + 1)%hi = [0, 5, 1]
    owners(ranks + 1) = 0
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [first - 1, 5], grid, boxes=boxes, owners=owners)
    do n = 0, ranks
      call MPIX_Halo_grid_box(grid, n, box)
      call MPIX_Halo_grid_box_rank(grid, n, rank)
      call check(all(box%lo == boxes(n + 1)%lo) .and. all(box%hi == boxes(n + 1)%hi) .and. rank == owners(n + 1), &
                 'boxes(n + 1) is box n')
    end do
    call MPIX_Halo_grid_free(grid)
  end subroutine

  subroutine deep(ranks)
    integer, intent(in) :: ranks
    type(MPIX_Halo_grid) :: grid
    type(MPIX_Halo_box) :: mine, valid
    integer :: stencil(-1:1, -1:1, -1:1), radius(-1:1, -1:1, -1:1), steps, more
    subject = 'several steps for each exchange'
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [4 * ranks, 8], grid, periodic=[.true., .true.])
    call MPIX_Halo_grid_local(grid, mine)
    call MPIX_Halo_radius_faces(1, stencil)
    call MPIX_Halo_deep_radius(grid, stencil, 3, radius)
    call check(radius(1, 0, 0) == 3 .and. radius(-1, 1, 0) >= 1, 'MPIX_Halo_deep_radius')
    do steps = 1, 3
      call MPIX_Halo_deep_valid(grid, stencil, 3, steps, valid)
      more = 3 - steps
      call check(all(valid%lo(1:2) == mine%lo(1:2) - more) .and. all(valid%hi(1:2) == mine%hi(1:2) + more), &
                 'MPIX_Halo_deep_valid')
    end do
    call MPIX_Halo_grid_free(grid)
  end subroutine

  subroutine pieces
    type(MPIX_Halo_box) :: outer, inner, boxes(6)
    integer :: count, n, cells
    subject = 'MPIX_Halo_difference'
    outer = MPIX_Halo_box([1, 1, 1], [5, 4, 3])
    inner = MPIX_Halo_box([2, 2, 1], [4, 4, 3])
    call MPIX_Halo_difference(outer, inner, boxes, count)
    cells = 0
    do n = 1, count
      cells = cells + product(boxes(n)%hi - boxes(n)%lo + 1)
      call check(all(boxes(n)%lo >= outer%lo) .and. all(boxes(n)%hi <= outer%hi), 'they are within the outer one')
      call check(any(boxes(n)%hi < inner%lo .or. boxes(n)%lo > inner%hi), 'and without the inner one')
    end do
    call check(cells == 5 * 4 * 3 - 3 * 3 * 3, 'they have all other cells')
  end subroutine

end module
