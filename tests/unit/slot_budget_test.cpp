// SPDX-License-Identifier: BSD-3-Clause
#include "host/protocol/slot_budget.h"

#include <mpix/impl/epoch/slot_ring.cuh>

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "tests/catch.hpp"

using namespace mpix;

TEST_CASE("a landing has as many slots as fit, a power of two") {
    CHECK(slots_within(0, 0) == 2);
    CHECK(slots_within(100, 0) == 2);
    CHECK(slots_within(199, 100) == 2);
    CHECK(slots_within(399, 100) == 2);
    CHECK(slots_within(400, 100) == 4);
    CHECK(slots_within(799, 100) == 4);
    CHECK(slots_within(12800, 100) == 128);
    CHECK(slots_within(25600, 100) == 128);
    CHECK(slots_within(~std::uint64_t{0}, 1) == most_slots);
}

TEST_CASE("a receive takes room by its message's size") {
    landing_room room;
    CHECK(room.take(0, 1 << 20) == 2);
    CHECK(room.take(4096, 0) == 2);
    CHECK(room.take(8192, 1 << 20) == 128);
    CHECK(room.take(8128, 1 << 20) == 2);  // 129 would fit
    CHECK(room.take(1 << 18, 1 << 20) == 4);
    CHECK(room.take((1 << 18) + 1, 1 << 20) == 2);
    CHECK(room.take(1 << 20, 1 << 20) == 2);
    CHECK(room.take(~std::uint64_t{0}, 1 << 20) == 2);
    CHECK(room.take(~std::uint64_t{0} / 4, ~std::uint64_t{0}) == 4);
}

TEST_CASE("all receives of a process together take what eight may, and give it back") {
    constexpr std::uint64_t message = 1000, budget = 16 * message;  // 14 slots more than two
    std::vector<std::unique_ptr<landing_room>> rooms;
    for (int i = 0; i < 9; ++i) {
        rooms.push_back(std::make_unique<landing_room>());
        CHECK(rooms.back()->take(message, budget) == 16);  // 8 x 16 / 14
    }
    landing_room late;
    CHECK(late.take(message, budget) == 2);
    CHECK(late.take(4 * message, budget) == 2);  // where there is room it is 4
    rooms.front()->give_back();
    rooms.front()->give_back();  // once
    CHECK(late.take(message, budget) == 16);
    CHECK(rooms.front()->take(message, budget) == 2);
    CHECK(late.take(message, budget) == 16);  // what it had counts no more
    rooms.clear();
    CHECK(landing_room().take(4 * message, budget) == 4);
    landing_room all;
    CHECK(all.take(message, 64 * message) == 64);
}

TEST_CASE("threads take and give back room at once") {
    constexpr std::uint64_t message = 1 << 20, budget = 4 * message;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([] {
            landing_room room;
            for (int i = 0; i < 2000; ++i) room.take(message, budget), room.give_back();
        });
    for (std::thread &t : threads) t.join();
    std::vector<std::unique_ptr<landing_room>> rooms;
    for (int i = 0; i < 16; ++i) {
        rooms.push_back(std::make_unique<landing_room>());
        CHECK(rooms.back()->take(message, budget) == 4);
    }
    CHECK(landing_room().take(message, budget) == 2);
}

TEST_CASE("between nodes short messages have 16 slots, and of long ones as many as 64 KiB hold") {
    landing_room room;
    CHECK(room.take_between_nodes(0, 64, 1 << 20) == 2);
    CHECK(room.take_between_nodes(8, 64, 1 << 20) == 16);
    CHECK(room.take_between_nodes(4096, 64, 1 << 20) == 16);
    CHECK(room.take_between_nodes(4097, 64, 1 << 20) == 8);
    CHECK(room.take_between_nodes(16384, 64, 1 << 20) == 4);
    CHECK(room.take_between_nodes(32768, 64, 1 << 20) == 2);
    CHECK(room.take_between_nodes(~std::uint64_t{0}, 64, 1 << 20) == 2);
    CHECK(room.take_between_nodes(8, 64, 0) == 2);
    CHECK(room.take_between_nodes(4096, 65, 1 << 20) == 2);
}

TEST_CASE("a sender between nodes runs ahead by all slots but one, and not before the first Start") {
    for (const std::uint64_t slots : {1, 2, 4, 16}) {
        CHECK(clear_to_send_between_nodes(1, slots) == 1);
        for (std::uint64_t epoch = 2; epoch < 40; ++epoch) {
            const std::uint64_t needed = clear_to_send_between_nodes(epoch, slots);
            CHECK(needed >= 1);
            CHECK(needed + slots - 1 >= epoch);  // the epoch of that slot is over at the receiver
            if (slots <= 2) CHECK(needed == detail::clear_to_send_needed(epoch, slots));
            if (epoch >= slots) CHECK(needed == epoch - slots + 1);
        }
    }
}

TEST_CASE("the slots follow each other") {
    for (const std::uint64_t slots : {1, 2, 4, 128}) {
        CHECK(detail::slot_of(0, slots) == 0);
        for (std::uint64_t epoch = 1; epoch < 1000; ++epoch) CHECK(detail::slot_of(epoch, slots) == epoch % slots);
    }
    CHECK(detail::slot_of(7, 0) == 0);  // none
    CHECK(detail::clear_to_send_needed(1, 2) == 1);
    CHECK(detail::clear_to_send_needed(5, 1) == 5);
    for (const std::uint64_t slots : {2, 4, 128}) CHECK(detail::clear_to_send_needed(5, slots) == 4);
}
