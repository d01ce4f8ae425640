"""The gains of recipes on this processor and in the model, as rows of a CPU family's file. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kdyno.base.cpu import Cpu, family_of
from kdyno.base.text import format_list
from kdyno.kernel.recipe import Profile, ProfileUse, Recipe
from kdyno.measure.cycles.family import Family, FamilyFile
from kdyno.measure.cycles.gains import SiliconGain
from kdyno.runs.experiment.variants import DEFAULT_LOAD
from kdyno.understand.validate.paths import PathsOfVariant, PathsReport

USES: Mapping[ProfileUse, str] = {
    "pgo": "PGO",
    "autofdo": "AutoFDO",
    "propeller": "Propeller",
    "order": "function order",
}


def silicon_gains(report: PathsReport, recipes: Mapping[str, Recipe], cpu: Cpu) -> tuple[SiliconGain, ...]:
    """Return the gain of each variant on all paths; `recipes` are those of the variants and the baseline, by name."""
    rows = {(row.variant, row.scope): row for row in report.variants}
    baseline = recipes[report.baseline]
    processor = cpu_words(report.cpu, cpu)
    return tuple(
        _gain(
            row,
            rows.get((variant, "held-out paths")),
            f"{recipe_words(recipes[variant], baseline)}, against {report.baseline}",
            processor,
        )
        for (variant, scope), row in rows.items()
        if scope == "paths"
    )


def _gain(row: PathsOfVariant, held_out: PathsOfVariant | None, recipe: str, cpu: str) -> SiliconGain:
    correlation = held_out.agreement.pearson if held_out else None
    return SiliconGain(
        recipe=recipe,
        cpu=cpu,
        paths=row.count,
        silicon=round(row.silicon, 4),
        model=round(row.model, 4),
        held_out_correlation=None if correlation is None else round(correlation, 3),
        held_out_median_error=round(held_out.agreement.median_error, 4) if held_out else None,
        wrong_signs=row.agreement.sign_errors,
        clear=row.agreement.clear,
    )


def cpu_words(name: str, cpu: Cpu) -> str:
    """Return a processor in words, with its family if that is known: `AMD EPYC, Zen 4`."""
    row = family_of(cpu)
    return f"{name}, {row.title.partition(' (')[0]}" if row else name


def recipe_words(recipe: Recipe, baseline: Recipe) -> str:
    """Return what a recipe changes, in words: `clang-19, AutoFDO trained on paths`."""
    return ", ".join(_changes(recipe, baseline)) or "the same recipe"


def _changes(recipe: Recipe, baseline: Recipe) -> Iterator[str]:
    for knob in Recipe.model_fields:
        value = getattr(recipe, knob)
        if value == getattr(baseline, knob):
            continue
        if isinstance(value, Profile):
            yield _profile(value)
        elif knob == "toolchain":
            yield str(value)
        elif knob == "opt" and value:
            yield f"-{value}"
        else:
            yield _setting(knob, value)


def _setting(knob: str, value: Any) -> str:
    match value:
        case None | False | () | "none":
            return f"no {knob}"
        case True:
            return knob
        case str() | int():
            return f"{knob} {value}"
        case tuple():
            return f"{knob} {' '.join(map(str, value))}"
        case dict():
            return f"{knob} {' '.join(f'{name}={setting}' for name, setting in value.items())}".rstrip()
        case _:
            return f"a {knob} plan"


def _profile(profile: Profile) -> str:
    uses = " and ".join(USES[use] for use in profile.use)
    if profile.trainee is None:
        return f"{uses} from a file"
    return f"{uses} trained on {format_list(profile.train or DEFAULT_LOAD)}"


def with_gains(family: Family, gains: tuple[SiliconGain, ...], name: str) -> FamilyFile:
    """Return the family with these gains; of the same recipe on the same processor the new one stays."""
    new = {(gain.recipe, gain.cpu) for gain in gains}
    kept = tuple(gain for gain in family.model.silicon if (gain.recipe, gain.cpu) not in new)
    return family.replace_model(name, family.model.model_copy(update={"silicon": (*kept, *gains)}))
