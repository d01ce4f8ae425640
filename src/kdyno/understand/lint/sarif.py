"""SARIF 2.1.0, the format of findings for editors and CI (OASIS Standard, 27 March 2020)."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from kdyno.base.text import clean
from kdyno.base.version import __version__
from kdyno.understand.lint.model import LINTS, LintFinding, LintReport

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "SRCROOT"
"""The name of the root of the kernel's source. The reader knows its path, the findings don't."""


def sarif(report: LintReport) -> dict[str, Any]:
    """Return the log of one run. Sources are relative to ROOT; an object without lines is named by its own path."""
    names = list(LINTS)
    driver = {
        "name": "kdyno kernel lint",
        "version": __version__,
        "rules": [{"id": name, "shortDescription": {"text": description}} for name, description in LINTS.items()],
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
                    {"level": "error", "message": {"text": _message(f"{file.refused} was not checked: {file.why}")}}
                    for file in report.not_read
                ],
            }
        ],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(finding: LintFinding, rule: int) -> dict[str, Any]:
    place_text = f"{finding.function} ({finding.file}, {finding.section} {finding.address})"
    text = (
        f"{finding.message}: `{finding.instruction}` in {place_text}"
        if finding.instruction
        else f"{finding.message}: {place_text}"
    )
    return {
        "ruleId": finding.lint,
        "ruleIndex": rule,
        "level": finding.level,
        "message": {"text": _message(text)},
        "locations": [
            {
                "physicalLocation": _place(finding),
                "logicalLocations": [{"name": clean(finding.function), "kind": "function"}],
            }
        ],
    }


def _message(text: str) -> str:
    """Return a text without characters that steer, and without links: SARIF reads `[text](target)` as one (3.11.6)."""
    return clean(text).replace("[", r"\[").replace("]", r"\]")


def _place(finding: LintFinding) -> dict[str, Any]:
    if finding.source is None:
        return {"artifactLocation": {"uri": _uri(finding.file)}}
    artifact = {"uri": _uri(finding.source)}
    if not finding.source.startswith("/"):
        artifact["uriBaseId"] = ROOT
    # Line 0 represents code without a line; SARIF counts from 1.
    region = {"region": {"startLine": finding.line}} if finding.line else {}
    return {"artifactLocation": artifact} | region


def _uri(path: str) -> str:
    """Return a path as a URI reference. Colons are quoted: in the first part of a path they would end a scheme."""
    if path.startswith("/"):
        return PurePosixPath(path).as_uri()
    return quote(path, safe="/")
