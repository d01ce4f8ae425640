"""Talking to people on stderr: what goes on, how far it is, how long it will take. stdout is for data alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PLAIN_EVERY_SECONDS = 15.0

Advance = Callable[[int, int | None, str], None]
"""(done, total or None, what it is at): tells how far a piece of work is."""


class Talk:
    """A terminal gets progress bars; a file or a pipe gets a line now and then; `quiet` gets neither."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.bars = not quiet and sys.stderr.isatty()

    def say(self, text: str) -> None:
        """One line, unless quiet."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def warn(self, text: str) -> None:
        """One line that must be seen, quiet or not."""
        print(text, file=sys.stderr, flush=True)

    @contextmanager
    def working(self, what: str) -> Iterator[Advance]:
        """Show one piece of work; the body calls the Advance that it is given."""
        if self.quiet:
            yield lambda _done, _total, _note: None
        elif self.bars:
            with _bar(what) as advance:
                yield advance
        else:
            yield _plain(what)


@contextmanager
def _bar(what: str) -> Iterator[Advance]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("[dim]{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=120) as progress:
        task = progress.add_task(escape(what), total=None, note="")

        def advance(done: int, total: int | None, note: str) -> None:
            # A total that was guessed from an earlier build may be passed.
            shown = None if total is None else max(total, done)
            progress.update(task, completed=done, total=shown, note=escape(note[:40]))

        yield advance


def _plain(what: str) -> Advance:
    start = last = time.monotonic()
    before: int | None = None

    def advance(done: int, total: int | None, note: str) -> None:
        nonlocal last, before
        before = done if before is None else before  # done by an earlier command: tells nothing about the speed of this
        now = time.monotonic()
        if now - last < PLAIN_EVERY_SECONDS:
            return
        last = now
        of = f" of about {total}" if total else ""
        left = ""
        if total and before < done < total:
            left = f", {_span((now - start) / (done - before) * (total - done))} left"
        print(f"{what}: {done}{of}{left} ({note})", file=sys.stderr, flush=True)

    return advance


def _span(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
