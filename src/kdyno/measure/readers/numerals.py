"""Numbers as people in different countries write them: decimal commas, separators of thousands, other minus signs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Mark = Literal[".", ","]

MISSING = frozenset(("", "-", "--", "–", "—", "−", "na", "n/a", "#n/a", "n.a.", "nan", "null", "none"))
"""Cells that mean that nothing was measured, in small letters."""
MISSING_SPELLINGS = tuple(
    dict.fromkeys(spelling for word in sorted(MISSING) for spelling in (word, word.upper(), word.capitalize(), "NaN"))
)
"""Such cells as programs write them."""
NUMBER = r"[-+]?(?:\d[\d.,]*+|\.\d++)(?:[eE][-+]?\d{1,3}+)?+"
_BLANKS = "\u00a0\u2007\u2008\u2009\u200a\u202f\ufeff"
_SAME = str.maketrans({**dict.fromkeys(_BLANKS, " "), "−": "-", "‐": "-", "‑": "-", "＋": "+"})
_THOUSANDS = re.compile(rf"(?<=\d)[{_BLANKS} '’](?=\d{{3}}(?!\d))")
_START = re.compile(rf"{NUMBER}(?![\d.,:-])")


_CLOCK = re.compile(r"(?:(\d{1,4}):)?(\d{1,4}):(\d{1,2}(?:[.,]\d{1,9})?)")
_DURATION = re.compile(
    r"(?:(\d{1,4}) ?(?:h|hours?) ?)?(\d{1,4}) ?(?:m|mins?|minutes?) ?(\d{1,4}(?:[.,]\d{1,9})?) ?(?:s|secs?|seconds?)"
)


@dataclass(frozen=True)
class Decimal:
    """The decimal mark of a file."""

    mark: Mark
    guessed_from: str = ""
    """A number that doesn't show the mark, such as `1,234`, if no other number does either."""

    @property
    def note(self) -> str:
        """A note on how that number was read, with the way out; empty if there is none."""
        if not self.guessed_from:
            return ""
        other = "," if self.mark == "." else "."
        read = plain(self.guessed_from, self.mark)
        return f"{self.guessed_from} was read as {read}; --decimal {other} reads it the other way"


def is_missing(text: str) -> bool:
    """Return whether a cell says that nothing was measured."""
    return text.strip().lower() in MISSING


def tidy(text: str) -> str:
    """Return the text with plain blanks and minus signs, and without blanks and apostrophes between thousands."""
    return _THOUSANDS.sub("", text).translate(_SAME).strip()


def plain(text: str, mark: Mark) -> str:
    """Return a number as Python writes it; other text is returned unchanged."""
    other = "," if mark == "." else "."
    whole, point, fraction = tidy(text).partition(mark)
    if other in fraction or mark in fraction or not _has_valid_groups(whole, other):
        return ""
    return f"{whole.replace(other, '')}{'.' if point else ''}{fraction}"


def seconds_of_clock(text: str) -> str:
    """Return a duration such as `1:12.3` or `1:02:03` in seconds; empty for any other text."""
    return _total_seconds(_CLOCK.fullmatch(text))


def seconds_of_duration(text: str) -> str:
    """Return a duration such as `1m12.3s` in seconds; empty for any other text."""
    return _total_seconds(_DURATION.fullmatch(text))


def _total_seconds(match: re.Match[str] | None) -> str:
    """Return hours, minutes and seconds as seconds, with the digits that they were written with."""
    if not match:
        return ""
    hours, minutes, seconds = match.groups()
    rest = seconds.replace(",", ".")
    total = 3600 * int(hours or 0) + 60 * int(minutes) + float(rest)
    return f"{total:.{len(rest.partition('.')[2])}f}"


def decimal_of(texts: Iterable[str], default: Mark = ".") -> Decimal | None:
    """Return the decimal mark of these numbers; None if some of them say `.` and some say `,`.

    `default` is what a comma means where no number leaves no doubt. A dot is a decimal point then: programs write
    `10.119`, and nearly none of them `10.119` for ten thousand.
    """
    says: set[Mark] = set()
    unclear: dict[Mark, str] = {}
    for text in texts:
        mark, certain = _mark_of(text)
        if mark and certain:
            says.add(mark)
        elif mark:
            unclear.setdefault(mark, text)
    if len(says) > 1:
        return None
    if says:
        return Decimal(says.pop())
    if "," in unclear or default == "." or "." not in unclear:
        return Decimal(default, unclear.get(",", ""))
    return Decimal(".", unclear["."])


def decimal_of_columns(columns: Iterable[Sequence[str]], default: Mark) -> Decimal:
    """Return the decimal mark of columns, some of which hold versions and dates: a comma that is certain in one of them
    wins. Dots may be between thousands where `1.002` and `998` are in one column.
    """
    unclear = dotted = ""
    for column in columns:
        marks = [(_mark_of(text), text) for text in column]
        if any(mark == "." and certain for (mark, certain), _ in marks):
            continue
        if any(mark == "," and certain for (mark, certain), _ in marks):
            return Decimal(",")
        unclear = unclear or next((text for (mark, _), text in marks if mark == ","), "")
        if default == "," and any(text.isdecimal() for text in column):
            dotted = dotted or next((text for (mark, _), text in marks if mark == "."), "")
    return Decimal(default, unclear) if unclear else Decimal(".", dotted)


def _mark_of(text: str) -> tuple[Mark | None, bool]:
    """Return the decimal mark that a number shows, and whether it leaves no doubt; a version or a date shows none."""
    start = _START.match(tidy(text))
    number = start[0].lower().partition("e")[0].lstrip("+-") if start else ""
    commas, dots = number.count(","), number.count(".")
    if not commas and not dots:
        return None, False
    mark: Mark = "," if number.rfind(",") > number.rfind(".") else "."
    other: Mark = "." if mark == "," else ","
    if commas + dots > 1:
        certain = mark if number.count(mark) == 1 else other
        return (certain, True) if plain(number, certain) else (None, False)
    whole, _, fraction = number.partition(mark)
    return mark, len(fraction) != 3 or len(whole) > 3 or whole in ("", "0")


def _has_valid_groups(whole: str, separator: str) -> bool:
    """Return whether separators of thousands stand at the right places."""
    first, *rest = whole.lstrip("+-").split(separator)
    return not rest or (1 <= len(first) <= 3 and all(len(group) == 3 for group in rest))
