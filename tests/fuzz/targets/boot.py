"""Readers of foreign bytes: consoles, KTAP, and the journal of the host's knobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kdyno.base.state import State
from kdyno.boot.console import MOST_FINDINGS, diagnose, read_console, warnings_of
from kdyno.boot.console import findings as console_findings
from kdyno.boot.host.journal import Journal, read_journal
from kdyno.boot.host.knobs import owner_of
from kdyno.boot.ktap import read_ktap, rest_of
from tests.fuzz.check import Target
from tests.fuzz.inputs import DATA, files, is_shown_as_it_is


def console(path: Path) -> None:
    text = read_console(path)
    reason = diagnose(text)
    assert reason is None or (is_shown_as_it_is(reason) and "\n" not in reason and len(reason) < 400)
    listed = console_findings(rest_of(text))
    assert len(listed) <= MOST_FINDINGS + 1
    assert all(is_shown_as_it_is(finding.text) and "\n" not in finding.text for finding in listed)


def ktap(path: Path) -> None:
    result = read_ktap(read_console(path))
    assert all(is_shown_as_it_is(f"{failure.suite}{failure.test}{failure.why}") for failure in result.failures)
    assert all(is_shown_as_it_is(warning) for warning in warnings_of(read_console(path)))


def console_words() -> Sequence[bytes]:
    return (
        b"INFO: task ", b" blocked for more than 120 seconds.", b"rcu: INFO: ", b" self-detected stall", b"Oops: ",
        b"kernel BUG at ", b"Kernel panic - not syncing: ", b"Out of memory: Killed process 1", b"\nkdyno-agent: ",
        b"watchdog: BUG: soft lockup", b"BUG: kernel NULL pointer", b"Unable to mount root fs on ",
        b"INFO: task " * 300,
    )  # fmt: skip


def journal(path: Path) -> None:
    read = read_journal(State(path.parent))
    for name, value in read.values.items() if read else ():
        assert owner_of(name) and ".." not in Path(name).parts
        assert is_shown_as_it_is(value) and "\n" not in value and len(value) < 5000


def journals() -> Sequence[bytes]:
    values = {"sys/devices/system/cpu/intel_pstate/no_turbo": "0", "proc/sys/kernel/randomize_va_space": "1"}
    return [Journal(boot_id="5b4a", values=values).model_dump_json().encode()]


TARGETS = (
    Target("console", console, files(*sorted((DATA / "consoles").glob("*.log"))), console_words()),
    Target("ktap", ktap, files(DATA / "kunit" / "console.log"), (b"not ok 1 a # SKIP", b"KTAP version 1\n1..3")),
    Target("journal", journal, journals, file="host-knobs.json"),
)  # fmt: skip
