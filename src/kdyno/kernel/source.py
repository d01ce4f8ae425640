"""The source: from what a user writes (a package, a directory, a tarball, a git revision) to a tree."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from kdyno.base import git, process
from kdyno.base.digests import file_digest
from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.base.names import absolute
from kdyno.base.packages import way_to_install
from kdyno.base.state import State
from kdyno.base.text import format_count
from kdyno.kernel import unpack
from kdyno.kernel.build_directory import require_fit
from kdyno.kernel.image import SourceIdentity
from kdyno.kernel.source_trees import Say, made_once, tree_path
from kdyno.kernel.version import kernel_version

USR_SRC = Path("/usr/src")
PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
"""The form of a package's name in Debian."""
ADDRESS = re.compile(r"(?:git:)?(?:[a-z][a-z0-9+.-]*://|git@)")
PACKED = (".tar.xz", ".tar.bz2")
"""Debian's and Ubuntu's form of a kernel's source in its package."""
TARBALLS = (".tar", ".tar.xz", ".tar.gz", ".tgz", ".tar.bz2", ".tar.zst")


KINDS = "name a source: debian:linux-source-6.12, a directory, a tarball (.tar.xz ...) or git:/repository#revision"


class SourceMissing(UserError):
    message = "there is no kernel source at {where}"
    hint = KINDS


class UnknownSource(UserError):
    message = "`{spec}` names no kernel source"
    hint = KINDS


class SourceIsAddress(UserError):
    message = "`{spec}` is an address, and kdyno fetches no source"
    hint = "fetch it (git clone, or a download whose signature you check), and name the file or directory here"


class PackageMissing(UserError):
    message = "the package {package} is not installed: there is no {path}"
    hint = "{way}; another source is a directory, a tarball (.tar.xz ...) or git:/repository#revision"


class RevisionMissing(UserError):
    message = "{repository} has no revision `{revision}`: {complaint}"
    hint = "name a tag, a branch or a commit of that local repository, after the #"


class KernelSource(Frozen):
    """A kernel tree on disk and what it is."""

    identity: SourceIdentity
    tree: Path
    """In the state directory, where nothing writes to it; not the user's own."""


def fetch(spec: str, state: State, say: Say) -> KernelSource:
    """Bring the source into the state directory, unless it is there; the user's own files are only read.

    Raise PathUnfit where no source could be built, before that takes time.
    """
    require_fit(state)
    kind, where = _kind(spec)
    return FETCHERS[kind](spec, where, state, say)


def require(spec: str, state: State) -> None:
    """Raise what `fetch` would raise before it copies or unpacks, so that no other source is unpacked in vain."""
    require_fit(state)
    kind, where = _kind(spec)
    if kind == "git":
        commit_of(where)


def located(spec: str | None, base: Path) -> str | None:
    """Return the spec with its path, if it has one, made absolute; relative ones start from `base`. Raise
    NameUnfit.
    """
    if spec is None:
        return None
    if ADDRESS.match(spec):
        raise SourceIsAddress(spec=spec)
    kind, separator, rest = spec.partition(":")
    if not separator:
        return absolute(spec, base)
    if kind == "debian":
        return spec
    path, mark, revision = rest.partition("#") if kind == "git" else (rest, "", "")
    return f"{kind}:{absolute(path, base)}{mark}{revision}"


def _kind(spec: str) -> tuple[str, str]:
    if ADDRESS.match(spec):
        raise SourceIsAddress(spec=spec)
    prefix, colon, rest = spec.partition(":")
    if colon and prefix in FETCHERS and rest:
        return prefix, rest
    path = Path(spec)
    if not spec:
        raise UnknownSource(spec=spec)
    if path.is_dir():
        return "dir", spec
    if path.name.endswith(TARBALLS):
        return "tarball", spec
    if colon:
        raise UnknownSource(spec=spec)
    raise SourceMissing(where=spec)


def _source(spec: str, identity: str, origin: str, tree: Path) -> KernelSource:
    version = kernel_version(tree, spec)
    return KernelSource(
        identity=SourceIdentity(spec=spec, identity=identity, version=version, origin=origin), tree=tree
    )


