! SPDX-License-Identifier: BSD-3-Clause
!
! The module mpix, beside `use mpi_f08` or `use mpi`: the calls of <mpix/mpix.h>, which describes them, their errors,
! and, where the MPI library's modules lack them, the partitioned calls of MPI-4. Each takes the handles of mpi_f08, and
! then `ierror` may be left out, or those of the module mpi.
!
! A stream is a cudaStream_t as CUDA Fortran and OpenACC have it: an integer. Addresses of GPU memory are type(c_ptr).
! Array sections with gaps are refused as buffers (MPI_ERR_BUFFER): give their first element, and a datatype.
#define MPIX_LIBRARY_IS_PARTITIONED @MPIX_FORTRAN_LIBRARY_IS_PARTITIONED@
! 0: mpi_f08 declares MPI_Psend_init and MPI_Precv_init without info, as that of Open MPI 5.0.7. Then this module adds the
! form with info to the same generic names. The module mpi has info there, so the form with integers is not added.
#define MPIX_F08_INIT_TAKES_INFO @MPIX_F08_INIT_TAKES_INFO@

module mpix
  use, intrinsic :: iso_c_binding, only: c_int, c_intptr_t, c_loc, c_long_long, c_null_ptr, c_ptr
  use mpi_f08, only: MPI_Comm, MPI_Datatype, MPI_Info, MPI_Request, MPI_COUNT_KIND
  implicit none
  private

#if !MPIX_LIBRARY_IS_PARTITIONED || !MPIX_F08_INIT_TAKES_INFO
  public :: MPI_Psend_init, MPI_Precv_init
#endif
#if !MPIX_LIBRARY_IS_PARTITIONED
  public :: MPI_Pready, MPI_Pready_range, MPI_Pready_list, MPI_Parrived
#endif
  public :: MPIX_Prequest_create, MPIX_Prequest_free, MPIX_Pbuf_prepare, MPIX_Pbuf_prepare_all, MPIX_Request_path
  public :: MPIX_Progress
  public :: MPIX_Start_enqueue, MPIX_Startall_enqueue, MPIX_Pready_enqueue, MPIX_Pready_range_enqueue
  public :: MPIX_Pwait_enqueue, MPIX_Pwaitall_enqueue
  public :: MPIX_Pack_enqueue, MPIX_Unpack_enqueue, MPIX_Typemap_create, MPIX_Typemap_free

  ! What a kernel holds of a partitioned request: passed to kernels by value.
  type, bind(C), public :: MPIX_Prequest
    type(c_ptr) :: address
  end type
  type(MPIX_Prequest), parameter, public :: MPIX_PREQUEST_NULL = MPIX_Prequest(c_null_ptr)

  ! What a kernel holds of a datatype.
  type, bind(C), public :: MPIX_Typemap
    type(c_ptr) :: address
  end type
  type(MPIX_Typemap), parameter, public :: MPIX_TYPEMAP_NULL = MPIX_Typemap(c_null_ptr)
  ! As a device: host threads use the map.
  integer, parameter, public :: MPIX_ON_HOST = -1

  ! The specific procedures are those of libmpix, except for those that look at a buffer, and have the names that MPI
  ! libraries give such calls.

  ! ---- partitioned calls ------------------------------------------------------------------------

#if !MPIX_LIBRARY_IS_PARTITIONED || !MPIX_F08_INIT_TAKES_INFO

  interface MPI_Psend_init
    module procedure psend_init_f08
#if !MPIX_LIBRARY_IS_PARTITIONED
    module procedure psend_init
#endif
  end interface

  interface MPI_Precv_init
    module procedure precv_init_f08
#if !MPIX_LIBRARY_IS_PARTITIONED
    module procedure precv_init
#endif
  end interface

  ! What psend_init and precv_init call when they have looked at the buffer.
  interface
    subroutine init_send(buf, partitions, count, datatype, dest, tag, comm, info, request, ierror) &
      bind(C, name="mpi_psend_init_")
      import :: c_int, c_long_long, c_ptr
      type(c_ptr), value :: buf
      integer(c_int), intent(in) :: partitions, datatype, dest, tag, comm, info
      integer(c_long_long), intent(in) :: count
      integer(c_int), intent(inout) :: request
      integer(c_int), intent(out) :: ierror
    end subroutine
    subroutine init_receive(buf, partitions, count, datatype, source, tag, comm, info, request, ierror) &
      bind(C, name="mpi_precv_init_")
      import :: c_int, c_long_long, c_ptr
      type(c_ptr), value :: buf
      integer(c_int), intent(in) :: partitions, datatype, source, tag, comm, info
      integer(c_long_long), intent(in) :: count
      integer(c_int), intent(inout) :: request
      integer(c_int), intent(out) :: ierror
    end subroutine
    subroutine refuse_section(comm, sends, ierror) bind(C, name="mpix_refuse_section_")
      import :: c_int
      integer(c_int), intent(in) :: comm, sends
      integer(c_int), intent(out) :: ierror
    end subroutine
  end interface

