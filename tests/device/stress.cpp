// SPDX-License-Identifier: BSD-3-Clause
//
// Many epochs, a kernel for each: fresh data out, fresh data in, every byte checked.
#include "tests/device/workload.hpp"

using namespace device_test;

constexpr double longest_seconds = 100;

int main(int argc, char **argv) {
    session s(argc, argv, "device stress");
    const long usual = executor::is_gpu ? 100000 : 2000;
    const long epochs = s.epochs != 0 ? s.epochs : s.quick ? 100 : usual;
    {
        exchanges all(s);
        const bool limited = !executor::is_gpu && s.epochs == 0;
        const double start = MPI_Wtime();
        for (long e = 1; e <= epochs; ++e) {
            // A machine that others keep busy takes its threads in turns, some of them in every epoch: so it does
            // fewer.
            if (limited && e % 100 == 0 && s.anywhere(MPI_Wtime() - start > longest_seconds)) {
                if (s.rank == 0) std::printf("%ld epochs of %ld\n", e - 1, epochs);
                break;
            }
            all.start();
            // The number of blocks changes who works on what, and who comes last.
            const int blocks = executor::is_gpu ? 1 + static_cast<int>(e % 13) : 1 + static_cast<int>(e % 3);
            s.run(blocks, executor::is_gpu ? 128 : 2, all.view());
            if (e % 2 == 0)
                all.wait();
            else
                all.poll();
        }
        all.check_guards();
    }
    return s.finish();
}
