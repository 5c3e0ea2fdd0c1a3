// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_files/checkpoint_header.h"

#include <mpi.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "host/field/reduction.h"
#include "host/format.h"

namespace mpix::halo {
namespace {

constexpr std::string_view magic = "mpixhalo";
constexpr std::uint32_t byte_order = 0x01020304, version = 1;
// Of the header's length, and of where each field's data begin.
constexpr std::int64_t alignment = 64;
constexpr std::int64_t most_name_bytes = 255;
constexpr std::int64_t most_file_bytes = std::int64_t{1} << 62;
constexpr std::int64_t preamble = preamble_bytes, fixed_bytes = preamble + 5 * 8, checksum_bytes = 8;

// The numbers in files are those of value_type.
constexpr std::int64_t types = 12;
static_assert(static_cast<int>(value_type::bytes) == 0 && static_cast<int>(value_type::long_double) == types - 1);

std::int64_t aligned(std::int64_t bytes, std::int64_t to) { return (bytes + to - 1) / to * to; }

// a * b, or more than `most` if that is more. Both are at least 0.
std::int64_t bounded(std::int64_t a, std::int64_t b, std::int64_t most) {
    return b != 0 && a > most / b ? most + 1 : a * b;
}

class writer {
public:
    explicit writer(std::size_t bytes) : bytes_(bytes) {}
    template <class Number>
    void number(Number n) {
        text({reinterpret_cast<const char *>(&n), sizeof n});
    }
    void text(std::string_view text) {
        std::memcpy(bytes_.data() + at_, text.data(), text.size());
        at_ += text.size();
    }
    void align() { at_ = static_cast<std::size_t>(aligned(static_cast<std::int64_t>(at_), 8)); }
    std::vector<std::byte> &bytes() { return bytes_; }

private:
    std::vector<std::byte> bytes_;
    std::size_t at_ = 0;
};

// Never reads beyond the end; then the numbers are 0, and ok() is false.
class reader {
public:
    explicit reader(std::span<const std::byte> bytes) : left_(bytes) {}
    template <class Number>
    Number number() {
        Number n = 0;
        if (const auto from = take(sizeof n); !from.empty()) std::memcpy(&n, from.data(), sizeof n);
        return n;
    }
    std::string_view text(std::int64_t bytes) {
        const auto from = take(static_cast<std::size_t>(bytes));
        return {reinterpret_cast<const char *>(from.data()), from.size()};
    }
    bool only_zeros_left() const {
        return std::all_of(left_.begin(), left_.end(), [](std::byte b) { return b == std::byte{0}; });
    }
    bool ok() const { return ok_; }

private:
    std::span<const std::byte> take(std::size_t bytes) {
        ok_ = ok_ && bytes <= left_.size();
        if (!ok_) return {};
        const auto taken = left_.first(bytes);
        left_ = left_.subspan(bytes);
        return taken;
    }
    std::span<const std::byte> left_;
    bool ok_ = true;
};

status damaged(std::string sentence) { return failure(MPI_ERR_IO, std::move(sentence)); }

// "extent[1]" and so on are at least 1, and there are not too many cells.
status take_extent(reader &from, const std::string &name, index3 &extent) {
    std::int64_t cells = 1;
    for (std::size_t a = 0; a < 3; ++a) {
        extent[a] = from.number<std::int64_t>();
        if (from.ok() && extent[a] < 1) return damaged(format("{}[{}] is {}; it is at least 1", name, a, extent[a]));
        cells = bounded(cells, std::max<std::int64_t>(extent[a], 1), most_file_bytes);
    }
    return cells <= most_file_bytes ? status{} : damaged(format("{}: more than 2^62 cells", name));
}

status take_field(reader &from, const std::string &name, checkpoint_field &f) {
    if (status s = take_extent(from, name + ".extent", f.extent); !s.ok()) return s;
    f.value_bytes = from.number<std::int64_t>();
    f.components = from.number<std::int64_t>();
    const auto type = from.number<std::int64_t>();
    const auto name_bytes = from.number<std::int64_t>();
    if (!from.ok()) return damaged(format("{} is cut short by the end of the header", name));
    if (f.value_bytes < 1) return damaged(format("{}.value_bytes is {}; it is at least 1", name, f.value_bytes));
    if (f.components < 1) return damaged(format("{}.components is {}; it is at least 1", name, f.components));
    const std::int64_t cell = bounded(f.value_bytes, f.components, most_cell_bytes);
    if (cell > most_cell_bytes) return damaged(format("{}: the values of a cell take more than 2^30 bytes", name));
    if (bounded(f.extent[0] * f.extent[1] * f.extent[2], cell, most_file_bytes) > most_file_bytes)
        return damaged(format("{}: more than 2^62 bytes", name));
    if (type < 0 || type >= types) return damaged(format("{}.type is {}; it is 0 to {}", name, type, types - 1));
    f.type = static_cast<value_type>(type);
    if (f.type != value_type::bytes && size_of(f.type) != static_cast<std::size_t>(f.value_bytes))
        return damaged(format("{}.value_bytes is {}; values of its type, {}, have {}", name, f.value_bytes,
                              name_of(f.type), size_of(f.type)));
    if (name_bytes < 1 || name_bytes > most_name_bytes)
        return damaged(format("{}.name_bytes is {}; it is 1 to {}", name, name_bytes, most_name_bytes));
    f.name = from.text(name_bytes);
    const std::string_view padding = from.text(aligned(name_bytes, 8) - name_bytes);
    if (!from.ok()) return damaged(format("{}.name is cut short by the end of the header", name));
    if (const std::string why = why_no_name(f.name); !why.empty()) return damaged(format("{}.name {}", name, why));
    if (std::any_of(padding.begin(), padding.end(), [](char c) { return c != 0; }))
        return damaged(format("{}.name is not followed by zeros", name));
    return {};
}

}  // namespace

std::int64_t checkpoint_header::bytes() const {
    std::int64_t bytes = fixed_bytes + checksum_bytes;
    for (const checkpoint_field &f : fields) bytes += 7 * 8 + aligned(static_cast<std::int64_t>(f.name.size()), 8);
    return aligned(bytes, alignment);
}

std::int64_t checkpoint_header::place_of(std::size_t field) const {
    std::int64_t place = bytes();
    for (std::size_t f = 0; f < field; ++f) {
        place += fields[f].bytes();
        if (f + 1 < fields.size()) place = aligned(place, alignment);
    }
    return place;
}

std::string why_no_name(std::string_view name) {
    if (name.empty()) return "is empty";
    if (name.size() > most_name_bytes) return format("has {} characters; at most {}", name.size(), most_name_bytes);
    const bool printable = std::all_of(name.begin(), name.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
    return printable ? "" : "has a character that is not printable ASCII";
}

// FNV-1a.
std::uint64_t checksum_of(std::span<const std::byte> bytes) {
    std::uint64_t sum = 14695981039346656037U;
    for (const std::byte b : bytes.first(bytes.size() - checksum_bytes))
        sum = (sum ^ static_cast<std::uint64_t>(b)) * 1099511628211U;
    return sum;
}

std::vector<std::byte> to_bytes(const checkpoint_header &header) {
    writer to(static_cast<std::size_t>(header.bytes()));
    to.text(magic);
    to.number(byte_order);
    to.number(version);
    to.number(header.bytes());
    to.number(header.step);
    for (const std::int64_t cells : header.extent.along) to.number(cells);
    to.number(static_cast<std::int64_t>(header.fields.size()));
    for (const checkpoint_field &f : header.fields) {
        for (const std::int64_t cells : f.extent.along) to.number(cells);
        to.number(f.value_bytes);
        to.number(f.components);
        to.number(static_cast<std::int64_t>(f.type));
        to.number(static_cast<std::int64_t>(f.name.size()));
        to.text(f.name);
        to.align();
    }
    std::vector<std::byte> &bytes = to.bytes();
    const std::uint64_t sum = checksum_of(bytes);
    std::memcpy(bytes.data() + bytes.size() - checksum_bytes, &sum, sizeof sum);
    return std::move(bytes);
}

status header_bytes_of(std::span<const std::byte> first, std::int64_t &bytes) {
    reader from(first);
    const std::string_view found = from.text(static_cast<std::int64_t>(magic.size()));
    if (found != magic) return damaged("it is no checkpoint: it does not begin with mpixhalo");
    const auto order = from.number<std::uint32_t>();
    const auto made_by = from.number<std::uint32_t>();
    bytes = from.number<std::int64_t>();
    if (!from.ok()) return damaged(format("it has {} bytes; that is no whole header", first.size()));
    if (order == 0x04030201) return damaged("byte_order: it is of a machine of the other byte order");
    if (order != byte_order) return damaged(format("byte_order is {:#x}; it is {:#x}", order, byte_order));
    if (made_by != version) return damaged(format("version is {}; this library reads version {}", made_by, version));
    if (bytes < fixed_bytes + checksum_bytes || bytes > most_header_bytes || bytes % alignment != 0)
        return damaged(
            format("header_bytes is {}; it is a multiple of {}, up to {}", bytes, alignment, most_header_bytes));
    return {};
}

status parse(std::span<const std::byte> bytes, checkpoint_header &made) {
    std::int64_t length = 0;
    if (status s = header_bytes_of(bytes.first(std::min(bytes.size(), preamble_bytes)), length); !s.ok()) return s;
    if (static_cast<std::size_t>(length) != bytes.size())
        return damaged(format("header_bytes is {}, and there are {}", length, bytes.size()));
    std::uint64_t sum = 0;
    std::memcpy(&sum, bytes.data() + bytes.size() - checksum_bytes, sizeof sum);
    if (sum != checksum_of(bytes)) return damaged("checksum is wrong: the header is damaged");

    reader from(bytes.subspan(preamble_bytes, bytes.size() - preamble_bytes - checksum_bytes));
    made = {};
    made.step = from.number<std::int64_t>();
    if (status s = take_extent(from, "extent", made.extent); !s.ok()) return s;
    const auto count = from.number<std::int64_t>();
    if (count < 0 || count > most_fields)
        return damaged(format("field_count is {}; it is 0 to {}", count, most_fields));
    std::int64_t all = length;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::string name = format("fields[{}]", i);
        checkpoint_field &f = made.fields.emplace_back();
        if (status s = take_field(from, name, f); !s.ok()) return s;
        for (std::int64_t j = 0; j < i; ++j)
            if (made.fields[static_cast<std::size_t>(j)].name == f.name)
                return damaged(format("{}.name is {}, which is that of fields[{}]", name, f.name, j));
        if (f.bytes() > most_file_bytes - alignment - all)
            return damaged(format("{}: more than 2^62 bytes with those before", name));
        all = aligned(all + f.bytes(), alignment);
    }
    if (made.bytes() != length || !from.only_zeros_left())
        return damaged(format("header_bytes is {}; the fields take {}, and zeros follow", length, made.bytes()));
    return {};
}

}  // namespace mpix::halo
