"""A file as the user named it, and its text."""

from __future__ import annotations

import codecs
import hashlib
import io
import json
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from kdyno.base.names import printable
from kdyno.measure.readers import delimited
from kdyno.measure.readers.errors import (
    ADirectory,
    Broken,
    EmptyFile,
    FileReadTwice,
    NotText,
    TooLarge,
    Unreadable,
    WrongEncoding,
)
from kdyno.measure.readers.json_values import not_json, records_of_lines, require_moderate

LOOKED_AT = 65536
"""Bytes in which a file must show its format."""
MOST_BYTES = 512 << 20
MOST_TEXT = 64 << 20
"""Bytes of a file that is read as one text, or as a document, which may take Python thirty times as many."""
CHUNK = 1 << 20
STANDARD_INPUT = Path("/dev/stdin")
EXTENSIONS = frozenset(
    {".csv", ".tsv", ".txt", ".log", ".out", ".json", ".xml", ".yaml", ".yml", ".md", ".dat", ".adoc", ".org"}
)
"""Suffixes of data files that say nothing of the variant; the `.1` of `6.12.1` and of `host.1` does."""
BINARY = {
    b"SQLite format 3\0": (
        "it is an SQLite database; export the data: "
        "sqlite3 -csv -header FILE 'SELECT variant, benchmark, value FROM ...'"
    ),
    b"PERFILE2": "it is a recording of perf; write comparable data with perf stat -x, -o FILE",
    b"\x1f\x8b": "it is compressed; gunzip it",
    b"\xfd7zXZ\0": "it is compressed; unxz it",
    b"\x28\xb5\x2f\xfd": "it is compressed; unzstd it",
}
"""First bytes -> advice for such a file."""
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""First bytes of what PowerShell 5 writes with `>`."""
_COLOURS = re.compile(rb"\x1b\[[0-9;]*[mK]")
"""What programs write to terminals around words; a file has it after `script`, `--color=always` and the like."""
Form = Literal["text", "json", "xml"]
_LIST = re.compile(r"\[\s*(?:[\[{\"\]]|(?:-?\d[\d.eE+-]*+|-?Infinity|NaN|true|false|null)\s*(?:,|\]\s*\Z))")
"""The beginning of a list in JSON; lines of logs begin with `[    0.000000] Linux version` and `[2024-01-01 10:00:00]`,
those of iperf3 with `[  5]   0.00-1.00   sec`.
"""
_QUOTATION = re.compile(rb"^(?:> ?)+", re.MULTILINE)
"""What mail programs put before each line that they quote."""


@dataclass(frozen=True)
class FileSource:
    """The content of one file."""

    shown: str
    """The file's name as the user gave it."""
    name: str
    """The variant that the file stands for if its format names none: NAME of NAME=FILE, else the file's name."""
    data: bytes
    file_sha256: str = ""
    """The hash of the file; empty if `data` is all of it, unchanged."""
    is_named: bool = False
    """Whether the user gave the name, as NAME=FILE."""

    @cached_property
    def sha256(self) -> str:
        return self.file_sha256 or hashlib.sha256(self.data).hexdigest()

    @cached_property
    def head(self) -> str:
        """The beginning of the text; enough to recognise its format."""
        return self.data[:LOOKED_AT].decode("utf-8-sig", errors="replace")

    @cached_property
    def form(self) -> Form:
        """How the file begins: as JSON does, as XML does, or otherwise."""
        beginning = self.head.lstrip()
        if beginning.startswith("{") or _LIST.match(beginning):
            return "json"
        return "xml" if beginning.startswith(("<?xml", "<PhoronixTestSuite")) else "text"

    @cached_property
    def text(self) -> str:
        """The whole text. Raise EmptyFile, NotText, WrongEncoding and TooLarge."""
        self.require_text()
        if len(self.data) > MOST_TEXT:
            raise TooLarge(file=self.shown, most=MOST_TEXT, what="bytes")
        return self.data.decode("utf-8-sig")

    @cached_property
    def document(self) -> Any:
        """Return the whole text as JSON, all its numbers as floats; of JSON Lines, the list of its records. Raise
        Broken and the errors of `text`.
        """
        try:
            require_moderate(self.text)
            # Whole numbers may have more digits than Python turns into an int.
            return json.loads(self.text, parse_int=float)
        except json.JSONDecodeError as error:
            records = self._records_of_lines()
            if records is None:
                raise Broken(file=self.shown, format="JSON", why=not_json(error)) from error
            return records
        except (ValueError, RecursionError) as error:
            raise Broken(file=self.shown, format="JSON", why=not_json(error)) from error

    def _records_of_lines(self) -> list[dict[str, Any]] | None:
        """Return the records of JSON Lines; None for a text of another form. Raise Broken."""
        try:
            return records_of_lines(self.text)
        except (ValueError, RecursionError) as error:
            raise Broken(file=self.shown, format="JSON", why=not_json(error)) from error

    @cached_property
    def delimited(self) -> FileSource:
        """The table in this file as delimited text: of columns aligned by blanks, line for line; of records or lists in
        JSON, or of lines that begin with a name; without repeated headers. The file itself if it has none of these.
        Raise UnalignedRow, and the errors of `document`.
        """
        if self.form == "json":
            table = delimited.from_json(self.document)
            return self if table is None else replace(self, shown=f"{self.shown} as CSV", data=table.encode())
        if (
            self.form == "text"
            and delimited.from_named_rows(self.head)
            and (rows := delimited.from_named_rows(self.text))
        ):
            return replace(self, shown=f"{self.shown} as CSV", data=rows.encode())
        if self.form == "text" and delimited.is_aligned(self.head):
            return replace(self, data=delimited.from_blanks(self.text, self.shown).encode())
        if self.form == "text" and (data := delimited.without_repeated_headers(self.data)) is not self.data:
            return replace(self, data=data)
        return self

    def require_text(self) -> None:
        """Raise EmptyFile, NotText or WrongEncoding unless this is text in UTF-8, with or without a byte order mark."""
        _ = self._is_text

    @cached_property
    def _is_text(self) -> bool:
        if not self.data.removeprefix(codecs.BOM_UTF8).strip():
            raise EmptyFile(file=self.shown)
        for beginning, why in BINARY.items():
            if self.data.startswith(beginning):
                raise NotText(file=self.shown, why=why)
        if b"\0" in self.data:
            raise NotText(file=self.shown, why="it has zero bytes")
        wrong = _not_utf8(self.data)
        if wrong is not None:
            line = self.data.count(b"\n", 0, wrong) + 1
            raise WrongEncoding(file=self.shown, line=line, byte=self.data[wrong])
        return True


