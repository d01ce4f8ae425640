"""A file as the user named it, and its text."""

from __future__ import annotations

import codecs
import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kdyno.foreign.errors import Broken, EmptyFile, NotText, Unreadable, WrongEncoding, reason
from kdyno.names import printable

LOOKED_AT = 65536
"""Bytes in which a file must show what it is."""


@dataclass(frozen=True)
class Source:
    """The content of one file."""

    shown: str
    """As the user named it."""
    name: str
    """The variant that the file stands for where its format knows none: NAME of NAME=FILE, else the file's stem."""
    data: bytes

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def head(self) -> str:
        """The beginning of the text; enough to see what it is."""
        return self.data[:LOOKED_AT].decode("utf-8-sig", errors="replace")

    @cached_property
    def text(self) -> str:
        """The whole text. Raises EmptyFile, NotText and WrongEncoding."""
        self.require_text()
        return self.data.decode("utf-8-sig")

    @cached_property
    def document(self) -> Any:
        """The whole text as JSON. Raises Broken and what `text` raises."""
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError) as error:
            raise Broken(file=self.shown, format="JSON", why=reason(error)) from error

    def require_text(self) -> None:
        """Raise EmptyFile, NotText or WrongEncoding unless this is text in UTF-8, with or without a byte order mark."""
        if not self.data.removeprefix(codecs.BOM_UTF8).strip():
            raise EmptyFile(file=self.shown)
        if self.data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise NotText(file=self.shown, why="it is UTF-16; convert it: iconv -f utf-16 -t utf-8")
        if b"\0" in self.data[:LOOKED_AT]:
            raise NotText(file=self.shown, why="it has zero bytes")
        try:
            self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            raise WrongEncoding(file=self.shown, line=line, byte=self.data[error.start]) from error


def read(named: str) -> Source:
    """Read FILE or NAME=FILE; a file whose own name has a `=` in it needs no NAME. Raises Unreadable."""
    path, name = Path(named), ""
    if "=" in named and not path.exists():
        name, _, rest = named.partition("=")
        path = Path(rest)
    try:
        return Source(shown=printable(path), name=printable(name or path.stem), data=path.read_bytes())
    except OSError as error:
        raise Unreadable(file=printable(path), why=error.strerror) from error
