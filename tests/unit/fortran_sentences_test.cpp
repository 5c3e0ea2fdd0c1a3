// SPDX-License-Identifier: BSD-3-Clause
//
// The sentences of errors as Fortran programs get them.
#include "host/halo_fortran/sentences.h"

#include "tests/catch.hpp"

using mpix::halo::in_fortran;

TEST_CASE("positions are counted from 1, and components follow a percent sign") {
    CHECK(in_fortran("fields[0].layout.below[2] is 0; the radius needs 1 cells there") ==
          "fields(1)%layout%below(3) is 0; the radius needs 1 cells there");
    CHECK(in_fortran("fields[1].allocations[0].data is null") == "fields(2)%allocations(1)%data is null");
    CHECK(in_fortran("rank 3: fields[10]: values have 4 bytes here, and 8 bytes on rank 0; all ranks give the same") ==
          "rank 3: fields(11): values have 4 bytes here, and 8 bytes on rank 0; all ranks give the same");
    CHECK(in_fortran("from.type is bytes; a picture needs numbers") == "from%type is bytes; a picture needs numbers");
    CHECK(in_fortran("field is -1; there are 2") == "field is 0; there are 2");
    CHECK(in_fortran("i is 1; this rank has 1 boxes") == "i is 2; this rank has 1 boxes");
    CHECK(in_fortran("field 9 is not ready") == "field 10 is not ready");
    CHECK(in_fortran("the fields[0].radius in direction +x is 1 here, and 2 on rank 0") ==
          "the fields(1)%radius in direction +x is 1 here, and 2 on rank 0");
}

TEST_CASE("names of files stay as they are, and so do numbers that are no position") {
    for (const char *sentence :
         {"path is out[3].vtk; it ends in .pvti", "path is out[99999999999999999999].vtk; it ends in .pvti",
          "fields[99999999999999999999] is none"})
        CHECK(in_fortran(sentence) == sentence);
}

TEST_CASE("members of structures that Fortran does not have are arguments") {
    CHECK(in_fortran("options.periodic[2]: the domain has 2 axes") == "periodic(3): the domain has 2 axes");
    CHECK(in_fortran("options.links.within_node[3] is -1") == "within_node(4) is -1");
    CHECK(in_fortran("options.links: nodes have different numbers of ranks; leave it empty") ==
          "within_node: nodes have different numbers of ranks; leave it empty");
    CHECK(in_fortran("options.links.network is -1; it is at least 0") == "network is -1; it is at least 0");
    CHECK(in_fortran("shown.axis is 3; it is 0 to 2") == "axis is 4; it is 1 to 3");
    CHECK(in_fortran("shown.at is -1; it is 0 to 8") == "at is 0; it is 1 to 9");
    CHECK(in_fortran("shown.low is 2, and shown.high is 1; the first is less, or both are 0") ==
          "low is 2, and high is 1; the first is less, or both are 0");
    CHECK(in_fortran("shown.component is 1 here, and 0 on rank 0; all ranks give the same") ==
          "component is 2 here, and 1 on rank 0; all ranks give the same");
}

TEST_CASE("cells are counted from 1, and the last one of a box is in it") {
    CHECK(in_fortran("[16, 0, -1] is not in the domain") == "(17, 1, 0) is not in the domain");
    CHECK(in_fortran("boxes[0] and boxes[3] overlap, in [0, 4, 0] to [2, 8, 1]") ==
          "boxes(1) and boxes(4) overlap, in (1:2, 5:8, 1:1)");
    CHECK(in_fortran("options.boxes[1].lo is 4, 0, 0 here, and 5, 0, 0 on rank 0; all ranks give the same") ==
          "boxes(2)%lo is 5, 1, 1 here, and 6, 1, 1 on rank 0; all ranks give the same");
    CHECK(in_fortran("options.boxes[1].hi is 4, 1, 1 here, and 5, 1, 1 on rank 0; all ranks give the same") ==
          "boxes(2)%hi is 4, 1, 1 here, and 5, 1, 1 on rank 0; all ranks give the same");
    CHECK(in_fortran("options.boxes[0] is [3, 0, 0] to [2, 1, 1]: hi is below lo; an empty box has hi equal to lo") ==
          "boxes(1) is (4:2, 1:1, 1:1): hi is below lo - 1; an empty box has hi equal to lo - 1");
    CHECK(in_fortran("direction is 4 (-z); the domain has 2 axes") == "direction is (0, 0, -1); the domain has 2 axes");
}

TEST_CASE("all else stays as it is") {
    for (const char *sentence :
         {"path is picture.vti; it ends in .pvti", "/tmp/a[3].b/fields[0].x: No such file or directory",
          "low is 2.5, and high is 1e-05", "transfer is 4; it is 0 (packed), 1 (datatype)",
          "extent: more than 2^60 cells", "no completion after 0.2 s: rank 1 [of 2", "", "[", "a.", "i", "field",
          "fields[", "fields[x]", "direction is"})
        CHECK(in_fortran(sentence) == sentence);
}
