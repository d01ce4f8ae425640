"""The source files that each configuration symbol adds to a kernel, from its makefiles.

It reads `obj-$(CONFIG_X) += a.o dir/`, composite objects (`a-y`, `a-objs`, `a-$(CONFIG_Y)`), and lines between
`ifdef CONFIG_X`, `ifeq ($(CONFIG_X),y)` or `ifneq ($(CONFIG_X),)` and their `else` or `endif`. It skips other make
code, and executes no makefile.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kdyno.base.files import read_whole

MAKEFILES = ("Kbuild", "Makefile")
MOST_BYTES = 1_000_000
ASSIGNMENT = re.compile(r"([\w./-]{1,200})-(y|objs|\$\(CONFIG_(\w{1,100})\))[ \t]{0,100}[:+]?=(.*)")
CONDITION = re.compile(
    r"ifdef +CONFIG_(\w{1,100})|ifeq +\(\$\(CONFIG_(\w{1,100})\), *y\)|ifneq +\(\$\(CONFIG_(\w{1,100})\), *\)"
)
OTHER_CONDITION = re.compile(r"(ifdef|ifndef|ifeq|ifneq)\b")
SUFFIXES = (".c", ".S")


@dataclass(frozen=True)
class KbuildRule:
    """An assignment: these objects or directories belong to `name` if all symbols are set."""

    name: str
    symbols: tuple[str, ...]
    items: tuple[str, ...]


def files_of_symbols(tree: Path, files: Iterable[str]) -> dict[str, set[str]]:
    """Return by symbol (without CONFIG_) the files that it adds among `files`, which are relative to the tree."""
    known_files = set(files)
    files_of: dict[str, set[str]] = defaultdict(set)
    for folder in sorted({"", *(parent for file in known_files for parent in _parent_folders(file))}):
        rules = list(_rules(tree, folder))
        for rule in rules:
            if rule.symbols:
                added_files = {file for item in rule.items for file in _files(item, folder, rules, known_files)}
                for symbol in rule.symbols:
                    files_of[symbol] |= added_files
    return {symbol: added_files for symbol, added_files in files_of.items() if added_files}


def _parent_folders(file: str) -> Iterator[str]:
    folder = posixpath.dirname(file)
    while folder:
        yield folder
        folder = posixpath.dirname(folder)


def _rules(tree: Path, folder: str) -> Iterator[KbuildRule]:
    for name in MAKEFILES:
        try:
            content = read_whole(tree / folder / name, MOST_BYTES)
        except OSError:
            continue
        yield from read_rules(content.decode(errors="replace"))


def read_rules(text: str) -> Iterator[KbuildRule]:
    """Yield the assignments of a makefile. Pure."""
    conditions: list[str] = []
    """The symbol of each open condition; empty for a condition that is not read."""
    for line in text.replace("\\\n", " ").splitlines():
        words = line.partition("#")[0].strip()
        if condition := CONDITION.match(words):
            conditions.append(condition[1] or condition[2] or condition[3])
        elif OTHER_CONDITION.match(words):
            conditions.append("")
        elif words.startswith("else") and conditions:
            conditions[-1] = ""
        elif words.startswith("endif") and conditions:
            conditions.pop()
        elif assignment := ASSIGNMENT.fullmatch(words):
            symbols = (*filter(None, conditions), *filter(None, (assignment[3],)))
            yield KbuildRule(assignment[1], symbols, tuple(assignment[4].split()))


def _files(item: str, folder: str, rules: list[KbuildRule], known_files: set[str]) -> set[str]:
    """Return the source files behind an object or a directory. Each object is visited once."""
    files: set[str] = set()
    waiting, visited = [item], {item}
    while waiting:
        part = waiting.pop()
        path = posixpath.normpath(posixpath.join(folder, part))
        if part.endswith("/"):
            # Makefiles of architectures name directories from the top of the tree.
            files |= {file for file in known_files if file.startswith((f"{path}/", part))}
        elif part.endswith(".o"):
            files |= {f"{path[:-2]}{suffix}" for suffix in SUFFIXES} & known_files
            new = {inner for rule in rules if rule.name == part[:-2] for inner in rule.items} - visited
            visited |= new
            waiting += new
    return files
