"""`kdyno run --notify`: the program gets the summary, and nothing that it does changes the run."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import jsonschema
import pytest

from kdyno.cli.schemas import schema
from kdyno.report import notification
from tests.cli.conftest import Lab
from tests.cli.replay import slower


def python(code: str, *arguments: str) -> str:
    """The option's value: a program of Python."""
    return shlex.join([sys.executable, "-c", code, *arguments])


def test_the_program_reads_the_summary_as_its_schema_says(lab: Lab, tmp_path: Path) -> None:
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    out = tmp_path / "an odd name; $(touch x)"
    copy = python("import sys; open(sys.argv[1], 'w').write(sys.stdin.read())", str(out))
    result = lab("run", lab.experiment("slow"), "-q", "--notify", copy, "--fail-on-regression")
    assert (result.status, result.err) == (2, "")
    summary = json.loads(out.read_text())
    jsonschema.Draft202012Validator(schema("notification")).validate(summary)
    assert (summary["finding"], summary["exit_code"], summary["lost_boots"]) == ("regression", 2, 0)
    [variant] = summary["variants"]
    assert variant["verdicts"]["more"] == 1
    assert variant["summary"].startswith("slow (these images): 1 worse, ")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (python("import sys; sys.exit('no \\x1b[2Jroute')"), "ended with exit status 1: no route"),
        ("/no/such/program", "/no/such/program"),
    ],
)
def test_a_program_that_fails_is_reported_and_changes_no_exit_code(lab: Lab, command: str, reason: str) -> None:
    lab.recording.add("same")
    result = lab("run", lab.experiment("same"), "-q", "--notify", command)
    assert result.status == 0
    assert "nobody was notified: " in result.err and reason in result.err
    assert "equivalent" in result.out


def test_a_program_has_a_time_limit(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.recording.add("same")
    monkeypatch.setattr(notification, "SECONDS", 0.2)
    result = lab("run", lab.experiment("same"), "-q", "--notify", python("import time; time.sleep(600)"))
    assert result.status == 0
    assert "did not end within 0.2 s" in result.err


@pytest.mark.parametrize(("text", "reason"), [("", "it is empty"), ("'open", "no closing quotation")])
def test_an_option_that_names_no_program_is_refused_before_the_first_boot(lab: Lab, text: str, reason: str) -> None:
    lab.recording.add("same")
    result = lab("run", lab.experiment("same"), "-q", "--notify", text)
    assert result.status == 1
    assert reason in result.err
    assert not lab.state.exists()
