"""The verbs of `kdyno` with their summaries, grouped by task, and the page that lists them."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator

GROUPS = {
    "Measure: which kernel is better, and by how much": {
        "ab": "compare kernels in one command: did my patch help, what is the effect of this option",
        "init": "write the demo experiment, as a starting point",
        "plan": "show what an experiment would build and boot, how long it should take, and why",
        "build": "build the kernels of an experiment",
        "run": "run an experiment: build, boot in randomised blocks, judge, report",
        "runs": "list the runs in the store",
        "show": "show one run: its parts, its boots, and the command that repeats it",
        "report": "write a run's report: terminal, HTML, JSON or CSV",
        "confirm": "measure a variant of a run again, with new boots and link orders: was its gain luck?",
        "compare": "compare the variants of a run, or one run with another",
        "history": "show at which kernels benchmarks changed, over all runs of the store; pages with their curves",
        "serve": "serve the history and the reports of runs as pages, and let people triage changes",
        "judge": "judge measurements of other tools: CSV, summaries, hyperfine, pyperf, lmbench, stress-ng, perf stat",
        "scaling": "fit Amdahl's law and the USL to throughput by the number of processes",
        "workload": "list, show and try workloads",
    },
    "Understand: why the result is so, and how reliable it is": {
        "explain": "explain why a benchmark differs between a variant and the baseline",
        "bisect": "find the commit, patch or setting that made a benchmark slower",
        "coverage": "show which lines of a kernel's source were executed, and how often",
        "kernel": "inspect kernels: faults of compilers, sizes of sections and symbols",
        "boot": "boot a kernel and run a shell or a command in it",
        "soak": "run a kernel under all loads at once for hours, and report whether it stayed healthy",
        "selftest": "measure how often kdyno is wrong on this host, by experiments without a difference",
        "validate": "compare modelled cycles of kernel code with cycles of this host",
        "calibrate": "fit the cycle model's weights on this host",
    },
    "Tune: make a better kernel": {
        "profile": "record, show and export profiles of a kernel",
        "tune": "find the fastest recipe of a space, or the best compiler and flags of each file",
        "fit-config": "find the Kconfig symbols that a load needs, and disable the others",
        "delegation": "check and show which compiler compiles which file of a kernel",
        "lab": "time the kernel's library routines and rewrites of them on this processor, and prove them equal",
        "march": "show this CPU and its compiler flags; write the patch that adds CPU families",
    },
    "Ship: from a judged run to a kernel that a machine runs": {
        "ship": "write packages of a run's kernel, with a card that says where it is from",
        "card": "show where a kernel is from, and what was measured of it",
        "verify": "build packages again, and compare them byte by byte",
    },
    "Many machines: builds and boots of a run on other hosts": {
        "fleet": "make a fleet, run its scheduler, and show its workers",
        "worker": "carry out boots for a fleet on this host",
    },
    "Maintain: this machine, its store and its files": {
        "doctor": "check tools, disk, memory and KVM, and print how to fix each problem",
        "store": "maintain runs and files: remove what isn't needed, export and import runs",
        "blockmap": "print where a file is stored on its disk, as a device-mapper table",
        "help": "print the help of a verb, or a topic: exit codes, environment, files, examples",
        "schema": "print the JSON schema of a format",
        "completion": "print the completion script for a shell",
    },
}
"""Summary by verb, by heading."""

VERBS = {verb: summary for verbs in GROUPS.values() for verb, summary in verbs.items()}

ABOUT = "A dynamometer for Linux kernels: builds, boots, measures, judges."
START = """\
kdyno builds Linux kernels, boots each of them, measures them, and judges which is better.

    kdyno doctor               check this machine, and print how to fix problems
    kdyno init                 write quickstart.toml, an experiment with two kernels
    kdyno run quickstart.toml  run it, and print the verdicts

`kdyno --help` lists all verbs."""
"""The output of `kdyno` without arguments: the first three steps."""


def overview() -> str:
    """Return all verbs below their headings, as wide as the terminal."""
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
