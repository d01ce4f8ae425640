"""The families of library routines and their candidates, as data/lab/families has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from kdyno.base import toml
from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.base.text import clean
from kdyno.kernel.image import ArchName

Mode = Literal["warm", "cold", "used"]
"""warm: the memory is in the caches. cold: it was flushed from them before the call. used: it is warm, and each line
that a call wrote is read after it.
"""
Offsets = tuple[Annotated[int, Field(ge=0, lt=64)], Annotated[int, Field(ge=0, lt=64)]]
"""Of the written and of the read address, in bytes; a family may use them for something else."""
SizeClass = tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]]
"""The smallest and the largest size."""
DATA = Path(str(files("kdyno"))) / "data" / "lab"
MOST_SIZE = 1 << 20
"""MOST_SIZE of data/lab/harness/timing.c."""


class UnknownRoutine(UserError):
    message = "{name!r} is not a family of routines"
    hint = "{nearest}choose from {known}"


class UnknownCandidate(UserError):
    message = "{family} has no candidate {name!r}"
    hint = "{nearest}choose from {known}"


class Contract(Frozen):
    """What a routine promises beyond its result, and what it asks for."""

    overlap: Literal["undefined", "does not apply", "as if the memory was read before it is written"]
    """The result where the read and the written memory overlap."""
    reads_beyond: Literal["nothing", "within the page", "recovered word"]
    """The memory outside of its arguments that a routine reads: none; bytes in the page of its arguments; or the rest
    of a word that may be in a page without memory.
    """
    faults: str
    """What happens if memory is missing."""
    flags: str
    """The flags of the processor that it leaves as they were."""
    vectors: Literal["none"]
    """The vector registers that it uses: those belong to user space."""


class SourceEdit(Frozen):
    """A change of one function of a kernel source, by which a kernel takes a candidate."""

    file: str
    """The file in the source."""
    function: str
    """The function of the file that changes."""
    way: Literal["text", "rewrite", "remove"]
    """text: `old` becomes `new`; rewrite: the candidate's function takes its place; remove: nothing does."""
    old: str = ""
    """Text that is in the function once."""
    new: str = ""
    arches: tuple[ArchName, ...] = ("x86_64", "um")
    """The architectures that need it: a kernel for `um` never patches its ALTERNATIVEs."""


class RoutineSource(Frozen):
    """One source of a routine, with what it is compiled by."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    origin: Literal["kernel", "kdyno"]
    """kernel: `file` is in the user's kernel source; kdyno: in data/lab/rewrites."""
    file: str
    entry: str
    """The symbol of the routine."""
    rewrite: str | None = None
    """A file of data/lab/rewrites whose function takes the place of the one in `file`, as `edit` has it."""
    wrapper: str | None = None
    """A file of data/lab/wrappers that includes `file`, for a function that is static there."""
    words: tuple[str, ...] = ()
    """More words for the compiler."""
    sets: tuple[str, ...] = ("gcc",)
    """The option sets that it is compiled with; an assembler file needs one."""
    features: tuple[str, ...] = ()
    """The features whose ALTERNATIVEs are taken: FSRM of X86_FEATURE_FSRM."""
    cpu_flags: tuple[str, ...] = ()
    """The flags of /proc/cpuinfo without which it can't run."""
    chosen_if: tuple[str, ...] | None = None
    """The flags of /proc/cpuinfo with which a kernel takes it; None: a kernel never does."""
    contract: Contract
    edit: tuple[SourceEdit, ...] = ()
    """The changes of a source by which a kernel takes it; none: kdyno has no patch for it."""

    def edits_for(self, arch: ArchName) -> tuple[SourceEdit, ...]:
        """Return the changes for an architecture."""
        return tuple(edit for edit in self.edit if arch in edit.arches)


class ProofBounds(Frozen):
    """How far a proof goes."""

    least: int = 0
    exhaustive: int
    """All sizes from `least` to this one, at all offsets."""
    offsets: Annotated[int, Field(ge=1, le=64)]
    cases: int
    """Random cases behind the exhaustive ones."""
    most: Annotated[int, Field(le=1 << 16)]
    """The largest size of a random case."""
    sample: int
    """The largest exhaustive size of a sample, which takes seconds."""
    faults: Annotated[int, Field(ge=0, le=4096)] = 0
    """The largest size of a call with a fault at each of its bytes; 0: no fault of this family is recovered."""


