"""Patches: applied in order to a private copy of the source, which is kept by what went into it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from kdyno import process
from kdyno.errors import UserError
from kdyno.frozen import Frozen, digest
from kdyno.kernel.source import Source
from kdyno.kernel.source_trees import Say, copy_by_links, made_once
from kdyno.state import State

SHOWN_LINES = 12


class PatchMissing(UserError):
    message = "can't read the patch {path}: {why}"
    hint = "paths in an experiment are relative to its file"


class PatchEmpty(UserError):
    message = "{path} holds no patch"
    hint = "make one with `git diff` or `git format-patch`"


class PatchFailed(UserError):
    message = "{path} doesn't apply to {source}: {said}"
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
    """Check that a patch can be read and isn't empty."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PatchMissing(path=path, why=error.strerror) from error
    if b"\n+++ " not in b"\n" + content and b"diff --git " not in content:
        raise PatchEmpty(path=path)
    return Patch(path=path, digest=hashlib.sha256(content).hexdigest())


def read_patches(paths: Sequence[str]) -> tuple[Patch, ...]:
    """The patches that a recipe names; the content of a patch counts, not its name."""
    return tuple(read_patch(Path(path).expanduser().absolute()) for path in paths)


def patched(source: Source, patches: Sequence[Patch], state: State, say: Say) -> Patched:
    """Return the tree of `source` with the patches in it; made at the first call, kept for the next ones."""
    if not patches:
        return Patched(tree=source.tree)
    name = digest([source.identity.identity, *(patch.digest for patch in patches)])
    tree = state.sources / f"patched-{name[:32]}"
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
        return []
    if _git_apply(patch, tree, "--check", "--reverse") is None:
        return [f"{patch.path.name} is already applied in {source}"]
    text = patch.path.read_text(encoding="utf-8", errors="replace")
    raise PatchFailed(path=patch.path, source=source, said=explain(failed, text))


def _git_apply(patch: Patch, tree: Path, *options: str) -> str | None:
    """None if it went in, else what git said. No repository around the tree and no git configuration has a say."""
    done = process.attempt(
        ["git", "apply", "-p1", "--whitespace=nowarn", *options, patch.path.absolute()],
        cwd=tree,
        env={
            "LC_ALL": "C",
            "GIT_CEILING_DIRECTORIES": str(tree.parent),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
        },
        guarded=True,
    )
    return None if done.returncode == 0 else done.stderr.strip() or f"git apply ended with status {done.returncode}"


def explain(said: str, patch: str) -> str:
    """Git's complaint as `file:line`, and the hunk that failed. Pure."""
    lines = [line.removeprefix("error: ") for line in said.splitlines()]
    place = next((match for line in lines if (match := re.fullmatch(r"patch failed: (.+):(\d+)", line))), None)
    if place is None:
        return "; ".join(lines)
    file, line = place[1], int(place[2])
    hunk = "\n".join(f"    {text}" for text in _hunk(patch, file, line)[:SHOWN_LINES])
    return f"the hunk at {file}:{line} doesn't fit\n{hunk}"


def _hunk(patch: str, file: str, line: int) -> list[str]:
    """The lines of the hunk of `file` that starts at `line` of the old file."""
    current, found = "", list[str]()
    for text in patch.splitlines():
        if text.startswith(("diff ", "--- ")) or text.startswith("@@ "):
            if found:
                break
            if text.startswith("--- "):
                current = text[4:].split("\t")[0].partition("/")[2]
            elif text.startswith("@@ ") and current == file and re.match(rf"@@ -{line}(,\d+)? ", text):
                found.append(text)
        elif found:
            found.append(text)
    return found
