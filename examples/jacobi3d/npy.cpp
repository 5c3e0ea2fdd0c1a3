// SPDX-License-Identifier: BSD-3-Clause
#include "npy.hpp"

#include <bit>
#include <limits>
#include <stdexcept>
#include <string>

namespace jacobi3d {

namespace {

[[noreturn]] void fail(const std::string &what) { throw std::runtime_error(what); }

// A piece of the file for a message: printable and short.
std::string quoted(std::string_view text) {
    std::string result = "'";
    for (const char c : text.substr(0, 40)) result += c >= ' ' && c <= '~' ? c : '?';
    return result + (text.size() > 40 ? "...'" : "'");
}

// The header's text is a Python dictionary literal with the keys descr, fortran_order and shape.
class literal_reader {
public:
    explicit literal_reader(std::string_view text) : rest_(text) {}

    // Skips blanks; takes `c` if it comes next.
    bool take(char c) {
        skip_blanks();
        if (rest_.empty() || rest_.front() != c) return false;
        rest_.remove_prefix(1);
        return true;
    }

    void expect(char c, const char *where) {
        if (take(c)) return;
        fail(std::string("malformed header: expected '") + c + "' " + where + ", found " +
             (rest_.empty() ? "its end" : quoted(rest_)));
    }

    std::string_view string(const char *what) {
        skip_blanks();
        if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"'))
            fail(std::string("malformed header: ") + what + " is not a string");
        const char quote = rest_.front();
        const std::size_t end = rest_.find(quote, 1);
        if (end == rest_.npos) fail(std::string("malformed header: ") + what + " has no closing quote");
        const std::string_view result = rest_.substr(1, end - 1);
        rest_.remove_prefix(end + 1);
        return result;
    }

    bool boolean(const char *what) {
        skip_blanks();
        for (const std::string_view word : {"True", "False"})
            if (rest_.substr(0, word.size()) == word) {
                rest_.remove_prefix(word.size());
                return word == "True";
            }
        fail(std::string("malformed header: ") + what + " is neither True nor False");
    }

    std::uint64_t integer(const char *what) {
        skip_blanks();
        std::uint64_t value = 0;
        std::size_t digits = 0;
        for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits) {
            const unsigned digit = static_cast<unsigned>(rest_[digits] - '0');
            if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / 10)
                fail(std::string("malformed header: ") + what + " has an entry beyond 64 bits");
            value = value * 10 + digit;
        }
        if (digits == 0) fail(std::string("malformed header: ") + what + " has an entry that is no integer");
        rest_.remove_prefix(digits);
        if (!rest_.empty() && rest_.front() == 'L') rest_.remove_prefix(1);  // as Python 2 wrote a long
        return value;
    }

    bool at_end() {
        skip_blanks();
        return rest_.empty();
    }

private:
    void skip_blanks() {
        const std::size_t n = rest_.find_first_not_of(" \t\r\n");
        rest_.remove_prefix(n == rest_.npos ? rest_.size() : n);
    }

    std::string_view rest_;
};

std::uint64_t little_endian(std::string_view bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
}

void parse_descr(std::string_view descr, npy_header &header) {
    const bool known = descr.size() == 3 && std::string_view("<>=").find(descr[0]) != descr.npos && descr[1] == 'f' &&
                       (descr[2] == '4' || descr[2] == '8');
    if (!known) fail("element type " + quoted(descr) + "; only f4 and f8 are read");
    header.element_size = descr[2] - '0';
    header.big_endian = descr[0] == '>' || (descr[0] == '=' && std::endian::native == std::endian::big);
}

std::vector<std::uint64_t> parse_shape(literal_reader &reader) {
    std::vector<std::uint64_t> shape;
    reader.expect('(', "before the shape");
    while (!reader.take(')')) {
        if (shape.size() == 64) fail("malformed header: the shape has more than 64 axes");
        shape.push_back(reader.integer("the shape"));
        if (!reader.take(',')) {
            reader.expect(')', "after the shape");
            break;
        }
    }
    return shape;
}

}  // namespace

npy_header parse_npy_header(std::string_view start) {
    const std::string_view magic("\x93NUMPY", 6);
    if (start.substr(0, magic.size()) != magic) fail("not a .npy file (it does not begin with \\x93NUMPY)");
    if (start.size() < 8) fail("cut short within the header");
    const int version = static_cast<unsigned char>(start[6]);
    if (version < 1 || version > 3) fail("format version " + std::to_string(version) + "; 1 to 3 are known");

    const std::size_t length_bytes = version == 1 ? 2 : 4;
    const std::size_t before_text = 8 + length_bytes;
    if (start.size() < before_text) fail("cut short within the header");
    const std::uint64_t length = little_endian(start.substr(8, length_bytes));
    if (before_text + length > npy_max_header)
        fail("a header of " + std::to_string(length) + " bytes, which no plain array has");
    if (start.size() < before_text + length) fail("cut short within the header");

    npy_header header;
    header.data_offset = before_text + length;
    literal_reader reader(start.substr(before_text, length));
    bool have_descr = false, have_order = false, have_shape = false;
    reader.expect('{', "at the beginning");
    while (!reader.take('}')) {
        const std::string_view key = reader.string("a key");
        reader.expect(':', "after a key");
        bool *have = key == "descr"           ? &have_descr
                     : key == "fortran_order" ? &have_order
                     : key == "shape"         ? &have_shape
                                              : nullptr;
        if (!have) fail("malformed header: unknown key " + quoted(key));
        if (*have) fail("malformed header: the key " + quoted(key) + " comes twice");
        *have = true;
        if (have == &have_descr) {
            if (reader.take('[')) fail("a structured element type; only f4 and f8 are read");
            parse_descr(reader.string("descr"), header);
        } else if (have == &have_order) {
            header.fortran_order = reader.boolean("fortran_order");
        } else {
            header.shape = parse_shape(reader);
        }
        if (!reader.take(',')) {
            reader.expect('}', "at the end");
            break;
        }
    }
    if (!reader.at_end()) fail("malformed header: something follows the dictionary");
    if (!have_descr) fail("malformed header: no key 'descr'");
    if (!have_order) fail("malformed header: no key 'fortran_order'");
    if (!have_shape) fail("malformed header: no key 'shape'");
    return header;
}

}  // namespace jacobi3d
