"""The samples of a run as CSV in long form: one line for each sample."""

from __future__ import annotations

import csv
from typing import IO

from kdyno.base.measurement import value
from kdyno.base.text import clean
from kdyno.judge.verdicts.model import RunReport

COLUMNS = (
    *("run", "variant", "block", "layout", "position", "seed", "lane", "benchmark", "iteration"),
    *("elapsed", "work", "value", "unit", "direction"),
)


FORMULA = ("=", "+", "-", "@")
"""Characters that begin a formula in a spreadsheet, which may be a command."""


def write_csv(report: RunReport, out: IO[str]) -> None:
    """Write all samples of the `ok` boots. `elapsed` is in the lane's clock, `value` in `unit`.

    `elapsed` and `work` are empty if only the value was reported.
    """
    described = {benchmark.name: benchmark for benchmark in report.benchmarks}
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for boot in report.boots:
        if boot.status != "ok":
            continue
        placed = (boot.block, boot.layout_index, boot.position)
        identity = (report.run.id, _cell(boot.variant), *placed, boot.seed, report.run.lane)
        for sample in boot.samples:
            benchmark = described[sample.benchmark]
            reading = (sample.iteration, sample.elapsed, sample.work, value(sample, benchmark))
            writer.writerow((*identity, _cell(sample.benchmark), *reading, _cell(benchmark.unit), benchmark.direction))


def _cell(text: str) -> str:
    """Return a text that is cleaned, and not a formula; names that an experiment or the agent gives never are one."""
    cleaned = clean(text)
    return f"'{cleaned}" if cleaned.startswith(FORMULA) else cleaned
