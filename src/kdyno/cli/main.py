"""The `kdyno` command: finds the verb, runs it, and turns errors into one message, a hint and an exit code.

Modules are imported late: `kdyno --help` takes as long as its imports.

Exit codes are in exit_codes.py.
"""

from __future__ import annotations

import argparse
import errno
import gc
import importlib
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from kdyno.base import stop_signals, surroundings, terminal
from kdyno.base.errors import InfrastructureError, KdynoError, Unbuildable
from kdyno.base.names import unfit
from kdyno.base.state import DiskFull
from kdyno.base.threads import OutOfThreads
from kdyno.base.version import __version__
from kdyno.cli import exit_codes
from kdyno.cli.common import add_common
from kdyno.cli.verbs import START, VERBS, overview

VERB = "VERB"
"""The name of the argument that is a verb."""
INTERRUPTED = "interrupted: finished work is kept"
CONTINUE = "run the same command to continue"
DEFAULT_ACTIONS = {"tune": "space"}
"""The action of a verb whose word may be left out before a file."""
ACTIONS = {"tune": frozenset({"space", "delegation"})}
"""All actions of these verbs."""
NEW_OBJECTS = 100_000
"""New objects before Python looks for garbage. With its own 700, `kdyno report` looks 280 times, mostly while modules
are imported, and finds less than 2,000 objects in all."""

RESERVE = [bytearray(1 << 20)]
"""Memory that is released before a shortage is reported, so that the report itself isn't refused any. As it is never
written, it takes address space only.
"""


class FileFailed(InfrastructureError):
    message = "{what}"
    hint = "check the permissions of the path; `kdyno doctor` checks the directories that kdyno writes to"


class OutOfMemory(InfrastructureError):
    message = "out of memory: kdyno needs more than this machine or a limit (ulimit -v) gives it"
    hint = "free memory, or check the sizes of the input files; finished work is kept; -v prints where it happened"


OUT_OF_MEMORY = f"kdyno: {OutOfMemory()}\nhint: {OutOfMemory().advice}\n".encode()
"""Made beforehand: where memory was refused, even cleaning a text may fail."""


class NestedTooDeep(InfrastructureError):
    message = "an input file is nested too deeply"
    hint = "check the input files; -v prints where it happened"


SHORTAGES = {
    "can't start new thread": OutOfThreads,
    "can't allocate lock": OutOfMemory,
    "can't allocate read lock": OutOfMemory,
}
"""Python's errors that have no class of their own, by their texts: of threads, locks, and files (bufferedio.c)."""
LOST_ERROR = ("error return without exception set", "returned NULL without setting an exception")
"""Texts of the SystemError that Python raises if it has no memory for the error that it is about to raise."""


class BadUsage(SystemExit):
    """The end of a command whose words can't be parsed. Its message and usage are printed."""

    def __init__(self, message: str) -> None:
        super().__init__(exit_codes.USAGE)
        self.message = message


