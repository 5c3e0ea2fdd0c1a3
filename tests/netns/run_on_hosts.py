#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program by Open MPI's or MPICH's mpirun on hosts that are network namespaces of this machine; with --machines, on
the two machines of scripts/test-rdma.

Each host has a network, a host name, System V IPC and a /dev/shm of its own. A bridge joins them, or, to make the network
slow, this program: the kernel's netem is not everywhere. Needs root; exits 77 where namespaces cannot be had. After --,
the program and its arguments.

A fault is brought about once the program has printed "running" on every rank:
  none
  slow        not a fault: a network that delays frames by 1 to 3 ms, reorders and loses some, from the start
  link-down   the second host's link goes down
  kill        the program's processes on the second host are killed

--expect REGEX must match the output (may be given several times); without a fault, or when slow, the program must succeed
as well. Nothing may last longer than --timeout.
"""

import argparse
import fcntl
import heapq
import os
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

from machines import Machines

NETWORK = "10.77.0"


def call(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class SlowNetwork(threading.Thread):
    """Carries frames between the hosts' network devices, some later than others, some never."""

    LOSS = 0.01

    def __init__(self):
        super().__init__(daemon=True)
        self.devices = []
        self.random = random.Random(1)

    def add(self, name):
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        tap, no_header, set_interface = 0x0002, 0x1000, 0x400454CA
        fcntl.ioctl(device, set_interface, struct.pack("16sH22x", name.encode(), tap | no_header))
        self.devices.append(device)

    def run(self):
        under_way, number = [], 0
        while True:
            wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else 1.0
            for device in select.select(self.devices, [], [], wait)[0]:
                try:
                    frame = os.read(device, 65536)
                except OSError:
                    continue
                if self.random.random() < self.LOSS:
                    continue
                number += 1
                heapq.heappush(under_way, (time.monotonic() + self.random.uniform(0.001, 0.003), number, device, frame))
            while under_way and under_way[0][0] <= time.monotonic():
                _, _, source, frame = heapq.heappop(under_way)
                for device in self.devices:
                    if device != source:
                        try:
                            os.write(device, frame)  # whoever it is not for throws it away
                        except OSError:
                            pass


