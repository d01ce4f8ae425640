"""Weights of the events that no program of the probe shows, fitted to one half of the benchmarks and judged on the
other. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kdyno.base.frozen import Frozen
from kdyno.measure.cycles.evaluate import EvaluatedProgram, Quality, quality
from kdyno.measure.cycles.events import UNSEEN
from kdyno.measure.cycles.family import Family, FamilyFile
from kdyno.measure.cycles.fit import Array, fit
from kdyno.measure.cycles.kernel_measured import KernelMeasurement, select_role
from kdyno.measure.cycles.predict import weigh

PULLS = (0.01, 0.03, 0.1, 0.3, 1.0)
"""The strengths with which weights may be tied to those that the family had: fewer weights are sought here than among
programs, and from fewer rows, so the strength has to be chosen anew.
"""

SOUGHT = frozenset({*UNSEEN, "user_instructions"})
"""The events whose weights are fitted. Where a kernel is counted, only instructions are known of user code: they
represent its waits, too."""


@dataclass(frozen=True)
class KernelCalibration:
    """The result of a calibration on kernel code."""

    family: Family
    """The family whose weights the fit started from."""
    measured: KernelMeasurement
    fitted: tuple[str, ...]
    """The events whose weights were sought."""
    pull: float
    """The strength with which they were tied to the earlier weights; chosen among the benchmarks for fitting alone."""
    weights: dict[str, float]
    judged: tuple[EvaluatedProgram, ...]
    held_out: Quality
    on_fitted: Quality
    before: Quality
    """The quality on the held-out benchmarks with the weights that the fit started from."""


class KernelCalibrationReport(Frozen):
    """A calibration on kernel code as `kdyno calibrate --kernel --json` prints it."""

    family: str
    fitted: tuple[str, ...]
    pull: float
    weights: dict[str, float]
    judged: tuple[EvaluatedProgram, ...]
    held_out: Quality
    on_fitted: Quality
    before: Quality

    @classmethod
    def from_calibration(cls, calibration: KernelCalibration) -> KernelCalibrationReport:
        fields = {name: getattr(calibration, name) for name in cls.model_fields}
        return cls(**{**fields, "family": calibration.family.name})


def calibrate_kernel(measurement: KernelMeasurement, family: Family) -> KernelCalibration:
    """Find the weights in SOUGHT of events that the benchmarks for fitting show; all others keep theirs."""
    is_fit = np.array([benchmark.role == "fit" for benchmark in measurement.benchmarks])
    counts, names = measurement.counts[is_fit], measurement.events
    shown_events = {name for column, name in enumerate(names) if counts[:, column].any()}
    fitted = tuple(name for name in family.weights if name in SOUGHT and name in shown_events)
    native = measurement.native[is_fit]
    pull = choose_pull(counts, native, names, family.weights, fitted)
    weights = fit(counts, native, names, family.weights, pull, fitted)
    programs = measurement.judge(weights)
    return KernelCalibration(
        family=family,
        measured=measurement,
        fitted=fitted,
        pull=pull,
        weights={name: weights[name] for name in family.weights if name in family.model.weights or name in fitted},
        judged=programs,
        held_out=quality(select_role(programs, "held-out")),
        on_fitted=quality(select_role(programs, "fit")),
        before=quality(select_role(measurement.judge(family.weights), "held-out")),
    )


def choose_pull(
    counts: Array, native: Array, names: Sequence[str], weights: Mapping[str, float], fitted: Sequence[str]
) -> float:
    """Return the strength with which each row of counts[B, E] is best predicted from the others; if two are equal, the
    stronger.
    """
    rows = np.arange(len(native))

    def error(pull: float) -> float:
        errors = []
        for row in rows:
            is_other = rows != row
            fitted_weights = fit(counts[is_other], native[is_other], names, weights, pull, fitted)
            errors.append(abs(np.log(weigh(counts[row], names, fitted_weights) / native[row])))
        return float(np.mean(errors))

    return min(sorted(PULLS, reverse=True), key=error)


def apply_kernel_weights(calibration: KernelCalibration, name: str, date: str | None) -> FamilyFile:
    """Return the family with its new weights, and the error on kernel code that was found with them."""
    old = calibration.family
    held_out, kernels = calibration.held_out, calibration.measured.kernels
    model = old.model.model_copy(
        update={
            "kernel_benchmarks": held_out.programs,
            "kernel_spearman": round(held_out.spearman, 3),
            "kernel_median_error": round(held_out.median_error, 3),
            "kernel_source": f"Linux {kernels.version} for {kernels.running}, {calibration.measured.cpu}",
            "date": date or old.model.date,
            "weights": {event: float(f"{weight:.4g}") for event, weight in calibration.weights.items()},
            "silicon": (),  # gains that were compared with a processor's had the old weights
        }
    )
    return old.replace_model(name, model)
