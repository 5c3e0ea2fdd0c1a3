// SPDX-License-Identifier: BSD-3-Clause
//
// A receiver's datatype as any bytes: what passes speaks of no memory outside of its span.
#include <algorithm>
#include <memory>
#include <string>

#include "host/datatype/plan_wire.h"
#include "host/datatype/typemap.h"
#include "tests/fuzz/input.h"

#include <mpix/impl/pack/typed_copy.cuh>

using namespace mpix;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    status problem;
    const auto type = plan_from_bytes(data, size, problem);
    FUZZ_CHECK((type == nullptr) == !problem.ok());
    if (type == nullptr) return 0;
    const std::vector<char> again = to_bytes(*type);
    FUZZ_CHECK(again.size() == size && std::equal(again.begin(), again.end(), reinterpret_cast<const char *>(data)));
    const std::int64_t elements = 1 + data[size - 1] % 5;
    const memory_span span = span_of(*type, elements);
    const auto map = typemap_of(*type);
    const std::int64_t all = type->size * elements, step = std::max<std::int64_t>(all / 4099, 1);
    for (std::int64_t x = 0; x < all; x += step) {
        const std::int64_t at = detail::offset_of(&map->map, x);
        FUZZ_CHECK(at >= span.low && at < span.high);
    }
    return 0;
}
