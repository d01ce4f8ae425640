"""What a terminal shows of a run that goes on: which figures, how they fit, what gives way, and when it is judged."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.text import Text

from kdyno.base import pace, terminal, watch
from kdyno.base.errors import UserError
from kdyno.base.pace import Pace
from kdyno.base.talk import Talk
from kdyno.base.watch import NOT_YET, Screen, View, WatchedWork, draw_view, seconds_left
from kdyno.base.watched import Ahead, Standing
from kdyno.runs import so_far
from kdyno.runs.so_far import EVERY_SECONDS, SHARE, SoFar, standings

AHEAD = Ahead(
    "run c0ffee quickstart", images=4, boots=20, boots_before=4, seconds_before_boots=400, seconds_of_a_boot=5
)
STANDINGS = (
    Standing("gcc-O3", {"fewer": 12, "undecided": 20, "more": 1}, "+1.6 %"),
    Standing("clang-O2", {"undecided": 33}),
)
HOSTILE = "\x1b]0;owned\x07\x1b[2J[red]CC\u202e [/] x.o\r\n"
SHOWN = "[red]CC\\u202e [/] x.o"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (pace, watch, so_far):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def screen(clock: Clock) -> Screen:
    """A screen that isn't open: what it would draw is looked at."""
    assert clock
    return Screen(AHEAD, output=True)


def shown(view: View, columns: int = 80, rows: int = 24, now: float = 1000.0) -> list[str]:
    """The lines of the view as a terminal of this size gets them, without colours."""
    console = Console(file=io.StringIO(), force_terminal=True, width=columns, height=rows, color_system=None)
    for line in draw_view(view, columns, rows, now):
        console.print(line)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def busy(screen: Screen, clock: Clock) -> View:
    """A view with all that there can be in it."""
    work = WatchedWork("building gcc-O2, gcc-O2-mitigations-off", Pace(is_estimate=True), 0, 1300)
    work.pace.left(0, 1300)
    clock.now += 52
    screen.view = View(
        AHEAD, 1000.0, built=1, booted=3, first_boot=1010.0, last_boot=1030.0, work=work, standings=STANDINGS
    )
    screen.advance(144, 1300, "CC drivers/virtio/virtio_ring.o")
    for number in range(50):
        screen.on_build_output(f"warning {number} {'long ' * 40}")
    return screen.view


def test_a_view_has_the_plan_the_work_and_the_verdicts_which_are_said_not_to_be_trusted(
    screen: Screen, clock: Clock
) -> None:
    lines = shown(busy(screen, clock), columns=120, rows=40, now=clock.now)
    assert lines[:8] == [
        "run c0ffee quickstart",
        "1 of 4 images built, 7 of 24 boots done, 0:52 elapsed, about 2:28 left",
        "building gcc-O2, gcc-O2-mitigations-off",
        f"{'━' * 2}{'─' * 22} 144 of about 1,300, 0:52 elapsed, 6:57 left",
        "  CC drivers/virtio/virtio_ring.o",
        NOT_YET,
        "gcc-O3: 12 fewer, 20 undecided, 1 more, in all +1.6 %",
        "clang-O2: 33 undecided",
    ]
    assert [line.split()[:2] for line in lines[8:]] == [["warning", str(number)] for number in range(42, 50)]


@pytest.mark.parametrize("columns", [20, 40, 60, 200])
@pytest.mark.parametrize("rows", [1, 3, 8, 14, 50])
def test_nothing_is_wider_or_higher_than_the_terminal(screen: Screen, clock: Clock, columns: int, rows: int) -> None:
    lines = shown(busy(screen, clock), columns, rows, clock.now)
    assert 1 <= len(lines) <= max(1, rows - watch.SPARE)
    assert all(len(line) <= columns for line in lines)


def test_forty_columns_cut_names_but_no_figures(screen: Screen, clock: Clock) -> None:
    lines = shown(busy(screen, clock), columns=40, rows=40, now=clock.now)
    text = " ".join(line.strip() for line in lines)
    for figure in ("1 of 4 images", "7 of 24 boots", "about 2:28 left", "144 of about 1,300", "6:57 left", "+1.6 %"):
        assert figure in text
    assert NOT_YET in text


def test_what_the_build_says_gives_way_to_the_plan_and_the_verdicts(screen: Screen, clock: Clock) -> None:
    lines = shown(busy(screen, clock), columns=120, rows=13, now=clock.now)
    assert sum("warning" in line for line in lines) == 3
    assert "clang-O2: 33 undecided" in lines


def test_what_guests_and_compilers_say_can_neither_steer_nor_style(screen: Screen) -> None:
    with screen.working(HOSTILE, Pace()):
        screen.advance(1, 2, HOSTILE)
        screen.on_build_output(HOSTILE)
        screen.on_standings([Standing(HOSTILE, {"fewer": 1})])
        lines = shown(screen.view)
    assert [line.strip() for line in lines if "CC" in line] == [SHOWN, SHOWN, f"{SHOWN}: 1 fewer", SHOWN]
    assert all(line.isprintable() for line in lines)


def test_a_build_is_shown_only_where_that_was_asked_for(screen: Screen) -> None:
    other = Screen(AHEAD)
    screen.on_build_output("CC fs/open.o")
    other.on_build_output("CC fs/open.o")
    assert (screen.view.output, other.view.output) == (("CC fs/open.o",), ())


