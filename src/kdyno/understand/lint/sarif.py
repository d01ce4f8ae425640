"""SARIF 2.1.0, the format in which editors and CI take findings (OASIS Standard, 27 March 2020)."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from kdyno.base.version import __version__
from kdyno.understand.lint.model import LINTS, LintFinding, LintReport

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "SRCROOT"
"""The name by which a reader finds the root of the kernel's source, which it knows and the findings don't."""


def sarif(report: LintReport) -> dict[str, Any]:
    """The log of one run. Sources are relative to ROOT; an object without lines is named by its own path."""
    names = list(LINTS)
    driver = {
        "name": "kdyno kernel lint",
        "version": __version__,
        "rules": [{"id": name, "shortDescription": {"text": what}} for name, what in LINTS.items()],
    }
    root = {ROOT: {"description": {"text": "The root of the kernel's source."}}}
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": root,
        "columnKind": "utf16CodeUnits",
        "results": [_result(finding, names.index(finding.lint)) for finding in report.findings],
        "invocations": [
            {
                "executionSuccessful": not report.not_read,
                "toolExecutionNotifications": [
                    {"level": "error", "message": {"text": f"{file.refused} was not looked through: {file.why}"}}
                    for file in report.not_read
                ],
            }
        ],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(finding: LintFinding, rule: int) -> dict[str, Any]:
    where = f"{finding.function} ({finding.file}, {finding.section} {finding.address})"
    text = (
        f"{finding.message}: `{finding.instruction}` in {where}"
        if finding.instruction
        else f"{finding.message}: {where}"
    )
    return {
        "ruleId": finding.lint,
        "ruleIndex": rule,
        "level": finding.level,
        "message": {"text": text},
        "locations": [
            {
                "physicalLocation": _place(finding),
                "logicalLocations": [{"name": finding.function, "kind": "function"}],
            }
        ],
    }


def _place(finding: LintFinding) -> dict[str, Any]:
    if finding.source is None:
        return {"artifactLocation": {"uri": _uri(finding.file)}}
    artifact = {"uri": _uri(finding.source)}
    if not finding.source.startswith("/"):
        artifact["uriBaseId"] = ROOT
    # Line 0 stands for code of no line; SARIF counts from 1.
    region = {"region": {"startLine": finding.line}} if finding.line else {}
    return {"artifactLocation": artifact} | region


def _uri(path: str) -> str:
    """A path as a URI reference; a colon in the first part of a relative one would make that a scheme."""
    if path.startswith("/"):
        return PurePosixPath(path).as_uri()
    return quote(path, safe="/")
