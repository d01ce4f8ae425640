"""The root file system of a guest: programs from Debian packages, read-only, the same for all boots; made without root.

Packages are unpacked in a user namespace (mmdebstrap's variant `extract`), and none of their scripts run. The measured
programs don't need the files that these scripts would create, except for a few files, which are written below.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import re
import subprocess
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.files import write_whole
from kdyno.base.frozen import digest
from kdyno.base.installed import find_program
from kdyno.base.ownership import is_root
from kdyno.base.packages import install_advice
from kdyno.base.process import attempt, spawn
from kdyno.base.regex import compile_pattern
from kdyno.base.state import ROOT_RECORD, DiskFull, State, translate_disk_full
from kdyno.base.talk import Talk
from kdyno.base.text import clean

VERSION = 1
"""The version of roots, increased when the same packages produce another root."""
SUITE = "bookworm"
BASE = ("usr-is-merged", "dash", "coreutils", "sed", "grep", "mawk", "procps")
"""The packages of every root, for the commands of workloads. usr-is-merged replaces a package that requires perl."""
SQUASHFS = "root.squashfs"
PACKAGE = re.compile(r"^[a-z0-9][a-z0-9.+-]{1,80}$")
ARCHIVES = "kdyno-archive "
"""The prefix of lines of mmdebstrap's output with the file of a package."""
LEFT_OUT = re.compile(r"(usr/share/(doc|man|locale|info|lintian|bug|doc-base)|etc/resolv\.conf|dev)(/|$)")
"""Paths that no measured program needs: half of the files."""
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n"
    "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
    "postgres:x:104:110:PostgreSQL:/var/lib/postgresql:/bin/sh\n"
    "redis:x:105:111::/var/lib/redis:/usr/sbin/nologin\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "etc/group": "root:x:0:\nwww-data:x:33:\npostgres:x:110:\nredis:x:111:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "etc/hostname": "kdyno\n",
}
"""What packages make of the file when they are set up."""
LINKS = {"usr/bin/awk": "mawk"}
MOST_UNPACKED = 4_000_000_000
"""The most bytes of all members of archives."""
NO_NAMESPACE = re.compile(r"^E: .*(subuid|subgid|unshare\(\)|unshare syscall|user namespace|newuidmap|newgidmap)")
"""The error of mmdebstrap if user namespaces are not allowed."""


class UnfitPackage(UserError):
    message = "{name!r} is not the name of a Debian package"
    hint = "find packages with `apt-cache search WORD`"


class RootFailed(InfrastructureError):
    message = "cannot make the guest's root file system from {packages}: {why}"
    hint = "use packages of Debian 12, which guests have on every host: packages.debian.org/bookworm lists them"


class NoUserNamespace(InfrastructureError):
    message = (
        "cannot make a guest's root file system as an ordinary user, because this host denies user namespaces: {why}"
    )
    hint = (
        "give this user subuids and subgids (man subuid) and namespaces "
        "(`sysctl kernel.unprivileged_userns_clone user.max_user_namespaces`); or run kdyno as root"
    )


class NotUnpacked(UserError):
    message = "the content of {archive} cannot be added to a guest's root file system: {why}"
    hint = "set `unpack` of the workload to tar archives of its packages, and a pattern of their members"


@dataclass(frozen=True)
class GuestRoot:
    """An existing root file system."""

    squashfs: Path
    digest: str
    """The SHA-256 of its bytes."""
    archives: tuple[str, ...]
    """The packages in it, with their versions: `dash_0.5.12-2_amd64.deb`."""