def read_all(named: Sequence[str]) -> list[FileSource]:
    """Read several files, each FILE or NAME=FILE. Raise FileReadTwice, Unreadable, TooLarge and NotText.

    Files without a NAME are different variants, with as much of their paths as makes the names differ.
    """
    named_paths = [_place(name) for name in named]
    first: dict[Path, str] = {}
    for (_, path), name in zip(named_paths, named, strict=True):
        real = Path(os.path.realpath(path))
        if real in first:
            raise FileReadTwice(file=printable(name), first=printable(first[real]))
        first[real] = name
    own = iter(_own_names([path for name, path in named_paths if not name], {name for name, _ in named_paths if name}))
    return [replace(_read(path, name or next(own)), is_named=bool(name)) for name, path in named_paths]


def read(named: str) -> FileSource:
    """Read FILE or NAME=FILE; a file whose own name has a `=` in it needs no NAME, and `-` is standard input.

    Raise Unreadable, TooLarge and NotText.
    """
    [source] = read_all([named])
    return source


def _place(named: str) -> tuple[str, Path]:
    """Return (NAME or nothing, FILE)."""
    path, name = Path(named), ""
    if "=" in named and not path.exists():
        name, _, rest = named.partition("=")
        path = Path(rest)
    return name, STANDARD_INPUT if path == Path("-") else path


