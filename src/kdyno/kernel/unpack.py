"""How trees get into the state directory: tar, git archive, and a copy that is hashed as it is made."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

from kdyno import git, process
from kdyno.digests import recall, remember, stat_signature
from kdyno.errors import InfrastructureError, UserError
from kdyno.kernel.source_trees import Say, lock_name, made_once, partial_path, remove_tree, tree_path
from kdyno.packages import requirements, way_to_install
from kdyno.state import DiskFull, State, disk_full_is_said

CHECKPOINT = 20_000
"""tar records of 10 kB between two words about progress."""
COMPRESSION = {".xz": "xz", ".gz": "gzip", ".tgz": "gzip", ".bz2": "bzip2", ".zst": "zstd"}
"""What tar calls for the last part of a tarball's name."""
UNPACK = ("tar", "-x", "--no-same-owner", "--no-same-permissions", "--no-overwrite-dir")
"""Root would keep owners and setuid bits by itself. What a tarball says of `.` is not for the directory it goes to."""
ENVIRONMENT = {"LC_ALL": "C", "TAR_OPTIONS": ""}
UMASK = 0o022
UNCLEAN = (".config", "include/config", "arch/x86/include/generated")
"""Kbuild refuses to build with O= from a tree that has one of these (outputmakefile, top Makefile)."""


class DecompressorMissing(InfrastructureError):
    message = "{path} can't be unpacked: {program} is not installed"
    hint = "{way}"


class TarballBroken(UserError):
    message = "can't unpack {path}: {output}"
    hint = "fetch it again, and compare its checksum"


class ArchiveFailed(InfrastructureError):
    message = "can't take {commit} out of {repository}: {output}"
    hint = (
        "run `git fsck` in that repository; a partial clone has to be made whole first, since nothing is fetched here"
    )


class TreeNotClean(UserError):
    message = "{path} was built in, and is no git work tree: it holds {what}, so that its sources can't be told apart"
    hint = "run `make mrproper` there, or name a git work tree (only what git tracks or would add is copied)"


def require_decompressor(path: Path) -> None:
    """Raise DecompressorMissing unless the program is here that tar needs for this tarball."""
    program = COMPRESSION.get(path.suffix)
    if program and shutil.which(program) is None:
        package = next(row.package for row in requirements() if row.program == program)
        raise DecompressorMissing(path=path, program=program, way=way_to_install(package, program=program))


def tarball(path: Path, to: Path, say: Say) -> None:
    """Unpack a tarball into the empty directory `to`, without its one top directory."""
    require_decompressor(path)
    say(f"unpacking {path.name}")
    lines: list[str] = []

    def on_line(line: str) -> None:
        if record := re.fullmatch(r"tar: (\d+)", line):
            say(f"unpacking {path.name}: {int(record[1]) // 100} MB")
        else:
            lines.append(line)

    progress = [f"--checkpoint={CHECKPOINT}", "--checkpoint-action=echo=%u"]
    command = [*UNPACK, "-f", str(path), "-C", str(to), *progress]
    status = process.stream_lines(command, on_line, env=ENVIRONMENT, umask=UMASK)
    if status != 0:
        output = "\n".join(lines[-5:])
        if "No space left on device" in output:
            raise DiskFull(path=to)
        raise TarballBroken(path=path, output=output or f"tar ended with status {status}")
    _lift_single_directory(to)


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
    with (
        git.archive(repository, commit) as archive,
        process.spawned(
            [*UNPACK, "-C", str(to)],
            stdin=archive.stdout,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            umask=UMASK,
        ) as tar,
    ):
        assert archive.stdout is not None
        archive.stdout.close()
        output = tar.communicate()[1].decode(errors="replace").strip()
        if "No space left on device" in output:
            raise DiskFull(path=to)
        if tar.returncode != 0 or archive.wait() != 0:
            raise ArchiveFailed(commit=commit, repository=repository, output=output or "git archive failed")


def directory(path: Path, state: State, say: Say) -> str:
    """Copy a user's directory into the state directory; return the identity of what was copied.

    The copy is what is hashed: an edit during the copy can't get an image a wrong name.
    """
    files = sorted(source_files(path))
    signature, settled = stat_signature(files)
    known = recall(signature, state)
    if known and tree_path(known, state).is_dir():
        return known
    mark = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    waiting = "waiting for another kdyno that copies the same directory"
    with state.lock(lock_name(f"copy-{mark}"), on_wait=lambda: say(waiting)):
        draft = partial_path(state.sources / f"copy-{mark}")
        remove_tree(draft)
        try:
            say(f"copying {path}: {len(files)} files")
            with disk_full_is_said(draft):
                identity = f"tree:{_copy(path, files, draft)}"
            made_once(tree_path(identity, state), lambda partial: _move(draft, partial), state, say)
        finally:
            remove_tree(draft)
    if settled and stat_signature(sorted(source_files(path)))[0] == signature:
        remember(signature, identity, state)
    return identity


def source_files(path: Path) -> Iterator[Path]:
    """The files that make up a kernel tree: what git tracks or would add; without git, all there is."""
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
    """Whether git tracks the tree's Makefile, so that it knows which files are its."""
    try:
        return git.attempt(path, "ls-files", "--error-unmatch", "Makefile").returncode == 0
    except process.ToolMissing:
        return False


def _own(path: Path, names: Iterable[str]) -> Iterator[Path]:
    """The files of these names that lie in the tree, not above it or behind a link: an index may hold any names."""
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
            data, mode = os.fsencode(file.readlink()), "link"
            target.symlink_to(file.readlink())
        else:
            data, mode = file.read_bytes(), "exec" if os.access(file, os.X_OK) else "file"
            target.write_bytes(data)
            target.chmod(0o755 if mode == "exec" else 0o644)
        content.update(f"{mode} {hashlib.sha256(data).hexdigest()} ".encode() + os.fsencode(name) + b"\0")
    return content.hexdigest()


def _move(draft: Path, to: Path) -> None:
    for entry in draft.iterdir():
        shutil.move(entry, to / entry.name)
