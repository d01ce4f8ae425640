"""CPU families: the hardware that the plugin emulates, and the weights that turn its events into cycles.

A family is one TOML file, either kdyno's own (`data/families/NAME.toml`) or a user's (`file:PATH`, as `kdyno calibrate`
writes it).
"""

from __future__ import annotations

import difflib
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from kdyno.base import toml
from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.frozen import Frozen
from kdyno.base.mistakes import problems
from kdyno.measure.cycles.events import EVENTS
from kdyno.measure.cycles.gains import SiliconGain, gains_note

FILE = "file:"
MOST_BYTES = 1_000_000

Count = Annotated[int, Field(ge=1, le=1 << 20, strict=True)]
Cycles = Annotated[int, Field(ge=0, le=10_000, strict=True)]
SomeCycles = Annotated[int, Field(ge=1, le=10_000, strict=True)]
Weight = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]


class UnknownFamily(UserError):
    message = "there is no CPU family {name}"
    hint = "did you mean {near}? Families: {known}, or file:PATH"


class BadFamily(UserError):
    message = "{path}: {why}"
    hint = "docs/cycle-model.md describes the file; `kdyno calibrate -o FILE` writes one"


class Cache(Frozen):
    """A set-associative cache with lines of 64 bytes."""

    size: Annotated[int, Field(ge=1024, le=1 << 32, strict=True)]
    """Bytes."""
    ways: Count
    line: Literal[64] = 64

    @model_validator(mode="after")
    def _has_whole_sets(self) -> Cache:
        if self.size % (self.ways * self.line):
            raise ValueError(f"{self.size} bytes are not a whole number of sets of {self.ways} lines")
        return self


class Tlb(Frozen):
    """First-level translations: a fully associative table for each size of page."""

    entries_4k: Annotated[int, Field(ge=1, le=4096, strict=True)]
    entries_2m: Annotated[int, Field(ge=1, le=4096, strict=True)]


class SecondTlb(Frozen):
    """Second-level translations, of both sizes of page."""

    entries: Count
    ways: Count

    @model_validator(mode="after")
    def _has_whole_sets(self) -> SecondTlb:
        if self.entries % self.ways:
            raise ValueError(f"{self.entries} entries are not a whole number of sets of {self.ways}")
        return self


class Frontend(Frozen):
    """The part between the first cache of instructions and dispatch."""

    queue: Annotated[int, Field(ge=1, le=1024, strict=True)]
    """Blocks that the predictor can be ahead."""
    misses: Annotated[int, Field(ge=1, le=256, strict=True)]
    """Lines that can be on their way into the first cache."""
    decoders: Annotated[int, Field(ge=1, le=16, strict=True)]
    """Instructions that are decoded in a cycle."""
    bytes: Annotated[int, Field(ge=8, le=128, strict=True)]
    """Bytes of instructions that are decoded in a cycle."""
    ops: Annotated[int, Field(ge=0, le=1024, strict=True)]
    """The most ops that wait for their dispatch."""
    op_cache: Annotated[int, Field(ge=0, le=1 << 17, strict=True)]
    """Ops that the op cache holds; 0: there is no op cache."""
    op_cache_ways: Annotated[int, Field(ge=0, le=64, strict=True)]
    op_cache_width: Annotated[int, Field(ge=0, le=16, strict=True)]
    """Ops that the op cache delivers in a cycle: those of an entry."""
    btb: Count
    """Branches whose targets are known."""
    btb_ways: Count

    @model_validator(mode="after")
    def _has_whole_sets(self) -> Frontend:
        if self.op_cache and (
            not (self.op_cache_ways and self.op_cache_width)
            or self.op_cache % (self.op_cache_width * self.op_cache_ways)
        ):
            raise ValueError(f"{self.op_cache} ops are not a whole number of sets of {self.op_cache_ways} entries")
        if self.btb % self.btb_ways:
            raise ValueError(f"{self.btb} branches are not a whole number of sets of {self.btb_ways}")
        return self


class Predictor(Frozen):
    """TAGE for conditional branches, targets by history for indirect ones, a stack for returns."""

    kind: Literal["tage"]
    table_bits: Annotated[int, Field(ge=6, le=24, strict=True)]
    btb_bits: Annotated[int, Field(ge=2, le=24, strict=True)]
    return_stack: Annotated[int, Field(ge=1, le=1024, strict=True)]


class Prefetcher(Frozen):
    """A prefetcher that follows that many sequences of lines at once."""

    streams: Annotated[int, Field(ge=0, le=64, strict=True)]


UnitCount = Annotated[int, Field(ge=1, le=16, strict=True)]


class Units(Frozen):
    """Operations of each kind that can start in a cycle."""

    alus: UnitCount
    """Integer arithmetic, which the next three are parts of."""
    shifters: UnitCount
    """Shifts, rotations, bit tests, and additions of three parts."""
    multipliers: UnitCount
    conditions: UnitCount
    """Conditional moves and sets."""
    branches: UnitCount
    loads: UnitCount
    accesses: UnitCount
    """Loads and stores."""
    forwards: UnitCount
    """Loads of what a store has not put into the cache yet."""
    store_queue: Annotated[int, Field(ge=1, le=1024, strict=True)]
    """The most stores that wait for their turn to be put into the cache."""


