! SPDX-License-Identifier: BSD-3-Clause
!
! Wrong use of the module mpix_halo: the class of the error, on all ranks where the call is collective, and a sentence
! that names the argument as the Fortran program knows it, with cells and positions from 1.
program halo_errors
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_associated, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: int64
  use checks
  use halo_expected_errors
  use halo_field_errors
  use halo_gather_errors
  use mpix_halo
  implicit none

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, own_rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], plane)
  call wrong_grids
  call wrong_questions
  call wrong_arrays
  call wrong_exchanges
  call wrong_gathers
  call wrong_calls
  call wrong_files
  call MPIX_Halo_grid_free(plane)
  call MPI_Finalize()
  if (own_rank == 0) print '(a)', 'passed'

contains

  subroutine wrong_grids
    type(MPIX_Halo_grid) :: grid
    type(MPIX_Halo_box) :: boxes(ranks)
    logical :: flags(2) = .true.
    integer :: n
    subject = 'wrong grids'
    call MPIX_Halo_grid_create(MPI_COMM_NULL, [nx, ny], grid, ierror=code)
    call expect(MPI_ERR_COMM, 'comm is MPI_COMM_NULL')
    call check(.not. c_associated(grid%address), 'no grid is made')
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [4, 4, 4, 4], grid, ierror=code)
    call expect(MPI_ERR_DIMS, 'extent has 4 entries; it has 1 to 3')
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, 0], grid, ierror=code)
    call expect(MPI_ERR_DIMS, 'rank 0: extent(2) is 0; it is at least 1')
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, [.true., .true., .true.], ierror=code)
    call expect(MPI_ERR_ARG, 'periodic has 3 entries; it has 2, one for each axis')
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, [.true.], ierror=code)
    call expect(MPI_ERR_ARG, 'periodic has 1 entries; it has 2, one for each axis')
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, flags(1:0), ierror=code)
    call expect(MPI_ERR_ARG, 'periodic has 0 entries')
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, shortest=[1], ierror=code)
    call expect(MPI_ERR_ARG, 'shortest has 1 entries; it has 2, one for each axis')
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, shortest=[1, 1, 1, 1], ierror=code)
    call expect(MPI_ERR_ARG, 'shortest has 4 entries')
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, shortest=[1, -2], ierror=code)
    call expect(MPI_ERR_ARG, 'shortest(2) is -2; it is at least 1')
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, boxes_per_rank=-1, ierror=code)
    call expect(MPI_ERR_ARG, 'boxes_per_rank is -1; it is at least 1')
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, within_node=[1d0, 1d0, 1d0], ierror=code)
    call expect(MPI_ERR_ARG, 'within_node has 3 entries')
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, within_node=[1d0, -1d0], ierror=code)
    call expect(MPI_ERR_ARG, 'within_node(2) is -1')
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, network=-1d0, ierror=code)
    call expect(MPI_ERR_ARG, 'network is -1')
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, owners=[0], ierror=code)
    call expect(MPI_ERR_ARG, 'owners are those of boxes, which are missing')
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, boxes=boxes(1:0), ierror=code)
    call expect(MPI_ERR_ARG, 'boxes has no entry')
    do n = 1, ranks
      boxes(n) = MPIX_Halo_box([1, 1, 1], [nx, merge(ny, 0, n == 1), 1])
    end do
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, boxes=boxes, owners=[(0, n=0, ranks)], ierror=code)
    write (words, '(a,i0,a,i0)') 'owners has ', ranks + 1, ' entries, and boxes has ', ranks
    call expect(MPI_ERR_ARG, trim(words))
    boxes(1)%hi(1) = nx + 1
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, boxes=boxes, ierror=code)
    call expect(MPI_ERR_ARG, 'boxes do not cover the domain once: boxes(1), (1:10, 1:7, 1:1), is not within the domain')
    boxes(1)%hi(1) = -1
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, boxes=boxes, ierror=code)
    call expect(MPI_ERR_ARG, &
                'boxes(1) is (1:-1, 1:7, 1:1): hi is below lo - 1; an empty box has hi equal to lo - 1')
    if (ranks == 1) return
    boxes(1)%hi(1) = nx
    boxes(2) = MPIX_Halo_box([3, 2, 1], [4, 2, 1])
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, boxes=boxes, ierror=code)
    call expect(MPI_ERR_ARG, 'boxes(1) and boxes(2) overlap, in (3:4, 2:2, 1:1)')
    boxes(2)%hi(2) = 1
    boxes(2)%lo(1) = boxes(2)%lo(1) + merge(1, 0, own_rank == ranks - 1)
    call MPIX_Halo_grid_create(MPI_COMM_WORLD, [nx, ny], grid, boxes=boxes, ierror=code)
    write (words, '(a,i0,a)') 'rank ', ranks - 1, ': boxes(2)%lo is 4, 2, 1 here, and 3, 2, 1 on rank 0; all ranks'
    call expect(MPI_ERR_ARG, trim(words))
  end subroutine

  subroutine wrong_questions
    type(MPIX_Halo_box) :: box, points
    integer :: rank, count, list(1), cell(3), radius(-1:1, -1:1, -1:1), deep(-1:1, -1:1, -1:1)
    subject = 'wrong questions'
    box = MPIX_Halo_box([1, 1, 1], [1, 1, 1])
    call MPIX_Halo_grid_get(MPIX_HALO_GRID_NULL, rank=rank, ierror=code)
    call expect(MPI_ERR_ARG, 'grid is null')
    call MPIX_Halo_grid_local(MPIX_HALO_GRID_NULL, box, code)
    call expect(MPI_ERR_ARG, 'MPIX_Halo_grid_local: grid is null')
    call MPIX_Halo_grid_local(2, plane, box, code)
    call expect(MPI_ERR_ARG, 'i is 2; this rank has 1 boxes')
    call MPIX_Halo_global_index(plane, 0, [1, 1, 1], cell, code)
    call expect(MPI_ERR_ARG, 'i is 0; this rank has 1 boxes')
    call MPIX_Halo_grid_box(plane, ranks, box, code)
    write (words, '(a,i0,a,i0)') 'number is ', ranks, '; there are ', ranks
    call expect(MPI_ERR_ARG, trim(words))
    call MPIX_Halo_grid_owner(plane, [nx + 1, 1, 1], rank, code)
    call expect(MPI_ERR_ARG, '(10, 1, 1) is not in the domain')
    call MPIX_Halo_grid_neighbours(plane, [0, 2, 0], 1, list, count, code)
    call expect(MPI_ERR_ARG, 'direction is (0, 2, 0); its entries are -1, 0 or 1, and not all 0')
    call MPIX_Halo_grid_neighbours(plane, [0, 0, 0], 1, list, count, code)
    call expect(MPI_ERR_ARG, 'direction is (0, 0, 0);')
    call MPIX_Halo_grid_neighbours(plane, [0, 0, -1], 1, list, count, code)
    call expect(MPI_ERR_ARG, 'direction is (0, 0, -1); the domain has 2 axes')
    call MPIX_Halo_grid_neighbours(plane, [1, 0, 0], -1, list, count, code)
    call expect(MPI_ERR_ARG, 'depth is -1; it is at least 0')
    call MPIX_Halo_points(plane, box, [.false., .false., .true.], points, code)
    call expect(MPI_ERR_ARG, 'staggered(3): the domain has 2 axes')
    call MPIX_Halo_radius_of(reshape([1, 0], [2, 1]), radius, code)
    call expect(MPI_ERR_ARG, 'offsets has 2 rows; it has 3')
    call MPIX_Halo_radius_all(1, radius)
    call MPIX_Halo_deep_radius(plane, radius, 0, deep, code)
    call expect(MPI_ERR_ARG, 'every is 0; it is at least 1')
    call MPIX_Halo_deep_valid(plane, radius, 2, 3, box, ierror=code)
    call expect(MPI_ERR_ARG, 'steps is 3; it is 0 to 2')
  end subroutine

  subroutine wrong_exchanges
    real(8), allocatable, target, asynchronous :: u(:, :)
    real(8) :: everything(1)
    type(MPIX_Halo_field) :: good, field
    type(MPIX_Halo_exchange) :: exchange
    type(MPIX_Halo_box) :: mine
    integer(int64) :: bytes
    integer :: radius(-1:1, -1:1, -1:1), small(-1:1, -1:1, -1:1), last
    subject = 'wrong exchanges'
    last = ranks - 1
    call MPIX_Halo_grid_local(plane, mine)
    allocate (u(mine%lo(1) - 1:mine%hi(1) + 1, mine%lo(2) - 1:mine%hi(2) + 1))
    call MPIX_Halo_radius_all(1, radius)
    call MPIX_Halo_radius_all(2, small)
    call MPIX_Halo_field_init(u, radius, good)
    call MPIX_Halo_exchange_create(MPIX_HALO_GRID_NULL, [good], exchange, code)
    call expect(MPI_ERR_ARG, 'grid is null')
    call MPIX_Halo_exchange_create(plane, [good], 4, exchange, code)
    call expect(MPI_ERR_ARG, 'transfer is 4; it is 0 (packed)')
    call MPIX_Halo_exchange_create(plane, [good], 77, exchange, code)
    call expect(MPI_ERR_ARG, 'transfer is 77; it is 0 (packed)')
    call check(.not. c_associated(exchange%address), 'no exchange is made')
    ! One rank alone has a field without memory, the second of two.
    field = good
    field%data = merge_pointer(own_rank == last, c_null_ptr, field%data)
    write (words, '(a,i0,a)') 'rank ', last, ': fields(2)%data is null'
    call expect_refused([empty(), field], MPI_ERR_BUFFER, trim(words))
    ! The array is too small for its radius: along x, and along y.
    call MPIX_Halo_field_init(u, small, field)
    call expect_refused([field], MPI_ERR_ARG, 'fields(1)%layout%row_bytes is ')
    call MPIX_Halo_field_init(u(:, mine%lo(2):), radius, field)
    call expect_refused([field], MPI_ERR_BUFFER, 'fields(1)%allocated is ')
    field = good
    field%layout%below(2) = 0
    call expect_refused([field], MPI_ERR_ARG, 'fields(1)%layout%below(2) is 0; the radius needs 1 cells there')
    field = good
    field%layout%staggered(3) = 1
    call expect_refused([field], MPI_ERR_ARG, 'fields(1)%layout%staggered(3): the domain has 2 axes')
    field = good
    field%type = MPI_DATATYPE_NULL%MPI_VAL
    call expect_refused([field], MPI_ERR_TYPE, 'fields(1)%type is MPI_DATATYPE_NULL')
    field = good
    field%radius(1, 0, 0) = -1
    call expect_refused([field], MPI_ERR_ARG, 'fields(1)%radius is -1 in direction +x; it is at least 0')
    field = good
    field%allocation_count = 1
    call expect_refused([field], MPI_ERR_ARG, 'fields(1)%allocation_count is 1, and allocations is null')
    call expect_refused([good, good], MPI_ERR_ARG, 'fields(2)%data overlaps fields(1)%data')
    call wrong_axes(good, mine)
    call MPIX_Halo_reverse_create(plane, [good], MPI_PROD, exchange, code)
    call expect(MPI_ERR_OP, 'op is not MPI_SUM, MPI_MIN or MPI_MAX')
    field = good
    field%layout%components = 0
    call MPIX_Halo_field_bytes(plane, field, bytes, code)
    call expect(MPI_ERR_ARG, 'field%layout%components is 0; it is at least 1')
    call MPIX_Halo_gather(plane, field, everything, 0, code)
    call expect(MPI_ERR_ARG, 'from%layout%components is 0; it is at least 1')
    call MPIX_Halo_gather(plane, good, everything, ranks, code)
    call expect(MPI_ERR_ROOT, 'root is ')
    call MPIX_Halo_gather(plane, good, u(::2, :), 0, code)
    call expect(MPI_ERR_BUFFER, 'rank 0: global is not allocated, or has gaps')
  end subroutine

  ! A field without ghost cells, in memory of its own.
  type(MPIX_Halo_field) function empty()
    integer, allocatable, target, save :: cells(:)
    integer :: radius(-1:1, -1:1, -1:1)
    if (.not. allocated(cells)) allocate (cells(nx * ny))
    radius = 0
    call MPIX_Halo_field_init(cells, radius, empty)
  end function

  type(c_ptr) function merge_pointer(condition, yes, no)
    logical, intent(in) :: condition
    type(c_ptr), intent(in) :: yes, no
    merge_pointer = no
    if (condition) merge_pointer = yes
  end function

  subroutine wrong_calls
    integer, allocatable, target, asynchronous :: u(:, :), v(:, :)
    type(MPIX_Halo_field) :: fields(2)
    type(MPIX_Halo_exchange) :: exchange
    type(MPIX_Halo_box) :: mine, box
    type(MPIX_Halo_ghost_piece) :: pieces(1)
    type(MPIX_Halo_step_report) :: report
    type(c_ptr) :: address
    integer :: radius(-1:1, -1:1, -1:1), count
    subject = 'wrong calls'
    call MPIX_Halo_grid_local(plane, mine)
    allocate (u(mine%lo(1) - 1:mine%hi(1) + 1, mine%lo(2) - 1:mine%hi(2) + 1))
    allocate (v, mold=u)
    call MPIX_Halo_radius_all(1, radius)
    call MPIX_Halo_field_init(u, radius, fields(1))
    call MPIX_Halo_field_init(v, radius, fields(2))
    call MPIX_Halo_start(MPIX_HALO_EXCHANGE_NULL, code)
    call expect(MPI_ERR_ARG, 'exchange is null')
    call MPIX_Halo_exchange_create(plane, fields, exchange)
    call MPIX_Halo_finish(exchange, code)
    call expect(MPI_ERR_REQUEST, 'MPIX_Halo_finish: ')
    call MPIX_Halo_swap(0, exchange, code)
    call expect(MPI_ERR_ARG, 'field is 0; there are 2')
    call MPIX_Halo_swap(2, exchange, code)
    call expect(MPI_ERR_ARG, 'field 2 has no second allocation')
    call MPIX_Halo_data(2, 2, exchange, address, code)
    call expect(MPI_ERR_ARG, 'i is 2; this rank has 1 boxes')
    call MPIX_Halo_interior(2, exchange, box, code)
    call expect(MPI_ERR_ARG, 'i is 2; this rank has 1 boxes')
    call MPIX_Halo_ghost_pieces(1, exchange, pieces, count, code)
    call expect(MPI_ERR_ARG, 'the ghost cells are in the fields')
    call MPIX_Halo_begin(exchange)
    call MPIX_Halo_ready(3, exchange, code)
    call expect(MPI_ERR_ARG, 'field is 3; there are 2')
    call MPIX_Halo_ready(2, exchange)
    call MPIX_Halo_ready(2, exchange, code)
    call expect(MPI_ERR_REQUEST, 'field 2 is ready already')
    call MPIX_Halo_finish(exchange, code)
    call expect(MPI_ERR_REQUEST, 'field 1 is not ready')
    call MPIX_Halo_exchange_free(exchange, code)
    call expect(MPI_ERR_REQUEST, 'the exchange is active; finish it first')
    call MPIX_Halo_ready(1, exchange)
    call MPIX_Halo_finish(exchange)
    call MPIX_Halo_exchange_free(exchange)
    call MPIX_Halo_step_report_create(plane, -1, 0_int64, report, code)
    call expect(MPI_ERR_ARG, 'steps is -1; it is at least 0')
    call MPIX_Halo_step_report_done(1, MPIX_HALO_STEP_REPORT_NULL, code)
    call expect(MPI_ERR_ARG, 'report is null')
  end subroutine

  subroutine wrong_files
    type(MPIX_Halo_named_field) :: named(2)
    integer :: step
    subject = 'wrong files'
    step = 0
    named(1) = MPIX_Halo_named_field('u', empty())
    named(2) = MPIX_Halo_named_field('u', empty())
    call MPIX_Halo_write_checkpoint(plane, '   ', named(1:1), 1, code)
    call expect(MPI_ERR_ARG, 'path is empty')
    call MPIX_Halo_write_checkpoint(plane, 'halo_errors.checkpoint', named, 1, code)
    call expect(MPI_ERR_ARG, 'fields(2)%name is u, which is that of fields(1)')
    named(2)%name = repeat('n', 256)
    call MPIX_Halo_write_checkpoint(plane, 'halo_errors.checkpoint', named, 1, code)
    call expect(MPI_ERR_ARG, 'fields(2)%name has 256 characters; at most 255')
    named(2)%name = 'v'
    named(2)%field%layout%components = 0
    call MPIX_Halo_write_checkpoint(plane, 'halo_errors.checkpoint', named, 1, code)
    call expect(MPI_ERR_ARG, 'fields(2)%field%layout%components is 0; it is at least 1')
    call MPIX_Halo_read_checkpoint(plane, 'no_such_folder/fields.of', named(1:1), step, code)
    call expect(MPI_ERR_NO_SUCH_FILE, 'no_such_folder/fields.of: ')
    call MPIX_Halo_write_vti(plane, 'picture.vti', named(1:1), ierror=code)
    call expect(MPI_ERR_ARG, 'path is picture.vti; it ends in .pvti')
    call MPIX_Halo_write_vti(plane, 'picture.pvti', named(1:1), spacing=[1d0, -1d0, 1d0], ierror=code)
    call expect(MPI_ERR_ARG, 'spacing(2) is -1; it is above 0 and finite')
    call MPIX_Halo_write_png(plane, 'picture.png', named(1)%field, axis=4, ierror=code)
    call expect(MPI_ERR_ARG, 'axis is 4; it is 1 to 3')
    call MPIX_Halo_write_png(plane, 'picture.png', named(1)%field, axis=1, at=0, ierror=code)
    call expect(MPI_ERR_ARG, 'at is 0; it is 1 to 9')
    call MPIX_Halo_write_png(plane, 'picture.png', named(1)%field, component=2, ierror=code)
    call expect(MPI_ERR_ARG, 'component is 2; it is 1 to 1')
    call MPIX_Halo_write_png(plane, 'picture.png', named(1)%field, 2d0, 1d0, ierror=code)
    call expect(MPI_ERR_ARG, 'low is 2, and high is 1; the first is less, or both are 0')
    call MPIX_Halo_write_png(plane, 'picture.png', named(1)%field, colors=7, ierror=code)
    call expect(MPI_ERR_ARG, 'colors is 7; it is 0 (grey)')
  end subroutine

end program
