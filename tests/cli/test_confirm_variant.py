"""`kdyno confirm`: a variant of a run is measured again, with what did not choose it."""

from __future__ import annotations

import json

import pytest

from kdyno.judge.verdicts.assemble import assemble
from kdyno.judge.verdicts.model import RunReport
from kdyno.tune import confirm as confirm_module
from kdyno.tune.confirm import SUFFIX
from tests.cli.conftest import Lab
from tests.cli.replay import slower

BENCHMARK = "lat_syscall.null"


@pytest.fixture
def run(lab: Lab) -> Lab:
    """A run whose variant `slow` takes 4 % longer in one benchmark."""
    lab.recording.add("slow", slower(BENCHMARK, 4))
    assert lab("run", lab.experiment("slow")).status == 0
    return lab


def test_both_runs_are_shown_side_by_side_and_the_new_one_is_on_record(run: Lab) -> None:
    result = run("confirm", "latest", "slow")
    assert result.status == 0, result.err
    first, second, *_ = result.out.splitlines()
    assert first.startswith("slow against baseline: confirmed: ") and " promised, " in first
    assert "3 blocks that run" in second and "did not have" in second
    [row] = [line for line in result.out.splitlines() if line.startswith(BENCHMARK)]
    assert row.count("+4.0 %") == 2
    assert "replay-confirmed" in run("runs").out


def test_the_boots_of_the_run_are_not_taken_again_and_those_of_the_new_one_are(run: Lab) -> None:
    [promised] = json.loads(run("runs", "--json").out)
    earlier = {boot.seed for boot in run.boots()}
    orders = run.on_boot([])
    run("confirm", "latest", "slow")
    assert len(orders) == 6 and not earlier & {order.seed for order in orders}
    repeated = run.on_boot([])
    assert run("confirm", promised["id"], "slow").status == 0
    assert repeated == []


def test_json_has_the_effects_of_both_runs(run: Lab) -> None:
    document = json.loads(run("confirm", "latest", "slow", "--json").out)
    [effect] = [effect for effect in document["effects"] if effect["benchmark"] == BENCHMARK]
    assert effect["promised"] == effect["found"] == pytest.approx(0.04, abs=0.01)
    assert document["mean"]["promised_verdict"] == document["mean"]["verdict"] == "equivalent"
    assert document["run"] != document["confirmation"] and document["layouts"] == 0


def test_an_effect_that_is_not_there_again_is_not_confirmed(lab: Lab) -> None:
    lab.recording.add("slow", slower(BENCHMARK, 40))
    assert lab("run", lab.experiment("slow")).status == 0
    lab.recording.change("slow", slower(BENCHMARK, -28))
    result = lab("confirm", "latest", "slow")
    assert result.status == 2 and ": not confirmed: " in result.out


def test_a_mean_over_other_benchmarks_is_not_set_beside_the_promised_one(
    run: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fewer(*words: object, **more: object) -> RunReport:
        report = assemble(*words, **more)  # type: ignore[arg-type]
        if not report.run.name.endswith(SUFFIX):
            return report
        return report.model_copy(update={"comparisons": report.comparisons[:3]})

    monkeypatch.setattr(confirm_module, "assemble", fewer)
    result = run("confirm", "latest", "slow")
    assert "on other benchmarks than those of the run" in result.out.splitlines()[0]
    assert result.status == 2, "equivalent is no gain"


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["latest", "baseline"], "baseline is the baseline of run", "slow"),
        (["latest", "fast"], "has no variant fast", "its variants: slow"),
        (["nosuchrun", "slow"], "nosuchrun", "kdyno runs"),
        (["latest", "slow", "--blocks", "1"], "--blocks", ""),
        (["latest", "slow", "-t", "lat_nothing"], "lat_nothing", ""),
    ],
)
def test_what_can_not_be_confirmed_is_refused_with_the_way_out(
    run: Lab, words: list[str], message: str, hint: str
) -> None:
    result = run("confirm", *words)
    assert result.status == 1
    assert message in result.err and hint in result.err