#endif
#if !MPIX_LIBRARY_IS_PARTITIONED

  interface MPI_Pready
    subroutine MPI_Pready_f08(partition, request, ierror)
      import :: MPI_Request
      integer, intent(in) :: partition
      type(MPI_Request), intent(in) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Pready(partition, request, ierror)
      integer, intent(in) :: partition, request
      integer, intent(out) :: ierror
    end subroutine
  end interface

  interface MPI_Pready_range
    subroutine MPI_Pready_range_f08(partition_low, partition_high, request, ierror)
      import :: MPI_Request
      integer, intent(in) :: partition_low, partition_high
      type(MPI_Request), intent(in) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Pready_range(partition_low, partition_high, request, ierror)
      integer, intent(in) :: partition_low, partition_high, request
      integer, intent(out) :: ierror
    end subroutine
  end interface

  interface MPI_Pready_list
    subroutine MPI_Pready_list_f08(length, array_of_partitions, request, ierror)
      import :: MPI_Request
      integer, intent(in) :: length, array_of_partitions(length)
      type(MPI_Request), intent(in) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Pready_list(length, array_of_partitions, request, ierror)
      integer, intent(in) :: length, array_of_partitions(length), request
      integer, intent(out) :: ierror
    end subroutine
  end interface

  interface MPI_Parrived
    subroutine MPI_Parrived_f08(request, partition, flag, ierror)
      import :: MPI_Request
      type(MPI_Request), intent(in) :: request
      integer, intent(in) :: partition
      logical, intent(out) :: flag
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Parrived(request, partition, flag, ierror)
      integer, intent(in) :: request, partition
      logical, intent(out) :: flag
      integer, intent(out) :: ierror
    end subroutine
  end interface

