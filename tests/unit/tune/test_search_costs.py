"""Costs from PMU records: every benchmark weighs alike, and what files did adds up."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kdyno.kernel.vmlinux.sources import CompilationUnit, Sources
from kdyno.measure.cycles.family import load_family
from kdyno.tune.delegation.costs import BootCost, NoCostMeasured, boot_costs, reference_cycles, trial_of
from tests.unit.explain_specimen import SPACING, TEXT, Kernel

FAMILY = load_family("znver4")
CYCLES = FAMILY.weights["slots"]


def sources(*files: str) -> Sources:
    """The function number n of a specimen is the n-th file's code; of "" nobody's."""
    units = [
        CompilationUnit(file, ((TEXT + number * SPACING, TEXT + (number + 1) * SPACING),))
        for number, file in enumerate(files)
        if file
    ]
    return Sources(units)


def boot(cycles: float, **by_file: float) -> Mapping[str, BootCost]:
    return {"pipe": BootCost(cycles, by_file)}


def test_a_boot_costs_what_its_functions_did_per_unit_of_work_by_the_file_that_they_are_of() -> None:
    kernel = Kernel(work=1000)
    for name, instructions in (("read", 100.0), ("copy", 40.0), ("write", 60.0)):
        kernel.function(name, instructions)
    of = sources("fs/read_write.c", "", "fs/read_write.c")
    costs = boot_costs(kernel.record(), ["pipe"], {"pipe": [250, 250, 250, 250]}, of, FAMILY)
    assert costs["pipe"].by_file == pytest.approx({"fs/read_write.c": 160 * CYCLES})
    assert costs["pipe"].cycles == pytest.approx(200 * CYCLES)


def test_a_region_whose_work_is_not_known_costs_nothing_that_can_be_told() -> None:
    record = Kernel().function("read", 100.0).record()
    assert boot_costs(record, ["pipe"], {"other": [10]}, sources("a.c"), FAMILY) == {}


def test_every_benchmark_weighs_alike_and_the_reference_costs_one() -> None:
    boots = [
        {"null": BootCost(100.0, {"a.c": 50.0}), "fork": BootCost(1e6, {"a.c": 1e5, "b.c": 4e5})},
        {"null": BootCost(300.0, {"a.c": 150.0}), "fork": BootCost(1e6, {"a.c": 1e5, "b.c": 4e5})},
    ]
    reference = reference_cycles(boots)
    assert reference == {"null": 200.0, "fork": 1e6}
    trial = trial_of(boots, reference)
    assert trial is not None
    assert trial.total.tolist() == pytest.approx([0.75, 1.25])
    assert trial.by_file["a.c"].tolist() == pytest.approx([0.175, 0.425])
    assert trial.by_file["b.c"].tolist() == pytest.approx([0.2, 0.2])
    assert trial.cost_of("never.c").tolist() == [0.0, 0.0]


def test_a_kernel_that_left_a_benchmark_out_in_one_boot_is_no_trial() -> None:
    assert trial_of([boot(10.0), {}], {"pipe": 10.0}) is None


def test_a_reference_without_cycles_is_refused() -> None:
    with pytest.raises(NoCostMeasured, match="no modelled cycles"):
        reference_cycles([boot(0.0)])
