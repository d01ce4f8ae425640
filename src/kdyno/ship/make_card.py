"""Makes the card of a kernel from the record of its run, its judgement and its build."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from pydantic import JsonValue

from kdyno.base.state import State
from kdyno.base.version import __version__
from kdyno.judge.stats.compare import Judged
from kdyno.judge.verdicts.model import ConfirmedVariant, RunReport
from kdyno.kernel import images
from kdyno.kernel.hardening import protections
from kdyno.kernel.image import SourceIdentity
from kdyno.kernel.kconfig_check import read_config
from kdyno.kernel.plan import BuildPlan
from kdyno.kernel.recipe import Recipe
from kdyno.runs.soak.record import SoakRecord
from kdyno.ship.card import (
    BenchmarkVerdict,
    Card,
    CardImage,
    Configuration,
    EffectRatio,
    JudgedImage,
    OnProcessor,
    OverallVerdict,
    ProfileUsed,
    Soaked,
    Verdicts,
)
from kdyno.ship.code import CodeComparison
from kdyno.ship.plan import ShipPlan

DIRECTORIES = re.compile(r"(?<![\w.])/(?:[^/\s:,&]+/)+")
"""The directories of an absolute path: they are those of whoever built the kernel, and a card is for strangers."""


@dataclass(frozen=True)
class BuildFacts:
    """What the card says of the build."""

    package: str
    version: str
    image: CardImage
    config: Mapping[str, str]
    config_sha256: str
    code: CodeComparison
    asked: Mapping[str, str]


def make_card(
    ship: ShipPlan, report: RunReport, layout: int, kernel: BuildFacts, soak: SoakRecord | None, state: State
) -> Card:
    """Return the card of a kernel that was built by this plan."""
    judged, recipe = ship.judged, ship.variant.recipe
    return Card(
        release=ship.release,
        package=kernel.package,
        version=kernel.version,
        epoch=ship.epoch,
        image=kernel.image,
        judged=JudgedImage(key=judged.key, sha256=judged.files.get("bzImage"), code=kernel.code),
        source=_source(judged.source),
        patches=judged.patches,
        patch_names=tuple(PurePath(name).name for name in recipe.patches),
        compiler=judged.toolchain,
        objects=judged.objects,
        make=ship.plan.make,
        environment=judged.environment,
        inputs=judged.inputs,
        recipe=_recipe(recipe),
        configuration=_configuration(ship, kernel, state),
        profile=_profile(recipe),
        cpu_flags=judged.needs,
        verdicts=_verdicts(ship, report, layout),
        soak=soak and _soak(soak),
        kdyno=__version__,
    )


def _source(source: SourceIdentity) -> SourceIdentity:
    names = {"spec": _without_directories(source.spec), "origin": _without_directories(source.origin)}
    return source.model_copy(update=names)


def _recipe(recipe: Recipe) -> dict[str, JsonValue]:
    """Return the knobs that are set, without the recipe of the trainee: only its name matters to a reader."""
    written = recipe.model_dump(mode="json", exclude_defaults=True, exclude={"profile": {"trainee"}})
    return {name: value if name == "cmdline" else _shortened(value) for name, value in written.items()}


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return _without_directories(value)
    if isinstance(value, list):
        return [_shortened(part) for part in value]
    return {key: _shortened(part) for key, part in value.items()} if isinstance(value, dict) else value


def _without_directories(text: str) -> str:
    return DIRECTORIES.sub("", text)


def _configuration(ship: ShipPlan, kernel: BuildFacts, state: State) -> Configuration:
    base = ship.plan.base
    before = {} if base.kind == "fragment" else read_config(base.text)
    final = kernel.config
    changed = {
        symbol: (before.get(symbol, "n"), final.get(symbol, "n"))
        for symbol in sorted({*before, *final})
        if before and before.get(symbol, "n") != final.get(symbol, "n")
    }
    ours = {one.option: one.state for one in protections(final)}
    on = tuple(option for option, is_on in ours.items() if is_on == "on")
    return Configuration(
        base=_without_directories(base.spec),
        sha256=kernel.config_sha256,
        asked=dict(sorted(kernel.asked.items())),
        changed=changed,
        protections_on=on,
        protections_off=tuple(option for option, is_on in ours.items() if is_on == "off"),
        traded=tuple(option for option in _protections_of_baseline(ship, state) if option not in on),
    )


def _protections_of_baseline(ship: ShipPlan, state: State) -> tuple[str, ...]:
    """Return the protections that the baseline has; none if its image isn't stored any more."""
    baseline = next(variant for variant in ship.run.variants if variant.name == ship.run.baseline)
    with suppress(images.ImageMissing, images.ImageCorrupt):
        config = images.configuration_of(images.load_image(baseline.images[0].key, state))
        return tuple(one.option for one in protections(config) if one.state == "on")
    return ()


