"""Making trees in the state directory: by tar, by git archive, and by a copy that is hashed as it is made."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path, PurePath
from tempfile import NamedTemporaryFile
from typing import IO

from kdyno.base import git, process
from kdyno.base.digests import recall, remember, stat_signature
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.packages import install_advice, requirements
from kdyno.base.state import DiskFull, State, require_space, translate_disk_full
from kdyno.kernel.source_trees import Say, lock_name, made_once, partial_path, remove_tree, tree_path

CHECKPOINT = 1000
"""tar records of 10 kB between two looks at how far it is, and at how many files there are."""
RECORD = 10_240
SAID = 20 * CHECKPOINT
"""Records between two words about progress."""
MOST_BYTES, MOST_FILE, MOST_ENTRIES = 8_000_000_000, 1_000_000_000, 1_000_000
"""Bytes of a tree, of a file in it, and the number of its files and directories. Linux 6.12 has 1.6 GB in 90,000
files.
"""
PIECE = 1 << 20
COMPRESSION = {".xz": "xz", ".gz": "gzip", ".tgz": "gzip", ".bz2": "bzip2", ".zst": "zstd"}
"""The program that tar calls, by the last part of a tarball's name."""
GROWTH = {".xz": 8, ".gz": 5, ".tgz": 5, ".bz2": 7, ".zst": 5}
"""The least ratio of a kernel's source to its tarball, in bytes: that of Linux 6.12 to its .tar.xz is ten."""
FILE_BYTES = 12_000
"""The least mean size of a file of a kernel's source on disk; that of Linux 6.12 is 18,000."""
UNPACK = ("tar", "-x", "--no-same-owner", "--no-same-permissions", "--no-overwrite-dir")
"""Root would keep owners and setuid bits by itself. What a tarball says of `.` is not for the directory it goes to."""
ENVIRONMENT = {"LC_ALL": "C", "TAR_OPTIONS": "", "XZ_DEFAULTS": "--memlimit-decompress=512MiB"}
UMASK = 0o022
UNCLEAN = (".config", "include/config", "arch/x86/include/generated")
"""Kbuild refuses to build with O= from a tree that has one of these (outputmakefile, top Makefile)."""


class DecompressorMissing(InfrastructureError):
    message = "{path} can't be unpacked: {program} is not installed"
    hint = "{way}"


class TarballBroken(UserError):
    message = "can't unpack {path}: {output}"
    hint = "fetch it again, and compare its checksum"


class SourceTooLarge(UserError):
    message = "{source} is too large for the source of a kernel: {why}"
    hint = f"Linux 6.12 has 1.6 GB in 90,000 files; up to {MOST_BYTES // 10**9} GB in {MOST_ENTRIES:,} are taken"


class ArchiveFailed(InfrastructureError):
    message = "can't take {commit} out of {repository}: {output}"
    hint = (
        "run `git fsck` in that repository; a partial clone has to be made whole first, since nothing is fetched here"
    )


class TreeNotClean(UserError):
    message = "{path} was built in, and is not a git work tree: it holds {what}, so sources and output are mixed"
    hint = "run `make mrproper` there, or name a git work tree (only what git tracks or would add is copied)"


def require_decompressor(path: Path) -> None:
    """Raise DecompressorMissing unless the program is here that tar needs for this tarball."""
    program = COMPRESSION.get(path.suffix)
    if program and shutil.which(program) is None:
        package = next(row.package for row in requirements() if row.program == program)
        raise DecompressorMissing(path=path, program=program, way=install_advice(package, program=program))


def tarball(path: Path, to: Path, say: Say) -> None:
    """Unpack a tarball into the empty directory `to`, without its one top directory.

    Raises DecompressorMissing, TarballBroken, SourceTooLarge, NoSpace and DiskFull.
    """
    require_decompressor(path)
    require_space(to, path.stat().st_size * GROWTH.get(path.suffix, 1))
    say(f"unpacking {path.name}")
    status, output = _unpacked(
        ["-f", path], to, str(path), lambda megabytes: say(f"unpacking {path.name}: {megabytes}")
    )
    if status != 0:
        raise TarballBroken(path=path, output=output or f"tar ended with status {status}")
    _lift_single_directory(to)


