! SPDX-License-Identifier: BSD-3-Clause
!
! Arrays that MPIX_Halo_field_init or an exchange refuses.
module halo_field_errors
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_associated
  use checks
  use halo_expected_errors
  use mpix_halo
  implicit none
  private
  public :: wrong_arrays, wrong_axes

contains

  ! What MPIX_Halo_field_init sees of the array.
  subroutine wrong_arrays
    real(8), target, asynchronous :: u(6, 6), v(6, 7), q(6, 6, 2), much(2, 2, 2, 2)
    real(8), allocatable, target, asynchronous :: nothing(:, :), nowhere(:, :)
    real(8), pointer, asynchronous :: to_nothing(:, :)
    type(MPIX_Halo_field) :: field
    type(MPIX_Halo_allocation), target :: allocations(1)
    integer :: radius(-1:1, -1:1, -1:1)
    subject = 'wrong arrays'
    call MPIX_Halo_radius_faces(1, radius)
    call MPIX_Halo_field_init(u(1:6:2, :), radius, field, ierror=code)
    call expect_no_field(field, MPI_ERR_BUFFER, 'data is an array section with gaps; pass its first element')
    call MPIX_Halo_field_init(u(1:6:2, :), MPI_REAL8, radius, field, ierror=code)
    call expect_no_field(field, MPI_ERR_BUFFER, 'data is an array section with gaps')
    call MPIX_Halo_field_init(u, radius, field, other=v(:, 1:6:2), ierror=code)
    call expect_no_field(field, MPI_ERR_BUFFER, 'other is an array section with gaps')
    call MPIX_Halo_field_init(u, radius, field, other=v, ierror=code)
    call expect_no_field(field, MPI_ERR_ARG, 'other has another shape than data')
    call MPIX_Halo_field_init(u, radius, field, other=q, ierror=code)
    call expect_no_field(field, MPI_ERR_ARG, 'other has another shape than data')
    call MPIX_Halo_field_init(q, radius, field, components=3, ierror=code)
    call expect_no_field(field, MPI_ERR_ARG, 'components is 3, and the last axis of data has 2 entries')
    call MPIX_Halo_field_init(q, radius, field, .true., components=2, ierror=code)
    call expect_no_field(field, MPI_ERR_ARG, 'components is 2, and the first axis of data has 6 entries')
    call MPIX_Halo_field_init(much, radius, field, ierror=code)
    call expect_no_field(field, MPI_ERR_ARG, 'data has 4 axes; with 1 components it has at most 3')
    allocate (nothing(6, 0))
    to_nothing => null()
    call MPIX_Halo_field_init(nothing, radius, field, ierror=code)
    call expect_no_field(field, MPI_ERR_BUFFER, 'data has no elements')
    call MPIX_Halo_field_init(u(3:2, :), MPI_REAL8, radius, field, ierror=code)
    call expect_no_field(field, MPI_ERR_BUFFER, 'data has no elements')
    call MPIX_Halo_field_init(u, MPI_REAL8, radius, field, other=nothing, ierror=code)
    call expect_no_field(field, MPI_ERR_BUFFER, 'other has no elements')
    call MPIX_Halo_field_init(nowhere, radius, field, ierror=code)
    call expect_no_field(field, MPI_ERR_BUFFER, 'data is not allocated')
    call MPIX_Halo_field_init(to_nothing, radius, field, ierror=code)
    call expect_no_field(field, MPI_ERR_BUFFER, 'data is not allocated')
    call MPIX_Halo_field_init(to_nothing, MPI_REAL8, radius, field, ierror=code)
    call expect_no_field(field, MPI_ERR_BUFFER, 'data is not allocated')
    call MPIX_Halo_field_init(u, radius, field, components=0, ierror=code)
    call expect_no_field(field, MPI_ERR_ARG, 'components is 0; it is at least 1')
    call MPIX_Halo_field_init(u, MPI_REAL8, radius, field, components=-1, ierror=code)
    call expect_no_field(field, MPI_ERR_ARG, 'components is -1; it is at least 1')
    call MPIX_Halo_field_init_boxes(allocations, MPI_REAL8, radius, field, components=0, ierror=code)
    call expect_no_field(field, MPI_ERR_ARG, 'components is 0; it is at least 1')
    call check(.not. c_associated(field%allocations) .and. field%allocation_count == 0, 'no boxes')
    call MPIX_Halo_field_init(u, radius, field, other=v, ierror=code)
    call expect_refused([field], MPI_ERR_BUFFER, 'fields(1)%data is null')
  end subroutine

  subroutine expect_no_field(field, wanted, words)
    type(MPIX_Halo_field), intent(in) :: field
    integer, intent(in) :: wanted
    character(len=*), intent(in) :: words
    call expect(wanted, words)
    call check(.not. c_associated(field%data) .and. .not. c_associated(field%other), 'the field has no memory')
  end subroutine

  ! An axis of components that nobody tells of.
  subroutine wrong_axes(good, mine)
    type(MPIX_Halo_field), intent(in) :: good
    type(MPIX_Halo_box), intent(in) :: mine
    real(8), allocatable, target :: q(:, :, :)
    real(8) :: everything(1), seconds(3)
    type(MPIX_Halo_field) :: field
    type(MPIX_Halo_exchange) :: exchange
    type(MPIX_Halo_stream_exchange) :: stream_exchange
    type(MPIX_Halo_kernel_exchange) :: kernel_exchange
    integer :: radius(-1:1, -1:1, -1:1), n(2), fastest
    character(len=*), parameter :: said = 'fields(1)%data has 3 axes of cells, and the domain has 2; components= tells'
    n = mine%hi(1:2) - mine%lo(1:2) + 3
    call MPIX_Halo_radius_all(1, radius)
    allocate (q(n(1), n(2), 5))
    call MPIX_Halo_field_init(q, radius, field)
    call expect_refused([field], MPI_ERR_ARG, said)
    call MPIX_Halo_reverse_create(plane, [field], MPI_SUM, exchange, code)
    call expect(MPI_ERR_ARG, said)
    call MPIX_Halo_compare_transfers(plane, [field], 1, seconds, fastest, code)
    call expect(MPI_ERR_ARG, said)
    call MPIX_Halo_stream_create(plane, [field], stream_exchange, ierror=code)
    call expect(MPI_ERR_ARG, said)
    call MPIX_Halo_kernel_create(plane, [field], kernel_exchange, ierror=code)
    call expect(MPI_ERR_ARG, said)
    call MPIX_Halo_gather(plane, field, everything, 0, code)
    call expect(MPI_ERR_ARG, 'from%data has 3 axes of cells, and the domain has 2')
    if (own_rank < ranks - 1) field = good
    write (words, '(a,i0,a)') 'rank ', ranks - 1, ': fields(1)%data has 3 axes'
    call expect_refused([field], MPI_ERR_ARG, trim(words))
    ! An axis of one entry does no harm.
    call MPIX_Halo_field_init(q(:, :, 1:1), radius, field)
    call MPIX_Halo_exchange_create(plane, [field], exchange, code)
    call check(code == MPI_SUCCESS, 'the last axis has one entry')
    call MPIX_Halo_exchange_free(exchange)
  end subroutine

end module
