"""Every regular expression takes time in proportion to its text, whatever the text."""

from __future__ import annotations

import ast
import importlib
import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import pytest

from kdyno.base import regex
from kdyno.base.text import clean, clean_lines
from kdyno.boot.console import SYMPTOMS, TAIL_BYTES, diagnose
from tests.fuzz.check import bounded_time
from tests.unit.growth import ATTEMPTS, FACTOR, MOST, UNSEEN, repeated, seconds, too_steep
from tests.unit.test_structure import FILES, name_of, parsed

parser: Any = importlib.import_module("re._parser")
IMPORT = re.compile(r"^ *import re$", re.MULTILINE)
"""As ruff has it: one module a line. Parsing all of the source takes seconds, and each process of pytest does it."""
METHODS = {"search", "match", "fullmatch", "sub", "finditer", "findall", "split"}
ATTACKS = 100
"""Texts for each expression."""
USUAL = "a1 :-/.,\"'x\t(Z_=\n"


class Use(NamedTuple):
    """An expression, and a way in which it is used."""

    where: str
    expression: re.Pattern[Any]
    method: str

    def __str__(self) -> str:
        return f"{self.where}.{self.method}"

    def work(self, text: str) -> object:
        subject = text.encode() if isinstance(self.expression.pattern, bytes) else text
        if self.method == "sub":
            return self.expression.sub(subject[:0], subject)
        result = getattr(self.expression, self.method)(subject)
        return list(result) if self.method == "finditer" else result


@cache
def uses() -> list[Use]:
    """Every expression of Python's in the source: in variables and tables of modules, and in calls of re.search()."""
    named: dict[str, set[Use]] = {}
    methods: dict[str, set[str]] = {}
    all_uses: list[Use] = []
    for file in FILES:
        if not IMPORT.search(file.read_text(encoding="utf-8")):
            continue
        module = importlib.import_module(name_of(file))
        for name, value in vars(module).items():
            for index, part in enumerate(value if isinstance(value, (list, tuple)) else [value]):
                if isinstance(part, re.Pattern):
                    named.setdefault(name, set()).add(Use(f"{module.__name__}.{name}[{index}]", part, "search"))
        for node in ast.walk(parsed(file)):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=method)) if method in METHODS:
                    flags = sum(getattr(re, arg.attr) for arg in node.args[2:] if isinstance(arg, ast.Attribute))
                    expression = re.compile(literal(node.args[0], vars(module)), flags)
                    all_uses.append(Use(f"{module.__name__}:{node.lineno}", expression, method))
                case ast.Attribute(value=ast.Name(id=owner), attr=method) if method in METHODS and owner != "re":
                    methods.setdefault(owner, set()).add(method)
    for name, group in named.items():
        all_uses += [use._replace(method=method) for use in group for method in methods.get(name, {use.method})]
    return sorted(all_uses, key=str)


def literal(node: ast.AST, names: dict[str, Any]) -> str:
    """The text of an expression; what a function puts into it becomes `x`."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.JoinedStr), ast.dump(node)
    return "".join(
        str(part.value)
        if isinstance(part, ast.Constant)
        else str(names.get(getattr(getattr(part, "value", None), "id", ""), "x"))
        for part in node.values
    )


def pieces(tree: Any, chance: random.Random) -> list[str]:
    """A text that an expression matches, or nearly, in pieces: runs of literals, and one for each other part."""
    parts: list[str] = []
    literal_before = False
    for kind, value in tree:
        name = str(kind)
        if name == "LITERAL":
            if literal_before:
                parts[-1] += chr(value)
            else:
                parts.append(chr(value))
        elif name in ("ANY", "IN", "NOT_LITERAL"):
            parts.append(member(name, value, chance))
        elif name == "BRANCH":
            parts += pieces(chance.choice(value[1]), chance)
        elif name in ("SUBPATTERN", "ATOMIC_GROUP"):
            parts += pieces(value[3] if name == "SUBPATTERN" else value, chance)
        elif name.endswith("REPEAT"):
            least, most, body = value
            for _ in range(chance.randint(int(least), min(int(most), int(least) + 2))):
                parts += pieces(body, chance)
        literal_before = name == "LITERAL"
    return parts


def member(kind: str, value: Any, chance: random.Random) -> str:
    """A character that stands for a class."""
    usual = chance.sample(USUAL, len(USUAL))
    if kind == "ANY":
        return usual[0]
    if kind == "NOT_LITERAL":
        return next(character for character in usual if ord(character) != value)
    return next((character for character in usual if in_class(character, value)), chr(first_of(value)))


def in_class(character: str, items: Sequence[Any]) -> bool:
    negated, inside = False, False
    for kind, value in items:
        name = str(kind)
        if name == "NEGATE":
            negated = True
        elif name == "LITERAL":
            inside |= ord(character) == value
        elif name == "RANGE":
            inside |= value[0] <= ord(character) <= value[1]
        elif name == "CATEGORY":
            category = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}[str(value).split("_")[-1]]
            inside |= bool(re.match(category, character)) != ("NOT" in str(value))
    return inside != negated


def first_of(items: Sequence[Any]) -> int:
    return next(
        (value if str(kind) == "LITERAL" else value[0] for kind, value in items if str(kind) in "LITERAL RANGE"), 120
    )


def attacks(pattern: str | bytes, flags: int) -> Iterator[tuple[str, str, str]]:
    """Texts that could take long: what is before a part, the part again and again, and an end that doesn't fit."""
    chance = random.Random(1)
    tree = parser.parse(pattern, flags)
    for _ in range(ATTACKS):
        text = pieces(tree, chance) or ["x"]
        start = chance.randrange(len(text))
        end = start + 1 if chance.random() < 0.5 else chance.randint(start + 1, len(text))
        prefix = "".join(text[:start]) if chance.random() < 0.7 else ""
        tail = chance.choice(["\0", "!", "x", "\n", "", "".join(text[end:])])
        yield prefix, "".join(text[start:end]), tail


