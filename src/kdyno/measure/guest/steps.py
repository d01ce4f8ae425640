"""The records of a job's programs in a stream, step by step: only those that the job requested, in its order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from kdyno.base.text import clean
from kdyno.measure.guest.job import Program

MOST_STDOUT = 1 << 20
"""Bytes that are kept of a step's standard output."""
MOST_STDERR = 2000
"""Bytes that are kept of the end of its standard error."""

Phase = Literal["set-up", "command", "report", "tear-down"]
"""The purpose of a step of a program."""


class Unasked(ValueError):
    """A record of programs that no job requested, or that is out of order; the text says why."""


@dataclass(frozen=True)
class StepReport:
    """One step of a program: its output, and how it ended."""

    program: str
    phase: Phase
    run: int = 0
    """The number of the command's run, or of the run that is reported on, from 0; 0 for the other phases."""
    status: int | None = None
    """Exit status; 128 + signal if a signal ended it; 124: it took too long; 126 and 127: it could not be run."""
    elapsed: float = 0.0
    """Seconds from its start to its end."""
    user: float = 0.0
    """Seconds of processor time in user code, of all processes that ended meanwhile."""
    system: float = 0.0
    """Seconds of processor time in kernel code, of all processes that ended meanwhile."""
    busy_user: float = 0.0
    """Seconds of all processors in user code, whoever ran it; 0 if nobody says."""
    busy_system: float = 0.0
    """Seconds of all processors in kernel code, interrupts included; 0 if nobody says."""
    stdout: bytes = b""
    """The first MOST_STDOUT bytes of its standard output."""
    stdout_is_cut: bool = False
    stderr: bytes = b""
    """The last MOST_STDERR bytes of its standard error."""


def next_step(program: Program, last: StepReport | None) -> tuple[Phase, int] | None:
    """Return phase and run of the step that follows `last`; None if that was the program's last. Pure."""
    tear_down: tuple[Phase, int] | None = ("tear-down", 0) if program.tear_down else None
    if last is None:
        return ("set-up", 0) if program.set_up else ("command", 0)
    if last.phase == "tear-down":
        return None
    if last.status != 0:
        return tear_down
    if last.phase == "set-up":
        return ("command", 0)
    if last.phase == "command" and program.report:
        return ("report", last.run)
    return ("command", last.run + 1) if last.run + 1 < program.runs else tear_down


def failure(steps: Sequence[StepReport]) -> str | None:
    """Return how the first failed step of a program ended; None if all succeeded."""
    for step in steps:
        if step.status:
            return f"its {step.phase} ended with status {step.status}{last_words(step.stderr)}"
    return None


def last_words(stderr: bytes) -> str:
    """Return the last line of a step's standard error, as the end of a sentence."""
    lines = [clean(line) for line in stderr.decode(errors="replace").splitlines()]
    return next((f": {line[-200:]}" for line in reversed(lines) if line), "")


class Steps:
    """The collected steps of the requested programs; every method raises Unasked for another step."""

    def __init__(self, programs: Sequence[Program]) -> None:
        self.programs = programs
        self.left: dict[str, int] = {}
        """The number of processes that each ended program left behind, which were killed."""
        self._ended: list[StepReport] = []
        self._running: StepReport | None = None
        self._stdout = bytearray()
        self._of_program = 0
        """The number of ended steps that belong to ended programs."""

    @property
    def reports(self) -> tuple[StepReport, ...]:
        """Return all steps; one that was cut off has no status."""
        if self._running is None:
            return tuple(self._ended)
        return (*self._ended, replace(self._running, stdout=bytes(self._stdout)))

    def due(self) -> Program | None:
        """Return the program that isn't over yet."""
        return self.programs[len(self.left)] if len(self.left) < len(self.programs) else None

    def begin(self, program: str, phase: Phase, run: int) -> None:
        due = self.due()
        if due is None or self._running or (program, (phase, run)) != (due.name, self._next(due)):
            raise Unasked(f"it begins {program}, {phase} {run}, which is not the next step")
        self._running, self._stdout = StepReport(program, phase, run), bytearray()

    def hear(self, stream: Literal["stdout", "stderr"], written: bytes) -> None:
        step = self._step()
        if stream == "stderr":
            self._running = replace(step, stderr=(step.stderr + written)[-MOST_STDERR:])
            return
        room = MOST_STDOUT - len(self._stdout)
        self._stdout += written[:room]
        if len(written) > room and not step.stdout_is_cut:
            self._running = replace(step, stdout_is_cut=True)

    def end(self, status: int, **nanoseconds: int) -> None:
        """End the step, with each time of a StepReport by its name."""
        seconds: dict[str, Any] = {name: time / 1e9 for name, time in nanoseconds.items()}
        self._ended.append(replace(self._step(), status=status, stdout=bytes(self._stdout), **seconds))
        self._running = None

    def over(self, program: str, processes: int) -> None:
        due = self.due()
        if due is None or self._running or (due.name, self._next(due)) != (program, None):
            raise Unasked(f"it says that {program} is over, which still has steps")
        self.left[program] = processes
        self._of_program = len(self._ended)

    def _next(self, program: Program) -> tuple[Phase, int] | None:
        of_it = self._ended[self._of_program :]
        return next_step(program, of_it[-1] if of_it else None)

    def _step(self) -> StepReport:
        if self._running is None:
            raise Unasked("it reports on a step, but none is running")
        return self._running
