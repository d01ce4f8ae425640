"""Budgets of a run's benchmarks, from PMU records: those of its boots, or of boots made for the purpose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kdyno.base.errors import KdynoError, UserError
from kdyno.base.measurement import Benchmark
from kdyno.base.text import format_list
from kdyno.judge.verdicts.model import RunReport
from kdyno.measure.cycles.budget import Budget, Budgets, budget
from kdyno.measure.cycles.family import Family, load_family
from kdyno.measure.cycles.predict import cycles, parts
from kdyno.measure.guest.pmu import Events
from kdyno.runs.session import Session
from kdyno.store.artefacts import Artefacts
from kdyno.store.named_run import require_variant
from kdyno.understand.explain.command import OnlyValues, has_region
from kdyno.understand.explain.measured import INTERRUPT, refuse_unlike
from kdyno.understand.explain.records import (
    BYTES_OF_KIB,
    NotMeasured,
    Recorded,
    WorkUnknown,
    common_boots,
    family_of,
    find_benchmark,
    of_boot,
    unit_of,
)
from kdyno.understand.explain.sides import SidesRequest, find_sides


class EdgesAreNoBudget(UserError):
    message = "a budget can't be made of edges: they leave out caches, TLBs, the branch predictor and all waiting"
    hint = "leave out --events edges: what the run didn't count is booted once more"


class NoGraphOfBudgets(UserError):
    message = "--svg draws the flame graph of a difference, and --budget has none"
    hint = "leave out one of them; `kdyno report RUN --html FILE` draws budgets as bars"


def explain_budgets(
    report: RunReport,
    variant: str,
    benchmark: str | None,
    *,
    events: Events | None = None,
    family: str | None = None,
    session: Session,
) -> Budgets:
    """The budgets of one benchmark, or of all, in the baseline and in a variant, which may be the baseline.

    Raises EdgesAreNoBudget, NoSuchVariant, UnknownBenchmark, OnlyValues, NotMeasured and what `find_sides` raises.
    """
    run = report.run
    if events == "edges":
        raise EdgesAreNoBudget()
    variants = {known.name: known for known in run.variants}
    require_variant(run.id, variant, list(variants))
    named = [find_benchmark(run.id, report.benchmarks, benchmark)] if benchmark else report.benchmarks
    benchmarks = [benchmark for benchmark in named if has_region(report, benchmark)]
    if not benchmarks:
        raise OnlyValues(benchmark=format_list([benchmark.name for benchmark in named]) or "the run")
    chosen = load_family(family) if family else None
    kernels = tuple(variants[name] for name in dict.fromkeys((run.baseline, variant)))
    wanted = SidesRequest(kernels, tuple(dict.fromkeys(benchmark.test for benchmark in benchmarks)), "all", family)
    sides = find_sides(report, wanted, session=session)
    budgets = of_records(report, benchmarks, sides.records, sides.boots, chosen)
    if not budgets.budgets:
        raise NotMeasured(
            benchmark=format_list([benchmark.name for benchmark in benchmarks]), variant=variant, why=budgets.missing[0]
        )
    return budgets


def with_budgets(report: RunReport, artefacts: Artefacts) -> RunReport:
    """The report with the budgets of one boot of each variant, all of one block, if its boots counted all events.

    A record that is missing or damaged is no error: the budgets say so in their place. Nor is a family that can't be
    read, or isn't the same for all: then there are no budgets.
    """
    counted = {boot.variant for boot in report.boots if boot.status == "ok" and boot.pmu}
    boots = common_boots(
        (boot for boot in report.boots if boot.pmu), *(name for name in report.variants if name in counted)
    )
    if not counted or boots is None:
        return report
    records, damaged = [], []
    for boot in sorted(boots, key=lambda boot: boot.variant != report.run.baseline):
        try:
            records.append(of_boot(boot, artefacts))
        except KdynoError as error:
            damaged.append(f"{boot.variant}: {error}")
    records = [recorded for recorded in records if recorded.record.events == "all"]
    if not records:
        return report
    try:
        where = f"the boots of block {boots[0].block}, seed {boots[0].seed}"
        budgets = of_records(report, report.benchmarks, records, where)
    except KdynoError:  # a family whose file is gone, or two runs of different families
        return report
    budgets = budgets.model_copy(update={"missing": (*damaged, *budgets.missing)})
    return report.model_copy(update={"budgets": budgets})


def of_records(
    report: RunReport,
    benchmarks: Iterable[Benchmark],
    records: Sequence[Recorded],
    boots: str,
    family: Family | None = None,
) -> Budgets:
    """The budgets of benchmarks in at least one record, by the weights of the family, else of the records' own.

    Raises RecordsUnlike, and the errors of families.
    """
    for recorded in records[1:]:
        refuse_unlike((records[0].variant, records[0].record), (recorded.variant, recorded.record))
    family = family or family_of(report.run, records[0].record)
    budgets, missing = [], []
    for benchmark in benchmarks:
        for recorded in records:
            try:
                budgets.append(_budget(benchmark, recorded, family))
            except KdynoError as error:
                missing.append(str(error))
    return Budgets(
        run=report.run.id,
        family=family.name,
        modelled=family.caption(),
        boots=boots,
        budgets=tuple(budgets),
        missing=tuple(missing),
    )


def _budget(benchmark: Benchmark, recorded: Recorded, family: Family) -> Budget:
    """Of the median iteration, as a boot's value is the median over its iterations; of two in the middle the shorter.

    So one iteration in which caches were cold, or a tick switched tasks, is in no budget.
    """
    names = recorded.record.names
    region = recorded.measured(benchmark).region
    if min(recorded.work[benchmark.name], default=0) <= 0:
        raise WorkUnknown(variant=recorded.variant, benchmark=benchmark.name, why="an iteration did no work")
    unit = unit_of(benchmark)
    work = np.array(recorded.work[benchmark.name], np.float64) / (BYTES_OF_KIB if unit == "KiB" else 1)
    counts = np.array([region.iterations[number] for number in sorted(region.iterations)], np.float64)
    counts /= work[:, None, None]  # iterations x contexts x events, per unit of work
    own = counts.sum(axis=1) - counts[:, INTERRUPT]
    order = np.argsort(cycles(own, names, family), kind="stable")
    median = order[(len(order) - 1) // 2]
    interrupts = parts(counts[median, INTERRUPT], names, family)
    return budget(benchmark.name, recorded.variant, unit, parts(own[median], names, family), interrupts)
