"""kdyno from Python, on the machine that replays: the same runs, records and errors as from the command line."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import kdyno
from kdyno import Machine, ab, run
from kdyno.base.errors import KdynoError
from tests.cli.conftest import Lab
from tests.cli.replay import ran, slower

EXAMPLES = Path(__file__).parents[2] / "examples"
MACHINE = "fake,recording=recording"


@pytest.fixture
def here(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.chdir(lab.directory)
    return lab


def example(name: str, *words: str) -> int | None:
    """Run an example as `python examples/NAME.py WORDS` does; returns its exit status."""
    main = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]
    status: int | None = main(*words)
    return status


def test_a_run_is_the_same_run_as_the_command_makes(here: Lab) -> None:
    here.recording.add("slow", slower("lat_pipe", 10))
    path = here.experiment("slow")
    result = run(path)
    assert [row.benchmark for row in result.report.comparisons if row.verdict == "more"] == ["lat_pipe"]
    assert "is complete: nothing to do" in here("run", path).err
    printed = here("report", "latest")
    assert str(result) == printed.out
    assert result.report.run.id == json.loads(here("report", "latest", "--json").out)["run"]["id"]


def test_a_state_directory_and_a_store_can_be_named(here: Lab, tmp_path: Path) -> None:
    here.recording.add("same")
    url = f"sqlite:///{tmp_path}/named.sqlite"
    result = run(here.experiment("same"), state=tmp_path / "other", store=url)
    assert (tmp_path / "other" / "artefacts").is_dir()
    assert here("runs").out.startswith("no runs yet")
    assert result.report.run.id[:8] in here("runs", "--store", url).out


def test_what_the_host_lost_is_said_and_tried_again_by_the_same_call(here: Lab) -> None:
    here.recording.add("same")
    path = here.experiment("same")
    here.on_boot(["the host was too slow"] * 20)
    assert set(run(path).lost.values()) == {"the host was too slow"}
    here.on_boot([])
    assert run(path).lost == {}


def test_nothing_is_printed_on_standard_output_and_without_quiet_progress_is_told(
    here: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    here.recording.add("plain")
    here.recording.add("opt-O3")
    capsys.readouterr()
    ab("plain", "opt=O3", machine=MACHINE, source="a-tree", blocks=2, quiet=False)
    out, err = capsys.readouterr()
    assert (out, "to do: boot 4 times" in err) == ("", True)


@pytest.mark.usefixtures("here")
def test_an_ab_of_one_recipe_with_itself_is_a_kdyno_error_with_a_hint() -> None:
    with pytest.raises(KdynoError, match="are the same recipe") as raised:
        ab("plain", "plain", machine=MACHINE, source="a-tree")
    assert "selftest" in raised.value.advice


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"memory": 512}, "unknown key `memory`"),
        ({"type": "qemo"}, "there is no type `qemo`"),
        ({"lane": "quick"}, "`lane`"),
        ({"type": ["qemu"]}, "there is no type"),
    ],
)
def test_settings_that_no_machine_has_are_refused_in_words(settings: dict[str, object], problem: str) -> None:
    with pytest.raises(KdynoError, match=problem):
        Machine(**settings)


def test_a_boot_returns_what_its_command_wrote_and_how_it_ended(here: Lab) -> None:
    here.recording.change("baseline", ran("6.12.1\n", status=3, stderr="oh\n"))
    console = here.recording.directory / "baseline" / "0" / "console.log"
    console.write_bytes(console.read_bytes() + b"\x1b[2Jhostile\n")
    kernel = here.directory / "bzImage"
    kernel.write_bytes(b"\0" * 0x202 + b"HdrS")
    result = Machine(type="fake", recording=here.recording.directory / "baseline").boot(kernel, ["uname", "-r"])
    assert (result.status, result.stdout, result.stderr) == (3, b"6.12.1\n", b"oh\n")
    assert result.console.startswith("reboot: Restarting system\n")
    assert "hostile" in result.console and "\x1b" not in result.console


def test_the_example_gate_fails_where_something_is_slower(here: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    here.recording.add("slow", slower("lat_pipe", 10))
    assert example("gate", here.experiment("slow")) == 1
    assert capsys.readouterr().out == "slow: lat_pipe: more +10.00%\n"
    here.recording.add("same")
    assert example("gate", here.experiment("same")) == 0


def test_importing_kdyno_imports_nothing_of_it_until_it_is_used() -> None:
    code = "import sys, kdyno; print([m for m in sys.modules if m.startswith('kdyno.') and m.count('.') > 1])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['kdyno.base.version']\n"


def test_the_example_compare_prints_each_verdict_and_writes_the_page(
    here: Lab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here.recording.add("plain")
    here.recording.add("opt-O3", slower("lat_pipe", 10))
    replayed = partial(kdyno.ab, machine=MACHINE, source="a-tree")
    monkeypatch.setattr("kdyno.cli.api.ab", replayed)
    capsys.readouterr()
    example("compare", "plain", "opt=O3")
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row for row in rows if row[-1] != "equivalent"] == [["lat_pipe", "+10.00%", "more"]]
    assert (here.directory / "compare.html").read_text().startswith("<!DOCTYPE html>")
