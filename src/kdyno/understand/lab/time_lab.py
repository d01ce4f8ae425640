"""`kdyno lab time`: builds the candidates of families, times and judges them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kdyno.base.cpu import Cpu, read_cpu
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.host.quiet import pin_to_cpu
from kdyno.kernel.image import ArchName
from kdyno.kernel.routines.families import RoutineFamily
from kdyno.kernel.source import fetch
from kdyno.understand.lab.build import RoutineBench
from kdyno.understand.lab.timing import time_routines
from kdyno.understand.lab.verdicts import LabTimes, judge_times

BLOCKS = 24
"""The default number of blocks: half of them choose, half judge."""
SEED = 1
"""The default seed of link orders and sizes."""


def time_families(
    spec: str,
    families: Sequence[RoutineFamily],
    state: State,
    talk: Talk,
    *,
    blocks: int = BLOCKS,
    seed: int = SEED,
    distributions: Mapping[str, Sequence[tuple[int, float]]] | None = None,
    arch: ArchName = "x86_64",
    chosen_before: str | None = None,
) -> LabTimes:
    """Build, time and judge; `distributions` are sizes with their numbers of calls by family, or for all of them by "".
    `chosen_before` is the candidate of a single family that other times chose.

    Raises the errors of `fetch` and RoutineBench, NothingToTime and RoutineTimingFailed.
    """
    by_family = distributions or {}
    cpu = read_cpu()
    source = fetch(spec, state, talk.say)
    reports = []
    with state.scratch("lab") as scratch, pin_to_cpu():
        bench = RoutineBench(source.tree, cpu.flags, scratch, state)
        for family in families:
            if arch not in family.arches:
                talk.say(f"{family.name}: left out: a kernel for {arch} has no such routine")
                continue
            with talk.working(f"building {family.name}"):
                build = bench.build(family, arch)
            with talk.working(f"timing {family.name}") as advance:
                sizes = load_sizes(family, by_family)
                times = time_routines(bench, build, blocks, seed, advance, distribution=sizes)
            reports.append(judge_times(times, arch, chosen_before))
    return LabTimes(
        cpu=cpu_text(cpu),
        source=f"{source.identity.origin} ({source.identity.version})",
        arch=arch,
        blocks=blocks,
        families=tuple(reports),
    )


def load_sizes(
    family: RoutineFamily, distributions: Mapping[str, Sequence[tuple[int, float]]]
) -> Sequence[tuple[int, float]]:
    """Return the sizes of a family's calls, which may be counted by other names, or those for any family. Pure."""
    counted = [row for name in (family.name, *family.counted_as) for row in distributions.get(name, ())]
    return counted or distributions.get("", ())


def cpu_text(cpu: Cpu) -> str:
    """Return the name of a CPU, with its numbers: a hypervisor may hide the name."""
    guest = ", in a virtual machine" if cpu.is_guest else ""
    return f"{cpu.name} (family {cpu.family}, model {cpu.model}{guest})"
