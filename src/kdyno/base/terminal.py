"""All output to people, and the only place that writes to standard output and standard error.

Guests, sources, experiments, other programs and the stores of others name things and give reasons for failures; all of
these texts may hold what a terminal obeys: titles, the clipboard, the cursor, the direction of text. So every text for
a terminal passes through here, where it is cleaned: `line` and `lines` to standard output, `tell` and `tell_error` to
standard error, tables through `console`. `data` is for other programs. The output of a command in a guest is neither:
`kdyno boot` passes it on as ssh does.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from kdyno.base.names import AS_IT_IS
from kdyno.base.text import clean_line, clean_lines, cut

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PLAIN_WIDTH = 110
"""Columns of a table that goes to a file or a pipe."""
STYLES = {
    **dict.fromkeys(("faster", "fewer", "better"), "green"),
    **dict.fromkeys(("slower", "more", "worse"), "red"),
    **dict.fromkeys(("higher", "lower"), "magenta"),
    **{"equivalent": "cyan", "undecided": "yellow", "": "dim"},
}
NARROWEST_NAME = 12
CANT_DRAW = ("dumb", "unknown")
"""The values of TERM for terminals that only add lines."""
MOST_TOLD = 20_000
"""Characters of one message: nobody reads a longer one."""


@dataclass
class PrintedDocuments:
    """What this process has printed on standard output for other programs."""

    count: int = 0


PRINTED = PrintedDocuments()


def line(text: str = "", *, flush: bool = False) -> None:
    """Print one line for people: it stays one line, whatever it holds."""
    print(clean_line(text), flush=flush)


def lines(text: str, end: str = "\n") -> None:
    """Print text whose lines are kept: a console, a patch."""
    print(clean_lines(text), end=end)


def data(text: str) -> None:
    """Print data for another program unchanged; if a terminal shows it, clean it for people."""
    PRINTED.count += 1
    print(clean_lines(text) if _is_terminal(sys.stdout) else text, end="")


def data_file() -> IO[str]:
    """Return standard output for data that another program reads."""
    return io.StringIO() if sys.stdout is None else sys.stdout  # `kdyno ... >&-`


def tell(text: str) -> None:
    """Print one line to standard error."""
    _tell(clean_line(cut(text, MOST_TOLD)))


def tell_error(text: str) -> None:
    """Print a message of several lines to standard error; all but the first are indented, so none looks like kdyno's
    own.
    """
    _tell(clean_lines(cut(text, MOST_TOLD)).replace("\n", "\n  "))


def tell_prepared(message: bytes) -> None:
    """Write a message that was made beforehand to standard error: this needs next to no memory."""
    if sys.stderr is not None:  # `kdyno ... 2>&-`
        with suppress(OSError):
            sys.stderr.buffer.write(message)
            sys.stderr.buffer.flush()


def can_ask() -> bool:
    """Return whether somebody can answer a question: standard input and standard error are a terminal."""
    return _is_terminal(sys.stdin) and _is_terminal(sys.stderr)


def ask_agreement(question: str) -> bool:
    """Ask a question and return whether the answer is yes. No answer means no."""
    sys.stderr.write(f"{clean_line(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def can_draw() -> bool:
    """Return whether standard error is a terminal that can redraw its lines."""
    return _is_terminal(sys.stderr) and os.environ.get("TERM", "").lower() not in CANT_DRAW


def console() -> Console:
    """Return standard output for tables: as wide as the terminal, and with its colours, if it is one; else as wide as
    COLUMNS says, or PLAIN_WIDTH.
    """
    if _is_terminal(sys.stdout):
        return _clean_console(width=shutil.get_terminal_size().columns)
    columns = os.environ.get("COLUMNS", "")
    return _clean_console(width=int(columns) if columns.isdecimal() and int(columns) else PLAIN_WIDTH)


def text_console(file: IO[str]) -> Console:
    """A console for tables that writes plain text into `file`, PLAIN_WIDTH columns wide."""
    return _clean_console(file=file, width=PLAIN_WIDTH)


def error_console() -> Console:
    """Return standard error for progress bars."""
    return _clean_console(stderr=True)


def print_whole(console: Console, table: Table, width: int) -> None:
    """Print a table that is `width` columns wide. If it is wider than the page, its rows are longer: rich would cut
    figures.
    """
    page_width = console.width
    console.width = max(page_width, width)
    try:
        console.print(table)
    finally:
        console.width = page_width


def _clean_console(**settings: Any) -> Console:
    """Yield a console that cleans the text printed to it, piece by piece: the colours are rich's own, and stay."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class CleanConsole(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=clean_lines(segment.text))

    return CleanConsole(highlight=False, markup=False, emoji=False, **settings)


def speak_utf8() -> None:
    """Write UTF-8 in every locale, as files have it: reports hold characters that ASCII lacks, and JSON is UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # not with `kdyno ... >&-`
            stream.reconfigure(encoding="utf-8", errors=AS_IT_IS)


def tell_debugging() -> None:
    """Print to standard error what modules log: every command that is run."""
    import logging  # `kdyno --help` takes as long as its imports

    class Telling(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            tell_error(self.format(record))

    handler = Telling()
    handler.setFormatter(logging.Formatter("+ %(message)s"))
    log = logging.getLogger("kdyno")
    log.handlers = [handler]
    log.setLevel(logging.DEBUG)


def tell_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback of a bug in kdyno, as `sys.excepthook`: its last line may quote anything."""
    import traceback

    _tell(clean_lines(cut("".join(traceback.format_exception(kind, error, trace)), MOST_TOLD)).rstrip("\n"))


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Print for a reader that may go away, as `head` does: the rest of the body is then skipped without a message."""
    try:
        yield
    except BrokenPipeError:
        forget(sys.stdout)
    except SystemExit as left:  # rich's form of the error
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        forget(sys.stdout)


def flush() -> None:
    """Write out what is left on standard output, or drop it. Raise OSError."""
    with reader_may_leave():
        if sys.stdout is None:  # `kdyno ... >&-`
            return
        try:
            sys.stdout.flush()
        except OSError:
            forget(sys.stdout)
            raise


def forget(stream: IO[str]) -> None:
    """Discard everything printed from now on, and everything still to be written."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _is_terminal(stream: IO[str] | None) -> bool:
    return stream is not None and stream.isatty()


def _tell(text: str) -> None:
    if sys.stderr is None:  # `kdyno ... 2>&-`; print would use standard output instead
        return
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:  # a terminal that was hung up, a pipe that nobody reads: work is not lost because of that
        forget(sys.stderr)
