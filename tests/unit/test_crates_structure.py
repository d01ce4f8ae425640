"""No circles among the modules of a crate, read from the paths in its source: of `use` and of everything else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

CRATES = sorted(file.parent for file in (Path(__file__).parents[2] / "crates").glob("*/Cargo.toml"))
NO_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(\#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\\n])'|\bas\s+\w+""", re.DOTALL
)
"""Comments and literals; and the new names that `as` gives."""
FOR_TESTS = re.compile(r"#\[cfg\(test\)\]")
USE = re.compile(r"\s*(?:pub(?:\([^)]*\))?\s+)?use\b")
FILE_OF_ITS_OWN = re.compile(r"\bmod\s+(\w+)\s*;")
TOKEN = re.compile(r"\w+|::|[^\w\s]")

Module = tuple[str, ...]
"""The names from the root of a crate, which is the empty tuple, to a module."""


def split_by_tests(code: str) -> tuple[str, set[str]]:
    """The code without the items that are for tests only, and the modules among those that have files of their own."""
    files: set[str] = set()
    while found := FOR_TESTS.search(code):
        end, depth, is_use = found.end(), 0, USE.match(code, found.end()) is not None
        while code[end] != ";" or depth:
            depth += (code[end] in "{([") - (code[end] in "})]")
            if code[end] == "}" and not depth and not is_use:
                break
            end += 1
        files.update(FILE_OF_ITS_OWN.findall(code, found.end(), end + 1))
        code = code[: found.start()] + code[end + 1 :]
    return code, files


def paths(code: str) -> Iterator[Module]:
    """Every path of two names and more; `use a::{b, c::d}` has two of them."""
    outer: list[Module] = []
    start: Module = ()
    path: Module = ()
    goes_on = False
    for token in [*TOKEN.findall(code), ";"]:
        if token == "::":
            goes_on = True
            continue
        if not (goes_on and (token.isidentifier() or token == "{")) and len(path) > 1:
            yield path
        if token.isidentifier():
            path = (*(path if goes_on else start), token)
        else:
            if token == "{":
                outer.append(start)
                start = path if goes_on else ()
            elif token == "}":
                start = outer.pop()
            path = ()
        goes_on = False


def modules(source: Path) -> dict[Module, str]:
    """The code of every module that isn't for tests only."""
    code_of: dict[Module, str] = {}
    for_tests: set[Module] = set()
    for file in source.rglob("*.rs"):
        names = file.relative_to(source).with_suffix("").parts
        module = names[:-1] if names[-1] in ("lib", "main", "mod") else names
        code_of[module], files = split_by_tests(NO_CODE.sub(" ", file.read_text(encoding="utf-8")))
        for_tests |= {(*module, name) for name in files}
    return {module: code for module, code in code_of.items() if not any(lies_in(module, test) for test in for_tests)}


def lies_in(module: Module, other: Module) -> bool:
    return module[: len(other)] == other


def module_of(path: Module, own: Module, known: dict[Module, str]) -> Module | None:
    """The module that a path leads to, or into; None for one that leads out of the crate, or starts at no module."""
    match path:
        case ("crate", *rest):
            module: Module = ()
        case ("self", *rest):
            module = own
        case ("super", *rest):
            module = own[:-1]
            while rest[:1] == ["super"]:
                module, rest = module[:-1], rest[1:]
        case (child, *_) if (*own, child) in known:
            module, rest = own, list(path)
        case _:
            return None
    for name in rest:
        if (*module, name) not in known:
            break
        module = (*module, name)
    return module


def uses(source: Path) -> dict[Module, set[Module]]:
    """By module those that it uses, but for the ones that it lies in: of those it is a part."""
    known = modules(source)
    used = {own: {module_of(path, own, known) for path in paths(code)} for own, code in known.items()}
    return {
        own: {other for other in others if other is not None and not lies_in(own, other)}
        for own, others in used.items()
    }


def circle(source: Path) -> str:
    """One circle of modules; empty if there is none."""
    below = uses(source)
    assert below, f"{source} has no modules"
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        return " <- ".join("::".join(module) or "the root" for module in error.args[1])
    return ""


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_modules_of_a_crate_do_not_use_each_other_in_a_circle(crate: Path) -> None:
    assert circle(crate / "src") == ""


def crate_of(directory: Path, **files: str) -> Path:
    for name, code in files.items():
        file = directory / f"{name.replace('__', '/')}.rs"
        file.parent.mkdir(exist_ok=True)
        file.write_text(code, encoding="utf-8")
    return directory


@pytest.mark.parametrize(
    "code",
    [
        "use crate::a::A;",
        "use super::a::A;",
        "use crate::{c::C, a::{self, A}};",
        "fn f() -> u8 { crate::a::A }",
        'const TEXT: &str = "\\"//"; use crate::a::A;',
        "const QUOTE: char = '\"'; use crate::a::A; const OTHER: char = '\"';",
        "#[cfg(test)]\nuse crate::{c::C, c::D};\nuse crate::a::A;",
        "#[cfg(test)]\nmod tests { fn f() {} }\nuse crate::a::A;",
    ],
)
def test_a_circle_is_found_however_a_module_is_named(tmp_path: Path, code: str) -> None:
    found = circle(crate_of(tmp_path, lib="mod a; mod b; mod c;", a="use crate::b::B;", b=code, c=""))
    assert found in ("a <- b <- a", "b <- a <- b")


@pytest.mark.parametrize(
    "code",
    [
        "",
        "// crate::a::A",
        'const PATH: &str = r#"crate::a::A"#;',
        "use elsewhere::a::A;",
        "use crate::c::a as A;",
        "#[cfg(test)]\nmod tests { use crate::a::A; fn f() { g(); } }",
        "#[cfg(test)]\nuse crate::{c, a::A};",
        "#[cfg(test)]\nmod only_tested;",
    ],
)
def test_what_is_text_or_for_tests_or_of_another_crate_makes_no_circle(tmp_path: Path, code: str) -> None:
    tested = "use crate::a::A;"
    crate = crate_of(tmp_path, lib="mod a; mod b; mod c;", a="use crate::b::B;", b=code, c="", b__only_tested=tested)
    assert circle(crate) == ""


def test_a_circle_through_the_list_of_a_modules_children_is_one(tmp_path: Path) -> None:
    files = {
        "lib": "mod all; mod a;",
        "all__mod": "mod one; const ALL: &[u8] = &[one::ONE];",
        "a": "use crate::all::ALL;",
    }
    assert circle(crate_of(tmp_path, **files, all__one="use super::ALL;")) == ""
    assert circle(crate_of(tmp_path, **files, all__one="use crate::a::A;")) != ""
