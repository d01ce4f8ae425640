"""From a plan as written to the one that ccd reads: compilers are found, tables read, rules checked against the
tree.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kdyno.base import process
from kdyno.base.digests import file_digest
from kdyno.base.errors import UserError
from kdyno.base.files import read_whole, write_whole
from kdyno.base.packages import install_advice
from kdyno.base.state import State
from kdyno.kernel import inputs, toolchain
from kdyno.kernel.delegation import globs
from kdyno.kernel.delegation.plan_file import BUILT_IN, DelegationPlan, DelegationRule, read_table
from kdyno.kernel.delegation.resolved import INPUT, Compiler, ProfileUse, Resolved, ResolvedRule
from kdyno.kernel.inputs import Input
from kdyno.kernel.toolchain import Toolchain

MOST_PROGRAM_BYTES = 100_000_000


class RuleWithoutFiles(UserError):
    message = "{rule} of the delegation plan matches nothing: {source} has no file {glob}"
    hint = "globs start at the top of the tree, and * stays within a directory: kernel/sched/*.c, mm/**{near}"


class FileGivenTwice(UserError):
    message = "the delegation plan has two choices for {file}: {first} and {second}"
    hint = "name a file in one rule, and in one row of one table"


class PassUnknown(UserError):
    message = "{rule} of the delegation plan wants the pass {name}, which is not one of {known}"
    hint = "add a pass of your own as a row of [programs]: NAME = PATH"


class ProgramUnfit(UserError):
    message = "the pass {name} can't run {path}: {why}"
    hint = "name a program (chmod +x) that reads assembler from standard input and writes it to standard output"


class ZigMissing(UserError):
    message = "zig is not installed, and the delegation plan names it"
    hint = "put zig on the PATH: its packages are at ziglang.org, and PyPI has one as `ziglang`"


class AssemblerMissing(UserError):
    message = "GNU as is not installed, and the delegation plan needs it"
    hint = "{way}"


@dataclass(frozen=True)
class Resolution:
    """A plan that this host can carry out."""

    plan: Resolved
    input: Input
    """The plan's file, kept in the state directory."""
    compilers: tuple[str, ...]
    """The facts that decide configuration and objects besides rules and reference: each compiler's own description,
    with its digest, and whether it is asked with GNU as.
    """


def resolve(
    written: DelegationPlan,
    tree: Path,
    source: str,
    reference: Toolchain,
    state: State,
    profiles: tuple[ProfileUse, ...] = (),
) -> Resolution:
    """Check a plan against this host and a kernel tree. `source` names the tree in messages.

    Raise CompilerMissing, ZigMissing, AssemblerMissing, RuleWithoutFiles, FileGivenTwice, PassUnknown, ProgramUnfit,
    and the errors of reading tables.
    """
    rules = [named for number, rule in enumerate(written.rule, start=1) for named in _rules(rule, number, written)]
    reference_name = reference.identity.name
    by_rules = (rule.compiler or reference_name for _, rule in rules)
    names = dict.fromkeys([reference_name, *written.compilers, *by_rules])
    compilers = {name: _compiler(name, state) for name in names}
    _check_files(rules, tree, source)
    resolved = [
        ResolvedRule(
            name=name,
            files=rule.files,
            compiler=rule.compiler or reference_name,
            add=rule.add,
            remove=rule.remove,
            by_assembler=rule.by_assembler,
            passes=rule.passes or () if rule.by_assembler else (),
        )
        for name, rule in rules
    ]
    programs = {name: _program(name, path, state) for name, path in _wanted_programs(resolved, written).items()}
    assembler, assembler_identity = _assembler(reference, state)
    needs_assembler = any(rule.by_assembler for rule in resolved)
    plan = Resolved(
        reference=reference_name,
        compilers={name: compiler for name, (compiler, _) in compilers.items()},
        assembler=(assembler,),
        held=len(compilers) > 1,
        fallback=written.fallback,
        assem=written.assem,
        lint=written.lint,
        programs={name: (str(file.path),) for name, file in programs.items()},
        rules=tuple(resolved),
        profiles=profiles,
    )
    content = plan.content_digest({name: file.digest for name, file in programs.items()})
    kept = inputs.kept_at(content, state)
    if not kept.exists():
        write_whole(kept, plan.model_dump_json(indent=1))
    identities = [identity for name, (_, identity) in sorted(compilers.items()) if name != reference_name]
    return Resolution(
        plan=plan,
        input=Input(name=INPUT, digest=content, path=kept),
        compilers=(*identities, *([assembler_identity] if needs_assembler else []), *_asked_with_as(resolved)),
    )


def _asked_with_as(rules: Iterable[ResolvedRule]) -> list[str]:
    """Return the compilers that are used only by way of assembler: ccd asks them about GNU as's abilities."""
    rules_of: dict[str, list[bool]] = defaultdict(list)
    for rule in rules:
        rules_of[rule.compiler].append(rule.by_assembler)
    return sorted(f"{name} by way of assembler only" for name, ways in rules_of.items() if all(ways))


