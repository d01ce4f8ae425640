"""The `kdyno` command: finds the verb, hands over, and turns errors into one message, a hint and an exit code.

It imports little, and late: `kdyno --help` takes as long as its imports.

Exit codes are in exit_codes.py.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import sys
from collections.abc import Collection, Sequence
from typing import NoReturn

from kdyno.base import stop_signals, surroundings, terminal
from kdyno.base.errors import InfrastructureError, KdynoError, Unbuildable
from kdyno.base.names import unfit
from kdyno.base.state import DiskFull
from kdyno.base.version import __version__
from kdyno.cli import exit_codes
from kdyno.cli.common import add_common
from kdyno.cli.verbs import START, VERBS, overview


class FileFailed(InfrastructureError):
    message = "{what}"
    hint = "see who may read and write there; `kdyno doctor` tries the directories that kdyno writes to"


class OutOfMemory(InfrastructureError):
    message = "there is not enough memory for what was asked: something that it reads unfolds to more than fits"
    hint = "see how large the files are that it names; -v says where it was"


class NestedTooDeep(InfrastructureError):
    message = "something that was read is nested too deep"
    hint = "look at the files that were named; -v says where it was"


class Parser(argparse.ArgumentParser):
    """argparse exits with 2 on bad usage; here 2 means that the experiment says no."""

    def error(self, message: str) -> NoReturn:
        for line in self.format_usage().splitlines():
            terminal.tell(line)
        terminal.tell(f"{self.prog}: {message}")
        raise SystemExit(exit_codes.USAGE)


class Help(argparse.RawDescriptionHelpFormatter):
    """The verbs are in the description, below headings; so they aren't listed again."""

    def add_argument(self, action: argparse.Action) -> None:
        if not isinstance(action.choices, dict):
            super().add_argument(action)


def make_parser(load: Collection[str]) -> argparse.ArgumentParser:
    """The parser; only the verbs in `load` are imported and know their arguments."""
    parser = Parser(
        prog="kdyno",
        usage="kdyno [-h] [--version] VERB ...",
        description=overview(),
        formatter_class=Help,
    )
    parser.add_argument("--version", action="version", version=f"kdyno {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True, parser_class=Parser, prog="kdyno")
    for verb, summary in VERBS.items():
        sub = verbs.add_parser(verb, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if verb in load:
            module = importlib.import_module(f"kdyno.cli.{verb.replace('-', '_')}")
            module.configure(sub)
            add_common(sub)
            sub.set_defaults(act=module.act)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    surroundings.settle()
    stop_signals.raise_on_stop()
    terminal.speak_utf8()
    sys.excepthook = terminal.tell_crash
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        for line in START.splitlines():
            terminal.tell(line)
        return exit_codes.USAGE
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
        args = parsed(words)
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
        return stop_signals.exit_status()
    except OSError as error:
        return _refused_by_the_system(error)
    except MemoryError as error:
        _note(error)
        return _explain(OutOfMemory())
    except RecursionError as error:
        _note(error)
        return _explain(NestedTooDeep())
    except UnicodeEncodeError as error:  # texts are written as UTF-8, which has all: this was to become a file name
        return _explain(unfit(error.object))
    finally:
        _flush()


def _note(error: Exception) -> None:
    """Keep for -v alone where it was."""
    import logging

    logging.getLogger("kdyno").debug("%s", error, exc_info=error)


def _refused_by_the_system(error: OSError) -> int:
    """Say what the operating system refused, where nothing nearer knows more; what isn't its doing is raised."""
    if error.errno is None:
        raise error
    _note(error)
    if stop_signals.stop_requested():  # whoever cleaned up wrote to a terminal that was closed
        return stop_signals.exit_status()
    return _explain(_of_the_system(error))


def _of_the_system(error: OSError) -> KdynoError:
    path = error.filename2 or error.filename
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(path=path or "the state directory or standard output")
    return FileFailed(what=f"{path}: {error.strerror}" if path else error.strerror)


def parsed(words: list[str]) -> argparse.Namespace:
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
        if stop_signals.stop_requested():
            return
        terminal.tell(f"kdyno: can't write to standard output: {error.strerror}")
        raise SystemExit(InfrastructureError.exit_code) from None


def _explain(error: KdynoError) -> int:
    terminal.tell_error(f"kdyno: {error}")
    if error.advice:
        terminal.tell_error(f"hint: {error.advice}")
    return error.exit_code