class Rep(Frozen):
    """Cycles of a REP string instruction of one kind, during which nothing else is dispatched."""

    short: Annotated[int, Field(ge=1, le=10_000, strict=True)]
    """Up to `short_bytes` bytes."""
    short_bytes: Annotated[int, Field(ge=0, le=1 << 20, strict=True)]
    long: Annotated[int, Field(ge=1, le=10_000, strict=True)]
    """Beyond; one more for each `bytes` bytes."""
    bytes: Annotated[int, Field(ge=1, le=1024, strict=True)]


class Reps(Frozen):
    """Cycles of REP string instructions, by kind."""

    moves: Rep
    word_moves: Rep
    """Moves of eight bytes at a time."""
    stores: Rep
    word_stores: Rep
    """Stores of four or eight bytes at a time."""


class Latency(Frozen):
    """Cycles, of the emulated processor."""

    l1: SomeCycles
    """From an address to its data, by the level that holds them."""
    l2: Cycles
    llc: Cycles
    memory: SomeCycles
    forward: Cycles
    """From stored data to a load of them."""
    renamed: Cycles
    """The same, if the load moves exactly what one store stored into a register."""
    stlb: Cycles
    """Added if only the second TLB has the translation."""
    walk: Cycles
    """Added if only the page tables have it."""
    decode: Cycles
    """From a line's bytes to its first instruction; the op cache saves it."""
    resteer: Cycles
    """From decoding a taken branch that wasn't known to the block at its target."""
    call: SomeCycles
    """From a call or a return to what follows it, even if it was predicted."""
    scan: Annotated[int, Field(ge=1, le=100, strict=True)]
    """Of an instruction that looks for a set bit, or counts them."""
    mispredicted: Cycles
    """From detecting a mispredicted branch to the next instruction."""
    divide: Cycles
    locked: Cycles
    """From one locked instruction to the next."""
    fence: Cycles
    """From an lfence to the next instruction."""

    @model_validator(mode="after")
    def _grows(self) -> Latency:
        if not self.l1 <= self.l2 <= self.llc <= self.memory:
            raise ValueError("l1, l2, llc and memory must not get shorter")
        return self


class GuestCpu(Frozen):
    """The CPU that a guest is given, so that its kernel takes the same paths as on the family's CPUs."""

    qemu: Annotated[str, Field(min_length=1)]
    """The value of QEMU's -cpu: a model that QEMU 7.2 emulates, without the features that newer versions would add to
    it.
    """
    vendor: Literal["AuthenticAMD", "GenuineIntel"]
    smap: bool
    """Whether the CPU keeps the kernel from user memory except where it means to read or write it (SMAP)."""
    pti: bool
    """Whether these CPUs need isolated page tables (CVE-2017-5754, Meltdown)."""
    cmdline: tuple[str, ...] = ()
    """Kernel parameters for facts that QEMU can't show a kernel under TCG, such as that a CPU needs no mitigation."""


class Model(Frozen):
    """Cycles per event, and their known errors."""

    version: Annotated[int, Field(ge=1, strict=True)]
    basis: Literal["calibrated", "default"]
    """`calibrated`: fitted to times of a real CPU; `default`: from published latencies."""
    source: str
    cpu: str | None = None
    """Calibrated: the CPU that was timed, by the name that it gives itself."""
    date: str | None = None
    programs: int | None = None
    """Calibrated: the number of programs that the weights were not fitted to. The next two are about these programs."""
    spearman: float | None = None
    """Calibrated: rank correlation of modelled and native cycles."""
    median_error: float | None = None
    """Calibrated: median of |modelled / native - 1|."""
    kernel_benchmarks: int | None = None
    """Validated on kernel code: the number of benchmarks that no weight was fitted to. The next two are about these."""
    kernel_spearman: float | None = None
    kernel_median_error: float | None = None
    kernel_source: str | None = None
    """Validated on kernel code: the built kernel, the running kernel that it stood for, and the CPU that was timed."""
    weights: dict[str, Weight]
    silicon: tuple[SiliconGain, ...] = ()
    """The gains of recipes on processors of the family and with these weights, as `kdyno validate --paths` finds them.
    """

    @field_validator("weights")
    @classmethod
    def _weighs_events(cls, weights: dict[str, float]) -> dict[str, float]:
        for name in weights:
            if name not in EVENTS:
                near = difflib.get_close_matches(name, EVENTS, n=1, cutoff=0)
                raise ValueError(f"unknown event {name}; did you mean {near[0]}?")
        return weights

    @model_validator(mode="after")
    def _says_how_good_it_is(self) -> Model:
        if self.basis == "calibrated" and None in (self.programs, self.spearman, self.median_error):
            raise ValueError("calibrated weights need programs, spearman and median_error")
        kernel = {self.kernel_benchmarks, self.kernel_spearman, self.kernel_median_error}
        if None in kernel and kernel != {None}:
            raise ValueError("an error on kernel code needs kernel_benchmarks, _spearman and _median_error")
        return self


