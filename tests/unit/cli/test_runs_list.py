"""`kdyno runs` on narrow pages: names are shortened in the middle, columns are dropped, and no figure is cut."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kdyno.cli.main import main
from kdyno.store.listing import RunSummary

LONG = "opt-O2+lines-true-vs-opt-O2+lines-true+cmdline-init_on_alloc-1"
RUNS = [
    RunSummary(f"{number:012x}", name, datetime(2026, 11, 27, 13, 48, tzinfo=UTC), "model", 3, 0, 24, "unfinished")
    for number, name in enumerate((LONG, LONG.replace("alloc", "free"), "quickstart"))
]


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int) -> list[str]:
    monkeypatch.setattr("kdyno.store.listing.list_runs", lambda *_: RUNS)
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["runs"]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("width", [60, 80, 110])
def test_no_line_is_wider_than_the_page_and_no_two_runs_look_alike(printed: list[str], width: int) -> None:
    assert max(map(len, printed)) <= width
    assert len({line.split()[1] for line in printed}) == 4
    assert all(line.split()[-1] == "unfinished" and "3/24" in line for line in printed[1:])


@pytest.mark.parametrize(("width", "columns"), [(60, "RUN EXPERIMENT BOOTS FAILED STATUS"), (110, "")])
def test_a_narrow_page_lacks_the_lane_and_the_time(printed: list[str], columns: str) -> None:
    assert " ".join(printed[0].split()) == (columns or "RUN EXPERIMENT LANE BOOTS FAILED CREATED STATUS")
