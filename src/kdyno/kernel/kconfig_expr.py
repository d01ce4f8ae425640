"""Kconfig's expressions: parsed, evaluated against a .config, and blamed. Pure.

The language is Documentation/kbuild/kconfig-language.rst: symbols are n, m or y (0, 1, 2), && is min, || is max, ! is
2 - x, comparisons are y or n. A macro such as $(cc-option,...) can't be evaluated here: it counts as y.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

TOKEN = re.compile(r"\s*(&&|\|\||!=|<=|>=|[!()=<>]|\"[^\"]*\"|'[^']*'|\$\(|[\w.-]+)")
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
LEVELS = {"n": 0, "m": 1, "y": 2}
OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True)
class Leaf:
    """A symbol, a constant or a macro, or a comparison of two of them."""

    left: str
    operator: str = ""
    right: str = ""

    def level(self, config: Mapping[str, str]) -> int:
        left = value_of(self.left, config)
        if not self.operator:
            return 2 if self.left.startswith("$(") else LEVELS.get(left, 0)
        return 2 if _compare(left, self.operator, value_of(self.right, config)) else 0

    def blame(self, config: Mapping[str, str], wanted: bool) -> list[str]:
        if not self.operator:
            return [f"{'' if wanted else '!'}{self.left} ({self.left} is {value_of(self.left, config)})"]
        operator = self.operator if wanted else OPPOSITE[self.operator]
        return [f"{self.left}{operator}{self.right} ({self.left} is {value_of(self.left, config)})"]


@dataclass(frozen=True)
class Not:
    inner: Expression

    def level(self, config: Mapping[str, str]) -> int:
        return 2 - self.inner.level(config)

    def blame(self, config: Mapping[str, str], wanted: bool) -> list[str]:
        return self.inner.blame(config, not wanted)


@dataclass(frozen=True)
class Both:
    """All of (&&) or any of (||) its parts."""

    parts: tuple[Expression, ...]
    all_of: bool

    def level(self, config: Mapping[str, str]) -> int:
        return (min if self.all_of else max)(part.level(config) for part in self.parts)

    def blame(self, config: Mapping[str, str], wanted: bool) -> list[str]:
        guilty = [part for part in self.parts if part.level(config) != (2 if wanted else 0)]
        blamed = [name for part in guilty for name in part.blame(config, wanted)]
        return blamed if self.all_of == wanted else [" or ".join(blamed)]


Expression = Leaf | Not | Both


def value_of(name: str, config: Mapping[str, str]) -> str:
    """Return the value of a symbol or a constant; a symbol that .config doesn't know is n."""
    if name[0] in "\"'":
        return name[1:-1]
    if name in LEVELS or re.fullmatch(r"-?\d+|0x[0-9a-fA-F]+", name):
        return name
    return config.get(name, "n").strip('"')


def _compare(left: str, operator: str, right: str) -> bool:
    try:
        order = (int(left, 0) > int(right, 0)) - (int(left, 0) < int(right, 0))
    except ValueError:
        order = (left > right) - (left < right)
    met = {"=": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}
    return met[operator]


def tokens(text: str) -> list[str]:
    """Return the words of an expression; a macro with its nested parentheses is one word."""
    words: list[str] = []
    position = 0
    while match := TOKEN.match(text, position):
        word, position = match[1], match.end()
        if word == "$(":
            depth, start = 1, match.start(1)
            while depth and position < len(text):
                depth += {"(": 1, ")": -1}.get(text[position], 0)
                position += 1
            word = text[start:position]
        words.append(word)
    return words


def parse(text: str) -> Expression:
    """Return an expression from the text after `depends on`, `if` or `visible if`."""
    words = tokens(text)
    expression = _any_of(words)
    if words:
        raise ValueError(f"can't read the Kconfig expression `{text}`")
    return expression


def _any_of(words: list[str]) -> Expression:
    return _chain(words, "||", lambda: _chain(words, "&&", lambda: _factor(words), True), False)


def _chain(words: list[str], operator: str, part: Callable[[], Expression], all_of: bool) -> Expression:
    parts = [part()]
    while words and words[0] == operator:
        words.pop(0)
        parts.append(part())
    return parts[0] if len(parts) == 1 else Both(tuple(parts), all_of)


def _factor(words: list[str]) -> Expression:
    if not words:
        raise ValueError("a Kconfig expression ends too early")
    word = words.pop(0)
    if word == "!":
        return Not(_factor(words))
    if word == "(":
        inner = _any_of(words)
        if not words or words.pop(0) != ")":
            raise ValueError("a Kconfig expression lacks a closing parenthesis")
        return inner
    if len(words) > 1 and words[0] in COMPARISONS:
        return Leaf(word, words.pop(0), words.pop(0))
    return Leaf(word)
