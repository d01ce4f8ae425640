"""The short form of a table, for command lines: `opt=O3,kconfig.PREEMPT=y` is what TOML says in two lines. Pure.

A piece is KEY=VALUE, and for a key of an inner table TABLE.KEY=VALUE. Of a list each piece says one. A value in quotes
is a string of TOML: there a comma begins no piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from kdyno.base import toml
from kdyno.base.errors import UserError

PIECE = re.compile(r"""(?P<key>[^,=]*)(?:=(?P<value>"(?:[^"\\]|\\.)*"|'[^']*'|[^,]*))?(?:,|$)""")
QUOTES = ('"', "'")
SCALAR = re.compile(r"true|false|[+-]?[0-9]\w*")
SHOWN = 200
"""Characters of a piece, in messages."""
MOST_CHARACTERS = 100_000
"""Of one short form."""


class NotShort(UserError):
    message = "`{piece}` {why}"
    hint = (
        "pieces are KEY=VALUE with commas between them; a comma that belongs to a value stands in quotes: "
        """'cmdline="isolcpus=1,2"'"""
    )


@dataclass(frozen=True)
class Piece:
    """A part of a short form."""

    text: str
    """As it was written."""
    key: str
    value: str
    """Without quotes."""
    quoted: bool = False


def pieces(text: str) -> Iterator[Piece]:
    """The pieces of a short form. Raises NotShort."""
    if len(text) > MOST_CHARACTERS:
        raise NotShort(piece=text[:SHOWN], why=f"... has more than {MOST_CHARACTERS:,} characters")
    at = 0
    while at < len(text):
        match = PIECE.match(text, at)
        assert match, "the last part of the pattern takes whatever there is"
        key, value = match["key"].strip(), match["value"]
        written = match[0].removesuffix(",")
        if value is None or not key:
            raise NotShort(piece=written[:SHOWN], why=f"in `{text[:SHOWN]}` has no {'value' if key else 'key'}")
        yield Piece(written, key, _unquoted(value, written), quoted=value.startswith(QUOTES))
        at = match.end()
        if at == len(text) and match[0].endswith(","):
            raise NotShort(piece=text[:SHOWN], why="ends with a comma")


def table(of: Sequence[Piece], model: type[BaseModel]) -> dict[str, Any]:
    """What TOML would have said, for this model; keys that it doesn't know are in it, too. Raises NotShort."""
    written: dict[str, Any] = {}
    for piece in of:
        _put(written, piece.key, piece, model)
    return written


def _put(written: dict[str, Any], key: str, piece: Piece, model: type[BaseModel]) -> None:
    name, dot, rest = key.partition(".")
    kind = _annotation(model, name)
    inner = _model_in(kind)
    if not dot:
        if inner or get_origin(kind) is dict:
            raise NotShort(piece=piece.text[:SHOWN], why=f"names a table: say {piece.key}.KEY=VALUE")
        _set(written, name, piece.value, piece, several=_takes_several(kind))
        return
    below = written.setdefault(name, {})
    if not isinstance(below, dict):
        raise NotShort(piece=piece.text[:SHOWN], why=f"says {name} a second time")
    if inner:
        _put(below, rest, piece, inner)
    else:
        _set(below, rest, piece.value if piece.quoted else _scalar(piece.value), piece, several=False)


def _set(written: dict[str, Any], key: str, value: Any, piece: Piece, *, several: bool) -> None:
    if several:
        written.setdefault(key, []).append(value)
    elif key in written:
        raise NotShort(piece=piece.text[:SHOWN], why=f"says {piece.key} a second time")
    else:
        written[key] = value


def _unquoted(value: str, written: str) -> str:
    if not value.startswith(QUOTES):
        return value
    try:
        return str(toml.parse(f"value = {value}")["value"])
    except ValueError:
        raise NotShort(piece=written[:SHOWN], why="has quotes that don't end where the value does") from None


def _scalar(value: str) -> str | int | bool:
    """A number, true or false where TOML would take the word for that; otherwise the text."""
    if not SCALAR.fullmatch(value):
        return value
    try:
        read = toml.parse(f"value = {value}")["value"]
    except ValueError:
        return value
    return read if isinstance(read, bool | int) else value


def _annotation(model: type[BaseModel], key: str) -> Any:
    """The type of a key without None and without what else is said of it; None for a key that isn't known."""
    fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    kind = fields.get(key)
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    kinds = [part for part in get_args(kind) if part is not NoneType]
    return kinds[0] if get_origin(kind) in (Union, UnionType) and len(kinds) == 1 else kind


def _model_in(kind: Any) -> type[BaseModel] | None:
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _takes_several(kind: Any) -> bool:
    return get_origin(kind) is tuple
