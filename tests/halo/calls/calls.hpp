// SPDX-License-Identifier: BSD-3-Clause
//
// The tests of what calls answer and refuse, for main.
#ifndef MPIX_TESTS_HALO_CALLS_CALLS_HPP
#define MPIX_TESTS_HALO_CALLS_CALLS_HPP

void grids();
void exchanges();
void answers();
void own_memory();
void arrays();
void staggered();
void several_boxes();
void order_of_sums();
void in_stream();
void destroyed_arrays();
void unmapped_memory();
void by_host();
void stalls();
void made_late();
void never_started();

#endif  // MPIX_TESTS_HALO_CALLS_CALLS_HPP
