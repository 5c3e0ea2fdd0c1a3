! SPDX-License-Identifier: BSD-3-Clause
!
! The ring by integers as handles: of the module mpi, or of mpif.h (INCLUDE_MPIF). On MPICH the program refers to
! nothing in libmpix itself, so that a linker with --as-needed could leave it out.
program handle_ring
  use, intrinsic :: iso_c_binding
#if !defined(INCLUDE_MPIF)
  use mpi
#endif
  implicit none
#if defined(INCLUDE_MPIF)
  include 'mpif.h'
#endif
  integer, asynchronous :: out, in
  integer :: rank, ranks, left, epoch, both(2), code
  integer(MPI_COUNT_KIND), parameter :: one = 1

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  if (.not. mpix_comes_first()) error stop 'MPI_Waitall is not that of mpix'
  left = mod(rank + ranks - 1, ranks)
  call MPI_Psend_init(out, 1, one, MPI_INTEGER, mod(rank + 1, ranks), 0, MPI_COMM_WORLD, MPI_INFO_NULL, both(1), code)
  call MPI_Precv_init(in, 1, one, MPI_INTEGER, left, 0, MPI_COMM_WORLD, MPI_INFO_NULL, both(2), code)
  do epoch = 1, 3
    out = 100 * epoch + rank
    in = -1
    call MPI_Startall(2, both, code)
    call MPI_Pready(0, both(1), code)
    call MPI_Waitall(2, both, MPI_STATUSES_IGNORE, code)
    if (in /= 100 * epoch + left) error stop 'the wrong number arrived'
  end do
  call MPI_Request_free(both(1), code)
  call MPI_Request_free(both(2), code)
  call MPI_Finalize(code)

contains

  ! As in ring.c: the library in which the loader finds MPI_Waitall.
  logical function mpix_comes_first()
    type, bind(C) :: Dl_info
      type(c_ptr) :: file, base, name, address
    end type
    interface
      type(c_ptr) function dlsym(handle, name) bind(C)
        import :: c_ptr, c_char
        type(c_ptr), value :: handle
        character(kind=c_char), intent(in) :: name(*)
      end function
      integer(c_int) function dladdr(address, info) bind(C)
        import :: c_ptr, c_int, Dl_info
        type(c_ptr), value :: address
        type(Dl_info), intent(out) :: info
      end function
      type(c_ptr) function strstr(text, part) bind(C)
        import :: c_ptr, c_char
        type(c_ptr), value :: text
        character(kind=c_char), intent(in) :: part(*)
      end function
    end interface
    type(Dl_info) :: info
    mpix_comes_first = .false.
    if (dladdr(dlsym(c_null_ptr, 'MPI_Waitall'//c_null_char), info) /= 0) &
      mpix_comes_first = c_associated(strstr(info%file, 'libmpix'//c_null_char))
  end function
end program
