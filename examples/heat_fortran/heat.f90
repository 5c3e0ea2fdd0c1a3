! SPDX-License-Identifier: BSD-3-Clause
!
! Heat on a square, in Fortran: every rank has some of its columns. The two columns at the edges of a rank are computed
! piece by piece, and each piece is marked ready as soon as it is there; the inner columns follow while it is on its way.
! At the end every rank compares its part with what it computes alone.
program heat
  use mpi_f08
  use mpix
  implicit none
  integer, parameter :: n = 240, steps = 100, pieces = 8, rows = n / pieces
  real(8), allocatable, asynchronous, target :: old(:, :), new(:, :), left_out(:), right_out(:), left_in(:), right_in(:)
  real(8), allocatable :: reference(:, :), next(:, :)
  type(MPI_Request) :: requests(4)
  integer :: rank, ranks, left, right, first, last, columns, step, piece, i, j, wrong, wrong_in_all

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  right = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
  first = rank * n / ranks + 1
  last = (rank + 1) * n / ranks
  columns = last - first + 1
  allocate (old(0:n + 1, 0:columns + 1), new(0:n + 1, 0:columns + 1))
  allocate (left_out(n), right_out(n), left_in(n), right_in(n))
  old = 0
  new = 0
  left_in = 0
  right_in = 0
  do j = 1, columns
    old(1:n, j) = [(start(i, first + j - 1), i = 1, n)]
  end do

  ! Once. Columns go to the left with tag 1, and to the right with tag 2; a piece is a partition.
  call MPI_Psend_init(left_out, pieces, int(rows, MPI_COUNT_KIND), MPI_REAL8, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &
                      requests(1))
  call MPI_Psend_init(right_out, pieces, int(rows, MPI_COUNT_KIND), MPI_REAL8, right, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &
                      requests(2))
  call MPI_Precv_init(left_in, pieces, int(rows, MPI_COUNT_KIND), MPI_REAL8, left, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &
                      requests(3))
  call MPI_Precv_init(right_in, pieces, int(rows, MPI_COUNT_KIND), MPI_REAL8, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &
                      requests(4))

  ! The neighbours' columns of the first step.
  call MPI_Startall(4, requests)
  left_out = old(1:n, 1)
  right_out = old(1:n, columns)
  call MPI_Pready_range(0, pieces - 1, requests(1))
  call MPI_Pready_range(0, pieces - 1, requests(2))
  call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)

  do step = 1, steps
    call take_ghosts
    call MPI_Startall(4, requests)
    do piece = 0, pieces - 1
      i = piece * rows
      new(i + 1:i + rows, 1) = heated(old, i + 1, i + rows, 1)
      new(i + 1:i + rows, columns) = heated(old, i + 1, i + rows, columns)
      left_out(i + 1:i + rows) = new(i + 1:i + rows, 1)
      right_out(i + 1:i + rows) = new(i + 1:i + rows, columns)
      call MPI_Pready(piece, requests(1))
      call MPI_Pready(piece, requests(2))
    end do
    do j = 2, columns - 1
      new(1:n, j) = heated(old, 1, n, j)
    end do
    call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)
    old(1:n, 1:columns) = new(1:n, 1:columns)
  end do

  do i = 1, 4
    call MPI_Request_free(requests(i))
  end do

  ! The same, alone.
  allocate (reference(0:n + 1, 0:n + 1), next(0:n + 1, 0:n + 1))
  reference = 0
  do j = 1, n
    reference(1:n, j) = [(start(i, j), i = 1, n)]
  end do
  next = reference
  do step = 1, steps
    do j = 1, n
      next(1:n, j) = heated(reference, 1, n, j)
    end do
    reference = next
  end do
  wrong = count(old(1:n, 1:columns) /= reference(1:n, first:last))
  call MPI_Reduce(wrong, wrong_in_all, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
  if (rank == 0) print '(i0,a,i0,a,i0,a)', steps, ' steps on ', ranks, ' ranks: ', wrong_in_all, ' cells are wrong'
  call MPI_Finalize()

contains

  pure real(8) function start(i, j)
    integer, intent(in) :: i, j
    start = mod(i * 7919 + j * 104729, 1000)
  end function

  subroutine take_ghosts
    old(1:n, 0) = left_in
    old(1:n, columns + 1) = right_in
  end subroutine

  ! Rows top to bottom of column j, one step later.
  pure function heated(u, top, bottom, j) result(v)
    real(8), intent(in) :: u(0:, 0:)
    integer, intent(in) :: top, bottom, j
    real(8) :: v(bottom - top + 1)
    v = u(top:bottom, j) + 0.2d0 * (u(top - 1:bottom - 1, j) + u(top + 1:bottom + 1, j) + u(top:bottom, j - 1) &
                                    + u(top:bottom, j + 1) - 4 * u(top:bottom, j))
  end function

end program