def guest_root(packages: Sequence[str], unpack: Mapping[str, str], state: State, talk: Talk) -> GuestRoot:
    """Return the root file system with these packages and their dependencies. The first call makes it, and stores it.

    The archives in `unpack` are replaced by their members that match its pattern.
    Raises UnfitPackage, ProgramMissing, NotUnpacked, NoUserNamespace, DiskFull and RootFailed.
    """
    for name in packages:
        if not PACKAGE.match(name):
            raise UnfitPackage(name=name)
    wanted = sorted({*BASE, *packages})
    identity = [VERSION, SUITE, wanted, *([dict(unpack)] if unpack else [])]
    directory = state.roots / digest(identity)[:32]
    with state.lock(f"root-{directory.name}", on_wait=lambda: talk.say("another kdyno makes the same root: waiting")):
        if not (directory / ROOT_RECORD).exists():
            talk.say(f"making the guest's root file system of {len(wanted)} Debian packages and their dependencies")
            with state.scratch("root") as scratch:
                archives = _make(wanted, unpack, scratch)
                directory.mkdir(parents=True, exist_ok=True)
                (scratch / SQUASHFS).replace(directory / SQUASHFS)
            content = hashlib.sha256((directory / SQUASHFS).read_bytes()).hexdigest()
            record = {"packages": wanted, "unpack": dict(unpack), "archives": archives, "digest": content}
            write_whole(directory / ROOT_RECORD, json.dumps(record, indent=1))
    record = json.loads((directory / ROOT_RECORD).read_text(encoding="utf-8"))
    return GuestRoot(directory / SQUASHFS, record["digest"], tuple(record["archives"]))


def _make(packages: Sequence[str], unpack: Mapping[str, str], scratch: Path) -> list[str]:
    """Make the squashfs in `scratch`, and return the names of the packages' files."""
    mmdebstrap = find_program("mmdebstrap", "a guest's root file system", install_advice("mmdebstrap"))
    tar2sqfs = find_program("tar2sqfs", "a guest's root file system", install_advice("squashfs-tools-ng"))
    environment = {"SOURCE_DATE_EPOCH": "0", "LC_ALL": "C.UTF-8", "TMPDIR": str(scratch)}
    scratch.chmod(0o755)  # another user, that of mmdebstrap, must have access
    hook = f'ls "$1"/var/cache/apt/archives | sed "s/^/{ARCHIVES}/" >&2'
    words = [str(mmdebstrap), "--mode=unshare", "--variant=extract", "--format=tar", f"--include={','.join(packages)}"]
    words += [f"--extract-hook={hook}", SUITE, "-"]
    plain = scratch / "root.tar"
    with translate_disk_full(scratch):
        messages = _unpacked(words, plain, environment, packages)
        tar2sqfs_words = [str(tar2sqfs), "-q", "-f", "-c", "lz4", str(scratch / SQUASHFS)]
        _pack(tar2sqfs_words, plain, unpack, environment, packages)
        plain.unlink()
    names = [line.removeprefix(ARCHIVES) for line in messages if line.startswith(ARCHIVES)]
    return sorted(name for name in names if name.endswith(".deb"))


def _unpacked(
    words: Sequence[str], plain: Path, environment: Mapping[str, str], packages: Sequence[str]
) -> Sequence[str]:
    """Let mmdebstrap write the archive, and return its messages. Raises DiskFull, NoUserNamespace and RootFailed."""
    try:
        with plain.open("wb") as tar, spawn(words, stdout=tar, stderr=subprocess.PIPE, env=environment) as making:
            assert making.stderr
            messages = making.stderr.read().decode(errors="replace").splitlines()
            status = making.wait()
    finally:
        _remove_others_files(words[0], plain.parent)
    if not status:
        return messages
    if any(NO_NAMESPACE.search(message) for message in messages):
        raise NoUserNamespace(why=_why(messages))
    if any("No space left on device" in message for message in messages):
        raise DiskFull(path=plain.parent)
    raise RootFailed(packages=" ".join(packages), why=_why(messages))


def _remove_others_files(mmdebstrap: str, scratch: Path) -> None:
    """Remove the files of an interrupted mmdebstrap in its namespace: they belong to users of the namespace."""
    left = [str(entry) for entry in scratch.iterdir() if entry.name.startswith("mmdebstrap.")]
    if left and not is_root():
        attempt([mmdebstrap, "--unshare-helper", "rm", "-rf", *left])


