"""`kdyno lab sizes`: the sizes and offsets that a kernel calls its routines with, counted by a plugin of QEMU.

Plugins of QEMU before version 9 can't read registers. The plugin (crates/calls) sees the accesses of a routine to
memory between its first instruction and its return: their extent is the size.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.files import read_whole
from kdyno.base.frozen import Frozen
from kdyno.base.mistakes import first_fault
from kdyno.base.text import format_list
from kdyno.kernel.boot_tests import disable_boot_tests
from kdyno.kernel.image import Image
from kdyno.kernel.images import configuration_of, find_image
from kdyno.kernel.routines.families import CountedRoutine, counted_routines
from kdyno.measure.guest.pmu import PmuConfig, find_plugin
from kdyno.measure.workload.named import training_load
from kdyno.measure.workload.needs import Load
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.one_boot import BootRequest
from kdyno.runs.session import Session
from kdyno.runs.single_boots import pmu_job, pmu_machine
from kdyno.runs.subject import find_subject
from kdyno.store.named_run import require_variant
from kdyno.store.records import RunRecord

MOST_SYMBOLS_BYTES = 64 << 20
MOST_COUNT_BYTES = 64 << 20
COUNTS = "calls.tsv"
"""The file in the directory of a boot that the plugin writes."""
When = Literal["measured", "other"]
"""measured: within the measured loops of the load; other: the rest of the boot, with programs that measure nothing."""
LOST = "lost"
DEFAULT_LOAD = ("lmbench",)


class RoutinesMissing(UserError):
    message = "the kernel of image {image} has none of the counted routines: {symbols}"
    hint = "name an image of a kernel for x86-64 that kdyno built"


class RunWithoutLoad(UserError):
    message = "run {run} has nothing that can be booted and counted: {why}"
    hint = "name an image, and a load by --workload"


class CallsNotCounted(InfrastructureError):
    message = "the boot of {name} that counts calls failed: {why}"
    hint = "see if the kernel boots: kdyno boot {image} --lane model -- true"


class CallCount(Frozen):
    """Calls with one size and one pair of offsets."""

    size: int
    to: int
    """The offset of the written memory in its line of 64 bytes."""
    from_: int = Field(alias="from")
    """That of the read memory."""
    when: When
    count: int


class RoutineCalls(Frozen):
    """The calls of one routine."""

    family: str
    """The name of the routine: that of its family, if it has one."""
    size: str
    calls: tuple[CallCount, ...]

    def total(self, when: When | None = None) -> int:
        """Return the number of calls, of one phase or of both."""
        return sum(call.count for call in self.calls if when in (None, call.when))


class CallSizes(Frozen):
    """The outcome of `kdyno lab sizes`."""

    image: str
    kernel: str
    load: tuple[str, ...]
    seed: int
    families: tuple[RoutineCalls, ...]
    lost: int
    """Calls whose return wasn't seen."""
    undirected: int
    """Copies of no bytes, which are neither from nor to user space."""
    notes: tuple[str, ...]
    """The routines that can't be counted in this kernel, with the reasons."""


def find_calls_plugin() -> Path:
    """Return the plugin that counts calls. Raises ProgramMissing."""
    return find_plugin("calls", "counting calls of routines")


def subject_of(named: str, variant: str | None, workload: tuple[str, ...], session: Session) -> tuple[Image, Load]:
    """Return the image that a user named, and its load: that of a run, or the named one.

    Raises what find_subject, require_variant and training_load raise, and RunWithoutLoad.
    """
    subject = find_subject(named, ("image", "run"), session.state, session.store)
    if isinstance(subject, Image):
        return subject, training_load(workload or DEFAULT_LOAD)
    assert isinstance(subject, RunRecord)
    name = variant or subject.baseline
    require_variant(subject.id, name, [row.name for row in subject.variants])
    row = next(row for row in subject.variants if row.name == name)
    if not row.images:
        raise RunWithoutLoad(run=subject.id, why=f"{name} has no image")
    image = find_image(row.images[0].key, session.state)
    if workload:
        return image, training_load(workload)
    try:
        return image, Experiment.model_validate_json(subject.experiment).workload.load()
    except ValidationError as error:
        raise RunWithoutLoad(run=subject.id, why=first_fault(error)) from error


def count_calls(image: Image, load: Load, *, seed: int, session: Session) -> CallSizes:
    """Boot an image with a load, without the tests that its kernel has of itself, and count the calls of its routines.

    Raises RoutinesMissing, CallsNotCounted, ProgramMissing, and what machine and agent raise.
    """
    state, talk = session.state, session.talk
    key = image.record.key[:12]
    plugin = find_calls_plugin()
    symbols = read_symbols(read_whole(image.symbols, MOST_SYMBOLS_BYTES).decode(errors="replace"))
    routines = counted_routines()
    listed = routine_lines(symbols, routines)
    if not listed:
        names = {entry: None for routine in routines for entry in routine.calls.entries}
        raise RoutinesMissing(image=key, symbols=format_list(list(names)))
    machine = pmu_machine("edges", PmuConfig().family, load, state=state, talk=talk)
    machine.require_cpu(image.record.needs, f"image {key}")
    words = disable_boot_tests((), configuration_of(image))
    request = BootRequest(f"image {key}", image, words, pmu_job(machine.describe(), load), seed, is_counted=False)
    with state.scratch("lab") as scratch, talk.working(f"counting calls in a boot of image {key}"):
        list_path = scratch / "routines.txt"
        list_path.write_text(listed, encoding="ascii")
        out = scratch / COUNTS
        options = (str(plugin), f"out={out}", f"routines={list_path}")
        argument = ",".join(option.replace(",", ",,") for option in options)
        end = machine.boot(replace(request.order(scratch), plugin=("-plugin", argument)))
        if end.status != "ok" or not out.is_file():
            raise CallsNotCounted(name=request.name, image=key, why=end.reason or "the plugin wrote no counts")
        counts = read_counts(read_whole(out, MOST_COUNT_BYTES).decode(errors="replace"), routines)
    return CallSizes(
        image=image.record.key,
        kernel=image.record.source.version,
        load=load.names,
        seed=seed,
        families=counts.calls,
        lost=counts.lost,
        undirected=counts.undirected,
        notes=uncounted_notes(symbols, routines, {calls.family for calls in counts.calls}),
    )


