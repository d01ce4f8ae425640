"""Programs that print a measurement a line: one reader for all of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kdyno.base.measurement import Direction
from kdyno.measure.readers.cells import cell_of
from kdyno.measure.readers.errors import TooLarge, TwoMarks
from kdyno.measure.readers.numerals import Mark, decimal_of, seconds_of_clock
from kdyno.measure.readers.readings import ProgramOutput, positive, printed_series
from kdyno.measure.readers.source import FileSource
from kdyno.measure.readers.units import format_unit

_V = r"(?P<value>\d+(?:,\d{3})*(?:\.\d+)?)"
_LINE_END = re.compile(r"[\r\n]+")
LONGEST_LINE = 300
"""Characters of a line that are used."""
MOST_LINES = 50_000


@dataclass(frozen=True)
class Line:
    """A line with a measurement: the group `value`, and `name` and `unit` if the line has them."""

    pattern: re.Pattern[str]
    unit: str = ""
    direction: Direction | None = None
    name: str = ""
    """What follows the group `name` in the benchmark's name."""


@dataclass(frozen=True)
class PrintedProgram:
    """The output of a program."""

    name: str
    """The name for `--format`, and of its benchmarks."""
    sign: re.Pattern[str]
    """A pattern that its output has near the beginning."""
    excerpt: str
    measures: tuple[tuple[Line, ...], ...]
    """Each item is one measurement in several forms, of which the first one found is read."""
    start: re.Pattern[str] | None = None
    """The line that a run begins with."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Pattern of a line -> the form of its groups in the benchmark's name: the circumstances of the measurement."""

    @property
    def title(self) -> str:
        return f"{self.name} output"

    def recognises(self, source: FileSource) -> bool:
        return bool(self.sign.search(source.head))

    def read(self, source: FileSource) -> ProgramOutput:
        """Read a value from every run, for the benchmark that its circumstances name. Raise TwoMarks."""
        matches = [
            (named, line, match) for named, run in self._runs(source) for line, match in self._match_measures(run)
        ]
        decimal = decimal_of(match["value"] for _, _, match in matches)
        if decimal is None:
            raise TwoMarks(file=source.shown)
        values: dict[tuple[str, str, Direction | None], list[str]] = defaultdict(list)
        for named, line, match in matches:
            groups = match.groupdict()
            own = " ".join([*(groups.get("name") or "").split(), line.name])
            unit = format_unit((groups.get("unit") or line.unit).strip())
            benchmark = ", ".join(filter(None, (f"{self.name} {own}".strip(), *named)))
            if number := _number(match["value"], decimal.mark):
                values[benchmark, unit, line.direction].append(number)
        series = [printed_series(name, unit, texts, direction) for (name, unit, direction), texts in values.items()]
        usable, notes = positive(series)
        if unclear := decimal.guessed_from:
            notes = (*notes, f"{unclear} was read with a comma between thousands")
        return ProgramOutput(usable, notes)

    def _runs(self, source: FileSource) -> Iterator[tuple[tuple[str, ...], list[str]]]:
        """Yield the lines of each run, with the circumstances that precede them."""
        facts: dict[str, str] = {}
        lines: list[str] = []
        patterns = {re.compile(pattern): template for pattern, template in self.facts.items()}
        all_lines = _shown_lines(source.text)
        if len(all_lines) > MOST_LINES:
            raise TooLarge(file=source.shown, most=MOST_LINES, what=f"lines of {self.title}")
        for line in all_lines:
            cut = line[:LONGEST_LINE]
            begins = bool(self.start and self.start.search(cut))
            own = {
                known.pattern: match.expand(template)
                for known, template in patterns.items()
                if (match := known.search(cut))
            }
            if (begins or own) and any(
                line.pattern.search(text) for ways in self.measures for line in ways for text in lines
            ):
                yield tuple(facts.values()), lines
                lines = []
            if begins:
                facts = {}
            facts |= own
            lines.append(cut)
        yield tuple(facts.values()), lines

    def _match_measures(self, run: list[str]) -> Iterator[tuple[Line, re.Match[str]]]:
        for ways in self.measures:
            for line in ways:
                matches = [match for text in run if (match := line.pattern.search(text))]
                if matches:
                    yield from ((line, match) for match in matches)
                    break


def _shown_lines(text: str) -> list[str]:
    """Return the lines that a terminal shows: progress is written over, from the start of its line."""
    if "\n" not in text:
        return _LINE_END.split(text)
    return [_overwritten(line) if "\r" in line else line for line in text.split("\n") if line]


def _overwritten(line: str) -> str:
    """Return what is left of a line after all that was written over its start; at most LONGEST_LINE characters."""
    shown = ""
    for part in line.split("\r"):
        shown = part[:LONGEST_LINE] + shown[len(part) :]
    return shown


def _number(text: str, mark: Mark) -> str:
    """Return a number, or a duration in seconds, with a decimal point; empty for any other text."""
    if clock := seconds_of_clock(text):
        return clock
    cell = cell_of(text, mark)
    return cell.mean if cell else ""


def printed_line(pattern: str, unit: str = "", direction: Direction | None = None, name: str = "") -> Line:
    return Line(re.compile(pattern.replace("VALUE", _V)), unit, direction, name)
