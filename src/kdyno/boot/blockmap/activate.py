"""`kdyno blockmap --activate`: makes the mapping, and keeps the file system from moving or changing the file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.process import quote
from kdyno.boot.blockmap import mapper
from kdyno.boot.blockmap.extents import FS_IMMUTABLE_FL, file_flags, set_file_flags
from kdyno.boot.blockmap.look import ROOT, look, opened
from kdyno.boot.blockmap.model import BlockMap

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class MappingNameUnfit(UserError):
    message = "{name!r} can't be a mapping's name"
    hint = "1 to 100 of A-Z, a-z, 0-9, _, . and -, the first no . or -"


class MappingNameTaken(UserError):
    message = "there is a mapping {name} already"
    hint = "choose another name, or take that away: `dmsetup remove {name}`"


class OnlyRoot(UserError):
    message = "only root may make a mapping"
    hint = "say the same under sudo; without --activate the table is printed, and nothing is changed"


class CantProtect(UserError):
    message = "{file} can't be made immutable: {why}"
    hint = "while there is a mapping of it nobody may write to it; mount its file system for writing, and try again"


class Changed(UserError):
    message = "{file} changed while it was looked at"
    hint = "end what writes to it, and try again"


def activate(named: str | Path, name: str, root: Path = ROOT) -> BlockMap:
    """Make a mapping of a file and the file immutable, where its file system can do that; say how to undo both.

    Where the mapping can't be made, the file's flags are as before. Raises what `look` and `mapper.create` raise.
    """
    if not NAME.fullmatch(name):
        raise MappingNameUnfit(name=name)
    if os.geteuid() != 0:
        raise OnlyRoot()
    if name in mapper.names(root).values():
        raise MappingNameTaken(name=name)
    with opened(named) as subject:
        before = look(subject, root)
        with _immutable(subject.path, subject.file, name, root) as made_immutable:
            os.fsync(subject.file)
            # Now that nobody can open it for writing any more: is it still so?
            again = look(subject, root)
            if again.table != before.table or os.fstat(subject.file).st_size != subject.size:
                raise Changed(file=subject.path)
            os.posix_fadvise(subject.file, 0, 0, os.POSIX_FADV_DONTNEED)
            mapper.create(name, again.table)
    undo = [quote(["dmsetup", "remove", name])]
    notes = list(again.notes)
    if made_immutable is None:
        notes.append(f"{again.file_system} has no immutable files: nothing keeps others from writing to this one")
    elif made_immutable:
        undo.append(quote(["chattr", "-i", subject.path]))
    return again.model_copy(update={"mapping": name, "undo": tuple(undo), "notes": tuple(notes)})


@contextmanager
def _immutable(path: Path, file: int, name: str, root: Path) -> Iterator[bool | None]:
    """Make a file immutable; if the body fails and left no mapping, it is as before.

    Yields whether it had to be done, None where the file system can't. Raises CantProtect.
    """
    flags = file_flags(file)
    if flags is None or flags & FS_IMMUTABLE_FL:
        yield None if flags is None else False
        return
    try:
        set_file_flags(file, flags | FS_IMMUTABLE_FL)
    except OSError as error:
        raise CantProtect(file=path, why=error.strerror) from error
    try:
        yield True
    except BaseException:
        if name not in mapper.names(root).values():  # an interruption may come after the mapping
            set_file_flags(file, flags)
        raise
