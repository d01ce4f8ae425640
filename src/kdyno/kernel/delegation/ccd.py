"""ccd, the compiler's delegate: how a build calls it, and the records that it must leave. The program is
crates/delegate.

ccd stands before ccache: make calls ccd, ccd chooses a compiler and calls ccache with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.installed import find_program
from kdyno.kernel.delegation.records import FILE, ObjectRecord, Records, read_records
from kdyno.kernel.delegation.resolved import Resolved, ResolvedChoice
from kdyno.kernel.lkd import BINARY

COMPILER_WORD = "CC=ccd"
"""Stands in a plan for the compiler's delegate, wherever that is installed."""
LINK = "ccd"
"""The delegate's name in a build directory."""
COMMAND = re.compile(r"^(?:saved)?cmd_\S+ := (.*)$", re.M)
FOR_ALL = ("programs", "lint", "fallback", "assem", "profiles")
"""The parts of a plan that apply to all its rules. A program's path has the digest of its content."""
OUTSIDE = ("assembly code", "not code of the running kernel")
"""Reasons of ccd for passing a call through whatever the plan says."""
C_SOURCE = re.compile(r"\.c$")
SHOWN = 5


class RecordsIncomplete(InfrastructureError):
    message = "{compiled:,} objects were compiled, and ccd has a record of {recorded:,}: they differ in {names}"
    hint = (
        "if the build should go on without them: strict = false; these makefiles call the compiler in a way that ccd "
        "doesn't know"
    )


class ProfileUnused(UserError):
    message = "no object of this kernel is compiled by the profile `{name}`: none of its functions is in their sources"
    hint = "train on a kernel of the same source and configuration, or leave `{name}` out of `use`"


class ObjectStale(InfrastructureError):
    message = "{object} is not made as the delegation plan requires: it was made by {made}, not by {asked}"
    hint = "build again; if that doesn't help, kdyno and ccd are of different versions"


def make_words(words: Sequence[str], build: Path) -> tuple[str, ...]:
    """Put the delegate's path, a link in the build directory, where the plan has its name; no other CC= is left."""
    if COMPILER_WORD not in words:
        return tuple(words)
    link = build / LINK
    if not link.is_symlink():
        link.symlink_to(find_program(BINARY, "a delegation"))
    return (*(word for word in words if not word.startswith("CC=")), f"CC={link}")


def environment(build: Path, plan_file: Path, launcher: str) -> dict[str, str]:
    """Return the environment of ccd. `launcher` goes before compilers: ccache, or nothing."""
    return {"KDYNO_DELEGATION": str(plan_file), "KDYNO_RECORDS": str(build / FILE), "KDYNO_LAUNCHER": launcher}


def records(build: Path) -> Records:
    """Return the records that ccd has written so far in a build directory."""
    path = build / FILE
    return read_records(path) if path.exists() else Records()


def forget_changed(objects: Path, before: Resolved, after: Resolved) -> list[str]:
    """Remove the objects for which another plan chooses otherwise, so that make compiles them; return which."""
    changed = []
    is_alike = all(getattr(before, name) == getattr(after, name) for name in FOR_ALL)
    for record in records(objects.parent).objects:
        differs = not is_alike or before.choice_of(record.source) != after.choice_of(record.source)
        if is_kernel_code(record) and differs:
            (objects / record.object).unlink(missing_ok=True)
            changed.append(record.object)
    return changed


def is_kernel_code(record: ObjectRecord) -> bool:
    """Return whether rules apply to it: not assembly code, nor boot, real mode or vDSO code, which ccd passes
    through.
    """
    return record.answer != "passed" or record.reason not in OUTSIDE


def check(objects: Path, plan: Resolved, *, strict: bool) -> Records:
    """Return what made the objects of a finished build. Raise RecordsIncomplete (if strict), ObjectStale and
    ProfileUnused.
    """
    made = records(objects.parent)
    by_object = {record.object.removeprefix("./"): record for record in made.objects}
    if strict:
        _check_complete(compiled(objects), by_object)
    for record in made.objects:
        choice = plan.choice_of(record.source)
        if is_kernel_code(record) and not _agrees(record, choice, plan):
            asked = " ".join((choice.compiler, *choice.add))
            raise ObjectStale(object=record.object, made=" ".join((record.compiler, *record.added)), asked=asked)
    used = {name for record in made.objects for name in record.profiles}
    for profile in plan.profiles:
        if profile.name not in used:
            raise ProfileUnused(name=profile.name)
    return made


def _agrees(record: ObjectRecord, choice: ResolvedChoice, plan: Resolved) -> bool:
    if record.answer == "fallback":
        return plan.fallback
    same_way = record.by_assembler == choice.by_assembler or bool(record.notes)
    return record.compiler == choice.compiler and record.added == choice.add and same_way


def _check_complete(objects: set[str], recorded: Mapping[str, ObjectRecord]) -> None:
    """Raise RecordsIncomplete unless Kbuild and ccd know of the same objects that were made from C."""
    of_c = {name for name, record in recorded.items() if C_SOURCE.search(record.source)}
    if differing := sorted(objects ^ of_c):
        more = f" and {len(differing) - SHOWN} more" if len(differing) > SHOWN else ""
        names = f"{', '.join(differing[:SHOWN])}{more}"
        raise RecordsIncomplete(compiled=len(objects), recorded=len(of_c), names=names)


def compiled(objects: Path) -> set[str]:
    """Return the objects that Kbuild compiled from C with ccd, by the commands that it keeps next to them."""
    call = f"{objects.parent / LINK} "
    names = set()
    for kept in objects.rglob(".*.o.cmd"):
        match = COMMAND.match(kept.read_text(encoding="utf-8", errors="replace"))
        if match is None or call not in match[1]:
            continue
        words = match[1].partition(" ; ")[0].split()
        if "-c" in words and C_SOURCE.search(words[-1]) and "-o" in words:
            names.add(words[words.index("-o") + 1].removeprefix("./"))
    return names


def unused_rules(plan: Resolved, made: Records) -> list[str]:
    """Return the rules that decided for no object of this build: their files aren't part of this configuration."""
    used = {rule.name for record in made.objects if is_kernel_code(record) and (rule := plan.rule_of(record.source))}
    return [rule.name for rule in plan.rules if rule.name not in used]
