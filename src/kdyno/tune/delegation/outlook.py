"""The forecast and the progress of a search."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from kdyno.base.lanes import COUNTED_LANE
from kdyno.base.talk import Talk
from kdyno.base.text import clean, format_count, format_signed
from kdyno.kernel.build import BuildPlan
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.forecast import boot_time, forecast_builds
from kdyno.runs.outlook import span
from kdyno.runs.session import Session
from kdyno.tune.delegation.group_testing import GroupTesting
from kdyno.tune.delegation.timing import TrialTimer
from kdyno.tune.delegation.trial import Assignment, CostTrial


def search_ahead(
    first: Sequence[BuildPlan], choices: int, timer: TrialTimer | None, experiment: Experiment, session: Session
) -> list[str]:
    """Return the lines with the least steps of a search. `first` has the plans of its first kernel by link order."""
    kernels = choices + 2
    builds = forecast_builds({"reference": tuple(first)}, session.state)
    compiled = sum(build.seconds or 0.0 for build in builds)
    boot, _, is_guess = boot_time(COUNTED_LANE.name, "all", experiment.workload, session.store)
    boot *= 2 if is_guess else 1  # for all events
    measured = len(first) * boot
    if timer:
        timed, *_ = boot_time(experiment.machine.lane, None, experiment.workload, session.store)
        measured = boot + timer.boots * timed
    seconds = kernels * (compiled + measured)
    return [
        f"to do: measure at least {format_count(kernels, 'kernel')} in {format_count(len(first), 'link order')} each: "
        f"the reference, {format_count(choices, 'choice')} for all hot files, the best of all; more where these "
        "disagree",
        f"time: at most {span(seconds)} for these, a guess: as if each were compiled anew; then the runs that judge",
    ]


class TuneProgress:
    """Prints for each kernel its assignment, its cost, and the time of the kernels that will certainly follow."""

    def __init__(self, search: GroupTesting, unit: str, talk: Talk) -> None:
        self._search, self._unit, self._talk = search, unit, talk
        self._began = 0.0
        self._seconds: list[float] = []

    def begin(self, assignment: Assignment) -> None:
        self._began = time.monotonic()
        self._talk.say(f"kernel {self._search.kernels}: {_described(assignment)}")

    def end(self, trial: CostTrial | None, failures: Sequence[tuple[Assignment, str]]) -> None:
        self._seconds.append(time.monotonic() - self._began)
        if trial is None:
            self._talk.warn(f"  left out: {clean(failures[-1][1])}")
            return
        cost = float(trial.total.mean()) - 1
        remaining = self._search.least_left()
        forecast = (
            f"; {span(remaining * statistics.mean(self._seconds))} for the next {remaining}, at least"
            if remaining
            else ""
        )
        result = "measured" if self._search.kernels == 1 else f"{format_signed(cost)} % {self._unit}"
        self._talk.say(f"  {result}{forecast}")


def _described(assignment: Assignment) -> str:
    if not assignment:
        return "the reference"
    counts = {choice: list(assignment.values()).count(choice) for choice in sorted(set(assignment.values()))}
    return ", ".join(f"{format_count(count, 'file')} at {choice}" for choice, count in counts.items())
