"""What an experiment file may say, and what it means once variants have been expanded."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kdyno.frozen import Frozen
from kdyno.kernel.recipe import Recipe
from kdyno.machine.config import MachineConfig, QemuConfig

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=80)]
MatrixValue = str | int | bool


class VariantSpec(Recipe):
    """A variant as written: a recipe, perhaps on top of another, perhaps standing for several."""

    extends: Name | None = None
    """Another variant to start from: single values replace, tables merge, lists append."""
    matrix: dict[str, Annotated[tuple[MatrixValue, ...], Field(min_length=1)]] = {}
    """Knobs and the values that each takes; every combination becomes a variant NAME-value-value."""


class Workload(Frozen):
    """Which tests the agent runs, and how."""

    tests: tuple[str, ...] = ("lmbench",)
    """Names of tests; `lmbench` stands for all 19."""
    iterations: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Samples per benchmark and boot; left out: 7 in the model lane, 11 in the wall lane."""
    params: dict[str, dict[str, int]] = {}
    """By test: parameters that differ from the test's defaults; `kdyno-agent list` shows them."""


class JudgeConfig(Frozen):
    """What counts as equal, and how sure a verdict must be."""

    margin: Annotated[float, Field(gt=0, lt=1)] = 0.01
    """Effects within ± this fraction are equivalent."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Family-wise error rate over all comparisons of a run."""


class _Common(Frozen):
    name: Name
    source: str
    """`debian:linux-source-6.12`, a directory, a tarball, or `git:DIR#REV`."""
    config: str = "dyno"
    """Base configuration: `dyno`, `file:PATH`, `make:TARGET`, `make:localmodconfig?lsmod=PATH`."""
    baseline: Name
    """The variant that the others are compared with."""
    workload: Workload = Workload()
    machine: MachineConfig = QemuConfig()
    blocks: Annotated[int, Field(ge=1, le=10_000)] = 12
    """Boots of every variant."""
    seed: Annotated[int, Field(ge=0)] = 1
    """Decides the order of boots and the seed of every block."""
    judge: JudgeConfig = JudgeConfig()


class ExperimentFile(_Common):
    """An experiment file, as written."""

    variants: Annotated[dict[Name, VariantSpec], Field(min_length=1)]


class Experiment(_Common):
    """An experiment with its variants expanded and its paths absolute."""

    variants: dict[str, Recipe]