def _profile(recipe: Recipe) -> ProfileUsed | None:
    profile = recipe.profile
    if profile is None:
        return None
    trainee = profile.trainee
    return ProfileUsed(
        use=profile.use,
        trained_on=tuple(_without_directories(name) for name in trainee.load.names) if trainee else (),
        seeds=profile.seeds if trainee else 0,
        trainee=trainee and trainee.variant,
    )


def _verdicts(ship: ShipPlan, report: RunReport, layout: int) -> Verdicts:
    run, variant = ship.run, ship.variant.name
    comparisons = [one for one in report.comparisons if one.variant == variant]
    mean = next((one for one in report.geometric_means if one.variant == variant), None)
    confirmed = report.confirmation
    return Verdicts(
        run=run.id,
        name=run.name,
        variant=variant,
        baseline=run.baseline,
        lane=run.lane,
        measured=report.measured,
        model=report.budgets.modelled if report.budgets else "",
        machine={name: run.machine[name] for name in ("type", "accel", "cpu", "cpus") if name in run.machine},
        blocks=run.stopped_at or run.blocks,
        layout=layout,
        layouts=run.layouts,
        margin=report.margin,
        alpha=report.alpha,
        confidence=report.confidence,
        correction=report.correction,
        scope=comparisons[0].scope if comparisons else "",
        overall=mean
        and OverallVerdict(
            quantity=mean.unit,
            benchmarks=mean.benchmarks,
            verdict=mean.verdict,
            effect=_ratio(mean),
            sentence=mean.sentence or mean.reason,
        ),
        benchmarks=tuple(
            BenchmarkVerdict(
                benchmark=one.benchmark,
                direction=one.direction,
                verdict=one.verdict,
                effect=_ratio(one),
                caution=one.caution or one.reason,
            )
            for one in comparisons
        ),
        notices=report.notices,
        checks=tuple(check.in_words() for check in report.checks if check.variant == variant),
        processor=confirmed
        and _processor(
            next((one for one in confirmed.variants if one.variant == variant), None),
            confirmed.run,
            confirmed.cpu,
            confirmed.notices,
        ),
        command_line=ship.variant.recipe.words,
    )


def _processor(
    variant: ConfirmedVariant | None, run: str | None, cpu: str | None, notices: tuple[str, ...]
) -> OnProcessor | None:
    return OnProcessor(run=run, cpu=cpu, sentence=variant.sentence, notices=notices) if variant else None


def _ratio(judged: Judged) -> EffectRatio | None:
    estimate = judged.estimate
    return EffectRatio(ratio=estimate.ratio, low=estimate.low, high=estimate.high) if estimate else None


def _soak(soak: SoakRecord) -> Soaked:
    loads = tuple(load.load for load in soak.loads)
    return Soaked(id=soak.id, verdict=soak.verdict, hours=soak.hours_lived, loads=loads)


def asked_of(plan: BuildPlan) -> dict[str, str]:
    """Return the symbols that recipe and kdyno asked for, with their values."""
    return {request.symbol: request.value for request in plan.asks}
