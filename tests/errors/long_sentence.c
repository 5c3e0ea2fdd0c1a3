// SPDX-License-Identifier: BSD-3-Clause
//
// A sentence that is longer than MPI_Error_string's room. It is cut there, and (checked by the test that runs this) printed
// as a whole; one that fits is not printed.
#include <mpix/mpix.h>

#include "tests/errors/expect.h"

static void long_sentence(void) {
    static int data[1];
    MPI_Request request;
    MPIX_Prequest handle;
    MPI_Info info;
    char value[MPI_MAX_ERROR_STRING - 20];
    memset(value, 'o', sizeof value - 1);
    value[0] = 'n';
    value[sizeof value - 1] = '\0';
    OK(MPI_Psend_init(data, 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpix_waiters", value));
    char text[MPI_MAX_ERROR_STRING];
    int n = 0;
    const int code = MPIX_Prequest_create(request, info, &handle);
    OK(MPI_Error_string(code, text, &n));
    CHECK(n == (int)strlen(text) && n == MPI_MAX_ERROR_STRING - 1);
    CHECK(strncmp(text, "MPIX_Prequest_create: info key mpix_waiters is \"nooo", 51) == 0);
    CHECK(strcmp(text + n - 4, "o...") == 0);
    OK(MPI_Info_set(info, "mpix_waiters", "none"));
    EXPECT(MPI_ERR_INFO_VALUE, "info key mpix_waiters is \"none\"", MPIX_Prequest_create(request, info, &handle));
    OK(MPI_Info_free(&info));
    OK(MPI_Request_free(&request));
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {{"a long sentence", 1, long_sentence}};
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
