// SPDX-License-Identifier: BSD-3-Clause
//
// The tutorial's third step (docs/tutorial.md): blocks wait for the blocks beside them only, and one more block runs the
// epochs.
#include "heat.cuh"

using namespace tutorial;

namespace {

struct progress {
    int *done;     // of each block: the steps that it has done
    int *sent;     // messages whose rows may be overwritten
    int *started;  // messages that have been started
};

struct all_steps {
    band mine;
    handles all;
    progress now;

    template <class Block>
    KERNEL_FN void operator()(const Block &block, int index) const {
        index < blocks ? compute(block, index) : run_epochs(block);
    }

    template <class Block>
    KERNEL_FN void compute(const Block &block, int index) const {
        for (int step = 0; step < steps; ++step) {
            const auto m = all.of(step);
            if (block.thread_rank() == 0) {
                await(now.done + (index + blocks - 1) % blocks, step);
                await(now.done + (index + 1) % blocks, step);
                await(now.started, step + 1);
            }
            block.sync();
            mpix::pready(block, index, m.send_up);
            mpix::pready(block, index, m.send_down);
            update(block, index, mine, step, 2, mine.rows - 1);
            mpix::wait_arrived(block, m.receive_up, index);
            mpix::wait_arrived(block, m.receive_down, index);
            if (block.thread_rank() == 0) await(now.sent, step);  // the next field's rows were sent a step ago
            block.sync();
            update(block, index, mine, step, 1, 1);
            update(block, index, mine, step, mine.rows, mine.rows);
            block.sync();
            if (block.thread_rank() == 0) tell(now.done + index, step + 1);
        }
    }

    template <class Block>
    KERNEL_FN void run_epochs(const Block &block) const {
        const bool leader = block.thread_rank() == 0;
        for (int step = 0; step < steps; ++step) {
            mpix::wait(block, 2, all.sets[step % 2]);  // the two sends
            if (leader) tell(now.sent, step + 1);
            if (step + 2 >= steps) continue;
            if (leader)
                for (int i = 0; i < blocks; ++i) await(now.done + i, step + 1);  // the ghost rows have been read
            block.sync();
            mpix::next_epoch(block, 4, all.sets[step % 2]);
            if (leader) tell(now.started, step + 3);
        }
    }
};

}  // namespace

int main(int argc, char **argv) {
    heat h(argc, argv);
    {
        requests all(h);
        handles exported = export_all(all);
        int *const words = allocate<int>(blocks + 2);
        const progress now{words + 2, words, words + 1};
        const int both_sets = 2;
        copy(now.started, &both_sets, 1);
        for (int set = 0; set < 2; ++set) MPI_Startall(4, all.of(set));
        launch(blocks + 1, all_steps{h.mine(), exported, now});
        for (int set = 0; set < 2; ++set) MPI_Waitall(4, all.of(set), MPI_STATUSES_IGNORE);
        release_memory(words);
        free_all(exported);
    }
    return h.check();
}
