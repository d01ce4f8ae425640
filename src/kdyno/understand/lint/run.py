"""Runs kdyno-lint, and makes a report of its records."""

from __future__ import annotations

import json
import signal
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from kdyno.base import process
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.installed import find_program
from kdyno.base.mistakes import first_fault
from kdyno.base.text import clean
from kdyno.measure.cycles.instruction_costs import InstructionCosts, read_costs
from kdyno.understand.lint.always_inline import always_inline_names, defined_without
from kdyno.understand.lint.costly import measured_rules, rules_for
from kdyno.understand.lint.load import load_steps
from kdyno.understand.lint.model import (
    LINTS,
    BegunRecord,
    FileRefused,
    LibraryLeftOut,
    LintFinding,
    LintReport,
    WithoutFunctions,
)
from kdyno.understand.lint.targets import Targets

BINARY = "kdyno-lint"
MOST_SAID, LONGEST_SAID = 20, 500
"""The number of last lines of a failed kdyno-lint in messages, and the most characters of each."""
Begun = Callable[[str], None]
"""Receives the name of each file when its check begins."""
INLINE = "always-inline-emitted"
COSTLY = "costly-instruction"
NEEDS = {INLINE: "--source TREE", COSTLY: "--family NAME or --costs FILE"}
"""The options of lints that need more than the files."""
Told = LintFinding | FileRefused | WithoutFunctions | LibraryLeftOut
TOLD: TypeAdapter[Told | BegunRecord] = TypeAdapter(Told | BegunRecord)

FILE_OF = {
    LintFinding: "file",
    FileRefused: "refused",
    WithoutFunctions: "without_functions",
    LibraryLeftOut: "with_library",
}
"""By record: its field with the name of a file."""


class UnknownLint(UserError):
    message = "{name} is not the name of a lint"
    hint = "choose one of {known}"


class LintNeeds(UserError):
    message = "{lint} needs {option}"
    hint = "pass {option}, or remove the lint from --only"


class LoadNeedsCosts(UserError):
    message = "--profile orders costly instructions, and nothing says what is costly"
    hint = "pass --family NAME or --costs FILE, too"


class CostsOfNothing(UserError):
    message = "{options} is about {lint}, which --only leaves out"
    hint = "add {lint} to --only, or remove {options}"


class LintFailed(InfrastructureError):
    message = "kdyno-lint failed: {why}"
    hint = "run `pip install .` in a kdyno checkout to build it again"


class LintUnclear(InfrastructureError):
    message = "kdyno cannot read the output of kdyno-lint: {why}"
    hint = "run `pip install .` in a kdyno checkout to install both from one release"


class LintKilled(InfrastructureError):
    message = "kdyno-lint was killed by signal {number} ({name})"
    hint = "free memory, or name fewer files: the kernel kills programs when memory runs out (see `dmesg`)"


@dataclass(frozen=True)
class LintOptions:
    """The selected lints and their options."""

    only: Sequence[str] = ()
    """The selected lints; empty: all."""
    source: Path | None = None
    family: str | None = None
    costs: Path | None = None
    """A file of `kdyno lab instructions -o`."""
    profile: Path | None = None
    """A PMU record: which costly instructions are executed, and how often."""

    @property
    def has_costs(self) -> bool:
        return self.family is not None or self.costs is not None


