// SPDX-License-Identifier: BSD-3-Clause
//
// The end of the setup where a process that has come to MPI_Finalize dies there, on a node of which the system says
// nothing.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "host/config.h"
#include "host/wireup/wireup.h"

#include "tests/catch.hpp"
#include "tests/fuzz/fake_mpi.h"

using namespace mpix;

namespace {

// What stop_setup() says.
std::string said_by_stop_setup() {
    std::FILE *const file = std::tmpfile();
    REQUIRE(file != nullptr);
    std::fflush(stderr);
    const int before = dup(STDERR_FILENO);
    REQUIRE(dup2(fileno(file), STDERR_FILENO) >= 0);
    stop_setup();
    std::fflush(stderr);
    REQUIRE(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    std::rewind(file);
    char text[4096] = "";
    const std::size_t n = std::fread(text, 1, sizeof text - 1, file);
    std::fclose(file);
    return {text, n};
}

}  // namespace

TEST_CASE("MPI_Finalize waits for what others have to take, by the stall deadline, and says so") {
    config().stall_seconds = 0.05;
    fake_mpi::barriers_begun = 0;
    fake_mpi::barriers_that_end = 1;  // all have called it
    start_setup({});
    const std::string said = said_by_stop_setup();
    CAPTURE(said);
    CHECK(said.find("STALL in MPI_Finalize: after ") != std::string::npos);
    CHECK(said.find("not all processes have taken what was sent to them; it does not wait for them any longer") !=
          std::string::npos);
    CHECK(fake_mpi::barriers_begun == 2);
    CHECK_FALSE(setup_running());
}
