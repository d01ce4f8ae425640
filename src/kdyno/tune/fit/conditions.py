"""The lines of a source that are compiled only if a symbol is set, by its `#if` lines. Pure.

It reads `#ifdef CONFIG_X`, `#if` with defined(), IS_ENABLED() and the like, alone or joined by &&, and `#ifndef` and
`#if !` with their `#else`. It ignores other conditions, and IS_ENABLED() in C code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

DIRECTIVE = re.compile(r"[ \t]{0,40}#[ \t]{0,40}(ifdef|ifndef|if|elif|else|endif)\b(.*)")
SET = r"(?:defined\s?\(?\s?|IS_(?:ENABLED|BUILTIN|REACHABLE)\s?\(\s?)CONFIG_(\w{1,100})\s?\)?"
ALONE = re.compile(rf"\(?\s?{SET}\s?\)?")
NAME = re.compile(r"CONFIG_(\w{1,100})")
COMMENT = re.compile(r"/\*.{0,400}?\*/|//.*|/\*.*")
MOST_CHARACTERS = 1000
"""The longest condition that is read, with its continuation lines; a longer one is ignored."""


@dataclass(frozen=True)
class Conditional:
    """Lines that are compiled only if the symbol (without CONFIG_) is set."""

    symbol: str
    first: int
    last: int


@dataclass(frozen=True)
class _Branch:
    """The branch of a condition that a line is in."""

    first: int
    symbols: tuple[str, ...]
    """All of them are set there."""
    otherwise: tuple[str, ...]
    """All of them are set in the `#else` that may follow."""


def conditionals(lines: Sequence[str]) -> Iterator[Conditional]:
    """Yield the conditional parts of a source file, inner ones first; numbers of lines start from 1."""
    branches: list[_Branch] = []
    for number, word, condition in _directives(lines):
        if word in ("if", "ifdef", "ifndef"):
            branches.append(_open_branch(number + 1, word, condition))
        elif branches:
            branch = branches.pop()
            yield from (Conditional(symbol, branch.first, number - 1) for symbol in branch.symbols)
            if word == "else":
                branches.append(_Branch(number + 1, branch.otherwise, ()))
            elif word == "elif":
                branches.append(_Branch(number + 1, _all_set(condition), ()))


def _open_branch(first: int, word: str, condition: str) -> _Branch:
    name = NAME.fullmatch(condition)
    if word == "ifdef":
        return _Branch(first, (name[1],) if name else (), ())
    if word == "ifndef":
        return _Branch(first, (), (name[1],) if name else ())
    if condition.startswith("!") and "&&" not in condition and "||" not in condition:
        return _Branch(first, (), _all_set(condition[1:].strip()))
    return _Branch(first, _all_set(condition), ())


def _all_set(condition: str) -> tuple[str, ...]:
    """Return the symbols that must be set for this condition; empty if it has an alternative."""
    if "||" in condition or "?" in condition or len(condition) > MOST_CHARACTERS:
        return ()
    parts = (ALONE.fullmatch(part.strip()) for part in condition.split("&&"))
    return tuple(part[1] for part in parts if part)


def _directives(lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield number, word and condition of each directive; the number is that of its last line."""
    pending = ""
    for number, line in enumerate(lines, start=1):
        text = pending + line
        if text.endswith("\\") and len(text) <= MOST_CHARACTERS and (pending or DIRECTIVE.match(text)):
            pending = text[:-1] + " "
            continue
        pending = ""
        if directive := DIRECTIVE.match(text):
            condition = " ".join(COMMENT.sub("", directive[2]).split())
            yield number, directive[1], condition
