! SPDX-License-Identifier: BSD-3-Clause
!
! Where kernels run, with memory and streams: a GPU, or the host, whichever executor.cpp was compiled for. c_f_pointer
! makes arrays in that memory; those of a GPU must not be looked at here.
module executors
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  use mpi_f08
  use mpix, only: MPIX_Prequest
  use mpix_halo, only: MPIX_Halo_device_exchange
  use checks
  implicit none

  character(len=8) :: fault = ''         ! of `--wrong`: what is made wrong, so that the test fails
  logical :: match_first = .false.       ! kernels begin when all requests have found each other

  type, bind(C) :: field_images
    type(c_ptr) :: given, seen
    integer(c_int64_t) :: bytes, cell_bytes, first(3), cells(3)
  end type

  type, bind(C) :: two_messages
    type(c_ptr) :: out, in, given, seen
    integer(c_int64_t) :: bytes
    integer(c_int) :: sends, receives
  end type

  interface
    integer(c_int) function executor_is_gpu() bind(C)
      import :: c_int
    end function
    integer(c_int) function executor_available() bind(C)
      import :: c_int
    end function
    subroutine executor_open(local_rank) bind(C)
      import :: c_int
      integer(c_int), value :: local_rank
    end subroutine
    subroutine executor_close() bind(C)
    end subroutine
    type(c_ptr) function executor_allocate(bytes) bind(C)
      import :: c_ptr, c_size_t
      integer(c_size_t), value :: bytes
    end function
    subroutine executor_release(memory) bind(C)
      import :: c_ptr
      type(c_ptr), value :: memory
    end subroutine
    type(c_ptr) function executor_allocate_on_host(bytes) bind(C)
      import :: c_ptr, c_size_t
      integer(c_size_t), value :: bytes
    end function
    subroutine executor_release_on_host(memory) bind(C)
      import :: c_ptr
      type(c_ptr), value :: memory
    end subroutine
    integer(c_intptr_t) function executor_stream() bind(C)
      import :: c_intptr_t
    end function
    subroutine executor_copy(to, from, bytes, stream) bind(C)
      import :: c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: to, from
      integer(c_size_t), value :: bytes
      integer(c_intptr_t), value :: stream
    end subroutine
    subroutine executor_synchronise(stream) bind(C)
      import :: c_intptr_t
      integer(c_intptr_t), value :: stream
    end subroutine
    integer(c_int) function run_halo_steps(x, fields, images, blocks, threads, by_boxes) bind(C)
      import :: c_int, field_images, MPIX_Halo_device_exchange
      type(MPIX_Halo_device_exchange), value :: x
      integer(c_int), value :: fields, blocks, threads, by_boxes
      type(field_images), intent(in) :: images(*)
    end function
    integer(c_int) function run_message_epochs(messages, send, receive, epochs, blocks, threads) bind(C)
      import :: c_int, c_ptr, two_messages
      type(two_messages), value :: messages
      type(c_ptr), value :: send, receive       ! the component `address` of exported requests
      integer(c_int), value :: epochs, blocks, threads
    end function
  end interface

contains

  ! MPI_Init, the options, and an executor. Where there is no GPU for it the test is skipped.
  subroutine open_executor(ranks)
    integer, intent(out) :: ranks
    type(MPI_Comm) :: node
    integer :: local_rank, i
    character(len=20) :: argument
    if (executor_available() == 0) then
      print '(a)', 'skipped: no GPU'
      stop 77
    end if
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, own_rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node)
    call MPI_Comm_rank(node, local_rank)
    call MPI_Comm_free(node)
    call system_clock(seed)
    do i = 1, command_argument_count()
      call get_command_argument(i, argument)
      if (argument == '--match-first') match_first = .true.
      if (argument == '--wrong') call get_command_argument(i + 1, fault)
      if (argument /= '--seed') cycle
      call get_command_argument(i + 1, argument)
      read (argument, *) seed
    end do
    seed = mod(seed, 1000000007_int64)
    call MPI_Bcast(seed, 1, MPI_INTEGER8, 0, MPI_COMM_WORLD)
    call executor_open(local_rank)
  end subroutine

  subroutine close_executor
    character(len=4) :: where
    call executor_close
    call MPI_Finalize()
    where = merge('GPU ', 'host', executor_is_gpu() /= 0)
    if (own_rank == 0) print '(3a)', 'passed, in ', trim(where), ' memory'
  end subroutine

  ! The address so many bytes behind another.
  type(c_ptr) function behind(address, bytes)
    type(c_ptr), intent(in) :: address
    integer(c_size_t), intent(in) :: bytes
    behind = transfer(transfer(address, 0_c_intptr_t) + bytes, c_null_ptr)
  end function

  ! A case of the test has ended on all ranks.
  subroutine report(what)
    character(len=*), intent(in) :: what
    call MPI_Barrier(MPI_COMM_WORLD)
    if (own_rank == 0) print '(2a)', 'right: ', what
  end subroutine

end module