def _own_names(paths: Sequence[Path], taken: set[str]) -> list[str]:
    """Return the names of files as variants: their names without extensions, preceded by as many of the directories as
    make them differ; the extension stays if nothing else differs.
    """
    names = [_drop_extension(path.name) for path in paths]
    for name in set(names):
        alike = [index for index, other in enumerate(names) if other == name]
        if len(alike) == 1 and name not in taken:
            continue
        for index, longer in zip(alike, _distinct_ends([paths[index] for index in alike], taken), strict=True):
            names[index] = longer
    return names


def _distinct_ends(paths: Sequence[Path], taken: set[str]) -> list[str]:
    """Return the shortest ends of these paths that differ from each other, and from the names taken."""
    deepest = max(len(path.parts) for path in paths)
    for shorten in (_drop_extension, str):
        for depth in range(1, deepest + 1):
            ends = [shorten("/".join(path.parts[-depth:])) for path in paths]
            if len(set(ends)) == len(ends) and not taken & set(ends):
                return ends
    return [str(path) for path in paths]


def _drop_extension(name: str) -> str:
    extension = Path(name).suffix
    return name.removesuffix(extension) if extension.lower() in EXTENSIONS else name


def _read(path: Path, name: str) -> FileSource:
    try:
        content = _content(path)
    except IsADirectoryError as error:
        raise ADirectory(file=printable(path), example=_example_of(path)) from error
    except OSError as error:
        raise Unreadable(file=printable(path), why=error.strerror) from error
    if len(content) > MOST_BYTES:
        raise TooLarge(file=printable(path), most=MOST_BYTES, what="bytes")
    shown = printable(path)
    data = _without_quotation(_COLOURS.sub(b"", _utf8(content, shown)))
    file_sha256 = "" if data == content else hashlib.sha256(content).hexdigest()
    return FileSource(shown=shown, name=printable(name), data=data, file_sha256=file_sha256)


def _example_of(directory: Path) -> str:
    """Return how the first files of a directory are named as those of one variant; empty if it has none."""
    try:
        files = sorted(path for path in directory.iterdir() if path.is_file())[:2]
    except OSError:
        return ""
    name = directory.resolve().name
    return ": " + shlex.join(f"{name}={path}" for path in files) + " ..." if files else ""


def _utf8(content: bytes, shown: str) -> bytes:
    """Return text in UTF-16 that has a byte order mark as UTF-8, and any other content unchanged. Raise NotText."""
    if not content.startswith(_UTF_16):
        return content
    try:
        return content.decode("utf-16").encode()
    except UnicodeError as error:
        raise NotText(file=shown, why="it begins like UTF-16, and is not valid UTF-16") from error


def _without_quotation(data: bytes) -> bytes:
    """Return text without the marks of a mail that quotes it, if most of its first lines have them."""
    lines = [line for line in data[:LOOKED_AT].splitlines() if line.strip()]
    quoted = sum(line.startswith(b">") for line in lines)
    return _QUOTATION.sub(b"", data) if quoted * 2 > len(lines) else data


def _content(path: Path) -> bytes:
    """Return the content of a file, or of a pipe; of an endless one, enough to show that it is too much."""
    content = io.BytesIO()
    with open(path, "rb", opener=_open_at_once) as file:
        while content.tell() <= MOST_BYTES and (chunk := file.read(CHUNK)):
            content.write(chunk)
    return content.getvalue()


def _open_at_once(path: str, flags: int) -> int:
    """Open a file at once. A pipe without a writer is then empty; one with a writer is waited for when it is read."""
    if path == str(STANDARD_INPUT):
        return os.dup(0)  # it may be a socket, whose name can't be opened
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    os.set_blocking(descriptor, True)
    return descriptor


def _not_utf8(data: bytes) -> int | None:
    """Return the position of the first byte that is not UTF-8; in pieces, since text takes up to four times as much
    memory.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(data), CHUNK):
        chunk = data[start : start + CHUNK]
        try:
            decoder.decode(chunk, start + CHUNK >= len(data))
        except UnicodeDecodeError as error:
            left_over = len(error.object) - len(chunk)
            return start - left_over + error.start
    return None
