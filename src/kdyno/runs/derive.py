"""Plans of the inputs that are made of boots. runs/train.py makes the inputs.

The key of a build with such an input contains the digest of the derivation. The derivation contains the key of the
booted image, which may itself have such an input. The exporters, and what they import, are loaded only if an input is
planned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdyno.base.frozen import digest
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import Description, MachineBackend
from kdyno.boot.registry import OpenMachine, default_machine
from kdyno.kernel.arch import ARCHES
from kdyno.kernel.boot_tests import disable_boot_tests
from kdyno.kernel.inputs import Input, kept_at
from kdyno.kernel.plan import BuildPlan, plan_build
from kdyno.kernel.recipe import Training
from kdyno.kernel.source import KernelSource
from kdyno.measure.guest.job import Counters
from kdyno.measure.guest.pmu import Events
from kdyno.measure.workload.needs import Load, Runner
from kdyno.runs.keys import boot_key
from kdyno.runs.single_boots import training_job, training_machine
from kdyno.store.derivation import Derivation
from kdyno.store.store import Store

if TYPE_CHECKING:
    from kdyno.measure.cycles.family import Family


BootKind = tuple[Events | None, Runner]


@dataclass(frozen=True)
class PlannedTraining:
    """The plan of an input that is made of boots."""

    training: Training
    derivation: Derivation
    plan: BuildPlan
    """The plan of the image that is booted."""
    input: Input
    side_by_side: int
    """The most of its boots that run at a time."""


class TrainingPlanner:
    """Plans the inputs that recipes derive from boots, and the inputs of the images that are booted for them."""

    def __init__(
        self, source_of: Callable[[str], KernelSource], state: State, talk: Talk, open_it: OpenMachine
    ) -> None:
        self.source_of, self.open_it = source_of, open_it
        self.state = state
        self.talk = talk
        self.planned: dict[str, PlannedTraining] = {}
        """The planned inputs by digest; an input comes after those that it needs."""
        self._machines: dict[str, tuple[MachineBackend, Description]] = {}

    def trained(self, name: str, training: Training, exporter: str) -> Input:
        """Plan the input `name` of a recipe; knobs call this. Raises what plan_build and the machine raise."""
        recipe = training.recipe
        assert recipe.source and recipe.config, "load_experiment names them"
        from kdyno.measure.cycles.family import load_family
        from kdyno.runs.exporters import EXPORTERS

        counts, heeded = EXPORTERS[exporter].counts, EXPORTERS[exporter].settings
        EXPORTERS[exporter].check(training.settings)
        families = {name: load_family(name) for name in training.settings.families}
        machine, about = self._machine_for(counts, training.load)
        source = self.source_of(recipe.source)
        arch = ARCHES[default_machine(training.load.runner).arch]
        base = arch.base_for(recipe.config)
        plan = plan_build(recipe, source, base, self.state, cpu=machine.cpu, trained=self.trained, arch=arch)
        machine.require_cpu(plan.needs, f"{training.variant}, which is booted for {name},")
        job = training_job(about, training, counts)
        derivation = Derivation(
            exporter=exporter,
            version=EXPORTERS[exporter].version,
            image=plan.key,
            settings=training.settings.model_dump(mode="json", include=set(heeded)),
            families=_contents(families) if "families" in heeded else {},
            boots=tuple(
                boot_key(plan.key, training_words(training, plan), job, about, seed=seed, replicate={})
                for seed in training.seeds
            ),
        )
        key = derivation.digest
        result = Input(name=name, digest=key, path=kept_at(key, self.state))
        self.planned.setdefault(key, PlannedTraining(training, derivation, plan, result, about.parallel))
        return result

    def _machine_for(self, counts: Events | Counters, load: Load) -> tuple[MachineBackend, Description]:
        """Return the machine, which is described once for all trainings with the same needs."""
        needs = repr((counts, load.needs, load.runner, bool(load.programs)))
        if needs not in self._machines:
            machine = training_machine(counts, load, self.state, self.talk, self.open_it)
            self._machines[needs] = machine, machine.describe()
        return self._machines[needs]

    def ahead(self, plans: Iterable[BuildPlan]) -> tuple[PlannedTraining, ...]:
        """Return the missing inputs of these plans, in the order in which they can be made."""
        missing_digests = {file.digest for plan in plans if not plan.cached for file in plan.inputs}
        ahead = []
        for key, planned in reversed(self.planned.items()):
            if key in missing_digests and not planned.input.path.exists():
                ahead.append(planned)
                if not planned.plan.cached:
                    missing_digests |= {file.digest for file in planned.plan.inputs}
        return tuple(reversed(ahead))


def training_words(training: Training, plan: BuildPlan) -> tuple[str, ...]:
    """Return the kernel command line of the boots for training: a kernel's tests of itself are not what it is for."""
    return disable_boot_tests(training.recipe.words, plan.asked)


def boots_left(trainings: Sequence[PlannedTraining], store: Store) -> Mapping[BootKind, int]:
    """Return the number of boots for training not on record, by the events of the PMU (None: without PMU), and by what
    carries the loads out.
    """
    number_by_kind: Counter[BootKind] = Counter()
    for planned in trainings:
        number_by_kind[boot_kind(planned)] += boots_to_do(planned, store)
    return number_by_kind


def boot_kind(planned: PlannedTraining) -> BootKind:
    """Return what the time of this training's boots depends on."""
    from kdyno.runs.exporters import EXPORTERS

    counts = EXPORTERS[planned.derivation.exporter].counts
    return (counts if isinstance(counts, str) else None, planned.training.load.runner)


def boots_to_do(planned: PlannedTraining, store: Store) -> int:
    """Return the number of boots for one input that are not on record."""
    keys = planned.derivation.boots
    ends = store.ends(keys)
    return sum(key not in ends or ends[key].status != "ok" for key in set(keys))


def _contents(families: Mapping[str, Family]) -> dict[str, str]:
    """Return the digests of what families say of hardware and weights."""
    return {name: digest(family.drop_gains()) for name, family in families.items()}
