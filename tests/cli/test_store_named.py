"""Which store a command takes: named on the command line, in the environment, or none; and what of it is on record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Lab
from tests.unit import pmu_specimen


def test_a_store_is_named_on_the_command_line_else_in_the_environment_else_it_is_that_of_the_state(lab: Lab) -> None:
    experiment, named = lab.experiment(), f"sqlite:///{lab.directory / 'named.sqlite'}"
    lab.patch.setenv("KDYNO_STORE", named)
    assert lab("run", experiment, "-q").status == 0
    assert (lab.directory / "named.sqlite").is_file()
    assert not (lab.state / "store.sqlite").exists()
    assert "complete" in lab("runs").out
    lab.patch.setenv("KDYNO_STORE", "")
    assert "no runs yet" in lab("runs").out
    assert (lab.state / "store.sqlite").is_file()


@pytest.mark.parametrize("how", ["option", "environment"])
def test_a_file_may_hold_the_url_so_that_no_list_of_processes_shows_it(lab: Lab, how: str) -> None:
    file = lab.directory / "store.url"
    file.write_text(f"sqlite:///{lab.directory / 'named.sqlite'}\n")
    if how == "environment":
        lab.patch.setenv("KDYNO_STORE", f"@{file}")
    assert lab("run", lab.experiment(), "-q", *(["--store", f"@{file}"] if how == "option" else [])).status == 0
    assert (lab.directory / "named.sqlite").is_file()


@pytest.mark.parametrize(
    "words",
    [
        *(["runs"], ["show", "latest"], ["report", "latest"], ["compare", "latest"], ["scaling", "latest"]),
        *(["selftest"], ["store", "gc", "--yes"], ["store", "gc", "--dry-run"], ["store", "rm", "latest", "--yes"]),
        *(["store", "export", "latest", "run.kdyno"], ["store", "gc", "--also", "{store}"]),
        *(["explain", "latest", "O3", "lat_syscall.null"], ["coverage", "latest"], ["coverage", "a", "b", "--diff"]),
    ],
    ids=" ".join,
)
def test_a_mistyped_store_is_refused_and_not_made_by_whatever_only_reads_it(lab: Lab, words: list[str]) -> None:
    typo = lab.directory / "typo.sqlite"
    store = f"sqlite:///{typo}"
    named = ["--store", store] if "--also" not in words else []
    result = lab(*(word.format(store=store) for word in words), *named)
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith(f"kdyno: there is no store {typo}\nhint: ")
    assert [path.name for path in lab.directory.glob("*typo*")] == []


def test_a_plan_takes_a_store_that_is_not_there_for_an_empty_one_and_does_not_make_it(lab: Lab) -> None:
    experiment, named = lab.experiment(), lab.directory / "named.sqlite"
    before = lab("plan", experiment, "--json", "--store", f"sqlite:///{named}")
    assert before.status == 0 and json.loads(before.out)["boots_done"] == 0
    for mode in ("ro", "rw"):
        assert lab("plan", experiment, "--store", f"sqlite:///{named}?mode={mode}").status == 0
    assert [path.name for path in lab.directory.glob("*named*")] == []
    assert lab("run", experiment, "-q", "--store", f"sqlite:///{named}").status == 0
    kept = named.read_bytes()
    after = lab("plan", experiment, "--json", "--store", f"sqlite:///{named}")
    assert json.loads(after.out)["boots_done"] == len(json.loads(before.out)["boots"])
    assert named.read_bytes() == kept


def test_coverage_of_a_record_makes_no_store(lab: Lab) -> None:
    record, named = lab.directory / "r.kpmu", lab.directory / "named.sqlite"
    record.write_bytes(pmu_specimen.encode(pmu_specimen.specimen()))
    assert "no image with the vmlinux" in lab("coverage", str(record), "--store", f"sqlite:///{named}").err
    assert not named.exists()


@pytest.mark.parametrize("is_there", [True, False], ids=["foreign", "missing"])
def test_gc_of_a_directory_that_is_no_state_directory_says_so(lab: Lab, is_there: bool) -> None:
    foreign, store = lab.directory / "foreign", f"sqlite:///{lab.directory / 'named.sqlite'}"
    assert lab("run", lab.experiment(), "-q", "--store", store).status == 0
    if is_there:
        (foreign / "artefacts").mkdir(parents=True)
    for words in (["--dry-run"], ["--yes"]):
        result = lab("store", "gc", *words, "--state", str(foreign), "--store", store)
        assert (result.status, result.out) == (1, "")
        assert result.err.startswith(f"kdyno: {foreign} is not a state directory of kdyno: nothing was removed\nhint: ")
    assert [path.name for path in foreign.rglob("*")] == ["artefacts"] * is_there


@pytest.mark.parametrize("url", ["postgresql://kdyno:hush@h:port/db", "postgresql://kdyno:hush@127.0.0.1:1/db"])
def test_a_password_is_said_by_no_verb_however_much_is_said(lab: Lab, url: str) -> None:
    for words in (["runs"], ["show", "latest", "-v"], ["run", lab.experiment(), "-v"], ["selftest", "-v"]):
        lab.patch.setenv("KDYNO_STORE", url)
        result = lab(*words)
        assert result.status in (1, 3)
        assert "kdyno: " in result.err
        assert "hush" not in result.out + result.err


def test_where_a_run_is_kept_is_not_on_record(lab: Lab) -> None:
    place = lab.directory / "a-name-of-its-own.sqlite"
    store = ["--store", f"sqlite:///{place}"]
    assert lab("run", lab.experiment(), "-q", *store, "--html", str(lab.directory / "page.html")).status == 0
    for words in (
        ["show", "latest"],
        ["show", "latest", "--json"],
        ["show", "latest", "--reproduce"],
        ["report", "latest"],
    ):
        result = lab(*words, *store)
        assert result.status == 0
        assert "a-name-of-its-own" not in result.out + result.err
    assert "a-name-of-its-own" not in Path(lab.directory / "page.html").read_text()


def test_a_state_directory_may_have_a_name_that_looks_like_a_url(lab: Lab) -> None:
    state = lab.directory / "50%20?mode=ro#"
    assert lab("runs", "--state", str(state)).status == 0
    assert (state / "store.sqlite").is_file()
