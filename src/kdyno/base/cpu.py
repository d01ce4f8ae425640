"""A CPU as the kernel that runs on it sees it: CPUID's vendor, family, model and feature flags, from /proc/cpuinfo.

The flags are those that the kernel and its hypervisor let through: code must not use what they hide.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import field_serializer

from kdyno.base.cpu_families import GENERATIONS, March, families, levels
from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.frozen import Frozen

CPUINFO = Path("/proc/cpuinfo")
MOST_BYTES = 64 << 20
"""The most bytes of a cpuinfo; that of 2,000 CPUs has 4 MB."""
MADE_UP = ("Common KVM processor", "QEMU Virtual CPU", "QEMU TCG CPU")
"""Names of the CPUs that QEMU made up (kvm64, qemu64, max): their family and model numbers belong to other CPUs."""

_LSCPU = {
    "Vendor ID": "vendor_id",
    "CPU family": "cpu family",
    "Model": "model",
    "Model name": "model name",
    "Stepping": "stepping",
    "Flags": "flags",
}
"""Fields of lscpu -> those of /proc/cpuinfo."""
_VENDORS = frozenset(("GenuineIntel", "AuthenticAMD", "HygonGenuine", "CentaurHauls", "Shanghai"))
"""Vendors of x86 CPUs as CPUID names them, in every language."""
_BLANK_LINES = re.compile(r"\n\s*\n")


class NoCpuinfo(UserError):
    message = "can't read the CPU from {path}: {why}"
    hint = "name a copy of the target machine's /proc/cpuinfo, or what `LC_ALL=C lscpu` prints there"


class SeveralCpus(NoCpuinfo):
    message = "{path} describes different CPUs: {first}, and {other}"
    hint = "name a copy of the /proc/cpuinfo of one machine"


class Cpu(Frozen):
    """The CPU of a machine."""

    vendor: str
    """The vendor that CPUID names: `AuthenticAMD`."""
    family: int
    model: int
    stepping: int | None
    name: str
    """The name that the vendor or the hypervisor gave it; only shown to people."""
    flags: frozenset[str]
    """The features that all its processors have: a kernel runs on all."""

    @field_serializer("flags")
    def _in_order(self, flags: frozenset[str]) -> list[str]:
        return sorted(flags)

    @property
    def is_guest(self) -> bool:
        return "hypervisor" in self.flags

    @property
    def runs_64_bit_kernels(self) -> bool:
        """Return whether the CPU has long mode."""
        return "lm" in self.flags


def read_cpu(path: Path = CPUINFO) -> Cpu:
    """Return the CPU that a /proc/cpuinfo describes. Raise NoCpuinfo if it can't be read."""
    try:
        # A file below /proc reports a size of 0, yet it is read to its end.
        text = read_whole(path, MOST_BYTES).decode(errors="replace")
    except OSError as error:
        raise NoCpuinfo(path=path, why=error.strerror) from error
    try:
        return parse_cpuinfo(text, path)
    except KeyError as error:
        raise NoCpuinfo(path=path, why=f"it has no `{error.args[0]}`, so it does not describe an x86 CPU") from error
    except ValueError as error:
        raise NoCpuinfo(path=path, why=f"it has a malformed number: {error}") from error


def parse_cpuinfo(text: str, path: Path = CPUINFO) -> Cpu:
    """Return the CPU of the text, which is that of /proc/cpuinfo or of lscpu, with the features that all processors
    have.

    Raise KeyError with the field that is missing, ValueError for a bad number, SeveralCpus if the processors are not of
    one model; `path` is for its message. Pure.
    """
    first, *others = _blocks(text)
    cpu = _cpu_of(first)
    for fields in others:
        other = _cpu_of({**first, **fields})
        if (other.vendor, other.family, other.model) != (cpu.vendor, cpu.family, cpu.model):
            raise SeveralCpus(path=path, first=cpu.name, other=other.name)
        cpu = cpu.model_copy(update={"flags": cpu.flags & other.flags})
    return cpu


def _blocks(text: str) -> list[dict[str, str]]:
    """Return the fields of each processor that is unlike all before it, apart from its number; at least one block."""
    blocks: dict[frozenset[tuple[str, str]], dict[str, str]] = {}
    is_lscpu = "vendor_id" not in text
    for part in [text] if is_lscpu else _BLANK_LINES.split(text.strip()):
        lines = (line.replace("：", ":").partition(":") for line in part.splitlines())
        pairs = [(key.strip(), value.strip()) for key, _, value in lines]
        fields = dict(pairs)
        if is_lscpu and "Vendor ID" in fields:
            fields = {name: fields[key] for key, name in _LSCPU.items() if key in fields}
        elif is_lscpu:
            fields = _translated_fields(pairs)
        telling = frozenset((key, fields[key]) for key in _LSCPU.values() if key in fields)
        blocks.setdefault(telling, fields)
    with_flags = [fields for telling, fields in blocks.items() if telling]
    return with_flags or [{}]