def _unpacked(
    words: Sequence[str | Path],
    to: Path,
    source: str,
    on_progress: Callable[[str], None],
    stdin: int | IO[bytes] = subprocess.DEVNULL,
) -> tuple[int, str]:
    """Have tar unpack an archive, as long as it isn't too large; return its status, and its last lines."""
    lines: deque[str] = deque(maxlen=5)
    entries = 0

    def on_line(line: str) -> None:
        nonlocal entries
        record = re.fullmatch(r"tar: (\d{1,18})", line)
        if not record:
            lines.append(line)
            return
        size = int(record[1]) * RECORD
        while piece := names.read(PIECE):
            entries += piece.count(b"\n")
        if size > MOST_BYTES:
            raise SourceTooLarge(source=source, why=f"it unpacks to more than {MOST_BYTES:,} bytes")
        if entries > MOST_ENTRIES:
            raise SourceTooLarge(source=source, why=f"it has more than {MOST_ENTRIES:,} files")
        if int(record[1]) % SAID == 0:
            on_progress(f"{size // 10**6} MB")

    with NamedTemporaryFile(prefix="kdyno-") as names:
        progress = [f"--checkpoint={CHECKPOINT}", "--checkpoint-action=echo=%u"]
        command = [*UNPACK, *words, "-C", to, *progress, "--verbose", f"--index-file={names.name}"]
        status = process.stream_lines(command, on_line, env=ENVIRONMENT, umask=UMASK, stdin=stdin)
    output = "\n".join(lines)
    if "No space left on device" in output:
        raise DiskFull(path=to)
    if status == 0:
        _require_moderate(_files_below(to), source)
    return status, output


def _files_below(tree: Path) -> Iterator[Path]:
    return (Path(folder, name) for folder, _, names in os.walk(tree) for name in names)


def _require_moderate(files: Iterable[Path], source: str) -> int:
    """Return how many bytes files have together: their sizes, not the space on disk, as a file with a hole is read
    whole. Raise SourceTooLarge if all, or one of them, are larger than those of a kernel.
    """
    total = 0
    for number, file in enumerate(files, 1):
        size = file.lstat().st_size
        total += size
        if size > MOST_FILE:
            raise SourceTooLarge(source=source, why=f"{file.name} in it has {size:,} bytes")
        if total > MOST_BYTES:
            raise SourceTooLarge(source=source, why=f"its files have more than {MOST_BYTES:,} bytes")
        if number > MOST_ENTRIES:
            raise SourceTooLarge(source=source, why=f"it has more than {MOST_ENTRIES:,} files")
    return total


def _lift_single_directory(to: Path) -> None:
    entries = list(to.iterdir())
    if len(entries) != 1 or not entries[0].is_dir() or entries[0].is_symlink():
        return
    top = entries[0].rename(to / ".kdyno-top")
    for entry in list(top.iterdir()):
        entry.rename(to / entry.name)
    top.rmdir()


def git_commit(repository: Path, commit: str, to: Path, say: Say) -> None:
    """Put the tree of a commit into the directory `to`; neither index nor work tree of the repository is touched."""
    say(f"taking {commit[:12]} out of {repository}")
    source = f"{commit[:12]} of {repository}"
    entries = count()

    def on_entry(_: str) -> None:
        if next(entries) >= MOST_ENTRIES:
            raise SourceTooLarge(source=source, why=f"it has more than {MOST_ENTRIES:,} files")

    git.visit_entries(
        repository, commit, on_entry
    )  # `git archive` has all of them in memory before it writes the first
    require_space(to, next(entries) * FILE_BYTES)
    with git.archive(repository, commit) as archive:
        assert archive.stdout is not None
        status, output = _unpacked(["-f", "-"], to, source, lambda _: None, archive.stdout)
        archive.stdout.close()
        if archive.wait() != 0:  # then tar says no more than that something is missing
            output = f"git archive failed\n{output}".strip()
        if status != 0 or archive.returncode != 0:
            raise ArchiveFailed(commit=commit, repository=repository, output=output)


