// SPDX-License-Identifier: BSD-3-Clause
//
// For calls that must fail: with this class, and a sentence that names the call and what is wrong.
#ifndef MPIX_TESTS_ERRORS_EXPECT_H
#define MPIX_TESTS_ERRORS_EXPECT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/harness.h"

static inline void expect_error(const char *file, int line, const char *call, int code, int wanted, const char *words) {
    char text[MPI_MAX_ERROR_STRING], name[64], what[2 * MPI_MAX_ERROR_STRING + 600];
    int error_class = -1, n = 0;
    MPI_Error_class(code, &error_class);
    MPI_Error_string(code, text, &n);
    // The sentence begins with the name of the call.
    snprintf(name, sizeof name, "%.*s:", (int)strcspn(call, "("), call);
    // Of another MPI library than mpix no more than the class can be asked.
    const int class_only = getenv("MPIX_TESTS_CLASS_ONLY") != NULL;
    const int good =
        error_class == wanted && (class_only || (n == (int)strlen(text) && strncmp(text, name, strlen(name)) == 0 &&
                                                 strstr(text, words) != NULL));
    if (good) return;
    snprintf(what, sizeof what, "%s gave class %d, \"%s\"; not class %d, \"%s ... %s\"", call, error_class, text,
             wanted, name, words);
    fail_check(file, line, what);
}

#define EXPECT(error_class, words, call) expect_error(__FILE__, __LINE__, #call, call, error_class, words)

#endif  // MPIX_TESTS_ERRORS_EXPECT_H
