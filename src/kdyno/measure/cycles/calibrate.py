"""Fitting a family's weights to measurements, and judging the result. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import tomli_w

from kdyno.base.frozen import Frozen
from kdyno.measure.cycles.evaluate import EvaluatedProgram, Quality, quality
from kdyno.measure.cycles.family import Family, FamilyFile, Model
from kdyno.measure.cycles.fit import find_fixed_events, fit
from kdyno.measure.cycles.measure import FitInput
from kdyno.measure.cycles.predict import weigh


@dataclass(frozen=True)
class Calibration:
    """The result of a calibration."""

    family: Family
    """The family whose weights the fit started from."""
    weights: dict[str, float]
    kept: tuple[str, ...]
    """Weighed events that no program shows: their weights are unchanged."""
    judged: tuple[EvaluatedProgram, ...]
    """Every program, in the probe's order."""
    held_out: Quality
    fitted: Quality
    before: Quality
    """The quality on the held-out programs with the weights that the fit started from."""
    spread: tuple[float, ...]
    """The difference between the native passes of each program, in the same order: 0.1 is 10 %."""


class CalibrationReport(Frozen):
    """A calibration as `kdyno calibrate --json` prints it."""

    family: str
    weights: dict[str, float]
    kept: tuple[str, ...]
    judged: tuple[EvaluatedProgram, ...]
    held_out: Quality
    fitted: Quality
    before: Quality
    spread: tuple[float, ...]

    @classmethod
    def from_calibration(cls, calibration: Calibration) -> CalibrationReport:
        return cls(**{**vars(calibration), "family": calibration.family.name})


def calibrate(fit_input: FitInput, family: Family) -> Calibration:
    """Fit to the programs for fitting, and judge by the others."""
    is_fit = np.array([program.role == "fit" for program in fit_input.programs])
    counts, names = fit_input.counts, fit_input.names
    weights = fit(counts[is_fit], fit_input.native[is_fit], names, family.model.weights)
    programs = _judge_programs(fit_input, weights)
    held_out = [program for program in programs if program.role == "held-out"]
    return Calibration(
        family=family,
        weights=weights,
        kept=find_fixed_events(family.model.weights, counts[is_fit], names),
        judged=programs,
        held_out=quality(held_out),
        fitted=quality([program for program in programs if program.role == "fit"]),
        before=quality(
            [program for program in _judge_programs(fit_input, family.model.weights) if program.role == "held-out"]
        ),
        spread=tuple(fit_input.spread.tolist()),
    )


def _judge_programs(fit_input: FitInput, weights: Mapping[str, float]) -> tuple[EvaluatedProgram, ...]:
    modelled = weigh(fit_input.counts, fit_input.names, weights)
    instructions = fit_input.counts[:, fit_input.names.index("instructions")]
    rows = zip(fit_input.programs, fit_input.native.tolist(), modelled.tolist(), instructions.tolist(), strict=True)
    return tuple(EvaluatedProgram(program.name, program.kind, program.role, *cycles) for program, *cycles in rows)


def calibrated_family(calibration: Calibration, name: str, cpu: str, date: str | None) -> FamilyFile:
    """Return the family with its new weights and their known errors."""
    old = calibration.family
    fitted = sum(program.role == "fit" for program in calibration.judged)
    model = Model(
        version=old.model.version,
        basis="calibrated",
        source=f"kdyno calibrate: fitted to {fitted} programs",
        cpu=cpu,
        date=date,
        programs=calibration.held_out.programs,
        spearman=round(calibration.held_out.spearman, 3),
        median_error=round(calibration.held_out.median_error, 3),
        weights={event: float(f"{weight:.4g}") for event, weight in calibration.weights.items()},
    )
    return old.replace_model(name, model)


def format_toml(family: FamilyFile) -> str:
    """Return the family's file; settings without a value are left out."""
    settings = family.model_dump(mode="json", include=set(FamilyFile.model_fields), exclude_none=True)
    return tomli_w.dumps({key: value for key, value in settings.items() if value not in ([], {})})
