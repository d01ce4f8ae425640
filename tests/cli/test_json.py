"""What verbs print with --json of runs that were carried out: it obeys the schema that `kdyno schema` prints."""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections.abc import Iterator

import jsonschema
import pytest

from kdyno.cli.main import make_parser
from kdyno.cli.schemas import FORMATS, schema
from kdyno.cli.verbs import VERBS
from tests.cli.conftest import Lab
from tests.cli.replay import slower


@pytest.mark.parametrize("words", [["latest"], ["latest", "--baseline", "slow"], ["latest", "latest"]])
def test_comparisons_obey_their_schema(lab: Lab, words: list[str]) -> None:
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    assert lab("run", lab.experiment("slow"), "-q").status == 0
    reports = json.loads(lab("compare", *words, "--json").out)
    jsonschema.Draft202012Validator(schema("compare")).validate(reports)
    assert reports


def test_a_self_test_obeys_its_schema(lab: Lab) -> None:
    for file in (lab.recording.directory / "baseline" / "0").iterdir():
        shutil.copy(file, lab.recording.directory)  # whatever boots, it measures the same
    result = lab("selftest", "--aa", lab.experiment(), "--experiments", "20", "--blocks", "3", "--json", "-q")
    (selftest,) = json.loads(result.out)
    jsonschema.Draft202012Validator(schema("selftest")).validate([selftest])
    assert selftest["experiments"] == 20


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["plan", "EXPERIMENT", "--json"], "plan"),
        (["runs", "--json"], "runs"),
        (["show", "latest", "--json"], "show"),
        (["report", "latest", "--json"], "report"),
    ],
)
def test_plans_and_what_is_on_record_obey_their_schemas(lab: Lab, words: list[str], name: str) -> None:
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    experiment = lab.experiment("slow")
    lab("run", experiment, "-q")
    printed = json.loads(lab(*(experiment if word == "EXPERIMENT" else word for word in words)).out)
    jsonschema.Draft202012Validator(schema(name)).validate(printed)
    assert printed


def commands_with_json(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command that has the option --json."""
    for action in parser._actions:
        if "--json" in action.option_strings:
            yield words
        elif isinstance(action.choices, dict):
            for name, sub in action.choices.items():
                yield from commands_with_json(sub, (*words, name))


def test_every_command_with_json_has_a_schema() -> None:
    documented = [command for row in FORMATS.values() for command in re.findall(r"`(kdyno [^`]*--json)`", row.what)]
    commands = [" ".join(words) for words in commands_with_json(make_parser(VERBS), ("kdyno",))]
    assert len(commands) > 30
    assert [one for one in commands if not any(what.startswith(f"{one} ") for what in documented)] == []


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["plan", "nowhere.toml", "--json"], 1, "the experiment nowhere.toml cannot be read"),
        (["report", "nothing", "--json", "-q"], 1, "there is nothing called nothing"),
        (["plan", "--json"], 1, "the following arguments are required: experiment"),
        (["run", "nowhere.toml", "--json", "--fail-on-regression"], 129, "the experiment nowhere.toml cannot be read"),
    ],
)
def test_a_command_that_fails_prints_its_message_as_json(lab: Lab, words: list[str], status: int, told: str) -> None:
    result = lab(*words)
    failed = json.loads(result.out)
    jsonschema.Draft202012Validator(schema("error")).validate(failed)
    assert told in failed["error"]["message"]
    assert (result.status, failed["error"]["exit_code"]) == (status, status)
    assert told in result.err


def test_standard_output_is_empty_if_a_command_fails_without_json(lab: Lab) -> None:
    assert lab("plan", "nowhere.toml").out == ""


def test_json_after_two_dashes_belongs_to_a_command_in_the_guest(lab: Lab) -> None:
    assert lab("boot", "nowhere", "--", "tool", "--json").out == ""