def _rules(rule: DelegationRule, number: int, plan: DelegationPlan) -> list[tuple[str, DelegationRule]]:
    """Return the rule with its name and its passes; a table becomes one rule for each choice that it holds."""
    name = f"rule {number}"
    passes = plan.passes if rule.passes is None else rule.passes
    if rule.table is None:
        return [(name, rule.model_copy(update={"passes": passes}))]
    by_choice: dict[tuple[str, Sequence[str], Sequence[str]], list[str]] = defaultdict(list)
    for row in read_table(Path(rule.table)):
        by_choice[row.compiler or "", row.add, row.remove] += row.files
    update = {"passes": passes, "by_assembler": rule.by_assembler}
    return [
        (
            f"{name} ({' '.join((compiler or 'reference', *add))})",
            DelegationRule(
                files=tuple(sorted(files)), compiler=compiler or None, add=tuple(add), remove=tuple(remove)
            ).model_copy(update=update),
        )
        for (compiler, add, remove), files in sorted(by_choice.items())
    ]


def _check_files(rules: Iterable[tuple[str, DelegationRule]], tree: Path, source: str) -> None:
    """Check that every glob matches a file of the tree, and that no file has two different choices."""
    named: dict[str, tuple[str, DelegationRule]] = {}
    paths = source_files(tree)
    known = frozenset(paths)
    for name, rule in rules:
        for glob in rule.files:
            if glob not in known and not any(True for _ in globs.matching(glob, paths)):
                raise RuleWithoutFiles(rule=name, source=source, glob=glob, near=_near(glob, tree))
            if not globs.is_path(glob):
                continue
            before = named.setdefault(glob, (name, rule))
            if before[1] is not rule or rule.files.count(glob) > 1:
                raise FileGivenTwice(file=glob, first=_choice(*before), second=_choice(name, rule))


def _choice(name: str, rule: DelegationRule) -> str:
    """Return the choice that a rule makes for a file, for a message."""
    return f"{' '.join((rule.compiler or 'the reference', *rule.add))} ({name.partition(' (')[0]})"


def _near(glob: str, tree: Path) -> str:
    """Return the directory that a glob of an object directory's or an absolute path may have meant."""
    parts = Path(glob).parts
    for start in range(1, len(parts)):
        if (tree / Path(*parts[start:])).is_file():
            return f"; is it {Path(*parts[start:])}?"
    return ""


@lru_cache(maxsize=4)
def source_files(tree: Path) -> tuple[str, ...]:
    """Return the C files of a kernel tree, relative to it; about 35,000, in half a second."""
    return tuple(sorted(str(path.relative_to(tree)) for path in tree.rglob("*.c")))


def _wanted_programs(rules: Iterable[ResolvedRule], plan: DelegationPlan) -> dict[str, str]:
    """Return the programs that rules name; every other pass has to be a built-in one."""
    wanted = {}
    for rule in rules:
        for name in rule.passes:
            if name in plan.programs:
                wanted[name] = plan.programs[name]
            elif name not in BUILT_IN:
                raise PassUnknown(rule=rule.name, name=name, known=", ".join((*BUILT_IN, *plan.programs)))
    return wanted


def _program(name: str, path: str, state: State) -> Input:
    """Return a copy of a pass's program, so that a build runs the planned one."""
    try:
        content = read_whole(Path(path), MOST_PROGRAM_BYTES)
    except OSError as error:
        raise ProgramUnfit(name=name, path=path, why=error.strerror) from error
    if shutil.which(path) is None:
        raise ProgramUnfit(name=name, path=path, why="it is not executable")
    digest = hashlib.sha256(content).hexdigest()
    kept = inputs.kept_at(digest, state)
    if not kept.exists():
        write_whole(kept, content)
    kept.chmod(0o755)
    return Input(name="program", digest=digest, path=kept)


def _compiler(name: str, state: State) -> tuple[Compiler, str]:
    """Return a compiler, and its own description."""
    if name == "zig":
        return _zig(state)
    identity = toolchain.find(name, state).identity
    family = "clang" if identity.family == "clang" else "gcc"
    return Compiler(family=family, command=(name,)), f"{name} {identity.version} {identity.digest}"


def _zig(state: State) -> tuple[Compiler, str]:
    path = shutil.which("zig")
    if path is None:
        raise ZigMissing()
    version = process.output([path, "version"]).strip()
    return Compiler(family="clang", command=("zig", "cc")), f"zig {version} {file_digest(Path(path).resolve(), state)}"


def _assembler(reference: Toolchain, state: State) -> tuple[str, str]:
    """Return GNU as, the one that the reference calls if that is gcc: its name, and its identity."""
    name = "as"
    if not reference.is_clang:
        name = process.output([reference.command, "-print-prog-name=as"]).strip() or name
    path = shutil.which(name)
    if path is None:
        raise AssemblerMissing(way=install_advice("binutils"))
    return name, f"as {file_digest(Path(path).resolve(), state)}"
