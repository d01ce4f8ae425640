"""Reading KTAP in a console: the results of a kernel's KUnit suites.

The format is that of Documentation/dev-tools/ktap.rst of Linux 6.12; older kernels print TAP instead (`ok 1 - name`).
Other messages of the kernel may be between any two lines. A guest controls the text of a console, so the data read are
bounded, and the time is proportional to the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.base.text import clean

LONGEST_LINE = 1000
"""The most characters of a line; the rest is ignored."""
LONGEST_NAME = 200
MOST_NAMED = 100
"""The most failed tests to name; all are counted."""
INDENT = 4
"""The blanks per level: suites have none, their tests one step, the parameters of a test two."""
DEEPEST = 8
"""The most levels to read; KUnit has three."""

STAMP = re.compile(r"(?:\[ {0,12}\d{1,9}\.\d{6}\](?:\[ {0,9}[TC]\d{1,9}\])? ?)?( {0,40})(.*)", re.DOTALL)
"""A time and a thread, if the kernel is configured to print them; the indentation of a line; its text."""
START = re.compile(r"(?:KTAP version \d{1,9}|TAP version 14)$")
PLAN = re.compile(r"1\.\.(\d{1,9})$")
RESULT = re.compile(r"(not ok|ok) \d{1,9}(?: - |(?= #)| |$)(.*)$")
DIRECTIVE = re.compile(r"(?:^|.* )# (SKIP|TODO|XFAIL|TIMEOUT|ERROR)(?: |$)")
WHY = re.compile(r"# .{0,400}(?:EXPECTATION FAILED|ASSERTION FAILED|failed to initialize|try timed out).{0,400}$")

Outcome = Literal["passed", "failed", "skipped"]


class FailedTest(Frozen):
    """A failed test, or a suite that failed by itself."""

    suite: str
    test: str
    """The name of the test; empty for the suite."""
    why: str
    """The first message of the kernel; empty if there is none."""


class Ktap(Frozen):
    """The results of all suites. Tests are those of suites; the parameters of a test don't count."""

    suites: int
    passed: int
    failed: int
    skipped: int
    """With those that are expected to fail."""
    failures: tuple[FailedTest, ...]
    """The first MOST_NAMED failed tests."""
    fault: str
    """Why results are missing; empty if all are present."""

    @property
    def is_sound(self) -> bool:
        """Return whether all suites completed and none failed."""
        return not self.fault and not self.failures


@dataclass
class _Result:
    name: str
    outcome: Outcome
    why: str


@dataclass
class _Level:
    """The lines at one depth since the last result above it."""

    planned: int | None = None
    results: list[_Result] = field(default_factory=list)
    why: str = ""


def read_ktap(console: str) -> Ktap:
    """Read the results in a console after its first line of KTAP. Never raises."""
    suites, levels, began = _Suites(), [_Level() for _ in range(DEEPEST)], False
    for line in console.split("\n"):
        match = STAMP.match(line[:LONGEST_LINE].rstrip("\r"))
        assert match  # it matches any text
        depth, text = len(match[1]) // INDENT, match[2].rstrip()
        if depth >= DEEPEST:
            continue
        if START.match(text):
            began = True
        elif began:
            _take(text, depth, levels, suites)
    return suites.ended(levels, began=began)


def rest_of(console: str) -> str:
    """Return the text of a console after the last result of a suite; all of it if there is none."""
    lines = console.split("\n")
    for number in range(len(lines) - 1, -1, -1):
        match = STAMP.match(lines[number][:LONGEST_LINE].rstrip("\r"))
        assert match  # it matches any text
        if not match[1] and RESULT.match(match[2]):
            return "\n".join(lines[number + 1 :])
    return console


def _take(text: str, depth: int, levels: list[_Level], suites: _Suites) -> None:
    level = levels[depth]
    if plan := PLAN.match(text):
        level.planned = int(plan[1])
    elif WHY.match(text):
        level.why = level.why or clean(text.removeprefix("# "))[:LONGEST_NAME]
    elif result := RESULT.match(text):
        inside = levels[depth + 1] if depth + 1 < DEEPEST else _Level()
        levels[depth + 1 :] = [_Level() for _ in range(depth + 1, DEEPEST)]
        ended = _result(result[1], result[2], level.why or inside.why)
        level.why = ""
        if depth == 0:
            suites.add(ended, inside)
        elif depth == 1:
            level.results.append(ended)


def _result(word: str, rest: str, why: str) -> _Result:
    directive = DIRECTIVE.match(rest)
    name = clean(rest.partition("#")[0])[:LONGEST_NAME].strip()
    kind = directive[1] if directive else ""
    if kind in ("SKIP", "TODO", "XFAIL"):
        return _Result(name, "skipped", "")
    if word == "ok" and kind not in ("TIMEOUT", "ERROR"):
        return _Result(name, "passed", "")
    comment = clean(rest[rest.index("# ") :].removeprefix("# ")) if kind else ""
    return _Result(name, "failed", why.removeprefix(f"{name}: ") or comment[:LONGEST_NAME])


class _Suites:
    """All completed suites."""

    def __init__(self) -> None:
        self.number = 0
        self.outcomes: dict[Outcome, int] = {"passed": 0, "failed": 0, "skipped": 0}
        self.failures: list[FailedTest] = []
        self.last = ""

    def add(self, suite: _Result, inside: _Level) -> None:
        self.number += 1
        self.last = suite.name
        for test in inside.results:
            self.outcomes[test.outcome] += 1
            if test.outcome == "failed":
                self._fail(suite.name, test.name, test.why)
        if inside.planned is not None and len(inside.results) < inside.planned:
            self._fail(suite.name, "", f"{len(inside.results)} of its {inside.planned} tests have a result")
        elif suite.outcome == "failed" and not any(test.outcome == "failed" for test in inside.results):
            self._fail(suite.name, "", suite.why)

    def _fail(self, suite: str, test: str, why: str) -> None:
        if len(self.failures) < MOST_NAMED:
            self.failures.append(FailedTest(suite=suite, test=test, why=why))

    def ended(self, levels: list[_Level], *, began: bool) -> Ktap:
        planned = levels[0].planned
        fault = ""
        if not began:
            fault = "no suite ran"
        elif planned is None or self.number < planned:
            after = f", after {self.last}" if self.last else ""
            fault = f"{self.number} of {'?' if planned is None else planned} suites have a result{after}"
        return Ktap(
            suites=self.number,
            **self.outcomes,
            failures=tuple(self.failures),
            fault=fault,
        )
