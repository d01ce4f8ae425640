"""Executed code as a directory of HTML pages: an index, and a page for each source file that has code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from kdyno.base.files import NotWritable, write_whole
from kdyno.base.state import translate_disk_full
from kdyno.report.coverage_page import Key, ShownLine, listing, percent, render
from kdyno.understand.coverage.lines import FULLY, NEVER, PARTLY, LineCoverage
from kdyno.understand.coverage.measure import ExecutedCode
from kdyno.understand.coverage.model import FileCoverage, FunctionCoverage, Totals
from kdyno.understand.coverage.sources import Tree

MARKS = {FULLY: "f", PARTLY: "p", NEVER: "n"}
KEYS = (
    Key("f", "executed"),
    Key("p", "partly: some of its code never ran, or a branch only went one way"),
    Key("n", "never executed"),
)
MOST_COPIES, MOST_PIECES = 4, 6
"""The data for the title of a line."""
PAGES = "src"


@dataclass(frozen=True)
class Listed:
    """A file in the index."""

    name: str
    page: str
    """The name of its page; empty if it has none."""
    totals: Totals


def write_pages(measured: ExecutedCode, tree: Tree, directory: Path) -> int:
    """Write the pages, and return their number. Raise NotWritable, DiskFull, NotATree and SourceChanged."""
    tree.require_files([file.path for file in measured.report.files if file.totals.lines])
    of_files: dict[str, list[FunctionCoverage]] = defaultdict(list)
    for function in measured.report.functions:
        of_files[function.file].append(function)
    pages = {}
    for file in measured.report.files:
        shown = shown_lines(measured.lines, file.path)
        text = tree.text(file.path, max(shown, default=0)) if shown else None
        if text is not None:
            place = pages[file.path] = page_of(file.path)
            facts = _file(measured, file, of_files[file.path])
            content = render("coverage_file.html.j2", listing=listing(text, shown, 1), **facts)
            write_page(directory / place, content)
    write_page(directory / "index.html", render("coverage_index.html.j2", **_index(measured, pages)))
    return len(pages) + 1


def write_page(path: Path, content: str) -> None:
    """Write a page without flushing it: pages can be made again."""
    try:
        with translate_disk_full(path):
            path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        raise NotWritable(path=path.parent, why=error.strerror) from error
    write_whole(path, content, durable=False)


def page_of(path: str) -> str:
    return f"{PAGES}/{path}.html"


def shown_lines(lines: LineCoverage, path: str) -> dict[int, ShownLine]:
    """Return how each line of a file that has code is shown."""
    own = _rows_of_file(lines.lines, lines, path)
    titles = _titles(lines, path)
    return {
        int(line["line"]): ShownLine(
            MARKS[int(line["state"])], (int(line["count"]),), titles.get(int(line["line"]), "")
        )
        for line in own
    }


def _rows_of_file(rows: Any, lines: LineCoverage, path: str) -> Any:
    if path not in lines.files:
        return rows[:0]
    number = lines.files.index(path)
    first, behind = np.searchsorted(rows["file"], [number, number + 1])
    return rows[first:behind]


def _titles(lines: LineCoverage, path: str) -> dict[int, str]:
    """Return the places of a line's code, if it is in several pieces: functions that ran it, with the counts of its
    pieces.
    """
    titles = {}
    rows = _rows_of_file(lines.pieces, lines, path)[["line", "owner", "count"]].tolist()
    for line, pieces in groupby(rows, key=itemgetter(0)):
        by_owner = {owner: [count for *_, count in counted] for owner, counted in groupby(pieces, key=itemgetter(1))}
        if len(by_owner) > 1 or len(set(next(iter(by_owner.values())))) > 1:
            titles[line] = _title({lines.owners[owner]: counts for owner, counts in by_owner.items()})
    return titles


def _title(counts: Mapping[str, list[int]]) -> str:
    ran = sorted(((max(pieces), name, pieces) for name, pieces in counts.items() if max(pieces)), reverse=True)
    parts = [f"{name} {_counts(pieces)}" for _, name, pieces in ran[:MOST_COPIES]]
    if len(ran) > MOST_COPIES:
        parts.append(f"{len(ran) - MOST_COPIES:,} more functions")
    if len(counts) > len(ran):
        parts.append(f"never in {len(counts) - len(ran):,} functions")
    return "; ".join(parts)


def _counts(pieces: list[int]) -> str:
    """Return the counts in the order of addresses, neighbours with equal counts as one."""
    counts = [count for count, _ in groupby(pieces)]
    shown = " · ".join(f"{count:,}" for count in counts[:MOST_PIECES])
    return f"{shown} …" if len(counts) > MOST_PIECES else shown


def _file(measured: ExecutedCode, file: FileCoverage, functions: list[FunctionCoverage]) -> dict[str, Any]:
    totals = file.totals
    return {
        "title": file.path,
        "wide": True,
        "index": "../" * page_of(file.path).count("/") + "index.html",
        "about": measured.report.subject,
        "summary": (
            f"{totals.executed:,} of {totals.lines:,} lines executed ({percent(totals.executed, totals.lines)}), "
            f"{totals.partly:,} of them partly; {totals.functions_executed:,} of {totals.functions:,} functions. "
            "Titles name the places of a line's code, and the executions of each piece."
        ),
        "keys": KEYS,
        "columns": ("calls", "bytes executed", "of"),
        "functions": [
            {
                "name": function.name,
                "line": function.line,
                "ran": function.bytes_executed > 0,
                "numbers": (function.calls, function.bytes_executed, function.bytes),
            }
            for function in sorted(functions, key=lambda function: (-function.calls, -function.bytes, function.name))
        ],
    }


def _index(measured: ExecutedCode, pages: Mapping[str, str]) -> dict[str, Any]:
    report = measured.report
    totals = report.totals
    return {
        "title": "Coverage",
        "wide": False,
        "about": f"{report.subject}; {len(report.regions)} benchmarks" + (", and the boot" if report.with_boot else ""),
        "notes": report.notes,
        "cards": [
            card("lines", totals.executed, totals.lines, f"; {totals.partly:,} of them partly"),
            card("functions", totals.functions_executed, totals.functions),
            card("bytes of code", totals.bytes_executed, totals.bytes),
        ],
        "keys": KEYS,
        "directories": [
            (directory.path, directory.totals)
            for directory in report.directories
            if directory.path in _with_files(report.files)
        ],
        "listed": list(list_directories(report.files, pages)),
    }


def _with_files(files: tuple[FileCoverage, ...]) -> set[str]:
    return {file.path.rpartition("/")[0] for file in files}


def card(name: str, part: int, whole: int, more: str = "") -> dict[str, str]:
    return {"name": name, "share": percent(part, whole), "of": f"{part:,} of {whole:,} executed{more}"}


def list_directories(files: tuple[FileCoverage, ...], pages: Mapping[str, str]) -> Iterator[tuple[str, list[Listed]]]:
    """Yield the files of each directory, by path."""
    ordered = sorted(files, key=lambda file: (file.path.rpartition("/")[0], file.path))
    for folder, own in groupby(ordered, key=lambda file: file.path.rpartition("/")[0]):
        yield (
            folder,
            [Listed(file.path.rpartition("/")[2] or "(all)", pages.get(file.path, ""), file.totals) for file in own],
        )
