"""Values in a JSON document: of the kind that they must be, or ValueError says which one isn't."""

from __future__ import annotations

import json
from typing import Any


def table(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is no object")
    return value


def rows(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{name} is no list")
    return value


def text(value: Any, name: str) -> str:
    """A text; half a character, which JSON can spell and no file can hold, becomes `?`."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")
    return value.encode(errors="replace").decode()


def number(value: Any, name: str) -> float:
    if not isinstance(value, float):
        raise ValueError(f"{name} is no number")
    return value


def numbers(value: Any, name: str) -> tuple[float, ...]:
    values = rows(value, name)
    if not all(isinstance(number, float) for number in values):
        raise ValueError(f"{name} has something in it that is no number")
    return tuple(values)


def not_json(error: Exception) -> str:
    """Where a text stops being JSON, in words of our own."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        return f"from line {error.lineno}, column {error.colno} on it isn't what JSON has there"
    return "it holds what JSON doesn't have"
