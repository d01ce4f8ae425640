"""The models of an experiment file as written, and of the experiment with its variants expanded."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator, model_validator
from pydantic_core import PydanticCustomError

from kdyno.base.frozen import Frozen
from kdyno.base.measurement import Correction
from kdyno.boot.base import MachineSettings
from kdyno.boot.registry import MachineConfig, default_machine, kind_named, settings_type
from kdyno.kernel.recipe import Recipe, RecipeSpec
from kdyno.measure.workload.registry import WorkloadConfig, default_workload
from kdyno.runs.experiment.space import SearchConfig, SpaceConfig
from kdyno.runs.experiment.tune import TuneConfig

MOST_LOOKS = 8
"""The most looks of a run: more would leave almost no error rate for each."""

MOST_VARIANTS = 1000
MOST_BOOTS = 100_000
"""The most boots of a run: two days of the fastest boots."""
MOST_ENTRIES = 5000
"""The most entries of a list or a table of a variant, inherited ones included."""
MOST_RECORDED_BYTES = 10_000_000
"""The largest experiment as JSON, with its variants expanded."""
MOST_NAME = 500
"""The most characters of a variant's name, with the values of a matrix in it."""

MOST_SHORT_NAME = 80
"""The most characters of the name of an experiment, and of a variant as written."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=MOST_SHORT_NAME)]
VariantName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=MOST_NAME)]
MatrixValue = str | int | bool
BlockCount = Annotated[int, Field(ge=1, le=10_000)]


def _count_or_auto(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Check the value, with one message instead of one for each of the two types."""
    try:
        return validate(value)
    except ValidationError:
        raise PydanticCustomError("blocks", 'a whole number from 1 to 10000 is expected, or "auto"') from None


BlocksOrAuto = Annotated[BlockCount | Literal["auto"], WrapValidator(_count_or_auto)]


class VariantSpec(RecipeSpec):
    """A variant as written: a recipe, which may extend another variant, and may represent several."""

    extends: Name | None = None
    """Another variant to start from, or a recipe that kdyno has (`tuned`): single values replace, tables merge, lists
    append."""
    matrix: dict[str, Annotated[tuple[MatrixValue, ...], Field(min_length=1)]] = {}
    """Knobs and the values that each takes; every combination becomes a variant NAME-value-value."""


class JudgeConfig(Frozen):
    """The settings of the judge: the margin of equivalence, and the error rate of verdicts."""

    margin: Annotated[float, Field(gt=0, lt=1)] = 0.01
    """Effects within ± this fraction are equivalent."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Error rate over all comparisons of a run: family-wise after Holm, false discoveries after Benjamini-Hochberg."""
    correction: Correction = "holm"
    """The adjustment of p-values for the number of comparisons: `holm` or `bh`."""
    looks: Annotated[int, Field(ge=1, le=MOST_LOOKS)] = 1
    """The number of times that the run is judged, at equal distances; it ends at the first look that leaves nothing
    undecided. `alpha` is spent over the looks (Lan and DeMets), so that it holds for all of them. 1: only at the end.
    """
    effect: Annotated[float, Field(gt=0, lt=1)] | None = None
    """blocks = "auto": the smallest effect, as a fraction, that the run must be able to see; the margin if left out."""
    power: Annotated[float, Field(gt=0.5, lt=1)] = 0.9
    """blocks = "auto": the probability that the run sees an effect of that size."""
    most_blocks: Annotated[int, Field(ge=4, le=10_000)] = 96
    """blocks = "auto": the most blocks of a plan."""


