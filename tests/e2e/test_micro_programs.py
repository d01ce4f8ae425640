"""Small loops with known cycles, counted under QEMU: every one that the cycle model gets wrong has a known reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.base import process
from kdyno.measure.cycles.family import load_family
from kdyno.measure.cycles.measure import QEMU_USER
from kdyno.measure.cycles.micro_programs import micro_programs, programs_known_on
from kdyno.understand.validate.micro import MicroBench, report_of
from kdyno.understand.validate.micro_lines import describe_unexpected


@pytest.mark.parametrize("name", sorted({name for program in micro_programs() for name in program.known}))
def test_the_model_meets_the_known_cycles_of_every_program_without_a_known_error(name: str, tmp_path: Path) -> None:
    """A program with a known error must be outside of the tolerance: the row of a repaired one has to change."""
    if "plugin" not in process.output([QEMU_USER, "--help"]):
        pytest.skip(f"{QEMU_USER} was built without plugins, as Debian 13's is")
    family = load_family(name)
    programs = [program for program, _ in programs_known_on(family).values()]
    report = report_of(family, MicroBench(programs, tmp_path).count(family), None, None)
    assert not report.unexpected, "\n".join(describe_unexpected(report))
    assert len(report.results) > (400 if name == "znver4" else 20)