class FamilyFile(Frozen):
    """The content of a family's TOML file."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]*$", max_length=60)]
    title: str
    march: tuple[str, ...]
    """The -march names of the CPUs that are like it; see data/march.toml, which has their CPUID."""
    source: str
    """The document that has the geometry."""
    sources: dict[str, str] = {}
    """By key: the source of its figures, or `not found`."""
    width: Annotated[int, Field(ge=1, le=8, strict=True)]
    """The most instructions per cycle."""
    scheduler: Annotated[int, Field(ge=1, le=1024, strict=True)]
    """The most instructions that wait for their operands."""
    window: Annotated[int, Field(ge=8, le=4096, strict=True)]
    """The most instructions in flight."""
    pcid: bool
    """Whether the TLBs hold translations of several address spaces, distinguished by a number (PCID)."""
    cpu: GuestCpu
    units: Units
    rep: Reps
    l1i: Cache
    l1d: Cache
    l2: Cache
    llc: Cache
    itlb: Tlb
    dtlb: Tlb
    stlb: SecondTlb
    l2_itlb: SecondTlb | None = None
    """Second-level translations of instructions, if `stlb` holds those of data only."""
    frontend: Frontend
    predictor: Predictor
    prefetcher: Prefetcher
    latency: Latency
    model: Model

    def replace_model(self, name: str, model: Model) -> FamilyFile:
        """Return a file of the same hardware, with another name and model."""
        settings = {key: getattr(self, key) for key in FamilyFile.model_fields}
        return FamilyFile(**{**settings, "name": name, "model": model})

    def hardware(self) -> dict[str, Any]:
        """Return the hardware that the file describes as JSON values, without names and weights."""
        return self.model_dump(mode="json", exclude={"name", "title", "march", "source", "model", "path"})

    def drop_gains(self) -> dict[str, Any]:
        """Return the content as JSON values, without gains on a processor, which change no figure of the model."""
        return self.model_dump(mode="json", exclude={"path": True, "model": {"silicon"}})


class Family(FamilyFile):
    """A CPU family and the file that it was read from, which is also the plugin's geometry."""

    path: Path

    @property
    def weights(self) -> dict[str, float]:
        """Return cycles per event; an event that isn't there weighs nothing.

        Of user code only instructions are counted. Each weighs what a dispatch slot weighs in the kernel, unless the
        file says otherwise.
        """
        return {"user_instructions": self.model.weights.get("slots", 0.0), **self.model.weights}

    @property
    def model_name(self) -> str:
        return f"{self.name}-{self.model.version}"

    def caption(self) -> str:
        """The caption that goes with every modelled figure."""
        model = self.model
        if model.basis == "default" or model.median_error is None:
            accuracy = "default weights, not calibrated"
        else:
            accuracy = _error(model.median_error, model.programs, "held-out programs", model.spearman)
        if model.kernel_median_error is not None:
            kernel_error = _error(
                model.kernel_median_error, model.kernel_benchmarks, "benchmarks", model.kernel_spearman
            )
            accuracy += f"; of kernel code {kernel_error}"
        return f"modelled, {self.model_name}: {accuracy}"

    def gains_note(self) -> str:
        """The note that goes with modelled gains: how far those of the model were from those of a processor."""
        return gains_note(self.model.silicon)


def _error(median: float, count: int | None, noun: str, spearman: float | None) -> str:
    return f"median error {100 * median:.0f} % on {count} {noun}, Spearman {spearman:.2f}"


def families() -> tuple[str, ...]:
    """Return the names of kdyno's own families."""
    return tuple(sorted(path.stem for path in _directory().glob("*.toml")))


def load_family(name: str) -> Family:
    """Return the family of that name, or of the file `file:PATH`. Raise UnknownFamily and BadFamily."""
    if name.startswith(FILE):
        return read_family(Path(name.removeprefix(FILE)))
    names = families()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1, cutoff=0)
        raise UnknownFamily(name=name, near=near[0], known=", ".join(names))
    return read_family(_directory() / f"{name}.toml")


def read_family(path: Path) -> Family:
    """Return the family in a file. Raise BadFamily, which names the wrong key."""
    try:
        settings = toml.parse(read_whole(path, MOST_BYTES).decode())
    except OSError as error:
        raise BadFamily(path=path, why=f"can't read it: {error.strerror}") from error
    except ValueError as error:
        raise BadFamily(path=path, why=f"not TOML: {error}") from error
    try:
        FamilyFile.model_validate(settings)
        return Family(**settings, path=path.absolute())
    except ValidationError as error:
        raise BadFamily(path=path, why="\n".join(problems(error, FamilyFile, settings))) from None


def _directory() -> Path:
    return Path(str(files("kdyno"))) / "data" / "families"