#endif

  ! ---- requests ---------------------------------------------------------------------------------

  interface MPIX_Prequest_create
    subroutine MPIX_Prequest_create_f08(request, info, preq, ierror)
      import :: MPI_Info, MPI_Request, MPIX_Prequest
      type(MPI_Request), intent(in) :: request
      type(MPI_Info), intent(in) :: info
      type(MPIX_Prequest), intent(out) :: preq
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Prequest_create(request, info, preq, ierror)
      import :: MPIX_Prequest
      integer, intent(in) :: request, info
      type(MPIX_Prequest), intent(out) :: preq
      integer, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Prequest_free
    subroutine MPIX_Prequest_free_f08(preq, ierror)
      import :: MPIX_Prequest
      type(MPIX_Prequest), intent(inout) :: preq
      integer, optional, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Pbuf_prepare
    subroutine MPIX_Pbuf_prepare_f08(request, ierror)
      import :: MPI_Request
      type(MPI_Request), intent(in) :: request
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Pbuf_prepare(request, ierror)
      integer, intent(in) :: request
      integer, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Pbuf_prepare_all
    subroutine MPIX_Pbuf_prepare_all_f08(count, array_of_requests, ierror)
      import :: MPI_Request
      integer, intent(in) :: count
      type(MPI_Request), intent(in) :: array_of_requests(count)
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Pbuf_prepare_all(count, array_of_requests, ierror)
      integer, intent(in) :: count, array_of_requests(count)
      integer, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Request_path
    subroutine MPIX_Request_path_f08(request, path, ierror)
      import :: MPI_Request
      type(MPI_Request), intent(in) :: request
      character(len=*), intent(out) :: path
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Request_path(request, path, ierror)
      integer, intent(in) :: request
      character(len=*), intent(out) :: path
      integer, intent(out) :: ierror
    end subroutine
  end interface

  interface
    ! 1 if only calls like this one make progress, else 0.
    function MPIX_Progress() result(needed) bind(C, name="MPIX_Progress")
      import :: c_int
      integer(c_int) :: needed
    end function
  end interface

  ! ---- epochs in the order of a CUDA stream -----------------------------------------------------

  interface MPIX_Start_enqueue
    subroutine MPIX_Start_enqueue_f08(request, stream, ierror)
      import :: c_intptr_t, MPI_Request
      type(MPI_Request), intent(in) :: request
      integer(c_intptr_t), intent(in) :: stream
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Start_enqueue(request, stream, ierror)
      import :: c_intptr_t
      integer, intent(in) :: request
      integer(c_intptr_t), intent(in) :: stream
      integer, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Startall_enqueue
    subroutine MPIX_Startall_enqueue_f08(count, array_of_requests, stream, ierror)
      import :: c_intptr_t, MPI_Request
      integer, intent(in) :: count
      type(MPI_Request), intent(in) :: array_of_requests(count)
      integer(c_intptr_t), intent(in) :: stream
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Startall_enqueue(count, array_of_requests, stream, ierror)
      import :: c_intptr_t
      integer, intent(in) :: count, array_of_requests(count)
      integer(c_intptr_t), intent(in) :: stream
      integer, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Pready_enqueue
    subroutine MPIX_Pready_enqueue_f08(partition, request, stream, ierror)
      import :: c_intptr_t, MPI_Request
      integer, intent(in) :: partition
      type(MPI_Request), intent(in) :: request
      integer(c_intptr_t), intent(in) :: stream
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Pready_enqueue(partition, request, stream, ierror)
      import :: c_intptr_t
      integer, intent(in) :: partition, request
      integer(c_intptr_t), intent(in) :: stream
      integer, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Pready_range_enqueue
    subroutine MPIX_Pready_range_enqueue_f08(partition_low, partition_high, request, stream, ierror)
      import :: c_intptr_t, MPI_Request
      integer, intent(in) :: partition_low, partition_high
      type(MPI_Request), intent(in) :: request
      integer(c_intptr_t), intent(in) :: stream
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Pready_range_enqueue(partition_low, partition_high, request, stream, ierror)
      import :: c_intptr_t
      integer, intent(in) :: partition_low, partition_high, request
      integer(c_intptr_t), intent(in) :: stream
      integer, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Pwait_enqueue
    subroutine MPIX_Pwait_enqueue_f08(request, stream, ierror)
      import :: c_intptr_t, MPI_Request
      type(MPI_Request), intent(in) :: request
      integer(c_intptr_t), intent(in) :: stream
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Pwait_enqueue(request, stream, ierror)
      import :: c_intptr_t
      integer, intent(in) :: request
      integer(c_intptr_t), intent(in) :: stream
      integer, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Pwaitall_enqueue
    subroutine MPIX_Pwaitall_enqueue_f08(count, array_of_requests, stream, ierror)
      import :: c_intptr_t, MPI_Request
      integer, intent(in) :: count
      type(MPI_Request), intent(in) :: array_of_requests(count)
      integer(c_intptr_t), intent(in) :: stream
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Pwaitall_enqueue(count, array_of_requests, stream, ierror)
      import :: c_intptr_t
      integer, intent(in) :: count, array_of_requests(count)
      integer(c_intptr_t), intent(in) :: stream
      integer, intent(out) :: ierror
    end subroutine
  end interface

  ! ---- packing of GPU memory, and datatypes inside kernels --------------------------------------

  interface MPIX_Pack_enqueue
    subroutine MPIX_Pack_enqueue_f08(inbuf, incount, datatype, outbuf, outsize, position, comm, stream, ierror)
      import :: c_intptr_t, c_ptr, MPI_Comm, MPI_Datatype, MPI_COUNT_KIND
      type(c_ptr), intent(in) :: inbuf, outbuf
      integer(MPI_COUNT_KIND), intent(in) :: incount, outsize
      type(MPI_Datatype), intent(in) :: datatype
      integer(MPI_COUNT_KIND), intent(inout) :: position
      type(MPI_Comm), intent(in) :: comm
      integer(c_intptr_t), intent(in) :: stream
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Pack_enqueue(inbuf, incount, datatype, outbuf, outsize, position, comm, stream, ierror)
      import :: c_intptr_t, c_ptr, MPI_COUNT_KIND
      type(c_ptr), intent(in) :: inbuf, outbuf
      integer(MPI_COUNT_KIND), intent(in) :: incount, outsize
      integer, intent(in) :: datatype, comm
      integer(MPI_COUNT_KIND), intent(inout) :: position
      integer(c_intptr_t), intent(in) :: stream
      integer, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Unpack_enqueue
    subroutine MPIX_Unpack_enqueue_f08(inbuf, insize, position, outbuf, outcount, datatype, comm, stream, ierror)
      import :: c_intptr_t, c_ptr, MPI_Comm, MPI_Datatype, MPI_COUNT_KIND
      type(c_ptr), intent(in) :: inbuf, outbuf
      integer(MPI_COUNT_KIND), intent(in) :: insize, outcount
      integer(MPI_COUNT_KIND), intent(inout) :: position
      type(MPI_Datatype), intent(in) :: datatype
      type(MPI_Comm), intent(in) :: comm
      integer(c_intptr_t), intent(in) :: stream
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Unpack_enqueue(inbuf, insize, position, outbuf, outcount, datatype, comm, stream, ierror)
      import :: c_intptr_t, c_ptr, MPI_COUNT_KIND
      type(c_ptr), intent(in) :: inbuf, outbuf
      integer(MPI_COUNT_KIND), intent(in) :: insize, outcount
      integer(MPI_COUNT_KIND), intent(inout) :: position
      integer, intent(in) :: datatype, comm
      integer(c_intptr_t), intent(in) :: stream
      integer, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Typemap_create
    subroutine MPIX_Typemap_create_f08(datatype, device, map, ierror)
      import :: MPI_Datatype, MPIX_Typemap
      type(MPI_Datatype), intent(in) :: datatype
      integer, intent(in) :: device
      type(MPIX_Typemap), intent(out) :: map
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPIX_Typemap_create(datatype, device, map, ierror)
      import :: MPIX_Typemap
      integer, intent(in) :: datatype, device
      type(MPIX_Typemap), intent(out) :: map
      integer, intent(out) :: ierror
    end subroutine
  end interface

  interface MPIX_Typemap_free
    subroutine MPIX_Typemap_free_f08(map, ierror)
      import :: MPIX_Typemap
      type(MPIX_Typemap), intent(inout) :: map
      integer, optional, intent(out) :: ierror
    end subroutine
  end interface

