// SPDX-License-Identifier: BSD-3-Clause
//
// The tutorial's first step (docs/tutorial.md): the kernel sends, and computes while the ghost rows are under way.
#include "heat.cuh"

using namespace tutorial;

namespace {

struct one_step {
    band mine;
    handles all;
    int step;

    template <class Block>
    KERNEL_FN void operator()(const Block &block, int index) const {
        const auto m = all.of(step);
        mpix::pready(block, index, m.send_up);
        mpix::pready(block, index, m.send_down);
        update(block, index, mine, step, 2, mine.rows - 1);
        mpix::wait_arrived(block, m.receive_up, index);
        mpix::wait_arrived(block, m.receive_down, index);
        update(block, index, mine, step, 1, 1);
        update(block, index, mine, step, mine.rows, mine.rows);
    }
};

}  // namespace

int main(int argc, char **argv) {
    heat h(argc, argv);
    {
        requests all(h);
        handles exported = export_all(all);
        for (int step = 0; step < steps; ++step) {
            MPI_Startall(4, all.of(step));
            launch(blocks, one_step{h.mine(), exported, step});
            MPI_Waitall(4, all.of(step), MPI_STATUSES_IGNORE);
        }
        free_all(exported);
    }
    return h.check();
}
