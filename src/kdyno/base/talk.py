"""Talking to people on stderr: the work under way, its progress, its remaining time. stdout is for data alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kdyno.base import terminal
from kdyno.base.pace import Pace
from kdyno.base.text import clean

if TYPE_CHECKING:
    from kdyno.base.watch import Screen
    from kdyno.base.watched import Ahead, Standing

PLAIN_EVERY_SECONDS = 15.0
NOTE_SHOWN = 40
"""Characters of a note next to a bar."""
MOST_NOTED = 400
"""Characters of a note on a line of its own: a note may be a command of a build, which names hundreds of files."""

Advance = Callable[[int, int | None, str], None]
"""(done, total or None, note): reports the progress of a piece of work."""


class Talk:
    """A terminal gets progress bars; a file or a pipe gets a line now and then; `quiet` gets neither.

    On a terminal, a run also shows its plan and the events that `on_images_built`, `on_boot_ended`, `on_build_output`
    and `on_standings` report. Elsewhere these are ignored. `plain` prints lines on a terminal as well; `build_output`
    shows the last lines of a build's output.
    """

    def __init__(self, quiet: bool = False, *, plain: bool = False, build_output: bool = False) -> None:
        self.quiet = quiet
        self.bars = not quiet and not plain and terminal.can_draw()
        self._build_output = build_output
        self._screen: Screen | None = None

    def say(self, text: str) -> None:
        """Print one line, unless quiet."""
        if not self.quiet:
            terminal.tell(text)

    def warn(self, text: str) -> None:
        """Print one line that must be seen, quiet or not."""
        terminal.tell(text)

    @contextmanager
    def working(self, what: str, *, is_estimate: bool = False) -> Iterator[Advance]:
        """Show one piece of work; the body calls the Advance that it is given. `is_estimate`: its totals are
        estimates.
        """
        if self.quiet:
            yield lambda _done, _total, _note: None
        elif self._screen:
            with self._screen.working(what, Pace(is_estimate)):
                yield self._screen.advance
        elif self.bars:
            with _bar(what, Pace(is_estimate)) as advance:
                yield advance
        else:
            yield _plain(what, Pace(is_estimate))

    @contextmanager
    def watching(self, ahead: Ahead) -> Iterator[None]:
        """Show a run on a terminal while the body carries it out; elsewhere do nothing."""
        if not self.bars:
            yield
            return
        from kdyno.base.watch import Screen

        with Screen(ahead, output=self._build_output) as screen:
            self._screen = screen
            try:
                yield
            finally:
                self._screen = None

    @property
    def is_watched(self) -> bool:
        """Return whether a run is shown now."""
        return self._screen is not None

    def on_images_built(self, images: int) -> None:
        """Report that so many images were built."""
        if self._screen:
            self._screen.on_images_built(images)

    def on_boot_ended(self) -> None:
        """Report that a boot of the run has ended."""
        if self._screen:
            self._screen.on_boot_ended()

    def on_build_output(self, line: str) -> None:
        """Report a line of a build's output."""
        if self._screen:
            self._screen.on_build_output(line)

    def on_standings(self, standings: Sequence[Standing]) -> None:
        """Report the verdicts so far."""
        if self._screen:
            self._screen.on_standings(standings)


@contextmanager
def _bar(what: str, pace: Pace) -> Iterator[Advance]:
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.table import Column
    from rich.text import Text

    class Elapsed(ProgressColumn):
        """A clock that goes on while the work reports nothing."""

        def render(self, task: Task) -> Text:  # noqa: ARG002
            return Text(pace.elapsed())

    class Yielding(TextColumn):
        """A column that shrinks where the terminal is narrow, so that no figure is cut."""

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
        remaining = pace.left(done, total)
        now = time.monotonic()
        if now - last < PLAIN_EVERY_SECONDS:
            return
        last = now
        times = ", ".join(filter(None, [pace.count(done, total), pace.elapsed(), remaining]))
        terminal.tell(f"{what}: {times} ({note[:MOST_NOTED]})")

    return advance
