"""Writing a file: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from kdyno.errors import UserError
from kdyno.state import disk_full_is_said


class NotWritable(UserError):
    message = "can't write {path}: {why}"
    hint = "name a file in a directory that exists and that you may write to"


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader finds the old one or the whole new one. Raises NotWritable and DiskFull."""
    with disk_full_is_said(path):
        try:
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
            incoming = Path(name)
            try:
                with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                incoming.chmod(new_file_mode())
                incoming.replace(path)
            finally:
                incoming.unlink(missing_ok=True)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
            raise NotWritable(path=path, why=error.strerror) from error


def new_file_mode() -> int:
    """The mode that files get here; temporary files begin with another one."""
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
