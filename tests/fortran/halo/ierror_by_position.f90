! SPDX-License-Identifier: BSD-3-Clause
!
! None of these calls is compiled: an ierror that is not given by its name is not taken for an optional argument.
subroutine ierror_by_position
  use mpix_halo
  implicit none
  integer, target :: u(0:5)
  integer :: ierror, radius(-1:1, -1:1, -1:1)
  type(MPIX_Halo_grid) :: grid
  type(MPIX_Halo_field) :: field
  type(MPIX_Halo_exchange) :: exchange
  type(MPIX_Halo_box) :: box
  call MPIX_Halo_grid_create(0, [4], grid, ierror)
  call MPIX_Halo_grid_get(grid, ierror)
  call MPIX_Halo_field_init(u, radius, field, ierror)
  call MPIX_Halo_field_init(u, 0, radius, field, ierror)
  call MPIX_Halo_deep_valid(grid, radius, 1, 1, box, ierror)
  call MPIX_Halo_write_vti(grid, 'u.pvti', [MPIX_Halo_named_field('u', field)], ierror)
  call MPIX_Halo_write_png(grid, 'u.png', field, ierror)
  call MPIX_Halo_exchange_create(grid, [field], ierror)
end subroutine
