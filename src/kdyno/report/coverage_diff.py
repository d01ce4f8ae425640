"""The code of one source that two boots executed, side by side, as HTML pages."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from kdyno.report.coverage_html import page_of, write_page
from kdyno.report.coverage_page import Key, ShownLine, listing, render
from kdyno.understand.coverage.diff import CoverageDifference, Difference, FunctionDifference
from kdyno.understand.coverage.sources import Tree

MARKS = {(True, True): "f", (True, False): "a", (False, True): "b", (False, False): "n"}
KEYS = (Key("f", "executed by both"), Key("a", "by A only"), Key("b", "by B only"), Key("n", "by neither"))


def write_diff_pages(difference: Difference, tree: Tree, directory: Path) -> int:
    """Write a page for each file that differs, and an index; return the number of pages. Raise the errors of
    write_pages.
    """
    tree.require_files(list(difference.counts))
    of_files: dict[str, list[FunctionDifference]] = defaultdict(list)
    for function in difference.report.functions:
        of_files[function.file].append(function)
    pages = {}
    for file in difference.report.files:
        lines = difference.counts[file.path]
        text = tree.text(file.path, max(lines))
        if text is None:
            continue
        shown = {line: ShownLine(MARKS[one > 0, other > 0], (one, other)) for line, (one, other) in lines.items()}
        pages[file.path] = page_of(file.path)
        facts = _file(difference.report, file.path, of_files[file.path])
        write_page(
            directory / pages[file.path], render("coverage_file.html.j2", listing=listing(text, shown, 2), **facts)
        )
    index = render(
        "coverage_diff.html.j2",
        title="Coverage: A and B",
        wide=False,
        difference=difference.report,
        pages=pages,
        keys=KEYS,
    )
    write_page(directory / "index.html", index)
    return len(pages) + 1


def _file(report: CoverageDifference, path: str, functions: list[FunctionDifference]) -> dict[str, object]:
    return {
        "title": path,
        "wide": True,
        "index": "../" * page_of(path).count("/") + "index.html",
        "about": "A and B",
        "summary": f"A: {report.subjects[0]}. B: {report.subjects[1]}. The first count is A's, the second B's.",
        "keys": KEYS,
        "columns": ("calls in A", "in B"),
        "functions": [
            {"name": function.name, "line": 0, "ran": True, "numbers": function.calls} for function in functions
        ],
    }
