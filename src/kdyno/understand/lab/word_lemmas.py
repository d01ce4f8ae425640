"""The lemmas behind `word_sums` and `word_values`, of all words; an SMT solver proves each within a second."""

from __future__ import annotations

from typing import Any

WORD = 64
FOLD = (1 << 16) - 1
"""Sums are compared modulo this number. 2^32 - 1 and 2^64 - 1 are multiples of it, so that carries may go around."""


def lemmas(claripy: Any) -> dict[str, Any]:
    """Return the lemmas by what they state. Each is true for any x, y and z of 64 bits and any bit c."""
    x, y, z, c = (claripy.BVS(name, bits) for name, bits in (("x", WORD), ("y", WORD), ("z", WORD), ("c", 1)))
    bit, largest = claripy.ZeroExt(WORD - 1, c), claripy.BVV(-1, WORD)

    def wide(value: Any) -> Any:
        return claripy.ZeroExt(8, value)

    one, zero = claripy.BVV(1, WORD), claripy.BVV(0, WORD)
    total = x + y
    carry = claripy.If(claripy.ULT(total, x), one, zero)
    with_carry = x + y + bit
    next_carry = claripy.If(
        c == 1, claripy.If(claripy.ULE(with_carry, x), one, zero), claripy.If(claripy.ULT(with_carry, x), one, zero)
    )
    halves = claripy.LShR(x, 32)
    folded = (x & FOLD) + claripy.LShR(x, 16)
    return {
        "ADD: x + y is the sum and 2^64 times its carry": wide(x) + wide(y) == wide(total) + (wide(carry) << WORD),
        "ADC: x + y + c is the sum and 2^64 times its carry": wide(x) + wide(y) + wide(bit)
        == wide(with_carry) + (wide(next_carry) << WORD),
        "a sum and its carry fit into a word": claripy.ULE(wide(total) + wide(carry), wide(largest)),
        "they do behind a chain of ADC, too": claripy.Or(
            claripy.UGT(wide(x) + wide(bit), wide(largest)),
            claripy.ULE(wide(with_carry) + wide(next_carry), wide(largest)),
        ),
        "shifts and masks are the halves of a division": x == (halves << 32) + (x & 0xFFFFFFFF),
        "parts without a common bit are added by an or": (x << 32 | claripy.LShR(y, 32))
        == (x << 32) + claripy.LShR(y, 32),
        "an exclusive or undoes itself": x ^ z ^ z == x,
        "to fold to 16 bits takes a multiple of 2^16 - 1": x - folded == claripy.LShR(x, 16) * FOLD,
        "to fold keeps zero, and makes it of nothing else": (folded == 0) == (x == 0),
    }


def failed_lemmas(claripy: Any) -> list[str]:
    """Return the lemmas that the solver finds an exception for."""
    failed = []
    for text, lemma in lemmas(claripy).items():
        solver = claripy.Solver()
        solver.add(claripy.Not(lemma))
        if solver.satisfiable():
            failed.append(text)
    return failed
