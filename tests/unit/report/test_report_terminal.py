from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from kdyno.base.lanes import LANES
from kdyno.judge.verdicts.lane import lane_line
from kdyno.judge.verdicts.model import RunReport
from kdyno.report.summary import summary_lines
from kdyno.report.terminal import render
from tests.unit import specimen


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    return specimen.report(tmp_path_factory.mktemp("report"))


def shown(report: RunReport, width: int = 80, terminal: bool = False) -> list[str]:
    out = io.StringIO()
    render(report, Console(file=out, width=width, force_terminal=terminal, color_system="256" if terminal else None))
    return out.getvalue().splitlines()


def test_a_line_for_each_variant_comes_first_then_lane_and_run(report: RunReport) -> None:
    lines = shown(report, 200)
    assert lines[:2] == summary_lines(report)
    assert [line.partition(":")[0] for line in lines[:5]] == [
        "gcc-12-O3 (these images)",
        "clang-19-thinlto (these images)",
        "lane",
        "run 3f9a61c20000 quickstart",
        "3 notes below",
    ]


def test_notes_follow_the_last_table_each_once(report: RunReport) -> None:
    lines = shown(report, 200)
    last_row = max(number for number, line in enumerate(lines) if line.startswith("geometric mean"))
    for notice in report.notices:
        assert lines.count(f"note: {notice}") == 1
        assert lines.index(f"note: {notice}") > last_row
    notes = [line for line in lines[last_row:] if not line.startswith(" ")]
    assert len(set(filter(None, notes))) == len(list(filter(None, notes)))


def test_cycles_are_never_called_instructions(report: RunReport) -> None:
    machine = {**report.run.machine, "pmu_clock": "cycles"}
    line = lane_line(report.run.model_copy(update={"machine": machine}))
    assert line == "lane: model — cycles modelled from what the emulated PMU counted in the measured loops, not time"


@pytest.mark.parametrize("machine", ["metal", "local"])
def test_cycles_of_the_core_pmu_are_not_called_nanoseconds_of_a_box(report: RunReport, machine: str) -> None:
    lines = {
        lane: lane_line(report.run.model_copy(update={"machine": {"type": machine}, "lane": lane}))
        for lane in ("wall", "pmu")
    }
    assert lines["wall"].startswith("lane: wall — nanoseconds")
    assert lines["pmu"] == f"lane: pmu — {LANES['pmu'].clock.title}"


@pytest.mark.parametrize("width", [80, 100, 140, 250])
def test_no_line_is_longer_than_the_page_and_no_row_is_broken(report: RunReport, width: int) -> None:
    lines = shown(report, width)
    assert max(map(len, lines)) <= width
    rows = [line for line in lines if line.startswith(("lat_", "bw_")) and "unsupported" not in line]
    assert len(rows) == 2 * 35
    assert all(row.split()[-1] in ("%", "none") for row in rows)


def test_without_a_terminal_there_is_no_escape_sequence(report: RunReport) -> None:
    assert "\x1b" not in "\n".join(shown(report))


def test_on_a_terminal_verdicts_are_coloured_and_the_guest_still_has_no_say(report: RunReport) -> None:
    text = "\n".join(shown(report, 120, terminal=True))
    assert "\x1b[32mfewer " in text
    assert "\x1b[2J" not in text
    assert "\x1b]0;" not in text


def test_markup_of_a_guest_is_shown_as_it_is(report: RunReport) -> None:
    text = " ".join(shown(report, 200))
    assert "block 5 gcc-12-O3: panic: <script>alert(1)</script> [red]VFS: Unable to mount root fs[/red]" in text
    assert "block 2 gcc-12: QEMU was killed" in text


def test_what_could_not_run_says_why(report: RunReport) -> None:
    assert "clang-19-thinlto, lat_unix.sock: unsupported in clang-19-thinlto: no CONFIG_UNIX" in shown(report, 200)


def test_a_verdict_is_on_one_line_with_its_numbers(report: RunReport) -> None:
    [row] = [line for line in shown(report, 120) if line.startswith("geometric mean (34)")]
    assert "+4.8 %" in row
    assert "●" in row
    assert row.split()[-3:-1] == ["better", "0.93"]


def test_one_block_and_no_block_have_tables_too(tmp_path: Path) -> None:
    run = specimen.run_record(blocks=1)
    lines = shown(specimen.report(tmp_path, run))
    assert "one block: no spread known:" in lines
    assert "  gcc-12-O3: all 35 benchmarks and their mean" in lines
    (tmp_path / "none").mkdir()
    assert any(line.startswith("lane: model") for line in shown(specimen.report(tmp_path / "none", boots=[])))


def test_a_run_of_one_variant_shows_no_table_and_no_legend(tmp_path: Path) -> None:
    run = specimen.run_record(variants=("gcc-12",))
    lines = shown(specimen.report(tmp_path, run))
    assert not [line for line in lines if "against" in line or line.startswith("bars:")]
