"""Trials of kernels: which recipes are built, what fails and whose fault that is. Builds and boots are stand-ins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kdyno.kernel.delegation.plan_file import DelegationPlan
from kdyno.kernel.image import Image
from kdyno.kernel.make import BuildFailed
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.vmlinux.sources import CompilationUnit, Sources
from kdyno.measure.cycles.family import load_family
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.runs.experiment.tune import CompilerChoice
from kdyno.runs.single_boots import BootForFileFailed, BootForFileLost, PmuRun
from kdyno.tune.delegation import kernels as kernels_module
from kdyno.tune.delegation.kernels import AssignmentKernels, Replicate
from kdyno.tune.delegation.timing import BootsOfTrialLost, KernelNotTimed
from tests.unit.explain_specimen import SPACING, TEXT, Kernel

CHOICES = {"clang": CompilerChoice(compiler="clang-19"), "O3": CompilerChoice(compiler="gcc", add=("-O3",))}
REPLICATES = [Replicate(layout_seed=7, seed=70), Replicate(layout_seed=8, seed=80)]
BENCHMARK = "lat_pipe.roundtrip"


class Bench:
    """What stands in for compilers and QEMU: one function, of kernel/pipe.c, dearer or cheaper by its choice."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.recipes: list[Recipe] = []
        self.boots: list[tuple[str, int]] = []
        self.boot_error: BootForFileFailed | None = None
        self.build_error: BuildFailed | None = None
        self.benchmark = BENCHMARK
        monkeypatch.setattr(kernels_module, "read_pmu_record", self.record)
        monkeypatch.setattr(
            kernels_module, "read_sources", lambda _: Sources([CompilationUnit("fs/pipe.c", ((TEXT, TEXT + SPACING),))])
        )

    def build(self, recipes: Sequence[Recipe]) -> list[Image]:
        if self.build_error:
            raise self.build_error
        self.recipes += recipes
        plans = [recipe.delegation for recipe in recipes]
        names = ["tried" if isinstance(plan, DelegationPlan) and plan.rule else "reference" for plan in plans]
        return [Image.model_construct(directory=Path(name), record=None) for name in names]  # type: ignore[arg-type]

    def boot(self, image: Image, seed: int) -> PmuRun:
        if self.boot_error:
            raise self.boot_error
        self.boots.append((image.directory.name, seed))
        return PmuRun(image.directory, (self.benchmark,), {self.benchmark: [250] * 4})

    def record(self, path: Path) -> PmuRecord:
        return Kernel().function("pipe_read", 50 if path.name == "tried" else 100).record()


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


@pytest.fixture
def kernels(bench: Bench) -> AssignmentKernels:
    return AssignmentKernels(Recipe(), CHOICES, REPLICATES, load_family("znver4"), bench.build, bench.boot)


def test_each_replicate_is_built_in_its_link_order_and_booted_with_its_seed(
    bench: Bench, kernels: AssignmentKernels
) -> None:
    reference = kernels.measure({})
    assert reference is not None and reference.total.tolist() == pytest.approx([1.0, 1.0])
    assert [recipe.layout_seed for recipe in bench.recipes] == [7, 8]
    assert all(recipe.lines for recipe in bench.recipes)
    assert bench.boots == [("reference", 70), ("reference", 80)]
    trial = kernels.measure({"fs/pipe.c": "clang"})
    assert trial is not None and trial.total.tolist() == pytest.approx([0.5, 0.5])
    assert trial.cost_of("fs/pipe.c").tolist() == pytest.approx([0.5, 0.5])


def test_the_reference_is_configured_for_all_compilers_so_that_trials_differ_in_their_rules_alone(
    kernels: AssignmentKernels,
) -> None:
    reference, tried = (kernels.recipe_of(files, REPLICATES[0]) for files in ({}, {"fs/pipe.c": "O3"}))
    assert reference.delegation is not None and tried.delegation is not None
    assert not isinstance(reference.delegation, str) and not isinstance(tried.delegation, str)
    assert reference.delegation.compilers == tried.delegation.compilers == ("clang-19", "gcc")
    assert reference.delegation.rule == ()
    [rule] = tried.delegation.rule
    assert (rule.files, rule.compiler, rule.add) == (("fs/pipe.c",), "gcc", ("-O3",))


