"""The summary of a run that ended, for a program that passes it on: `kdyno run --notify`."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import Literal

from kdyno.base.errors import KdynoError, UserError
from kdyno.base.frozen import Frozen
from kdyno.base.lanes import LaneName
from kdyno.base.process import attempt
from kdyno.base.text import clean, harmless_json
from kdyno.judge.stats.verdict import Verdict
from kdyno.judge.verdicts.model import RunReport
from kdyno.judge.verdicts.regression import Finding, find_regression
from kdyno.judge.verdicts.rows import mean_of
from kdyno.report.summary import summary_lines

SECONDS = 60.0
"""The time that the program has."""
SHOWN = 300
"""Characters of the program's messages that a warning quotes."""


class NotifierInvalid(UserError):
    message = "--notify names no program: {why}"
    hint = 'write the program and its arguments as one word: --notify "mail-it --to me"'


class NotifiedVariant(Frozen):
    """The result of a variant against the baseline."""

    variant: str
    verdicts: dict[Verdict, int]
    """The number of benchmarks by verdict."""
    not_compared: int
    mean: float | None
    """The geometric mean of the ratios of speeds: 1.02 is 2 % faster; None for one benchmark, or without one."""
    mean_verdict: Verdict | None
    summary: str
    """The same in one line."""


class Notification(Frozen):
    """The document that the program of `--notify` reads from its standard input."""

    v: Literal[1] = 1
    event: Literal["run-ended"] = "run-ended"
    run: str
    name: str
    lane: LaneName
    measured: str
    exit_code: int
    """The exit code of the command."""
    finding: Finding
    """What `--fail-on-regression` finds without names of benchmarks."""
    baseline: str
    margin: float
    variants: tuple[NotifiedVariant, ...]
    lost_boots: int
    notices: tuple[str, ...]


def read_notifier(text: str | None) -> list[str] | None:
    """Return the program and its arguments; None without a text. Raise NotifierInvalid."""
    if text is None:
        return None
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise NotifierInvalid(why=str(error).lower()) from None
    if not words:
        raise NotifierInvalid(why="it is empty")
    return words


def notification(report: RunReport, exit_code: int, lost_boots: int) -> Notification:
    """Return the summary of a run."""
    return Notification(
        run=report.run.id,
        name=report.title,
        lane=report.run.lane,
        measured=report.measured,
        exit_code=exit_code,
        finding=find_regression(report, []),
        baseline=report.baseline,
        margin=report.margin,
        variants=tuple(
            _variant(report, name, line) for name, line in zip(report.others, summary_lines(report), strict=True)
        ),
        lost_boots=lost_boots,
        notices=report.notices,
    )


def notify(command: list[str], summary: Notification) -> str | None:
    """Start the program with the summary on its standard input; return why it failed, or None.

    No shell is involved. Nothing that the program does is an error of kdyno.
    """
    document = harmless_json(summary.model_dump_json(indent=1)) + "\n"
    try:
        done = attempt(command, stdin=document, timeout=SECONDS)
    except (KdynoError, OSError) as error:
        return clean(str(error))
    if done.returncode:
        words = clean(done.stderr.strip() or done.stdout.strip())[-SHOWN:]
        return f"{clean(shlex.join(command))} ended with exit status {done.returncode}: {words or 'it printed nothing'}"
    return None


def _variant(report: RunReport, name: str, line: str) -> NotifiedVariant:
    verdicts = [comparison.verdict for comparison in report.comparisons if comparison.variant == name]
    mean = mean_of(report, name)
    return NotifiedVariant(
        variant=name,
        verdicts=dict(Counter(verdict for verdict in verdicts if verdict is not None)),
        not_compared=verdicts.count(None),
        mean=mean.estimate.ratio if mean and mean.estimate else None,
        mean_verdict=mean.verdict if mean else None,
        summary=line,
    )