class Hosts:
    """Made on entry, gone on exit, whatever happens between."""

    def __init__(self, number, slow):
        self.number = number
        self.slow = SlowNetwork() if slow else None
        self.name = f"mpix{os.getpid()}"
        self.holders = []

    def namespace(self, i):
        return f"{self.name}n{i}"

    def address(self, i):
        return f"{NETWORK}.{i + 1}"

    def link(self, i):
        return f"mx{os.getpid() % 100000}p{i}"

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def make(self):
        self.folder = tempfile.mkdtemp(prefix="mpix-hosts-")
        switch = self.name + "sw"
        call("ip", "netns", "add", switch)
        call("ip", "-n", switch, "link", "add", "br0", "type", "bridge")
        call("ip", "-n", switch, "link", "set", "br0", "up")
        for i in range(self.number):
            space, link = self.namespace(i), self.link(i)
            call("ip", "netns", "add", space)
            call("ip", "-n", space, "link", "set", "lo", "up")
            if self.slow:
                self.slow.add(link)
                call("ip", "link", "set", link, "netns", space, "name", "eth0")
            else:
                call("ip", "-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", link, "netns", switch)
                call("ip", "-n", switch, "link", "set", link, "master", "br0", "up")
            call("ip", "-n", space, "addr", "add", self.address(i) + "/24", "dev", "eth0")
            call("ip", "-n", space, "link", "set", "eth0", "up")
            # The host lives as long as this process; it says when it is ready.
            holder = subprocess.Popen(
                ["ip", "netns", "exec", space, "unshare", "--uts", "--ipc", "--mount", "bash", "-c",
                 f"hostname host{i} && mount -t tmpfs tmpfs /dev/shm && echo ready && exec sleep infinity"],
                stdout=subprocess.PIPE, text=True, start_new_session=True)
            self.holders.append(holder)
            if holder.stdout.readline() != "ready\n":
                raise OSError("a host could not be made")
        if self.slow:
            self.slow.start()
        # What either mpirun calls in place of ssh: `agent <address> <command>...`.
        self.agent = os.path.join(self.folder, "agent")
        with open(self.agent, "w", encoding="utf-8") as f:
            f.write("#!/bin/bash\nhost=$1; shift\ncase $host in\n")
            for i, holder in enumerate(self.holders):
                f.write(f"{self.address(i)}) pid={holder.pid} ;;\n")
            f.write('*) exit 1 ;;\nesac\nexec nsenter -t "$pid" -n -u -i -m bash -c "$*"\n')
        os.chmod(self.agent, 0o755)

    def __exit__(self, *_):
        for i, holder in enumerate(self.holders):
            self.kill(i)
            holder.kill()
            holder.wait()
        for space in [self.namespace(i) for i in range(self.number)] + [self.name + "sw"]:
            subprocess.run(["ip", "netns", "del", space], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def processes(self, i):
        out = subprocess.run(["ip", "netns", "pids", self.namespace(i)], check=False, capture_output=True, text=True)
        return [int(pid) for pid in out.stdout.split() if int(pid) != self.holders[i].pid]

    def kill(self, i, program=None):
        """The host's processes, or those that run the program."""
        for pid in self.processes(i):
            try:
                if program is None or os.readlink(f"/proc/{pid}/exe") == os.path.realpath(program):
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def take_down(self, i):
        call("ip", "-n", self.name + "sw", "link", "set", self.link(i), "down")

    def openmpi(self, ranks, environment, recovers):
        """Open MPI's options: rank i on host i modulo their number, through the agent, by the hosts' network only."""
        hosts = ",".join(f"{self.address(i)}:{-(-ranks // self.number)}" for i in range(self.number))
        options = ["--allow-run-as-root", "--bind-to", "none", "--map-by", "node", "--host", hosts,
                   "--mca", "plm_rsh_agent", self.agent, "--mca", "orte_keep_fqdn_hostnames", "1",
                   "--mca", "oob_tcp_if_include", NETWORK + ".0/24", "--mca", "btl_tcp_if_include", NETWORK + ".0/24"]
        if recovers:
            options += ["--mca", "orte_enable_recovery", "1"]
        for variable in environment:
            options += ["-x", variable]
        return options

    def mpich(self, _, environment, recovers):
        """The same of MPICH, whose launchers are to find each other by address: the hosts' names are in no table."""
        options = ["-launcher", "rsh", "-launcher-exec", self.agent, "-iface", "eth0", "-ppn", "1",
                   "-hosts", ",".join(self.address(i) for i in range(self.number))]
        if recovers:
            options += ["-disable-auto-cleanup"]
        for variable in environment:
            options += ["-genv", *variable.split("=", 1)]
        return options

    def mpirun(self, mpirun, library, ranks, environment, recovers, command):
        """If it recovers, a rank that ends badly does not take the others with it before they have said what they saw."""
        options = getattr(self, library)(ranks, environment, recovers)
        return subprocess.Popen(
            ["nsenter", "-t", str(self.holders[0].pid), "-n", "-u", "-i", "-m", mpirun, *options,
             "-n", str(ranks), *command],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


def watch(process, seen):
    for line in process.stdout:
        seen.append(line)


def wait_for(condition, process, deadline):
    while not condition():
        if time.monotonic() > deadline or process.poll() is not None:
            return False
        time.sleep(0.05)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--machines", action="store_true")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--library", choices=["openmpi", "mpich"], default="openmpi", help="whose mpirun that is")
    parser.add_argument("--fault", choices=["none", "slow", "link-down", "kill"], default="none")
    parser.add_argument("--expect", action="append", default=[], metavar="REGEX")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("-x", dest="environment", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    hosts = Machines() if options.machines else Hosts(options.hosts, options.fault == "slow")
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("nsenter") is None:
        print("skipped: hosts need root, iproute2 and util-linux")
        return 77
    try:
        hosts.__enter__()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"skipped: no such hosts here: {error} {getattr(error, 'stderr', b'') or ''}")
        return 77
    with_fault = options.fault in ("link-down", "kill")
    try:
        process = hosts.mpirun(options.mpirun, options.library, options.ranks, options.environment, with_fault,
                               options.command)
        seen = []
        reader = threading.Thread(target=watch, args=(process, seen), daemon=True)
        reader.start()
        deadline = time.monotonic() + options.timeout
        if with_fault:
            if not wait_for(lambda: sum(line.count("running") for line in seen) >= options.ranks, process, deadline):
                print("".join(seen))
                print("FAILED: the program did not get to run")
                return 1
            if options.fault == "kill":
                hosts.kill(1, options.command[0])
            else:
                hosts.take_down(1)
        found = lambda: all(re.search(e, "".join(seen)) for e in options.expect)
        if with_fault:  # the launcher may well wait for ever for a host that is gone
            in_time = wait_for(found, process, deadline) or found()
        else:
            in_time = wait_for(lambda: False, process, deadline) or process.poll() is not None
        status = process.poll()
        if status is None:
            os.killpg(process.pid, signal.SIGKILL)
        reader.join(5 if status is not None else 0.5)
        print("".join(seen))
        if not in_time or not found():
            print(f"FAILED: within {options.timeout} s " + ("the program did not end" if status is None and not with_fault
                                                           else f"not all of this was printed: {options.expect}"))
            return 1
        if not with_fault and status != 0:
            print(f"FAILED: mpirun gave {status}")
            return 1
        return 0
    finally:
        hosts.__exit__()


if __name__ == "__main__":
    sys.exit(main())