def test_a_kernel_that_is_not_built_or_panics_is_no_trial_and_the_reason_is_kept(
    bench: Bench, kernels: AssignmentKernels
) -> None:
    kernels.measure({})
    bench.boot_error = BootForFileFailed(name="image abc", image="abc", reason="kernel panic", console="/c")
    assert kernels.measure({"fs/pipe.c": "clang"}) is None
    bench.build_error = BuildFailed(what="linux", error="fs/pipe.c:1: error: no", log="/l")
    assert kernels.measure({"fs/pipe.c": "O3"}) is None
    panicked, broken = kernels.failures
    assert panicked[0] == {"fs/pipe.c": "clang"} and "kernel panic" in panicked[1]
    assert "fs/pipe.c:1: error: no" in broken[1]


def test_a_kernel_that_leaves_a_benchmark_out_is_no_trial(bench: Bench, kernels: AssignmentKernels) -> None:
    kernels.measure({})
    bench.benchmark = "lat_ctx.ctx"
    assert kernels.measure({"fs/pipe.c": "clang"}) is None
    assert BENCHMARK in kernels.failures[0][1]


def test_where_kernels_are_timed_one_link_order_is_counted_and_its_cycles_divide_the_times(
    bench: Bench, kernels: AssignmentKernels
) -> None:
    timed: list[tuple[Recipe, Recipe]] = []

    def time(reference: Recipe, trial: Recipe) -> list[dict[str, float]]:
        timed.append((reference, trial))
        return [{BENCHMARK: 0.8}, {BENCHMARK: 0.9}]

    kernels.time = time
    reference = kernels.measure({})
    assert reference is not None and reference.total.tolist() == [1.0, 1.0] and timed == []
    trial = kernels.measure({"fs/pipe.c": "clang"})
    assert trial is not None and trial.total.tolist() == pytest.approx([0.8, 0.9])
    assert trial.cost_of("fs/pipe.c").tolist() == pytest.approx([0.8, 0.9])
    assert bench.boots == [("reference", 70), ("tried", 70)]
    [(recipe, other)] = timed
    assert recipe == kernels.recipe_of({}, REPLICATES[0]) and other.delegation != recipe.delegation


def test_a_kernel_that_runs_in_the_emulator_and_not_on_the_processor_is_no_trial(kernels: AssignmentKernels) -> None:
    def time(*_: Recipe) -> list[dict[str, float]]:
        raise KernelNotTimed(name="trial", reason="it dies of SIGILL", run="abc")

    kernels.time = time
    kernels.measure({})
    assert kernels.measure({"fs/pipe.c": "clang"}) is None
    assert "SIGILL" in kernels.failures[0][1]


def test_boots_that_the_host_lost_end_the_search_which_may_be_continued(kernels: AssignmentKernels) -> None:
    def time(*_: Recipe) -> list[dict[str, float]]:
        raise BootsOfTrialLost(name="trial", reason="no memory", run="abc")

    kernels.time = time
    kernels.measure({})
    with pytest.raises(BootsOfTrialLost, match="no memory"):
        kernels.measure({"fs/pipe.c": "clang"})


def test_what_is_not_the_kernels_fault_and_what_is_wrong_with_the_reference_is_raised(
    bench: Bench, kernels: AssignmentKernels
) -> None:
    bench.boot_error = BootForFileFailed(name="image abc", image="abc", reason="kernel panic", console="/c")
    with pytest.raises(BootForFileFailed):
        kernels.measure({})
    bench.boot_error = None
    kernels.measure({})
    bench.boot_error = BootForFileLost(name="image abc", image="abc", reason="QEMU was killed", console="/c")
    with pytest.raises(BootForFileFailed, match="lost"):
        kernels.measure({"fs/pipe.c": "clang"})
