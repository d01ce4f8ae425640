"""The formats of this room that cross a process boundary, by the names that `kdyno schema` has for them."""

from __future__ import annotations

from kdyno.base.formats import Format

FORMATS = {
    "budget": Format("kdyno.measure.cycles.budget:Budgets", "`kdyno explain --budget --json`"),
    "calibrate": Format("kdyno.measure.cycles.calibrate:CalibrationReport", "`kdyno calibrate --json`"),
    "calibrate-kernel": Format(
        "kdyno.measure.cycles.kernel_fit:KernelCalibrationReport", "`kdyno calibrate --kernel --json`"
    ),
    "catalogue": Format(
        "kdyno.measure.guest.catalogue:Catalogue", "`kdyno-agent list --json`: what the agent can do", mode="validation"
    ),
    "family": Format("kdyno.measure.cycles.family:FamilyFile", "a CPU family's file", mode="validation"),
    "job": Format("kdyno.measure.guest.job:Job", "what the agent is asked to do in a guest", mode="validation"),
    "load": Format("kdyno.measure.workload.loads:LoadOutcome", "`kdyno-loads LOAD --json`", mode="validation"),
    "probe-line": Format("kdyno.measure.cycles.probe:ProgramLine", "`kdyno-probe run`, each line", mode="validation"),
    "probe-list": Format("kdyno.measure.cycles.probe:ProgramList", "`kdyno-probe list --json`", mode="validation"),
    "record": Format("kdyno.measure.guest.stream_records:Record", "the agent's stream, each line", mode="validation"),
    "validate": Format(
        "kdyno.measure.cycles.kernel_measured:Validation", "`kdyno validate --json`, and what -o writes"
    ),
    "workload": Format("kdyno.measure.workload.definition:Definition", "a workload, as TOML", mode="validation"),
    "workload-list": Format("kdyno.measure.workload.definition:Definitions", "`kdyno workload list --json`"),
}
