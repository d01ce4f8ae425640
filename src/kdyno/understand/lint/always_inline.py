"""Finds the functions that a kernel's source declares always_inline, in its text and without a compiler."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from contextlib import suppress
from pathlib import Path

from kdyno.base import process
from kdyno.base.errors import UserError
from kdyno.base.files import read_whole

LEFT_OUT = frozenset(("Documentation", "samples", "scripts", "tools", "usr", ".git"))
"""Top directories without code of the running kernel."""
ARCHITECTURES = ("x86",)
OBJECTS = "System.map"
"""A file of every object directory."""
NOTHING = 1
"""The exit status of grep without a match."""
MOST_BYTES = 50_000_000
"""The largest source file that is read; no kernel has larger ones."""
ALWAYS_INLINE = re.compile(rb"\b__always_inline\b|\b__attribute__\s*\(\(\s*(?:__)?always_inline(?:__)?\s*\)\)")
CALLED = re.compile(rb"\b([A-Za-z_]\w*)\s*\(")
NOT_NAMES = frozenset(
    (b"__attribute__", b"typeof", b"__typeof__", b"__printf", b"__alloc_size", b"__aligned", b"__section")
)
"""Words that may have parentheses between the mark and the name."""
LONGEST_HEAD = 400
"""The most bytes from the mark to the name: a return type and attributes."""
LONGEST_PARAMETERS = 4000
COMMENT = re.compile(rb"/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|\Z)|//[^\n]*")
"""It has no possessive groups: Python 3.11.2 of Debian 12 matches them incorrectly."""
NO_HEAD = re.compile(rb"[;{}=#\\]")


class NoKernelSource(UserError):
    message = "{path} is not a kernel source tree: {missing} is missing"
    hint = "name the top directory of the source that the objects were compiled from"


def always_inline_names(tree: Path) -> set[str]:
    """Return the names of functions that the source declares always_inline. Raises NoKernelSource and ToolFailed."""
    for part in ("Kconfig", "include/linux"):
        if not (tree / part).exists():
            raise NoKernelSource(path=tree, missing=part)
    names: set[str] = set()
    for text in sources(tree, "always_inline", "*.[ch]"):
        names |= declared_names(text)
    return names


def defined_without(tree: Path, names: Set[str]) -> set[str]:
    """Return the names that the tree also defines without always_inline, in C or in assembly. Raises ToolFailed."""
    defined_names: set[str] = set()
    if names:
        alternatives = "|".join(map(re.escape, sorted(names)))
        pattern = re.compile(rf"\b({alternatives})\s*\(".encode())
        assembly = re.compile(rf"\bSYM_\w*FUNC\w*\(\s*({alternatives})\b".encode())
        for text in sources(tree, rf"\b({alternatives})\b", "*.[chS]"):
            defined_names |= plainly_defined(text, pattern)
            defined_names |= {name.decode() for name in assembly.findall(text)}
    return defined_names


def sources(tree: Path, pattern: str, names: str) -> Iterator[bytes]:
    """Yield the text of each source with the pattern, without other architectures. Raises ToolFailed."""
    # The top of a build directory has links into the source; links below it would visit directories twice.
    entries = [entry for entry in sorted(tree.iterdir()) if entry.name not in LEFT_OUT | {"arch"}]
    entries += [tree / "arch" / name for name in ARCHITECTURES]
    folders = [entry.resolve() for entry in entries if entry.is_dir() and not (entry / OBJECTS).exists()]
    command: list[str | Path] = ["grep", "-rlZE", f"--include={names}", "-e", pattern, "--", *folders]
    result = process.attempt(command, env={"LC_ALL": "C"}, guarded=True)
    if result.returncode > NOTHING:
        raise process.failure(command, result.returncode, result.stderr)
    for path in result.stdout.split("\0"):
        if path:
            with suppress(OSError):
                yield read_whole(Path(path), MOST_BYTES)


def declared_names(text: bytes) -> set[str]:
    """Return the names of the functions that a source declares always_inline. Pure."""
    names = set()
    text = COMMENT.sub(b" ", text)
    for mark in ALWAYS_INLINE.finditer(text):
        if _is_in_macro(text, mark.start()):
            continue
        head = text[mark.end() : mark.end() + LONGEST_HEAD]
        name_match = next((match for match in CALLED.finditer(head) if match[1] not in NOT_NAMES), None)
        if name_match and not NO_HEAD.search(head[: name_match.start()]):
            names.add(name_match[1].decode())
    return names


def plainly_defined(text: bytes, pattern: re.Pattern[bytes]) -> set[str]:
    """Return the names matched by `pattern` that a source defines without always_inline. Pure."""
    if not pattern.search(text):
        return set()
    text = COMMENT.sub(b" ", text)
    names = set()
    for call in pattern.finditer(text):
        end = _after_parentheses(text, call.end() - 1)
        is_definition = end is not None and re.match(rb"[\s\w]{0,200}\{", text[end : end + LONGEST_HEAD])
        if is_definition and not _is_in_macro(text, call.start()):
            start = max(text.rfind(mark, 0, call.start()) for mark in (b";", b"}", b"{", b"#"))
            if not ALWAYS_INLINE.search(text, max(start, 0), call.start()):
                names.add(call[1].decode())
    return names


def _is_in_macro(text: bytes, place: int) -> bool:
    """Return whether a place belongs to a directive of the preprocessor, which may have several lines."""
    start = text.rfind(b"\n", 0, place) + 1
    while start >= 2 and text[start - 2 : start] == b"\\\n":
        start = text.rfind(b"\n", 0, start - 1) + 1
    return text[start:place].lstrip().startswith(b"#")


def _after_parentheses(text: bytes, start: int) -> int | None:
    """Return the place after the parenthesis that closes the one at `start`; None without one."""
    depth = 0
    for place in range(start, min(len(text), start + LONGEST_PARAMETERS)):
        depth += (text[place] == ord("(")) - (text[place] == ord(")"))
        if depth == 0:
            return place + 1
    return None
