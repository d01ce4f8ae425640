"""What pydantic finds wrong with a file that somebody wrote, in words: the key, and what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from kdyno.base import toml

SHOWN = 20
"""Mistakes of one file that are said."""


def problems(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """One line for each mistake, up to SHOWN."""
    mistakes = error.errors(include_url=False, include_context=False, include_input=False)
    return [_problem(mistake["loc"], mistake["type"], mistake["msg"], model) for mistake in mistakes[:SHOWN]]


def _problem(location: Sequence[int | str], kind: str, message: str, model: type[BaseModel]) -> str:
    key = ".".join(str(step) for step in location)[: toml.KEY_SHOWN]
    problem = message.removeprefix("Value error, ")
    if kind == "extra_forbidden":
        return f"unknown key `{key}`{meant(str(location[-1]), known_keys(model, location[:-1]))}"
    if kind == "missing":
        return f"`{key}` is missing"
    return f"`{key}`: {problem[:1].lower()}{problem[1:]}" if key else f"{problem[:1].lower()}{problem[1:]}"


def meant(key: str, known: Sequence[str]) -> str:
    """The nearest key that would have been right, as the end of a sentence."""
    near = difflib.get_close_matches(key[: toml.KEY_SHOWN], known, n=1)
    return f"; did you mean `{near[0]}`?" if near else f"; known keys: {', '.join(sorted(known))}"


def known_keys(model: type[BaseModel], location: Sequence[int | str]) -> list[str]:
    """The keys that the table at this place of a model knows; none where it is no table."""
    here: Any = model
    for step in location:
        tables = list(_models(here))
        here = next((table.model_fields[str(step)].annotation for table in tables if step in table.model_fields), here)
    return [key for table in _models(here) for key in table.model_fields]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a value of this type may be of, or hold: of a list or a dict its values."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is Annotated:
        yield from _models(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType, tuple, list, dict):
        for part in get_args(annotation):
            yield from _models(part)
