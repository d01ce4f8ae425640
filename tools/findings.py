"""The README's table of what has been found: its figures are those of the pages that it links to.

`tools/check-docs` compares it with them, and `tools/check-docs --write` writes it anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from doc_tables import DOCS, stale_table, table

README = DOCS.parent / "README.md"
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?= %)")
MEAN = r"geometric mean of \d+ benchmarks is ([^,]+, \w+)"
MODEL_ERROR = r"median error is (\d+ %) on kernel code"
LEVERS_SEEN = r"The run could have seen ([\d.]+ to [\d.]+ %) of a mean with a profile"
MARKUP = re.compile(r"[*`]|<[^>]*>")


class NotThere(Exception):
    """A page that doesn't have what the table takes from it."""


def cells(line: str) -> list[str]:
    return [MARKUP.sub("", cell).strip() for cell in line.strip().strip("|").split("|")]


def cell(page: Path, row: str, column: str, beside: str = "") -> str:
    """Return a cell of the row that begins so, below a heading; in the first table of the page that has both, and a
    column `beside`.
    """
    heading: list[str] = []
    for line in page.read_text(encoding="utf-8").split("\n"):
        if not line.startswith("|"):
            heading = []
            continue
        heading = heading or cells(line)
        values = cells(line)
        if {column, beside or column} <= {*heading} and re.match(rf"{re.escape(row)}( \(.*)?$", values[0]):
            return values[heading.index(column)]
    raise NotThere(f"docs/{page.name} has no row {row} with a column {column}")


def percents(page: Path, rows: Iterable[str], columns: Iterable[str], beside: str = "") -> list[float]:
    """Return the first percentage in each of these cells."""
    found = [NUMBER.search(cell(page, row, column, beside)) for row in rows for column in columns]
    if None in found:
        raise NotThere(f"docs/{page.name} has no percentages where it had some")
    return [float(match[0]) for match in found if match]


def span(numbers: Iterable[float], digits: int = 0) -> str:
    low, high = min(ordered := [abs(number) for number in numbers]), max(ordered)
    return f"{low:.{digits}f} to {high:.{digits}f} %"


def words(page: Path, pattern: str) -> str:
    """Return the text of a page that a pattern finds."""
    match = re.search(pattern, " ".join(page.read_text(encoding="utf-8").split()))
    if not match:
        raise NotThere(f"docs/{page.name} doesn't say {pattern}")
    return match[1]


def findings() -> str:
    feedback, options, debian, builds, fit = (
        DOCS / f"{name}.md" for name in ("feedback", "options", "built-kernels", "builds", "fit-config")
    )
    speeds = ("Sapphire Rapids: speed", "Zen 4: speed")
    isa = {verdict.rsplit(", ", 1)[1] for verdict in (cell(options, "x86-64-v3", column) for column in speeds)}
    patches = ("x86-64-v3", "Sapphire Rapids")
    whole, own = (
        [cell(builds, row, column).split(" (")[0] for column in patches]
        for row in ("make: everything", "make: kernel code")
    )
    verdict = cell(builds, "make: everything", "verdict")
    [smaller] = percents(debian, ["speed, geometric mean of 33"], ["dyno"])
    silicon = DOCS / "silicon.md"
    names = ("gcc-O3", "gcc-Os", "clang-O2", "autofdo-guest", "autofdo-paths")
    timed = [f"{name} {cell(silicon, name, 'speed')}" for name in names]
    compared = ("gcc-O3", "gcc-Os", "clang-Os", "autofdo-guest", "autofdo-paths", "autofdo-order", "pgo-guest")
    modelled, processor = (percents(silicon, compared, [column], "times") for column in ("model", "processor"))
    levers = [
        f"{what} {cell(feedback, row, column)}"
        for what, row, column in (
            ("a profile of a guest's general load", "general-thin: the same with ThinLTO", "all"),
            (
                "of half of the paths, judged by the other half",
                "half-thin: AutoFDO with ThinLTO, trained on half fit",
                "half held-out",
            ),
            ("of all paths", "autofdo-thin: the same with ThinLTO", "all"),
            ("without a profile", "thin: ThinLTO", "all"),
        )
    ]
    error = f"median error {words(options, MODEL_ERROR)} on kernel code"
    rows = [
        (
            "[compilers and profiles](docs/silicon.md), against gcc -O2",
            "wall: cycles of a Zen 4",
            f"{', '.join(timed)}: geometric mean of 96 paths in the kernel",
            f"smallest effect that was seen: {span(percents(silicon, names, ['sees']), 2)}",
        ),
        (
            "[the model](docs/silicon.md#how-far-the-model-is-off) against the processor, mean gains of recipes",
            "model and wall: Zen 4",
            f"{min(modelled):+.1f} to {max(modelled):+.1f} % modelled, {min(processor):+.1f} to "
            f"{max(processor):+.1f} % timed",
            "means within a quarter; single paths are further off",
        ),
        (
            "[profile feedback](docs/feedback.md#paths) with clang and ThinLTO, against gcc -O2",
            "wall: cycles of a Zen 4",
            f"{', '.join(levers)}: geometric mean of 74 paths in the kernel",
            f"smallest effect that was seen: {words(feedback, LEVERS_SEEN)}",
        ),
        (
            "[profile feedback](docs/feedback.md) with clang, against gcc -O2",
            "model: cycles, version 1",
            f"{span(percents(feedback, ('tuned', 'thin-tuned'), ('znver4', 'sapphirerapids')))} faster",
            "version 1 flattered",
        ),
        (
            "[nine options](docs/options.md) of tuning guides, each alone",
            "model: cycles, version 1",
            f"-O3 and clang {span(percents(options, ('O3', 'clang', 'clang-thin-lto'), speeds), 1)} faster, x86-64-v3 "
            f"{' or '.join(sorted(isa))}",
            f"version 1 flattered; {error}",
        ),
        (
            "[Debian's own kernel](docs/built-kernels.md) against kdyno's small one",
            "model: cycles of a Sapphire Rapids",
            f"the small one is {smaller:.0f} % faster: no security modules, checks, clearing",
            f"{error}; one link order each",
        ),
        (
            "[building programs](docs/builds.md) with x86-64-v3 and Sapphire Rapids kernels",
            "model: cycles",
            f"a `make`: {' and '.join(whole)}, {verdict}, as published; the kernel's own code {' and '.join(own)}",
            error,
        ),
        (
            "[a server's kernel fitted to a load](docs/fit-config.md)",
            "sizes; model: instructions",
            f"{span(percents(fit, ['bzImage'], ('fitted to the 19 tests', 'fitted to redis')))} smaller; "
            f"{words(fit, MEAN)}",
            "counts are exact; one link order each",
        ),
        (
            "[large pages](docs/page-size.md), [page blocks](docs/page-block.md), [a file as a disk](docs/loop.md), "
            "[SMP](docs/smp.md)",
            "on each page",
            "beside published accounts",
            "on each page",
        ),
    ]
    return table(("what", "lane", "result", "error"), rows)


def stale(write: bool) -> list[str]:
    """Return what is wrong with the README's table; empty if it is written anew."""
    try:
        now = findings()
    except NotThere as lack:
        return [f"README.md: what has been found: {lack}"]
    return stale_table(README, "findings", now, write)
