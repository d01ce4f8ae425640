"""Proofs of checksums for every content: the forms of sums, and the wrong sums that they must not show to be equal."""

from __future__ import annotations

import ctypes
from importlib.util import find_spec
from pathlib import Path

import pytest

from kdyno.base import process
from kdyno.kernel.routines.families import DATA, routine_families
from kdyno.understand.lab import symbolic
from kdyno.understand.lab.sum_program import contents, fold, sum_problem
from kdyno.understand.lab.symbolic import SymbolicProof, prove_symbolically
from kdyno.understand.lab.symbolic_program import FROM, PAGE, Case, cases
from kdyno.understand.lab.word_lemmas import failed_lemmas
from kdyno.understand.lab.word_sums import Form, WordSums
from kdyno.understand.lab.word_values import trailing_zeros
from tests.unit.lab_specimen import planted_build

needs_angr = pytest.mark.skipif(find_spec("angr") is None, reason="needs angr: pip install 'kdyno[symbolic]'")
LARGEST = (1 << 64) - 1
ONE = Form(constant=1)

SUM = """\
typedef unsigned long u64;
#define ADD(word) __asm__("add %1, %0\\n\\tadc $0, %0" : "+r"(sum) : "r"((u64)(word)))
unsigned planted(const unsigned char *at, int size, unsigned first) {{
  u64 sum = first, rest = 0;
  int shift = -size * 8 & 63;
  for (; size >= 16; at += 16, size -= 16)
    __asm__("add %1, %0\\n\\tadc %2, %0\\n\\t{end}" : "+r"(sum) : "m"(*(const u64 *)at), "m"(*(const u64 *)(at + 8)));
  for (; size >= 8; at += 8, size -= 8)
    ADD(*(const u64 *)at);
  if (size)
    rest = {tail};
  ADD(rest);
  {fold}
  return sum;
}}
"""
RIGHT = {
    "end": "adc $0, %0",
    "tail": "*(const u64 *)at << shift >> shift",
    "fold": "sum = (sum >> 32) + (unsigned)sum; sum = (sum >> 32) + (unsigned)sum;",
}
PLANTED = {
    "a carry lost at the end of a chain": {"end": ""},
    "a carry that an addition of zero clears": {"end": "add $0, %0\n\tadc $0, %0"},
    "a carry added twice": {"end": "pushf\n\tadc $0, %0\n\tpopf\n\tadc $0, %0"},
    "a tail without its last byte": {"tail": "*(const u64 *)at << shift + 8 >> shift + 8"},
    "a tail with a byte too many": {"tail": "*(const u64 *)at << shift - 8 >> shift - 8"},
    "a tail that stays shifted": {"tail": "*(const u64 *)at << shift"},
    "a tail shifted by one byte": {"tail": "*(const u64 *)at << shift >> shift - 8"},
    "a fold that drops the upper half": {"fold": ""},
    "a fold that loses its carry": {"fold": "sum = (unsigned)(sum >> 32) + (unsigned)sum;"},
    "a zero for 2^16 - 1": {"fold": RIGHT["fold"] + "sum %= 0xffff;"},
    "a trap for one content": {"fold": RIGHT["fold"] + "if (sum == 0x12345678) __builtin_trap();"},
}


def proven(directory: Path, **parts: str) -> SymbolicProof:
    build = planted_build("csum_partial", SUM.format(**RIGHT | parts).replace("\n\t", "\\n\\t"), directory)
    return prove_symbolically(build.family, build.built[0], directory, is_sample=False)


