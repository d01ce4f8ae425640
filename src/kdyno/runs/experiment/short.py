"""The short form of a table, for command lines: `opt=O3,kconfig.PREEMPT=y` replaces two lines of TOML. Pure.

A piece is KEY=VALUE, and for a key of an inner table TABLE.KEY=VALUE. For a list each piece is one element. A value in
quotes is a string of TOML, in which a comma does not begin a piece.
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
"""The most characters of a piece in messages."""
MOST_CHARACTERS = 100_000
"""The longest short form that is read."""


class NotShort(UserError):
    message = "`{piece}` {why}"
    hint = (
        "write KEY=VALUE with commas between them, and quotes around a value that has a comma: "
        """'cmdline="isolcpus=1,2"'"""
    )


@dataclass(frozen=True)
class Piece:
    """A part of a short form."""

    text: str
    """The piece as the user wrote it."""
    key: str
    value: str
    """The value without quotes."""
    quoted: bool = False


def pieces(text: str) -> Iterator[Piece]:
    """Yield the pieces of a short form. Raises NotShort."""
    if len(text) > MOST_CHARACTERS:
        raise NotShort(piece=text[:SHOWN], why=f"... has more than {MOST_CHARACTERS:,} characters")
    position = 0
    while position < len(text):
        match = PIECE.match(text, position)
        assert match, "the last part of the pattern takes whatever there is"
        key, value = match["key"].strip(), match["value"]
        piece_text = match[0].removesuffix(",")
        if value is None or not key:
            raise NotShort(piece=piece_text[:SHOWN], why=f"in `{text[:SHOWN]}` has no {'value' if key else 'key'}")
        yield Piece(piece_text, key, _unquote(value, piece_text), quoted=value.startswith(QUOTES))
        position = match.end()
        if position == len(text) and match[0].endswith(","):
            raise NotShort(piece=text[:SHOWN], why="ends with a comma")


def table(short_pieces: Sequence[Piece], model: type[BaseModel]) -> dict[str, Any]:
    """Return the table as TOML would give it for this model, unknown keys included. Raises NotShort."""
    content: dict[str, Any] = {}
    for piece in short_pieces:
        _put(content, piece.key, piece, model)
    return content


def _put(content: dict[str, Any], key: str, piece: Piece, model: type[BaseModel]) -> None:
    name, dot, inner_key = key.partition(".")
    kind = _annotation(model, name)
    inner = _inner_model(kind)
    if not dot:
        if inner or get_origin(kind) is dict:
            raise NotShort(piece=piece.text[:SHOWN], why=f"names a table: write {piece.key}.KEY=VALUE")
        _set(content, name, piece.value, piece, several=_takes_several(kind))
        return
    inner_content = content.setdefault(name, {})
    if not isinstance(inner_content, dict):
        raise NotShort(piece=piece.text[:SHOWN], why=f"sets {name} a second time")
    if inner:
        _put(inner_content, inner_key, piece, inner)
    else:
        _set(inner_content, inner_key, piece.value if piece.quoted else _scalar(piece.value), piece, several=False)


def _set(content: dict[str, Any], key: str, value: Any, piece: Piece, *, several: bool) -> None:
    if several:
        content.setdefault(key, []).append(value)
    elif key in content:
        raise NotShort(piece=piece.text[:SHOWN], why=f"sets {piece.key} a second time")
    else:
        content[key] = value


def _unquote(value: str, piece_text: str) -> str:
    if not value.startswith(QUOTES):
        return value
    try:
        return str(toml.parse(f"value = {value}")["value"])
    except ValueError:
        raise NotShort(piece=piece_text[:SHOWN], why="has quotes that don't end with the value") from None


def _scalar(value: str) -> str | int | bool:
    """Return the number or truth value that TOML reads, otherwise the text."""
    if not SCALAR.fullmatch(value):
        return value
    try:
        scalar = toml.parse(f"value = {value}")["value"]
    except ValueError:
        return value
    return scalar if isinstance(scalar, bool | int) else value


def _annotation(model: type[BaseModel], key: str) -> Any:
    """Return the type of a key without None and annotations; None for an unknown key."""
    fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    kind = fields.get(key)
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    kinds = [part for part in get_args(kind) if part is not NoneType]
    return kinds[0] if get_origin(kind) in (Union, UnionType) and len(kinds) == 1 else kind


def _inner_model(kind: Any) -> type[BaseModel] | None:
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _takes_several(kind: Any) -> bool:
    return get_origin(kind) is tuple
