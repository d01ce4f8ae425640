"""The verdict on a host from its A/As: one difference may be chance, two are not; what is unfinished is no verdict."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kdyno.boot.registry import default_machine
from kdyno.kernel.recipe import Recipe
from kdyno.runs.experiment.models import Experiment
from kdyno.understand import host_check
from kdyno.understand.host_check import CheckUnfinished, ExactLane, HostVerdict, check_host
from kdyno.understand.selftest.carry_out import NothingMeasured


def experiment(lane: str = "wall") -> Experiment:
    machine = default_machine(lane=lane)
    return Experiment(name="pipes", source="s", baseline="plain", variants={"plain": Recipe()}, machine=machine)


def judged(*verdicts: str | None, lost: dict[str, str] | None = None) -> SimpleNamespace:
    """An A/A that came to these verdicts, one for each benchmark."""
    comparisons = [
        SimpleNamespace(benchmark=f"b{number}", verdict=verdict, estimate=SimpleNamespace(ratio=1.03))
        for number, verdict in enumerate(verdicts)
    ]
    report = SimpleNamespace(comparisons=comparisons, run=SimpleNamespace(id="abc"))
    return SimpleNamespace(report=report, outcome=SimpleNamespace(lost=lost or {}))


def verdict_of(patch: pytest.MonkeyPatch, *results: SimpleNamespace) -> tuple[HostVerdict, list[Experiment]]:
    """The verdict after A/As that came to these results, and what was measured."""
    left, measured = list(results), []

    def run(of: Experiment, _session: object, *, again: bool, analysed: bool) -> SimpleNamespace:
        assert again and not analysed
        measured.append(of)
        return left.pop(0)

    patch.setattr(host_check, "run_and_judge", run)
    return check_host(experiment(), "host-a", 6, cast("Any", None)), measured


def test_a_host_has_failed_only_if_two_in_succession_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    same, different = judged("equivalent", "undecided"), judged("equivalent", "slower")
    passed, measured = verdict_of(monkeypatch, same)
    assert passed == HostVerdict(True, "no difference in 2 benchmarks of pipes, 6 blocks")
    assert (list(measured[0].variants), measured[0].blocks) == (["A", "B"], 6)
    assert verdict_of(monkeypatch, different, same)[0].passed
    failed = HostVerdict(False, "one kernel under two names differs in b1 +3.0 %")
    assert verdict_of(monkeypatch, different, different)[0] == failed


def test_what_was_lost_or_measured_nothing_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CheckUnfinished, match="host-a is unfinished: 1 boot") as caught:
        verdict_of(monkeypatch, judged("equivalent", lost={"A, block 1": "the host went away"}))
    assert caught.value.exit_code == 3
    with pytest.raises(NothingMeasured):
        verdict_of(monkeypatch, judged(None))
    with pytest.raises(ExactLane):
        check_host(experiment("model"), "host-a", 6, cast("Any", None))
