"""One experiment in both lanes: modelled cycles, and time of a processor."""

from __future__ import annotations

from dataclasses import dataclass

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.judge.verdicts.assemble import assemble
from kdyno.judge.verdicts.model import RunReport
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.run import run_experiment
from kdyno.runs.session import Session
from kdyno.store.artefacts import Artefacts


class NeedsTwoVariants(UserError):
    message = "experiment {name} has one variant, and no effects to compare"
    hint = "name a second kernel under [variants]"


class RunLost(InfrastructureError):
    message = "boots of run {run} were lost: {boots}"
    hint = "run the same command to repeat them; the other boots are kept"


class NoSharedEffect(InfrastructureError):
    message = "runs {model} and {wall} have no benchmark that both lanes measured of a variant and the baseline"
    hint = "see the outcome of their boots in `kdyno report RUN`"


@dataclass(frozen=True)
class BothLanes:
    """One experiment judged in both lanes."""

    model: RunReport
    wall: RunReport


def require_two_variants(experiment: Experiment) -> None:
    """Raise NeedsTwoVariants unless there is a variant to compare with the baseline."""
    if len(experiment.variants) < 2:
        raise NeedsTwoVariants(name=experiment.name)


def measure_lanes(experiment: Experiment, family: str, blocks: int | None, session: Session) -> BothLanes:
    """Carry out the experiment in both lanes: modelled cycles of a CPU family (a name or `file:PATH`), and time.

    `blocks` are those of the model lane, if they are to be others than the experiment's. Boots on record are not
    repeated. Raises NeedsTwoVariants, RunLost, and what `run_experiment` raises.
    """
    require_two_variants(experiment)
    pmu = PmuConfig(events="all", family=family, clock="cycles")
    reports = []
    for machine, number in ((experiment.machine.in_timed_lane(), None), (experiment.machine.with_pmu(pmu), blocks)):
        session.talk.say(f"{experiment.name} in the {machine.lane} lane")
        in_lane = experiment.model_copy(update={"machine": machine, "blocks": number or experiment.blocks})
        finished_run = run_experiment(in_lane, session, again=False)
        if finished_run.outcome.lost:
            raise RunLost(
                run=finished_run.run_id,
                boots="; ".join(f"{boot}: {why}" for boot, why in finished_run.outcome.lost.items()),
            )
        artefacts = Artefacts(session.state.artefacts)
        reports.append(assemble(session.store, finished_run.run_id, artefacts, analysed=False))
    wall, model = reports
    return BothLanes(model, wall)
