"""The cycles of kernel code on a real CPU, with the emulated PMU's counts of it: the file that `validate -o` writes.

The file holds the counts, so that other weights can be tried without another boot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError, model_validator

from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.frozen import Frozen, digest
from kdyno.base.mistakes import first_fault
from kdyno.measure.cycles.evaluate import EvaluatedProgram, Quality, Role, quality
from kdyno.measure.cycles.family import Family, FamilyFile
from kdyno.measure.cycles.predict import weigh

MOST_BYTES = 16_000_000

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class NoMeasurement(UserError):
    message = "can't read the measurement {path}: {why}"
    hint = "`kdyno validate -o FILE` writes one"


class OtherGeometry(UserError):
    message = "{path} was counted with another emulated CPU than the one that {family} describes"
    hint = "measure again with that family: kdyno validate --family {family} -o FILE"


class KernelBenchmark(Frozen):
    """One benchmark, natively and in the guest."""

    name: str
    kind: str
    role: Role
    unit: Literal["op", "KiB"]
    """The unit that cycles and counts are given per."""
    passes: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """Native cycles of the core, one figure for each pass."""
    counts: tuple[NotNegative, ...]
    """Events in the guest, in the order of `events`."""

    @property
    def native(self) -> float:
        """The least of all passes."""
        return min(self.passes)

    @property
    def spread(self) -> float:
        """The ratio of the slowest pass to the fastest, less 1: 0 means no spread."""
        return max(self.passes) / min(self.passes) - 1


class Mitigation(Frozen):
    """One line of /sys/devices/system/cpu/vulnerabilities, here and in the guest."""

    name: str
    host: str
    guest: str

    @property
    def is_matched(self) -> bool:
        """Return whether the two kernels do the same about the vulnerability."""
        return mitigation_name(self.host) == mitigation_name(self.guest)


def mitigation_name(status: str) -> str:
    """Return the mitigation: `Mitigation: PTI` -> `PTI`; empty for a CPU that isn't affected, and for one that is
    vulnerable.
    """
    first = status.partition(";")[0].strip()
    return first.removeprefix("Mitigation:").strip() if first.startswith("Mitigation:") else ""


class KernelPair(Frozen):
    """The running kernel, and the one that was built to stand for it."""

    running: str
    """`uname -r`."""
    compiler: str
    """The compiler that the running kernel's configuration names."""
    source: str
    """The source of the built kernel, as it was named."""
    version: str
    origin: str
    built_with: str
    additions: dict[str, str]
    """Options that were requested on top of the running kernel's configuration, and why."""
    dropped: tuple[str, ...]
    """Options that the running kernel has built in, and that this source with this compiler lacks."""
    words: tuple[str, ...]
    """Parameters of the guest's command line, to match the mitigations that are active here."""
    mitigations: tuple[Mitigation, ...]


class KernelMeasurement(Frozen):
    """All measurements of a validation on kernel code."""

    v: Literal[1] = 1
    family: str
    geometry: str
    """Digest of the emulated hardware: counts hold for this geometry alone."""
    cpu: str
    ghz: tuple[Positive, ...]
    """Clock of the core during each pass, median over the tests."""
    kernels: KernelPair
    events: tuple[str, ...]
    benchmarks: Annotated[tuple[KernelBenchmark, ...], Field(min_length=2)]
    left_out: dict[str, str]
    """Benchmarks that can't be compared, and why."""

    @model_validator(mode="after")
    def _counts_every_event(self) -> KernelMeasurement:
        for benchmark in self.benchmarks:
            if len(benchmark.counts) != len(self.events):
                raise ValueError(f"{benchmark.name} has {len(benchmark.counts)} counts of {len(self.events)} events")
        return self

    @property
    def counts(self) -> NDArray[np.float64]:
        """Return the events of each benchmark, [B, E]."""
        return np.array([benchmark.counts for benchmark in self.benchmarks], np.float64)

    @property
    def native(self) -> NDArray[np.float64]:
        """Return native cycles[B]."""
        return np.array([benchmark.native for benchmark in self.benchmarks], np.float64)

    def require_geometry(self, family: FamilyFile, path: Path) -> None:
        """Raise OtherGeometry if this, read from `path`, was counted on other emulated hardware than the family's."""
        if geometry_digest(family) != self.geometry:
            raise OtherGeometry(path=path, family=family.name)

    def judge(self, weights: Mapping[str, float]) -> tuple[EvaluatedProgram, ...]:
        """Return every benchmark with the cycles that these weights give for its counts."""
        modelled = weigh(self.counts, self.events, weights).tolist()
        instructions = weigh(self.counts, self.events, {"instructions": 1.0, "user_instructions": 1.0}).tolist()
        rows = zip(self.benchmarks, modelled, instructions, strict=True)
        return tuple(
            EvaluatedProgram(benchmark.name, benchmark.kind, benchmark.role, benchmark.native, *figures)
            for benchmark, *figures in rows
        )


class Validation(Frozen):
    """A measurement and a model's prediction of it: `kdyno validate --json` prints it, and -o writes it."""

    model: str
    """The model's caption: its name and its errors known before."""
    measured: KernelMeasurement
    judged: tuple[EvaluatedProgram, ...]
    quality: Quality
    """The quality on all benchmarks."""
    held_out: Quality
    """The quality on those that no fit may use."""

    @classmethod
    def from_measurement(cls, measurement: KernelMeasurement, family: Family) -> Validation:
        programs = measurement.judge(family.weights)
        return cls(
            model=family.caption(),
            measured=measurement,
            judged=programs,
            quality=quality(programs),
            held_out=quality(select_role(programs, "held-out")),
        )


def select_role(programs: Sequence[EvaluatedProgram], role: Role) -> list[EvaluatedProgram]:
    return [benchmark for benchmark in programs if benchmark.role == role]


def geometry_digest(family: FamilyFile) -> str:
    """Return the digest of the hardware that a family describes, without its names and weights."""
    return digest(family.hardware())


def read_measurement(path: Path) -> KernelMeasurement:
    """Return the measurement in a file that `kdyno validate` wrote, without its statements about a model.

    Raise NoMeasurement.
    """
    try:
        return Validation.model_validate_json(read_whole(path, MOST_BYTES)).measured
    except OSError as error:
        raise NoMeasurement(path=path, why=error.strerror) from error
    except ValidationError as error:
        raise NoMeasurement(path=path, why=first_fault(error, "the file")) from None
