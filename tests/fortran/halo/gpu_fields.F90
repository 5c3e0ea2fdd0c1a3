! SPDX-License-Identifier: BSD-3-Clause
!
! Fields where kernels run. The host makes, and checks, images of their memory.
module halo_gpu_fields
  use, intrinsic :: iso_c_binding
  use checks, only: check
  use executors
  use halo_cells
  use mpix_halo
  implicit none
  private
  public :: describe, release, fill_image, verify_image, verify_poison

  ! In two allocations, real(8); in one, three integers in each cell.
  type, public :: gpu_field
    type(domain) :: whole
    integer :: radius(-1:1, -1:1, -1:1) = 0
    logical :: two = .true.
    integer :: lo(3), n(3), components
    integer(c_size_t) :: cell_bytes, bytes
    type(c_ptr) :: memory(2) = c_null_ptr
  end type

  integer, parameter :: most = 1000003, poison = -9

contains

  ! Allocates it: with the ghost cells that the radius needs, and no others.
  subroutine describe(u, field)
    type(gpu_field), intent(inout) :: u
    type(MPIX_Halo_field), intent(out) :: field
    real(8), pointer, contiguous, asynchronous :: a1(:), b1(:), a2(:, :), b2(:, :), a3(:, :, :), b3(:, :, :)
    integer, pointer, contiguous, asynchronous :: q1(:, :), q2(:, :, :), q3(:, :, :, :)
    integer :: m
    associate (mine => u%whole%mine, r => u%radius)
      u%lo = mine%lo - [maxval(r(-1, :, :)), maxval(r(:, -1, :)), maxval(r(:, :, -1))]
      u%n = mine%hi + [maxval(r(1, :, :)), maxval(r(:, 1, :)), maxval(r(:, :, 1))] - u%lo + 1
    end associate
    u%components = merge(1, 3, u%two)
    u%cell_bytes = merge(8, 12, u%two)
    u%bytes = product(u%n) * u%cell_bytes
    do m = 1, merge(2, 1, u%two)
      u%memory(m) = executor_allocate(u%bytes)
    end do
    associate (n => u%n, a => u%memory(1), b => u%memory(2))
      select case (u%whole%axes + merge(0, 3, u%two))
      case (1)
        call c_f_pointer(a, a1, n(1:1))
        call c_f_pointer(b, b1, n(1:1))
        call MPIX_Halo_field_init(a1, u%radius, field, other=b1)
      case (2)
        call c_f_pointer(a, a2, n(1:2))
        call c_f_pointer(b, b2, n(1:2))
        call MPIX_Halo_field_init(a2, u%radius, field, other=b2)
      case (3)
        call c_f_pointer(a, a3, n)
        call c_f_pointer(b, b3, n)
        call MPIX_Halo_field_init(a3, u%radius, field, other=b3)
      case (4)
        call c_f_pointer(a, q1, [3, n(1)])
        call MPIX_Halo_field_init(q1, u%radius, field, .true., components=3)
      case (5)
        call c_f_pointer(a, q2, [3, n(1:2)])
        call MPIX_Halo_field_init(q2, u%radius, field, .true., components=3)
      case (6)
        call c_f_pointer(a, q3, [3, n])
        call MPIX_Halo_field_init(q3, u%radius, field, .true., components=3)
      end select
    end associate
    call check(c_associated(field%data, u%memory(1)), 'the field begins where the memory does')
    call check(field%allocated == u%bytes, 'the field knows its memory')
  end subroutine

  subroutine release(u)
    type(gpu_field), intent(inout) :: u
    integer :: m
    do m = 1, merge(2, 1, u%two)
      call executor_release(u%memory(m))
    end do
  end subroutine

  ! The cells of the box have the values of this key; all others, or all of them without a key, poison.
  subroutine fill_image(u, image, key)
    type(gpu_field), intent(in) :: u
    type(c_ptr), intent(in) :: image
    integer, optional, intent(in) :: key
    integer :: x, y, z, c, i
    i = 0
    do z = u%lo(3), u%lo(3) + u%n(3) - 1
      do y = u%lo(2), u%lo(2) + u%n(2) - 1
        do x = u%lo(1), u%lo(1) + u%n(1) - 1
          do c = 1, u%components
            i = i + 1
            if (present(key) .and. in_box(u, [x, y, z])) then
              call put(u, image, i, cell_value(key, c, [x, y, z], most))
            else
              call put(u, image, i, poison)
            end if
          end do
        end do
      end do
    end do
  end subroutine

  ! Every cell: those of the box, the ghost cells that an exchange fills, and those where nothing is stored.
  subroutine verify_image(u, image, key)
    type(gpu_field), intent(in) :: u
    type(c_ptr), intent(in) :: image
    integer, intent(in) :: key
    integer :: x, y, z, c, i, at(3)
    character(len=100) :: what
    i = 0
    do z = u%lo(3), u%lo(3) + u%n(3) - 1
      do y = u%lo(2), u%lo(2) + u%n(2) - 1
        do x = u%lo(1), u%lo(1) + u%n(1) - 1
          at = [x, y, z]
          do c = 1, u%components
            i = i + 1
            write (what, '(a,i0,a,3(i0,1x),a)') 'component ', c, ' of the cell ', at, 'is right'
            if (in_box(u, at) .or. is_filled(u%whole, u%radius, at)) then
              call check(has(u, image, i, cell_value(key, c, wrapped(u%whole, at), most)), trim(what))
            else
              call check(has(u, image, i, poison), trim(what) // ': nothing is stored there')
            end if
          end do
        end do
      end do
    end do
  end subroutine

  subroutine verify_poison(u, image)
    type(gpu_field), intent(in) :: u
    type(c_ptr), intent(in) :: image
    integer :: i
    do i = 1, product(u%n) * u%components
      call check(has(u, image, i, poison), 'the allocation that is not in use is not touched')
    end do
  end subroutine

  pure logical function in_box(u, at)
    type(gpu_field), intent(in) :: u
    integer, intent(in) :: at(3)
    in_box = all(at >= u%whole%mine%lo .and. at <= u%whole%mine%hi)
  end function

  subroutine put(u, image, i, number)
    type(gpu_field), intent(in) :: u
    type(c_ptr), intent(in) :: image
    integer, intent(in) :: i, number
    real(8), pointer :: reals(:)
    integer, pointer :: integers(:)
    if (u%two) then
      call c_f_pointer(image, reals, [i])
      reals(i) = number
    else
      call c_f_pointer(image, integers, [i])
      integers(i) = number
    end if
  end subroutine

  logical function has(u, image, i, number)
    type(gpu_field), intent(in) :: u
    type(c_ptr), intent(in) :: image
    integer, intent(in) :: i, number
    real(8), pointer :: reals(:)
    integer, pointer :: integers(:)
    if (u%two) then
      call c_f_pointer(image, reals, [i])
      has = reals(i) == number
    else
      call c_f_pointer(image, integers, [i])
      has = integers(i) == number
    end if
  end function

end module
