"""Measures the executed code of a kernel's source from a PMU record."""

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
    hint = "choose others: `kdyno profile show` lists the code of each region"


class BootUnknown(UserError):
    message = "{subject} does not have the code that ran outside of the benchmarks' loops"
    hint = "record it again: an older plugin wrote it"


@dataclass(frozen=True)
class RecordSelection:
    """The selected parts of a record."""

    regions: tuple[str, ...] = ()
    """Benchmarks, tests or indices; empty: all regions."""
    contexts: tuple[str, ...] = CONTEXTS
    with_boot: bool = False


@dataclass(frozen=True, eq=False)
class ExecutedCode:
    """The executed code by line, function, file and directory."""

    report: CoverageReport
    lines: LineCoverage


def measure(record: PmuRecord, vmlinux: Path, selection: RecordSelection, subject: str) -> ExecutedCode:
    """Measure the executed code in a record, which was made with `vmlinux`.

    Raises NoSuchRegion, NothingRan, BootUnknown, and what the readers of vmlinux raise.
    """
    if selection.with_boot and record.unmeasured is None:
        raise BootUnknown(subject=subject)
    regions = choose(record, selection.regions)
    executed_counts = executions(record, regions, selection.contexts, Code(vmlinux), with_boot=selection.with_boot)
    if not executed_counts.counts.any():
        raise NothingRan(subject=subject)
    table, parts = read_line_table(vmlinux), read_parts(vmlinux)
    lines = line_coverage(table, parts, executed_counts, lambda addresses: copies(addresses, vmlinux))
    functions = function_coverage(table, parts, executed_counts)
    files = file_coverage(lines, functions)
    report = CoverageReport(
        subject=subject,
        vmlinux=record.image or "",
        regions=tuple(record.benchmark_name(region.benchmark) for region in regions),
        contexts=selection.contexts,
        with_boot=selection.with_boot,
        totals=sum_totals([file.totals for file in files]),
        directories=directory_coverage(files),
        files=files,
        functions=functions,
        notes=_notes(regions, selection),
    )
    return ExecutedCode(report, lines)


def function_coverage(table: LineTable, parts: CodeParts, executed: Executions) -> tuple[FunctionCoverage, ...]:
    """Return the functions of all parts by file and name."""
    starts = np.array([part.address for part in parts.parts], np.uint64)
    sizes = np.array([part.size for part in parts.parts], np.uint64)
    bytes_executed = executed.bytes_before(starts + sizes) - executed.bytes_before(starts)
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
                bytes_executed=sum(int(bytes_executed[index]) for index in indices),
            )
        )
    return tuple(functions)


def file_coverage(lines: LineCoverage, functions: Iterable[FunctionCoverage]) -> tuple[FileCoverage, ...]:
    """Return the files with code by path; a header has the lines that were inlined from it."""
    functions_by_file: dict[str, list[FunctionCoverage]] = defaultdict(list)
    for function in functions:
        functions_by_file[function.file].append(function)
    number = len(lines.files)
    counted = [
        np.bincount(selected_lines["file"], minlength=number).tolist()
        for selected_lines in (
            lines.lines,
            lines.lines[lines.lines["state"] != NEVER],
            lines.lines[lines.lines["state"] == PARTLY],
        )
    ]
    counts_by_path = {path: counts for path, *counts in zip(lines.files, *counted, strict=True) if counts[0]}
    files = []
    for path in sorted(counts_by_path.keys() | functions_by_file.keys()):
        file_functions = functions_by_file.get(path, [])
        all_lines, executed, partly = counts_by_path.get(path, (0, 0, 0))
        totals = Totals(
            lines=all_lines,
            executed=executed,
            partly=partly,
            functions=len(file_functions),
            functions_executed=sum(function.bytes_executed > 0 for function in file_functions),
            bytes=sum(function.bytes for function in file_functions),
            bytes_executed=sum(function.bytes_executed for function in file_functions),
        )
        files.append(FileCoverage(path=path, totals=totals))
    return tuple(files)


def directory_coverage(files: Iterable[FileCoverage]) -> tuple[DirectoryCoverage, ...]:
    """Return each directory of a file with the totals of all files below it, by path."""
    totals_by_directory: dict[str, list[Totals]] = defaultdict(list)
    for file in files:
        parts = file.path.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            totals_by_directory["/".join(parts[:depth])].append(file.totals)
    return tuple(
        DirectoryCoverage(path=path, totals=sum_totals(totals))
        for path, totals in sorted(totals_by_directory.items())
        if path
    )


def sum_totals(totals: Sequence[Totals]) -> Totals:
    """Return the sum of totals."""
    return Totals(**{name: sum(getattr(total, name) for total in totals) for name in Totals.model_fields})


def _notes(regions: Sequence[Region], selection: RecordSelection) -> tuple[str, ...]:
    if selection.with_boot or not regions:
        return ()
    return ("counts are those of the benchmarks' loops; --boot adds what ran before, between and after them",)
