// SPDX-License-Identifier: BSD-3-Clause
//
// Each column of a matrix is one partition, as in docs/datatypes.md; the receiver gets the columns as rows of another
// matrix.
#include "tests/conformance/harness.h"

enum { m = 13, n = 7 };  // rows and columns

static double matrix[m * n], transpose[n * m];

static void columns_to_rows(void) {
    MPI_Datatype strided, column;
    MPI_Request r[2];
    OK(MPI_Type_vector(m, 1, n, MPI_DOUBLE, &strided));
    OK(MPI_Type_create_resized(strided, 0, sizeof(double), &column));
    OK(MPI_Type_commit(&column));
    OK(MPI_Type_free(&strided));
    OK(MPI_Psend_init(matrix, n, 1, column, right_rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
    OK(MPI_Precv_init(transpose, n, m, MPI_DOUBLE, left_rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
    OK(MPI_Type_free(&column));
    for (int epoch = 0; epoch < 3; ++epoch) {
        for (int i = 0; i < m * n; ++i) {
            matrix[i] = 1000.0 * epoch + i;
            transpose[i] = -1;
        }
        OK(MPI_Startall(2, r));
        for (int column_number = n - 1; column_number >= 0; --column_number) OK(MPI_Pready(column_number, r[0]));
        OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
        for (int row = 0; row < m; ++row)
            for (int col = 0; col < n; ++col) CHECK(transpose[col * m + row] == 1000.0 * epoch + row * n + col);
    }
    OK(MPI_Request_free(&r[0]));
    OK(MPI_Request_free(&r[1]));
}

int main(int argc, char **argv) {
    const struct test_case cases[] = {{"columns as partitions", 1, columns_to_rows}};
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
