"""A delegation plan as written: rules that choose a compiler, flags and a way for files of the kernel."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, ValidationError, field_validator, model_validator

from kdyno.base import toml
from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.frozen import Frozen
from kdyno.base.mistakes import problems
from kdyno.base.names import absolute
from kdyno.kernel.delegation import globs

MOST_BYTES = 10_000_000
"""Bytes of a plan or a table."""
MOST_EXTENDS = 16
BUILT_IN = ("common", "used", "foreign")
"""The passes that ccd has: common symbols into .bss; symbols kept only by `used`; LLVM's own sections and
directives.
"""
COLUMNS = ("file", "compiler", "add", "remove")
"""Names of a table's columns; any others are for people."""

Words = tuple[Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^\S+$")], ...]
COMPILER = re.compile(r"(gcc|clang)(-\d+)?|zig")


def _is_compiler(name: str) -> str:
    if not COMPILER.fullmatch(name):
        raise ValueError(f"ccd knows no compiler `{name}`: gcc, gcc-12, clang, clang-19, zig")
    return name


CompilerName = Annotated[str, Field(max_length=40), AfterValidator(_is_compiler)]
PassName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=40)]


class PlanUnreadable(UserError):
    message = "can't read the delegation plan {path}: {why}"
    hint = "check the path: those in an experiment or a plan are relative to its file"


class BadPlan(UserError):
    message = "{path}: {problems}"
    hint = "see docs/delegation.md, or `kdyno schema delegation-plan` for editors"


class CyclicExtends(UserError):
    message = "the delegation plan {path} extends itself: {chain}"
    hint = "make it extend a plan that doesn't lead back to it"


class DelegationRule(Frozen):
    """A choice for some files. The first rule that matches a file decides."""

    files: tuple[Annotated[str, Field(min_length=1, max_length=1000)], ...] = ()
    """Globs on the source path, relative to the tree: `kernel/sched/*.c`, `mm/**`."""
    table: str | None = None
    """Instead of `files`: a CSV file with columns file, compiler, add and remove, one row for each file."""
    compiler: CompilerName | None = None
    """`gcc-11`, `clang-19`, `zig`; None: the recipe's toolchain."""
    add: Words = ()
    """Flags that are appended, as the chosen compiler spells them."""
    remove: Words = ()
    """Words of the call that are taken away, as Kbuild spells them."""
    by_assembler: bool = False
    """Compile to assembler, run the passes, and let GNU as make the object."""
    passes: tuple[PassName, ...] | None = None
    """Passes in this order; None: the plan's."""

    @field_validator("files")
    @classmethod
    def _are_globs(cls, files: tuple[str, ...]) -> tuple[str, ...]:
        for glob in files:
            globs.matches(glob, "")
        return files

    @model_validator(mode="after")
    def _says_which_files(self) -> Self:
        if bool(self.files) == (self.table is not None):
            raise ValueError("a rule has either files or a table")
        if self.table is not None and (self.compiler or self.add or self.remove):
            raise ValueError("the table says compiler, add and remove")
        if self.passes and not self.by_assembler:
            raise ValueError("passes need by_assembler = true")
        return self


