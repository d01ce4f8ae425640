"""Naming a store: by URL, or by a file that holds one. A password in it is never shown."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.state import State

LONGEST = 4096
CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
POSTGRESQL = ("postgres", "postgresql", "postgresql+psycopg")
SQLITE_MODES = ("ro", "rw")
Access = Literal["read", "look", "change", "make"]
"""The way in which a store is opened: "read" needs it, "look" reads an empty one if it isn't there, "change" needs it
and writes, and "make" makes it if it isn't there.
"""
SHOWN_OPTIONS = ("host", "port", "service")
"""The options of a PostgreSQL URL that say where the server is. Others may be secrets."""


class StoreUrlInvalid(UserError):
    message = "{url!r} doesn't name a store: {why}"
    hint = "use sqlite:///FILE, postgresql://USER@HOST/DATABASE, or @FILE for a file that holds such a URL"


class StoreFileUnfit(UserError):
    message = "can't take the store's URL from {path}: {why}"
    hint = "{mend}"


@dataclass(frozen=True)
class StoreUrl:
    """A URL that may name a store."""

    url: URL
    """The URL for SQLAlchemy, with the driver that kdyno uses."""
    where: str
    """The name in messages: the file, or the URL without its password and options."""
    path: Path | None
    """The file of SQLite."""
    mode: str | None = None
    """SQLite's option: `ro` only reads, with `rw` the file must exist."""


def parse(named: str) -> StoreUrl:
    """Return the store that a user named: by a URL, or `@FILE`. Raise StoreUrlInvalid and StoreFileUnfit."""
    if named.startswith("@"):
        return _read_url_file(Path(named[1:]))
    try:
        parsed = make_url(named) if len(named) <= LONGEST and not CONTROLS.search(named) else None
    except (ArgumentError, ValueError):  # a port that is not a number is a ValueError
        parsed = None
    if parsed is None:
        # An invalid URL may hold a password anywhere.
        raise StoreUrlInvalid(url=_hidden(named), why="it isn't a URL") from None
    if parsed.drivername == "sqlite":
        return _sqlite(parsed, named)
    if parsed.drivername in POSTGRESQL:
        return _postgresql(parsed, named)
    raise StoreUrlInvalid(url=_hidden(named), why="only SQLite files and PostgreSQL are supported")


def store_url(named: str | None, state: State, access: Access) -> tuple[StoreUrl, Access]:
    """The store that is named, in the environment, or else in the state directory; and how it is opened.

    The last one is kdyno's own: whatever it is opened for, it is made if it isn't there. Raises StoreUrlInvalid and
    StoreFileUnfit.
    """
    named = named or os.environ.get("KDYNO_STORE")
    return (parse(named), access) if named else (sqlite_file(state.store_file), "make")


def sqlite_file(path: Path) -> StoreUrl:
    """Return the store in a file of SQLite, whatever characters its name holds."""
    return StoreUrl(URL.create("sqlite", database=str(path)), str(path), path)


def _read_url_file(path: Path) -> StoreUrl:
    try:
        words = read_whole(path, LONGEST).decode().split()
        open_to_others = path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise StoreFileUnfit(path=path, why=why, mend="write one URL into it, and nothing else") from error
    if len(words) != 1 or words[0].startswith("@"):
        raise StoreFileUnfit(
            path=path, why="it does not hold exactly one URL", mend="write one URL into it, and nothing else"
        )
    store = parse(words[0])
    if open_to_others and _secrets(store.url):
        raise StoreFileUnfit(path=path, why="it holds a password, and others may read it", mend=f"chmod 600 {path}")
    return store


def _sqlite(parsed: URL, named: str) -> StoreUrl:
    options = dict(parsed.query)
    name = parsed.database or ""
    if name.startswith("file:"):
        if options.pop("uri", None) != "true":
            raise StoreUrlInvalid(url=_hidden(named), why="file: requires ?uri=true")
        name = unquote(name.removeprefix("file:"))
    mode = options.pop("mode", None)
    # An authority or no file at all, as in sqlite://FILE and sqlite:///:memory:.
    if parsed.host or parsed.username or not name or name.startswith(":"):
        raise StoreUrlInvalid(url=_hidden(named), why="it names no file: write sqlite:///FILE")
    if options or mode not in (None, *SQLITE_MODES):
        raise StoreUrlInvalid(url=_hidden(named), why="only SQLite's options mode=ro and mode=rw are supported")
    return replace(sqlite_file(Path(name)), mode=mode)


def _postgresql(parsed: URL, named: str) -> StoreUrl:
    misread = "@" in f"{parsed.host or ''}{parsed.database or ''}"
    if misread:  # the text that make_url takes for a host or a database is the end of a password
        raise StoreUrlInvalid(url=_hidden(named), why="an @ in a user's name or password is written as %40")
    if parsed.port is not None and not 0 < parsed.port < 2**16:
        raise StoreUrlInvalid(url=_hidden(named), why="its port is not from 1 to 65535")
    url = parsed.set(drivername=POSTGRESQL[-1])
    shown = {name: value for name, value in parsed.query.items() if name in SHOWN_OPTIONS}
    return StoreUrl(url, url.set(password=None, query=shown).render_as_string(), None)


def _secrets(url: URL) -> list[str]:
    """Return the passwords in a URL: its own, and those among its options."""
    options = [value for name, value in url.query.items() if "password" in name]
    return [str(secret) for secret in (url.password, *options) if secret]


def hide_secrets(text: str, store: StoreUrl) -> str:
    """Return a driver's message without the passwords that it may quote."""
    for secret in _secrets(store.url):
        text = text.replace(secret, "***")
    return text


def _hidden(named: str) -> str:
    """Return the part of a name that can't be a password."""
    scheme, separator, _ = named.partition("://")
    if named.startswith("sqlite:///") or (not separator and re.fullmatch(r"[\w./ ~-]{0,200}", named)):
        return named[:LONGEST]
    return f"{scheme}://***" if separator and re.fullmatch(r"[a-z+]{1,40}", scheme) else "***"
