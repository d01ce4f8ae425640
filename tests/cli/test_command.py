"""The command itself: its pipes, its completion, its schemas, the experiments that come with it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from kdyno.cli.schema import FORMATS
from kdyno.cli.schemas import schema
from kdyno.cli.verbs import VERBS
from kdyno.run.experiment.resolve import load_experiment
from tests.cli.conftest import Lab
from tests.cli.replay import slower

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("*.toml")), ids=lambda path: path.stem)
def test_every_experiment_that_comes_with_kdyno_is_one(path: Path) -> None:
    assert load_experiment(path).baseline


@pytest.mark.parametrize("name", FORMATS)
def test_the_frozen_schemas_are_those_of_the_code(name: str) -> None:
    frozen = json.loads((ROOT / "schemas" / f"{name}.json").read_text())
    assert frozen == schema(name), "if it should differ: tools/check-docs --write"
    jsonschema.Draft202012Validator.check_schema(frozen)


def test_no_schema_is_left_of_a_format_that_is_gone() -> None:
    assert sorted(path.stem for path in (ROOT / "schemas").glob("*.json")) == sorted(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_schemas_are_printed(lab: Lab, name: str) -> None:
    assert json.loads(lab("schema", name).out) == schema(name)


def test_recorded_streams_are_valid_records(data: Path) -> None:
    validator = jsonschema.Draft202012Validator(schema("record"))
    for line in (data / "recording" / "baseline" / "0" / "stream.jsonl").read_text().splitlines():
        validator.validate(json.loads(line))


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(lab: Lab, verb: str) -> None:
    result = lab(verb, "--help")
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith(f"usage: kdyno {verb}")


def test_the_completion_for_bash_is_bash(lab: Lab) -> None:
    script = lab("completion", "bash").out
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(verb in script for verb in VERBS)


def test_what_the_doctor_finds_is_json(lab: Lab) -> None:
    result = lab("doctor", "--json")
    findings = json.loads(result.out)
    missing = [finding["name"] for finding in findings if finding["status"] == "missing"]
    assert result.status == (3 if missing else 0)
    assert {"make", "kdyno-agent", "KVM", "disk"} <= {finding["name"] for finding in findings}


def test_a_bare_kdyno_says_what_to_do_first(lab: Lab) -> None:
    result = lab()
    assert (result.status, result.out) == (1, "")
    first = [line.split()[:2] for line in result.err.splitlines() if line.startswith("    kdyno")]
    assert first == [["kdyno", "doctor"], ["kdyno", "init"], ["kdyno", "run"]]


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        ["lint"],
        ["run"],
        ["run", "x.toml", "--", "true"],
        ["show", "x", "--reproduce", "--json"],
        ["boot", "x", "--cpus", "0"],
        ["boot", "x", "--memory", "1"],
        ["boot", "x", "--seed", "-1"],
        ["boot", "x", "--limit", "nan"],
        ["boot", "nowhere", "--", "true"],
        ["run", "nowhere.toml"],
        ["runs", "--store", "mysql://x"],
    ],
)
def test_bad_usage_is_exit_code_1_and_one_message(lab: Lab, words: list[str]) -> None:
    result = lab(*words)
    assert (result.status, result.out) == (1, "")
    assert "kdyno" in result.err.splitlines()[-1] or "hint: " in result.err.splitlines()[-1]


def test_a_state_directory_that_cannot_be_is_exit_code_3(lab: Lab) -> None:
    (lab.directory / "file").write_text("")
    result = lab("runs", "--state", str(lab.directory / "file" / "state"))
    assert result.status == 3
    assert "can't write to the state directory" in result.err


def test_a_pipe_gets_no_escape_codes(lab: Lab) -> None:
    experiment = lab.experiment()
    for words in (["run", experiment], ["report", "latest"], ["show", "latest"], ["--help"], ["plan", experiment]):
        child = lab.start(*words)
        out, err = child.communicate(timeout=60)
        assert child.returncode == 0
        assert "\x1b" not in out + err


@pytest.mark.parametrize("form", [[], ["--csv"], ["--json"]])
def test_a_reader_that_goes_away_is_no_error(lab: Lab, form: list[str]) -> None:
    """The reader is gone before the first byte, whether that overflows Python's buffer or not."""
    assert lab("run", lab.experiment(), "-q").status == 0
    for words in (["report", "latest", *form], ["runs"]):
        assert unread(lab, *words) == (0, "")


def unread(lab: Lab, *words: str) -> tuple[int, str]:
    """Exit status and standard error of a command whose standard output nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "kdyno", *words]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, env=lab.environment, check=False)
    os.close(writer)
    return done.returncode, done.stderr


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_regression_is_exit_code_2_even_if_nobody_reads_the_report(lab: Lab, form: list[str]) -> None:
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    assert unread(lab, "run", lab.experiment("slow"), "-q", "--fail-on-regression", *form) == (2, "")


def test_head_ends_a_long_report_silently(lab: Lab) -> None:
    assert lab("run", lab.experiment(), "-q").status == 0
    command = f"set -o pipefail; {shlex.quote(sys.executable)} -m kdyno report latest --csv | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=lab.environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("run,variant,block")


@pytest.mark.parametrize("buffered", ["", "1"])
def test_output_that_cannot_be_written_is_exit_code_3(lab: Lab, buffered: str) -> None:
    environment = {**lab.environment, "PYTHONUNBUFFERED": buffered}
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "kdyno", "runs"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    assert done.returncode == 3
    assert "standard output" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_standard_output_at_all_is_no_error(lab: Lab) -> None:
    command = f"{shlex.quote(sys.executable)} -m kdyno runs >&-"
    done = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, text=True, env=lab.environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
