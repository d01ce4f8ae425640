"""Proofs for every content: what a solver shows of rewrites, and what it finds that no random content meets."""

from __future__ import annotations

import signal
from importlib.util import find_spec
from pathlib import Path

import pytest

from kdyno.base import extras, process
from kdyno.base.extras import ExtraMissing
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.kernel.routines.families import SymbolicBounds, routine_families
from kdyno.understand.lab import symbolic
from kdyno.understand.lab.prove import ProofDepth, RoutineProof, prove_families
from kdyno.understand.lab.symbolic import (
    SymbolicProof,
    link_with_definition,
    prove_symbolically,
    read_answer,
    sample,
)
from kdyno.understand.lab.symbolic_program import Case, cases
from tests.unit.lab_specimen import planted_build, rewrite_build

FAMILIES = {name: family for name, family in routine_families().items() if family.symbolic}
needs_angr = pytest.mark.skipif(find_spec("angr") is None, reason="needs angr: pip install 'kdyno[symbolic]'")

PLANTED = {
    "a text that is too long by one only if it begins with kdyno": (
        "strlen",
        "unsigned long planted(const char *text) { unsigned long n = 0; while (text[n]) n++;\n"
        "  return n + (n > 4 && text[0] == 'k' && text[1] == 'd' && text[2] == 'y' && text[3] == 'n'); }",
        "the result may differ",
    ),
    "a byte of one value that is not copied": (
        "memcpy",
        "void *planted(char *to, const char *from, unsigned long size) {\n"
        "  for (unsigned long i = 0; i < size; i++) if (size != 7 || i != 3 || from[i] != 0x5a || from[2] != 0x5b)\n"
        "    to[i] = from[i];\n  return to; }",
        "memory may differ",
    ),
    "a bit in one place of one word that is not seen": (
        "find_next_bit",
        "unsigned long planted(const unsigned long *from, unsigned long bits, unsigned long start) {\n"
        "  for (; start < bits; start++)\n"
        "    if (from[start / 64] >> start % 64 & 1 && from[0] != 0x8000000000000020) return start;\n"
        "  return bits; }",
        "the result may differ",
    ),
}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolic, "SECONDS", 120)


def proven(family: str, directory: Path, text: str | None = None) -> list[SymbolicProof]:
    build = rewrite_build(family, directory) if text is None else planted_build(family, text, directory)
    return [prove_symbolically(build.family, built, directory, is_sample=True) for built in build.built]


@needs_angr
@pytest.mark.long
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("family", FAMILIES)
def test_each_rewrite_is_equal_for_every_content(family: str, tmp_path: Path) -> None:
    assert {proof.outcome for proof in proven(family, tmp_path)} == {"equal"}


@needs_angr
@pytest.mark.long
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("name", PLANTED)
def test_a_routine_that_is_wrong_for_one_content_in_billions_is_found(name: str, tmp_path: Path) -> None:
    family, text, complaint = PLANTED[name]
    [proof] = proven(family, tmp_path, text)
    assert (proof.outcome, proof.statement.partition(":")[0]) == ("wrong", complaint), proof.statement


UNFOLLOWED = {
    "a table that the content chooses from": (
        "static const unsigned char wrong[1 << 16] = { [0x646b] = 1 };\n"
        "unsigned long planted(const unsigned char *text) { unsigned long n = 0; while (text[n]) n++;\n"
        "  return n > 2 ? n + wrong[text[0] | text[1] << 8] : n; }"
    ),
    "a text for which it traps": (
        "unsigned long planted(const char *text) { unsigned long n = 0; while (text[n]) n++;\n"
        "  if (n > 2 && text[0] == 'k') __builtin_trap();\n  return n; }"
    ),
}