def read_symbols(text: str) -> list[tuple[int, str]]:
    """Return addresses and names of the functions in a System.map, by address. Pure."""
    rows = [line.split() for line in text.splitlines()]
    return sorted((int(row[0], 16), row[2]) for row in rows if len(row) == 3 and row[1] in "tTwW")


def routine_lines(symbols: Sequence[tuple[int, str]], routines: Iterable[CountedRoutine]) -> str:
    """Return the file of routines for the plugin: a line for each symbol of a routine that the kernel has. Pure.

    Of routines with the same entries only the first is listed.
    """
    starts = sorted({address for address, _ in symbols})
    ends = dict(pairwise(starts))
    addresses = {name: address for address, name in symbols if address in ends}
    lines, listed = list[str](), set[int]()
    for routine in routines:
        entries = {addresses[name] for name in routine.calls.entries if name in addresses} - listed
        listed |= entries
        parts = {addresses[name] for name in routine.calls.parts if name in addresses} - entries
        lines += [f"{routine.name} {start:x} {start:x} {ends[start]:x}\n" for start in sorted(entries)]
        lines += [f"{routine.name} 0 {start:x} {ends[start]:x}\n" for start in sorted(parts) if entries]
    return "".join(lines)


@dataclass(frozen=True)
class PluginCounts:
    """What the plugin counted."""

    calls: tuple[RoutineCalls, ...]
    lost: int
    undirected: int


def read_counts(text: str, routines: Sequence[CountedRoutine]) -> PluginCounts:
    """Return the calls of each routine from the plugin's file. Pure."""
    counts: dict[str, dict[tuple[int, int, int, When], int]] = {routine.name: {} for routine in routines}
    lost = undirected = 0
    for row in csv.DictReader(io.StringIO(text), dialect="excel-tab"):
        if row["when"] == LOST:
            lost += int(row["count"])
            continue
        routine = _routine_called(row, routines)
        if routine is None:
            undirected += int(row["count"])
            continue
        size = max(0, int(row[routine.calls.extent]) - routine.calls.beyond)
        when: When = "measured" if row["when"] == "measured" else "other"
        kind = (size, int(row["to"]), int(row["from"]), when)
        counts[routine.name][kind] = counts[routine.name].get(kind, 0) + int(row["count"])
    calls = tuple(
        RoutineCalls(
            family=routine.name,
            size=routine.size,
            calls=tuple(
                CallCount.model_validate({"size": size, "to": to, "from": from_, "when": when, "count": count})
                for (size, to, from_, when), count in sorted(counts[routine.name].items())
            ),
        )
        for routine in routines
        if counts[routine.name]
    )
    return PluginCounts(calls, lost, undirected)


def _routine_called(row: Mapping[str, str], routines: Sequence[CountedRoutine]) -> CountedRoutine | None:
    """Return the routine of a row, by its entries and its memory in user space; None if that memory isn't seen."""
    listed = next(routine for routine in routines if routine.name == row["routine"])
    same = (routine for routine in routines if routine.calls.entries == listed.calls.entries)
    return next((routine for routine in same if routine.calls.user in (None, row["user"])), None)


def uncounted_notes(
    symbols: Sequence[tuple[int, str]], routines: Iterable[CountedRoutine], called: Collection[str]
) -> tuple[str, ...]:
    """Return a note for each routine without calls that a kernel may have in the place of its calls. Pure."""
    names = {name for _, name in symbols}
    notes = []
    for routine in routines:
        calls = routine.calls
        if not calls.inlined_as or routine.name in called:
            continue
        known = [entry for entry in calls.entries if entry in names]
        if known:
            notes.append(
                f"{routine.name}: nothing called {format_list(known)}: this kernel has it inlined as "
                f"{calls.inlined_as}, or never called it"
            )
        else:
            notes.append(f"{routine.name}: not counted: this kernel has none of {format_list(calls.entries)}")
    return tuple(notes)


def sizes_csv(report: CallSizes, when: When | None) -> str:
    """Return the calls as CSV, which `kdyno lab time --sizes` reads; of one phase, or of the whole boot. Pure."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("routine", "size", "count", "to", "from", "when"))
    for family in report.families:
        for call in family.calls:
            if when in (None, call.when):
                writer.writerow((family.family, call.size, call.count, call.to, call.from_, call.when))
    return out.getvalue()


def sum_by_size(family: RoutineCalls, when: When | None) -> Mapping[int, int]:
    """Return the number of calls by size, in order. Pure."""
    counts: dict[int, int] = {}
    for call in family.calls:
        if when in (None, call.when):
            counts[call.size] = counts.get(call.size, 0) + call.count
    return dict(sorted(counts.items()))
