! SPDX-License-Identifier: BSD-3-Clause
!
! The interfaces of the module mpix_device, on the host: this program's thread is the kernel of a send and a receive that
! are exported to host threads, for several epochs of one activation.
program device
  use mpi_f08
  use mpix
  use mpix_device
  use checks
  implicit none
  integer, parameter :: sends = 6, receives = 4, elements = 120, epochs = 5
  integer, asynchronous :: out(elements), in(elements)
  type(MPI_Request) :: both(2)
  type(MPIX_Prequest) :: send, receive
  type(MPI_Info) :: info
  integer :: ranks, right, left, epoch, p, code, class

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, own_rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  right = mod(own_rank + 1, ranks)
  left = mod(own_rank + ranks - 1, ranks)
  call MPI_Psend_init(out, sends, int(elements / sends, MPI_COUNT_KIND), MPI_INTEGER, right, 0, MPI_COMM_WORLD, &
                      MPI_INFO_NULL, both(1))
  call MPI_Precv_init(in, receives, int(elements / receives, MPI_COUNT_KIND), MPI_INTEGER, left, 0, MPI_COMM_WORLD, &
                      MPI_INFO_NULL, both(2))
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'mpix_device', 'host')
  call MPIX_Prequest_create(both(1), info, send)
  call MPIX_Prequest_create(both(2), info, receive)
  call MPI_Info_free(info)

  call MPI_Startall(2, both)
  do epoch = 1, epochs
    write (subject, '(a,i0)') 'epoch ', epoch
    call fill(out, epoch * 100 + own_rank)
    in = -1
    if (epoch > 1) then
      call succeed(mpix_start(receive%address), 'mpix_start of the receive')
      call succeed(mpix_start(send%address), 'mpix_start of the send')
    end if
    call MPI_Barrier(MPI_COMM_WORLD)
    call check(mpix_parrived(receive%address, receives - 1) == 0, 'no partition has arrived that is not ready')
    call MPI_Barrier(MPI_COMM_WORLD)
    call succeed(mpix_pready_range(1, sends - 2, send%address), 'mpix_pready_range')
    call succeed(mpix_pready(sends - 1, send%address), 'mpix_pready')
    call succeed(mpix_pready_typed(0, send%address), 'mpix_pready_typed')
    call check(mpix_pready(sends, send%address) == MPI_ERR_ARG, 'a partition that is not there is an error')
    do p = 0, receives - 1
      call succeed(mpix_wait_arrived(receive%address, p), 'mpix_wait_arrived')
      call check(mpix_parrived(receive%address, p) == 1, 'what was waited for has arrived')
      call check_data(in, epoch * 100 + left, p * elements / receives + 1, (p + 1) * elements / receives)
    end do
    call succeed(mpix_wait(receive%address), 'mpix_wait of the receive')
    call succeed(mpix_wait(send%address), 'mpix_wait of the send')
  end do

  subject = 'the end of the activation'
  call MPI_Wait(both(2), MPI_STATUS_IGNORE, code)
  call check(code == MPI_SUCCESS, 'the receive completes')
  call MPI_Wait(both(1), MPI_STATUS_IGNORE, code)
  call MPI_Error_class(code, class)
  call check(class == MPI_ERR_ARG, 'the error of the call for a partition that is not there is raised')
  call MPIX_Prequest_free(send, code)
  call MPIX_Prequest_free(receive, code)
  call MPI_Request_free(both(1))
  call MPI_Request_free(both(2))
  call MPI_Finalize()
  if (own_rank == 0) print '(a)', 'passed'

contains

  subroutine succeed(code, what)
    integer, intent(in) :: code
    character(len=*), intent(in) :: what
    call check(code == MPI_SUCCESS, what // ' succeeds')
  end subroutine

end program