class DelegationPlan(Frozen):
    """A delegation plan."""

    extends: str | None = None
    """Another plan, whose rules come after these."""
    compilers: tuple[CompilerName, ...] = ()
    """Compilers that the configuration must suit although no rule chooses them, so that kernels are comparable."""
    passes: tuple[PassName, ...] = ("common", "foreign")
    """Passes of rules by way of assembler that name none."""
    programs: dict[PassName, str] = {}
    """Passes of your own: programs that read assembler and write assembler."""
    strict: bool = True
    """Whether the build fails unless every compiled object is on record."""
    fallback: bool = False
    """Whether a file that the chosen compiler can't compile goes to the recipe's toolchain, and is listed."""
    assem: bool = False
    """Whether foo.c.S is kept next to the object; for looking at a build by hand, as kdyno keeps no objects."""
    lint: bool = False
    """Whether each object of the running kernel is checked for its compiler's mistakes; findings are on record."""
    rule: tuple[DelegationRule, ...] = ()

    @field_validator("programs")
    @classmethod
    def _are_not_built_in(cls, programs: dict[str, str]) -> dict[str, str]:
        for name in programs:
            if name in BUILT_IN:
                raise ValueError(f"{name} is a pass that ccd has: give yours another name")
        return programs

    def located(self, base: Path) -> DelegationPlan:
        """Return the plan with its paths absolute; relative ones start from `base`."""
        return self.model_copy(
            update={
                "extends": self.extends and absolute(self.extends, base),
                "programs": {name: absolute(path, base) for name, path in self.programs.items()},
                "rule": tuple(
                    rule.model_copy(update={"table": rule.table and absolute(rule.table, base)}) for rule in self.rule
                ),
            }
        )


def _kind(value: object) -> str:
    return "path" if isinstance(value, str) else "table"


PlanOrPath = Annotated[
    Annotated[str, Field(min_length=1), Tag("path")] | Annotated[DelegationPlan, Tag("table")], Discriminator(_kind)
]


def load(path: Path) -> DelegationPlan:
    """Return the plan in a file, with the plans that it extends. Raise PlanUnreadable, BadPlan and CyclicExtends."""
    return whole(read(path), (path.resolve(),))


def whole(plan: DelegationPlan, files: tuple[Path, ...] = ()) -> DelegationPlan:
    """Return the plan with those that it extends: its own rules first, its own settings where it has them. `files` led
    to it.
    """
    if plan.extends is None:
        return plan
    base_path = Path(plan.extends)
    if base_path in files or len(files) > MOST_EXTENDS:
        raise CyclicExtends(path=files[0], chain=" -> ".join(str(file) for file in (*files, base_path)))
    base = whole(read(base_path), (*files, base_path))
    own = {name: getattr(plan, name) for name in plan.model_fields_set - {"extends", "rule", "programs"}}
    rules = {"rule": (*plan.rule, *base.rule), "programs": {**base.programs, **plan.programs}, "extends": None}
    return base.model_copy(update={**own, **rules})


def read(path: Path) -> DelegationPlan:
    """Return the plan of one file, its paths absolute, without those that it extends."""
    try:
        written = toml.parse(_text(path))
    except ValueError as error:
        raise BadPlan(path=path, problems=f"not TOML: {error}") from error
    try:
        return DelegationPlan.model_validate(written).located(path.parent)
    except ValidationError as error:
        raise BadPlan(path=path, problems="\n".join(problems(error, DelegationPlan, written))) from None


def read_table(path: Path) -> list[DelegationRule]:
    """Return a measured table: one rule for each row, with the file that it names."""
    rows = csv.DictReader(io.StringIO(_text(path)), strict=True)
    rules = []
    try:
        if missing := [column for column in COLUMNS[:2] if column not in (rows.fieldnames or ())]:
            raise BadPlan(path=path, problems=f"the table has no column {missing[0]}")
        for row in rows:
            wanted = {column: (row.get(column) or "").strip() for column in COLUMNS}
            rule = {
                "files": (globs.escaped(wanted["file"]),),
                "compiler": wanted["compiler"] or None,
                "add": tuple(wanted["add"].split()),
                "remove": tuple(wanted["remove"].split()),
            }
            rules.append(DelegationRule.model_validate(rule))
    except csv.Error as error:
        raise BadPlan(path=path, problems=f"not CSV: line {rows.line_num}: {error}") from error
    except ValidationError as error:
        why = "; ".join(problems(error, DelegationRule, rule))
        raise BadPlan(path=path, problems=f"line {rows.line_num}: {why}") from None
    return rules


def _text(path: Path) -> str:
    try:
        return read_whole(path, MOST_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise PlanUnreadable(path=path, why=getattr(error, "strerror", None) or "it is not text") from error
