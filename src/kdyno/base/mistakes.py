"""What pydantic finds wrong with a file or a record, in words: the key, and what was probably meant.

Nothing that pydantic says itself is quoted: it speaks of fields, inputs and instances.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_core.core_schema import ErrorType

from kdyno.base import toml
from kdyno.base.text import clean

SHOWN = 20
"""The most mistakes of one file that are reported."""
WORDS: Mapping[str, str] = {
    **dict.fromkeys(("string_type", "string_sub_type"), "a text in quotation marks is expected"),
    "string_unicode": "a text in UTF-8 is expected",
    "path_type": "a path in quotation marks is expected",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number is expected"),
    "int_parsing_size": "it has too many digits",
    **dict.fromkeys(("float_type", "float_parsing"), "a number is expected"),
    "finite_number": "a number that is not infinite is expected",
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false is expected"),
    **dict.fromkeys(("tuple_type", "list_type"), "a list [ ... ] is expected"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "a table is expected"),
    **dict.fromkeys(("literal_error", "enum"), "{expected} is expected"),
    "union_tag_invalid": "there is no such type; there are {tags}",
    "greater_than": "it must be greater than {gt}",
    "greater_than_equal": "it must be at least {ge}",
    "less_than": "it must be less than {lt}",
    "less_than_equal": "it must be at most {le}",
    "missing": "it is missing",
    "extra_forbidden": "there is no such key",
    "json_invalid": "it is no JSON: {error}",
    "union_tag_not_found": "{discriminator} is missing in it",
    "none_required": "null is expected",
    "timezone_aware": "a time with its zone is expected",
    **dict.fromkeys(
        ("datetime_type", "datetime_parsing", "datetime_from_date_parsing"), "a date with a time is expected"
    ),
}
"""The meaning of pydantic's kinds of mistakes for the author of the file, with their facts."""
OTHERS = frozenset(get_args(ErrorType)) - {"value_error", "assertion_error"}
"""Pydantic's own kinds: what it says of them is for programmers. The rest is said by checks of kdyno's."""
LONGEST_FAULT = 300
"""Characters that are said of a record."""
LENGTHS = {
    "too_short": ("min_length", "at least", "entry", "entries"),
    "too_long": ("max_length", "at most", "entry", "entries"),
    "string_too_short": ("min_length", "at least", "character", "characters"),
    "string_too_long": ("max_length", "at most", "character", "characters"),
}
_FREE = "letters, digits and . _ + -, with a letter or a digit first"
PATTERNS: Mapping[str, str] = {
    r"^[A-Za-z0-9][A-Za-z0-9._+-]*$": f"a name is expected: {_FREE}",
    r"^[a-z0-9][a-z0-9_.-]*$": "a name is expected: small letters, digits and _ . -, a letter or a digit first",
    r"^[a-z0-9][a-z0-9-]*$": "a name is expected: small letters, digits and -, a letter or a digit first",
    r"^[a-z][a-z0-9_-]*$": "a name is expected: small letters, digits and _ -, a letter first",
    r"^[a-z][a-z0-9_]*$": "a name is expected: small letters, digits and _, a letter first",
    r"^[a-z-]+$": "a name is expected: small letters and -",
    r"^[a-z0-9][a-z0-9.+-]{1,80}$": "a Debian package is expected: small letters, digits and . + -",
    r"^[a-z0-9_-]+\.[a-z0-9_]+$": "a benchmark is expected, TEST.WHAT: small letters, digits and _ (in TEST - too)",
    r"^[a-z0-9_]+(\+[a-z0-9_]+)*$": "an event is expected, or several with + between: small letters, digits and _",
    r"^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,252}$": "a host is expected: [USER@]NAME, or a name of ~/.ssh/config",
    r"^\S+$": "one word is expected, without spaces",
    r"^[^\x00]*$": "a text without NUL characters is expected",
    r"^[^\x00]+$": "a text is expected that is not empty and has no NUL characters",
    r"^[!-~]([ -~]*[!-~])?$": "ASCII characters are expected, with no space first or last",
    r"^([^.\[\]]+|\[\d{1,6}\])(\.[^.\[\]]+|\[\d{1,6}\])*$": "a path in JSON is expected, such as jobs[0].read.iops",
    r"^usr/[A-Za-z0-9_+.-][A-Za-z0-9_+./-]{0,200}$": "a path is expected that begins with usr/, of letters, digits "
    "and _ + . - /",
    r"^(gcc|clang)(-\d+)?$": "a compiler is expected: gcc, clang, or with its version gcc-12, clang-19",
    r"^(always|madvise|[1-9][0-9]{0,3}[kM])$": "always, madvise or a size is expected, such as 64k or 2M",
    r"^[A-Za-z0-9_-]+([./][A-Za-z0-9_-]+){1,5}$": "a setting is expected as sysctl names it, such as vm.swappiness",
    r"^[A-Za-z0-9_-]+\.(scheduler|read_ahead_kb)$": "DISK.scheduler or DISK.read_ahead_kb is expected",
    r"^[A-Za-z0-9_]+(\.[A-Za-z0-9_./-]+)?$": "a knob is expected: KNOB or TABLE.NAME, such as opt or kconfig.SLUB_TINY",
    r"^[a-z0-9-]{1,32}$": "a scheduler is expected: up to 32 small letters, digits and -",
}
"""Descriptions of the texts that must match a pattern."""