@pytest.fixture
def some_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prove sizes with a turn of each loop and a tail."""
    family = routine_families()["csum_partial"]
    assert family.symbolic is not None
    monkeypatch.setitem(
        routine_families(),
        "csum_partial",
        family.model_copy(
            update={"symbolic": family.symbolic.model_copy(update={"least": 29, "most": 29, "larger": ()})}
        ),
    )
    monkeypatch.setattr(symbolic, "SECONDS", 120)


@needs_angr
@pytest.mark.long
@pytest.mark.usefixtures("some_sizes")
def test_the_planted_checksum_is_equal_for_every_content_without_a_fault(tmp_path: Path) -> None:
    proof = proven(tmp_path)
    assert (proof.outcome, proof.statement) == (
        "equal",
        "size 29 at 2 pairs of offsets and at the end of a page, as sums that are folded to 16 bits",
    )


@needs_angr
@pytest.mark.long
@pytest.mark.usefixtures("some_sizes")
@pytest.mark.parametrize("name", PLANTED)
def test_a_checksum_that_is_wrong_for_some_content_is_never_equal(name: str, tmp_path: Path) -> None:
    proof = proven(tmp_path, **PLANTED[name])
    assert proof.outcome != "equal"
    assert "out of time" not in proof.statement


@needs_angr
@pytest.mark.long
@pytest.mark.usefixtures("some_sizes")
@pytest.mark.parametrize("name", ["a carry lost at the end of a chain", "a tail without its last byte"])
def test_a_wrong_checksum_is_shown_by_a_content_that_was_run(name: str, tmp_path: Path) -> None:
    proof = proven(tmp_path, **PLANTED[name])
    assert proof.outcome == "wrong"
    assert proof.statement.startswith("the sum is 0x"), proof.statement


@needs_angr
@pytest.mark.long
def test_a_solver_proves_all_lemmas() -> None:
    import claripy

    assert failed_lemmas(claripy) == []


def test_the_fold_of_the_harness_keeps_the_remainder_and_zero(tmp_path: Path) -> None:
    source = f'#include "{DATA / "harness" / "families" / "csum_partial.c"}"\n'
    (tmp_path / "fold.c").write_text(
        source + "word lab_random(void) { return 0; }\nword folded(word sum) { return normalise(0, sum); }\n",
        encoding="utf-8",
    )
    library = tmp_path / "fold.so"
    process.output(["gcc", "-w", "-shared", "-fPIC", "-I", DATA / "harness", tmp_path / "fold.c", "-o", library])
    folded = ctypes.CDLL(str(library)).folded
    folded.argtypes, folded.restype = [ctypes.c_uint64], ctypes.c_uint64
    edges = [base + step for base in (0, 1 << 16, 1 << 32, 1 << 48, LARGEST - 1) for step in (0, 1)]
    multiples = [0xFFFF * factor for factor in (1, 2, 0x10001, LARGEST // 0xFFFF)]
    for value in (*edges, *multiples, *(int.from_bytes(data[:8]) for _, data in contents(8, []))):
        assert folded(value) == fold(value)


def test_a_sum_with_its_carry_added_stays_in_a_word_and_is_linear() -> None:
    sums = WordSums()
    words = [sums.atom(LARGEST) for _ in range(3)]
    carry, low = sums.divide(words[0].plus(words[1]), 64)
    assert sums.most(carry) == 1
    assert sums.divide(low.plus(carry), 64) == (Form(), low.plus(carry)), "it can't have a carry of its own"
    next_carry, _ = sums.divide(low.plus(carry).plus(words[2]), 64)
    assert sums.most(next_carry) == 1, "two words and a carry"
    assert sums.expanded(low) == words[0].plus(words[1]).plus(carry, -(1 << 64))


def test_a_carry_is_what_a_comparison_with_an_operand_gives() -> None:
    sums = WordSums()
    one, other = sums.atom(LARGEST), sums.atom(LARGEST)
    carry, low = sums.divide(one.plus(other), 64)
    assert sums.less(low, one, {}, or_equal=False) == carry
    assert sums.less(low, other, {}, or_equal=False) == carry
    assert sums.less(low, one, {}, or_equal=True) is None, "they are equal where the other is zero"
    assert sums.less(one, other, {}, or_equal=False) is None


def test_bytes_are_divided_without_new_atoms() -> None:
    sums = WordSums()
    low, high = sums.atom(255), sums.atom(255)
    assert sums.divide(high.times(256).plus(low), 8) == (high, low)
    assert len(sums.limits) == 2


def test_halves_of_a_word_are_its_own_wherever_it_is_used() -> None:
    sums = WordSums()
    word = sums.atom(LARGEST)
    high, low = sums.divide(word, 32)
    assert sums.in_halves(word.times(2)) == high.times(1 << 33).plus(low.times(2))
    assert sums.divide(word, 32) == (high, low)


def test_a_word_that_is_folded_by_adding_itself_rotated_keeps_its_remainder() -> None:
    sums = WordSums()
    word = sums.atom(LARGEST)
    high, low = sums.divide(word, 32)
    rotated = low.times(1 << 32).plus(high)
    _, doubled = sums.divide(sums.in_halves(word).plus(rotated), 64)
    quotient, _ = sums.divide(doubled, 32)
    result = sums.divide(quotient, 32)[1]
    assert sum_problem(sums, result, word) is None


def test_sums_that_differ_in_a_carry_or_in_a_zero_may_fold_to_other_bits() -> None:
    sums = WordSums()
    one, other = sums.atom(LARGEST), sums.atom(LARGEST)
    total = one.plus(other)
    carry, low = sums.divide(total, 64)
    assert sum_problem(sums, low.plus(carry), total) is None
    assert sum_problem(sums, low, total) == "the sums may not be congruent modulo 2^16 - 1"
    assert sum_problem(sums, one, total) == "the sums may not be congruent modulo 2^16 - 1"
    assert sum_problem(sums, total.plus(ONE, 0xFFFF), total) is not None, "2^16 - 1 for zero"
    dropped = low.plus(carry).plus(sums.atom(1), 0xFFFF)
    assert sum_problem(sums, dropped, total) == "the sum may be other than zero where the definition's is zero"
    missing = total.plus(one, -0xFFFF)
    assert sum_problem(sums, missing, total) == "the sum may be zero where the definition's isn't"


def test_forms_agree_with_numbers_for_random_words() -> None:
    for total, data in contents(16, []):
        words = [int.from_bytes(data[:8]), int.from_bytes(data[8:]), total]
        sums = WordSums()
        carry, low = sums.divide(Form(constant=sum(words)), 64)
        assert (carry.constant, low.constant) == divmod(sum(words), 1 << 64)
        assert fold(low.constant + carry.constant) == fold(sum(words))


def test_a_fold_is_zero_for_zero_alone() -> None:
    assert [fold(value) for value in (0, 1, 0xFFFF, 0x10000, 2 * 0xFFFF)] == [0, 1, 0xFFFF, 1, 0xFFFF]
    assert [trailing_zeros(value) for value in (1, 8, ~0b111)] == [0, 3, 3]


def test_sizes_at_the_end_of_a_page_end_with_it() -> None:
    bounds = {
        "least": 5,
        "most": 5,
        "larger": (),
        "offsets": [(0, 3)],
        "salts": (),
        "at_page_end": True,
        "ends_with_zero": False,
    }
    first, last = cases(bounds)
    assert (first.read_address, last.read_address) == (FROM + 3, FROM + PAGE - 5)
    assert str(last) == "size 5, at the end of a page"
    assert Case(0, 0, 0, None, is_at_page_end=True).read_address == FROM


def test_larger_sizes_follow_the_others() -> None:
    bounds = routine_families()["csum_partial"].symbolic
    assert bounds is not None
    sizes = [case.size for case in cases(bounds.model_dump())]
    assert sizes == sorted(sizes)
    assert {48, 64, 263} <= set(sizes) and 49 not in sizes
    assert bounds.words("bytes") == (
        "sizes from 0 to 48 and 13 larger ones up to 263 at 2 pairs of offsets and at the end of a page, as sums that "
        "are folded to 16 bits"
    )


def test_contents_that_show_wrong_sums_begin_with_single_bytes() -> None:
    tries = list(contents(2, [1]))
    assert tries[:3] == [(0, b"\0\1"), (0xFFFFFFFF, b"\xff\xff"), (0xFFFFFFFF, b"\0\0")]
    assert tries == list(contents(2, [1]))