def test_work_that_is_over_stays_as_a_line(screen: Screen, clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with screen.working("building gcc-O2", Pace(is_estimate=True)):
        clock.now += 75
        screen.advance(1200, 1300, "LD vmlinux")
    with screen.working("building what is there already", Pace(is_estimate=True)):
        pass
    assert capsys.readouterr().err == "building gcc-O2: 1,200, 1:15 elapsed\n"
    assert screen.view.work is None


def test_time_left_is_the_forecast_until_boots_end_and_then_what_they_take(screen: Screen, clock: Clock) -> None:
    def left() -> float | None:
        return seconds_left(screen.view, clock.now)

    assert left() == 500
    clock.now += 30
    assert left() == 470
    screen.on_images_built(1)
    assert left() == 400
    clock.now += 1000
    assert left() == 100  # the forecast was wrong; the boots are still ahead
    screen.on_boot_ended()
    assert left() == 95
    clock.now += 10
    screen.on_boot_ended()
    assert left() == 180
    unknown = Ahead("run", images=1, boots=1, seconds_before_boots=None)
    assert seconds_left(View(unknown, 0.0), 10.0) is None


def test_an_open_screen_draws_what_is_said_above_it_and_leaves_the_cursor_as_it_was(
    clock: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert clock
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(KeyboardInterrupt), Screen(AHEAD):
        terminal.tell("said meanwhile")
        raise KeyboardInterrupt
    err = capsys.readouterr().err
    assert err.index("\x1b[?25l") < err.index("said meanwhile") < err.rindex("\x1b[?25h")
    assert err.index("run c0ffee quickstart") < err.rindex("\x1b[2K")


def report(effect: float | None = 0.984, benchmarks: int = 4) -> SimpleNamespace:
    """As much of a report as standings are made of."""

    def compared(variant: str, *verdicts: str | None) -> list[SimpleNamespace]:
        return [SimpleNamespace(variant=variant, verdict=verdict) for verdict in verdicts]

    return SimpleNamespace(
        others=("a", "b"),
        comparisons=[*compared("a", "fewer", "undecided", "fewer", None), *compared("b", None)],
        geometric_means=[
            SimpleNamespace(variant=name, benchmarks=benchmarks, estimate=effect and SimpleNamespace(ratio=effect))
            for name in "ab"
        ],
        benchmarks=range(benchmarks),
    )


def test_a_variant_stands_as_its_comparisons_and_their_mean_say_and_is_left_out_without_any() -> None:
    assert standings(report()) == (Standing("a", {"fewer": 2, "undecided": 1}, "-1.6 %"),)  # type: ignore[arg-type]
    assert standings(report(None)) == (Standing("a", {"fewer": 2, "undecided": 1}),)  # type: ignore[arg-type]


def test_one_benchmark_has_no_effect_in_all() -> None:
    lone = report(benchmarks=1)
    assert standings(lone) == (Standing("a", {"fewer": 2, "undecided": 1}),)  # type: ignore[arg-type]


class Watcher(Talk):
    """Somebody who watches, or nobody."""

    def __init__(self, there: bool = True) -> None:
        super().__init__(quiet=True)
        self.there = there
        self.lengths: list[int] = []

    @property
    def is_watched(self) -> bool:
        return self.there

    def on_standings(self, standings: object) -> None:
        self.lengths.append(len(standings))  # type: ignore[arg-type]


def judging(clock: Clock, seconds: float) -> Callable[[], SimpleNamespace]:
    """A judge who takes so long."""

    def judge() -> SimpleNamespace:
        clock.now += seconds
        return report()

    return judge


@pytest.mark.parametrize(("seconds", "boots"), [(0.1, 1000), (3.0, 1000), (0.1, 100_000)])
def test_judging_on_the_way_is_rare_and_takes_a_small_part_of_the_time(
    clock: Clock, seconds: float, boots: int
) -> None:
    watcher, began = Watcher(), clock.now
    judge = SoFar(watcher, judging(clock, seconds))  # type: ignore[arg-type]
    for _ in range(boots):
        clock.now += 2
        judge.boot_ended()
    passed = clock.now - began
    assert 5 < len(watcher.lengths) <= passed / EVERY_SECONDS
    assert len(watcher.lengths) * seconds <= SHARE * passed + seconds


def test_nobody_watching_means_no_judging_and_what_can_not_be_judged_yet_is_no_error(clock: Clock) -> None:
    class TooEarly(UserError):
        message = "no values yet"

    def refuses() -> SimpleNamespace:
        raise TooEarly()

    for there, expected in ((False, []), (True, [0])):
        watcher = Watcher(there)
        judge = SoFar(watcher, refuses)  # type: ignore[arg-type]
        clock.now += EVERY_SECONDS
        judge.boot_ended()
        assert watcher.lengths == expected


def test_pieces_are_packed_by_the_width_they_have_on_a_terminal() -> None:
    lines = watch.pack_lines([("漢字漢字", ""), ("abcd", ""), ("ef", "")], columns=10)
    assert [line.plain for line in lines] == ["漢字漢字", "  abcd, ef"]
    assert list(watch.pack_lines([], 10)) == []
    assert isinstance(next(watch.pack_lines([("x" * 50, "")], 10)), Text)
