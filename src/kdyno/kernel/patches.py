"""Patches: applied in order to a private copy of the source, which is kept by what went into it.

A patch may be untrusted. git apply itself refuses to write outside of the tree, but it takes `copy from` any file,
and makes links that lead anywhere: what patches name is looked at before it runs, and links when they are there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from kdyno.base import git
from kdyno.base.errors import Unbuildable, UserError
from kdyno.base.files import read_whole
from kdyno.base.frozen import Frozen, digest
from kdyno.base.state import State
from kdyno.base.text import clean
from kdyno.kernel.patch_names import stray, why_not_binary
from kdyno.kernel.source import KernelSource
from kdyno.kernel.source_trees import LinkLeadsOut, Say, copy_by_links, made_once, require_plain

SHOWN_LINES = 12
MOST_BYTES = 256_000_000
"""Bytes of a patch, and of the files that its binary parts make; from one release of Linux to the next it is about 60
MB.
"""
MAKES_LINKS = re.compile(rb"120000|^(?:rename|copy) ", re.M)
"""Is in every patch that makes a link or moves one."""
_fit: set[str] = set()
"""Digests of patches that were looked at: each layout of each variant reads its patches again."""


class PatchMissing(UserError):
    message = "can't read the patch {path}: {why}"
    hint = "check the path: those in an experiment are relative to its file"


class PatchEmpty(UserError):
    message = "{path} holds no patch"
    hint = "make one with `git diff` or `git format-patch`"


class PatchUnfit(UserError):
    message = "{path} can't be applied: {why}"
    hint = "a patch may read and change files of the kernel tree only; make it with `git diff` in such a tree"


class PatchFailed(Unbuildable):
    message = "{path} doesn't apply to {source}: {output}"
    hint = "rebase it onto this source, or choose the source that it was made for"


class Patch(Frozen):
    """A patch file and the digest of its content."""

    path: Path
    digest: str


class Patched(Frozen):
    """A tree with patches in it, and what there is to say about how they went in."""

    tree: Path
    notes: tuple[str, ...] = ()


def read_patch(path: Path) -> Patch:
    """Check that a patch can be read, isn't empty, and names no file outside of a tree."""
    try:
        content = read_whole(path, MOST_BYTES)
    except OSError as error:
        raise PatchMissing(path=path, why=error.strerror) from error
    if b"\n+++ " not in b"\n" + content and b"diff --git " not in content:
        raise PatchEmpty(path=path)
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 not in _fit:
        if name := stray(content):
            raise PatchUnfit(path=path, why=f"it names {clean(name)}, which lies outside of the kernel tree")
        if why := why_not_binary(content, MOST_BYTES):
            raise PatchUnfit(path=path, why=why)
        _fit.add(sha256)
    return Patch(path=path, digest=sha256)


def read_patches(paths: Sequence[str]) -> tuple[Patch, ...]:
    """Return the patches that a recipe names; the content of a patch counts, not its name."""
    return tuple(read_patch(Path(path).absolute()) for path in paths)


def patched_tree(identity: str, patches: Sequence[str], state: State) -> Path:
    """Return where the tree of this source with these patches (SHA-256 of each) is kept."""
    return state.sources / f"patched-{digest([identity, *patches])[:32]}"


def patched(source: KernelSource, patches: Sequence[Patch], state: State, say: Say) -> Patched:
    """Return the tree of `source` with the patches in it; made at the first call, kept for the next ones."""
    if not patches:
        return Patched(tree=source.tree)
    tree = patched_tree(source.identity.identity, [patch.digest for patch in patches], state)
    record = tree.with_suffix(".json")

    def fill(partial: Path) -> None:
        say(f"applying {len(patches)} patch{'es' if len(patches) > 1 else ''} to a copy of {source.identity.spec}")
        copy_by_links(source.tree, partial)
        notes = [note for patch in patches for note in apply(patch, partial, source.identity.spec)]
        record.write_text(json.dumps(notes), encoding="utf-8")

    made_once(tree, fill, state, say)
    return Patched(tree=tree, notes=tuple(json.loads(record.read_text(encoding="utf-8"))))


def apply(patch: Patch, tree: Path, source: str) -> list[str]:
    """Apply one patch with -p1; return what is worth noting.

    git apply is all or nothing, and it unlinks a file before it writes the new one, so that hard links keep the
    old content.
    """
    failed = _git_apply(patch, tree)
    if failed is None:
        _refuse_links_out(patch, tree)
        return []
    if _git_apply(patch, tree, "--check", "--reverse") is None:
        return [f"{patch.path.name} is already applied in {source}"]
    text = patch.path.read_text(encoding="utf-8", errors="replace")
    raise PatchFailed(path=patch.path, source=source, output=explain(failed, text))


def _git_apply(patch: Patch, tree: Path, *options: str) -> str | None:
    """Apply a patch; return None on success, else git's message."""
    done = git.apply(tree, "-p1", "--whitespace=nowarn", *options, patch.path.absolute())
    return None if done.returncode == 0 else done.stderr.strip() or f"git apply ended with status {done.returncode}"


def _refuse_links_out(patch: Patch, tree: Path) -> None:
    """Raise PatchUnfit if the patch made a link that leads out of the tree: the next one could read through it."""
    if MAKES_LINKS.search(patch.path.read_bytes()):
        try:
            require_plain(tree)
        except LinkLeadsOut as error:
            raise PatchUnfit(path=patch.path, why=f"with it {clean(str(error))}") from error


def explain(output: str, patch: str) -> str:
    """Return git's complaint as `file:line`, and the hunk that failed. Pure."""
    lines = [line.removeprefix("error: ") for line in output.splitlines()]
    place = next((match for line in lines if (match := re.fullmatch(r"patch failed: (.+):(\d+)", line))), None)
    if place is None:
        return "; ".join(lines)
    file, line = place[1], int(place[2])
    hunk = "\n".join(f"    {text}" for text in _hunk(patch, file, line)[:SHOWN_LINES])
    return f"the hunk at {file}:{line} doesn't fit\n{hunk}"


def _hunk(patch: str, file: str, line: int) -> list[str]:
    """Return the lines of the hunk of `file` that starts at `line` of the old file."""
    current, hunk = "", list[str]()
    for text in patch.splitlines():
        if text.startswith(("diff ", "--- ")) or text.startswith("@@ "):
            if hunk:
                break
            if text.startswith("--- "):
                current = text[4:].split("\t")[0].partition("/")[2]
            elif text.startswith("@@ ") and current == file and re.match(rf"@@ -{line}(,\d+)? ", text):
                hunk.append(text)
        elif hunk:
            hunk.append(text)
    return hunk
