"""What verbs print with --json of runs that were carried out: it obeys the schema that `kdyno schema` prints."""

from __future__ import annotations

import json
import shutil

import jsonschema
import pytest

from kdyno.cli.schemas import schema
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
