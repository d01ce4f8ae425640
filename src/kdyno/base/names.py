"""File names as text: kdyno puts them on record and into reports as UTF-8, and not every name is valid UTF-8."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from kdyno.base.errors import UserError

AS_IT_IS = "kdyno.as_it_is"


class NameUnfit(UserError):
    message = "the file name {name} is not valid {encoding}"
    hint = "rename it; or, if this locale can't represent it: LC_ALL=C.UTF-8, and no PYTHONUTF8=0"


class LeadsNowhere(UserError):
    message = "{name} can't be a path: {why}"
    hint = "paths in an experiment start from the directory of its file, from / or from ~"


def keep_bytes(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return the replacement for a `codecs` handler: bytes that are not UTF-8, such as those in names, are written
    unchanged.
    """
    assert isinstance(error, UnicodeEncodeError)
    try:
        return error.object[error.start : error.end].encode(errors="surrogateescape"), error.end
    except UnicodeEncodeError:  # half a character, which no name contains
        return codecs.backslashreplace_errors(error)


def printable(name: str | Path) -> str:
    """Return the name as text that can go on record; a byte that is not UTF-8 becomes `\\xf6`."""
    return str(name).encode(errors=AS_IT_IS).decode(errors="backslashreplace")


def require_text(name: str | Path) -> None:
    """Raise NameUnfit if the name can't be put on record, or if this locale can't represent it."""
    try:
        os.fsencode(name)
        str(name).encode()
    except UnicodeEncodeError as error:
        raise unfit(str(name)) from error


def absolute(name: str | Path, base: Path) -> str:
    """Return the path that starts from `base`, or from a home (`~`), made absolute, as text for the record.

    Raise NameUnfit and LeadsNowhere.
    """
    try:
        path = str((base / Path(name).expanduser()).resolve())
    except (OSError, RuntimeError, ValueError) as error:  # a link to itself, an unknown user, a NUL
        raise LeadsNowhere(name=printable(name), why=error) from error
    require_text(path)
    return path


def all_absolute(names: Sequence[str], base: Path) -> tuple[str, ...]:
    """Return several paths made absolute."""
    return tuple(absolute(name, base) for name in names)


def unfit(name: str) -> NameUnfit:
    return NameUnfit(name=printable(name), encoding=sys.getfilesystemencoding())


codecs.register_error(AS_IT_IS, keep_bytes)
