"""What `kdyno` can do, by what one wants: the verbs with their summaries, and the page that lists them."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator

GROUPS = {
    "Measure: which kernel is better, and by how much": {
        "ab": "compare kernels in one line: did my patch help, what is this option worth",
        "init": "write an experiment to start from: the demo's",
        "plan": "show what an experiment would build and boot, how long it should take, and why",
        "build": "build the kernels of an experiment",
        "run": "run an experiment: build, boot in randomised blocks, judge, report",
        "runs": "list the runs in the store",
        "show": "show one run: its parts, its boots, and the command that repeats it",
        "report": "write a run's report: terminal, HTML, JSON or CSV",
        "compare": "compare the variants of a run, or one run with another",
        "judge": "judge measurements of other tools: CSV, summaries, hyperfine, pyperf, lmbench, stress-ng, perf stat",
        "scaling": "show how throughput grows with the number of processes: Amdahl's law and the USL, fitted",
        "workload": "list, show and try workloads",
    },
    "Understand: why it is so, and how far to trust it": {
        "explain": "say why a benchmark of one variant differs from the baseline's",
        "coverage": "show which lines of a kernel's source were executed, and how often",
        "kernel": "look into kernels: what compilers did wrong, what is how large",
        "boot": "boot a kernel and run a shell or a command in it",
        "soak": "let a kernel live under all loads at once for hours, and say whether it stayed sound",
        "selftest": "measure how often kdyno is wrong here: experiments in which nothing differs",
        "validate": "compare modelled cycles of kernel code with this host's",
        "calibrate": "fit the cycle model's weights on this host",
    },
    "Tune: make a better kernel": {
        "profile": "record, look at and export profiles of a kernel",
        "tune": "find which compiler and flags for which file make the fewest modelled cycles",
        "fit-config": "find out which Kconfig symbols a load needs, and leave out the others",
        "delegation": "check and show which compiler makes which file of a kernel",
        "march": "show this CPU and what to compile for it; write the patch that adds CPU families",
    },
    "Look after this machine and what is kept": {
        "doctor": "check tools, disk, memory and KVM, and print what mends each lack",
        "store": "look after runs and files: remove what isn't needed, export and import runs",
        "blockmap": "print where a file lies on its disk, as a device-mapper table",
        "schema": "print the JSON schema of a format",
        "completion": "print the completion script for a shell",
    },
}
"""Heading -> verb -> summary."""

VERBS = {verb: summary for verbs in GROUPS.values() for verb, summary in verbs.items()}

ABOUT = "A dynamometer for Linux kernels: builds, boots, measures, judges."
START = """\
kdyno builds Linux kernels, boots each of them, measures them, and judges which is better.

    kdyno doctor               what this machine lacks, and the command that mends it
    kdyno init                 writes an experiment with two kernels, quickstart.toml
    kdyno run quickstart.toml  carries it out, and says what it found

`kdyno --help` lists all that it can do."""
"""What a bare `kdyno` says: the three things to do first."""


def overview() -> str:
    """All verbs below their headings, as wide as the terminal."""
    return "\n".join(_lines(shutil.get_terminal_size().columns - 2))


def _lines(width: int) -> Iterator[str]:
    yield from textwrap.wrap(ABOUT, width)
    column = max(map(len, VERBS)) + 4
    for heading, verbs in GROUPS.items():
        yield from ("", heading)
        for verb, summary in verbs.items():
            first, *others = textwrap.wrap(summary, max(20, width - column))
            yield f"  {verb:<{column - 2}}{first}"
            yield from (" " * column + line for line in others)
