"""The benchmarks that a model is fitted to, and those that it is judged on, for kernel code; the roles never change."""

from __future__ import annotations

from collections.abc import Mapping

from kdyno.measure.cycles.evaluate import Role

ROLES: Mapping[str, Mapping[str, Role]] = {
    "syscalls": {
        "lat_select.files": "fit",
        "lat_select.tcp": "held-out",
        "lat_sig.deliver": "fit",
        "lat_sig.install": "held-out",
        "lat_syscall.fstat": "fit",
        "lat_syscall.null": "held-out",
        "lat_syscall.open_close": "fit",
        "lat_syscall.read": "held-out",
        "lat_syscall.stat": "fit",
        "lat_syscall.write": "held-out",
    },
    "processes": {
        "lat_proc.exec": "fit",
        "lat_proc.fork": "held-out",
    },
    "switches": {
        "bw_pipe": "fit",
        "bw_unix": "held-out",
        "lat_ctx": "fit",
        "lat_pipe": "held-out",
        "lat_unix": "fit",
    },
    "sockets": {
        "bw_tcp": "held-out",
        "lat_connect": "fit",
        "lat_rpc.tcp": "held-out",
        "lat_rpc.udp": "fit",
        "lat_tcp": "held-out",
        "lat_udp": "fit",
    },
    "files": {
        "bw_file_rd.io_only": "held-out",
        "bw_file_rd.open2close": "fit",
        "lat_fs.create_0k": "held-out",
        "lat_fs.create_10k": "fit",
        "lat_fs.delete_0k": "held-out",
        "lat_fs.delete_10k": "fit",
    },
    "faults": {
        "bw_mmap_rd.open2close": "held-out",
        "lat_mmap": "fit",
        "lat_pagefault": "held-out",
    },
}
"""Benchmarks by kind, then by name. Names are in alphabetical order, and every other one is held out, counted through
all kinds: the rule was fixed before any of them was timed. A benchmark is never moved to improve a figure.
"""

UNLIKE: Mapping[str, str] = {
    "lat_proc.shell": "/bin/sh is busybox in the guest, and another program here",
}
"""Benchmarks that differ between the host and a guest, and why."""

UNLIKE_IN_TIME: Mapping[str, str] = {
    "lat_connect": "in the wall lane its client resets connections, which would otherwise use up the ports",
}
"""Benchmarks that the lanes measure differently. They keep their role, so that those of others stay."""

UNLIKE_ON_A_GUEST: Mapping[str, str] = {
    "lat_proc.exec": "this host is itself a guest: a C library's start executes CPUID, which exits to the hypervisor",
}
"""Benchmarks that can't be compared on hosts that are guests. On one such host a CPUID took 8 us, and executing a
program that does nothing 720 us with glibc, 52 us without any library.
"""

KINDS: Mapping[str, str] = {name: kind for kind, roles in ROLES.items() for name in roles}
"""The role of each benchmark."""


def find_role(benchmark: str) -> Role:
    """Return the role of a benchmark. Raise KeyError if it isn't in the table."""
    return ROLES[KINDS[benchmark]][benchmark]
