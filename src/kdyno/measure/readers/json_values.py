"""Values in a JSON document, of the expected kinds; else Unfit names the value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

MOST_VALUES = 2_000_000
"""Values in one text: each takes a few hundred bytes of memory."""
MOST_COUNTED = 1e15
"""Beyond it a float doesn't represent every whole number."""


class Unfit(ValueError):
    """A document is unfit; the text gives the reason in kdyno's own words."""


def table(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unfit(f"{name} is not an object")
    return value


def rows(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise Unfit(f"{name} is not a list")
    return value


def text(value: Any, name: str) -> str:
    """Return a text; half a character, which JSON can spell and no file can hold, becomes `?`."""
    if not isinstance(value, str):
        raise Unfit(f"{name} is not a text")
    return value.encode(errors="replace").decode()


def number(value: Any, name: str) -> float:
    if not isinstance(value, float):
        raise Unfit(f"{name} is not a number")
    return value


def whole(value: Any, name: str) -> int:
    """Return a whole number. Larger numbers than any count are not accepted as one."""
    if not (isinstance(value, float) and value.is_integer() and abs(value) < MOST_COUNTED):
        raise Unfit(f"{name} is not a whole number")
    return int(value)


def numbers(value: Any, name: str) -> tuple[float, ...]:
    values = rows(value, name)
    if not all(isinstance(number, float) for number in values):
        raise Unfit(f"{name} has an item that is not a number")
    return tuple(values)


def require_moderate(text: str) -> None:
    """Raise TooManyValues for a text that may hold too many values, before they take memory."""
    if sum(map(text.count, ",[{")) > MOST_VALUES:  # each value but the first comes after one of these
        raise TooManyValues()


class TooManyValues(Unfit):
    def __init__(self) -> None:
        super().__init__(f"it may hold more than {MOST_VALUES:,} values")


def not_json(error: Exception) -> str:
    """Return where a text stops being JSON, in kdyno's own words."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, Unfit):
        return str(error)
    if isinstance(error, json.JSONDecodeError):
        return f"invalid JSON from line {error.lineno}, column {error.colno} on"
    return "it holds text that is not JSON"


def why(error: ValueError) -> str:
    """Return what is wrong, in kdyno's own words, whoever found it."""
    return str(error) if isinstance(error, Unfit) else not_json(error)


def records_of_lines(text: str) -> list[dict[str, Any]] | None:
    """Return the records of JSON Lines, an object on each line that isn't blank; None for a text of another form.

    Raise Unfit, which names the line, if a later line is not an object.
    """
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    records: list[dict[str, Any]] = []
    for number, line in lines:
        try:
            record = json.loads(line, parse_int=float)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            if len(records) < 2:
                return None
            raise Unfit(f"lines 1 to {number - 1} are records of JSON Lines, and line {number} is not one")
        records.append(record)
    return records if len(records) > 1 else None


def documents(text: str) -> Iterator[Any]:
    """Yield all documents of a text, one behind the other; lines before and between them that begin otherwise are
    skipped.

    Raise Unfit and JSONDecodeError.
    """
    require_moderate(text)
    decoder = json.JSONDecoder(parse_int=float)
    position = 0
    while (position := _beginning(text, position)) >= 0:
        try:
            document, position = decoder.raw_decode(text, position)
        except RecursionError as error:
            raise Unfit("it is nested too deeply") from error
        yield document


def _beginning(text: str, position: int) -> int:
    """Return the position of the next line that begins with a brace, from a position on; -1 for none."""
    while position < len(text):
        end = text.find("\n", position)
        line = text[position : end if end >= 0 else len(text)]
        if line.lstrip().startswith("{"):
            return position + len(line) - len(line.lstrip())
        if end < 0:
            return -1
        position = end + 1
    return -1