def test_the_source_has_expressions_to_look_at() -> None:
    assert len(uses()) > 60


@pytest.mark.parametrize("use", uses(), ids=str)
def test_an_expression_takes_time_in_proportion_to_its_text(use: Use) -> None:
    for prefix, unit, tail in attacks(use.expression.pattern, use.expression.flags):
        wrong = too_steep(use.work, repeated(prefix, unit, tail))
        assert not wrong, f"{use.expression.pattern!r} on {prefix!r} + {unit!r} * n + {tail!r}: {wrong}"


@pytest.mark.parametrize("pattern", ["(a+)+$", "((?:a|aa)+)$", "(?:(?:a*)*)*b(c)", "(.*a){12}b"])
@pytest.mark.parametrize("unit", ["a", "ab", "aab"])
def test_re2_takes_time_in_proportion_to_the_text_for_every_expression(pattern: str, unit: str) -> None:
    # For texts that are shorter RE2 has a way of its own, which is faster still.
    text, search = repeated("", unit, "!"), regex.compile_pattern(pattern).search
    pairs = ((seconds(search, text(1 << 14), 5), seconds(search, text(FACTOR << 14), 5)) for _ in range(ATTEMPTS))
    assert any(long < max(MOST * short, UNSEEN) for short, long in pairs)


def test_what_only_python_has_is_no_expression() -> None:
    for pattern in (r"(a)\1", "(?=a)", "(?<!a)b", "a++", "(?>a)", "(", "a{1001}"):
        with pytest.raises(regex.BadPattern):
            regex.compile_pattern(pattern)


def consoles() -> list[tuple[str, str, str]]:
    """What a guest may write to be slow to read: parts of the kernel's messages, and characters by chance."""
    chance = random.Random(2)
    texts = [("", "\n", ""), ("", "\x1b[", ""), ("", "\ufffd", ""), ("Kernel panic - not syncing", "x", "")]
    for symptom in SYMPTOMS:
        message = re.sub(r"\\d\+|\(\?m\)|\(\?:|[|).*$^?+\\]+", " ", symptom.pattern.pattern)
        words = message.split()
        texts += [("", message.strip() + " ", ""), ("", f"{words[0]} ", ""), (message, "1", ""), (message, " ", "\n")]
        texts += [
            ("", "".join(chance.choices([*message, "\n", "\r", "7"], k=chance.randint(2, 20))), "") for _ in range(3)
        ]
    return texts


@pytest.mark.parametrize(("prefix", "unit", "tail"), [*consoles(), ("", "INFO: task ", ""), ("", "rcu: INFO: ", "")])
def test_a_console_is_read_in_a_blink_whatever_a_guest_wrote(prefix: str, unit: str, tail: str) -> None:
    console = repeated(prefix, unit, tail)
    assert not too_steep(diagnose, console, 1 << 16)
    with bounded_time():
        diagnose(console(TAIL_BYTES))


def test_no_more_of_a_line_than_a_reason_needs_is_shown() -> None:
    assert len(diagnose("Kernel panic - not syncing: " + "x" * TAIL_BYTES) or "") < 400


ESCAPE_STARTS = [
    "\x1b[",
    "\x9b",
    "\x1b]",
    "\x1b",
    "\x1b[0",
    "\x1b[ ",
    "\x1b]0;",
    "\x1bP",
    "\x1b ",
    "\x1b[0;1",
    "\r\n",
    "\t",
]


@pytest.mark.parametrize("work", [clean, clean_lines])
@pytest.mark.parametrize("start", ESCAPE_STARTS)
def test_text_is_cleaned_in_time_in_proportion_to_it(work: Callable[[str], str], start: str) -> None:
    for prefix, unit in (("", start), (start, "0"), (start, " "), (start, "x"), (start, "\x1b")):
        assert not too_steep(work, repeated(prefix, unit, ""), 1 << 14)


def nodes(tree: Any) -> Iterator[tuple[Any, Any]]:
    """All parts of a parsed expression, each before its own parts."""
    for part in tree:
        if isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], type(parser.POSSESSIVE_REPEAT)):
            yield part
            yield from nodes([part[1]])
        elif isinstance(part, (tuple, list, parser.SubPattern)):
            yield from nodes(part)


def looks_around_possessively(expression: re.Pattern[Any]) -> bool:
    """Whether a possessive repeat, `(?:...)*+`, has a look-around in it."""
    tree = parser.parse(expression.pattern, expression.flags & ~re.UNICODE)
    repeats = (value for kind, value in nodes(tree) if kind is parser.POSSESSIVE_REPEAT)
    around = {parser.ASSERT, parser.ASSERT_NOT}
    return any(kind in around for value in repeats for kind, _ in nodes([value]))


def test_no_possessive_repeat_looks_around() -> None:
    """Debian 12's Python 3.11.2 finds nothing with `(?:(?!x).)*+`, and everything with `(?>(?:(?!x).)*)`."""
    assert looks_around_possessively(re.compile(r"a(?:(?!x).)*+x"))
    assert looks_around_possessively(re.compile(rb"(?P<n>\S(?:b|(?=c).){2,}+)?"))
    assert not looks_around_possessively(re.compile(r"(?!a)(?>(?:(?!x).)*)[bc]*+(?=d)"))
    assert [str(use) for use in uses() if looks_around_possessively(use.expression)] == []