class Parser(argparse.ArgumentParser):
    """A parser that exits with 1 on bad usage. argparse exits with 2, which means a negative verdict here."""

    def error(self, message: str) -> NoReturn:
        for line in self.format_usage().splitlines():
            terminal.tell(line)
        terminal.tell(f"{self.prog}: {message}")
        raise BadUsage(f"{self.prog}: {message}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Name the verbs that are nearest to an unknown one, or the actions of a verb; argparse would list all."""
        if isinstance(action.choices, dict) and value not in action.choices:
            import difflib

            near = difflib.get_close_matches(value, action.choices, n=3)
            what = "verb" if action.metavar == VERB else "action"
            advice = f"did you mean {' or '.join(near)}?" if near else f"`{self.prog} --help` lists what there is"
            self.error(f"unknown {what} {value!r}; {advice}")
        super()._check_value(action, value)


class Help(argparse.RawDescriptionHelpFormatter):
    """A formatter that doesn't list the verbs: the description contains them, below headings."""

    def add_argument(self, action: argparse.Action) -> None:
        if not isinstance(action.choices, dict):
            super().add_argument(action)


def make_parser(load: Collection[str]) -> argparse.ArgumentParser:
    """Build the parser. Only the verbs in `load` are imported, and have their arguments."""
    parser = Parser(
        prog="kdyno",
        usage="kdyno [-h] [--version] VERB ...",
        description=overview(),
        formatter_class=Help,
    )
    parser.add_argument("--version", action="version", version=f"kdyno {__version__}")
    verbs = parser.add_subparsers(metavar=VERB, required=True, parser_class=Parser, prog="kdyno")
    for verb, summary in VERBS.items():
        sub = verbs.add_parser(verb, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if verb in load:
            module = importlib.import_module(f"kdyno.cli.{verb.replace('-', '_')}")
            module.configure(sub)
            add_common(sub)
            sub.set_defaults(act=module.act)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if not exit_codes.asks_for_regression(words):
        return _set_up_and_run(words)
    try:
        return exit_codes.bisect_status(_set_up_and_run(words, exit_codes.UNTESTABLE))
    except SystemExit as stop:
        raise SystemExit(exit_codes.bisect_status(stop.code)) from None
    except Exception as error:  # Python would end with 1, which is a verdict to git bisect
        terminal.tell_crash(type(error), error, error.__traceback__)
        return exit_codes.bisect_status(exit_codes.USAGE)


def _set_up_and_run(words: list[str], unbuildable: int = Unbuildable.exit_code) -> int:
    """Set up this process, run the command line, and return the exit code."""
    try:
        gc.set_threshold(NEW_OBJECTS)
        surroundings.settle()
        stop_signals.raise_on_stop()
        terminal.speak_utf8()
        sys.excepthook = terminal.tell_crash
        if words:
            return _run_verb(words, unbuildable)
        for line in START.splitlines():
            terminal.tell(line)
        return exit_codes.USAGE
    except (MemoryError, RuntimeError, SystemError) as error:  # of the set-up, or of the report on a failure
        return _explain_shortage(error, _Explainer(words))


def _run_verb(words: list[str], unbuildable: int = Unbuildable.exit_code) -> int:
    """Run the command line, and return the exit code. Raises SystemExit on bad usage and --help."""
    explain = _Explainer(words)
    try:
        args = parse_words(words)
        if args.verbose:
            terminal.tell_debugging()
        with terminal.reader_may_leave():
            return int(args.act(args))
        return 0
    except Unbuildable as error:
        return explain(error, unbuildable)
    except BadUsage as error:
        explain.as_json(error.message, "", exit_codes.USAGE)
        raise
    except KdynoError as error:
        return explain(error)
    except KeyboardInterrupt:
        terminal.tell("")
        terminal.tell(f"kdyno: {INTERRUPTED}; {CONTINUE}")
        return explain.as_json(INTERRUPTED, CONTINUE, stop_signals.exit_status())
    except OSError as error:
        return _explain_os_error(error, explain)
    except (MemoryError, RuntimeError, SystemError) as error:
        return _explain_shortage(error, explain)
    except UnicodeEncodeError as error:  # output is UTF-8, which encodes every text: this was a file name
        return explain(unfit(error.object))
    finally:
        _flush()


def _note(error: Exception) -> None:
    """Log the traceback, which only -v prints."""
    import logging

    logging.getLogger("kdyno").debug("%s", error, exc_info=error)


def _explain_shortage(error: MemoryError | RuntimeError | SystemError, explain: _Explainer) -> int:
    """Report that Python has reached a limit; raise any other RuntimeError or SystemError."""
    RESERVE.clear()
    _release(error)
    _note(error)
    if isinstance(error, MemoryError) or (isinstance(error, SystemError) and str(error).endswith(LOST_ERROR)):
        return _explain_out_of_memory(explain)
    if isinstance(error, RecursionError):
        return explain(NestedTooDeep())
    if shortage := SHORTAGES.get(str(error)):
        return explain(shortage())
    raise error


def _explain_out_of_memory(explain: _Explainer) -> int:
    """Report a shortage of memory with next to none; the JSON of it is left out if there is not enough for that."""
    terminal.tell_prepared(OUT_OF_MEMORY)
    with suppress(MemoryError):
        error = OutOfMemory()
        explain.as_json(str(error), error.advice, error.exit_code)
    return OutOfMemory.exit_code


def _release(error: BaseException) -> None:
    """Release what the functions that an error came through held: without memory nothing can be reported."""
    trace = error.__traceback__
    while trace:
        with suppress(RuntimeError):  # it runs still
            trace.tb_frame.clear()
        trace = trace.tb_next


def _explain_os_error(error: OSError, explain: _Explainer) -> int:
    """Report an error of the operating system that no other code handled; raise an OSError without an errno."""
    if error.errno is None:
        raise error
    _note(error)
    if stop_signals.stop_requested():  # the clean-up wrote to a closed terminal
        return stop_signals.exit_status()
    return explain(_as_kdyno_error(error))


def _as_kdyno_error(error: OSError) -> KdynoError:
    path = error.filename2 or error.filename
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(path=path or "the state directory or standard output")
    return FileFailed(what=f"{path}: {error.strerror}" if path else error.strerror)


def parse_words(words: list[str]) -> argparse.Namespace:
    """Parse the arguments of the verb; the words after `--` are a command for the guest."""
    verb = next((word for word in words if not word.startswith("-")), "")
    # argparse would give the words after `--` to the first positional with several values.
    own, dashes, command = words, "", list[str]()
    if "--" in words:
        cut = words.index("--")
        own, dashes, command = words[:cut], "--", words[cut + 1 :]
    parser = make_parser({verb})
    args = parser.parse_args(_with_action(own))
    if dashes and "command" not in args:
        parser.error(f"{verb} takes no command after --")
    if "command" in args:
        args.command = command
    return args


def _with_action(words: list[str]) -> list[str]:
    """Return the words with the action of a verb that may be left out: `tune FILE` is `tune space FILE`."""
    verb, *others = words or [""]
    named = [word for word in others if not word.startswith("-")]
    if verb not in DEFAULT_ACTIONS or not named or ACTIONS[verb].intersection(named):
        return words
    return [verb, DEFAULT_ACTIONS[verb], *others]


def _flush() -> None:
    """Flush standard output while a failure can still be reported: Python's own exit would print a traceback."""
    try:
        terminal.flush()
    except OSError as error:
        if stop_signals.stop_requested():
            return
        terminal.tell(f"kdyno: cannot write to standard output: {error.strerror}")
        raise SystemExit(InfrastructureError.exit_code) from None


class _Explainer:
    """Reports why a command failed: on standard error, and with --json on standard output, too."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.documents_before = terminal.PRINTED.count

    def __call__(self, error: KdynoError, exit_code: int | None = None) -> int:
        terminal.tell_error(f"kdyno: {error}")
        if error.advice:
            terminal.tell_error(f"hint: {error.advice}")
        return self.as_json(str(error), error.advice, error.exit_code if exit_code is None else exit_code)

    def as_json(self, message: str, hint: str, exit_code: int) -> int:
        """Print the error as JSON if the command line asks for it and no JSON was printed; return the exit code."""
        if _asks_for_json(self.words) and terminal.PRINTED.count == self.documents_before:
            has_option = exit_codes.asks_for_regression(self.words)
            status = exit_codes.bisect_status(exit_code) if has_option else exit_code
            with terminal.reader_may_leave():
                _print_failure(message, hint, status)
        return exit_code


def _asks_for_json(words: Sequence[str]) -> bool:
    """Return whether a command line has the option --json; what follows `--` is a command of a guest."""
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def _print_failure(message: str, hint: str, exit_code: int) -> None:
    from kdyno.cli.common import print_json
    from kdyno.cli.failure import CommandError, FailedCommand

    error = CommandError(message=message, hint=hint, exit_code=exit_code)
    print_json(FailedCommand(error=error).model_dump(mode="json"))
