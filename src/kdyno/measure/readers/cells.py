"""Cells of published tables: `79.8 (0.1)`, `5.84s ± 0.03s`, `513,595 ±  2%`, `1.03x`, `+2.3 %`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from kdyno.measure.readers import units
from kdyno.measure.readers.numerals import NUMBER, Mark, plain, seconds_of_clock, seconds_of_duration, tidy
from kdyno.measure.readers.sheet import is_written_number

Kind = Literal["value", "change", "ratio"]
_UNIT = r"(?:%|[^\W\d_][^\s\d()±|+,;*†]*+(?: [^\W\d_][^\s\d()±|+,;*†]*+)?+)"
_PLUS_MINUS = r"(?:±|\+/-|\+-|\\pm)"
_MARKS = "*†✅✔✓⭐🏆🥇🥈🥉\ufe0f"
"""Signs behind a number: a footnote, a winner."""
_SHAPE = re.compile(
    rf"(?P<mean>{NUMBER}) ?(?P<unit>{_UNIT}|[×x](?![a-z]))?(?P<per>/\w+)? ?"
    rf"(?:{_PLUS_MINUS} ?(?P<spread>{NUMBER}) ?(?P<spread_unit>{_UNIT})?|[(\[](?P<inner>[^()\[\]]*+)[)\]])?"
    rf" ?[{_MARKS}]*"
)
_INNER = re.compile(rf"(?P<sign>{_PLUS_MINUS}|(?:sd|σ|std|stddev)[ =:]*)? ?(?P<number>{NUMBER}) ?(?P<unit>{_UNIT})?")
_SIZE = re.compile(r"[ ,;]{0,3}(?<![^\W_])[nN] ?= ?(?P<size>\d{1,9})(?!\d)")
_EMPTY_BRACKETS = re.compile(r" ?(?:\( ?\)|\[ ?\])")
_FRACTION = re.compile(r"[.,]\d+$")
_BOUND = re.compile(r"[~≈<>≤≥] ?\d")
_RATIOS = {"x", "×", "times", "fold"}
_SCALES = {"k": "e3", "K": "e3", "M": "e6", "G": "e9"}
"""Letters that are not a unit by themselves."""


@dataclass(frozen=True)
class Cell:
    """One cell with a number in it; numbers as they were written, but with a decimal point."""

    mean: str
    sd: str = ""
    """The unit; empty if there is none."""
    percent: bool = False
    """Whether `sd` is in percent of the mean."""
    unit: str = ""
    label: str = ""
    kind: Kind = "value"
    aside: str = ""
    """Text in brackets that is not a deviation: a change, a ratio."""
    size: str = ""
    """The number of values, as in `79.8 ± 0.1 (n=5)`; empty if the cell doesn't say it."""


def numerals(text: str) -> list[str]:
    """Return the numbers of a cell, as they are written; none if it is not a cell with a number."""
    body, _ = _split_size(_split_label(text)[1])
    match = _SHAPE.fullmatch(body)
    if not match:
        return []
    inner = _INNER.fullmatch(match["inner"].strip()) if match["inner"] else None
    return [number for number in (match["mean"], match["spread"], inner and inner["number"]) if number]


@lru_cache(maxsize=4096)
def cell_of(text: str, mark: Mark) -> Cell | None:
    """Read a cell. Return None if it isn't one number, with or without a deviation."""
    label, body = _split_label(text)
    body, size = _split_size(body)
    clock = seconds_of_clock(body) if _FRACTION.search(body) else ""  # without a fraction it is a time of day as well
    if seconds := seconds_of_duration(body) or clock:
        return Cell(seconds, unit="s", label=label)
    match = _SHAPE.fullmatch(body)
    if not match:
        return None
    mean = plain(match["mean"], mark)
    if not is_written_number(mean):
        return None
    unit = f"{match['unit'] or ''}{match['per'] or ''}".strip()
    if unit in _RATIOS or (unit == "%" and mean[0] in "+-"):
        return Cell(mean, unit=unit, label=label, kind="ratio" if unit in _RATIOS else "change")
    sd, sd_unit, aside = _deviation(match, mark)
    if sd and not is_written_number(sd):
        return None
    unit, sd, percent = _one_unit(unit, sd, sd_unit)
    scale, _, rest = unit.partition(" ")
    if scale in _SCALES and units.find(unit) is None and units.find(rest) is not None and not sd:
        mean, unit = f"{mean}{_SCALES[scale]}", rest
    if unit in _SCALES and "e" not in mean.lower():
        mean, sd, unit = f"{mean}{_SCALES[unit]}", f"{sd}{_SCALES[unit]}" if sd and not percent else sd, ""
    return Cell(mean.lstrip("+"), sd, percent, unit, label, aside=aside, size=size)


def is_bound(text: str) -> bool:
    """Return whether a cell has a number that is only about, above or below the measurement: `~12`, `<1`."""
    return bool(_BOUND.match(text.strip()))


def _split_label(text: str) -> tuple[str, str]:
    """Return (label, the rest); in the rest each run of blanks is one."""
    label, colon, rest = text.partition(":")
    if not colon or not re.search(r"[^\W\d_]", label):
        label, rest = "", text
    return label.strip(), " ".join(tidy(rest).split())


def _split_size(body: str) -> tuple[str, str]:
    """Return (a cell without the number of its values, that number); the number is empty if the cell has none."""
    match = _SIZE.search(body)
    if not match:
        return body, ""
    return _EMPTY_BRACKETS.sub("", f"{body[: match.start()]}{body[match.end() :]}").strip(), match["size"]


def _deviation(match: re.Match[str], mark: Mark) -> tuple[str, str, str]:
    """Return (standard deviation, its unit, text in brackets that is neither); `?` is a number that isn't one."""
    if match["spread"]:
        return plain(match["spread"], mark) or "?", (match["spread_unit"] or "").strip(), ""
    text = (match["inner"] or "").strip()
    inner = _INNER.fullmatch(text)
    if not inner:
        return "", "", text
    unit = (inner["unit"] or "").strip()
    if text.isdecimal() and match[0][match.start("inner") - 2 - match.start()].isdecimal():
        return _of_last_digits(text, match["mean"], mark), "", ""
    if inner["number"][0] in "+-" or (unit == "%" and not inner["sign"]) or unit in _RATIOS:
        return "", "", text
    return plain(inner["number"], mark) or "?", unit, ""


def _of_last_digits(text: str, mean: str, mark: Mark) -> str:
    """Return the deviation that digits right behind a number say, as in `4.61(2)`: they are of its last digits."""
    places = len(plain(mean, mark).partition(".")[2])
    digits = text.zfill(places + 1)
    return f"{digits[:-places]}.{digits[-places:]}" if places else digits


def _one_unit(unit: str, sd: str, sd_unit: str) -> tuple[str, str, bool]:
    """Return (unit of both, the deviation in it, whether that is in percent)."""
    if not sd or not sd_unit or sd_unit == unit:
        return unit, sd, False
    if sd_unit == "%":
        return unit, sd, True
    factor = units.factor(sd_unit, unit) if unit else None
    return (unit or sd_unit), (sd if factor in (None, 1.0) else f"{float(sd) * factor:.9g}"), False
