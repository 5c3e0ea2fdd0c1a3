! SPDX-License-Identifier: BSD-3-Clause
!
! Random exchanges by the module mpix_halo and mpi_f08: domains of one to three axes, periodic or not, any radii, padded
! arrays, all kinds of numbers, components before the cells and behind them. Ghost cells are poisoned before each epoch,
! whose data are new, and every cell of both allocations is compared. `halo_exchanges <seed>` repeats a failure.
program halo_exchanges
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only: int64
  use checks
  use halo_cells
  use halo_memory_int8
  use halo_memory_int16
  use halo_memory_int32
  use halo_memory_int64
  use halo_memory_real32
  use halo_memory_real64
  use halo_memory_complex32
  use halo_memory_complex64
  use mpix_halo
  implicit none
  integer, parameter :: epochs = 4
  type :: any_memory
    class(memory), allocatable :: of
  end type
  integer :: number, ranks
  character(len=20) :: argument

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, own_rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call system_clock(seed)
  if (command_argument_count() > 0) then
    call get_command_argument(1, argument)
    read (argument, *) seed
  end if
  seed = mod(seed, 1000000007_int64)
  call MPI_Bcast(seed, 1, MPI_INTEGER8, 0, MPI_COMM_WORLD)
  do number = 1, 48 / ranks
    call exchange_some(number)
  end do
  call MPI_Finalize()
  if (own_rank == 0) print '(a)', 'passed'

contains

  subroutine exchange_some(number)
    integer, intent(in) :: number
    type(MPIX_Halo_grid) :: grid
    type(MPIX_Halo_exchange) :: exchange
    type(MPIX_Halo_field), allocatable :: fields(:)
    type(any_memory), allocatable :: u(:)
    type(domain) :: whole
    integer, parameter :: transfers(3) = [MPIX_HALO_AUTOMATIC, MPIX_HALO_PACKED, MPIX_HALO_PLAIN]
    integer :: f, epoch, key, i
    whole = random_domain(ranks)
    write (subject, '(a,i0,a,i0,a,3(1x,i0))') 'case ', number, ', ', whole%axes, ' axes of', whole%extent
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, whole%extent(1:whole%axes), grid, periodic=whole%periodic(1:whole%axes))
    call MPIX_Halo_grid_local(grid, whole%mine)
    f = 1 + common(3)
    allocate (u(f), fields(f))
    do f = 1, size(u)
      call make(u(f)%of)
      u(f)%of%whole = whole
      u(f)%of%components = 1 + common(3)
      u(f)%of%interleaved = common(2) == 0
      call random_radius(whole%axes, u(f)%of%radius)
      u(f)%of%below = u(f)%of%depth(-1)
      u(f)%of%above = u(f)%of%depth(1)
      do i = 1, whole%axes
        u(f)%of%below(i) = u(f)%of%below(i) + common(2)
        u(f)%of%above(i) = u(f)%of%above(i) + common(2)
      end do
      call u(f)%of%describe(fields(f))
    end do
    i = 1 + common(4)
    if (i > 3) then
      call MPIX_Halo_exchange_create(grid, fields, exchange)
    else
      call MPIX_Halo_exchange_create(grid, fields, transfers(i), exchange)
    end if
    call check_boxes(whole, u, exchange)
    do epoch = 1, epochs
      key = number * 100 + epoch * 10
      do f = 1, size(u)
        call u(f)%of%fill(key + f)
      end do
      if (common(2) == 0) then
        call MPIX_Halo_start(exchange)
      else
        call MPIX_Halo_begin(exchange)
        do f = size(u), 1, -1
          call MPIX_Halo_ready(f, exchange)
        end do
      end if
      call MPIX_Halo_finish(exchange)
      do f = 1, size(u)
        call u(f)%of%verify(key + f)
      end do
      f = 1 + common(size(u))
      if (epoch == epochs) call u(f)%of%verify_gathered(grid, fields(f), key + f)
      if (common(2) == 0) then
        call MPIX_Halo_swap(f, exchange)
        u(f)%of%swapped = .not. u(f)%of%swapped
      end if
    end do
    call MPIX_Halo_exchange_free(exchange)
    call MPIX_Halo_grid_free(grid)
    do f = 1, size(u)
      call u(f)%of%release
    end do
  end subroutine

  subroutine make(made)
    class(memory), allocatable, intent(out) :: made
    select case (common(8))
    case (0)
      allocate (memory_int8 :: made)
    case (1)
      allocate (memory_int16 :: made)
    case (2)
      allocate (memory_int32 :: made)
    case (3)
      allocate (memory_int64 :: made)
    case (4)
      allocate (memory_real32 :: made)
    case (5)
      allocate (memory_real64 :: made)
    case (6)
      allocate (memory_complex32 :: made)
    case default
      allocate (memory_complex64 :: made)
    end select
  end subroutine

  ! The interior and the boundary have each cell of the box once, and the stencils of the interior read no ghost cell
  ! that is filled.
  subroutine check_boxes(whole, u, exchange)
    type(domain), intent(in) :: whole
    type(any_memory), intent(in) :: u(:)
    type(MPIX_Halo_exchange), intent(in) :: exchange
    type(MPIX_Halo_box) :: inner, outer(6)
    integer, allocatable :: seen(:, :, :)
    integer :: n, boxes, x, y, z, dx, dy, dz, f, a(3), reach(3)
    call MPIX_Halo_interior(exchange, inner)
    call MPIX_Halo_boundary(exchange, outer, boxes)
    associate (lo => whole%mine%lo, hi => whole%mine%hi)
      allocate (seen(lo(1):hi(1), lo(2):hi(2), lo(3):hi(3)))
      seen = 0
      call see(seen, lo, inner)
      do n = 1, boxes
        call see(seen, lo, outer(n))
      end do
      call check(all(seen == 1), 'the interior and the boundary have each cell once')
    end associate
    do f = 1, size(u)
      do z = inner%lo(3), inner%hi(3)
        do y = inner%lo(2), inner%hi(2)
          do x = inner%lo(1), inner%hi(1)
            do dz = -1, 1
              do dy = -1, 1
                do dx = -1, 1
                  reach = u(f)%of%radius(dx, dy, dz) * [dx, dy, dz]
                  a = [x, y, z] + reach
                  if (all(a >= whole%mine%lo .and. a <= whole%mine%hi)) cycle
                  call check(.not. is_filled(whole, u(f)%of%radius, a), 'the interior reads no ghost cell')
                end do
              end do
            end do
          end do
        end do
      end do
    end do
  end subroutine

  subroutine see(seen, lo, box)
    integer, intent(in) :: lo(3)
    integer, intent(inout) :: seen(lo(1):, lo(2):, lo(3):)
    type(MPIX_Halo_box), intent(in) :: box
    associate (part => seen(box%lo(1):box%hi(1), box%lo(2):box%hi(2), box%lo(3):box%hi(3)))
      part = part + 1
    end associate
  end subroutine

end program
