"""The samples of a run as CSV in long form: one line for each sample."""

from __future__ import annotations

import csv
from typing import IO

from kdyno.measurement import value
from kdyno.text import clean
from kdyno.verdicts.model import RunReport

COLUMNS = (
    *("run", "variant", "block", "layout", "position", "seed", "lane", "benchmark", "iteration"),
    *("elapsed", "work", "value", "unit"),
)


def write_csv(report: RunReport, out: IO[str]) -> None:
    """Write all samples of the `ok` boots. `elapsed` is in the lane's clock, `value` in `unit`.

    `elapsed` and `work` are empty where the value is all that was said.
    """
    described = {benchmark.name: benchmark for benchmark in report.benchmarks}
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for boot in report.boots:
        if boot.status != "ok":
            continue
        placed = (boot.block, boot.layout_index, boot.position)
        where = (report.run.id, clean(boot.variant), *placed, boot.seed, report.run.lane)
        for sample in boot.samples:
            benchmark = described[sample.benchmark]
            reading = (sample.iteration, sample.elapsed, sample.work, value(sample, benchmark))
            writer.writerow((*where, clean(sample.benchmark), *reading, clean(benchmark.unit)))
