"""The family of a CPU, among those that have a cycle model."""

from __future__ import annotations

from collections.abc import Iterable

from kdyno.base import cpu as cpus
from kdyno.base.cpu import Cpu
from kdyno.base.errors import UserError
from kdyno.measure.cycles.family import Family, families, load_family


class UnknownCpu(UserError):
    message = "there is no cycle model for this CPU: {cpu}"
    hint = "name the most similar family: --family NAME; families: {known}"


def find_family(cpu: Cpu, candidates: Iterable[Family] | None = None) -> Family:
    """Return the family that has the CPU's name for -march. Raise UnknownCpu."""
    families_ = [load_family(name) for name in families()] if candidates is None else list(candidates)
    row = cpus.family_of(cpu)
    for family in families_:
        if row is not None and row.name in family.march:
            return family
    title = f"{cpu.vendor} {cpu.family} {cpu.model}" + (f", {row.title} ({row.name})" if row else "")
    raise UnknownCpu(cpu=title, known=", ".join(family.name for family in families_))
