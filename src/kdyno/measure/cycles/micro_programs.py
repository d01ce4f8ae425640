"""Micro-programs: loops of a few instructions with known cycles, their table and their assembly."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Annotated

from pydantic import Field

from kdyno.base import toml
from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.measure.cycles.family import Family

TOLERANCE = 0.15
"""The relative error of the model that is accepted."""
TOLERATED_CYCLES = 0.3
"""The error in cycles per iteration that is accepted, however few cycles an iteration takes."""
PAGE = 4096
"""Bytes; the programs and the buffers are aligned to it."""
BUFFER_BYTES = 1 << 20
"""The size of each of the buffers A and B."""
CLEARED_WORDS = 1024
"""The number of words of 8 bytes at the start of each buffer that are zeroed before a turn: more than bodies write."""
SAVED = ("rbx", "rbp", "r12", "r13", "r14", "r15")
"""The registers that a called function leaves as they were."""
ZEROED = ("eax", "ebx", "ecx", "edx", "ebp", *(f"r{number}d" for number in range(8, 16)))


class NoKnownCycles(UserError):
    message = "no micro-program has known cycles on {family}"
    hint = "choose one of {known}, or a file that was made from it: --family file:PATH"


class KnownCycles(Frozen):
    """The known cycles of one iteration on the processors of one family."""

    cycles: Annotated[float, Field(gt=0)]
    source: Annotated[str, Field(min_length=1)]
    known_error: Annotated[str, Field(min_length=1)] | None = None
    """The reason why the model is outside of the tolerance; None: it is expected to be within."""

    def is_met(self, modelled: float) -> bool:
        """Return whether modelled cycles are within the tolerance. Pure."""
        return abs(modelled - self.cycles) <= max(TOLERANCE * self.cycles, TOLERATED_CYCLES)


class TimedLoop(Frozen):
    """A loop: `setup` runs once, `body` in each iteration. The text is GNU assembler's."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    group: Annotated[str, Field(min_length=1)]
    """The mechanism of the processor that decides the cycles."""
    setup: str = ""
    body: Annotated[str, Field(min_length=1)]
    iterations: Annotated[int, Field(ge=100)] = 1000


class MicroProgram(TimedLoop):
    """A loop with known cycles."""

    known: Annotated[dict[str, KnownCycles], Field(min_length=1)]
    """By the name of a CPU family."""


class _MicroProgramFile(Frozen):
    program: tuple[MicroProgram, ...]


@cache
def micro_programs() -> tuple[MicroProgram, ...]:
    """Return all programs of data/micro-programs.toml, in its order."""
    text = (files("kdyno") / "data" / "micro-programs.toml").read_text(encoding="utf-8")
    return _MicroProgramFile.model_validate(toml.parse(text)).program


def programs_known_on(family: Family) -> dict[str, tuple[MicroProgram, KnownCycles]]:
    """Return the programs with known cycles on a family, by their names. Raises NoKnownCycles."""
    programs = micro_programs()
    names = (family.name, *family.march)
    known_programs = {
        program.name: (program, program.known[name])
        for program in programs
        if (name := next((name for name in names if name in program.known), None))
    }
    if not known_programs:
        raise NoKnownCycles(
            family=family.name, known=", ".join(sorted({name for one in programs for name in one.known}))
        )
    return known_programs


def assembly(programs: Sequence[TimedLoop]) -> str:
    """Return the source of the loads of data/validate/driver.c (load.h): a function for each program. Pure."""
    functions = (_function(index, program) for index, program in enumerate(programs))
    rows = (f".quad name_{index}, clear_buffers, program_{index}, 0" for index in range(len(programs)))
    names = (f'name_{index}: .asciz "{program.name}"' for index, program in enumerate(programs))
    return "\n".join(
        [
            ".text",
            *functions,
            _CLEAR_BUFFERS,
            ".section .rodata",
            *names,
            ".balign 8",
            ".globl loads",
            "loads:",
            *rows,
            ".quad 0, 0, 0, 0",
            ".bss",
            f".balign {PAGE}",
            *(f"{buffer}: .skip {BUFFER_BYTES}" for buffer in ("A", "B")),
            '.section .note.GNU-stack,"",@progbits',
            "",
        ]
    )


_CLEAR_BUFFERS = f"""clear_buffers:
xor %eax, %eax
mov $A, %rdi
mov ${CLEARED_WORDS}, %ecx
rep stosq
mov $B, %rdi
mov ${CLEARED_WORDS}, %ecx
rep stosq
ret"""


def _function(index: int, program: TimedLoop) -> str:
    return "\n".join(
        [
            # So that no program changes the sets of the op cache that another one uses.
            f".balign {PAGE}",
            f"program_{index}:",
            *(f"push %{register}" for register in SAVED),
            *(f"xor %{register}, %{register}" for register in ZEROED),
            "mov $A, %rsi",
            "mov $B, %rdi",
            *instructions(program.setup),
            f"mov ${program.iterations}, %ecx",
            ".p2align 6",
            f".Lloop_{index}:",
            *instructions(program.body),
            "dec %ecx",
            f"jnz .Lloop_{index}",
            *(f"pop %{register}" for register in reversed(SAVED)),
            "ret",
        ]
    )


def instructions(text: str) -> list[str]:
    """Return the instructions of a set-up or a body, one in each element. Pure."""
    return [line for part in text.replace(";", "\n").splitlines() if (line := part.strip())]
