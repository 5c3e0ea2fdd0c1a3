! SPDX-License-Identifier: BSD-3-Clause
!
! Heat on a periodic plane, in Fortran. Each step exchanges a row or column of cells with each neighbour, and meanwhile
! computes the cells that read no ghost cells. The result is compared with the exact solution of the scheme.
program heat2d
  use mpi_f08
  use mpix_halo
  implicit none
  integer, parameter :: nx = 240, ny = 180, steps = 200
  real(8), parameter :: a = 2 * acos(-1d0) / nx, b = 2 * acos(-1d0) / ny, k = 0.2d0
  real(8), pointer, contiguous, asynchronous :: now(:, :), next(:, :), last(:, :)
  type(MPIX_Halo_grid) :: grid
  type(MPIX_Halo_exchange) :: exchange
  type(MPIX_Halo_field) :: field
  type(MPIX_Halo_box) :: mine, inner, outer(6)
  integer :: faces(-1:1, -1:1, -1:1), step, boxes, n, x, y, rank, ranks
  real(8) :: factor, error, largest

  call MPI_Init()
  call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, periodic=[.true., .true.])
  call MPIX_Halo_grid_local(grid, mine)
  ! Two arrays, written in turn, with one ghost cell on each side. Their indices are those of the whole plane.
  allocate (now(mine%lo(1) - 1:mine%hi(1) + 1, mine%lo(2) - 1:mine%hi(2) + 1))
  allocate (next, mold=now)
  call MPIX_Halo_radius_faces(1, faces)
  call MPIX_Halo_field_init(now, faces, field, other=next)
  call MPIX_Halo_exchange_create(grid, [field], exchange)
  call MPIX_Halo_interior(exchange, inner)
  call MPIX_Halo_boundary(exchange, outer, boxes)
  do concurrent (y = mine%lo(2):mine%hi(2), x = mine%lo(1):mine%hi(1))
    now(x, y) = sin(a * x) * sin(b * y)
  end do

  do step = 1, steps
    call MPIX_Halo_start(exchange)
    call heat(inner)
    call MPIX_Halo_finish(exchange)
    do n = 1, boxes
      call heat(outer(n))
    end do
    call MPIX_Halo_swap(1, exchange)
    last => now
    now => next
    next => last
  end do

  ! Each step multiplies this wave by the same number.
  factor = (1 - k * (4 - 2 * cos(a) - 2 * cos(b)))**steps
  error = 0
  do y = mine%lo(2), mine%hi(2)
    do x = mine%lo(1), mine%hi(1)
      error = max(error, abs(now(x, y) - factor * sin(a * x) * sin(b * y)))
    end do
  end do
  call MPI_Allreduce(error, largest, 1, MPI_REAL8, MPI_MAX, MPI_COMM_WORLD)
  call MPIX_Halo_grid_get(grid, rank=rank, ranks=ranks)
  if (rank == 0) print '(i0,a,i0,2a)', steps, ' steps on ', ranks, ' ranks: ', merge('right', 'wrong', largest < 1d-12)
  call MPIX_Halo_exchange_free(exchange)
  call MPIX_Halo_grid_free(grid)
  call MPI_Finalize()
  if (largest >= 1d-12) error stop 1

contains

  subroutine heat(cells)
    type(MPIX_Halo_box), intent(in) :: cells
    integer :: x, y
    do y = cells%lo(2), cells%hi(2)
      do x = cells%lo(1), cells%hi(1)
        next(x, y) = now(x, y) + k * (now(x - 1, y) + now(x + 1, y) + now(x, y - 1) + now(x, y + 1) - 4 * now(x, y))
      end do
    end do
  end subroutine

end program
