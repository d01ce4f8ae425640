"""Kernel code: which benchmarks are fitted to, a fit whose answer is known, and what a family says of its error."""

from __future__ import annotations

from collections import Counter
from itertools import cycle
from pathlib import Path

import pytest

from kdyno.measure.cycles.calibrate import format_toml
from kdyno.measure.cycles.events import UNSEEN
from kdyno.measure.cycles.family import BadFamily, load_family, read_family
from kdyno.measure.cycles.gains import SiliconGain
from kdyno.measure.cycles.kernel_fit import SOUGHT, apply_kernel_weights, calibrate_kernel
from kdyno.measure.cycles.kernel_measured import (
    KernelMeasurement,
    Mitigation,
    NoMeasurement,
    OtherGeometry,
    Validation,
    geometry_digest,
    read_measurement,
)
from kdyno.measure.cycles.kernel_roles import KINDS, ROLES, UNLIKE, find_role
from kdyno.measure.guest.agent import catalogue
from tests.unit.cycles_specimen import family
from tests.unit.kernel_specimen import measured


def test_every_other_benchmark_is_held_out_in_the_order_of_the_table() -> None:
    roles = [role for of_kind in ROLES.values() for role in of_kind.values()]
    assert roles == ["fit", "held-out"] * (len(roles) // 2)
    for of_kind in ROLES.values():
        assert list(of_kind) == sorted(of_kind)
        assert Counter(of_kind.values()).keys() == {"fit", "held-out"}
    assert find_role("lat_syscall.null") == "held-out" and KINDS["lat_syscall.null"] == "syscalls"


def test_every_benchmark_of_the_agent_is_in_the_table_or_is_left_out_with_a_reason() -> None:
    names = {benchmark.name for test in catalogue().tests for benchmark in test.benchmarks if test.suite == "lmbench"}
    assert names == KINDS.keys() | UNLIKE.keys()
    assert not KINDS.keys() & UNLIKE.keys()


def test_a_fit_predicts_the_benchmarks_that_were_held_out_of_it() -> None:
    """Not each weight is found: 16 benchmarks are few for so many. Which are traded for which depends on rounding."""
    weights = family().weights
    sought = [name for name in SOUGHT if name in weights]
    true = {
        **weights,
        **{name: weights[name] * factor for name, factor in zip(sought, cycle((3, 2, 0.5)), strict=False)},
    }
    calibration = calibrate_kernel(measured(true), family())
    assert set(calibration.fitted) == {*sought, "user_instructions"}
    assert calibration.before.median_error > 0.3
    assert calibration.held_out.median_error < 0.1


def test_a_fit_changes_no_weight_that_programs_show() -> None:
    calibration = calibrate_kernel(measured(noise=0.3), family())
    for name, weight in family().model.weights.items():
        assert calibration.weights[name] == weight or name in SOUGHT


def test_what_was_held_out_does_not_change_the_weights() -> None:
    plain = measured(noise=0.3)
    rows = [
        row.model_copy(update={"passes": tuple(3 * cycles for cycles in row.passes)}) if row.role == "held-out" else row
        for row in plain.benchmarks
    ]
    other = plain.model_copy(update={"benchmarks": tuple(rows)})
    assert calibrate_kernel(other, family()).weights == calibrate_kernel(plain, family()).weights


def test_an_event_that_no_benchmark_shows_keeps_its_weight() -> None:
    plain = measured(noise=0.3)
    column = plain.events.index(UNSEEN[0])
    rows = [
        row.model_copy(update={"counts": (*row.counts[:column], 0.0, *row.counts[column + 1 :])})
        for row in plain.benchmarks
    ]
    calibration = calibrate_kernel(plain.model_copy(update={"benchmarks": tuple(rows)}), family())
    assert UNSEEN[0] not in calibration.fitted
    assert calibration.weights[UNSEEN[0]] == family().weights[UNSEEN[0]]


def test_a_family_says_its_error_on_kernel_code(tmp_path: Path) -> None:
    made = apply_kernel_weights(calibrate_kernel(measured(noise=0.1), family()), "mine", "2026-01-02")
    path = tmp_path / "mine.toml"
    path.write_text(format_toml(made), encoding="utf-8")
    read = read_family(path)
    assert read.model == made.model and format_toml(read) == format_toml(made)
    assert read.model.kernel_source == "Linux 6.12.117 for 6.18.44-host, A CPU" and read.model.basis == "default"
    update = {"kernel_benchmarks": 16, "kernel_spearman": 0.967, "kernel_median_error": 0.12}
    caption = read.model_copy(update={"model": read.model.model_copy(update=update)}).caption()
    assert caption == (
        "modelled, mine-2: default weights, not calibrated; "
        "of kernel code median error 12 % on 16 benchmarks, Spearman 0.97"
    )
    calibrated = load_family("znver4")
    both = calibrated.model_copy(update={"model": calibrated.model.model_copy(update=update)}).caption()
    assert both.startswith(calibrated.caption()) and both.endswith("on 16 benchmarks, Spearman 0.97")


def test_gains_that_were_compared_with_other_weights_are_left_out() -> None:
    gain = SiliconGain(recipe="x", cpu="y", paths=1, silicon=1.1, model=1.2, wrong_signs=0, clear=1)
    old = family()
    old = old.model_copy(update={"model": old.model.model_copy(update={"silicon": (gain,)})})
    assert apply_kernel_weights(calibrate_kernel(measured(), old), "mine", None).model.silicon == ()


def test_an_error_on_kernel_code_is_whole(tmp_path: Path) -> None:
    made = apply_kernel_weights(calibrate_kernel(measured(), family()), "mine", None)
    path = tmp_path / "mine.toml"
    path.write_text("\n".join(line for line in format_toml(made).splitlines() if "kernel_spearman" not in line))
    with pytest.raises(BadFamily, match="needs kernel_benchmarks, _spearman and _median_error"):
        read_family(path)


def test_a_measurement_is_read_as_it_was_written(tmp_path: Path) -> None:
    validation = Validation.from_measurement(measured(noise=0.1), family())
    path = tmp_path / "validation.json"
    path.write_text(validation.model_dump_json())
    assert read_measurement(path) == validation.measured
    validation.measured.require_geometry(family(), path)
    with pytest.raises(OtherGeometry, match="another emulated CPU than the one that znver4 describes"):
        validation.measured.require_geometry(load_family("znver4"), path)


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "the file: it is no JSON"), ("{}", "model: it is missing"), ('{"v": 2}', "model: it is missing")],
)
def test_what_is_no_measurement_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "validation.json"
    path.write_text(text)
    with pytest.raises(NoMeasurement, match=why):
        read_measurement(path)
    with pytest.raises(NoMeasurement, match="No such file"):
        read_measurement(tmp_path / "nothing")


def test_counts_that_lack_an_event_are_refused() -> None:
    whole = measured().model_dump()
    whole["events"] = whole["events"][1:]
    with pytest.raises(ValueError, match="counts of"):
        KernelMeasurement.model_validate(whole)


def test_weights_are_no_geometry() -> None:
    other = family().model_copy(update={"name": "mine"})
    assert (
        geometry_digest(other) == geometry_digest(family()) != geometry_digest(family().model_copy(update={"width": 1}))
    )


@pytest.mark.parametrize(
    ("host", "guest", "matched"),
    [
        ("Not affected", "Vulnerable; SMT Host state unknown", True),
        ("Mitigation: Retpolines; STIBP: disabled; RSB filling", "Mitigation: Retpolines; BHI: Retpoline", True),
        ("Mitigation: PTI", "Vulnerable", False),
        ("Mitigation: Enhanced / Automatic IBRS", "Mitigation: Retpolines", False),
    ],
)
def test_two_kernels_match_if_they_do_the_same(host: str, guest: str, matched: bool) -> None:
    assert Mitigation(name="x", host=host, guest=guest).is_matched == matched