def directory(path: Path, state: State, say: Say) -> str:
    """Copy a user's directory into the state directory; return the identity of what was copied.

    The copy is what is hashed: an edit during the copy can't get an image a wrong name. Raises SourceTooLarge,
    TreeNotClean, NoSpace and DiskFull.
    """
    files = sorted(source_files(path))
    size = _require_moderate(files, str(path))
    signature, settled = stat_signature(files)
    known = recall(signature, state)
    if known and tree_path(known, state).is_dir():
        return known
    mark = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    waiting = "waiting for another kdyno that copies the same directory"
    with state.lock(lock_name(f"copy-{mark}"), on_wait=lambda: say(waiting)):
        draft = partial_path(state.sources / f"copy-{mark}")
        remove_tree(draft)
        require_space(state.sources, size)
        try:
            say(f"copying {path}: {len(files)} files")
            with translate_disk_full(draft):
                identity = f"tree:{_copy(path, files, draft)}"
            made_once(tree_path(identity, state), lambda partial: _move(draft, partial), state, say)
        finally:
            remove_tree(draft)
    if settled and stat_signature(sorted(source_files(path)))[0] == signature:
        remember(signature, identity, state)
    return identity


def source_files(path: Path) -> Iterator[Path]:
    """Yield the files that make up a kernel tree: what git tracks or would add; without git, all there is."""
    if is_tracked(path):
        listed = git.output(path, "ls-files", "-z", "-co", "--exclude-standard")
        own = _own(path, filter(None, listed.split("\0")))
        yield from {file for file in own if _is_copyable(file)}
        return
    for name in UNCLEAN:
        if (path / name).exists():
            raise TreeNotClean(path=path, what=name)
    for folder, folders, names in os.walk(path):
        here = Path(folder)
        folders[:] = [name for name in folders if name != ".git" and not _is_object_directory(here / name)]
        links = (here / name for name in folders if (here / name).is_symlink())
        yield from (entry for entry in (*links, *(here / name for name in names)) if _is_copyable(entry))


def is_tracked(path: Path) -> bool:
    """Return whether git tracks the tree's Makefile, so that it knows which files are its."""
    try:
        return git.attempt(path, "ls-files", "--error-unmatch", "Makefile").returncode == 0
    except process.ToolMissing:
        return False


def _own(path: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield the files of these names that lie in the tree, not above it or behind a link: an index may hold any
    names.
    """
    folders = {PurePath()}
    for name in names:
        relative = PurePath(name)
        if relative.is_absolute() or {"..", ".git"} & {*relative.parts}:
            continue
        if relative.parent not in folders:
            above = relative.parents[:-1]
            if any((path / folder).is_symlink() for folder in above):
                continue
            folders.update(above)
        yield path / name


def _is_object_directory(path: Path) -> bool:
    return (path / ".config").is_file() and (path / "source").is_symlink()


def _is_copyable(entry: Path) -> bool:
    return entry.is_symlink() or entry.is_file()


def _copy(path: Path, files: list[Path], to: Path) -> str:
    content = hashlib.sha256()
    for file in files:
        name = file.relative_to(path)
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.is_symlink():
            digest, mode = hashlib.sha256(os.fsencode(file.readlink())), "link"
            target.symlink_to(file.readlink())
        else:
            digest, mode = hashlib.sha256(), "exec" if os.access(file, os.X_OK) else "file"
            with file.open("rb") as source, target.open("wb") as copy:
                while piece := source.read(PIECE):
                    digest.update(piece)
                    copy.write(piece)
            target.chmod(0o755 if mode == "exec" else 0o644)
        content.update(f"{mode} {digest.hexdigest()} ".encode() + os.fsencode(name) + b"\0")
    return content.hexdigest()


def _move(draft: Path, to: Path) -> None:
    for entry in draft.iterdir():
        shutil.move(entry, to / entry.name)
