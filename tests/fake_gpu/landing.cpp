// SPDX-License-Identifier: BSD-3-Clause
//
// landing [host]: messages from the first rank to the last into GPU memory, which host memory plays, that no other
// process can map: they come by a landing of the library's. Buffers begin and end anywhere in their allocations; the
// host marks partitions ready and asks for them. `host`: the send buffers are host memory. On one rank, or two.
#include <mpi.h>
#include <mpix/mpix.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "tests/fake_gpu/message.hpp"

namespace {

using namespace fake_kernels;

bool from_host = false;
constexpr std::size_t around = 64;  // bytes of the allocation before the buffer and behind it

struct shape {
    int sends, receives;
    std::size_t bytes, offset;  // of the buffers in their allocations
};

class buffer {
public:
    buffer(const shape &s, bool on_host) : s_(s), host_(on_host ? s.bytes + 2 * around : 0) {
        if (!on_host) must(gpu().allocate(s.bytes + 2 * around, 0, memory_).ok(), "no memory");
    }
    ~buffer() {
        if (memory_) gpu().release(memory_);
    }
    buffer(const buffer &) = delete;
    buffer &operator=(const buffer &) = delete;
    char *begin() { return all() + s_.offset; }
    void fill(int test, std::uint64_t epoch) {
        for (std::size_t i = 0; i < s_.bytes; ++i) begin()[i] = byte_of(test, epoch, i);
    }
    void poison(int with) { std::memset(all(), with, s_.bytes + 2 * around); }
    bool holds(int test, std::uint64_t epoch, std::size_t first, std::size_t end) {
        for (std::size_t i = first; i < end; ++i)
            if (begin()[i] != byte_of(test, epoch, i)) return false;
        return true;
    }
    bool untouched_around(int with) {
        for (std::size_t i = 0; i < s_.bytes + 2 * around; ++i)
            if ((i < s_.offset || i >= s_.offset + s_.bytes) && all()[i] != static_cast<char>(with)) return false;
        return true;
    }

private:
    char *all() { return host_.empty() ? static_cast<char *>(memory_.address) : host_.data(); }
    const shape &s_;
    std::vector<char> host_;
    tr::region memory_;
};

constexpr int poison = 0x5a;

MPI_Request begin_send(const shape &s, int test, buffer &b) {
    MPI_Request request = MPI_REQUEST_NULL;
    must(MPI_Psend_init(b.begin(), s.sends, static_cast<MPI_Count>(s.bytes) / s.sends, MPI_BYTE, ranks - 1, test,
                        MPI_COMM_WORLD, MPI_INFO_NULL, &request),
         "MPI_Psend_init");
    return request;
}
MPI_Request begin_receive(const shape &s, int test, buffer &b) {
    MPI_Request request = MPI_REQUEST_NULL;
    must(MPI_Precv_init(b.begin(), s.receives, static_cast<MPI_Count>(s.bytes) / s.receives, MPI_BYTE, 0, test,
                        MPI_COMM_WORLD, MPI_INFO_NULL, &request),
         "MPI_Precv_init");
    return request;
}

// What Parrived says is there is there.
void look(const shape &s, int test, std::uint64_t epoch, MPI_Request request, buffer &in) {
    const std::size_t each = s.bytes / static_cast<std::size_t>(s.receives);
    for (int j = 0; j < s.receives; ++j) {
        int flag = 0;
        must(MPI_Parrived(request, j, &flag), "MPI_Parrived");
        const std::size_t first = static_cast<std::size_t>(j) * each;
        must(flag == 0 || in.holds(test, epoch, first, first + each), "a partition that has arrived is wrong");
    }
}

void exchange(const shape &s, int test) {
    buffer out(s, from_host), in(s, false);
    // Requests that nobody ever starts, whichever of them meet.
    if (test % 2 == 0 && receives()) {
        MPI_Request unused = begin_receive(s, test, in);
        must(MPI_Request_free(&unused), "MPI_Request_free");
    }
    MPI_Request send = sends() ? begin_send(s, test, out) : MPI_REQUEST_NULL;
    MPI_Request receive = receives() ? begin_receive(s, test, in) : MPI_REQUEST_NULL;
    for (std::uint64_t epoch = 1; epoch <= 5; ++epoch) {
        if (receives()) {
            in.poison(poison);
            must(MPI_Start(&receive), "MPI_Start");
        }
        if (sends()) {
            out.fill(test, epoch);
            must(MPI_Start(&send), "MPI_Start");
            for (int i = 0; i < s.sends; ++i) {
                must(MPI_Pready((i * 5 + static_cast<int>(epoch)) % s.sends, send), "MPI_Pready");
                if (receives()) look(s, test, epoch, receive, in);
            }
        }
        if (receives() && !sends())
            for (int turn = 0; turn < 8; ++turn) look(s, test, epoch, receive, in);
        MPI_Request both[] = {send, receive};
        must(MPI_Waitall(2, both, MPI_STATUSES_IGNORE), "MPI_Waitall");
        if (sends()) out.poison(0x77);  // it is ours again
        if (receives()) {
            must(in.holds(test, epoch, 0, s.bytes), "a byte is wrong");
            must(in.untouched_around(poison), "a byte beside the buffer was written");
        }
    }
    if (sends()) must(MPI_Request_free(&send), "MPI_Request_free");
    if (receives()) must(MPI_Request_free(&receive), "MPI_Request_free");
}

// All partitions are ready before the receiver starts. Then neighbours go together, as long as they are small: in so many
// copies; and what goes alone goes in the order in which it became ready. Two ranks, so that the sender's copies can be told
// from those of the receiver.
void move_together(const shape &s, int test, std::size_t copies) {
    buffer out(s, from_host), in(s, false);
    MPI_Request request = sends() ? begin_send(s, test, out) : begin_receive(s, test, in);
    const auto nth = [&](int i, std::uint64_t epoch) { return (i * 5 + static_cast<int>(epoch)) % s.sends; };
    for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
        if (sends()) {
            out.fill(test, epoch);
            must(MPI_Start(&request), "MPI_Start");
            for (int i = 0; i < s.sends; ++i) must(MPI_Pready(nth(i, epoch), request), "MPI_Pready");
            (void)gpu().started_copies();
            must(MPI_Send(nullptr, 0, MPI_BYTE, 1, test, MPI_COMM_WORLD), "MPI_Send");
        } else {
            in.poison(poison);
            must(MPI_Recv(nullptr, 0, MPI_BYTE, 0, test, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
            must(MPI_Start(&request), "MPI_Start");
            for (bool all = false; !all;) {  // each flag after its bytes
                look(s, test, epoch, request, in);
                all = true;
                for (int j = 0; j < s.receives; ++j) {
                    int flag = 0;
                    must(MPI_Parrived(request, j, &flag), "MPI_Parrived");
                    all = all && flag != 0;
                }
            }
        }
        must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        if (sends()) {
            const std::vector<const void *> started = gpu().started_copies();
            must(started.size() == copies, "another number of copies than it should take");
            for (int i = 0; i < s.sends && copies == static_cast<std::size_t>(s.sends); ++i)
                must(started[static_cast<std::size_t>(i)] ==
                         out.begin() +
                             static_cast<std::size_t>(nth(i, epoch)) * (s.bytes / static_cast<std::size_t>(s.sends)),
                     "another order than that in which they became ready");
        } else {
            must(in.holds(test, epoch, 0, s.bytes) && in.untouched_around(poison), "a byte is wrong");
        }
    }
    must(MPI_Request_free(&request), "MPI_Request_free");
}

}  // namespace

int main(int argc, char **argv) {
    from_host = argc > 1 && std::string_view(argv[1]) == "host";
    gpu().pooled = true;
    begin(argc, argv);
    const shape shapes[] = {{1, 1, 1, 3},        {4, 2, 4096, 0},          {3, 3, 3 * 70001, 5},
                            {1, 5, 5 << 16, 17}, {6, 4, 12 << 10, around}, {7, 7, 7, 1},
                            {2, 1, 0, 9},        {64, 8, 64 * 24, 8}};
    int test = 0;
    for (const shape &s : shapes) exchange(s, ++test);
    if (ranks == 2) {
        move_together({64, 8, 64 * 24, 8}, ++test, 1);
        move_together({7, 7, 7 * (100 << 10), 0}, ++test, 4);  // two at a time
        move_together({6, 3, 6 * (300 << 10), 0}, ++test, 6);
    }
    end();
    return 0;
}
