"""Which functions a kernel's source declares always_inline: read from its text, without a compiler."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from contextlib import suppress
from pathlib import Path

from kdyno.base import process
from kdyno.base.errors import UserError
from kdyno.base.files import read_whole

LEFT_OUT = frozenset(("Documentation", "samples", "scripts", "tools", "usr", ".git"))
"""Directories at the top that hold no code of the running kernel."""
ARCHITECTURES = ("x86",)
OBJECTS = "System.map"
"""An object directory has it."""
NOTHING = 1
"""What grep exits with where there is no match."""
MOST_BYTES = 50_000_000
"""Of a source; larger ones are no kernel's."""
ALWAYS_INLINE = re.compile(rb"\b__always_inline\b|\b__attribute__\s*\(\(\s*(?:__)?always_inline(?:__)?\s*\)\)")
CALLED = re.compile(rb"\b([A-Za-z_]\w*)\s*\(")
NOT_NAMES = frozenset(
    (b"__attribute__", b"typeof", b"__typeof__", b"__printf", b"__alloc_size", b"__aligned", b"__section")
)
"""What may stand with parentheses between the mark and the name."""
LONGEST_HEAD = 400
"""Bytes from the mark to the name: a return type and attributes."""
LONGEST_PARAMETERS = 4000
COMMENT = re.compile(rb"/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|\Z)|//[^\n]*")
"""Without possessive groups: Python 3.11.2, which is Debian 12's, gets them wrong."""
NO_HEAD = re.compile(rb"[;{}=#\\]")


class NoKernelSource(UserError):
    message = "{path} is no kernel source: it has no {missing}"
    hint = "name the top directory of the source that the objects were compiled from"


def always_inline_names(tree: Path) -> set[str]:
    """Names of functions that the source declares always_inline somewhere. Raises NoKernelSource, ToolFailed."""
    for part in ("Kconfig", "include/linux"):
        if not (tree / part).exists():
            raise NoKernelSource(path=tree, missing=part)
    names: set[str] = set()
    for text in sources(tree, "always_inline", "*.[ch]"):
        names |= declared(text)
    return names


def defined_without(tree: Path, names: Set[str]) -> set[str]:
    """Those of the names that the tree also defines without always_inline, in C or in assembly. Raises ToolFailed."""
    defined: set[str] = set()
    if names:
        alternatives = "|".join(map(re.escape, sorted(names)))
        wanted = re.compile(rf"\b({alternatives})\s*\(".encode())
        assembly = re.compile(rf"\bSYM_\w*FUNC\w*\(\s*({alternatives})\b".encode())
        for text in sources(tree, rf"\b({alternatives})\b", "*.[chS]"):
            defined |= plainly_defined(text, wanted)
            defined |= {name.decode() for name in assembly.findall(text)}
    return defined


def sources(tree: Path, pattern: str, names: str) -> Iterator[bytes]:
    """The text of each source in which a pattern occurs, those of other architectures left out. Raises ToolFailed."""
    # What lies at the top of a build directory are links into a source; below, links would lead to places twice.
    entries = [entry for entry in sorted(tree.iterdir()) if entry.name not in LEFT_OUT | {"arch"}]
    entries += [tree / "arch" / name for name in ARCHITECTURES]
    folders = [entry.resolve() for entry in entries if entry.is_dir() and not (entry / OBJECTS).exists()]
    command: list[str | Path] = ["grep", "-rlZE", f"--include={names}", "-e", pattern, "--", *folders]
    done = process.attempt(command, env={"LC_ALL": "C"}, guarded=True)
    if done.returncode > NOTHING:
        raise process.failure(command, done.returncode, done.stderr)
    for path in done.stdout.split("\0"):
        if path:
            with suppress(OSError):
                yield read_whole(Path(path), MOST_BYTES)


def declared(text: bytes) -> set[str]:
    """Names of the functions that a source declares always_inline. Pure."""
    names = set()
    text = COMMENT.sub(b" ", text)
    for mark in ALWAYS_INLINE.finditer(text):
        if _is_in_macro(text, mark.start()):
            continue
        head = text[mark.end() : mark.end() + LONGEST_HEAD]
        called = next((match for match in CALLED.finditer(head) if match[1] not in NOT_NAMES), None)
        if called and not NO_HEAD.search(head[: called.start()]):
            names.add(called[1].decode())
    return names


def plainly_defined(text: bytes, wanted: re.Pattern[bytes]) -> set[str]:
    """Of the names that `wanted` matches, those that a source defines without always_inline. Pure."""
    if not wanted.search(text):
        return set()
    text = COMMENT.sub(b" ", text)
    names = set()
    for call in wanted.finditer(text):
        end = _after_parentheses(text, call.end() - 1)
        is_definition = end is not None and re.match(rb"[\s\w]{0,200}\{", text[end : end + LONGEST_HEAD])
        if is_definition and not _is_in_macro(text, call.start()):
            start = max(text.rfind(mark, 0, call.start()) for mark in (b";", b"}", b"{", b"#"))
            if not ALWAYS_INLINE.search(text, max(start, 0), call.start()):
                names.add(call[1].decode())
    return names


def _is_in_macro(text: bytes, place: int) -> bool:
    """Whether a place belongs to a directive of the preprocessor, which may go on over lines."""
    start = text.rfind(b"\n", 0, place) + 1
    while start >= 2 and text[start - 2 : start] == b"\\\n":
        start = text.rfind(b"\n", 0, start - 1) + 1
    return text[start:place].lstrip().startswith(b"#")


def _after_parentheses(text: bytes, start: int) -> int | None:
    """The place after the parenthesis that closes the one at `start`."""
    depth = 0
    for place in range(start, min(len(text), start + LONGEST_PARAMETERS)):
        depth += (text[place] == ord("(")) - (text[place] == ord(")"))
        if depth == 0:
            return place + 1
    return None
