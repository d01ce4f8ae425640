"""Edits of one function of a source file, found by its name, wherever a version of Linux has it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kdyno.kernel.routines.families import SourceEdit

ASSEMBLER = ".S"
INCLUDE = re.compile(r"#\s*include\b")
LICENCE = re.compile(r"(?://|/\*) SPDX-License-Identifier:")


class EditFailed(Exception):
    """An edit that doesn't fit the text; the message says why."""


def edited(text: str, edit: SourceEdit, rewrite: str, words: Sequence[str]) -> str:
    """Return the text of `edit.file` after the edit. Raises EditFailed.

    `rewrite` is the text of the candidate's own file, and `words` are those of its compiler (`-DREP_FROM=256`).
    """
    lines = text.splitlines(keepends=True)
    first, end = find_function(lines, edit.function, is_assembler=edit.file.endswith(ASSEMBLER))
    if edit.way == "rewrite":
        return "".join(_rewritten(lines, first, end, edit, rewrite, words))
    if edit.way == "remove":
        return "".join(lines[: _without_blank(lines, first)] + lines[end:])
    function = "".join(lines[first:end])
    if function.count(edit.old) != 1:
        raise EditFailed(f"{edit.function} of {edit.file} has {edit.old.strip()!r} {function.count(edit.old)} times")
    return "".join((*lines[:first], function.replace(edit.old, edit.new), *lines[end:]))


def find_function(lines: Sequence[str], name: str, *, is_assembler: bool) -> tuple[int, int]:
    """Return the place of a function's first line, and the place after its last one. Raises EditFailed."""
    find = _find_in_assembler if is_assembler else _find_in_c
    places = find(lines, name)
    if len(places) != 1:
        raise EditFailed(f"there are {len(places)} functions {name}")
    return places[0]


def _find_in_assembler(lines: Sequence[str], name: str) -> list[tuple[int, int]]:
    head = re.compile(rf"SYM_(?:TYPED_)?FUNC_START(?:_[A-Z_]+)?\({re.escape(name)}\)\s*$")
    ends = [place for place, line in enumerate(lines) if line.rstrip() == f"SYM_FUNC_END({name})"]
    heads = [place for place, line in enumerate(lines) if head.match(line)]
    return [(first, ends[0] + 1) for first in heads if len(ends) == 1 and first < ends[0]]


def _find_in_c(lines: Sequence[str], name: str) -> list[tuple[int, int]]:
    """Return the definitions: a line at the margin with the name, later one `{`, and one `}`."""
    head = re.compile(rf"[A-Za-z_][^;#]*\b{re.escape(name)}\([^;]*$")
    places = []
    for first, line in enumerate(lines):
        if line[:1].isspace() or not head.match(line.rstrip("\n")):
            continue
        opening = next((place for place in range(first, len(lines)) if lines[place].rstrip() in ("{", "")), len(lines))
        if opening == len(lines) or lines[opening].rstrip() != "{":
            continue
        closing = next((place for place in range(opening, len(lines)) if lines[place].rstrip() == "}"), len(lines))
        if closing < len(lines) and not any(";" in part for part in lines[first:opening]):
            places.append((first, closing + 1))
    return places


def _rewritten(
    lines: Sequence[str], first: int, end: int, edit: SourceEdit, rewrite: str, words: Sequence[str]
) -> list[str]:
    """Return the lines of the file with the candidate's function in the place of the kernel's.

    What the candidate's file has before its function comes before the function's own comment. The kernel's first lines
    stay, which name, align and type it, and the last one of assembler.
    """
    is_assembler = edit.file.endswith(ASSEMBLER)
    own = _resolve_conditions(rewrite.splitlines(keepends=True), words)
    own_first, own_end = find_function(own, edit.function, is_assembler=is_assembler)
    helpers = _stripped([line for line in own[:own_first] if not (INCLUDE.match(line) or LICENCE.match(line))])
    function = list(own[own_first:own_end])
    if is_assembler:
        function = [lines[first], *function[1:-1], lines[end - 1]]
    else:
        function = [*lines[first : _opening(lines, first)], *function[_opening(function, 0) :]]
    above = _comment_above(lines, first)
    gap = ["\n"] if helpers else []
    return [*lines[:above], *helpers, *gap, *lines[above:first], *function, *lines[end:]]


def _opening(lines: Sequence[str], first: int) -> int:
    """Return the place of the brace that opens a function."""
    return next(place for place in range(first, len(lines)) if lines[place].rstrip() == "{")


def _resolve_conditions(lines: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the lines that a preprocessor keeps of `#ifdef NAME` or `#ifndef NAME` to `#endif`.

    `words` define the names, which become their values. Conditions may neither be nested nor have an `#else`.
    """
    value_by_name = dict(word.removeprefix("-D").split("=", 1) for word in words if word.startswith("-D"))
    names = re.compile(rf"\b({'|'.join(map(re.escape, value_by_name))})\b") if value_by_name else None
    kept, is_kept = list[str](), True
    for line in lines:
        if line.startswith(("#ifdef ", "#ifndef ")):
            is_kept = (line.split()[1] in value_by_name) == line.startswith("#ifdef ")
        elif line.startswith("#endif"):
            is_kept = True
        elif is_kept:
            kept.append(names.sub(lambda match: value_by_name[match[1]], line) if names else line)
    return kept


def _comment_above(lines: Sequence[str], first: int) -> int:
    """Return the place of the comment that ends right above a function, or the function's own."""
    if not first or not lines[first - 1].rstrip().endswith("*/"):
        return first
    place = first - 1
    while place and not lines[place].lstrip().startswith("/*"):
        place -= 1
    return place


def _without_blank(lines: Sequence[str], first: int) -> int:
    """Return the place of the blank line above a function, or the function's own."""
    return first - 1 if first and not lines[first - 1].strip() else first


def _stripped(lines: Sequence[str]) -> list[str]:
    """Return the lines without blank ones at the beginning and the end."""
    text = "".join(lines).strip("\n")
    return f"{text}\n".splitlines(keepends=True) if text else []
