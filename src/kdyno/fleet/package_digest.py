"""The digest of this kdyno: who carries tasks of a run must have the same, or keys would not mean the same."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from kdyno.base.version import __version__

PACKAGE = Path(__file__).parents[1]
COMPILED = (".pyc", ".so")
"""Files that differ between hosts with the same source. What a boot has of them is part of its machine's facts."""
DIGITS = 16


@cache
def this_kdyno() -> str:
    """Return the version, and the start of the SHA-256 of the package's files: `0.1.0 3f2a...`."""
    content = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*")):
        if path.is_file() and path.suffix not in COMPILED:
            name = str(path.relative_to(PACKAGE)).encode()
            data = path.read_bytes()
            content.update(b"%d %d\n" % (len(name), len(data)) + name + data)
    return f"{__version__} {content.hexdigest()[:DIGITS]}"
