"""`kdyno blockmap --activate`: creates the mapping, and prevents the file system from moving or changing the file."""

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
from kdyno.boot.blockmap.look import ROOT, look, open_subject
from kdyno.boot.blockmap.model import BlockMap

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class MappingNameUnfit(UserError):
    message = "{name!r} is not a valid name of a mapping"
    hint = "use 1 to 100 of A-Z, a-z, 0-9, _, . and -, not starting with . or -"


class MappingNameTaken(UserError):
    message = "the mapping {name} already exists"
    hint = "choose another name, or remove the mapping: `dmsetup remove {name}`"


class OnlyRoot(UserError):
    message = "only root may create a mapping"
    hint = "run the same command with sudo, or print the table without --activate"


class CantProtect(UserError):
    message = "{file} cannot be made immutable: {why}"
    hint = "mount its file system for writing, and try again: the file must not change while it is mapped"


class Changed(UserError):
    message = "{file} changed while it was examined"
    hint = "stop the process that writes to it, and try again"


def activate(file_name: str | Path, name: str, root: Path = ROOT) -> BlockMap:
    """Create a mapping of a file, and make the file immutable if its file system supports that.

    The result has the commands that undo both. If the mapping fails, the flags of the file are restored.

    Raises what `look` and `mapper.create` raise.
    """
    if not NAME.fullmatch(name):
        raise MappingNameUnfit(name=name)
    if os.geteuid() != 0:
        raise OnlyRoot()
    if name in mapper.names(root).values():
        raise MappingNameTaken(name=name)
    with open_subject(file_name) as subject:
        first_look = look(subject, root)
        with _immutable(subject.path, subject.file, name, root) as made_immutable:
            os.fsync(subject.file)
            # Check again, now that nobody can open the file for writing.
            second_look = look(subject, root)
            if second_look.table != first_look.table or os.fstat(subject.file).st_size != subject.size:
                raise Changed(file=subject.path)
            os.posix_fadvise(subject.file, 0, 0, os.POSIX_FADV_DONTNEED)
            mapper.create(name, second_look.table)
    undo = [quote(["dmsetup", "remove", name])]
    notes = list(second_look.notes)
    if made_immutable is None:
        notes.append(
            f"{second_look.file_system} does not support immutable files: other processes can still write to the file"
        )
    elif made_immutable:
        undo.append(quote(["chattr", "-i", subject.path]))
    return second_look.model_copy(update={"mapping": name, "undo": tuple(undo), "notes": tuple(notes)})


@contextmanager
def _immutable(path: Path, file: int, name: str, root: Path) -> Iterator[bool | None]:
    """Make a file immutable; if the body fails without a mapping, its flags are restored.

    Yields whether the flag was changed; None if the file system doesn't support it. Raises CantProtect.
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
