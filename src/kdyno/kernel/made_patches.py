"""Patches that kdyno makes for the source at hand, and keeps in the state directory."""

from __future__ import annotations

import difflib
import hashlib

from kdyno.base.files import write_whole
from kdyno.base.state import State
from kdyno.kernel.patches import Patch


def changed(name: str, before: str, after: str) -> str:
    """Return the patch that makes one text of another, or nothing if they are the same. Pure."""
    if before == after:
        return ""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    marked = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return f"diff --git a/{name} b/{name}\n" + "".join(marked)


def keep(kind: str, text: str, state: State) -> Patch:
    """Return the patch with this text, which is kept in the state directory under its digest."""
    content = text.encode(errors="surrogateescape")
    digest = hashlib.sha256(content).hexdigest()
    path = state.patches / f"{kind}-{digest[:32]}.patch"
    if not path.exists():
        write_whole(path, content)
    return Patch(path=path, digest=digest)
