"""Comparing two runs: the same variant in both, block by block, if they met the same seed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kdyno.base.errors import UserError
from kdyno.judge.verdicts.assemble import judge_run
from kdyno.judge.verdicts.checks import checks_of
from kdyno.judge.verdicts.model import RunReport
from kdyno.judge.verdicts.selftest import selftests_of
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import BootRecord, RunRecord
from kdyno.store.store import Store


class NotComparable(UserError):
    message = "runs {first} and {second} can't be compared: {why}"
    hint = "compare runs of one lane, machine and workload; only kernels may differ"


class NothingInCommon(UserError):
    message = "runs {first} and {second} have no variant of the same name"
    hint = "variants of {first}: {ours}; of {second}: {theirs}"


def compare_runs(store: Store, first: str, second: str, artefacts: Artefacts, *, analysed: bool) -> list[RunReport]:
    """Return a report for each variant that both runs have: the first run's is the baseline, the second's is compared.

    Raise NotComparable for runs whose samples mean different things, and NothingInCommon.
    """
    one, two = store.run(first), store.run(second)
    refuse_unlike(one, two)
    theirs = {variant.name for variant in two.variants}
    common = [variant.name for variant in one.variants if variant.name in theirs]
    if not common:
        ours = ", ".join(variant.name for variant in one.variants)
        raise NothingInCommon(first=one.id, second=two.id, ours=ours, theirs=", ".join(sorted(theirs)))
    boots = store.boots(one.id), store.boots(two.id)
    selftests = selftests_of(store, one)
    benchmarks = {benchmark.name: benchmark for run in (two, one) for benchmark in store.benchmarks(run.id)}
    reports = []
    for name in common:
        names = f"{name}@{one.id}", f"{name}@{two.id}"
        of_one, of_two = ([boot for boot in of_run if boot.variant == name] for of_run in boots)
        pair = [*_rename_variant(of_one, names[0]), *_rename_variant(of_two, names[1])]
        run = one.model_copy(
            update={
                "name": f"{one.name} {one.id} and {two.id}",
                "baseline": names[0],
                "notices": (*one.notices, _identical(of_one, of_two)),
                "variants": tuple(
                    variant.model_copy(update={"name": renamed})
                    for run, renamed in zip((one, two), names, strict=True)
                    for variant in run.variants
                    if variant.name == name
                ),
            }
        )
        checks = checks_of(store, run, artefacts)
        listed = list(benchmarks.values())
        reports.append(judge_run(run, pair, listed, artefacts, selftests, checks=checks, analysed=analysed))
    return reports


def refuse_unlike(one: RunRecord, two: RunRecord) -> None:
    """Raise NotComparable unless lane, machine, seed and workload are the same, so that only kernels differ."""
    unlike = [
        *(["lane"] if one.lane != two.lane else []),
        *(f"machine.{key}" for key in _differing(one.machine, two.machine)),
        *(["seed"] if one.seed != two.seed else []),
        *(["workload"] if _workload(one) != _workload(two) else []),
    ]
    if unlike:
        raise NotComparable(first=one.id, second=two.id, why=f"they differ in {', '.join(unlike)}")


def _differing(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    return sorted(key for key in one.keys() | two.keys() if one.get(key) != two.get(key))


def _workload(run: RunRecord) -> object:
    return json.loads(run.experiment).get("workload")


def _rename_variant(boots: list[BootRecord], name: str) -> Iterator[BootRecord]:
    return (boot.model_copy(update={"variant": name}) for boot in boots)


def _identical(one: list[BootRecord], two: list[BootRecord]) -> str:
    """Return how many of the boots that are `ok` in both runs under one seed have the same samples, and are the same
    boots.
    """
    theirs = {boot.seed: boot for boot in two if boot.status == "ok"}
    pairs = [(boot, theirs[boot.seed]) for boot in one if boot.status == "ok" and boot.seed in theirs]
    same = sum(ours.samples == other.samples for ours, other in pairs)
    shared = sum(ours.key == other.key for ours, other in pairs)
    sentence = f"{same} of {len(pairs)} boots with the same seed have identical samples"
    return f"{sentence}; {shared} are the same boots, which both runs share" if shared else sentence
