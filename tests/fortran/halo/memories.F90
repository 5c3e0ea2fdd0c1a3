! SPDX-License-Identifier: BSD-3-Clause
!
! Fields of all kinds of numbers that MPIX_Halo_field_init knows.
#define POISON -9

#define MODULE halo_memory_int8
#define TYPE memory_int8
#define VALUES integer(int8)
#define AS(n) int(n, int8)
#define MOST 126
#include "memory.inc"
#undef MODULE
#undef TYPE
#undef VALUES
#undef AS
#undef MOST

#define MODULE halo_memory_int16
#define TYPE memory_int16
#define VALUES integer(int16)
#define AS(n) int(n, int16)
#define MOST 32000
#include "memory.inc"
#undef MODULE
#undef TYPE
#undef VALUES
#undef AS
#undef MOST

#define MODULE halo_memory_int32
#define TYPE memory_int32
#define VALUES integer(int32)
#define AS(n) int(n)
#define MOST 1000003
#include "memory.inc"
#undef MODULE
#undef TYPE
#undef VALUES
#undef AS
#undef MOST

#define MODULE halo_memory_int64
#define TYPE memory_int64
#define VALUES integer(int64)
#define AS(n) int(n, int64)
#define MOST 1000003
#include "memory.inc"
#undef MODULE
#undef TYPE
#undef VALUES
#undef AS
#undef MOST

#define MODULE halo_memory_real32
#define TYPE memory_real32
#define VALUES real(real32)
#define AS(n) real(n, real32)
#define MOST 1000003
#include "memory.inc"
#undef MODULE
#undef TYPE
#undef VALUES
#undef AS
#undef MOST

#define MODULE halo_memory_real64
#define TYPE memory_real64
#define VALUES real(real64)
#define AS(n) real(n, real64)
#define MOST 1000003
#include "memory.inc"
#undef MODULE
#undef TYPE
#undef VALUES
#undef AS
#undef MOST

#define MODULE halo_memory_complex32
#define TYPE memory_complex32
#define VALUES complex(real32)
#define AS(n) cmplx(n, -(n), real32)
#define MOST 1000003
#include "memory.inc"
#undef MODULE
#undef TYPE
#undef VALUES
#undef AS
#undef MOST

#define MODULE halo_memory_complex64
#define TYPE memory_complex64
#define VALUES complex(real64)
#define AS(n) cmplx(n, -(n), real64)
#define MOST 1000003
#include "memory.inc"
#undef MODULE
#undef TYPE
#undef VALUES
#undef AS
#undef MOST
