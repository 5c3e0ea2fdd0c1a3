! SPDX-License-Identifier: BSD-3-Clause
!
! The module mpix_device: what kernels in CUDA Fortran call, from mpix_device.cu. <mpix/device.cuh> describes the calls
! and the errors that they return. Each call is there for a thread, for a warp (_warp) and for a block (_block), whose
! threads all call with the same arguments. `preq` is the component `address` of a type(MPIX_Prequest).
!
! Never run as CUDA Fortran yet. In other Fortran the interfaces are those of host functions: compiled as
! C++, mpix_device.cu has the ones for a thread, for requests that are exported to host threads.
#if defined(_CUDA)
#define MPIX_DEVICE attributes(device)
#else
#define MPIX_DEVICE
#endif

module mpix_device
  use, intrinsic :: iso_c_binding, only: c_int, c_ptr
  implicit none
  private :: c_int, c_ptr

  interface
    ! One partition of an active send is ready.
    MPIX_DEVICE integer(c_int) function mpix_pready(partition, preq) bind(C, name="mpix_pready")
      import :: c_int, c_ptr
      integer(c_int), value :: partition
      type(c_ptr), value :: preq
    end function
    MPIX_DEVICE integer(c_int) function mpix_pready_warp(partition, preq) bind(C, name="mpix_pready_warp")
      import :: c_int, c_ptr
      integer(c_int), value :: partition
      type(c_ptr), value :: preq
    end function
    MPIX_DEVICE integer(c_int) function mpix_pready_block(partition, preq) bind(C, name="mpix_pready_block")
      import :: c_int, c_ptr
      integer(c_int), value :: partition
      type(c_ptr), value :: preq
    end function

    ! The same; a group moves partitions with gaps itself.
    MPIX_DEVICE integer(c_int) function mpix_pready_typed(partition, preq) bind(C, name="mpix_pready_typed")
      import :: c_int, c_ptr
      integer(c_int), value :: partition
      type(c_ptr), value :: preq
    end function
    MPIX_DEVICE integer(c_int) function mpix_pready_typed_warp(partition, preq) bind(C, name="mpix_pready_typed_warp")
      import :: c_int, c_ptr
      integer(c_int), value :: partition
      type(c_ptr), value :: preq
    end function
    MPIX_DEVICE integer(c_int) function mpix_pready_typed_block(partition, preq) bind(C, name="mpix_pready_typed_block")
      import :: c_int, c_ptr
      integer(c_int), value :: partition
      type(c_ptr), value :: preq
    end function

    ! low to high, both included.
    MPIX_DEVICE integer(c_int) function mpix_pready_range(low, high, preq) bind(C, name="mpix_pready_range")
      import :: c_int, c_ptr
      integer(c_int), value :: low, high
      type(c_ptr), value :: preq
    end function
    MPIX_DEVICE integer(c_int) function mpix_pready_range_warp(low, high, preq) bind(C, name="mpix_pready_range_warp")
      import :: c_int, c_ptr
      integer(c_int), value :: low, high
      type(c_ptr), value :: preq
    end function
    MPIX_DEVICE integer(c_int) function mpix_pready_range_block(low, high, preq) bind(C, name="mpix_pready_range_block")
      import :: c_int, c_ptr
      integer(c_int), value :: low, high
      type(c_ptr), value :: preq
    end function

    ! 1 if the partition of a receive has arrived, else 0.
    MPIX_DEVICE integer(c_int) function mpix_parrived(preq, partition) bind(C, name="mpix_parrived")
      import :: c_int, c_ptr
      integer(c_int), value :: partition
      type(c_ptr), value :: preq
    end function
    MPIX_DEVICE integer(c_int) function mpix_parrived_warp(preq, partition) bind(C, name="mpix_parrived_warp")
      import :: c_int, c_ptr
      integer(c_int), value :: partition
      type(c_ptr), value :: preq
    end function
    MPIX_DEVICE integer(c_int) function mpix_parrived_block(preq, partition) bind(C, name="mpix_parrived_block")
      import :: c_int, c_ptr
      integer(c_int), value :: partition
      type(c_ptr), value :: preq
    end function

    ! Returns when it has.
    MPIX_DEVICE integer(c_int) function mpix_wait_arrived(preq, partition) bind(C, name="mpix_wait_arrived")
      import :: c_int, c_ptr
      integer(c_int), value :: partition
      type(c_ptr), value :: preq
    end function
    MPIX_DEVICE integer(c_int) function mpix_wait_arrived_warp(preq, partition) bind(C, name="mpix_wait_arrived_warp")
      import :: c_int, c_ptr
      integer(c_int), value :: partition
      type(c_ptr), value :: preq
    end function
    MPIX_DEVICE integer(c_int) function mpix_wait_arrived_block(preq, partition) bind(C, name="mpix_wait_arrived_block")
      import :: c_int, c_ptr
      integer(c_int), value :: partition
      type(c_ptr), value :: preq
    end function

    ! Ends the running epoch; start begins the next one, and next_epoch does both.
    MPIX_DEVICE integer(c_int) function mpix_wait(preq) bind(C, name="mpix_wait")
      import :: c_int, c_ptr
      type(c_ptr), value :: preq
    end function
    MPIX_DEVICE integer(c_int) function mpix_wait_warp(preq) bind(C, name="mpix_wait_warp")
      import :: c_int, c_ptr
      type(c_ptr), value :: preq
    end function
    MPIX_DEVICE integer(c_int) function mpix_wait_block(preq) bind(C, name="mpix_wait_block")
      import :: c_int, c_ptr
      type(c_ptr), value :: preq
    end function

    MPIX_DEVICE integer(c_int) function mpix_start(preq) bind(C, name="mpix_start")
      import :: c_int, c_ptr
      type(c_ptr), value :: preq
    end function
    MPIX_DEVICE integer(c_int) function mpix_start_warp(preq) bind(C, name="mpix_start_warp")
      import :: c_int, c_ptr
      type(c_ptr), value :: preq
    end function
    MPIX_DEVICE integer(c_int) function mpix_start_block(preq) bind(C, name="mpix_start_block")
      import :: c_int, c_ptr
      type(c_ptr), value :: preq
    end function

    MPIX_DEVICE integer(c_int) function mpix_next_epoch(preq) bind(C, name="mpix_next_epoch")
      import :: c_int, c_ptr
      type(c_ptr), value :: preq
    end function
    MPIX_DEVICE integer(c_int) function mpix_next_epoch_warp(preq) bind(C, name="mpix_next_epoch_warp")
      import :: c_int, c_ptr
      type(c_ptr), value :: preq
    end function
    MPIX_DEVICE integer(c_int) function mpix_next_epoch_block(preq) bind(C, name="mpix_next_epoch_block")
      import :: c_int, c_ptr
      type(c_ptr), value :: preq
    end function

  end interface

end module
