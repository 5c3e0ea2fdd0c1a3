! SPDX-License-Identifier: BSD-3-Clause
!
! The module mpix_halo: the calls of <mpix/halo.h> and <mpix/halo_gpu.h>, which describe them and their errors. It is
! used beside mpi_f08 or mpi, and takes the handles of both. `ierror` may be left out in any case. Optional arguments
! are given by their names.
!
! x, y and z of the header are the first, second and third dimension of an array, of which the first is the fastest in
! memory. Cells, axes, components, and positions in lists are numbered from 1, and a box has its last cells: its cells
! are u(i, j) with box%lo(1) <= i <= box%hi(1) and so on. Ranks and the numbers of boxes are from 0, as in MPI. A radius
! is an array radius(-1:1, -1:1, -1:1) by directions, and a direction is three numbers. The position i of one of the
! caller's boxes may be left out: then it is 1.
module mpix_halo
  use mpix_halo_types
  use mpix_halo_grids
  use mpix_halo_fields
  use mpix_halo_exchanges
  use mpix_halo_files
  use mpix_halo_gpu
  implicit none
  private :: mpix_halo_address, mpix_halo_grid_options
end module
