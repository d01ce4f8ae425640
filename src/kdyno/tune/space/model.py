"""The result of a search in a space of recipes: `kdyno tune --json`."""

from __future__ import annotations

from kdyno.base.frozen import Frozen
from kdyno.runs.experiment.space import ChoiceValue, Objective, Sampler
from kdyno.tune.confirm import ConfirmedWinner
from kdyno.tune.space.outcome import Measured, Stage


class TriedRecipe(Frozen):
    """A recipe that was tried."""

    name: str
    """What differs from the baseline: `opt=O3, march=x86-64-v3`."""
    values: dict[str, ChoiceValue | None]
    rung: int
    """The highest rung that it was measured on, from 1."""
    clock: str = ""
    """The lane of this rung, and its tests if it has some of its own; empty if all rungs measure alike. Gains by
    different ones are not compared."""
    measured: dict[Objective, Measured]
    """By objective the logarithm of the ratio to the baseline, positive if better; empty if it failed."""
    is_on_front: bool = False
    """Whether no other recipe is better in one objective without being worse in another."""
    risks: tuple[str, ...] = ()
    """Its choices that trade something, with what they trade."""


class FailedRecipe(Frozen):
    """A recipe that did not become a kernel that works."""

    name: str
    stage: Stage
    reason: str


class KnobImportance(Frozen):
    """How much a knob matters: the part of the variance of gains over the space that is its own (functional ANOVA), and
    what the best recipe would lose without it (ablation).
    """

    key: str
    share: float
    low: float
    high: float
    """The 95 % interval of the share."""
    choice: str
    """The choice of the best recipe; empty if it is the baseline's."""
    loss: float | None = None
    """The gain that the best recipe would lose, as the logarithm of a ratio; None if the choice is the baseline's."""
    loss_low: float | None = None
    loss_high: float | None = None


class SearchResult(Frozen):
    """The whole outcome of a search."""

    name: str
    space: int
    """The number of recipes in the space; of a large one, of all combinations."""
    is_exact: bool
    """Whether that leaves out what conditions and forbidden combinations exclude."""
    lane: str
    sampler: Sampler
    objectives: tuple[Objective, ...]
    recipes: tuple[TriedRecipe, ...]
    """The recipes that were measured, the best first."""
    failures: tuple[FailedRecipe, ...]
    left_out: tuple[str, ...]
    """Choices that were not tried for their risk."""
    builds: int
    """The number of kernels that were compiled, the baseline's not included."""
    seconds: float
    """The time of builds and boots."""
    knobs: tuple[KnobImportance, ...] = ()
    """The knobs, the most important first; empty if too little was measured."""
    winner: str = ""
    """The name of the best recipe; empty if none was better than the baseline in the search."""
    confirmed: ConfirmedWinner | None = None
    """The best recipe, measured again; None if none was better than the baseline in the search."""
    held_out: ConfirmedWinner | None = None
    """The best recipe on other tests."""
    claim: str = ""
    """The last sentence: whether a recipe beats the baseline."""

    @property
    def best(self) -> TriedRecipe | None:
        """Return the best recipe, if one is better than the baseline."""
        return next((recipe for recipe in self.recipes if recipe.name == self.winner), None)
