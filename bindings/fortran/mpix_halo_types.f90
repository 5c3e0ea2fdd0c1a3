! SPDX-License-Identifier: BSD-3-Clause
!
! Types and constants of the module mpix_halo, which programs use.
module mpix_halo_types
  use, intrinsic :: iso_c_binding, only: c_double, c_int, c_int64_t, c_null_ptr, c_ptr
  implicit none
  private

  type, bind(C), public :: MPIX_Halo_grid
    type(c_ptr) :: address = c_null_ptr
  end type
  type, bind(C), public :: MPIX_Halo_exchange
    type(c_ptr) :: address = c_null_ptr
  end type
  type, bind(C), public :: MPIX_Halo_step_report
    type(c_ptr) :: address = c_null_ptr
  end type
  type(MPIX_Halo_grid), parameter, public :: MPIX_HALO_GRID_NULL = MPIX_Halo_grid(c_null_ptr)
  type(MPIX_Halo_exchange), parameter, public :: MPIX_HALO_EXCHANGE_NULL = MPIX_Halo_exchange(c_null_ptr)
  type(MPIX_Halo_step_report), parameter, public :: MPIX_HALO_STEP_REPORT_NULL = MPIX_Halo_step_report(c_null_ptr)

  ! The cells lo(a) to hi(a), both included, along each axis a.
  type, bind(C), public :: MPIX_Halo_box
    integer(c_int) :: lo(3) = 1, hi(3) = 0
  end type

  type, bind(C), public :: MPIX_Halo_layout
    integer(c_int) :: components = 1                ! values per cell
    integer(c_int) :: interleaved = 0               ! 1: those of a cell are next to each other
    integer(c_int64_t) :: below(3) = -1, above(3) = -1
    integer(c_int64_t) :: row_bytes = 0, plane_bytes = 0, component_bytes = 0
    integer(c_int) :: staggered(3) = 0              ! 1: the values are at points between the cells
  end type

  ! A field's memory for one box.
  type, bind(C), public :: MPIX_Halo_allocation
    type(c_ptr) :: data = c_null_ptr, other = c_null_ptr
    integer(c_int64_t) :: allocated = 0
  end type

  ! As MPIX_Halo_field_init fills it. The program may change it then.
  type, bind(C), public :: MPIX_Halo_field
    type(c_ptr) :: data = c_null_ptr
    integer(c_int) :: type = 0                      ! a datatype as in the module mpi: MPI_VAL of that of mpi_f08
    integer(c_int) :: radius(-1:1, -1:1, -1:1) = 0
    type(MPIX_Halo_layout) :: layout
    type(c_ptr) :: other = c_null_ptr
    integer(c_int64_t) :: allocated = 0
    type(c_ptr) :: allocations = c_null_ptr         ! of an array of MPIX_Halo_allocation
    integer(c_int) :: allocation_count = 0
    integer(c_int) :: axes = 0                      ! of data, without that of the components; 0: not known, not checked
  end type

  ! A field to be written to a file, or read from one.
  type, public :: MPIX_Halo_named_field
    character(len=256) :: name
    type(MPIX_Halo_field) :: field
  end type

  type, bind(C), public :: MPIX_Halo_ghost_piece
    type(MPIX_Halo_box) :: cells
    integer(c_int) :: direction(3) = 0
    type(c_ptr) :: first = c_null_ptr
    integer(c_int64_t) :: stride(3) = 0, component_stride = 0
  end type

  integer, parameter, public :: MPIX_HALO_PACKED = 0, MPIX_HALO_DATATYPE = 1, MPIX_HALO_PLAIN = 2, &
                                MPIX_HALO_AUTOMATIC = 3, MPIX_HALO_IN_MESSAGES = 16, &
                                MPIX_HALO_NODE_MESSAGES_AUTOMATIC = 32, MPIX_HALO_NODE_MESSAGES_ALWAYS = 64
  integer, parameter, public :: MPIX_HALO_GREY = 0, MPIX_HALO_BLUE_RED = 1

  ! What MPIX_Halo_grid_create is told beside its other arguments; of the module mpix_halo alone.
  type, bind(C), public :: mpix_halo_grid_options
    integer(c_int) :: periodic(3) = 0
    type(c_ptr) :: boxes = c_null_ptr
    integer(c_int) :: box_count = 0
    type(c_ptr) :: owners = c_null_ptr
    integer(c_int) :: owner_count = 0
    integer(c_int) :: boxes_per_rank = 0
    integer(c_int) :: shortest(3) = 0
    type(c_ptr) :: within_node = c_null_ptr
    integer(c_int) :: entries = 0
    real(c_double) :: network = 0
    type(c_ptr) :: typical_radius = c_null_ptr
    real(c_double) :: typical_bytes_per_cell = 0
    integer(c_int) :: periodic_count = 0, shortest_count = 0
  end type
end module
