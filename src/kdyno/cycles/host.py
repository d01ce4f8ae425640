"""Which family the present CPU is of. Pure, but for `this_cpu`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kdyno.cycles.family import Family, families, load_family
from kdyno.errors import UserError


class UnknownCpu(UserError):
    message = "no family says that it is that of this CPU: {cpu}"
    hint = "name the one that is most like it: --family NAME; families: {known}"


def this_cpu() -> str:
    """`vendor family model` of this host's CPU, as its families spell it; empty if /proc/cpuinfo doesn't say."""
    try:
        return cpu_of(Path("/proc/cpuinfo").read_text())
    except OSError:
        return ""


def cpu_of(cpuinfo: str) -> str:
    """`vendor family model` of the first CPU."""
    first = cpuinfo.partition("\n\n")[0].splitlines()
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first)}
    try:
        return " ".join(fields[key] for key in ("vendor_id", "cpu family", "model"))
    except KeyError:
        return ""


def family_of(cpu: str, known: Iterable[Family] | None = None) -> Family:
    """The family that a CPU is of; raises UnknownCpu."""
    families_ = [load_family(name) for name in families()] if known is None else list(known)
    for family in families_:
        if any(_is_one(cpu, host) for host in family.hosts):
            return family
    raise UnknownCpu(cpu=cpu or "nothing", known=", ".join(family.name for family in families_))


def _is_one(cpu: str, host: str) -> bool:
    """Whether `vendor family model` is `vendor family model` or `vendor family first-last`."""
    vendor, family, models = host.split(" ")
    first, _, last = models.partition("-")
    words = cpu.split(" ")
    return len(words) == 3 and words[:2] == [vendor, family] and int(first) <= int(words[2]) <= int(last or first)