def _translated_fields(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the fields of what lscpu prints in another language than English: by their values, and by their order,
    which is that of the English ones. The BIOS's own names and numbers stand between them.
    """
    own = [(key, value) for key, value in pairs if "BIOS" not in key]
    place = next((place for place, (_, value) in enumerate(own) if value in _VENDORS), None)
    if place is None:
        return {}
    below = [value for _, value in own[place + 1 :]]
    numbers = [value for value in below if value.isdecimal()]
    texts = [value for value in below if not value.isdecimal()]
    flags = next((value for value in below if {"fpu", "msr"} <= set(value.split())), None)
    fields = {"vendor_id": own[place][1]}
    fields |= dict(zip(("cpu family", "model"), numbers, strict=False))
    return fields | ({"model name": texts[0]} if texts else {}) | ({"flags": flags} if flags else {})


def _cpu_of(fields: dict[str, str]) -> Cpu:
    stepping = fields.get("stepping", "")
    return Cpu(
        vendor=fields["vendor_id"],
        family=int(fields["cpu family"]),
        model=int(fields["model"]),
        stepping=int(stepping) if stepping.isdecimal() else None,
        name=fields.get("model name", "unknown"),
        flags=frozenset(fields["flags"].split()),
    )


def level_of(flags: frozenset[str]) -> int:
    """Return the highest N for which these flags make x86-64-vN; 0 if they don't make v1. Pure."""
    reached = 0
    for row in levels():
        if not flags.issuperset(row.flags):
            break
        reached = row.level
    return reached


@dataclass(frozen=True)
class CpuIdentity:
    """The family of a CPU, and what it was recognised by."""

    family: March | None
    why: str


def identify(cpu: Cpu) -> CpuIdentity:
    """Return the family that CPUID's numbers name; if the CPU's features contradict them, the family that the features
    tell.

    Hypervisors make CPUs up: some have a name of their own, others have the number of a CPU that lacks features which
    they show. Pure.
    """
    if cpu.is_guest and cpu.name.startswith(MADE_UP):
        return CpuIdentity(None, f"{cpu.name} is a CPU that exists only in hypervisors")
    named = find_by_number(cpu)
    if named is None:
        return CpuIdentity(None, f"no row of the table has {cpu.vendor} {cpu.family} {cpu.model}")
    foreign = _foreign(cpu, named)
    if not foreign:
        return CpuIdentity(named, f"{named.title} by CPUID")
    contradiction = f"CPUID's model {cpu.model} is {named.name}, which lacks {', '.join(foreign)}"
    able = [row for row in families() if row.vendor == named.vendor and row.has and not _foreign(cpu, row)]
    if not able:
        return CpuIdentity(None, f"{contradiction}; no other family of {named.vendor} has these either")
    oldest = min(able, key=lambda row: len(row.has or ()))
    return CpuIdentity(oldest, f"{oldest.title} or newer by its features: {contradiction}")


def family_of(cpu: Cpu) -> March | None:
    """Return the family that `identify` finds, without the reason. Pure."""
    return identify(cpu).family


def find_by_number(cpu: Cpu) -> March | None:
    """Return the family that CPUID's numbers name; if several share a model, the one with the most telling flags."""
    matches = [row for row in families() if any(_covers(models, cpu) for models in row.cpuid)]
    matches = [row for row in matches if cpu.flags.issuperset(row.told_by)]
    return max(matches, key=lambda row: len(row.told_by), default=None)


def _foreign(cpu: Cpu, family: March) -> list[str]:
    """Return the flags that the CPU shows and this family lacks."""
    if family.has is None:
        return []
    return [flag for flag in GENERATIONS if flag in cpu.flags and flag not in family.has]


def _covers(models: str, cpu: Cpu) -> bool:
    """Return whether this CPU is among `vendor family first-last`."""
    vendor, family, numbers = models.split(" ")
    first, _, last = numbers.partition("-")
    return (cpu.vendor, cpu.family) == (vendor, int(family)) and int(first) <= cpu.model <= int(last or first)
