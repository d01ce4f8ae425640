"""A program of its own, because angr takes seconds to import and gigabytes to go astray:

    python -m kdyno.understand.lab.symbolic_program PROGRAM FAMILY CANDIDATE SECONDS BOUNDS

It runs a candidate and the definition of its family with bytes that may have any value, and asks an SMT solver for
values with which they differ. It prints lines of JSON, of which the last one counts: outcome and statement.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kdyno.base import terminal

MOST_BYTES = 6 << 30
"""The address space that a proof may have."""
FUNCTIONS = ("to_bytes", "from_bytes", "fill", "arguments", "define", "normalise")
"""The pointers of `struct family` (data/lab/harness/lab.h), in order; they begin behind name, aligned and consumes."""
FIRST_POINTER, POINTER = 24, 8
ARGUMENTS = 48
"""The offset of the arguments in `struct call`; before them are to, from, size, to_offset, from_offset and salt."""
CALL, TO, FROM, RETURN = 0x6000000, 0x10001000, 0x20001000, 0x7000000
"""Addresses at which the program has nothing."""
PAGE = 4096
GUARD = 16
"""The bytes on either side of a call's memory that are compared, too."""
SAVED = ("rbx", "rbp", "r12", "r13", "r14", "r15")
OTHERS = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")
MOST_PATHS = 100_000


class Unproven(Exception):
    """What the tool can't follow; the message says why."""


@dataclass(frozen=True)
class Case:
    """A call whose memory has any content."""

    size: int
    to_offset: int
    from_offset: int
    salt: int | None
    """None: any."""
    is_at_page_end: bool = False
    """Whether the read memory ends with its page; its offset is another one then."""
    ends_with_zero: bool = False
    """Whether the last byte of the memory is zero."""

    @property
    def read_address(self) -> int:
        """The address of the read memory."""
        return FROM + (-self.size % PAGE if self.is_at_page_end else self.from_offset)

    def __str__(self) -> str:
        place = f"offsets {self.to_offset} and {self.from_offset}"
        return f"size {self.size}, {'at the end of a page' if self.is_at_page_end else place}"


@dataclass(frozen=True)
class RoutineEnd:
    """One way through a routine."""

    state: Any
    conditions: Any
    """What its input must be."""
    result: Any
    memory: tuple[Any, ...]
    saved: tuple[Any, ...]


