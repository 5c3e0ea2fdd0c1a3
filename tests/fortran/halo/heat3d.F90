! SPDX-License-Identifier: BSD-3-Clause
!
! Heat in three dimensions by the module mpix_halo and the handles of the module mpi, which are integers. Every rank
! also computes the whole domain alone: after each exchange all cells and ghost cells are compared, bit by bit, and in
! the end what is gathered. One run for each choice of periodic axes; the data are new in each.
program halo_heat3d
  use mpi
  use, intrinsic :: iso_fortran_env, only: int64
  use checks
  use mpix_halo
  implicit none
  integer, parameter :: nx = 12, ny = 10, nz = 9, n(3) = [nx, ny, nz], steps = 5
  integer :: ranks, way, code
  character(len=20) :: argument

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, own_rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  call system_clock(seed)
  if (command_argument_count() > 0) then
    call get_command_argument(1, argument)
    read (argument, *) seed
  end if
  seed = mod(seed, 1000000007_int64)
  call MPI_Bcast(seed, 1, MPI_INTEGER8, 0, MPI_COMM_WORLD, code)
  do way = 0, 7
    call heat([btest(way, 0), btest(way, 1), btest(way, 2)])
  end do
  call sums
  call MPI_Finalize(code)
  if (own_rank == 0) print '(a)', 'passed'

