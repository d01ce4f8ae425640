"""Running kdyno-lint, and making a report of what it says."""

from __future__ import annotations

import json
import signal
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from kdyno.base import process
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.installed import find_program
from kdyno.base.mistakes import first_fault
from kdyno.base.text import clean
from kdyno.understand.lint.always_inline import always_inline_names, defined_without
from kdyno.understand.lint.costly import rules_for
from kdyno.understand.lint.model import LINTS, BegunRecord, FileRefused, LintFinding, LintReport, WithoutFunctions
from kdyno.understand.lint.targets import Targets

BINARY = "kdyno-lint"
MOST_SAID, LONGEST_SAID = 20, 500
"""Lines of a failed kdyno-lint that are said, its last, and characters of each."""
Begun = Callable[[str], None]
"""Hears the name of each file when it is looked through."""
INLINE = "always-inline-emitted"
COSTLY = "costly-instruction"
NEEDS = {INLINE: "--source TREE", COSTLY: "--family NAME"}
"""Lints that need more than the files."""
Told = LintFinding | FileRefused | WithoutFunctions
TOLD: TypeAdapter[Told | BegunRecord] = TypeAdapter(Told | BegunRecord)


class UnknownLint(UserError):
    message = "there is no lint {name}"
    hint = "lints: {known}"


class LintNeeds(UserError):
    message = "{lint} needs {option}"
    hint = "give it, or leave the lint out of --only"


class LintFailed(InfrastructureError):
    message = "kdyno-lint failed: {why}"
    hint = "`pip install .` in a kdyno checkout builds it anew"


class LintUnclear(InfrastructureError):
    message = "kdyno-lint and kdyno don't understand each other: {why}"
    hint = "they are of two releases: `pip install .` in a kdyno checkout builds it anew"


class LintKilled(InfrastructureError):
    message = "kdyno-lint was killed by signal {number} ({name})"
    hint = "the kernel does that where memory runs out (`dmesg` says so): free some, or name fewer files at a time"


@dataclass(frozen=True)
class LintOptions:
    """Which lints, and what some of them need."""

    only: Sequence[str] = ()
    """Empty: all."""
    source: Path | None = None
    family: str | None = None


def lint(targets: Targets, options: LintOptions, begun: Begun = lambda _: None) -> LintReport:
    """Look through the files; `begun` hears of each.

    Raises UnknownLint, LintNeeds, LintFailed, LintKilled, LintUnclear, and what the parts raise.
    """
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
        "functions": targets.functions,
        "is_whole": targets.is_whole,
        "always_inline": sorted(always_inline_names(options.source)) if options.source and INLINE in only else [],
        "costly": rules_for(options.family) if options.family and COSTLY in only else [],
    }
    told = _run(settings, begun)
    findings = [one for one in told if isinstance(one, LintFinding)]
    refused = [one for one in told if isinstance(one, FileRefused)]
    bare = [one for one in told if isinstance(one, WithoutFunctions)]
    if options.source:
        findings = _placed(_without_plain(findings, options.source), options.source)
    not_run = {name: option for name, option in NEEDS.items() if not options.only and not has[name]}
    return LintReport(
        files=len(targets.files) - len(refused),
        findings=tuple(findings),
        not_read=tuple(refused),
        not_run=not_run,
        without_functions=tuple(bare),
    )


def find_lint() -> Path:
    """The program that looks through objects; raises ProgramMissing."""
    return find_program(BINARY, "`kdyno kernel lint`")


def _run(settings: dict[str, object], begun: Begun) -> list[Told]:
    """What kdyno-lint tells, record by record. `begun` hears of a file when its turn comes."""
    told: list[Told] = []
    said: deque[str] = deque(maxlen=MOST_SAID)
    unclear: deque[str] = deque(maxlen=1)

    def hear(line: str) -> None:
        if not line.startswith("{"):
            said.append(line[:LONGEST_SAID])
            return
        try:
            record = TOLD.validate_json(line)
        except ValidationError as error:  # of one that was killed the last record is cut short
            unclear.append(first_fault(error, "a record"))
            return
        if isinstance(record, BegunRecord):
            begun(record.begun)
        else:
            told.append(record)

    with tempfile.TemporaryFile() as file:
        file.write(json.dumps(settings).encode(errors="surrogateescape"))
        file.seek(0)
        status = process.stream_lines([find_lint()], hear, stdin=file)
    if status < 0:
        raise LintKilled(number=-status, name=signal.strsignal(-status) or "unknown")
    if status != 0:
        raise LintFailed(why=clean(" ".join(said)) or f"status {status}")
    if unclear:
        raise LintUnclear(why=unclear[0])
    return told


def _without_plain(findings: list[LintFinding], source: Path) -> list[LintFinding]:
    """Without functions that are declared always_inline here and are plain functions of the same name there."""
    emitted = {finding.message.split(" ", 1)[0] for finding in findings if finding.lint == INLINE}
    plain = defined_without(source, emitted)
    return [one for one in findings if one.lint != INLINE or one.message.split(" ", 1)[0] not in plain]


def _placed(findings: list[LintFinding], source: Path) -> list[LintFinding]:
    """With sources relative to the tree where the line tables have absolute paths into it."""
    root = f"{source.resolve()}/"
    return [one.model_copy(update={"source": one.source.removeprefix(root)}) if one.source else one for one in findings]
