// SPDX-License-Identifier: BSD-3-Clause
//
// `status`: what a success costs, what a failure says, and which class of MPI's it becomes.
#include "transport/status.h"

#include <mpi.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "host/report.h"
#include "tests/catch.hpp"

using namespace mpix;

TEST_CASE("a default status is success, and says nothing") {
    const status fine;
    CHECK(fine.ok());
    CHECK_FALSE(fine.out_of_memory());
    CHECK(fine.message().empty());
    CHECK(class_of(fine) == MPI_SUCCESS);
    CHECK(std::is_nothrow_default_constructible_v<status>);
    CHECK(std::is_nothrow_move_constructible_v<status>);
    CHECK(std::is_nothrow_copy_constructible_v<status>);  // a failure's text is shared
    CHECK_FALSE(std::is_convertible_v<status, bool>);
}

TEST_CASE("a failure has a message, and the class that it was made with") {
    const status bad = failure("memfd_create: refused");
    CHECK_FALSE(bad.ok());
    CHECK(bad.message() == "memfd_create: refused");
    CHECK(bad.given_class() == 0);
    CHECK(class_of(bad) == MPI_ERR_OTHER);
    CHECK(class_of(failure(MPI_ERR_TAG, "tag is -5")) == MPI_ERR_TAG);
    CHECK(class_of(bad.of_class(MPI_ERR_BUFFER)) == MPI_ERR_BUFFER);
    CHECK(bad.of_class(MPI_ERR_BUFFER).message() == bad.message());
    CHECK(class_of(bad) == MPI_ERR_OTHER);  // the original is as it was
    CHECK_FALSE(failure("").ok());          // also without a text
}

TEST_CASE("copies share the text, and outlive the original") {
    status copy;
    {
        const status bad = failure("a text that is too long for the string itself");
        copy = bad;
        CHECK(copy.message().data() == bad.message().data());
    }
    CHECK(copy.message() == "a text that is too long for the string itself");
    const status moved = std::move(copy);
    CHECK(moved.message() == "a text that is too long for the string itself");
    copy = {};
    CHECK(copy.ok());
}

TEST_CASE("context goes in front of the message, and nothing else changes") {
    const status bad = failure(MPI_ERR_TYPE, "it has too many blocks").in_context("datatype: ");
    CHECK(bad.message() == "datatype: it has too many blocks");
    CHECK(class_of(bad) == MPI_ERR_TYPE);
    CHECK(failure("x").after_printing().in_context("y: ").printed());
    CHECK_FALSE(bad.printed());
    const status fine;
    CHECK(fine.in_context("datatype: ").ok());
    CHECK(fine.of_class(MPI_ERR_TYPE).ok());
    CHECK(fine.after_printing().ok());
    CHECK_FALSE(fine.after_printing().printed());
}

TEST_CASE("memory that has run out has a class of its own") {
    CHECK(noexcept(no_memory()));
    const status none = no_memory();
    CHECK_FALSE(none.ok());
    CHECK(none.out_of_memory());
    CHECK(none.message() == "no memory");
    CHECK(class_of(none) == MPI_ERR_NO_MEM);
    CHECK(class_of(failure(std::string("mmap: ") + std::strerror(ENOMEM))) == MPI_ERR_NO_MEM);  // the system's
    CHECK(class_of(failure("no memory")) == MPI_ERR_OTHER);
    CHECK(class_of(none.of_class(MPI_ERR_BUFFER)) == MPI_ERR_BUFFER);
}

TEST_CASE("a sentence of device code is a failure, none is success") {
    CHECK(from_sentence("").ok());
    CHECK(from_sentence("cudaMalloc: out of memory").message() == "cudaMalloc: out of memory");
}

TEST_CASE("a reason is a literal, with a number or without, or a text, or that of a failure; or there is none") {
    CHECK(reason().empty());
    CHECK(reason().text().empty());
    CHECK(reason("").empty());
    CHECK(reason(std::string()).empty());
    CHECK(reason(status()).empty());
    CHECK(reason("the buffer has gaps").text() == "the buffer has gaps");
    CHECK(reason("less than {} bytes", 4096).text() == "less than 4096 bytes");
    CHECK(reason("the number is last: {}", 7).text() == "the number is last: 7");
    const reason made = std::string("{} is as it is");
    const reason copy = made;
    CHECK_FALSE(copy.empty());
    CHECK(copy.text() == "{} is as it is");
    CHECK(reason(failure("out of reach")).text() == "out of reach");
    CHECK(reason(no_memory()).text() == no_memory().message());
}