@dataclass(frozen=True)
class Mistake:
    """One wrong place of a file."""

    keys: tuple[int | str, ...]
    """The place as it is in the file."""
    location: tuple[int | str, ...]
    """The place as pydantic reports it, including the kind of each value that may be of several."""
    kind: str
    """Pydantic's name of the mistake."""
    words: str


def mistakes(error: ValidationError, model: type[BaseModel], written: Any) -> list[Mistake]:
    """Each place once, however many kinds of values could have been there; `written` is what the model refused."""
    places: dict[tuple[int | str, ...], list[ErrorDetails]] = {}
    for mistake in error.errors(include_url=False):
        keys = _written(_without_tags(model, mistake["loc"]), written, is_missing=mistake["type"] == "missing")
        places.setdefault(keys, []).append(mistake)
    return [
        Mistake(keys, of[0]["loc"], of[0]["type"], ", or ".join(dict.fromkeys(map(in_words, of))))
        for keys, of in places.items()
    ]


def _without_tags(model: type[BaseModel], location: Sequence[int | str]) -> list[int | str]:
    """The location without the tags by which pydantic tells kinds of a table apart: keys may have their names, too."""
    here: Any = model
    keys = []
    for step in location:
        if step not in _tagged(here):
            keys.append(step)
        here = _inside(here, step)
    return keys


def _written(location: Sequence[int | str], written: Any, *, is_missing: bool) -> tuple[int | str, ...]:
    """Return the steps of a location that exist in the written file: the others name the kind that a value was taken
    for.
    """
    keys: list[int | str] = []
    for number, step in enumerate(location, start=1):
        is_entry = isinstance(written, list | tuple) and isinstance(step, int)
        if is_entry or (isinstance(written, dict) and step in written):
            keys.append(step)
            written = written[step]
        elif is_missing and number == len(location):
            keys.append(step)
    return tuple(keys)


def in_words(mistake: ErrorDetails) -> str:
    """Return the mistake in words for whoever wrote the file, without the place."""
    kind, facts = mistake["type"], mistake.get("ctx", {})
    if kind in LENGTHS:
        fact, bound, one, several = LENGTHS[kind]
        return f"it must have {bound} {facts[fact]:,} {one if facts[fact] == 1 else several}"
    if kind == "string_pattern_mismatch":
        return PATTERNS.get(facts["pattern"], f"it must match the pattern {facts['pattern']}")
    if kind in WORDS:
        return WORDS[kind].format(**facts, tags=facts.get("expected_tags", "").replace("'", ""))
    if kind in OTHERS:
        return "another kind of value is expected"
    words = mistake["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return f"{words[:1].lower()}{words[1:]}"


def first_fault(error: ValidationError, whole: str = "") -> str:
    """The first thing that is wrong with a record that a program wrote, with its place in it, or `whole` for all of it.

    One line, however hostile the record is.
    """
    mistake = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, mistake["loc"])) or whole
    return clean(": ".join(filter(None, [place, in_words(mistake)])))[:LONGEST_FAULT]