def _made(spec: str, identity: str, fill: Callable[[Path], None], state: State, say: Say) -> Path:
    """Return the tree of an identity, which is kept only if it is a kernel's."""
    return made_once(tree_path(identity, state), fill, state, say, check=lambda partial: kernel_version(partial, spec))


def _packed(package: str) -> list[Path]:
    """Return where a package may have its tarball."""
    return [USR_SRC / f"{package}{suffix}" for suffix in PACKED]


def _debian(spec: str, package: str, state: State, say: Say) -> KernelSource:
    if not PACKAGE.fullmatch(package):
        raise UnknownSource(spec=spec)
    path = next((path for path in _packed(package) if path.is_file()), None)
    if path is None:
        raise PackageMissing(package=package, path=_packed(package)[0], way=way_to_install(package))
    try:
        asked = process.attempt(["dpkg-query", "--show", "--showformat=${Package} ${Version}", package])
        origin = asked.stdout.strip() if asked.returncode == 0 else ""
    except process.ToolMissing:
        origin = ""
    return _from_tarball(spec, path, origin or path.name, state, say)


def _tarball(spec: str, where: str, state: State, say: Say) -> KernelSource:
    path = Path(where).absolute()
    if not path.is_file():
        raise SourceMissing(where=path)
    return _from_tarball(spec, path, path.name, state, say)


def _from_tarball(spec: str, path: Path, origin: str, state: State, say: Say) -> KernelSource:
    identity = f"tarball:{file_digest(path, state)}"

    def fill(partial: Path) -> None:
        unpack.tarball(path, partial, say)

    return _source(spec, identity, origin, _made(spec, identity, fill, state, say))


def _git(spec: str, where: str, state: State, say: Say) -> KernelSource:
    repository, commit = commit_of(where)
    described = git.attempt(repository, "describe", "--always", "--tags", commit).stdout.strip()

    def fill(partial: Path) -> None:
        unpack.git_commit(repository, commit, partial, say)

    identity = f"git:{commit}"
    return _source(spec, identity, described or commit, _made(spec, identity, fill, state, say))


def commit_of(where: str) -> tuple[Path, str]:
    """Return the repository, and the name of the commit. Raise SourceMissing and RevisionMissing."""
    name, _, revision = where.partition("#")
    repository, revision = Path(name).absolute(), revision or "HEAD"
    if not repository.is_dir():
        raise SourceMissing(where=repository)
    asked = git.attempt(repository, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    if asked.returncode != 0:
        raise RevisionMissing(repository=repository, revision=revision, complaint=asked.stderr.strip())
    return repository, asked.stdout.strip()


def _directory(spec: str, where: str, state: State, say: Say) -> KernelSource:
    path = Path(where).absolute()
    if not path.is_dir():
        raise SourceMissing(where=path)
    kernel_version(path, spec)
    origin = str(path)
    if unpack.is_tracked(path):
        described, changed = work_tree(path)
        origin = f"{path} ({described}{f', {changed} changed' if changed else ''})"
        if changed:
            say(f"note: {path} is measured as it is: {described}, and {changed} changed since")
    identity = unpack.directory(path, state, say)
    return _source(spec, identity, origin, tree_path(identity, state))


def work_tree(path: Path) -> tuple[str, str]:
    """Return git's name of the last commit of a work tree, and how many files differ from it; empty if it has none."""
    described = git.attempt(path, "describe", "--always", "--tags").stdout.strip() or "without a commit"
    try:
        off = git.filter_overrides(path)
    except git.FilterUnfit:  # git could only be asked with it
        return described, ""
    ask = ("status", "--porcelain", "--untracked-files=all", "--ignore-submodules=all", "--", ".")
    listed = git.attempt(path, *off, *ask).stdout
    return described, format_count(listed.count("\n"), "file") if listed else ""


FETCHERS: dict[str, Callable[[str, str, State, Say], KernelSource]] = {
    "debian": _debian,
    "dir": _directory,
    "git": _git,
    "tarball": _tarball,
}
