"""A SQLite file as it is at one moment, to be read without changing it, or any file next to it.

SQLite itself changes the files that it only reads: it makes and removes files next to them, moves the content of `-wal`
into the file, and plays back a `-journal`, which may name files to remove. So it reads the file as one that nobody
changes; and if `-wal` holds more, a private copy of both.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import URL

from kdyno.base.state import translate_disk_full
from kdyno.store.errors import NotAStore, StoreBusy

MOST_COPIED = 4 << 30
"""Bytes of a file and its -wal that are copied to be read."""
TRIES = 5
"""Seconds. Another kdyno adds a boot every few seconds; a copy takes less."""

Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class Snapshot:
    """A file that SQLite reads as one that nobody changes."""

    path: Path
    stamp: Stamp
    copied_to: Path | None
    """The private directory that it lies in; whoever took the snapshot removes it."""

    @property
    def url(self) -> URL:
        query = {"mode": "ro", "immutable": "1", "uri": "true"}
        return URL.create("sqlite", database=f"file:{quote(str(self.path))}", query=query)

    @property
    def is_as_it_was(self) -> bool:
        """Return whether nobody has written to the file since."""
        return _stamp(self.path) == self.stamp

    def close(self) -> None:
        if self.copied_to:
            shutil.rmtree(self.copied_to, ignore_errors=True)


def take(path: Path) -> Snapshot:
    """Return the file as it is now, with the content of its -wal. Raise NotAStore, StoreBusy, DiskFull and OSError."""
    wal = companion_path(path, "-wal")
    if not _stamp(wal)[1]:
        return Snapshot(path, _stamp(path), None)
    for _ in range(TRIES):
        before = _stamp(path), _stamp(wal)
        if sum(size for _, size, _ in before) > MOST_COPIED:
            raise NotAStore(where=path, why=f"its -wal isn't empty, and both have more than {MOST_COPIED:,} bytes")
        directory = Path(tempfile.mkdtemp(prefix="kdyno-store-"))
        copy = directory / path.name
        try:
            with translate_disk_full(directory):
                shutil.copyfile(path, copy)
                with suppress(FileNotFoundError):  # whoever had it open has closed it
                    shutil.copyfile(wal, companion_path(copy, "-wal"))
            if (_stamp(path), _stamp(wal)) == before:
                _take_in_wal(copy)
                return Snapshot(copy, _stamp(copy), directory)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        shutil.rmtree(directory)
    raise StoreBusy(where=path)


def companion_path(path: Path, suffix: str) -> Path:
    """Return the path of SQLite's file with this suffix next to a file: SQLite follows links first."""
    real = Path(os.path.realpath(path))
    return real.with_name(real.name + suffix)


def _take_in_wal(copy: Path) -> None:
    with suppress(sqlite3.Error), closing(sqlite3.connect(copy)) as connection:  # the reader reports what is wrong
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _stamp(path: Path) -> Stamp:
    with suppress(FileNotFoundError):
        status = path.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns
    return 0, 0, 0
