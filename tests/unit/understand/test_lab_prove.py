"""The prover: rewrites are equal to their definitions, and planted wrong routines are found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kdyno.kernel.routines.families import DATA, routine_families
from kdyno.understand.lab.build import code_problems
from kdyno.understand.lab.prove import WRONG, ProofLimits, proof_limits, read_outcome
from tests.unit.lab_specimen import planted_build, prove_build, rewrite_build

FAMILIES = routine_families()
REWRITTEN = [name for name, family in FAMILIES.items() if any(row.origin == "kdyno" for row in family.candidate)]
COPY = "void *planted(void *to, const void *from, unsigned long size) {{\n  {body}\n  return to;\n}}\n"
BYTES = "for (unsigned long i = 0; i < {count}; i++) ((char *)to)[i] = ((const char *)from)[i];"
SUM = """\
typedef unsigned long u64;
unsigned planted(const unsigned char *at, int size, unsigned first) {{
  u64 sum = first;
  for (; size >= 8; at += 8, size -= 8)
    {step}
  u64 rest = 0;
  for (int i = size - 1; i >= 0; i--)
    rest = rest << 8 | at[i];
  __asm__("add %1, %0\\n\\tadc $0, %0" : "+r"(sum) : "r"(rest));
  sum = (sum >> 32) + (unsigned)sum;
  return (unsigned)((sum >> 32) + sum);
}}
"""
SIPHASH = """\
typedef unsigned long u64;
#define TURN(x, by) (x = x << by | x >> (64 - by))
#define ROUND (a += b, TURN(b, 13), b ^= a, TURN(a, 32), c += d, TURN(d, 16), d ^= c, a += d, TURN(d, 21), d ^= a, \\
  c += b, TURN(b, 17), b ^= c, TURN(c, 32))