#if !MPIX_LIBRARY_IS_PARTITIONED || !MPIX_F08_INIT_TAKES_INFO

contains

  subroutine psend_init(buf, partitions, count, datatype, dest, tag, comm, info, request, ierror)
    type(*), dimension(..), intent(in), asynchronous, target :: buf
    integer, intent(in) :: partitions, datatype, dest, tag, comm, info
    integer(MPI_COUNT_KIND), intent(in) :: count
    integer, intent(inout) :: request
    integer, intent(out) :: ierror
    if (is_contiguous(buf)) then
      call init_send(c_loc(buf), partitions, count, datatype, dest, tag, comm, info, request, ierror)
    else
      call refuse_section(comm, 1, ierror)
    end if
  end subroutine

  subroutine precv_init(buf, partitions, count, datatype, source, tag, comm, info, request, ierror)
    type(*), dimension(..), asynchronous, target :: buf
    integer, intent(in) :: partitions, datatype, source, tag, comm, info
    integer(MPI_COUNT_KIND), intent(in) :: count
    integer, intent(inout) :: request
    integer, intent(out) :: ierror
    if (is_contiguous(buf)) then
      call init_receive(c_loc(buf), partitions, count, datatype, source, tag, comm, info, request, ierror)
    else
      call refuse_section(comm, 0, ierror)
    end if
  end subroutine

  subroutine psend_init_f08(buf, partitions, count, datatype, dest, tag, comm, info, request, ierror)
    type(*), dimension(..), intent(in), asynchronous, target :: buf
    integer, intent(in) :: partitions, dest, tag
    integer(MPI_COUNT_KIND), intent(in) :: count
    type(MPI_Datatype), intent(in) :: datatype
    type(MPI_Comm), intent(in) :: comm
    type(MPI_Info), intent(in) :: info
    type(MPI_Request), intent(inout) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call psend_init(buf, partitions, count, datatype%MPI_VAL, dest, tag, comm%MPI_VAL, info%MPI_VAL, request%MPI_VAL, &
                    code)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine precv_init_f08(buf, partitions, count, datatype, source, tag, comm, info, request, ierror)
    type(*), dimension(..), asynchronous, target :: buf
    integer, intent(in) :: partitions, source, tag
    integer(MPI_COUNT_KIND), intent(in) :: count
    type(MPI_Datatype), intent(in) :: datatype
    type(MPI_Comm), intent(in) :: comm
    type(MPI_Info), intent(in) :: info
    type(MPI_Request), intent(inout) :: request
    integer, optional, intent(out) :: ierror
    integer :: code
    call precv_init(buf, partitions, count, datatype%MPI_VAL, source, tag, comm%MPI_VAL, info%MPI_VAL, &
                    request%MPI_VAL, code)
    if (present(ierror)) ierror = code
  end subroutine

#endif

end module
