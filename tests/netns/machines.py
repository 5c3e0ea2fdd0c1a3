# SPDX-License-Identifier: BSD-3-Clause
"""The hosts that scripts/test-rdma --machines 2 makes, from within the first of them: what run_on_hosts.py does with hosts.

Which machines mpirun finds, and how, is in the environment already."""

import os
import subprocess

# MPI's own messages, and what brings the network down in a fault, are TCP's: Soft-RoCE is for mpix.
ENVIRONMENT = {
    "MPIX_TRANSPORTS": "shm,verbs", "MPIX_STALL_SECONDS": "120", "UCX_TLS": "self,tcp",
    "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader,tcp",
}


class Machines:
    def __init__(self):
        self.agent = os.environ.get("TEST_RDMA_AGENT")
        self.started = set()
        self.link = os.environ.get("TEST_RDMA_LINK")
        self.is_down = False

    def __enter__(self):
        if self.agent is None:
            raise OSError("scripts/test-rdma --machines 2 has them")
        return self

    def __exit__(self, *_):
        for i in (0, 1):
            for program in self.started | {"/usr/bin/orted"}:
                self.kill(i, program)
        if self.is_down:
            self.run(0, f"'{self.link}' on")

    def run(self, i, command):
        way = ["bash", "-c", command] if i == 0 else [self.agent, f"10.77.0.{i + 1}", command]
        subprocess.run(way, check=True, timeout=60)

    def kill(self, i, program):
        self.run(i, f"for p in /proc/[0-9]*; do [ ! $p/exe -ef '{program}' ] || kill -9 ${{p#/proc/}}; done")

    def take_down(self, i):
        assert i == 1
        self.is_down = True
        self.run(0, f"'{self.link}' off")

    def mpirun(self, mpirun, library, ranks, environment, recovers, command):
        assert library == "openmpi"
        self.started.add(command[0])
        options = ["--mca", "orte_enable_recovery", "1"] if recovers else []
        added = dict(variable.split("=", 1) for variable in environment)
        return subprocess.Popen([mpirun, *options, "-n", str(ranks), *command], env=os.environ | ENVIRONMENT | added,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
