"""What is bisected and how: its identity, its experiment, and the command that repeats it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from kdyno.base.frozen import digest
from kdyno.kernel.recipe import Recipe
from kdyno.runs.experiment.ab import PLAIN, Options, experiment_for
from kdyno.runs.experiment.models import Experiment
from kdyno.tune.bisect.packages import PackageRange
from kdyno.tune.bisect.ranges import CommitRange, KernelRange
from kdyno.tune.bisect.settings import SearchSettings


@dataclass(frozen=True)
class BisectOrder:
    """What is bisected, and how."""

    kernels: KernelRange
    options: Options
    """The options of the experiment, as `kdyno ab` has them."""
    recipe: str
    """The recipe of all kernels in short form; empty for the plain one."""
    benchmarks: tuple[str, ...]
    settings: SearchSettings
    better: bool = False

    @property
    def id(self) -> str:
        """The identity of the bisection: the same words continue it."""
        search = self.settings
        return digest(
            {
                "kind": self.kernels.kind,
                "named": self.kernels.named,
                "place": self._place,
                "options": [str(value) for value in vars(self.options).values()],
                "recipe": self.recipe,
                "benchmarks": self.benchmarks,
                "better": self.better,
                "search": [search.margin, search.layouts],
                "luck": "by link orders",
            }
        )[:12]

    @property
    def _place(self) -> str:
        """Where relative paths and revisions are looked up; empty if there are none."""
        match self.kernels:
            case CommitRange() as commits:
                return str(commits.repository)
            case PackageRange():
                return ""
        return str(Path.cwd())

    def experiment(self) -> Experiment:
        """Return the experiment of all trials, with the shared recipe as its only variant. Raises KdynoError."""
        options, recipe = self.options, self.recipe or PLAIN
        match self.kernels:
            case CommitRange() as commits:
                options = Options(**{**vars(options), "source": f"git:{commits.repository}#{commits.name(0)}"})
            case PackageRange() as packages:
                image = f"image={packages.recipe(Recipe(), 0).image}"
                recipe = f"{image},{self.recipe}" if self.recipe else image
        return experiment_for([recipe], options, Path.cwd())[1]

    @property
    def command(self) -> str:
        """The command line that repeats the bisection in a clone of the repository."""
        return shlex.join(_command_words(self))


def _command_words(order: BisectOrder) -> list[str]:
    """Return the words of the command that repeats a bisection, without defaults."""
    options, search, default = order.options, order.settings, SearchSettings()
    kernels = order.kernels
    commits = isinstance(kernels, CommitRange)
    ranges = [f"{kernels.name(0)}..{kernels.name(kernels.steps)}"] if commits else [*kernels.words]
    words = ["kdyno", "bisect", *ranges]
    for name, value in (
        ("-t", ",".join(options.tests)),
        ("--benchmark", ",".join(order.benchmarks)),
        ("--recipe", order.recipe),
        ("--source", options.source),
        ("--config", options.config),
        ("--lane", options.lane),
        ("--machine", options.machine),
    ):
        words += [name, value] if value else []
    for name in ("blocks", "most_blocks", "most_builds", "layouts", "margin", "probability"):
        if (number := getattr(search, name)) != getattr(default, name):
            words += [f"--{name.replace('_', '-')}", f"{number:g}"]
    flags = {"--better": order.better, "--no-revert": not search.revert}
    return [*words, *(flag for flag, is_set in flags.items() if is_set)]
