"""The formats of this room that cross a process boundary, by their names in `kdyno schema`."""

from __future__ import annotations

from kdyno.base.formats import Format

FORMATS = {
    "coverage": Format("kdyno.understand.coverage.model:CoverageReport", "`kdyno coverage --json`"),
    "coverage-diff": Format("kdyno.understand.coverage.diff:CoverageDifference", "`kdyno coverage --diff --json`"),
    "coverage-unused": Format("kdyno.understand.coverage.unused:Unused", "`kdyno coverage --unused --json`"),
    "doctor": Format("kdyno.understand.doctor:Findings", "`kdyno doctor --json`"),
    "explanation": Format("kdyno.understand.explain.command:Explained", "`kdyno explain --json`"),
    "lint": Format("kdyno.understand.lint.model:LintReport", "`kdyno kernel lint --json`"),
    "size": Format("kdyno.understand.size.model:SizeReport", "`kdyno kernel size --json`"),
    "validate-kvm": Format("kdyno.understand.validate.kvm:KvmReport", "`kdyno validate --kvm EXPERIMENT --json`"),
    "validate-micro": Format("kdyno.understand.validate.micro:MicroReport", "`kdyno validate --micro --json`"),
    "validate-paths": Format(
        "kdyno.understand.validate.paths:PathsReport", "`kdyno validate --paths EXPERIMENT --json`"
    ),
    "validate-library": Format(
        "kdyno.understand.validate.library_compare:LibraryReport", "`kdyno validate --library SOURCE --json`"
    ),
}
