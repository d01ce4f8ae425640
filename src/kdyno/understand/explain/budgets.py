"""The budgets of a run's benchmarks, from the PMU records of its boots, or of boots that are made for this."""

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
    read_recording,
    unit_of,
)
from kdyno.understand.explain.sides import SidesRequest, find_sides


class EdgesAreNoBudget(UserError):
    message = "edges cannot give a budget: they leave out caches, TLBs, the branch predictor and stalls"
    hint = "remove --events edges: kdyno then boots again to count all events"


class NoGraphOfBudgets(UserError):
    message = "--svg cannot be combined with --budget: it draws the flame graph of a difference"
    hint = "remove one of them; `kdyno report RUN --html FILE` draws budgets as bars"


def explain_budgets(
    report: RunReport,
    variant: str,
    benchmark: str | None,
    *,
    events: Events | None = None,
    family: str | None = None,
    session: Session,
) -> Budgets:
    """Return the budgets of one benchmark, or of all, in the baseline and in a variant, which may be the baseline.

    Raises EdgesAreNoBudget, NoSuchVariant, UnknownBenchmark, OnlyValues, NotMeasured and what `find_sides` raises.
    """
    run = report.run
    if events == "edges":
        raise EdgesAreNoBudget()
    variants = {record.name: record for record in run.variants}
    require_variant(run.id, variant, list(variants))
    named_benchmarks = [find_benchmark(run.id, report.benchmarks, benchmark)] if benchmark else report.benchmarks
    benchmarks = [benchmark for benchmark in named_benchmarks if has_region(report, benchmark)]
    if not benchmarks:
        raise OnlyValues(benchmark=format_list([benchmark.name for benchmark in named_benchmarks]) or "the run")
    chosen_family = load_family(family) if family else None
    kernels = tuple(variants[name] for name in dict.fromkeys((run.baseline, variant)))
    request = SidesRequest(kernels, tuple(dict.fromkeys(benchmark.test for benchmark in benchmarks)), "all", family)
    sides = find_sides(report, request, session=session)
    family_of_run = chosen_family or family_of(run, sides.records[0].record)
    budgets = make_budgets(report, benchmarks, sides.records, sides.boots, family_of_run)
    if not budgets.budgets:
        raise NotMeasured(
            benchmark=format_list([benchmark.name for benchmark in benchmarks]), variant=variant, why=budgets.missing[0]
        )
    notes = (family_of_run.gains_note(),) if len(kernels) > 1 else ()
    return budgets.model_copy(update={"notes": notes})


def with_budgets(report: RunReport, artefacts: Artefacts) -> RunReport:
    """Return the report with the budgets of one boot of each variant in one block, if the boots counted all events.

    A missing or damaged record is not an error: the budgets list it as missing. If the family can't be read, or isn't
    the same for all, the report has no budgets.
    """
    counted_variants = {boot.variant for boot in report.boots if boot.status == "ok" and boot.pmu}
    boots = common_boots(
        (boot for boot in report.boots if boot.pmu), *(name for name in report.variants if name in counted_variants)
    )
    if not counted_variants or boots is None:
        return report
    records, damaged = [], []
    for boot in sorted(boots, key=lambda boot: boot.variant != report.run.baseline):
        try:
            records.append(read_recording(boot, artefacts))
        except KdynoError as error:
            damaged.append(f"{boot.variant}: {error}")
    records = [recorded for recorded in records if recorded.record.events == "all"]
    if not records:
        return report
    try:
        boots_text = f"the boots of block {boots[0].block}, seed {boots[0].seed}"
        budgets = make_budgets(report, report.benchmarks, records, boots_text)
    except KdynoError:  # the file of a family is missing, or two runs have different families
        return report
    budgets = budgets.model_copy(update={"missing": (*damaged, *budgets.missing)})
    return report.model_copy(update={"budgets": budgets})


def make_budgets(
    report: RunReport,
    benchmarks: Iterable[Benchmark],
    records: Sequence[Recorded],
    boots: str,
    family: Family | None = None,
) -> Budgets:
    """Return the budgets of benchmarks in at least one record, with the weights of `family`, or of the records' family.

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
    """Return the budget of the median iteration, as the value of a boot is the median; of an even number the shorter
    one.

    A single iteration with cold caches, or with a task switch by the tick, is therefore not in a budget.
    """
    names = recorded.record.names
    region = recorded.measured_region(benchmark).region
    if min(recorded.work[benchmark.name], default=0) <= 0:
        raise WorkUnknown(variant=recorded.variant, benchmark=benchmark.name, why="an iteration did no work")
    unit = unit_of(benchmark)
    work = np.array(recorded.work[benchmark.name], np.float64) / (BYTES_OF_KIB if unit == "KiB" else 1)
    counts = np.array([region.iterations[number] for number in sorted(region.iterations)], np.float64)
    counts /= work[:, None, None]  # iterations x contexts x events, per unit of work
    counts_without_interrupts = counts.sum(axis=1) - counts[:, INTERRUPT]
    order = np.argsort(cycles(counts_without_interrupts, names, family), kind="stable")
    median = order[(len(order) - 1) // 2]
    interrupts = parts(counts[median, INTERRUPT], names, family)
    return budget(
        benchmark.name, recorded.variant, unit, parts(counts_without_interrupts[median], names, family), interrupts
    )
