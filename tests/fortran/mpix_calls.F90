! SPDX-License-Identifier: BSD-3-Clause
!
! The MPIX_ calls of the module mpix, with the handles of mpi_f08 and with integers. What needs a GPU is only called so
! that it gives an error.
program mpix_calls
  use mpi_f08
  use mpix
  use checks
  use, intrinsic :: iso_c_binding, only: c_associated, c_intptr_t, c_loc, c_ptr
  implicit none
  integer, target, asynchronous :: out(4), in(4)
  integer(c_intptr_t), parameter :: stream = 0
  integer :: code, class, ranks, right, left
  type(MPI_Request) :: both(2), to_nobody
  type(MPI_Info) :: info
  type(MPIX_Prequest) :: preq
  type(MPIX_Typemap) :: map
  type(MPI_Status) :: statuses(2)
  character(len=16) :: path
  integer(MPI_COUNT_KIND) :: position

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, own_rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  right = mod(own_rank + 1, ranks)
  left = mod(own_rank + ranks - 1, ranks)
  call MPI_Psend_init(out, 2, 2_MPI_COUNT_KIND, MPI_INTEGER, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL, both(1), code)
  call MPI_Precv_init(in, 2, 2_MPI_COUNT_KIND, MPI_INTEGER, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL, both(2), code)
  call MPI_Psend_init(out, 2, 2_MPI_COUNT_KIND, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &
                      to_nobody, code)

  subject = 'paths'
  path = 'x'
  call MPIX_Request_path(to_nobody, path)
  call check(path == 'null', 'the path to nobody is "null"')
  path = 'x'
  call MPIX_Request_path(to_nobody%MPI_VAL, path, code)
  call check(code == MPI_SUCCESS .and. path == 'null', 'the same of an integer handle')
  call MPIX_Request_path(MPI_REQUEST_NULL, path, code)
  call expect(MPI_ERR_REQUEST, 'MPIX_Request_path of no request')
  call MPI_Request_free(to_nobody)

  subject = 'export to host threads'
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'mpix_device', 'host')
  call MPIX_Prequest_create(both(1), info, preq, code)
  call check(code == MPI_SUCCESS .and. c_associated(preq%address), 'MPIX_Prequest_create gives a handle')
  call MPIX_Start_enqueue(both(1), stream, code)
  call expect(MPI_ERR_REQUEST, 'MPIX_Start_enqueue of a request that no GPU knows')
  call MPIX_Prequest_free(preq, code)
  call check(code == MPI_SUCCESS .and. .not. c_associated(preq%address), 'MPIX_Prequest_free sets the handle to null')
  call MPI_Info_set(info, 'mpix_device', 'nothing')
  call MPIX_Prequest_create(both(1)%MPI_VAL, info%MPI_VAL, preq, code)
  call expect(MPI_ERR_INFO_VALUE, 'an export to a device that there is not')
  call MPI_Info_free(info)
  preq = MPIX_PREQUEST_NULL
  call MPIX_Prequest_free(preq, code)
  call check(code == MPI_SUCCESS, 'a null handle may be freed')

  subject = 'preparation'
  call fill(out, own_rank)
  in = -1
  call MPI_Startall(2, both)
  call MPIX_Pbuf_prepare(both(1), code)
  call check(code == MPI_SUCCESS, 'MPIX_Pbuf_prepare succeeds')
  call MPIX_Pbuf_prepare_all(2, both, code)
  call check(code == MPI_SUCCESS, 'MPIX_Pbuf_prepare_all succeeds')
  call MPIX_Pbuf_prepare_all(2, [both(1)%MPI_VAL, both(2)%MPI_VAL], code)
  call check(code == MPI_SUCCESS, 'the same of integer handles')
  call MPIX_Pbuf_prepare(MPI_REQUEST_NULL%MPI_VAL, code)
  call expect(MPI_ERR_REQUEST, 'MPIX_Pbuf_prepare of no request')
  call MPIX_Request_path(both(1), path)
  call check(path == 'shm', 'within a node the path is "shm"')
  call check(MPIX_Progress() == 0, 'the progress thread makes progress')
  call MPI_Pready_range(0, 1, both(1))
  call MPI_Waitall(2, both, statuses)
  call check_data(in, left, 1, 4)

  subject = 'streams'
  call MPIX_Start_enqueue(both(1)%MPI_VAL, stream, code)
  call expect(MPI_ERR_REQUEST, 'MPIX_Start_enqueue')
  call MPIX_Startall_enqueue(2, both, stream, code)
  call expect(MPI_ERR_REQUEST, 'MPIX_Startall_enqueue')
  call MPIX_Startall_enqueue(-1, both, stream, code)
  call expect(MPI_ERR_ARG, 'MPIX_Startall_enqueue of a negative number')
  call MPIX_Pready_enqueue(0, both(1), stream, code)
  call expect(MPI_ERR_REQUEST, 'MPIX_Pready_enqueue')
  call MPIX_Pready_range_enqueue(0, 1, both(1), stream, code)
  call expect(MPI_ERR_REQUEST, 'MPIX_Pready_range_enqueue')
  call MPIX_Pwait_enqueue(MPI_REQUEST_NULL, stream, code)
  call check(code == MPI_SUCCESS, 'MPIX_Pwait_enqueue does nothing for a null request')
  call MPIX_Pwaitall_enqueue(-1, both, stream, code)
  call expect(MPI_ERR_ARG, 'MPIX_Pwaitall_enqueue of a negative number')

  subject = 'packing'
  position = 0
  call MPIX_Pack_enqueue(c_loc(out), 2_MPI_COUNT_KIND, MPI_INTEGER, c_loc(in), 4_MPI_COUNT_KIND, position, &
                         MPI_COMM_WORLD, stream, code)
  call expect(MPI_ERR_TRUNCATE, 'MPIX_Pack_enqueue without room')
  position = -1
  call MPIX_Unpack_enqueue(c_loc(out), 8_MPI_COUNT_KIND, position, c_loc(in), 2_MPI_COUNT_KIND, MPI_INTEGER, &
                           MPI_COMM_WORLD, stream, code)
  call expect(MPI_ERR_ARG, 'MPIX_Unpack_enqueue from a negative position')
  call check(position == -1, 'an error leaves the position')
  call MPIX_Typemap_create(MPI_INTEGER, MPIX_ON_HOST, map, code)
  call check(code == MPI_SUCCESS .and. c_associated(map%address), 'MPIX_Typemap_create gives a map')
  call MPIX_Typemap_free(map, code)
  call check(code == MPI_SUCCESS .and. .not. c_associated(map%address), 'MPIX_Typemap_free sets the map to null')
  call MPIX_Typemap_create(MPI_DATATYPE_NULL, MPIX_ON_HOST, map, code)
  call expect(MPI_ERR_TYPE, 'MPIX_Typemap_create of no type')

  call MPI_Request_free(both(1))
  call MPI_Request_free(both(2))
  call MPI_Finalize()
  if (own_rank == 0) print '(a)', 'passed'

contains

  subroutine expect(wanted, what)
    integer, intent(in) :: wanted
    character(len=*), intent(in) :: what
    call MPI_Error_class(code, class)
    call check(class == wanted, 'the class of the error of ' // what)
  end subroutine

end program
