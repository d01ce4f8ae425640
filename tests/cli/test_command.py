"""The command itself: its pipes, its completion, its schemas, the experiments that come with it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest
from referencing import Registry
from referencing.jsonschema import DRAFT202012
from schema_files import SCHEMAS, schema_files

from kdyno.cli.main import parse_words
from kdyno.cli.schemas import FORMATS, ROOMS, schema
from kdyno.cli.topics import EXAMPLES
from kdyno.cli.verbs import VERBS
from kdyno.runs.experiment.resolve import load_experiment
from tests.cli.conftest import Lab
from tests.cli.replay import slower

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("*.toml")), ids=lambda path: path.stem)
def test_every_experiment_that_comes_with_kdyno_is_one(path: Path) -> None:
    assert load_experiment(path).baseline


@pytest.fixture(scope="module")
def frozen() -> dict[str, Any]:
    return {path.name: json.loads(path.read_text()) for path in SCHEMAS.glob("*.json")}


def test_the_frozen_schemas_are_those_of_the_code(frozen: dict[str, Any]) -> None:
    now = {f"{name}.json": file for name, file in schema_files().items()}
    assert frozen == now, "if they should differ: tools/check-docs --write"
    assert set(now) == {f"{name}.json" for name in (*FORMATS, "defs")}


@pytest.mark.parametrize("name", FORMATS)
def test_a_frozen_schema_with_those_that_it_refers_to_is_the_one_that_is_printed(
    name: str, frozen: dict[str, Any]
) -> None:
    whole = schema(name)
    jsonschema.Draft202012Validator.check_schema(whole)
    one = Unfolded.of(frozen[f"{name}.json"], f"{name}.json", frozen)
    other = Unfolded.of(whole, "", {"": whole})
    assert_alike(one, other, set())


class Unfolded(NamedTuple):
    """A part of a schema, with what it refers to in its place."""

    value: Any
    file: str
    """Where references without a file lead."""
    files: dict[str, Any]

    @classmethod
    def of(cls, value: Any, file: str, files: dict[str, Any]) -> Unfolded:
        while isinstance(value, dict) and "$ref" in value:
            other, _, name = value["$ref"].partition("#/$defs/")
            file = other or file
            value = files[file]["$defs"][name] | {key: part for key, part in value.items() if key != "$ref"}
        return cls(value, file, files)

    def parts(self) -> dict[Any, Unfolded]:
        pairs = self.value.items() if isinstance(self.value, dict) else enumerate(self.value)
        return {key: Unfolded.of(part, self.file, self.files) for key, part in pairs}


def assert_alike(one: Unfolded, other: Unfolded, seen: set[tuple[str, str]]) -> None:
    """What they say is the same; `seen` ends what refers to itself. Only the first title tells them apart."""
    if not isinstance(one.value, dict | list):
        assert one.value == other.value
        return
    pair = (one.file + json.dumps(one.value), json.dumps(other.value))
    if pair in seen:
        return
    unsaid = set() if seen else {"$schema", "$defs", "title"}
    seen.add(pair)
    parts, others = one.parts(), other.parts()
    assert parts.keys() - unsaid == others.keys() - unsaid
    for key in parts.keys() - unsaid:
        assert_alike(parts[key], others[key], seen)


def test_a_validator_that_has_the_files_says_of_every_experiment_what_one_with_the_printed_schema_says(
    frozen: dict[str, Any],
) -> None:
    files = Registry().with_contents(frozen.items(), default_specification=DRAFT202012)
    ours = jsonschema.Draft202012Validator(frozen["experiment.json"], registry=files)
    printed = jsonschema.Draft202012Validator(schema("experiment"))
    experiments = [tomllib.loads(path.read_text()) for path in (ROOT / "experiments").glob("*.toml")]
    verdicts = [ours.is_valid(experiment) for experiment in (*experiments, {"variants": {"a": {"opt": "O9"}}})]
    assert verdicts == [*map(printed.is_valid, experiments), False]
    assert any(verdicts)


def test_a_format_is_declared_by_one_room() -> None:
    assert sum(map(len, ROOMS)) == len(FORMATS)


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


@pytest.mark.parametrize(
    ("topic", "told"),
    [
        ([], "  exit-codes    the exit codes of all verbs"),
        (["exit-codes"], "  130\n      interrupted by Ctrl-C: finished work is kept"),
        (["environment"], "  KDYNO_STATE\n"),
        (["run"], "usage: kdyno run"),
    ],
)
def test_help_prints_topics_and_the_help_of_verbs(lab: Lab, topic: list[str], told: str) -> None:
    result = lab("help", *topic)
    assert (result.status, result.err) == (0, "")
    assert told in result.out


def test_the_examples_of_the_help_are_commands() -> None:
    for example in EXAMPLES:
        parse_words(shlex.split(example)[1:])


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_the_completion_for_a_shell_is_a_script_of_that_shell(lab: Lab, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = lab("completion", shell).out
    done = subprocess.run(
        [shell, "--no-execute" if shell == "fish" else "-n"], input=script, capture_output=True, text=True, check=False
    )
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
        ["show", "x", "--reproduce", "--console", "plain/1"],
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
