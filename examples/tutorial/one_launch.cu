// SPDX-License-Identifier: BSD-3-Clause
//
// The tutorial's second step (docs/tutorial.md): one kernel does all steps, and runs the epochs of its messages itself.
#include "heat.cuh"

using namespace tutorial;

namespace {

struct all_steps {
    band mine;
    handles all;
    grid_barrier barrier;

    template <class Block>
    KERNEL_FN void operator()(const Block &block, int index) const {
        for (int step = 0; step < steps; ++step) {
            const auto m = all.of(step);
            mpix::pready(block, index, m.send_up);
            mpix::pready(block, index, m.send_down);
            update(block, index, mine, step, 2, mine.rows - 1);
            mpix::wait_arrived(block, m.receive_up, index);
            mpix::wait_arrived(block, m.receive_down, index);
            update(block, index, mine, step, 1, 1);
            update(block, index, mine, step, mine.rows, mine.rows);
            // After this wait the rows that were sent may be overwritten, as the next step does.
            if (index == 0) mpix::wait(block, 4, all.sets[step % 2]);
            barrier(block);
            // All blocks have read the ghost rows. The next step has the other set; this one is used again after it.
            if (index == 0 && step + 2 < steps) mpix::start(block, 4, all.sets[step % 2]);
        }
    }
};

}  // namespace

int main(int argc, char **argv) {
    heat h(argc, argv);
    {
        requests all(h);
        handles exported = export_all(all);
        int *const arrived = allocate<int>(1);
        for (int set = 0; set < 2; ++set) MPI_Startall(4, all.of(set));
        launch(blocks, all_steps{h.mine(), exported, {arrived, blocks}});
        for (int set = 0; set < 2; ++set) MPI_Waitall(4, all.of(set), MPI_STATUSES_IGNORE);
        release_memory(arrived);
        free_all(exported);
    }
    return h.check();
}