class Prover:
    """One candidate beside its definition, in a program without the C library."""

    def __init__(self, program: str, family: str, candidate: str) -> None:
        import angr
        import claripy

        logging.disable(logging.CRITICAL)
        self.claripy = claripy
        self.project = angr.Project(program, auto_load_libs=False)
        memory = self.project.loader.memory
        table = self._address("family")
        name = memory.load(memory.unpack_word(table), len(family) + 1)
        assert name == family.encode() + b"\0", "the program is of another family"
        places = range(table + FIRST_POINTER, table + FIRST_POINTER + POINTER * len(FUNCTIONS), POINTER)
        self.functions = {name: memory.unpack_word(place) for name, place in zip(FUNCTIONS, places, strict=True)}
        self.candidate = self._address(candidate)
        options = {angr.options.SYMBOL_FILL_UNCONSTRAINED_MEMORY, angr.options.SYMBOL_FILL_UNCONSTRAINED_REGISTERS}
        self.blank = self.project.factory.blank_state(add_options=options | angr.options.simplification)
        self.blank.regs.dflag = 1  # forwards
        for register in (*SAVED, *OTHERS):
            setattr(self.blank.regs, register, claripy.BVS(register, 64))

    def difference(self, case: Case) -> str | None:
        """Return how a candidate may differ from the definition; None: it doesn't. Raises Unproven."""
        start, extents = self._prepared(case)
        arguments = [self._word(start, CALL + ARGUMENTS + 8 * number) for number in range(5)]
        defined = self._ends(start, self.functions["define"], [CALL], extents)
        saved = tuple(getattr(start.regs, register) for register in SAVED)
        for end in self._ends(start, self.candidate, arguments, extents):
            if _may(end, self._any_of(end.saved, saved)):
                return "a register that a routine must leave alone may differ"
            for other in defined:
                if _may(end, self._both(other.conditions, self._any_of(end.memory, other.memory))):
                    return "memory may differ"
                if _may(end, self._both(other.conditions, self._any_of([end.result], [other.result]))):
                    return "the result may differ"
        return None

    def _prepared(self, case: Case) -> tuple[Any, list[tuple[int, int]]]:
        """Return the state before a call, and addresses and sizes of the memory that is compared."""
        claripy, state = self.claripy, self.blank.copy()
        to, origin = TO + case.to_offset, case.read_address
        for place, value in enumerate((to, origin, case.size, case.to_offset, case.from_offset, case.salt)):
            word = claripy.BVS("salt", 64) if value is None else claripy.BVV(value, 64)
            state.memory.store(CALL + 8 * place, word, endness="Iend_LE")
        extents = []
        for address, name in ((to, "to_bytes"), (origin, "from_bytes")):
            [counted] = self._run(state, self.functions[name], [CALL])
            size = counted.solver.eval_one(counted.regs.rax)
            if size:
                extents.append((address - GUARD, size + 2 * GUARD))
                state.memory.store(address - GUARD, claripy.BVS("content", 8 * (size + 2 * GUARD)))
                if case.ends_with_zero:
                    state.memory.store(address + size - 1, claripy.BVV(0, 8))
        states = self._run(state, self.functions["arguments"], [CALL])
        if len(states) != 1:
            raise Unproven("the arguments depend on the content")
        return states[0], extents

    def _ends(
        self, start: Any, function: int, arguments: Sequence[Any], extents: Sequence[tuple[int, int]]
    ) -> list[RoutineEnd]:
        """Return all ways through a routine. Raises Unproven unless each content takes one of them.

        angr drops ways that it can't follow, and where an address depends on the content, it may try one address alone.
        """
        ends = []
        for state in self._run(start, function, arguments):
            memory = tuple(state.memory.load(address, size) for address, size in extents)
            saved = tuple(getattr(state.regs, register) for register in SAVED)
            for end in self._run(state, self.functions["normalise"], [CALL, state.regs.rax]):
                conditions = self.claripy.And(self.claripy.true(), *end.solver.constraints)
                ends.append(RoutineEnd(end, conditions, end.regs.rax, memory, saved))
        others = self.claripy.Not(self.claripy.Or(*(end.conditions for end in ends), self.claripy.false()))
        if start.solver.satisfiable(extra_constraints=[others]):
            raise Unproven("for some content the way can't be followed")
        return ends

    def _run(self, state: Any, function: int, arguments: Sequence[Any]) -> list[Any]:
        """Return the states in which a function may return. Raises Unproven."""
        call = self.project.factory.call_state(function, *arguments, base_state=state, ret_addr=RETURN)
        manager = self.project.factory.simgr(call)
        manager.explore(find=RETURN, num_find=MOST_PATHS)
        if manager.errored:
            raise Unproven(str(manager.errored[0].error))
        return list(manager.found)

    def _any_of(self, some: Sequence[Any], others: Sequence[Any]) -> Any:
        """Return the condition that one of some values is not that of the others."""
        pairs = zip(some, others, strict=True)
        return self.claripy.Or(self.claripy.false(), *(one != other for one, other in pairs if one is not other))

    def _both(self, one: Any, other: Any) -> Any:
        return other if other.is_false() else self.claripy.And(one, other)

    def _word(self, state: Any, address: int) -> Any:
        return state.memory.load(address, POINTER, endness="Iend_LE")

    def _address(self, symbol: str) -> int:
        found = self.project.loader.find_symbol(symbol)
        assert found, f"the program has no {symbol}"
        return int(found.rebased_addr)


def _may(end: RoutineEnd, condition: Any) -> bool:
    return not condition.is_false() and bool(end.state.solver.satisfiable(extra_constraints=[condition]))


def cases(bounds: dict[str, Any]) -> list[Case]:
    """Return the calls that are proven, the smallest first. Pure."""
    ends_with_zero = bounds["ends_with_zero"]
    return [
        Case(size, to_offset, from_offset, salt, is_at_page_end, ends_with_zero)
        for size in (*range(bounds["least"], bounds["most"] + 1), *bounds["larger"])
        for to_offset, from_offset, is_at_page_end in (
            *((to_offset, from_offset, False) for to_offset, from_offset in bounds["offsets"]),
            *([(0, 0, True)] if bounds["at_page_end"] else []),
        )
        for salt in bounds["salts"] or [None]
    ]


def main(words: Sequence[str], prover_class: type[Prover]) -> None:
    """Prove, and print the outcome. At the limit of CPU time the kernel ends the program (SIGXCPU)."""
    program, family, candidate, seconds, bounds_text = words
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    bounds, case = json.loads(bounds_text), None
    outcome, statement = "equal", ""
    try:
        prover = prover_class(program, family, candidate)
        for case in cases(bounds):
            _answer("not proven", f"out of time: {case}")
            if difference := prover.difference(case):
                outcome, statement = "wrong", f"{difference}: {case}"
                break
    except (Unproven, MemoryError) as error:
        outcome, statement = "not proven", f"{error or 'out of memory'}: {case}"
    _answer(outcome, statement)


def _answer(outcome: str, statement: str) -> None:
    """Print an answer; the last one counts, and the time may end before the next."""
    terminal.data(json.dumps({"outcome": outcome, "statement": statement}) + "\n")
    terminal.flush()


if __name__ == "__main__":
    main(sys.argv[1:], Prover)
