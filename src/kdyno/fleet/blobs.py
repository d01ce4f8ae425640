"""The blob store of a fleet: files by the SHA-256 of their content, in a directory or another store of fsspec.

A file is checked when it arrives: one that doesn't match its name is refused.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kdyno.base.errors import KdynoError
from kdyno.base.state import translate_disk_full
from kdyno.fleet.errors import BlobDiffers, BlobMissing, BlobStoreFailed

PIECE = 1 << 20
NAME = re.compile(r"/[0-9a-f]{2}/([0-9a-f]{64})(?:\.[0-9a-f]{32}\.partial)?$")


@dataclass(frozen=True)
class StoredBlob:
    """A file of the store."""

    digest: str
    path: str
    size: int
    """In bytes."""
    modified: datetime


class Blobs:
    """A blob store by URL: a path, `file:///...`, `s3://bucket/prefix`. Raises BlobStoreFailed."""

    def __init__(self, url: str) -> None:
        self.where = url
        self._opened: tuple[Any, str] | None = None

    def check(self) -> None:
        """Raise BlobStoreFailed unless a file can be written and read."""
        content = b"kdyno fleet"
        digest = hashlib.sha256(content).hexdigest()
        with self._translated():
            files, _ = self._open()
            place = self._place(digest)
            self._make_parent(files, place)
            files.pipe_file(place, content)
            if files.cat_file(place) != content:
                raise BlobStoreFailed(where=self.where, why="a file isn't read as it was written")

    def put(self, path: Path) -> str:
        """Keep a copy of a file, and return its SHA-256. Equal content is kept once."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        with self._translated():
            files, _ = self._open()
            place = self._place(digest)
            if files.exists(place) and files.size(place) == path.stat().st_size:
                return digest
            self._make_parent(files, place)
            if self._is_directory(files):  # whole or not there
                partial = f"{place}.{uuid.uuid4().hex}.partial"
                try:
                    files.put_file(str(path), partial)
                    files.mv(partial, place)
                finally:
                    with suppress(FileNotFoundError):
                        files.rm_file(partial)
            else:
                files.put_file(str(path), place)
        return digest

    def get(self, digest: str, path: Path) -> None:
        """Write the file of this digest to a path. Raises BlobMissing, BlobDiffers and DiskFull."""
        received = hashlib.sha256()
        with self._translated(), translate_disk_full(path):
            files, _ = self._open()
            try:
                source = files.open(self._place(digest), "rb")
            except FileNotFoundError as error:
                raise BlobMissing(where=self.where, digest=digest) from error
            with source, path.open("wb") as target:
                while piece := source.read(PIECE):
                    received.update(piece)
                    target.write(piece)
        if received.hexdigest() != digest:
            path.unlink()
            raise BlobDiffers(where=self.where, digest=digest, actual=received.hexdigest())

    def has(self, digest: str) -> bool:
        """Return whether there is a file of this name."""
        with self._translated():
            files, _ = self._open()
            return bool(files.exists(self._place(digest)))

    def read(self, digest: str) -> bytes:
        """Return the content of a small file, unchecked. Raises BlobMissing."""
        with self._translated():
            files, _ = self._open()
            try:
                return bytes(files.cat_file(self._place(digest)))
            except FileNotFoundError as error:
                raise BlobMissing(where=self.where, digest=digest) from error

    def listing(self) -> Iterator[StoredBlob]:
        """Yield all files that have names of this store; half-written ones, too, which have a suffix."""
        with self._translated():
            files, root = self._open()
            files.invalidate_cache()  # other hosts put files there, too
            for path, facts in files.find(root, detail=True).items():
                if match := NAME.search(path):
                    yield StoredBlob(match[1], path, int(facts["size"]), files.modified(path))

    def remove(self, blob: StoredBlob) -> None:
        """Remove a file, if it is still there."""
        with self._translated(), suppress(FileNotFoundError):
            files, _ = self._open()
            files.rm_file(blob.path)

    def _open(self) -> tuple[Any, str]:
        if self._opened is None:
            from fsspec.core import url_to_fs

            files, root = url_to_fs(self.where)
            self._opened = files, root.rstrip("/")
        return self._opened

    def _place(self, digest: str) -> str:
        _, root = self._open()
        return f"{root}/{digest[:2]}/{digest}"

    def _make_parent(self, files: Any, place: str) -> None:
        if self._is_directory(files):
            files.makedirs(place.rpartition("/")[0], exist_ok=True)

    @staticmethod
    def _is_directory(files: Any) -> bool:
        from fsspec.implementations.local import LocalFileSystem

        return isinstance(files, LocalFileSystem)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (KdynoError, MemoryError):
            raise
        except OSError as error:
            raise BlobStoreFailed(where=self.where, why=error.strerror or str(error)) from error
        except Exception as error:  # each library behind fsspec has its own: botocore's are no OSError
            raise BlobStoreFailed(where=self.where, why=str(error) or type(error).__name__) from error
