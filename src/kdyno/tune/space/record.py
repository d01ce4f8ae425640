"""The record of a search in the state directory: the outcome of each trial. Its images and boots are in the store.

It belongs to the experiment and its baseline, not to the space: a search with other knobs, or with a larger budget,
continues from the trials whose recipes it has, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from kdyno.base.errors import InfrastructureError
from kdyno.base.files import read_whole, write_whole
from kdyno.base.frozen import Frozen, digest
from kdyno.base.mistakes import first_fault
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.experiment.space import RungSpec
from kdyno.store.store import Store
from kdyno.tune.space.outcome import TrialOutcome

MOST_BYTES = 64 << 20


class SearchRecordDamaged(InfrastructureError):
    message = "can't read the record of this search, {path}: {why}"
    hint = "remove the file: boots that are in the store are not repeated"


class SearchRecord(Frozen):
    """All trials of a search, in their order."""

    v: Literal[1] = 1
    name: str
    trials: tuple[TrialOutcome, ...] = ()


def search_id(experiment: Experiment, rungs: Sequence[RungSpec], images: Sequence[str]) -> str:
    """Return a digest of what all trials of a search share; `images` are the keys of the baseline's images."""
    baseline = experiment.variants[experiment.baseline]
    shared = experiment.model_copy(update={"variants": {experiment.baseline: baseline}})
    return digest([shared.model_dump(mode="json"), [rung.model_dump(mode="json") for rung in rungs], *images])


class SearchRecordFile:
    """The record on disk; each change is whole and durable before the next trial."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.record = SearchRecord(name=name)

    def resume(self, store: Store) -> None:
        """Read the record of an earlier command, without trials whose runs are no longer in the store.

        Raises SearchRecordDamaged.
        """
        try:
            earlier = SearchRecord.model_validate_json(read_whole(self.path, MOST_BYTES))
        except FileNotFoundError:
            return
        except OSError as error:
            raise SearchRecordDamaged(path=self.path, why=error.strerror) from error
        except ValidationError as error:
            raise SearchRecordDamaged(path=self.path, why=first_fault(error)) from None
        kept = tuple(trial for trial in earlier.trials if trial.run is None or store.has_run(trial.run))
        self.record = earlier.model_copy(update={"trials": kept})

    def add(self, trial: TrialOutcome) -> None:
        """Add the outcome of a trial, and write the record. Raises what writing raises."""
        self.record = self.record.model_copy(update={"trials": (*self.record.trials, trial)})
        write_whole(self.path, self.record.model_dump_json() + "\n")
