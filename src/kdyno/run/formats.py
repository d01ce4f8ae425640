"""The formats of this room that cross a process boundary, by the names that `kdyno schema` has for them."""

from __future__ import annotations

from kdyno.base.formats import Format

FORMATS = {
    "experiment": Format("kdyno.run.experiment.models:ExperimentFile", "an experiment file", mode="validation"),
    "plan": Format("kdyno.run.forecast:Forecast", "`kdyno plan --json`"),
    "soak": Format("kdyno.run.soak.record:SoakRecord", "`kdyno soak --json`, and what -o writes"),
    "workload-try": Format("kdyno.run.trial:Trial", "`kdyno workload try --json`"),
}