class SymbolicBounds(Frozen):
    """The calls of a proof for every content (understand/lab/symbolic.py)."""

    least: int
    most: int
    """All sizes from `least` to this one."""
    larger: tuple[int, ...] = ()
    """Single larger sizes, in order: turns of a routine's loops."""
    offsets: tuple[Offsets, ...]
    salts: tuple[int, ...] = ()
    """Numbers that the definition makes arguments of; none: any number."""
    ends_with_zero: bool = False
    """Whether the last byte of the memory is zero: a size then stands for all texts up to it."""
    at_page_end: bool = False
    """Whether each size is also proven where the read memory ends with its page."""
    folds_sums: bool = False
    """Whether a result is a sum that `normalise` of the harness folds to 16 bits (understand/lab/sum_program.py)."""

    def words(self, unit: str) -> str:
        """Return what is proven, in words; `unit` is what a size counts."""
        if self.ends_with_zero:
            sizes = f"texts of up to {self.most} {unit}"
        else:
            sizes = f"sizes from {self.least} to {self.most}" if self.least < self.most else f"size {self.most}"
        sizes += f" and {len(self.larger)} larger ones up to {self.larger[-1]}" if self.larger else ""
        places = f"{len(self.offsets)} pairs of offsets{' and at the end of a page' if self.at_page_end else ''}"
        return f"{sizes} at {places}{', as sums that are folded to 16 bits' if self.folds_sums else ''}"


class CallSymbols(Frozen):
    """How the calls of a family are seen in a kernel."""

    entries: tuple[str, ...]
    """The symbols where calls begin, in any kernel."""
    parts: tuple[str, ...]
    """The symbols of code that the entries jump to or call; routines may share it."""
    extent: Literal["written", "read"]
    """The memory whose extent is the size."""
    beyond: int
    """The bytes of that memory that the size doesn't count: the zero at the end of a text."""
    user: Literal["read", "written"] | None = None
    """The memory that belongs to user space, which distinguishes routines with the same entries; None: any."""
    inlined_as: str = ""
    """What a kernel has in the place of each call, on some processors; empty: it never does."""


class CountedRoutine(Frozen):
    """A routine whose calls are counted: a family, or a row of data/lab/counted.toml."""

    name: str
    size: str
    """What a size counts."""
    calls: CallSymbols


class RoutineFamily(Frozen):
    """Routines with one definition, data/lab/harness/families/NAME.c."""

    name: str
    about: str
    size: str
    """What a size counts."""
    offsets_meaning: str
    sizes: tuple[int, ...]
    """The sizes of the heat map."""
    offsets: tuple[Offsets, ...]
    modes: tuple[Mode, ...]
    classes: tuple[SizeClass, ...]
    """Sizes that are judged together, mixed."""
    note: str = ""
    """What its figures don't include."""
    arches: tuple[ArchName, ...] = ("x86_64", "um")
    """The architectures whose kernels have this routine."""
    calls: CallSymbols | None = None
    """None: its calls can't be told from its accesses to memory."""
    counted_as: tuple[str, ...] = ()
    """The rows of data/lab/counted.toml that are calls of this family."""
    proof: ProofBounds
    symbolic: SymbolicBounds | None = None
    """None: no tool here follows its definition with every content."""
    candidate: tuple[RoutineSource, ...]

    @property
    def harness(self) -> Path:
        """The definition of the family."""
        return DATA / "harness" / "families" / f"{self.name}.c"

    def kernel_choice(self, cpu_flags: frozenset[str]) -> RoutineSource:
        """Return the candidate that a kernel takes on a processor with these flags: the last one that it may take."""
        usable = [
            candidate
            for candidate in self.candidate
            if candidate.chosen_if is not None and cpu_flags.issuperset(candidate.chosen_if)
        ]
        return usable[-1]

    def candidate_named(self, name: str) -> RoutineSource:
        """Return a candidate. Raises UnknownCandidate."""
        by_name = {candidate.name: candidate for candidate in self.candidate}
        if name not in by_name:
            known = ", ".join(by_name)
            raise UnknownCandidate(family=self.name, name=clean(name), nearest=_nearest(name, by_name), known=known)
        return by_name[name]


def flags_that_choose(arch: ArchName, cpu_flags: frozenset[str]) -> frozenset[str]:
    """Return the flags of the processor that a kernel of an architecture chooses its routines by: `um` has none."""
    return cpu_flags if arch == "x86_64" else frozenset()


@cache
def routine_families() -> dict[str, RoutineFamily]:
    """Return all families by name."""
    paths = sorted((DATA / "families").glob("*.toml"))
    rows = [RoutineFamily.model_validate(toml.parse(path.read_text(encoding="utf-8"))) for path in paths]
    return {family.name: family for family in rows}


@cache
def counted_routines() -> tuple[CountedRoutine, ...]:
    """Return the routines whose calls are counted, by name."""
    families = [
        CountedRoutine(name=family.name, size=family.size, calls=family.calls)
        for family in routine_families().values()
        if family.calls
    ]
    rows = toml.parse((DATA / "counted.toml").read_text(encoding="utf-8"))["routine"]
    others = [CountedRoutine.model_validate(row) for row in rows]
    return tuple(sorted((*families, *others), key=lambda routine: routine.name))


def find_families(names: Sequence[str]) -> list[RoutineFamily]:
    """Return the named families, or all. Raises UnknownRoutine."""
    known = routine_families()
    for name in names:
        if name not in known:
            raise UnknownRoutine(name=clean(name), nearest=_nearest(name, known), known=", ".join(known))
    return [known[name] for name in names] if names else list(known.values())


def _nearest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]}? " if near else ""
