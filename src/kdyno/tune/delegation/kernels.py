"""Trials of real kernels: an assignment is built in several link orders, each booted under the emulated PMU. Where the
machine tells time, only the first one is, and all are timed beside the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kdyno.kernel.image import Image
from kdyno.kernel.make import BuildFailed
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.vmlinux.sources import read_sources
from kdyno.measure.cycles.family import Family
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.runs.experiment.tune import CompilerChoice
from kdyno.runs.single_boots import BootForFileFailed, BootForFileLost, PmuRun
from kdyno.tune.delegation.costs import BootCost, boot_costs, reference_cycles, timed_trial, trial_of
from kdyno.tune.delegation.delegation import plan_of
from kdyno.tune.delegation.timing import BootsOfTrialLost, KernelNotTimed
from kdyno.tune.delegation.trial import Assignment, CostTrial, Ratios

Build = Callable[[Sequence[Recipe]], list[Image]]
"""Builds the images that don't exist. Raises BuildFailed."""
Boot = Callable[[Image, int], PmuRun]
"""Boots an image with a seed, unless that is on record. Raises BootForFileFailed."""
Time = Callable[[Recipe, Recipe], Ratios]
"""Times the second kernel beside the first. Raises KernelNotTimed."""


@dataclass(frozen=True)
class Replicate:
    """The link order and the seed of one replicate in every trial."""

    layout_seed: int
    seed: int


@dataclass
class AssignmentKernels:
    """Measures assignments. The first one must be empty: all costs are parts of the reference's cost."""

    recipe: Recipe
    """The recipe of the reference."""
    choices: Mapping[str, CompilerChoice]
    replicates: Sequence[Replicate]
    family: Family
    build: Build
    boot: Boot
    time: Time | None = None
    """None: modelled cycles are the cost."""
    reference: dict[str, float] = field(default_factory=dict)
    """Modelled cycles of the reference per unit of work, by benchmark."""
    failures: list[tuple[Assignment, str]] = field(default_factory=list)
    """The kernels that couldn't be built or didn't run, with their reasons."""

    def measure(self, assignment: Assignment) -> CostTrial | None:
        """Return the cost of the kernel; None, with the reason in `failures`, if it can't be built or doesn't run.

        Errors of the reference, and those that the kernel didn't cause, are raised.
        """
        try:
            images = self.build([self.recipe_of(assignment, replicate) for replicate in self.replicates])
            counted = images[:1] if self.time else images
            boots = [self._costs(image, at.seed) for image, at in zip(counted, self.replicates, strict=False)]
            if not assignment:
                self.reference = reference_cycles(boots)
            trial = self._timed(assignment, boots[0]) if self.time else trial_of(boots, self.reference)
        except (BuildFailed, BootForFileFailed, KernelNotTimed) as error:
            if not assignment or isinstance(error, (BootForFileLost, BootsOfTrialLost)):
                raise
            self.failures.append((assignment, str(error)))
            return None
        if trial is None:
            missing = sorted(name for name in self.reference if any(name not in boot for boot in boots))
            self.failures.append((assignment, f"it left no cycles of {', '.join(missing)}"))
        return trial

    def _timed(self, assignment: Assignment, costs: Mapping[str, BootCost]) -> CostTrial | None:
        assert self.time
        at = self.replicates[0]
        if not assignment:  # It is timed beside each trial.
            ratios: Ratios = [dict.fromkeys(self.reference, 1.0) for _ in self.replicates]
        else:
            ratios = self.time(self.recipe_of({}, at), self.recipe_of(assignment, at))
        return timed_trial(costs, ratios, tuple(self.reference))

    def recipe_of(self, assignment: Assignment, replicate: Replicate) -> Recipe:
        """Return the recipe of an assignment, with the line tables that give the file of a function.

        The configuration suits all choices.
        """
        compilers = sorted({choice.compiler for choice in self.choices.values()})
        plan = plan_of(assignment, self.choices, compilers)
        update = {"delegation": plan, "layout_seed": replicate.layout_seed, "lines": True}
        return self.recipe.model_copy(update=update)

    def _costs(self, image: Image, seed: int) -> dict[str, BootCost]:
        run = self.boot(image, seed)
        record = read_pmu_record(run.record)
        return boot_costs(record, run.benchmarks, run.work, read_sources(image.vmlinux), self.family)
