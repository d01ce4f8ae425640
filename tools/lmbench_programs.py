"""LMBench's programs as the agent's counterparts: which to call how, and where in what they say the number is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kdyno.base.lanes import LaneName
from kdyno.measure.guest.agent import catalogue

HERE = "127.0.0.1"
FILES = "against-lmbench"
"""In the scratch directory: where the files are that programs want, as deep as the agent's."""
AGENT = "agent"
"""The label of what the agent said."""
MICROSECONDS = r": ([\d.]+) microseconds"
MEGABYTES = r"([\d.]+) MB/sec"
SECOND_NUMBER = r"^[\d.]+ ([\d.]+)$"
FILES_ENOUGH: dict[LaneName, int] = {"wall": 20_000, "model": 1_000_000}
"""ENOUGH for lat_fs, in microseconds: it decides how many files there are at a time, and they shall be thousands."""
SERVER_STARTS = 0.5
"""Seconds until a server that was started listens."""


class Unreadable(ValueError):
    """What a program said has no number where LMBench 3 has it."""


@dataclass(frozen=True)
class Reading:
    """One benchmark's number in what an LMBench program says."""

    benchmark: str
    pattern: str
    unit: str
    """`us`, `MB/s`, or `/s` of operations."""
    added: str = ""
    """A pattern for what the program has subtracted, and the agent doesn't: it is added again."""

    def nanoseconds(self, output: str) -> float:
        """Return the nanoseconds per operation or byte. Raise Unreadable."""
        number = self._number(self.pattern, output) + (self._number(self.added, output) if self.added else 0.0)
        return {"us": number * 1e3, "MB/s": 1e3 / number, "/s": 1e9 / number}[self.unit]

    def _number(self, pattern: str, output: str) -> float:
        match = re.search(pattern, output, re.MULTILINE)
        if match is None or not float(match[1]):
            raise Unreadable(f"no number for {self.benchmark} in what it said: {output.strip()[-200:] or 'nothing'}")
        return float(match[1])


@dataclass(frozen=True)
class Command:
    """An LMBench program, and which benchmarks it has numbers of."""

    words: tuple[str, ...]
    readings: tuple[Reading, ...]
    server: bool = False
    """Whether its server must run: the same program with -s, ended by -S."""
    enough: int | None = None
    """ENOUGH where it isn't the usual."""

    @property
    def file_kb(self) -> int:
        """Return the size of the file that it needs, which is the file's name; 0 if it wants none."""
        match = re.search(rf"/{FILES}/(\d+)k", str(self))
        return int(match[1]) if match else 0

    @property
    def program(self) -> str:
        return self.words[0]

    @property
    def test(self) -> str:
        """Return the agent's test that has these benchmarks."""
        return self.readings[0].benchmark.partition(".")[0]

    def __str__(self) -> str:
        return " ".join(self.words)


def command(
    benchmark: str,
    *words: str,
    pattern: str = MICROSECONDS,
    unit: str = "us",
    server: bool = False,
) -> Command:
    """Return a program that has a number of one benchmark."""
    return Command(words, (Reading(benchmark, pattern, unit),), server)


