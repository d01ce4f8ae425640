"""A reader of Kconfig files: where a symbol is defined, what it depends on, and who selects it. Pure but for reading.

Only what an explanation needs: no defaults, no macros of its own, no modules. The kernel's conf decides; this explains.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kdyno.base.files import read_whole

MOST_BYTES = 50_000_000
"""Bytes of all files together; those of Linux 6.12 for x86 have 4 MB."""
MOST_DEPTH = 30
"""Levels of files that source each other; Linux has 6."""
TYPES = r"bool|tristate|string|int|hex|def_bool|def_tristate"
TYPE = re.compile(rf"({TYPES})\b")
PROMPT = re.compile(rf"(?:{TYPES}|prompt)\s+(\"(?:[^\"\\]|\\.)*\"|'[^']*')\s*(?:if\s+(.*))?")
SELECT = re.compile(r"select\s+(\w+)(?:\s+if\s+(.*))?")
SOURCE = re.compile(r"(r)?(o)?source\s+[\"'](.+)[\"']")


@dataclass
class KconfigEntry:
    """One `config` entry of a symbol; a symbol may have several."""

    symbol: str
    place: str
    """`drivers/net/Kconfig:12`"""
    depends: list[str] = field(default_factory=list)
    """Expressions that must hold: its own and those of the ifs, menus and choices around it."""
    prompts: list[str] = field(default_factory=list)
    """The condition of each prompt; `y` for a prompt without one."""
    choice: str = ""
    """The place of the choice that it is a member of."""
    type: str = ""
    """bool, tristate, string, int or hex; empty if another entry of the symbol gives it."""


@dataclass
class KconfigBlock:
    """An if, a menu or a choice that is open."""

    kind: str
    depends: list[str] = field(default_factory=list)
    place: str = ""


@dataclass
class KconfigTree:
    """All entries of a source, by symbol, and who selects what under which condition."""

    entries: dict[str, list[KconfigEntry]] = field(default_factory=dict)
    selects: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    srcarch: str = "x86"
    """The directory in arch/ whose symbols it has."""
    left: int = MOST_BYTES
    """Bytes that may still be read."""

    @property
    def is_whole(self) -> bool:
        """Return whether everything was read."""
        return self.left > 0


HEADER_ARCH = "x86"
"""The architecture of the host, whose files arch/um/Kconfig reads."""


def read_tree(tree: Path, srcarch: str = "x86") -> KconfigTree:
    """Read Kconfig and all that it sources. The tree may be untrusted: its files may source each other for ever."""
    kconfig = KconfigTree(srcarch=srcarch)
    _read_file(tree, "Kconfig", srcarch, [], kconfig)
    return kconfig


def _read_file(
    tree: Path, name: str, srcarch: str, around: list[KconfigBlock], kconfig: KconfigTree, depth: int = 0
) -> None:
    path = tree / name
    is_inside = not os.path.relpath(path, tree).startswith("..")
    if depth > MOST_DEPTH or kconfig.left <= 0:
        kconfig.left = 0
        return
    if not is_inside or not path.is_file():
        return
    try:
        content = read_whole(path, kconfig.left)
    except OSError:
        kconfig.left = 0
        return
    kconfig.left -= len(content) + 1
    blocks = list(around)
    entry: KconfigEntry | None = None
    for number, line in statements(content.decode(errors="replace")):
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        if word in ("config", "menuconfig"):
            choice = next((block.place for block in reversed(blocks) if block.kind == "choice"), "")
            entry = KconfigEntry(
                rest, f"{name}:{number}", [condition for block in blocks for condition in block.depends], choice=choice
            )
            kconfig.entries.setdefault(rest, []).append(entry)
        elif word in ("if", "menu", "choice"):
            entry = None
            blocks.append(KconfigBlock(word, [rest] if word == "if" else [], f"{name}:{number}"))
        elif word in ("endif", "endmenu", "endchoice"):
            entry = None
            del blocks[-1:]
        elif word == "comment":
            entry = KconfigEntry("", name)
        elif match := SOURCE.match(line):
            entry = None
            target = match[3].replace("$(SRCARCH)", srcarch).replace("$(HEADER_ARCH)", HEADER_ARCH)
            _read_file(
                tree, str(Path(name).parent / target) if match[1] else target, srcarch, blocks, kconfig, depth + 1
            )
        else:
            _attribute(line, entry, blocks[-1] if blocks else None, kconfig)


def _attribute(line: str, entry: KconfigEntry | None, block: KconfigBlock | None, kconfig: KconfigTree) -> None:
    if match := re.match(r"(?:depends on|visible if)\s+(.*)", line):
        if entry is not None:
            entry.depends.append(match[1])
        elif block is not None:
            block.depends.append(match[1])
        return
    if entry is None:
        return
    if match := TYPE.match(line):
        entry.type = match[1].removeprefix("def_")
    if match := PROMPT.match(line):
        entry.prompts.append(match[2] or "y")
    elif match := SELECT.match(line):
        kconfig.selects.setdefault(match[1], []).append((entry.symbol, match[2] or "y"))


def statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a Kconfig file with their numbers: continued lines joined, comments and help texts left
    out.
    """
    help_indent: int | None = None
    in_help = False
    joined, start = "", 0
    for number, raw in enumerate(text.expandtabs().splitlines(), start=1):
        if in_help:
            indent = len(raw) - len(raw.lstrip())
            if not raw.strip() or (help_indent is None and indent > 0) or (help_indent and indent >= help_indent):
                help_indent = help_indent or (indent if raw.strip() else None)
                continue
            in_help, help_indent = False, None
        joined, start = joined + raw.rstrip("\\").strip() + " ", start or number
        if raw.endswith("\\"):
            continue
        line, begun = re.sub(r"\s+", " ", _without_comment(joined)).strip(), start
        joined, start = "", 0
        if line in ("help", "---help---"):
            in_help = True
        elif line:
            yield begun, line


def _without_comment(line: str) -> str:
    if "#" not in line:
        return line
    kept = re.match(r"(?:[^#\"']|\"(?:[^\"\\]|\\.)*\"|'[^']*')*", line)
    return kept[0] if kept else line