contains

  ! The domain with one ghost cell on each side, which have poison outside of it.
  subroutine heat(periodic)
    logical, intent(in) :: periodic(3)
    real(8), parameter :: poison = -1d300
    real(8) :: all_now(0:nx + 1, 0:ny + 1, 0:nz + 1), all_next(nx, ny, nz), gathered(nx, ny, nz)
    real(8), pointer, contiguous :: now(:, :, :), next(:, :, :), last(:, :, :)
    type(MPIX_Halo_grid) :: grid
    type(MPIX_Halo_exchange) :: exchange
    type(MPIX_Halo_field) :: field
    type(MPIX_Halo_box) :: mine, inner, outer(6)
    integer :: faces(-1:1, -1:1, -1:1), step, i, boxes, x, y, z
    write (subject, '(a,3l2)') 'heat in three dimensions, periodic:', periodic
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, n, grid, periodic, ierror=code)
    call check(code == MPI_SUCCESS, 'ierror is MPI_SUCCESS')
    call MPIX_Halo_grid_local(grid, mine, code)
    associate (lo => mine%lo - 1, hi => mine%hi + 1)
      allocate (now(lo(1):hi(1), lo(2):hi(2), lo(3):hi(3)))
    end associate
    allocate (next, mold=now)
    call MPIX_Halo_radius_faces(1, faces, code)
    call MPIX_Halo_field_init(now, MPI_DOUBLE_PRECISION, faces, field, other=next, ierror=code)
    call check(code == MPI_SUCCESS, 'ierror is MPI_SUCCESS')
    call MPIX_Halo_exchange_create(grid, [field], exchange, code)
    call MPIX_Halo_interior(exchange, inner, code)
    call MPIX_Halo_boundary(exchange, outer, boxes, code)

    do z = 1, nz
      do y = 1, ny
        all_next(:, y, z) = [(common(1000000) / 1d6, x = 1, nx)]
      end do
    end do
    now = poison
    now(mine%lo(1):mine%hi(1), mine%lo(2):mine%hi(2), mine%lo(3):mine%hi(3)) = &
      all_next(mine%lo(1):mine%hi(1), mine%lo(2):mine%hi(2), mine%lo(3):mine%hi(3))
    do step = 1, steps
      next = poison
      call surround(all_next, periodic, poison, all_now)
      call MPIX_Halo_start(exchange, code)
      call heat_of(now, next, inner, periodic)
      call MPIX_Halo_finish(exchange, code)
      call compare(now, mine, all_now, poison)
      do i = 1, boxes
        call heat_of(now, next, outer(i), periodic)
      end do
      do z = 1, nz
        do y = 1, ny
          do x = 1, nx
            all_next(x, y, z) = heated(all_now, [0, 0, 0], [x, y, z], periodic)
          end do
        end do
      end do
      call MPIX_Halo_swap(1, exchange, code)
      last => now
      now => next
      next => last
    end do
    call MPIX_Halo_field_init(now, faces, field)
    gathered = poison
    call MPIX_Halo_gather(grid, field, gathered, ranks - 1, code)
    call check(all(gathered == merge(all_next, poison, own_rank == ranks - 1)), 'what is gathered is right')
    call MPIX_Halo_exchange_free(exchange, code)
    call MPIX_Halo_grid_free(grid, code)
    deallocate (now, next)
  end subroutine

  subroutine surround(inside, periodic, poison, made)
    real(8), intent(in) :: inside(nx, ny, nz), poison
    logical, intent(in) :: periodic(3)
    real(8), intent(out) :: made(0:nx + 1, 0:ny + 1, 0:nz + 1)
    made = poison
    made(1:nx, 1:ny, 1:nz) = inside
    if (periodic(1)) made([0, nx + 1], 1:ny, 1:nz) = inside([nx, 1], :, :)
    if (periodic(2)) made(1:nx, [0, ny + 1], 1:nz) = inside(:, [ny, 1], :)
    if (periodic(3)) made(1:nx, 1:ny, [0, nz + 1]) = inside(:, :, [nz, 1])
  end subroutine

  ! Of the box and its faces. At edges and corners nothing is stored.
  subroutine compare(now, mine, all_now, poison)
    real(8), pointer, intent(in) :: now(:, :, :)
    type(MPIX_Halo_box), intent(in) :: mine
    real(8), intent(in) :: all_now(0:, 0:, 0:), poison
    integer :: x, y, z, beyond
    real(8) :: wanted
    do z = mine%lo(3) - 1, mine%hi(3) + 1
      do y = mine%lo(2) - 1, mine%hi(2) + 1
        do x = mine%lo(1) - 1, mine%hi(1) + 1
          beyond = count([x, y, z] < mine%lo .or. [x, y, z] > mine%hi)
          wanted = poison
          if (beyond < 2) wanted = all_now(x, y, z)
          call check(now(x, y, z) == wanted, 'cells and ghost cells are as in the whole domain')
        end do
      end do
    end do
  end subroutine

  subroutine heat_of(now, next, box, periodic)
    real(8), pointer, intent(in) :: now(:, :, :), next(:, :, :)
    type(MPIX_Halo_box), intent(in) :: box
    logical, intent(in) :: periodic(3)
    integer :: x, y, z
    do z = box%lo(3), box%hi(3)
      do y = box%lo(2), box%hi(2)
        do x = box%lo(1), box%hi(1)
          next(x, y, z) = heated(now, lbound(now), [x, y, z], periodic)
        end do
      end do
    end do
  end subroutine

  ! No heat passes the ends of the domain.
  pure real(8) function heated(u, first, at, periodic)
    integer, intent(in) :: first(3), at(3)
    real(8), intent(in) :: u(first(1):, first(2):, first(3):)
    logical, intent(in) :: periodic(3)
    integer :: a, side, beside(3)
    heated = u(at(1), at(2), at(3))
    do a = 1, 3
      do side = -1, 1, 2
        beside = at
        beside(a) = at(a) + side
        if (.not. periodic(a) .and. (beside(a) < 1 .or. beside(a) > n(a))) cycle
        heated = heated + 0.1d0 * (u(beside(1), beside(2), beside(3)) - u(at(1), at(2), at(3)))
      end do
    end do
  end function

  ! A reverse exchange by an operation that is an integer.
  subroutine sums
    integer, target, asynchronous :: u(0:5)
    type(MPIX_Halo_grid) :: grid
    type(MPIX_Halo_exchange) :: exchange
    type(MPIX_Halo_field) :: field
    integer :: faces(-1:1, -1:1, -1:1)
    subject = 'the largest value, in a reverse exchange'
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [4 * ranks], grid, [.true.])
    call MPIX_Halo_radius_faces(1, faces)
    call MPIX_Halo_field_init(u, faces, field)
    call MPIX_Halo_reverse_create(grid, [field], MPI_MAX, exchange)
    u = [100 + own_rank, 1, 2, 3, 4, 200 + own_rank]
    call MPIX_Halo_start(exchange)
    call MPIX_Halo_finish(exchange)
    call check(all(u(1:4) == [200 + mod(own_rank + ranks - 1, ranks), 2, 3, 100 + mod(own_rank + 1, ranks)]), &
               'the ghost cells of both neighbours are combined with this rank''s cells')
    call MPIX_Halo_exchange_free(exchange)
    call MPIX_Halo_grid_free(grid)
  end subroutine

end program
