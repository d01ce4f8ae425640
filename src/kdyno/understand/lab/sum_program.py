"""`symbolic_program` for families whose results are sums, which are compared after folding them to 16 bits:

    python -m kdyno.understand.lab.sum_program PROGRAM FAMILY CANDIDATE SECONDS BOUNDS

A solver takes too long for chains of additions with carries. So angr follows the machine code, and each value that it
computes becomes a form (`word_sums`), by lemmas that the solver proves first (`word_lemmas`). Two sums fold to the same
16 bits if they are congruent modulo 2^16 - 1 and zero for the same content (RFC 1071).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from kdyno.understand.lab.symbolic_program import (
    ARGUMENTS,
    CALL,
    GUARD,
    POINTER,
    SAVED,
    TO,
    Case,
    Prover,
    Unproven,
    main,
)
from kdyno.understand.lab.word_lemmas import FOLD, failed_lemmas
from kdyno.understand.lab.word_sums import Form, WordSums
from kdyno.understand.lab.word_values import WordValues

HARNESS_FOLD = "normalise"
"""The function of a harness that folds a sum. Here it returns its argument."""
ANY_FIRST_SUM = 4
"""The lowest bits of a salt whose upper half is the first sum."""
RANDOM_TRIES = 8


class SumProver(Prover):
    """One candidate beside its definition, whose results are sums. Raises Unproven where a lemma fails."""

    def __init__(self, program: str, family: str, candidate: str) -> None:
        super().__init__(program, family, candidate)
        import angr

        class Unfolded(angr.SimProcedure):  # type: ignore[misc]
            def run(self, _call: Any, value: Any) -> Any:
                return value

        if failed := failed_lemmas(self.claripy):
            raise Unproven(f"the solver refutes a lemma: {failed[0]}")
        self.project.hook(self._address(HARNESS_FOLD), Unfolded())
        self.before = angr.BP_BEFORE

    def difference(self, case: Case) -> str | None:
        """Return a content for which the sums differ; None: there is none. Raises Unproven."""
        values = WordValues(self.claripy)
        first, high, low = (values.variable(name, bits) for name, bits in (("first", 32), ("high", 24), ("low", 5)))
        content = [values.variable(f"byte_{place}", 8) for place in range(-GUARD, case.size + GUARD)]
        salt = self.claripy.Concat(first, high, low, self.claripy.BVV(ANY_FIRST_SUM, 3))
        result, defined = (values.form(value) for value in self._sums(case, salt, content, values))
        problem = sum_problem(values.sums, result, defined)
        if problem is None:
            return None
        inside = content[GUARD : GUARD + case.size]
        atoms = {atom for atom, factor in values.sums.expanded(result.plus(defined, -1)).terms if factor % FOLD}
        suspects = [place for place, byte in enumerate(inside) if values.form(byte).atoms & atoms]
        for first_sum, data in contents(case.size, suspects):
            if wrong := self._wrong_sum(case, first_sum, data):
                return wrong
        raise Unproven(problem)

    def _wrong_sum(self, case: Case, first_sum: int, data: bytes) -> str | None:
        """Return in words how a candidate is wrong for a content, by running it."""
        memory = [self.claripy.BVV(byte, 8) for byte in (*bytes(GUARD), *data, *bytes(GUARD))]
        salt = self.claripy.BVV(first_sum << 32 | ANY_FIRST_SUM, 64)
        result, defined = (fold(value.concrete_value) for value in self._sums(case, salt, memory, None))
        if result == defined:
            return None
        return f"the sum is {result:#x}, not {defined:#x}, for the first sum {first_sum:#x} and the bytes {data.hex()}"

    def _sums(self, case: Case, salt: Any, content: Sequence[Any], values: WordValues | None) -> tuple[Any, Any]:
        """Return the sums of a candidate and of its definition. Raises Unproven if the candidate does more than sum."""
        state = self._before_call(case, salt, content)
        if values:
            state.inspect.b("tmp_write", when=self.before, action=lambda at: _name_value(at, values))
        start = self._only(state, self.functions["arguments"], [CALL])
        arguments = [self._word(start, CALL + ARGUMENTS + POINTER * number) for number in range(5)]
        end = self._only(start, self.candidate, arguments)
        if any(getattr(end.regs, name) is not getattr(start.regs, name) for name in SAVED):
            raise Unproven("a register that a routine must leave alone may differ")
        address = case.read_address - GUARD
        if any(end.memory.load(address + place, 1) is not byte for place, byte in enumerate(content)):
            raise Unproven("memory may differ")
        result = self._only(end, self.functions["normalise"], [CALL, end.regs.rax])
        return result.regs.rax, self._only(start, self.functions["define"], [CALL]).regs.rax

    def _before_call(self, case: Case, salt: Any, content: Sequence[Any]) -> Any:
        state = self.blank.copy()
        fields = (TO, case.read_address, case.size, case.to_offset, case.from_offset)
        for place, value in enumerate((*(self.claripy.BVV(field, 64) for field in fields), salt)):
            state.memory.store(CALL + POINTER * place, value, endness="Iend_LE")
        for place, byte in enumerate(content):
            state.memory.store(case.read_address - GUARD + place, byte)
        return state

    def _only(self, state: Any, function: int, arguments: Sequence[Any]) -> Any:
        """Return the only state in which a function returns, whatever the content is."""
        ends = self._run(state, function, arguments)
        if len(ends) != 1 or ends[0].solver.constraints:
            raise Unproven("a branch or an address depends on the content")
        return ends[0]


def _name_value(state: Any, values: WordValues) -> None:
    state.inspect.tmp_write_expr = values.named(state.inspect.tmp_write_expr)


def sum_problem(sums: WordSums, result: Form, defined: Form) -> str | None:
    """Return why two sums may fold to different 16 bits; None: they never do."""
    content = sums.expanded(defined)
    difference = sums.expanded(result.plus(defined, -1))
    if difference.constant % FOLD or any(factor % FOLD for _, factor in difference.terms):
        return "the sums may not be congruent modulo 2^16 - 1"
    if content.constant or not content.atoms <= sums.zeros(result):
        return "the sum may be zero where the definition's isn't"
    if not sums.is_zero(result, sums.zeros(defined)):
        return "the sum may be other than zero where the definition's is zero"
    return None


def fold(total: int) -> int:
    """Return the 16 bits that additions of the upper bits to the lower ones end at. Pure."""
    return total and (total - 1) % FOLD + 1


def contents(size: int, suspects: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Yield first sums and bytes that show wrong sums: single bytes, all carries, none, and random ones. Pure."""
    for place in suspects:
        yield 0, bytes(place == other for other in range(size))
    for first_sum in (0xFFFFFFFF, 0):
        yield first_sum, b"\xff" * size
        yield first_sum, bytes(size)
    rng = random.Random(size)
    for _ in range(RANDOM_TRIES):
        yield rng.getrandbits(32), rng.randbytes(size)


if __name__ == "__main__":
    main(sys.argv[1:], SumProver)