def commands(lane: LaneName, scratch: str, many: str) -> tuple[Command, ...]:
    """Return every benchmark's counterpart, in the agent's order, with the sizes of this lane.

    `scratch` is a directory, `many` says how many measurements each program makes.
    """
    sizes = {test.name: {param.name: param.defaults[lane] for param in test.params} for test in catalogue().tests}

    def kilobytes(test: str) -> str:
        return f"{sizes[test]['size_kb']}k"

    def path(size: str) -> str:
        return f"{scratch}/{FILES}/{size}"

    n = ("-N", many)
    fds, processes = str(sizes["lat_select"]["fds"]), str(sizes["lat_ctx"]["processes"])
    file_kb, mapped_kb, map_kb = (kilobytes(test) for test in ("bw_file_rd", "bw_mmap_rd", "lat_mmap"))
    created, deleted = r"^{}k\t\d+\t(\d+)\t\d+", r"^{}k\t\d+\t\d+\t(\d+)"
    return (
        command(
            "bw_file_rd.io_only",
            "bw_file_rd",
            *n,
            file_kb,
            "io_only",
            path(file_kb),
            pattern=SECOND_NUMBER,
            unit="MB/s",
        ),
        command(
            "bw_file_rd.open2close",
            "bw_file_rd",
            *n,
            file_kb,
            "open2close",
            path(file_kb),
            pattern=SECOND_NUMBER,
            unit="MB/s",
        ),
        command(
            "bw_mmap_rd.open2close",
            "bw_mmap_rd",
            *n,
            mapped_kb,
            "open2close",
            path(mapped_kb),
            pattern=SECOND_NUMBER,
            unit="MB/s",
        ),
        command("bw_pipe", "bw_pipe", *n, pattern=MEGABYTES, unit="MB/s"),
        command(
            "bw_tcp",
            "bw_tcp",
            *n,
            "-W",
            "1000000",
            "-m",
            kilobytes("bw_tcp"),
            HERE,
            pattern=MEGABYTES,
            unit="MB/s",
            server=True,
        ),
        command("bw_unix", "bw_unix", *n, pattern=MEGABYTES, unit="MB/s"),
        command("lat_connect", "lat_connect", *n, HERE, server=True),
        Command(
            ("lat_ctx", *n, "-s", "0", processes),
            (Reading("lat_ctx", rf"^{processes} ([\d.]+)", "us", added=r"ovr=([\d.]+)"),),
        ),
        Command(
            ("lat_fs", *n, scratch),
            tuple(
                Reading(f"lat_fs.{operation}_{size}k", pattern.format(size), "/s")
                for size in (0, 10)
                for operation, pattern in (("create", created), ("delete", deleted))
            ),
            enough=FILES_ENOUGH[lane],
        ),
        command("lat_mmap", "lat_mmap", *n, map_kb, path(map_kb), pattern=SECOND_NUMBER),
        command("lat_pagefault", "lat_pagefault", *n, path(kilobytes("lat_pagefault"))),
        command("lat_pipe", "lat_pipe", *n),
        *(command(f"lat_proc.{way}", "lat_proc", *n, way) for way in ("fork", "exec", "shell")),
        *(
            command(f"lat_rpc.{protocol}", "lat_rpc", *n, "-p", protocol, HERE, server=True)
            for protocol in ("udp", "tcp")
        ),
        *(
            command(f"lat_select.{ours}", "lat_select", *n, "-n", fds, theirs)
            for ours, theirs in (("files", "file"), ("tcp", "tcp"))
        ),
        *(
            command(f"lat_sig.{ours}", "lat_sig", *n, theirs)
            for ours, theirs in (("install", "install"), ("deliver", "catch"))
        ),
        *(
            command(f"lat_syscall.{ours}", "lat_syscall", *n, *theirs)
            for ours, *theirs in (
                ("null", "null"),
                ("read", "read"),
                ("write", "write"),
                ("stat", "stat", path("4k")),
                ("fstat", "fstat", path("4k")),
                ("open_close", "open", path("4k")),
            )
        ),
        command("lat_tcp", "lat_tcp", *n, HERE, server=True),
        command("lat_udp", "lat_udp", *n, HERE, server=True),
        command("lat_unix", "lat_unix", *n),
    )


@dataclass(frozen=True)
class Step:
    """One program to run; what it says is kept under its label."""

    words: tuple[str, ...]
    label: str = ""
    enough: int = 0
    pause: float = 0.0
    """Seconds to wait afterwards."""


def steps(chosen: Sequence[Command], turns: int, enough: int, agent: tuple[str, ...]) -> Iterator[Step]:
    """Return the steps test by test: in each turn the agent, then LMBench. `agent` is its command up to the test's
    name.
    """
    by_test: dict[str, list[Command]] = {}
    for program in chosen:
        by_test.setdefault(program.test, []).append(program)
    for test, programs in by_test.items():
        served = programs[0] if programs[0].server else None
        if served:
            yield Step((served.program, "-s"), pause=SERVER_STARTS)
        for _ in range(turns):
            yield Step((*agent, test), AGENT)
            for program in programs:
                yield Step(program.words, str(program), program.enough or enough)
        if served:
            yield Step((served.program, "-S", HERE))
