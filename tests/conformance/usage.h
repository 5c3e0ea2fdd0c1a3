// SPDX-License-Identifier: BSD-3-Clause
//
// What this process holds of the system.
#ifndef MPIX_TESTS_CONFORMANCE_USAGE_H
#define MPIX_TESTS_CONFORMANCE_USAGE_H

struct usage {
    long descriptors;
    long mappings;   // of mpix's memory files
    long kibibytes;  // resident
    long allocated;  // bytes from malloc
};
struct usage look_at_usage(void);

#endif  // MPIX_TESTS_CONFORMANCE_USAGE_H