u64 planted(const unsigned char *at, u64 size, const u64 *key) {{
  u64 a = key[0] ^ 0x736f6d6570736575, b = key[1] ^ 0x646f72616e646f6d;
  u64 c = key[0] ^ 0x6c7967656e657261, d = key[1] ^ 0x7465646279746573, last = size << 56;
  for (; size >= 8; size -= 8, at += 8)
    d ^= *(const u64 *)at, ROUND, ROUND, a ^= *(const u64 *)at;
  while (size--)
    last |= (u64)at[size] << 8 * size;
  d ^= last, ROUND, ROUND, a ^= last, c ^= 0xff;
  for (int i = 0; i < {rounds}; i++)
    ROUND;
  return a ^ b ^ c ^ d;
}}
"""
WITH_CARRY = '__asm__("add %1, %0\\n\\tadc $0, %0" : "+r"(sum) : "r"(*(const u64 *)at));'


@pytest.mark.parametrize("family", REWRITTEN)
def test_each_rewrite_of_a_family_is_equal_to_its_definition(family: str, tmp_path: Path) -> None:
    proofs = prove_build(rewrite_build(family, tmp_path), tmp_path)
    assert {proof.name: proof.outcome for proof in proofs} == {proof.name: "equal" for proof in proofs}
    assert all(" cases" in proof.statement for proof in proofs)


@pytest.mark.long
@pytest.mark.parametrize("family", REWRITTEN)
def test_each_rewrite_of_a_family_is_equal_to_its_definition_up_to_all_bounds(family: str, tmp_path: Path) -> None:
    limits = proof_limits(FAMILIES[family], is_sample=False)
    proofs = prove_build(rewrite_build(family, tmp_path), tmp_path, limits)
    assert {proof.name: proof.outcome for proof in proofs} == {proof.name: "equal" for proof in proofs}


PLANTED = {
    "a short tail": (
        "memcpy",
        COPY.format(body=BYTES.format(count="size - (size % 8 == 7)")),
        "memory that is written differs; size 7,",
    ),
    "a byte too many": ("memcpy", COPY.format(body=BYTES.format(count="size + (size == 20)")), "size 20,"),
    "a read beyond the page": (
        "memcpy",
        COPY.format(body=f"unsigned long ahead = *(const volatile unsigned long *)from; {BYTES.format(count='size')}"),
        "signal 11 at",
    ),
    "a read before the page": (
        "strlen",
        "unsigned long planted(const char *text) { unsigned long n = ((const volatile char *)text)[-1] & 0;\n"
        "  while (text[n]) n++; return n; }",
        "signal 11 at",
    ),
    "another result": (
        "memcpy",
        COPY.format(body=f"{BYTES.format(count='size')} if (size == 33) return (char *)to + 1;"),
        "the result is 0x1 instead of 0; size 33,",
    ),
    "a lost carry": ("csum_partial", SUM.format(step="sum += *(const u64 *)at;"), "the result is"),
    "a zero that is none": (
        "strlen",
        "unsigned long planted(const char *text) { unsigned long n = 0; while (text[n] & 0x7f) n++; return n; }",
        "the result is",
    ),
    "a bit behind the last one": (
        "find_next_bit",
        "unsigned long planted(const unsigned long *from, unsigned long bits, unsigned long start) {\n"
        "  for (; start < bits; start += 64 - start % 64)\n"
        "    if (from[start / 64] >> start % 64) return start + __builtin_ctzl(from[start / 64] >> start % 64);\n"
        "  return bits; }",
        "the result is",
    ),
    "a start behind the last bit": (
        "find_next_bit",
        "unsigned long planted(const unsigned long *from, unsigned long bits, unsigned long start) {\n"
        "  for (; start < bits; start++) if (from[start / 64] >> start % 64 & 1) return start;\n"
        "  return start; }",
        "the result is",
    ),
    "a move that overwrites what it has to read": (
        "memmove",
        COPY.format(body=BYTES.format(count="size")),
        "memory that is written differs",
    ),
    "bytes compared as signed ones": (
        "memcmp",
        "int planted(const signed char *one, const signed char *other, unsigned long size) {\n"
        "  for (; size; size--, one++, other++) if (*one != *other) return *one - *other;\n  return 0; }",
        "the result is",
    ),
    "words compared in the order of the processor": (
        "memcmp",
        "int planted(const unsigned char *one, const unsigned char *other, unsigned long size) {\n"
        "  for (; size >= 8; size -= 8, one += 8, other += 8)\n"
        "    if (*(unsigned long *)one != *(unsigned long *)other)\n"
        "      return *(unsigned long *)one < *(unsigned long *)other ? -1 : 1;\n"
        "  for (; size; size--, one++, other++) if (*one != *other) return *one - *other;\n  return 0; }",
        "the result is",
    ),
    "texts compared as signed bytes": (
        "strcmp",
        "int planted(const signed char *one, const signed char *other) {\n"
        "  while (*one && *one == *other) one++, other++;\n  return *one - *other; }",
        "the result is",
    ),
    "an end that is not seen": (
        "strcmp",
        "int planted(const unsigned char *one, const unsigned char *other) {\n"
        "  while (*one == *other) one++, other++;\n  return *one - *other; }",
        "the result is",
    ),
    "a word beyond the page": (
        "strcmp",
        "int planted(const unsigned char *one, const unsigned char *other) {\n"
        "  while (*(const volatile unsigned long *)one & *one && *one == *other) one++, other++;\n"
        "  return *one - *other; }",
        "signal 11 at",
    ),
    "an element beside the key": (
        "bsearch",
        "const char *planted(const unsigned long *key, const char *at, unsigned long count, unsigned long width) {\n"
        "  for (; count; count--, at += width)\n"
        "    if ((width == 8 ? *(unsigned long *)at : *(unsigned *)at) >= *key) return at;\n  return 0; }",
        "the result is",
    ),
    "bits counted behind the last one": (
        "bitmap_weight",
        "unsigned planted(const unsigned long *at, unsigned bits) { unsigned count = 0;\n"
        "  for (unsigned i = 0; i < (bits + 63) / 64; i++) count += __builtin_popcountl(at[i]);\n  return count; }",
        "the result is",
    ),
    "a round too few": ("siphash", SIPHASH.format(rounds=3), "the result is"),
    "an array that is not in order": ("sort", "void planted(void) { }", "memory that is written differs"),
    "a call that changes its input": (
        "strlen",
        "unsigned long planted(char *text) { unsigned long n = 0; while (text[n]) n++; text[0] ^= n == 5; return n; }",
        "memory that is read differs; size 5,",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_routine_is_found_with_the_place_where_it_is_wrong(name: str, tmp_path: Path) -> None:
    family, text, complaint = PLANTED[name]
    [proof] = prove_build(planted_build(family, text, tmp_path), tmp_path)
    assert proof.outcome == "wrong"
    assert complaint in proof.statement


def test_the_planted_checksum_is_equal_with_its_carry(tmp_path: Path) -> None:
    """So that the lost carry is what the prover finds."""
    [proof] = prove_build(planted_build("csum_partial", SUM.format(step=WITH_CARRY), tmp_path), tmp_path)
    assert proof.outcome == "equal", proof.statement


def test_the_planted_hash_is_equal_with_all_of_its_rounds(tmp_path: Path) -> None:
    [proof] = prove_build(planted_build("siphash", SIPHASH.format(rounds=4), tmp_path), tmp_path)
    assert proof.outcome == "equal", proof.statement


SLIPS = {
    "a lost carry": (("adcq %r11, \\sum\n\tadcq $0, \\sum", "adcq %r11, \\sum"), "the result is"),
    "a short tail": (("csum_user movb %r10b, (%rsi)", ""), "memory that is written differs; size 1,"),
    "a sum of 0": (("movl $-1, %eax", "xorl %eax, %eax"), "the result is 0 instead of 0xffff; size 0,"),
    "another result after a fault": (
        (".Lcsum_fault:", ".Lcsum_fault:\n\tmovl $-14, %eax\n\tRET"),
        "the result after a fault is not 0; size 1, offsets 0 and 0, bytes 0 to 0 of the read memory are missing",
    ),
    "a read that nothing recovers": (
        ("csum_user movzwl (%rdi), %r9d", "movzwl (%rdi), %r9d"),
        "its exception table doesn't recover a fault; size 2, offsets 0 and 0, bytes 0 to 0 of the read memory",
    ),
    "a write that nothing recovers": (
        ("csum_user movl %r8d, (%rsi)", "movl %r8d, (%rsi)"),
        "its exception table doesn't recover a fault; size 4, offsets 0 and 0, bytes 0 to 0 of the written memory",
    ),
    "a byte of its own where the fault was": (
        (".Lcsum_fault:", ".Lcsum_fault:\n\tnotb (%rsi)"),
        "a written byte is neither the copied one nor the previous one; size 1,",
    ),
    "a register that is lost by a fault": (
        (".Lcsum_fault:", ".Lcsum_fault:\n\txorl %ebx, %ebx"),
        "a register that a routine must leave alone changed; size 1, offsets 0 and 0, bytes 0 to 0",
    ),
    "a recovery that goes on with the sum": (
        ("xorl %eax, %eax\n\tRET", "jmp .Lcsum_fold"),
        "the result after a fault is not 0",
    ),
}


COPY_SLIPS = {
    "a fault that is not reported": (
        ("2:\tmovq %rcx, %rax", "2:\txorl %eax, %eax"),
        "the result after a fault is not a number of bytes that were not copied; size 1,",
    ),
    "a missing byte that counts as copied": (
        ("movq %rcx, %rax", "movq %rcx, %rax\n\tcmpq $1, %rax\n\tjbe 3f\n\tdecq %rax\n3:"),
        "a missing byte is reported as copied; size 2,",
    ),
    "a copy that reports nothing": (
        ("movq %rcx, %rax", "movq %rcx, %rax\n\ttestq %rax, %rax\n\tje 3f\n\tmovq %rdx, %rax\n3:"),
        "nothing is copied, but the first byte can be; size 2, offsets 0 and 0, bytes 1 to 1 of the read memory",
    ),
    "a register of inline assembler": (
        ("movq %rcx, %rax", "movq %rcx, %rax\n\txorl %r9d, %r9d"),
        "a register that inline assembler doesn't expect to change changed",
    ),
    "a fault that nothing recovers": (("_ASM_EXTABLE_UA(1b, 2b)", ""), "its exception table doesn't recover a fault"),
}


@pytest.mark.parametrize(
    ("family", "entry", "slip"),
    [
        *(("csum_and_copy", "csum_partial_copy_generic", slip) for slip in SLIPS.values()),
        *(("copy_user", "copy_user", slip) for slip in COPY_SLIPS.values()),
    ],
    ids=[*SLIPS, *COPY_SLIPS],
)
def test_a_wrong_user_copy_is_found_with_its_fault(
    family: str, entry: str, slip: tuple[tuple[str, str], str], tmp_path: Path
) -> None:
    (right, wrong), complaint = slip
    text = (DATA / "rewrites" / f"{family}.S").read_text(encoding="ascii").replace(f"{entry})", "planted)")
    assert right in text
    [proof] = prove_build(planted_build(family, text.replace(right, wrong), tmp_path, ".S"), tmp_path)
    assert (proof.outcome, complaint in proof.statement) == ("wrong", True), proof.statement


ASSEMBLER = ".globl planted\nplanted:\n\tmovq %rdi, %rax\n\tmovq %rdx, %rcx\n{body}\n\tret\n"


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("\trep movsb\n\txorl %ebx, %ebx", "a register that a routine must leave alone changed"),
        ("\trep movsb\n\txorl %r13d, %r13d", "a register that a routine must leave alone changed"),
        ("\trep movsb\n\tstd", "the direction flag is set"),
        ("\trep movsb\n\tpopq %rcx\n\tpushq %rcx\n\tpushq %rcx", "the stack pointer changed"),
    ],
)
def test_a_routine_that_breaks_the_calling_convention_is_wrong(body: str, complaint: str, tmp_path: Path) -> None:
    [proof] = prove_build(planted_build("memcpy", ASSEMBLER.format(body=body), tmp_path, ".S"), tmp_path)
    assert (proof.outcome, complaint in proof.statement) == ("wrong", True), proof.statement


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("\trep movsb\n\tpxor %xmm3, %xmm3", "it uses xmm3, which belongs to user space"),
        ("\trep movsb\n\tmovq %rax, -8(%rsp)", "it uses memory below the stack pointer, where interrupts write"),
    ],
)
def test_a_routine_that_no_interrupt_would_survive_is_wrong(body: str, complaint: str, tmp_path: Path) -> None:
    [proof] = prove_build(planted_build("memcpy", ASSEMBLER.format(body=body), tmp_path, ".S"), tmp_path)
    assert (proof.outcome, proof.statement) == ("wrong", complaint)


def test_a_routine_that_never_returns_is_not_proven(tmp_path: Path) -> None:
    build = planted_build("memcpy", COPY.format(body=f"while (size == 9); {BYTES.format(count='size')}"), tmp_path)
    [proof] = prove_build(build, tmp_path, ProofLimits(most_exhaustive=16, offsets=1, cases=0, seconds=0))
    assert proof.outcome == "not proven"


def test_a_call_that_hangs_is_not_proven(tmp_path: Path) -> None:
    limits = replace(proof_limits(FAMILIES["strlen"], is_sample=True), seconds=1)
    text = 'unsigned long planted(const char *text) { for (;;) __asm__ volatile(""); }'
    [proof] = prove_build(planted_build("strlen", text, tmp_path), tmp_path, limits)
    assert (proof.outcome, proof.statement[:22]) == ("not proven", "out of time in a call:")


def test_the_outcome_states_its_bounds_and_anything_else_is_not_proven() -> None:
    family = FAMILIES["csum_partial"]
    limits = ProofLimits(most_exhaustive=80, offsets=8, cases=20, seconds=1)
    assert read_outcome("equal: 1000 20 0\n", family, limits, 7) == (
        "equal",
        "all sizes from 0 to 80 at 8 offsets of each address, beside a page without memory on either side, 7 bytes "
        "before the page behind: 1,000 cases; and 20 random cases up to 8,192 bytes",
    )
    assert read_outcome("wrong: x; size 3\n", family, limits, 0) == ("wrong", "x; size 3")
    assert read_outcome("out of time: size 3 of 80\n", family, limits, 0)[0] == "not proven"
    assert read_outcome("", family, limits, 0) == ("not proven", "it ended without a word")
    _, statement = read_outcome("equal: 1000 20 30\n", family, replace(limits, most_faults=40), 0)
    assert statement.endswith(
        "; and 30 faults, at each byte of either memory up to size 40, that its exception table recovers"
    )
    assert WRONG == 4


@pytest.mark.parametrize("operand", ["%xmm0", "%ymm15", "%zmm31", "%mm7", "%st", "%k1"])
def test_vector_registers_are_found_in_a_listing(operand: str) -> None:
    assert code_problems(f"   0:\tmov {operand},%rax\n")


def test_general_registers_and_the_own_stack_are_no_problem() -> None:
    assert code_problems("   0:\tmov 0x8(%rsp),%rax\n   5:\tcrc32q (%rsi),%rax\n   9:\tmov -0x8(%rbp),%r12\n") == ()