def lint(targets: Targets, options: LintOptions, on_begin: Begun = lambda _: None) -> LintReport:
    """Check the files; `on_begin` receives the name of each.

    Raises UnknownLint, LintNeeds, LoadNeedsCosts, CostsOfNothing, LintFailed, LintKilled, LintUnclear, and what the
    parts raise.
    """
    unknown = [name for name in options.only if name not in LINTS]
    if unknown:
        raise UnknownLint(name=unknown[0], known=", ".join(LINTS))
    has_option = {INLINE: options.source is not None, COSTLY: options.has_costs}
    for name, option in NEEDS.items():
        if name in options.only and not has_option[name]:
            raise LintNeeds(lint=name, option=option)
    if options.profile and not options.has_costs:
        raise LoadNeedsCosts
    if options.only and COSTLY not in options.only and options.has_costs:
        raise CostsOfNothing(options="--costs" if options.costs else "--family", lint=COSTLY)
    only = [name for name in LINTS if (name in options.only or not options.only) and has_option.get(name, True)]
    costs = read_costs(options.costs) if options.costs and COSTLY in only else None
    settings = {
        "files": targets.files,
        "only": only,
        "symbols": targets.symbols,
        "functions": targets.functions,
        "is_whole": targets.is_whole,
        "always_inline": sorted(always_inline_names(options.source)) if options.source and INLINE in only else [],
        "costly": _costly(options, costs) if COSTLY in only else [],
        "executions": load_steps(options.profile, targets.files) if options.profile and COSTLY in only else None,
    }
    names = targets.names
    records = [_by_origin(record, names) for record in _run(settings, lambda file: on_begin(names.get(file, file)))]
    findings = [one for one in records if isinstance(one, LintFinding)]
    refused = [one for one in records if isinstance(one, FileRefused)]
    without_functions = [one for one in records if isinstance(one, WithoutFunctions)]
    left_out = [one for one in records if isinstance(one, LibraryLeftOut)]
    if options.source:
        findings = _make_relative(_drop_plain(findings, options.source), options.source)
    findings.sort(key=_weight)
    not_run = {name: option for name, option in NEEDS.items() if not options.only and not has_option[name]}
    return LintReport(
        files=len(targets.files) - len(refused),
        findings=tuple(findings),
        not_read=tuple(refused),
        not_run=not_run,
        without_functions=tuple(without_functions),
        left_out=tuple(left_out),
        costs_of=costs.cpu if costs else None,
    )


def _costly(options: LintOptions, costs: InstructionCosts | None) -> list[dict[str, object]]:
    """Return the rules of the processor or of the family. Raises NothingKnown and NothingCostly."""
    if options.costs and costs:
        return measured_rules(costs, options.costs)
    return rules_for(options.family) if options.family else []


def _weight(finding: LintFinding) -> tuple[bool, float, float]:
    """Return the key by which the findings with most to save, or that are executed most, come first among the costly
    instructions, after all other findings."""
    return finding.lint == COSTLY, -(finding.cycles or 0), -(finding.executions or 0)


def _by_origin(record: Told, names: Mapping[str, str]) -> Told:
    """Return the record with the file that an unpacked one is from."""
    key = FILE_OF[type(record)]
    file = getattr(record, key)
    return record.model_copy(update={key: names[file]}) if file in names else record


def find_lint() -> Path:
    """Find the program that checks objects. Raises ProgramMissing."""
    return find_program(BINARY, "`kdyno kernel lint`")


def _run(settings: dict[str, object], on_begin: Begun) -> list[Told]:
    """Run kdyno-lint, and return its records. `on_begin` receives the name of a file when its check begins."""
    records: list[Told] = []
    last_lines: deque[str] = deque(maxlen=MOST_SAID)
    unclear: deque[str] = deque(maxlen=1)

    def on_line(line: str) -> None:
        if not line.startswith("{"):
            last_lines.append(line[:LONGEST_SAID])
            return
        try:
            record = TOLD.validate_json(line)
        except ValidationError as error:  # the last record is incomplete if the program was killed
            unclear.append(first_fault(error, "a record"))
            return
        if isinstance(record, BegunRecord):
            on_begin(record.begun)
        else:
            records.append(record)

    with tempfile.TemporaryFile() as file:
        file.write(json.dumps(settings).encode(errors="surrogateescape"))
        file.seek(0)
        status = process.stream_lines([find_lint()], on_line, stdin=file)
    if status < 0:
        raise LintKilled(number=-status, name=signal.strsignal(-status) or "unknown")
    if status != 0:
        raise LintFailed(why=clean(" ".join(last_lines)) or f"status {status}")
    if unclear:
        raise LintUnclear(why=unclear[0])
    return records


def _drop_plain(findings: list[LintFinding], source: Path) -> list[LintFinding]:
    """Return the findings without functions that the source also defines without always_inline under the same name."""
    emitted = {finding.message.split(" ", 1)[0] for finding in findings if finding.lint == INLINE}
    plain = defined_without(source, emitted)
    return [one for one in findings if one.lint != INLINE or one.message.split(" ", 1)[0] not in plain]


def _make_relative(findings: list[LintFinding], source: Path) -> list[LintFinding]:
    """Return the findings with sources relative to the tree, if the line tables have absolute paths into it."""
    root = f"{source.resolve()}/"
    return [one.model_copy(update={"source": one.source.removeprefix(root)}) if one.source else one for one in findings]