def _pack(
    words: Sequence[str],
    plain: Path,
    unpack: Mapping[str, str],
    environment: Mapping[str, str],
    packages: Sequence[str],
) -> None:
    """Let tar2sqfs convert the archive to a squashfs. Raises DiskFull, NotUnpacked and RootFailed."""
    complaints = plain.with_suffix(".log")
    with (
        complaints.open("wb") as log,
        spawn(words, stdin=subprocess.PIPE, stdout=log, env=environment) as packer,
        plain.open("rb") as tar,
    ):
        assert packer.stdin
        with suppress(BrokenPipeError), packer.stdin as target:  # tar2sqfs ended early, and prints why
            filtered(tar, target, unpack)
        status = packer.wait()
    complaint = clean(complaints.read_text(encoding="utf-8", errors="replace").strip())[-300:]
    if "No space left on device" in complaint:
        raise DiskFull(path=plain.parent)
    if status:
        raise RootFailed(packages=" ".join(packages), why=complaint or f"tar2sqfs ended with status {status}")


def filtered(source: IO[bytes], target: IO[bytes], unpack: Mapping[str, str]) -> None:
    """Copy an archive without unneeded paths, with the files of a root, and with one date. Raises NotUnpacked."""
    left = dict(unpack)
    with (
        tarfile.open(fileobj=source, mode="r|", encoding="utf-8") as old,
        tarfile.open(fileobj=target, mode="w|", encoding="utf-8") as new,
    ):
        for member in old:
            name = member.name.removeprefix("./")
            if LEFT_OUT.match(name) or name in FILES or name in LINKS:
                continue
            content = old.extractfile(member) if member.isreg() else None
            if content and name in left:
                _unpack(content, new, name, left.pop(name))
                continue
            member.mtime = 0
            new.addfile(member, content)
        for name in left:
            raise NotUnpacked(archive=name, why="no package contains it")
        for name, text in FILES.items():
            entry = tarfile.TarInfo(f"./{name}")
            entry.size = len(text)
            new.addfile(entry, io.BytesIO(text.encode()))
        for name, to in LINKS.items():
            entry = tarfile.TarInfo(f"./{name}")
            entry.type, entry.linkname = tarfile.SYMTYPE, to
            new.addfile(entry)


def _unpack(archive: IO[bytes], target: tarfile.TarFile, name: str, pattern: str) -> None:
    """Add the matching members in the directory of the archive. Raises NotUnpacked."""
    wanted, directory = compile_pattern(pattern), name.rpartition("/")[0]
    count, size = 0, 0
    try:
        with tarfile.open(fileobj=archive, mode="r|*", encoding="utf-8") as members:
            for member in members:
                path = PurePosixPath(member.name)
                if path.is_absolute() or ".." in path.parts or not (member.isreg() or member.isdir() or member.issym()):
                    continue
                if not wanted.search(str(path)):
                    continue
                count, size = count + 1, size + member.size
                if size > MOST_UNPACKED:
                    raise NotUnpacked(archive=name, why=f"more than {MOST_UNPACKED:,} bytes")
                member.name, member.mtime, member.uid, member.gid = f"./{directory}/{path}", 0, 0, 0
                target.addfile(member, members.extractfile(member) if member.isreg() else None)
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        raise NotUnpacked(archive=name, why=f"it is not a readable archive: {error}") from None
    if not count:
        raise NotUnpacked(archive=name, why="no member matches its pattern")


def _why(messages: Sequence[str]) -> str:
    """Return the error of mmdebstrap, or of apt below it."""
    errors = [message for message in messages if re.match(r"^E: ", message)]
    return clean("; ".join(message.removeprefix("E: ") for message in errors[:1]) or "; ".join(messages[-2:]))[:400]
