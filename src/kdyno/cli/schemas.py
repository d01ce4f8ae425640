"""The JSON schemas of everything that crosses a process boundary; schemas/ contains a frozen copy."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from kdyno.base.cpu_families import March
from kdyno.boot.blockmap.model import BlockMap
from kdyno.boot.host.look import HostReport
from kdyno.boot.host.turn import Turned
from kdyno.judge.curves.model import ScalingReport
from kdyno.judge.verdicts.model import FileReport, RunReport
from kdyno.judge.verdicts.selftest import SelfTest
from kdyno.kernel.delegation.plan_file import DelegationPlan
from kdyno.kernel.delegation.records import LINE
from kdyno.kernel.delegation.resolved import Resolved
from kdyno.kernel.delegation.show import ImageView, PlanView
from kdyno.kernel.image import ImageRecord
from kdyno.kernel.march.report import MarchReport
from kdyno.kernel.sections import GroupedSection
from kdyno.measure.cycles.budget import Budgets
from kdyno.measure.cycles.calibrate import CalibrationReport
from kdyno.measure.cycles.family import FamilyFile
from kdyno.measure.cycles.kernel_fit import KernelCalibrationReport
from kdyno.measure.cycles.kernel_measured import Validation
from kdyno.measure.cycles.probe import MarkedProgram, ProgramList, TimedProgram
from kdyno.measure.guest.catalogue import Catalogue
from kdyno.measure.guest.job import Job
from kdyno.measure.guest.stream_records import RECORD
from kdyno.measure.workload.definition import Definition
from kdyno.measure.workload.loads import LoadOutcome
from kdyno.profile.coverage import Coverage
from kdyno.profile.merge_files import Merged
from kdyno.profile.objects import ProfileObjects
from kdyno.profile.overlap import Overlap
from kdyno.profile.pgod import PgodListing
from kdyno.profile.pull import Pulled
from kdyno.profile.show import ProfileView
from kdyno.profile.stale import Stale
from kdyno.run.experiment.models import ExperimentFile
from kdyno.run.forecast import Forecast
from kdyno.run.soak.record import SoakRecord
from kdyno.run.trial import Trial
from kdyno.store.listing import RunSummary
from kdyno.store.records import RunWithBoots
from kdyno.store.run_file import RunFileManifest, RunFileRun
from kdyno.store.upkeep.model import StoreUse
from kdyno.store.whole import WholeBoot
from kdyno.tune.delegation.tuned import Tuned
from kdyno.tune.fit.model import Fitted
from kdyno.understand.coverage.diff import CoverageDifference
from kdyno.understand.coverage.model import CoverageReport
from kdyno.understand.coverage.unused import Unused
from kdyno.understand.doctor import Finding
from kdyno.understand.explain.command import Explained
from kdyno.understand.lint.model import LintReport
from kdyno.understand.size.model import SizeReport
from kdyno.understand.validate.kvm import KvmReport
from kdyno.understand.validate.library_compare import LibraryReport

DIALECT = "https://json-schema.org/draft/2020-12/schema"

READ: dict[str, TypeAdapter[Any]] = {
    "catalogue": TypeAdapter(Catalogue),
    "delegation-plan": TypeAdapter(DelegationPlan),
    "delegation-record": LINE,
    "delegation-resolved": TypeAdapter(Resolved),
    "experiment": TypeAdapter(ExperimentFile),
    "family": TypeAdapter(FamilyFile),
    "image": TypeAdapter(ImageRecord),
    "job": TypeAdapter(Job),
    "load": TypeAdapter(LoadOutcome),
    "march-list": TypeAdapter(tuple[March, ...]),
    "pgod-listing": TypeAdapter(PgodListing),
    "probe-list": TypeAdapter(ProgramList),
    "probe-line": TypeAdapter(TimedProgram | MarkedProgram),
    "record": RECORD,
    "run-file": TypeAdapter(RunFileManifest),
    "run-file-boot": TypeAdapter(WholeBoot),
    "run-file-run": TypeAdapter(RunFileRun),
    "section": TypeAdapter(GroupedSection),
    "workload": TypeAdapter(Definition),
}
"""The input formats: fields with a default may be omitted."""

PRINTED: dict[str, TypeAdapter[Any]] = {
    "blockmap": TypeAdapter(BlockMap),
    "budget": TypeAdapter(Budgets),
    "build": TypeAdapter(dict[str, tuple[ImageRecord, ...]]),
    "calibrate": TypeAdapter(CalibrationReport),
    "calibrate-kernel": TypeAdapter(KernelCalibrationReport),
    "compare": TypeAdapter(tuple[RunReport, ...]),
    "coverage": TypeAdapter(CoverageReport),
    "coverage-diff": TypeAdapter(CoverageDifference),
    "coverage-unused": TypeAdapter(Unused),
    "delegation": TypeAdapter(PlanView),
    "delegation-image": TypeAdapter(ImageView),
    "doctor": TypeAdapter(tuple[Finding, ...]),
    "doctor-host": TypeAdapter(HostReport),
    "doctor-set": TypeAdapter(Turned),
    "explanation": TypeAdapter(Explained),
    "fit-config": TypeAdapter(Fitted),
    "judge": TypeAdapter(FileReport),
    "lint": TypeAdapter(LintReport),
    "plan": TypeAdapter(Forecast),
    "march": TypeAdapter(MarchReport),
    "profile-cover": TypeAdapter(Coverage),
    "profile-merge": TypeAdapter(Merged),
    "profile-objects": TypeAdapter(ProfileObjects),
    "profile-overlap": TypeAdapter(Overlap),
    "profile-pull": TypeAdapter(Pulled),
    "profile-show": TypeAdapter(ProfileView),
    "profile-stale": TypeAdapter(Stale),
    "report": TypeAdapter(RunReport),
    "runs": TypeAdapter(tuple[RunSummary, ...]),
    "scaling": TypeAdapter(ScalingReport),
    "selftest": TypeAdapter(tuple[SelfTest, ...]),
    "show": TypeAdapter(RunWithBoots),
    "size": TypeAdapter(SizeReport),
    "soak": TypeAdapter(SoakRecord),
    "store-gc": TypeAdapter(StoreUse),
    "tune": TypeAdapter(Tuned),
    "validate": TypeAdapter(Validation),
    "validate-kvm": TypeAdapter(KvmReport),
    "validate-library": TypeAdapter(LibraryReport),
    "workload-list": TypeAdapter(tuple[Definition, ...]),
    "workload-try": TypeAdapter(Trial),
}
"""The output of verbs with --json: every key is always present."""


def schema(name: str) -> dict[str, Any]:
    """Return the schema of a format. Raises KeyError."""
    format_schema = READ[name].json_schema() if name in READ else PRINTED[name].json_schema(mode="serialization")
    _close(format_schema)
    return {"$schema": DIALECT, "title": f"kdyno {name}"} | format_schema


def _close(value: Any) -> None:
    """Forbid additional properties wherever properties are named: models and dataclasses have no others."""
    if isinstance(value, dict):
        if isinstance(value.get("properties"), dict):
            value.setdefault("additionalProperties", False)
        for part in value.values():
            _close(part)
    elif isinstance(value, list):
        for part in value:
            _close(part)
