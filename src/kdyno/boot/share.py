"""The directory that guests can read: a digest of its content, on which samples may depend."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from kdyno.base.digests import recall, remember, stat_signature
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.state import State

MOST_ENTRIES = 100_000
"""A kernel's source has 85,000 files."""
MOST_BYTES = 20_000_000_000


class ShareMissing(UserError):
    message = "the directory {share}, which [machine] or --share shares with guests, does not exist"
    hint = "name an existing directory; a relative path starts from that of the experiment file"


class ShareTooLarge(UserError):
    message = (
        "the directory {share}, which [machine] shares with guests, has more than {limit}: "
        "a boot's key contains a digest of its content"
    )
    hint = "share a directory with only the files that the workload reads"


class ShareChanged(InfrastructureError):
    message = "the directory {share}, which guests can read, changed during the run: the last boot is not kept"
    hint = "run the same command again: boots with the new content belong to another run"


@dataclass(frozen=True)
class Share:
    """A shared directory as it was when its content was read."""

    directory: Path
    digest: str
    """64 hex digits; equal directories have equal digests, wherever they are."""
    signature: str

    def require_unchanged(self) -> None:
        """Raise ShareChanged if a file was added, removed or written since."""
        try:
            signature, _ = stat_signature(_entries(self.directory))
        except OSError:
            signature = ""
        if signature != self.signature:
            raise ShareChanged(share=self.directory)


def require_share(directory: Path) -> None:
    """Raise ShareMissing."""
    if not directory.is_dir():
        raise ShareMissing(share=directory)


def read_share(directory: Path, state: State) -> Share:
    """Return the directory with its digest, which is remembered by stat. Raises ShareMissing and ShareTooLarge."""
    require_share(directory)
    entries = list(islice(_entries(directory), MOST_ENTRIES + 1))
    if len(entries) > MOST_ENTRIES:
        raise ShareTooLarge(share=directory, limit=f"{MOST_ENTRIES:,} files")
    signature, settled = stat_signature(entries)
    if known := recall(signature, state):
        return Share(directory, known, signature)
    if sum(entry.lstat().st_size for entry in entries) > MOST_BYTES:
        raise ShareTooLarge(share=directory, limit=f"{MOST_BYTES // 10**9} GB")
    content = hashlib.sha256()
    for entry in entries:
        content.update(os.fsencode(f"{entry.relative_to(directory)}\0{_described(entry)}\0"))
    share = Share(directory, content.hexdigest(), signature)
    share.require_unchanged()
    if settled:
        remember(signature, share.digest, state)
    return share


def _entries(directory: Path) -> Iterator[Path]:
    """Yield the directory and all in it, always in the same order."""
    yield directory
    for folder, folders, names in os.walk(directory):
        folders.sort()
        yield from (Path(folder, name) for name in sorted((*folders, *names)))


def _described(entry: Path) -> str:
    """Return what a guest sees of an entry, apart from its owner and its times."""
    mode = entry.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"link {entry.readlink()}"
    content = ""
    if stat.S_ISREG(mode):
        try:
            with entry.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        except PermissionError:  # the guest, which QEMU reads for as this user, can't read it either
            content = "unreadable"
    return f"{mode:o} {content}"
