"""One number a line: the rest of a benchmark's output when everything else is cut away."""

from __future__ import annotations

import re

from kdyno.measure.readers import units
from kdyno.measure.readers.cells import cell_of
from kdyno.measure.readers.errors import BadValue, MixedUnits, TwoMarks
from kdyno.measure.readers.numerals import Decimal, decimal_of, is_missing
from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.sheet import is_number, last_place
from kdyno.measure.readers.source import FileSource
from kdyno.measure.readers.units import format_unit

TITLE = "one number a line"
NAME = "value"
LONGEST_LABEL = 200
"""Characters before a number that are compared."""


def recognises(source: FileSource, _request: JudgeRequest) -> bool:
    lines = _lines(source.head if len(source.data) < len(source.head) + 4 else source.head.rpartition("\n")[0])
    if not lines or not any(cell_of(text, ".") or cell_of(text, ",") for _, text in lines):
        return False
    if not all(is_missing(text) or is_number(text) or cell_of(text, ".") or cell_of(text, ",") for _, text in lines):
        return False
    return len({_label(text) for _, text in lines if not is_missing(text)}) < 2


def read(source: FileSource, request: JudgeRequest) -> ProgramOutput:
    """Read a value from every line. Raise BadValue, MixedUnits and TwoMarks."""
    lines = [(number, text) for number, text in _lines(source.text) if not is_missing(text)]
    decimal = Decimal(request.decimal) if request.decimal else decimal_of(text for _, text in lines)
    if decimal is None:
        raise TwoMarks(file=source.shown)
    values: list[str] = []
    unit = ""
    for number, text in lines:
        cell = cell_of(text, decimal.mark)
        if cell is None or cell.kind != "value" or cell.sd:
            raise BadValue(file=source.shown, line=number, column=NAME, value=text)
        unit = cell.unit if not values else unit
        factor = units.factor(cell.unit, unit)
        if factor is None:
            raise MixedUnits(benchmark=NAME, unit=unit, other=cell.unit)
        values.append(cell.mean if factor == 1 else f"{float(cell.mean) * factor:.9g}")
    missing = len(_lines(source.text)) - len(lines)
    notes = [f"lines without a number were left out: {missing}"] if missing else []
    if decimal.guessed_from:
        notes.append(
            f"{decimal.guessed_from} was read with a comma between thousands; --decimal , reads it the other way"
        )
    series = FileSeries(
        NAME,
        format_unit(unit) or request.unit,
        tuple(map(float, values)),
        step=max(map(last_place, values), default=0.0),
    )
    usable, unusable = positive([series] if values else [])
    return ProgramOutput(usable, (*notes, *unusable))


def _label(text: str) -> str:
    """Return what precedes a number, without its own numbers: `iteration 1:` and `iteration 2:` are alike, and
    `MemFree:` and `Cached:` are different measurements.
    """
    before, colon, _ = text.rpartition(":")
    return re.sub(r"\d+", "", before[:LONGEST_LABEL]) if colon else ""


def _lines(text: str) -> list[tuple[int, str]]:
    """Return (number of the line, its text) without blank lines and comments."""
    return [
        (number, line.strip())
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.startswith("#")
    ]
