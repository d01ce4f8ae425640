"""Running kdyno-lint, and making a report of what it says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kdyno import process
from kdyno.errors import InfrastructureError, UserError
from kdyno.installed import find_program
from kdyno.lint.always_inline import always_inline_names, defined_without
from kdyno.lint.costly import rules_for
from kdyno.lint.model import LINTS, Finding, LintReport, Refused
from kdyno.lint.targets import Targets

BINARY = "kdyno-lint"
INLINE = "always-inline-emitted"
COSTLY = "costly-instruction"
NEEDS = {INLINE: "--source TREE", COSTLY: "--family NAME"}
"""Lints that need more than the files."""


class UnknownLint(UserError):
    message = "there is no lint {name}"
    hint = "lints: {known}"


class LintNeeds(UserError):
    message = "{lint} needs {option}"
    hint = "give it, or leave the lint out of --only"


class LintFailed(InfrastructureError):
    message = "kdyno-lint failed: {why}"
    hint = "`pip install .` in a kdyno checkout builds it anew"


@dataclass(frozen=True)
class LintOptions:
    """Which lints, and what some of them need."""

    only: Sequence[str] = ()
    """Empty: all."""
    source: Path | None = None
    family: str | None = None


def lint(targets: Targets, options: LintOptions) -> LintReport:
    """Look through the files. Raises UnknownLint, LintNeeds, LintFailed, and what the parts raise."""
    unknown = [name for name in options.only if name not in LINTS]
    if unknown:
        raise UnknownLint(name=unknown[0], known=", ".join(LINTS))
    has = {INLINE: options.source is not None, COSTLY: options.family is not None}
    for name, option in NEEDS.items():
        if name in options.only and not has[name]:
            raise LintNeeds(lint=name, option=option)
    only = [name for name in LINTS if (name in options.only or not options.only) and has.get(name, True)]
    settings = {
        "files": targets.files,
        "only": only,
        "symbols": targets.symbols,
        "is_whole": targets.is_whole,
        "always_inline": sorted(always_inline_names(options.source)) if options.source and INLINE in only else [],
        "costly": rules_for(options.family) if options.family and COSTLY in only else [],
    }
    findings, refused = _run(settings)
    if options.source:
        findings = _placed(_without_plain(findings, options.source), options.source)
    not_run = {name: option for name, option in NEEDS.items() if not options.only and not has[name]}
    return LintReport(
        files=len(targets.files) - len(refused), findings=tuple(findings), not_read=tuple(refused), not_run=not_run
    )


def find_lint() -> Path:
    """The program that looks through objects; raises ProgramMissing."""
    return find_program(BINARY, "`kdyno kernel lint`")


def _run(settings: dict[str, object]) -> tuple[list[Finding], list[Refused]]:
    done = process.attempt([find_lint()], stdin=json.dumps(settings), guarded=True)
    if done.returncode != 0:
        raise LintFailed(why=done.stderr.strip() or f"status {done.returncode}")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    findings = [Finding.model_validate(one) for one in records if "lint" in one]
    return findings, [Refused.model_validate(one) for one in records if "refused" in one]


def _without_plain(findings: list[Finding], source: Path) -> list[Finding]:
    """Without functions that are declared always_inline here and are plain functions of the same name there."""
    emitted = {finding.message.split(" ", 1)[0] for finding in findings if finding.lint == INLINE}
    plain = defined_without(source, emitted)
    return [one for one in findings if one.lint != INLINE or one.message.split(" ", 1)[0] not in plain]


def _placed(findings: list[Finding], source: Path) -> list[Finding]:
    """With sources relative to the tree where the line tables have absolute paths into it."""
    root = f"{source.resolve()}/"
    return [one.model_copy(update={"source": one.source.removeprefix(root)}) if one.source else one for one in findings]
