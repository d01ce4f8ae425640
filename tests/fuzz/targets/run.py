"""Readers of foreign bytes: experiments, as files and as recorded."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path

from kdyno.runs.experiment.plan import plan_boots
from kdyno.runs.experiment.resolve import load_experiment, read_experiment
from tests.fuzz.check import Target
from tests.fuzz.inputs import EXPERIMENTS, TOML, files


def experiment(path: Path) -> None:
    assert plan_boots(load_experiment(path))


def recorded_experiment(path: Path) -> None:
    usual = sys.stdin
    with path.open("rb") as file:
        sys.stdin = io.TextIOWrapper(file)
        try:
            assert plan_boots(read_experiment("-"))
        finally:
            sys.stdin = usual


def recorded_experiments() -> Sequence[bytes]:
    return [load_experiment(path).model_dump_json().encode() for path in sorted(EXPERIMENTS.glob("*.toml"))]


TARGETS = (
    Target("experiment", experiment, files(*sorted(EXPERIMENTS.glob("*.toml"))), TOML, file="experiment.toml"),
    Target("recorded", recorded_experiment, recorded_experiments, TOML),
)  # fmt: skip
