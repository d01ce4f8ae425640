"""The `kdyno` command: finds the verb, hands over, and turns errors into one message, a hint and an exit code.

It imports little, and late: `kdyno --help` takes as long as its imports.

Exit codes are in exit_codes.py.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Collection, Sequence
from typing import NoReturn

from kdyno import __version__, terminal
from kdyno.cli import exit_codes
from kdyno.cli.common import add_common
from kdyno.errors import InfrastructureError, KdynoError, Unbuildable
from kdyno.names import unfit
from kdyno.state import DiskFull

VERBS = {
    "doctor": "check tools, disk, memory and KVM, and print what mends each lack",
    "init": "write an experiment to start from: the demo's",
    "plan": "show what an experiment would build and boot, how long it should take, and why",
    "build": "build the kernels of an experiment",
    "workload": "list, show and try workloads",
    "boot": "boot a kernel and run a shell or a command in it",
    "ab": "compare kernels in one line: did my patch help, what is this option worth",
    "run": "run an experiment: build, boot in randomised blocks, judge, report",
    "soak": "let a kernel live under all loads at once for hours, and say whether it stayed sound",
    "runs": "list the runs in the store",
    "show": "show one run: its parts, its boots, and the command that repeats it",
    "compare": "compare the variants of a run, or one run with another",
    "judge": "judge measurements that others made: CSV, summaries, hyperfine, pyperf, lmbench, stress-ng, perf stat",
    "scaling": "show how throughput grows with the number of processes: Amdahl's law and the USL, fitted",
    "selftest": "measure how often kdyno is wrong here: experiments in which nothing differs",
    "explain": "say why a benchmark of one variant differs from the baseline's",
    "size": "print how large a kernel's parts are, and how two kernels differ in that",
    "report": "write a run's report: terminal, HTML, JSON or CSV",
    "lint": "look through kernels and objects for what compilers did wrong",
    "profile": "record, look at and export profiles of a kernel",
    "coverage": "show which lines of a kernel's source were executed, and how often",
    "delegation": "check and show which compiler makes which file of a kernel",
    "tune": "find which compiler and flags for which file make the fewest modelled cycles",
    "fit-config": "find out which Kconfig symbols a load needs, and leave out the others",
    "blockmap": "print where a file lies on its disk, as a device-mapper table",
    "march": "show this CPU and what to compile for it; write the patch that adds CPU families",
    "calibrate": "fit the cycle model's weights on this host",
    "validate": "compare modelled cycles of kernel code with this host's",
    "schema": "print the JSON schema of a format",
    "completion": "print the completion script for a shell",
}


class FileFailed(InfrastructureError):
    message = "{what}"
    hint = "see who may read and write there; `kdyno doctor` tries the directories that kdyno writes to"


class Parser(argparse.ArgumentParser):
    """argparse exits with 2 on bad usage; here 2 means that the experiment says no."""

    def error(self, message: str) -> NoReturn:
        for line in self.format_usage().splitlines():
            terminal.tell(line)
        terminal.tell(f"{self.prog}: {message}")
        raise SystemExit(exit_codes.USAGE)


class Help(argparse.HelpFormatter):
    """Before Python 3.13 argparse forgets how far it indents verbs, and breaks the line after the longest one."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        if isinstance(action.choices, dict):
            longest = max(map(len, action.choices)) + self._current_indent + self._indent_increment
            self._action_max_length = max(self._action_max_length, longest)


def make_parser(load: Collection[str]) -> argparse.ArgumentParser:
    """The parser; only the verbs in `load` are imported and know their arguments."""
    about = "A dynamometer for Linux kernels: builds, boots, measures, judges."
    parser = Parser(prog="kdyno", description=about, formatter_class=Help)
    parser.add_argument("--version", action="version", version=f"kdyno {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True, parser_class=Parser)
    for verb, summary in VERBS.items():
        sub = verbs.add_parser(verb, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if verb in load:
            module = importlib.import_module(f"kdyno.cli.{verb.replace('-', '_')}")
            module.configure(sub)
            add_common(sub)
            sub.set_defaults(act=module.act)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    # Arrays here are small: the threads that numpy starts for large ones take longer than they save.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    terminal.speak_utf8()
    sys.excepthook = terminal.tell_crash
    words = list(sys.argv[1:] if argv is None else argv)
    if not exit_codes.asks_for_regression(words):
        return _carried_out(words)
    try:
        return exit_codes.for_bisect(_carried_out(words, exit_codes.UNTESTABLE))
    except SystemExit as left:
        raise SystemExit(exit_codes.for_bisect(left.code)) from None
    except Exception as error:  # Python would end with 1, which is a verdict to git bisect
        terminal.tell_crash(type(error), error, error.__traceback__)
        return exit_codes.for_bisect(exit_codes.USAGE)


def _carried_out(words: list[str], unbuildable: int = Unbuildable.exit_code) -> int:
    """Do what the words say; return the exit code. Bad usage and --help raise SystemExit."""
    try:
        args = _parsed(words)
        if args.verbose:
            terminal.tell_debugging()
        with terminal.reader_may_leave():
            return int(args.act(args))
        return 0
    except Unbuildable as error:
        _explain(error)
        return unbuildable
    except KdynoError as error:
        return _explain(error)
    except KeyboardInterrupt:
        terminal.tell("")
        terminal.tell("kdyno: interrupted: what was finished is kept; the same command goes on from there")
        return 130
    except OSError as error:
        return _explain(_of_the_system(error))
    except UnicodeEncodeError as error:  # texts are written as UTF-8, which has all: this was to become a file name
        return _explain(unfit(error.object))
    finally:
        _flush()


def _of_the_system(error: OSError) -> KdynoError:
    """What the operating system refused, where nothing nearer to it knows more. What isn't its doing is raised."""
    if error.errno is None:
        raise error
    import logging

    logging.getLogger("kdyno").debug("%s", error, exc_info=error)
    path = error.filename2 or error.filename
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(path=path or "the state directory or standard output")
    return FileFailed(what=f"{path}: {error.strerror}" if path else error.strerror)


def _parsed(words: list[str]) -> argparse.Namespace:
    """The arguments of the verb that is named; what follows `--` is a command for the guest."""
    verb = next((word for word in words if not word.startswith("-")), "")
    # argparse would give what follows `--` to the first positional that takes many.
    own, dashes, command = words, "", list[str]()
    if "--" in words:
        cut = words.index("--")
        own, dashes, command = words[:cut], "--", words[cut + 1 :]
    parser = make_parser({verb})
    args = parser.parse_args(own)
    if dashes and "command" not in args:
        parser.error(f"{verb} takes no command after --")
    if "command" in args:
        args.command = command
    return args


def _flush() -> None:
    """Write out what is left, while it can still be said that it failed: Python's own exit would print a traceback."""
    try:
        terminal.flush()
    except OSError as error:
        terminal.forget_stdout()
        terminal.tell(f"kdyno: can't write to standard output: {error.strerror}")
        raise SystemExit(InfrastructureError.exit_code) from None


def _explain(error: KdynoError) -> int:
    terminal.tell_error(f"kdyno: {error}")
    if error.advice:
        terminal.tell_error(f"hint: {error.advice}")
    return error.exit_code