class _Common(Frozen):
    name: Name
    source: str = ""
    """`debian:linux-source-6.12`, a directory, a tarball, or `git:DIR#REV`; a variant may name another. Left out only
    where the machine starts no kernels."""
    config: str = "dyno"
    """Base configuration: `dyno`, `file:PATH`, `running`, `make:TARGET`, `make:localmodconfig?lsmod=PATH&config=PATH`;
    a variant may name another."""
    baseline: Name
    """The variant that the others are compared with."""
    workload: WorkloadConfig = default_workload()
    machine: MachineConfig = default_machine()
    layouts: Annotated[int, Field(ge=0, le=1000)] = 0
    """Link orders in which every variant is built; blocks take them in turn. 0: layout isn't sampled. With blocks =
    "auto" the most that may be built."""
    seed: Annotated[int, Field(ge=0)] = 1
    """Decides the order of boots and the seed of every block."""
    seeds: Literal["shared", "own"] = "shared"
    """`shared`: one seed for all boots of a block, so that they meet the same randomness; `own`: one for each boot."""
    judge: JudgeConfig = JudgeConfig()
    confirm: Literal["silicon"] | None = None
    """`silicon`: after the verdicts the same recipes are timed on this host's processor, as kernels that are processes;
    both judgements are shown side by side."""


class ExperimentFile(_Common):
    """An experiment file, as written."""

    blocks: BlocksOrAuto = 12
    """Boots of every variant; `auto`: a pilot of a few blocks finds out how many are needed."""
    variants: Annotated[dict[Name, VariantSpec], Field(min_length=1, max_length=MOST_VARIANTS)]
    tune: TuneConfig | None = None
    """The search space of `kdyno tune delegation`; a run ignores it."""
    space: SpaceConfig | None = None
    """The recipes that `kdyno tune` searches; a run ignores it."""
    search: SearchConfig = SearchConfig()
    """The effort of that search."""

    @model_validator(mode="before")
    @classmethod
    def _fit_workloads(cls, written: Any) -> Any:
        """Give workloads without a type the one that the machine carries out."""
        if not isinstance(written, dict):
            return written
        machine, tune = written.get("machine"), written.get("tune")
        runner = settings_type(kind_named(machine if isinstance(machine, dict) else {})).runner
        kind = default_workload(runner).type
        fitted = {**written, **_typed(written, "workload", kind)}
        return {**fitted, "tune": {**tune, **_typed(tune, "held_out", kind)}} if isinstance(tune, dict) else fitted


def _typed(table: dict[str, Any], key: str, kind: str) -> dict[str, Any]:
    """Return the workload that a table has under a key, with this type unless it has one; empty without it."""
    workload = table.get(key)
    return {key: {"type": kind, **workload}} if isinstance(workload, dict) else {}


class Experiment(_Common):
    """An experiment with its variants expanded and its paths absolute."""

    blocks: BlockCount = 12
    auto: bool = False
    """The number of blocks, and of iterations in a boot, is still to be found out by a pilot."""
    pilot: str = ""
    """The decision of a pilot and its reason, for the report."""
    left_out: dict[VariantName, str] = {}
    """Variants of the confirmed experiment that can't be had on this processor, with the reasons, for the report."""
    variants: Annotated[dict[VariantName, Recipe], Field(min_length=1, max_length=MOST_VARIANTS)]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        """Check the baseline and the number of boots again: a recorded experiment may have been changed since."""
        if self.baseline not in self.variants:
            raise PydanticCustomError("baseline", "the baseline {name} is not a variant", {"name": self.baseline})
        if problem := too_many_boots(len(self.variants), self.judge.most_blocks if self.auto else self.blocks):
            raise PydanticCustomError("boots", "{why}", {"why": problem})
        if self.confirm and (problem := confirmation_problem(self.machine)):
            raise PydanticCustomError("confirm", "{why}", {"why": problem})
        return self


def confirmation_problem(machine: MachineSettings) -> str:
    """Return why the gains on a machine can't be confirmed on this processor; empty if they can."""
    if machine.runner == "kernel":
        return f'the machine `{machine.type}` is this processor already: `confirm = "silicon"` adds nothing'
    if not machine.starts_kernels:
        return f"a machine of type `{machine.type}` builds no kernels that could be confirmed"
    return ""


def too_many_boots(variants: int, blocks: int) -> str:
    """Return why a run can't have so many boots; empty if it can."""
    boots = variants * blocks
    return (
        f"{variants:,} variants in {blocks:,} blocks are {boots:,} boots, of at most {MOST_BOOTS:,}"
        if boots > MOST_BOOTS
        else ""
    )
