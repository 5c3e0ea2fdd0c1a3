! SPDX-License-Identifier: BSD-3-Clause
!
! MPIX_Halo_gather into arrays of the wrong shape or kind.
module halo_gather_errors
  use mpi_f08
  use checks
  use halo_expected_errors
  use mpix_halo
  implicit none
  private
  public :: wrong_gathers
  integer, parameter :: room = 4 * nx * ny

contains

  ! The root's array is not one for the field. The others give one element.
  subroutine wrong_gathers
    real(8), target :: large(room)
    real(4), target :: halves(room)
    integer(1), target :: bytes(8 * room)
    real(8), allocatable, target :: u(:, :), both(:, :, :)
    real(8), allocatable, target, save :: only_there(:, :)
    real(8), pointer, contiguous :: g3(:, :, :), g4(:, :, :, :)
    real(4), pointer, contiguous :: h(:, :)
    integer(1), pointer, contiguous :: t(:, :, :)
    type(MPIX_Halo_field) :: field, pair, triples
    type(MPIX_Halo_box) :: mine
    type(MPI_Datatype) :: triple
    integer :: root, no_ghosts(-1:1, -1:1, -1:1)
    subject = 'wrong gathers'
    root = ranks - 1
    no_ghosts = 0
    call MPIX_Halo_grid_local(plane, mine)
    allocate (u(mine%lo(1):mine%hi(1), mine%lo(2):mine%hi(2)))
    allocate (both(mine%lo(1):mine%hi(1), mine%lo(2):mine%hi(2), 2))
    u = own_rank
    both = own_rank
    call MPIX_Halo_field_init(u, no_ghosts, field)
    call MPIX_Halo_field_init(both, no_ghosts, pair, components=2)
    call expect_not_gathered(field, [nx - 2, ny], '7 x 7 values of 8 bytes; the domain has 9 x 7 of 8 bytes')
    call expect_not_gathered(field, [ny, nx], '7 x 9 values of 8 bytes; the domain has 9 x 7 of 8 bytes')
    call expect_not_gathered(field, [nx + 1, ny], '10 x 7 values of 8 bytes')
    h(1:merge(nx, 1, own_rank == root), 1:ny) => halves
    call MPIX_Halo_gather(plane, field, h, root, code)
    call expect_at_root('9 x 7 values of 4 bytes; the domain has 9 x 7 of 8 bytes')
    h(1:2 * nx, 1:ny) => halves
    call MPIX_Halo_gather(plane, field, h, root, code)
    call expect_at_root('18 x 7 values of 4 bytes')
    call MPIX_Halo_gather(plane, field, large(1:nx * ny - 1), root, code)
    call expect_at_root('62 values of 8 bytes')
    call MPIX_Halo_gather(plane, field, halves(1), root, code)
    call expect_at_root('values of 4 bytes; the domain has 9 x 7 of 8 bytes')
    call expect_not_gathered(pair, [nx, ny], '9 x 7 values of 8 bytes; the domain has 9 x 7 x 2 of 8 bytes')
    g3(1:2, 1:nx, 1:ny) => large
    call MPIX_Halo_gather(plane, pair, g3, root, code)
    call expect_at_root('2 x 9 x 7 values of 8 bytes; the domain has 9 x 7 x 2 of 8 bytes')
    pair%layout = MPIX_Halo_layout(components=2, interleaved=1)
    g3(1:nx, 1:ny, 1:2) => large
    call MPIX_Halo_gather(plane, pair, g3, root, code)
    call expect_at_root('9 x 7 x 2 values of 8 bytes; the domain has 2 x 9 x 7 of 8 bytes')
    call MPIX_Halo_gather(plane, field, only_there, root, code)
    write (words, '(a,i0,a)') 'rank ', root, ': global is not allocated'
    call expect(MPI_ERR_BUFFER, trim(words))
    ! Arrays that do.
    if (own_rank == root) allocate (only_there(nx, ny), source=-1d0)
    call MPIX_Halo_gather(plane, field, only_there, root, code)
    call check(code == MPI_SUCCESS, 'an array that only the root has')
    if (own_rank == root) call check(all(only_there >= 0) .and. only_there(nx, ny) == root, 'its values are there')
    g3(1:2, 1:nx, 1:ny) => large
    call MPIX_Halo_gather(plane, pair, g3, root, code)
    call check(code == MPI_SUCCESS, 'the components of a cell come first')
    g4(1:1, 1:nx, 1:ny, 1:1) => large
    call MPIX_Halo_gather(plane, field, g4, root, code)
    call check(code == MPI_SUCCESS, 'axes of one entry')
    call MPIX_Halo_gather(plane, field, large(1:nx * ny), root, code)
    call check(code == MPI_SUCCESS, 'an array of one axis')
    call MPIX_Halo_gather(plane, field, large(1), root, code)
    call check(code == MPI_SUCCESS, 'the first element alone')
    call gather_into_assumed_size(field, large)
    call check(code == MPI_SUCCESS, 'an array of assumed size')
    call MPI_Type_contiguous(3, MPI_INTEGER1, triple)
    call MPI_Type_commit(triple)
    call MPIX_Halo_field_init(u, triple, no_ghosts, triples)
    t(1:3, 1:nx, 1:ny) => bytes
    call MPIX_Halo_gather(plane, triples, t, root, code)
    call check(code == MPI_SUCCESS, 'values of three bytes')
    call MPIX_Halo_gather(plane, triples, bytes(1), root, code)
    call check(code == MPI_SUCCESS, 'the first byte alone')
    t(1:2, 1:nx, 1:ny) => bytes
    call MPIX_Halo_gather(plane, triples, t, root, code)
    call expect_at_root('2 x 9 x 7 values of 1 bytes; the domain has 9 x 7 of 3 bytes')
    call MPI_Type_free(triple)
  end subroutine

  ! On the last rank, which is the root, into an array of this shape.
  subroutine expect_not_gathered(from, n, words)
    type(MPIX_Halo_field), intent(in) :: from
    integer, intent(in) :: n(2)
    character(len=*), intent(in) :: words
    real(8), target :: large(room)
    real(8), pointer, contiguous :: g(:, :)
    g(1:merge(n(1), 1, own_rank == ranks - 1), 1:n(2)) => large
    call MPIX_Halo_gather(plane, from, g, ranks - 1, code)
    call expect_at_root(words)
  end subroutine

  subroutine gather_into_assumed_size(from, into)
    type(MPIX_Halo_field), intent(in) :: from
    real(8), target :: into(nx, *)
    call MPIX_Halo_gather(plane, from, into, ranks - 1, code)
  end subroutine

  subroutine expect_at_root(words)
    character(len=*), intent(in) :: words
    character(len=120) :: whole
    write (whole, '(a,i0,2a)') 'rank ', ranks - 1, ': global has ', words
    call expect(MPI_ERR_BUFFER, trim(whole))
  end subroutine

end module
