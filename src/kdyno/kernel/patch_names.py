"""The files of a patch before it is applied: their names, and the size of its binary parts. Pure.

Whatever git could take for a header is looked at, wherever it is: to leave out what is not a header here, but is one
to git, would be a hole.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache

NAMES = re.compile(rb"^(?:diff --git|copy from|copy to|rename (?:from|to|old|new)) (.*)$", re.M)
SIDES = re.compile(rb"^(?:---|\+\+\+) (.*)$", re.M)
"""In a hunk such a line is one of the file that begins with `--` or `++`."""
HUNKS = re.compile(rb"^\+\+\+ .*\n(?=@@ -)", re.M)
HUNK = re.compile(rb"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@.*\n?")
LINE = re.compile(rb"(?:([ \n])|(-)|(\+)|\\).*\n?")
"""Lines of a hunk: in both files, in the old one, in the new one; or a remark."""
ESCAPE = re.compile(rb'\\(?:([0-3][0-7]{2})|([abfnrtv"\\]))')
CONTROLS = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
ABSOLUTE = re.compile(rb'(?:^|[\s"/])/(?!dev/null(?:[\s"]|$))')
BINARY = re.compile(rb"^(literal|delta) (.*)$", re.M)


def stray(patch: bytes) -> str:
    """Return a name in the patch's headers that is absolute, or leads up by `..`; empty if there is none."""
    for header in NAMES.finditer(patch):
        if _leads_out(header[1]):
            return header[1].decode(errors="replace")

    @cache
    def hunks() -> list[tuple[int, int]]:
        return _hunks(patch)

    for side in SIDES.finditer(patch):
        if _leads_out(side[1]) and not _lies_in(side.start(), hunks()):
            return side[1].decode(errors="replace")
    return ""


def why_not_binary(patch: bytes, most_bytes: int) -> str:
    """Return what is wrong with the binary parts of a patch, which are compressed; empty if nothing is.

    How large a file becomes by a delta only git can tell, while it makes it.
    """
    if b"GIT binary patch" not in patch:
        return ""
    size = 0
    for part in BINARY.finditer(patch):
        if part[1] == b"delta":
            return "it changes a binary file"
        size += int(part[2]) if re.fullmatch(rb"\d{1,12}", part[2]) else most_bytes + 1
    return f"its binary files have more than {most_bytes:,} bytes" if size > most_bytes else ""


def _leads_out(name: bytes) -> bool:
    """Return whether a part of what follows a header's keyword does: one name or two, perhaps quoted, perhaps with a
    date.
    """
    return any(
        ABSOLUTE.search(text) or b".." in re.split(rb'[\s"/]', text) for text in {name, ESCAPE.sub(_unescaped, name)}
    )


def _unescaped(escape: re.Match[bytes]) -> bytes:
    return bytes([int(escape[1], 8)]) if escape[1] else CONTROLS.get(escape[2], escape[2])


def _hunks(patch: bytes) -> list[tuple[int, int]]:
    """Return where hunks begin and end, in order."""
    spans: list[tuple[int, int]] = []
    end = 0
    for header in HUNKS.finditer(patch):
        if header.end() <= end:
            continue  # it is a line of the last one
        end = header.end()
        while hunk := HUNK.match(patch, end):
            old, new = (1 if count is None else int(count) for count in hunk.groups())
            end = hunk.end()
            while (old > 0 or new > 0) and (line := LINE.match(patch, end)):
                old -= line[1] is not None or line[2] is not None
                new -= line[1] is not None or line[3] is not None
                end = line.end()
        spans.append((header.end(), end))
    return spans


def _lies_in(position: int, spans: list[tuple[int, int]]) -> bool:
    before = bisect_right(spans, (position, len(spans) and spans[-1][1])) - 1
    return before >= 0 and position < spans[before][1]
