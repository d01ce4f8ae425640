"""Talking to people on stderr: what goes on, how far it is, how long it will take. stdout is for data alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kdyno import terminal
from kdyno.text import clean

PLAIN_EVERY_SECONDS = 15.0
SPEED_AFTER_SECONDS = 10.0
"""The first lines of a kernel build come much faster than the others: before that, the speed tells nothing."""

NOTE_SHOWN = 40
"""Characters of a note beside a bar."""
MOST_NOTED = 400
"""Characters of a note in a line of its own: a note may be a command of a build, which names hundreds of files."""

Advance = Callable[[int, int | None, str], None]
"""(done, total or None, what it is at): tells how far a piece of work is."""


class Talk:
    """A terminal gets progress bars; a file or a pipe gets a line now and then; `quiet` gets neither."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.bars = not quiet and terminal.people_watch()

    def say(self, text: str) -> None:
        """One line, unless quiet."""
        if not self.quiet:
            terminal.tell(text)

    def warn(self, text: str) -> None:
        """One line that must be seen, quiet or not."""
        terminal.tell(text)

    @contextmanager
    def working(self, what: str, *, about: bool = False) -> Iterator[Advance]:
        """Show one piece of work; the body calls the Advance that it is given. `about`: its totals are estimates."""
        if self.quiet:
            yield lambda _done, _total, _note: None
        elif self.bars:
            with _bar(what, Pace(about)) as advance:
                yield advance
        else:
            yield _plain(what, Pace(about))


class Pace:
    """How far a piece of work is and how long it will take, in the words that a terminal and a file both get."""

    def __init__(self, about: bool = False) -> None:
        self.about = about
        self.began = time.monotonic()
        self.first: tuple[float, int] | None = None
        """When the total was first known, and how much was done by then: that tells nothing about the speed."""

    def count(self, done: int, total: int | None) -> str:
        if total is None:
            return f"{done:,}"
        return f"{done:,} of {'about ' if self.about else ''}{max(done, total):,}"

    def elapsed(self) -> str:
        return f"{_clock(time.monotonic() - self.began)} elapsed"

    def left(self, done: int, total: int | None) -> str:
        """Empty while there is nothing to estimate it from, and where an estimated total was passed."""
        if total is None:
            return ""
        now = time.monotonic()
        self.first = self.first or (now, done)
        seconds, steps = now - self.first[0], done - self.first[1]
        if seconds < SPEED_AFTER_SECONDS or steps < 1 or done >= total:
            return ""
        return f"{_clock(seconds / steps * (total - done))} left"


@contextmanager
def _bar(what: str, pace: Pace) -> Iterator[Advance]:
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.table import Column
    from rich.text import Text

    class Elapsed(ProgressColumn):
        """Goes on while the work says nothing."""

        def render(self, task: Task) -> Text:  # noqa: ARG002
            return Text(pace.elapsed())

    class Yielding(TextColumn):
        """Gives way where the terminal is narrow, so that no figure is cut."""

        def render(self, task: Task) -> Text:
            text = super().render(task)
            text.no_wrap = True
            return text

    columns = (
        Yielding("{task.description}", table_column=Column()),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[count]}"),
        Elapsed(table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[left]}"),
        Yielding("[dim]{task.fields[note]}", table_column=Column()),
    )
    with Progress(*columns, console=terminal.error_console()) as progress:
        task = progress.add_task(escape(clean(what)), total=None, count="", left="", note="")

        def advance(done: int, total: int | None, note: str) -> None:
            progress.update(
                task,
                completed=done,
                total=None if total is None else max(total, done),
                count=pace.count(done, total),
                left=pace.left(done, total),
                note=escape(clean(note[:MOST_NOTED])[:NOTE_SHOWN]),
            )

        yield advance


def _plain(what: str, pace: Pace) -> Advance:
    last = pace.began

    def advance(done: int, total: int | None, note: str) -> None:
        nonlocal last
        left = pace.left(done, total)
        now = time.monotonic()
        if now - last < PLAIN_EVERY_SECONDS:
            return
        last = now
        times = ", ".join(filter(None, [pace.count(done, total), pace.elapsed(), left]))
        terminal.tell(f"{what}: {times} ({note[:MOST_NOTED]})")

    return advance


def _clock(seconds: float) -> str:
    """Minutes and seconds, after an hour hours too: `5:10`, `1:05:10`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
