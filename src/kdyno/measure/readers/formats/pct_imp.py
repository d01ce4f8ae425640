"""Comparisons as in mails about the scheduler: `1-groups     1.00 [ -0.00]( 2.08)     0.99 [  0.84]( 2.86)`.

A cell is a ratio to the first kernel, the improvement in percent, and the coefficient of variation in percent. Above
each table are its test, unit, better direction and statistic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kdyno.base.measurement import Direction
from kdyno.measure.readers.errors import Broken
from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive
from kdyno.measure.readers.source import FileSource

TITLE = "a comparison with `[pct imp](CV)`"
_HEAD = re.compile(r"\[pct imp\] ?\(CV\)")
_FACT = re.compile(r"^ ?(?P<key>Test|Interpretation|Statistic) *: *(?P<text>\S[^\r\n]{0,99})")
_CELL = re.compile(r"(?<![\d.])(?P<value>\d+\.\d+) +\[ *(?P<change>-?\d+\.\d+)\] ?\( *(?P<cv>\d+\.\d+)\)")
_DIRECTIONS: dict[str, Direction] = {"lower": "lower", "higher": "higher"}
_MEANS = ("amean", "hmean", "gmean", "mean")
_PRECISE = 1e-4
"""The step of a ratio that follows from an improvement with two decimals."""
_ROUNDED = 0.01
LINE_LENGTH = 1000


@dataclass
class _Facts:
    """What is above a table."""

    test: str = ""
    direction: Direction | None = None
    statistic: str = ""
    variants: Sequence[str] = field(default_factory=tuple)

    @property
    def is_of_means(self) -> bool:
        return not self.statistic or self.statistic.lower() in _MEANS


def recognises(source: FileSource) -> bool:
    return bool(_HEAD.search(source.head))


def read(source: FileSource) -> ProgramOutput:
    """Read every cell of tables of means, with its coefficient of variation. Raise Broken."""
    facts, left_out = _Facts(), dict[str, None]()
    series: list[FileSeries] = []
    for number, line in enumerate((line[:LINE_LENGTH] for line in source.text.splitlines()), 1):
        if match := _FACT.search(line):
            facts = _with_fact(facts, match["key"], match["text"].strip())
        elif _HEAD.search(line):
            facts.variants = _names(line)
        elif cells := list(_CELL.finditer(line)):
            if not facts.is_of_means:
                left_out[f"{facts.test} ({facts.statistic})".strip()] = None
                continue
            if len(cells) != len(facts.variants):
                why = f"line {number} has {len(cells)} values, and {len(facts.variants)} names are above it"
                raise Broken(file=source.shown, format=TITLE, why=why)
            label = " ".join([facts.test, *line[: cells[0].start()].split()]).strip()
            series.extend(_series_of(label, cells, facts))
    if not series:
        why = "none of its tables is of means" if left_out else "it has no row of values"
        raise Broken(file=source.shown, format=TITLE, why=why)
    if len({one.variant for one in series}) == 1 and all(one.values == (1.0,) for one in series):
        why = f"it has only {series[0].variant}, as ratios to itself"
        raise Broken(file=source.shown, format=TITLE, why=why)
    usable, notes = positive(series)
    if left_out:
        notes = (*notes, f"tables that weren't read, since they are not of means: {', '.join(left_out)}")
    return ProgramOutput(usable, notes)


def _with_fact(facts: _Facts, key: str, text: str) -> _Facts:
    """Return the facts with one more; the name of a test begins those of another table."""
    if key == "Test":
        return _Facts(test=text)
    if key == "Statistic":
        facts.statistic = text
    else:
        facts.direction = _DIRECTIONS.get(text.split(maxsplit=1)[0].lower())
    return facts


def _names(line: str) -> list[str]:
    """Return the names before each `[pct imp](CV)`; what is before the first one ends with a colon or blanks."""
    first, *others = _HEAD.split(line)[:-1]
    name = re.split(r":|\s{2,}", first.strip())[-1]
    return [part.strip() for part in (name.rpartition(" ")[2], *others)]


def _series_of(label: str, cells: Sequence[re.Match[str]], facts: _Facts) -> Iterator[FileSeries]:
    for variant, cell in zip(facts.variants, cells, strict=True):
        value, step = _ratio(cell, facts.direction)
        sd = float(cell["cv"]) / 100
        yield FileSeries(label, "", (value,), sd=sd, direction=facts.direction, variant=variant, step=step)


def _ratio(cell: re.Match[str], direction: Direction | None) -> tuple[float, float]:
    """Return (the ratio, the step that it is rounded to): by the improvement, which is written more precisely, if the
    two agree.
    """
    value, change = float(cell["value"]), float(cell["change"]) / 100
    precise = 1 + change if direction == "higher" else 1 - change
    if direction and precise > 0 and abs(precise - value) <= _ROUNDED / 2 + _PRECISE:
        return precise, _PRECISE
    return value, _ROUNDED
