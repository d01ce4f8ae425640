"""From a PMU record to what of a kernel's source was executed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kdyno.base.errors import UserError
from kdyno.measure.guest.pmu_parts import CONTEXTS, Region
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.code import Code
from kdyno.profile.select import choose
from kdyno.understand.coverage.executions import Executions, executions
from kdyno.understand.coverage.functions import CodeParts, read_parts
from kdyno.understand.coverage.inlines import copies
from kdyno.understand.coverage.line_table import LineTable, read_line_table
from kdyno.understand.coverage.lines import NEVER, PARTLY, LineCoverage, line_coverage
from kdyno.understand.coverage.model import CoverageReport, DirectoryCoverage, FileCoverage, FunctionCoverage, Totals

NOTHING = Totals(lines=0, executed=0, partly=0, functions=0, functions_executed=0, bytes=0, bytes_executed=0)
SPLIT_OFF = ".cold"


class NothingRan(UserError):
    message = "{subject} has no kernel code in these regions and contexts"
    hint = "`kdyno profile show` lists what ran in each region"


class BootUnknown(UserError):
    message = "{subject} doesn't say what ran outside of the benchmarks' loops"
    hint = "an older plugin wrote it: record it again"


@dataclass(frozen=True)
class RecordSelection:
    """What of a record is meant."""

    regions: tuple[str, ...] = ()
    """Benchmarks, tests or indices; all if there are none."""
    contexts: tuple[str, ...] = CONTEXTS
    with_boot: bool = False


@dataclass(frozen=True, eq=False)
class ExecutedCode:
    """What was executed, by line, function, file and directory."""

    report: CoverageReport
    lines: LineCoverage


def measure(record: PmuRecord, vmlinux: Path, wanted: RecordSelection, subject: str) -> ExecutedCode:
    """`vmlinux` is the one that the record was made with. Raises NoSuchRegion, NothingRan, BootUnknown, and what the
    readers of vmlinux raise.
    """
    if wanted.with_boot and record.unmeasured is None:
        raise BootUnknown(subject=subject)
    regions = choose(record, wanted.regions)
    executed = executions(record, regions, wanted.contexts, Code(vmlinux), with_boot=wanted.with_boot)
    if not executed.counts.any():
        raise NothingRan(subject=subject)
    table, parts = read_line_table(vmlinux), read_parts(vmlinux)
    lines = line_coverage(table, parts, executed, lambda addresses: copies(addresses, vmlinux))
    functions = function_coverage(table, parts, executed)
    files = file_coverage(lines, functions)
    report = CoverageReport(
        subject=subject,
        vmlinux=record.image or "",
        regions=tuple(record.benchmark_name(region.benchmark) for region in regions),
        contexts=wanted.contexts,
        with_boot=wanted.with_boot,
        totals=summed([file.totals for file in files]),
        directories=directory_coverage(files),
        files=files,
        functions=functions,
        notes=_notes(regions, wanted),
    )
    return ExecutedCode(report, lines)


def function_coverage(table: LineTable, parts: CodeParts, executed: Executions) -> tuple[FunctionCoverage, ...]:
    """The functions of all parts, by file and name."""
    starts = np.array([part.address for part in parts.parts], np.uint64)
    sizes = np.array([part.size for part in parts.parts], np.uint64)
    run = executed.bytes_before(starts + sizes) - executed.bytes_before(starts)
    calls = executed.at(starts)
    begins = table.lines_at(starts)
    grouped: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, part in enumerate(parts.parts):
        grouped[part.file, part.function].append(place)
    functions = []
    for (file, name), indices in sorted(grouped.items()):
        entries = [index for index in indices if SPLIT_OFF not in parts.parts[index].symbol] or indices
        functions.append(
            FunctionCoverage(
                name=name,
                file=file,
                line=min((begins[index][file] for index in entries if file in begins[index]), default=0),
                calls=sum(int(calls[index]) for index in entries),
                bytes=sum(int(sizes[index]) for index in indices),
                bytes_executed=sum(int(run[index]) for index in indices),
            )
        )
    return tuple(functions)


def file_coverage(lines: LineCoverage, functions: Iterable[FunctionCoverage]) -> tuple[FileCoverage, ...]:
    """Files that have code, by path; headers with the lines that were inlined from them."""
    of_files: dict[str, list[FunctionCoverage]] = defaultdict(list)
    for function in functions:
        of_files[function.file].append(function)
    number = len(lines.files)
    counted = [
        np.bincount(chosen["file"], minlength=number).tolist()
        for chosen in (
            lines.lines,
            lines.lines[lines.lines["state"] != NEVER],
            lines.lines[lines.lines["state"] == PARTLY],
        )
    ]
    by_path = {path: counts for path, *counts in zip(lines.files, *counted, strict=True) if counts[0]}
    files = []
    for path in sorted(by_path.keys() | of_files.keys()):
        own = of_files.get(path, [])
        known, ran, partly = by_path.get(path, (0, 0, 0))
        totals = Totals(
            lines=known,
            executed=ran,
            partly=partly,
            functions=len(own),
            functions_executed=sum(function.bytes_executed > 0 for function in own),
            bytes=sum(function.bytes for function in own),
            bytes_executed=sum(function.bytes_executed for function in own),
        )
        files.append(FileCoverage(path=path, totals=totals))
    return tuple(files)


def directory_coverage(files: Iterable[FileCoverage]) -> tuple[DirectoryCoverage, ...]:
    """Each directory on the way to a file, with all below it, by path."""
    below: dict[str, list[Totals]] = defaultdict(list)
    for file in files:
        parts = file.path.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            below["/".join(parts[:depth])].append(file.totals)
    return tuple(DirectoryCoverage(path=path, totals=summed(totals)) for path, totals in sorted(below.items()) if path)


def summed(totals: Sequence[Totals]) -> Totals:
    return Totals(**{name: sum(getattr(total, name) for total in totals) for name in Totals.model_fields})


def _notes(regions: Sequence[Region], wanted: RecordSelection) -> tuple[str, ...]:
    if wanted.with_boot or not regions:
        return ()
    return ("counts are those of the benchmarks' loops; --boot adds what ran before, between and after them",)
