"""The formats of this room that cross a process boundary, by their names in `kdyno schema`."""

from __future__ import annotations

from kdyno.base.formats import Format

FORMATS = {
    "experiment": Format("kdyno.runs.experiment.models:ExperimentFile", "an experiment file", mode="validation"),
    "plan": Format("kdyno.runs.forecast:Forecast", "`kdyno plan --json`"),
    "soak": Format("kdyno.runs.soak.record:SoakRecord", "`kdyno soak --json`, and what -o writes"),
    "workload-try": Format("kdyno.runs.trial:WorkloadTrial", "`kdyno workload try --json`"),
}