def is_json(error: ValidationError) -> bool:
    """Return whether what was validated was JSON at all."""
    return error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid"


def problems(error: ValidationError, model: type[BaseModel], written: Any) -> list[str]:
    """One line for each mistake in what was `written`, up to SHOWN."""
    return [problem(mistake, model) for mistake in mistakes(error, model, written)[:SHOWN]]


def problem(mistake: Mistake, model: type[BaseModel]) -> str:
    """The mistake in a line: the key, what is wrong, and the nearest thing that would have been right."""
    key = ".".join(str(step) for step in mistake.keys)[: toml.KEY_SHOWN]
    if mistake.kind == "extra_forbidden":
        return f"unknown key `{key}`{meant(str(mistake.location[-1]), known_keys(model, mistake.location[:-1]))}"
    if mistake.kind == "missing":
        return f"`{key}` is missing"
    return f"`{key}`: {mistake.words}" if key else mistake.words


def meant(key: str, known: Sequence[str]) -> str:
    """Return the nearest valid key as the end of a sentence."""
    near = difflib.get_close_matches(key[: toml.KEY_SHOWN], known, n=1)
    return f"; did you mean `{near[0]}`?" if near else f"; known keys: {', '.join(sorted(known))}"


def known_keys(model: type[BaseModel], location: Sequence[int | str]) -> list[str]:
    """Return the keys that the table at this place of a model knows; none if it is not a table."""
    here: Any = model
    for step in location:
        here = _inside(here, step)
    return [field.alias or name for table in _models(here) for name, field in table.model_fields.items()]


def _inside(annotation: Any, step: int | str) -> Any:
    """The type of what lies at this step of a location in a value of a type; the type itself where it names a kind of
    value that isn't told by a tag.
    """
    if get_origin(annotation) is Annotated:
        return _inside(get_args(annotation)[0], step)
    if get_origin(annotation) is dict:
        return get_args(annotation)[1]
    if step in (kinds := _tagged(annotation)):
        return kinds[str(step)]
    return next((field.annotation for table in _models(annotation) if (field := _field(table, step))), annotation)


def _field(table: type[BaseModel], step: int | str) -> FieldInfo | None:
    return next((field for name, field in table.model_fields.items() if step in (name, field.alias)), None)


def _tagged(annotation: Any) -> dict[str, Any]:
    """The kinds of a value that may be of several, by the tags that pydantic names in locations."""
    if get_origin(annotation) is Annotated:
        return _tagged(get_args(annotation)[0])
    if get_origin(annotation) not in (Union, UnionType):
        return {}
    kinds = [part for part in get_args(annotation) if get_origin(part) is Annotated]
    return {mark.tag: get_args(kind)[0] for kind in kinds for mark in get_args(kind)[1:] if isinstance(mark, Tag)}


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that a value of this type may have or hold: for a list or a dict, those of its values."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is Annotated:
        yield from _models(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType, tuple, list, dict):
        for part in get_args(annotation):
            yield from _models(part)


def unfit(written: Any) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """The keys of values that nothing can take, wherever they stand, and why."""
    left: list[tuple[tuple[int | str, ...], Any]] = [((), written)]
    while left:
        keys, value = left.pop()
        if isinstance(value, dict):
            left += [((*keys, key), inner) for key, inner in value.items()]
            value = "".join(value)
        elif isinstance(value, list | tuple):
            left += [((*keys, place), inner) for place, inner in enumerate(value)]
        if isinstance(value, str) and "\0" in value:
            yield keys, "a NUL character, which no name, path or word can hold"
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            yield keys, "a number of more than 64 bits"
