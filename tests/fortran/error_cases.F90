! SPDX-License-Identifier: BSD-3-Clause
!
! Errors: codes, sentences, handlers. And what is left over: packing, and the thread level.
module error_cases
  use mpi_f08
#if !MPIX_LIBRARY_IS_PARTITIONED
  use mpix
#endif
  use checks
  use ring
  implicit none
  private
  public :: run_error_cases, check_thread_level

  integer :: handled = 0, handled_code = 0
  type(MPI_Comm) :: handled_comm

contains

  subroutine handler(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    handled = handled + 1
    handled_code = error_code
    handled_comm = comm
  end subroutine

  subroutine run_error_cases
    type(MPI_Comm) :: comm
    type(MPI_Errhandler) :: own
    type(transfer), target :: t
    type(MPI_Request) :: request
    integer :: code, class, length
    character(len=MPI_MAX_ERROR_STRING) :: text
    logical :: flag

    subject = 'errors'
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
    call make(t, 2, 2, 4, comm)

    ! Their codes, and a sentence that names the argument.
    call MPI_Pready(0, t%both(1), code)
    call expect(MPI_ERR_REQUEST, 'MPI_Pready of an inactive request')
    call MPI_Startall(2, t%both, code)
    call check(code == MPI_SUCCESS, 'ierror is MPI_SUCCESS')
    call MPI_Pready(2, t%both(1), code)
    text = 'x'
    call MPI_Error_string(code, text, length)
    call check(index(text, 'partition') > 0 .and. len_trim(text) == length, &
               'MPI_Error_string has a sentence that names the argument, and blanks behind it')
    call expect(MPI_ERR_ARG, 'MPI_Pready of a partition that is not there')
    call MPI_Pready_range(1, 2, t%both(1), code)
    call expect(MPI_ERR_ARG, 'MPI_Pready_range of a range that is not there')
    call MPI_Pready_list(1, [-1], t%both(1), code)
    call expect(MPI_ERR_ARG, 'MPI_Pready_list of a partition that is not there')
    call MPI_Parrived(t%both(2), 2, flag, code)
    call expect(MPI_ERR_ARG, 'MPI_Parrived of a partition that is not there')
    call MPI_Parrived(t%both(1), 0, flag, code)
    call expect(MPI_ERR_REQUEST, 'MPI_Parrived of a send')
    call MPI_Start(t%both(1), code)
    call expect(MPI_ERR_REQUEST, 'MPI_Start of an active request')
    request = t%both(1)
    call MPI_Request_free(request, code)
    call expect(MPI_ERR_REQUEST, 'MPI_Request_free of an active request')
    call check(request == t%both(1), 'a request that is not freed keeps its handle')
    call MPI_Cancel(t%both(1), code)
    call expect(MPI_ERR_REQUEST, 'MPI_Cancel')
    request = MPI_REQUEST_NULL
    call MPI_Psend_init(t%out, -1, 1_MPI_COUNT_KIND, MPI_INTEGER, 0, tag, comm, MPI_INFO_NULL, request, code)
    call expect(MPI_ERR_ARG, 'MPI_Psend_init of -1 partitions')
    call MPI_Precv_init(t%in, 1, 1_MPI_COUNT_KIND, MPI_INTEGER, MPI_ANY_SOURCE, tag, comm, MPI_INFO_NULL, request, code)
    call expect(MPI_ERR_RANK, 'MPI_Precv_init from any source')
    call check(request == MPI_REQUEST_NULL, 'no request is made')

    ! A handler of the program's.
    subject = 'an error handler'
    call MPI_Comm_create_errhandler(handler, own)
    call MPI_Comm_set_errhandler(comm, own)
    call MPI_Pready(7, t%both(1))
    call check(handled == 1 .and. handled_comm == comm, 'the handler of the communicator is called')
    code = handled_code
    call expect(MPI_ERR_ARG, 'what the handler gets')
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
    call MPI_Errhandler_free(own)

    ! Nothing is lost.
    subject = 'an epoch with errors'
    call fill_both(t, 400, 1)
    call ready_all(t)
    call MPI_Waitall(2, t%both, MPI_STATUSES_IGNORE, code)
    call check(code == MPI_SUCCESS, 'the epoch completes')
    call check_all(t, 400, 1)
    call free_transfer(t)
    call MPI_Comm_free(comm)
    call truncation
    call packing

  contains

    subroutine expect(wanted, what)
      integer, intent(in) :: wanted
      character(len=*), intent(in) :: what
      call MPI_Error_class(code, class)
      call check(class == wanted, 'the class of the error of ' // what)
    end subroutine

  end subroutine

  ! A receive of another size: its completion has the error, in an array by its status.
  subroutine truncation
    type(MPI_Comm) :: comm
    type(MPI_Request) :: both(2)
    type(MPI_Status) :: statuses(2)
    integer, target :: out(4), in(4)
    integer :: code, class, size
    subject = 'truncation'
    out = 1
    in = poison
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
    call MPI_Comm_size(comm, size)
    call MPI_Psend_init(out, 4, 1_MPI_COUNT_KIND, MPI_INTEGER, mod(own_rank + 1, size), tag, comm, MPI_INFO_NULL, &
                        both(1))
    call MPI_Precv_init(in, 1, 2_MPI_COUNT_KIND, MPI_INTEGER, mod(own_rank + size - 1, size), tag, comm, &
                        MPI_INFO_NULL, both(2))
    call MPI_Startall(2, both)
    call MPI_Pready_range(0, 3, both(1))
    statuses%MPI_ERROR = -9
    call MPI_Waitall(2, both, statuses, code)
    call MPI_Error_class(code, class)
    call check(class == MPI_ERR_IN_STATUS, 'MPI_Waitall says that the errors are in the statuses')
    call check(statuses(2)%MPI_ERROR == MPI_ERR_TRUNCATE, 'the status has the class of the error')
    call check(all(in == poison), 'nothing is written')
    call MPI_Request_free(both(1))
    call MPI_Request_free(both(2))
    call MPI_Comm_free(comm)
  end subroutine

  subroutine packing
    integer, parameter :: rows = 3, columns = 5
    integer :: from(2 * rows, columns), to(2 * rows, columns), size, position, i
    integer, allocatable :: packed(:)
    integer :: flat(rows * columns)
    type(MPI_Datatype) :: every_other
    subject = 'packing'
    call MPI_Type_vector(rows * columns, 1, 2, MPI_INTEGER, every_other)
    call MPI_Type_commit(every_other)
    call MPI_Pack_size(1, every_other, MPI_COMM_WORLD, size)
    call check(size >= 4 * rows * columns, 'MPI_Pack_size is enough')
    allocate (packed(size))
    call fill(flat, key_of(410, 1, own_rank))
    from = poison
    to = poison
    from(1::2, :) = reshape(flat, [rows, columns])
    position = 0
    call MPI_Pack(from, 1, every_other, packed, size, position, MPI_COMM_WORLD)
    call check(position == 4 * rows * columns, 'MPI_Pack advances the position')
    call check_data(packed, key_of(410, 1, own_rank), 1, rows * columns)
    i = position
    position = 0
    call MPI_Unpack(packed, i, position, to, 1, every_other, MPI_COMM_WORLD)
    call check(position == i, 'MPI_Unpack advances the position')
    call check(all(to == from), 'what is unpacked is what was packed, with its gaps')
    call MPI_Type_free(every_other)
  end subroutine

  ! The level that the program asked for, whatever mpix asks the library for.
  subroutine check_thread_level(wanted)
    integer, intent(in) :: wanted
    integer :: level
    subject = 'thread level'
    level = -1
    call MPI_Query_thread(level)
    call check(level == wanted, 'MPI_Query_thread gives the level that was asked for')
  end subroutine

end module
