"""`kdyno profile`: tables for people, JSON for scripts, and errors that say what to do."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kdyno.base.files import NotWritable
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.cli.main import main
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.measure.workload.needs import Load
from kdyno.runs.session import Session
from kdyno.runs.single_boots import SingleBoots
from tests.unit.pmu_specimen import write


@pytest.fixture(name="path")
def record_file(tmp_path: Path) -> str:
    return str(write(tmp_path / "r.kpmu"))


def test_show_prints_regions_functions_and_calls(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "show", path, "--calls"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["lat_syscall.null", "2", "155", "30", "16"] in lines
    assert ["41.62%", "82", "do_work.constprop.0"] in lines
    assert ["10", "tail", "do_work.constprop.0", "finish"] in lines


def test_show_takes_regions_events_contexts_and_a_number_of_rows(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--region", "lat_syscall", "--event", "calls", "--context", "task", "--top", "1"]
    assert main(["profile", "show", path, *words]) == 0
    out = capsys.readouterr().out
    assert "lat_pipe" not in out
    assert ["90.91%", "10", "60", "entry_SYSCALL_64"] in [line.split() for line in out.splitlines()]
    assert "and 1 more functions" in out


def test_show_gives_scripts_everything_as_json(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "show", path, "--calls", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert [region["name"] for region in value["regions"]] == ["lat_syscall.null", "lat_pipe.roundtrip"]
    assert value["regions"][0]["totals"]["exception"]["instructions"] == 30
    assert len(value["functions"]) == 5
    assert value["calls"][0]["kind"] == "tail"


def test_export_writes_to_standard_output_or_to_a_file(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", "export", path, "--format", "llvm"]) == 0
    printed = capsys.readouterr().out
    assert main(["profile", "export", path, "--format", "llvm", "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_text() == printed
    assert capsys.readouterr().out == ""


def test_common_options_may_stand_before_or_after_the_action(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--quiet", "show", path, "--json"]) == 0
    assert main(["profile", "show", path, "--json", "--quiet", "--state", "/nowhere"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "FILE", "--region", "lat_x"], "has no region lat_x"),
        (["show", "FILE", "--event", "x"], "has no event x"),
        (["export", "FILE", "--format", "autofdo"], "hint: add --vmlinux"),
        (["export", "FILE", "--format", "llvm", "--vmlinux", "FILE"], "is not the vmlinux that ran"),
        (["cover", "FILE", "--vmlinux", "/nowhere/vmlinux"], "is not a vmlinux: No such file"),
        (["export", "FILE", "--format", "llvm", "-o", "/nowhere/out"], "can't write /nowhere/out"),
        (["show", "/nowhere/r"], "can't read the PMU record /nowhere/r: No such file"),
        (["record", "0123456789", "-o", "r"], "there is nothing called 0123456789: no image in"),
    ],
)
def test_what_can_not_be_done_is_said_in_one_message_and_a_hint(
    path: str, tmp_path: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [path if word == "FILE" else word for word in words]
    assert main(["profile", *words, "--state", str(tmp_path / "state")]) == 1
    err = capsys.readouterr().err
    assert message in err
    assert "hint: " in err


@dataclass(frozen=True)
class Run:
    record: Path
    benchmarks: tuple[str, ...]


def test_recording_boots_once_and_keeps_the_record_with_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = write(tmp_path / "bare", benchmarks=())
    asked: list[Any] = []

    def count(_boots: SingleBoots, image: Any, load: Load, **options: Any) -> Run:
        asked.append((image, load.tests, options["seed"], options["events"], options["family"]))
        return Run(bare, ("lat_syscall.null", "lat_syscall.read", "lat_pipe.roundtrip"))

    monkeypatch.setattr(SingleBoots, "count", count)
    image: Any = object()
    nowhere: Any = None
    boots = SingleBoots(Session(State(tmp_path), nowhere, Talk(quiet=True)))
    options: Any = {
        "seed": 3,
        "events": "edges",
        "family": "znver4",
    }
    boots.record(image, Load(tests=("lat_pipe",)), tmp_path / "out", **options)
    assert asked == [(image, ("lat_pipe",), 3, "edges", "znver4")]
    assert read_pmu_record(tmp_path / "out").benchmark_name(2) == "lat_pipe.roundtrip"
    assert read_pmu_record(bare).benchmarks == ()
    with pytest.raises(NotWritable):
        boots.record(image, Load(tests=("lat_pipe",)), tmp_path / "none" / "out", **options)
    assert len(asked) == 1