@needs_angr
@pytest.mark.long
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("name", UNFOLLOWED)
def test_where_angr_cannot_follow_every_content_nothing_is_proven(name: str, tmp_path: Path) -> None:
    """angr tries one entry of a large table, and would find both equal."""
    [proof] = proven("strlen", tmp_path, UNFOLLOWED[name])
    assert proof.outcome == "not proven"
    assert "out of time" not in proof.statement


@needs_angr
@pytest.mark.long
def test_at_the_end_of_the_time_nothing_is_proven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolic, "SECONDS", 10)
    text = (
        "unsigned long planted(const char *text) {\n"
        "  unsigned long n = 0; while (text[n] | n == 9) n += n != 9; return n; }"
    )
    [proof] = proven("strlen", tmp_path, text)
    assert proof.outcome == "not proven"
    assert proof.statement.startswith("out of time: size 9")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_definition_is_linked_without_calls_of_the_c_library(family: str, tmp_path: Path) -> None:
    build = rewrite_build(family, tmp_path)
    link_with_definition(build.family, build.built[0], tmp_path)
    left = process.output(["nm", "--undefined-only", tmp_path / "definition.o"]).split()
    assert set(left) <= {"U", "lab_random"}


def test_without_angr_nothing_is_built_and_the_way_to_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    with pytest.raises(ExtraMissing) as raised:
        prove_families("/nowhere", [], ProofDepth(is_sample=True, is_symbolic=True), State(tmp_path), Talk())
    assert raised.value.advice == "run: pip install 'kdyno[symbolic]'"


def test_calls_are_those_of_the_bounds_the_smallest_first() -> None:
    bounds = SymbolicBounds(least=1, most=2, offsets=((0, 0), (3, 5)), salts=(4,))
    assert cases(bounds.model_dump()) == [Case(1, 0, 0, 4), Case(1, 3, 5, 4), Case(2, 0, 0, 4), Case(2, 3, 5, 4)]
    assert cases(bounds.model_copy(update={"salts": ()}).model_dump())[0] == Case(1, 0, 0, None)
    assert bounds.words("bytes") == "sizes from 1 to 2 at 2 pairs of offsets"


def test_a_sample_has_smaller_sizes_and_a_text_stands_for_all_that_are_shorter() -> None:
    bounds = FAMILIES["strlen"].symbolic
    assert bounds is not None
    assert bounds.words("bytes") == "texts of up to 40 bytes at 3 pairs of offsets"
    assert sample(bounds).words("bytes") == "texts of up to 9 bytes at 3 pairs of offsets"
    assert sample(SymbolicBounds(least=0, most=40, offsets=((0, 0),))).words("bytes").startswith("sizes from 0 to 9")


def test_the_last_answer_counts_and_a_program_that_failed_proves_nothing() -> None:
    running = '{"outcome": "not proven", "statement": "out of time: size 3"}\n'
    equal = running + '{"outcome": "equal", "statement": ""}\n'
    assert read_answer(-signal.SIGXCPU, running, "") == ("not proven", "out of time: size 3")
    assert read_answer(-signal.SIGKILL, running, "") == ("not proven", "out of time: size 3")
    assert read_answer(0, equal, "ERROR unicorn\n") == ("equal", "")
    assert read_answer(1, running, "Traceback\nTypeError: no lexer\n") == ("not proven", "TypeError: no lexer")
    assert read_answer(1, equal, "")[0] == "not proven"
    assert read_answer(0, "", "") == ("not proven", "the program ended with status 0")


def test_a_proof_for_every_content_that_fails_is_not_equal() -> None:
    contract = FAMILIES["strlen"].candidate[0].contract
    proof = RoutineProof(
        name="words", file="strlen.c", flags=(), contract=contract, outcome="equal", statement="all", digest="0"
    )
    assert proof.is_equal
    for outcome in ("wrong", "not proven"):
        other = SymbolicProof.model_validate({"outcome": outcome, "statement": "x", "tool": "angr 9"})
        assert not proof.model_copy(update={"for_every_content": other}).is_equal
