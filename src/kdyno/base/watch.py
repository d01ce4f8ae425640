"""The display on a terminal while a run goes on: the plan, the progress, the verdicts so far, the output of the build.

A `Screen` receives events and keeps them as a `View`; `draw_view` makes the lines of a view, and is pure.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.live import Live
from rich.text import Text

from kdyno.base import terminal
from kdyno.base.pace import Pace, clock
from kdyno.base.text import clean, format_count
from kdyno.base.watched import Ahead, Standing

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

NOT_YET = "Verdicts so far. Don't trust them before the end: looking often finds differences that don't exist."
BAR = 24
BUILD_LINES = 8
LONGEST = 400
"""Characters of a line or note that are used: it may be a command that names hundreds of files."""
SPARE = 2
"""Lines of the terminal that are left free: a display that fills the whole terminal can't be redrawn."""
REDRAWN_EACH_SECOND = 4

Piece = tuple[str, str]
"""A text and its style."""


@dataclass(frozen=True)
class WatchedWork:
    """A piece of work under way."""

    what: str
    pace: Pace
    done: int = 0
    total: int | None = None
    note: str = ""
    is_counted: bool = False
    """Whether any progress was reported yet."""


@dataclass(frozen=True)
class View:
    """Everything that is shown; times are of the monotonic clock."""

    ahead: Ahead
    began: float
    built: int = 0
    last_built: float = 0.0
    """The time at which the last boot ended; at first, that at which the run began."""
    booted: int = 0
    first_boot: float | None = None
    """The time at which the first boot ended."""
    last_boot: float = 0.0
    work: WatchedWork | None = None
    standings: tuple[Standing, ...] = ()
    output: tuple[str, ...] = ()
    """The last lines of the build that is under way."""


def seconds_left(view: View, now: float) -> float | None:
    """Return the seconds left of a run: from the forecast until boots end, then from their speed; None if neither is
    known.
    """
    boots = max(0, view.ahead.boots - view.booted)
    if view.first_boot is None:
        before, images = view.ahead.seconds_before_boots, view.ahead.images
        if before is None:
            return None
        part = max(0, images - view.built) / images if images else 1.0
        return max(0.0, before * part - (now - view.last_built)) + boots * view.ahead.seconds_of_a_boot
    boot_seconds = view.ahead.seconds_of_a_boot
    if view.booted > 1:
        boot_seconds = (view.last_boot - view.first_boot) / (view.booted - 1)
    return max(0.0, boots * boot_seconds - (now - view.last_boot))


def draw_view(view: View, columns: int, rows: int, now: float) -> list[Text]:
    """Return the view in at most this many lines of at most this many columns; the build's output is cut first."""
    lines = [*_plan(view, columns, now), *_work(view.work, columns), *_standings(view.standings, columns)]
    lines = lines[: max(1, rows - SPARE)]
    room = min(BUILD_LINES, rows - SPARE - len(lines))
    if room > 0:
        lines += [Text(f"  {line}", "dim") for line in view.output[-room:]]
    for line in lines:
        line.truncate(columns, overflow="ellipsis")
        line.no_wrap = True
    return lines


def _plan(view: View, columns: int, now: float) -> list[Text]:
    ahead = view.ahead
    seconds = seconds_left(view, now)
    pieces = [
        f"{view.built:,} of {format_count(max(ahead.images, view.built), 'image')} built" if ahead.images else "",
        f"{ahead.boots_before + view.booted:,} of {format_count(ahead.boots_before + ahead.boots, 'boot')} done"
        if ahead.boots
        else "",
        f"{clock(now - view.began)} elapsed",
        f"about {clock(seconds)} left" if seconds else "",
    ]
    return [Text(ahead.title, "bold"), *pack_lines([(piece, "") for piece in pieces if piece], columns)]


def _work(work: WatchedWork | None, columns: int) -> list[Text]:
    if work is None:
        return []
    figures = [work.pace.count(work.done, work.total) if work.is_counted else "", work.pace.elapsed()]
    figures.append(work.pace.left(work.done, work.total))
    lines = [Text(work.what, "cyan"), *pack_lines([(text, "") for text in figures if text], columns)]
    if work.total:
        bar = _bar(min(1.0, work.done / max(work.total, work.done)), min(BAR, columns))
        beside = len(lines) == 2 and bar.cell_len + 1 + lines[1].cell_len <= columns
        lines[1:] = [Text(" ").join([bar, lines[1]])] if beside else [bar, *lines[1:]]
    return [*lines, Text(f"  {work.note}", "dim")] if work.note else lines


def _bar(fraction: float, columns: int) -> Text:
    full = int(fraction * columns)
    return Text.assemble(("━" * full, "green"), ("─" * (columns - full), "dim"))


def _standings(standings: Sequence[Standing], columns: int) -> list[Text]:
    if not standings:
        return []
    lines = list(pack_lines([(word, "yellow") for word in NOT_YET.split()], columns, between=" ", indent=""))
    for standing in standings:
        verdicts = [(f"{number} {name}", terminal.STYLES.get(name, "")) for name, number in standing.verdicts.items()]
        overall = [(f"in all {standing.overall}", "")] if standing.overall else []
        lines += pack_lines([(f"{standing.variant}:", "bold"), *verdicts, *overall], columns)
    return lines


def pack_lines(pieces: Sequence[Piece], columns: int, between: str = ", ", indent: str = "  ") -> Iterator[Text]:
    """Yield lines of pieces, with as many in each as there is room for; a piece is never broken, and later lines are
    indented.

    No comma follows a colon.
    """
    line = Text()
    for text, style in pieces:
        if line.plain.strip():
            gap = " " if line.plain.endswith(":") else between
            if line.cell_len + cell_len(gap + text) <= columns:
                line.append(gap)
            else:
                yield line
                line = Text(indent)
        line.append(text, style)
    if line.plain.strip():
        yield line


class Screen:
    """The view of a run at the bottom of a terminal, redrawn while it is open; messages printed meanwhile scroll above.

    One thread sends it events; it draws in another.
    """

    def __init__(self, ahead: Ahead, *, output: bool = False) -> None:
        began = time.monotonic()
        self.view = View(replace(ahead, title=clean(ahead.title)), began, last_built=began)
        self._shows_output = output
        self._live = Live(
            get_renderable=lambda: self,
            console=terminal.error_console(),
            transient=True,
            redirect_stdout=False,
            refresh_per_second=REDRAWN_EACH_SECOND,
        )

    def __enter__(self) -> Screen:
        self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        size = console.size
        yield from draw_view(self.view, min(options.max_width, size.width), size.height, time.monotonic())

    @contextmanager
    def working(self, what: str, pace: Pace) -> Iterator[None]:
        """Show a piece of work while the body runs, then print a line with its final progress, which stays."""
        self.view = replace(self.view, work=WatchedWork(clean(what), pace), output=())
        try:
            yield
        finally:
            work = self.view.work
            self.view = replace(self.view, work=None, output=())
            if work and work.is_counted:
                total = None if pace.is_estimate else work.total
                terminal.tell(f"{work.what}: {pace.count(work.done, total)}, {pace.elapsed()}")

    def advance(self, done: int, total: int | None, note: str) -> None:
        """Report the progress of the piece of work."""
        if self.view.work:
            work = replace(self.view.work, done=done, total=total, note=clean(note[:LONGEST]), is_counted=True)
            self.view = replace(self.view, work=work)

    def on_images_built(self, images: int) -> None:
        """Report that so many more images are built."""
        if images:
            self.view = replace(self.view, built=self.view.built + images, last_built=time.monotonic())

    def on_boot_ended(self) -> None:
        """Report that one more boot has ended."""
        now, view = time.monotonic(), self.view
        first = now if view.first_boot is None else view.first_boot
        self.view = replace(view, booted=view.booted + 1, first_boot=first, last_boot=now)

    def on_build_output(self, line: str) -> None:
        """Report a line of a build's output."""
        if self._shows_output:
            self.view = replace(self.view, output=(*self.view.output, clean(line[:LONGEST]))[-BUILD_LINES:])

    def on_standings(self, standings: Sequence[Standing]) -> None:
        """Report the verdicts so far; their names may come from anywhere."""
        self.view = replace(
            self.view, standings=tuple(replace(standing, variant=clean(standing.variant)) for standing in standings)
        )
