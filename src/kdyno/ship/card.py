"""The provenance card of a shipped kernel: what it is made of, and what was measured of it.

A card belongs to one file: it has the SHA-256 of its vmlinuz, and whoever reads a card compares it. What a card claims
beyond that is proved by building again (verify.py), not by the card.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue, ValidationError

from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.frozen import Frozen
from kdyno.base.measurement import Correction, Direction
from kdyno.base.mistakes import first_fault
from kdyno.kernel.image import Sha256, SourceIdentity
from kdyno.kernel.toolchain import ToolchainIdentity
from kdyno.ship.code import CodeComparison

MOST_BYTES = 2_000_000
"""Bytes of a card."""
DIRECTORY = "usr/share/kdyno/cards"
"""Where the package of a kernel puts its card."""

Finite = Annotated[float, Field(allow_inf_nan=False)]
Fraction = Annotated[float, Field(gt=0, lt=1)]
Release = Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+[a-z0-9.+~-]{0,60}$")]


class CardUnreadable(UserError):
    message = "{path} has no card that kdyno can read: {why}"
    hint = "a card is written by `kdyno ship`; compare the file's checksum with that of its origin"


class EffectRatio(Frozen):
    """A ratio of a variant to its baseline; 1 is no difference."""

    ratio: Finite
    low: Finite | None
    """The ends of the interval; None where all replicates agree exactly, or a single one leaves the spread unknown."""
    high: Finite | None


class BenchmarkVerdict(Frozen):
    """The verdict on one benchmark: the ratio is the variant's value over the baseline's."""

    benchmark: str
    direction: Direction | None
    verdict: str | None
    """None: the two can't be compared."""
    effect: EffectRatio | None
    caution: str
    """What the interval doesn't show, or why there is no verdict."""


class OverallVerdict(Frozen):
    """The verdict on the whole workload: a ratio above 1 is better."""

    quantity: str
    """`speed`, or work per count where instructions are counted."""
    benchmarks: int
    verdict: str | None
    effect: EffectRatio | None
    sentence: str


class OnProcessor(Frozen):
    """The gain of the same recipe on a processor, as a kernel that is a process."""

    run: str | None
    cpu: str | None
    sentence: str
    notices: tuple[str, ...]


class Verdicts(Frozen):
    """The judgement of the run on the image, and its conditions."""

    run: str
    name: str
    variant: str
    baseline: str
    lane: str
    measured: str
    """What the values are: the clock of the lane."""
    model: str
    """The cycle model with its error; empty if the run has no modelled cycles."""
    machine: dict[str, JsonValue]
    blocks: int
    layout: int
    """Which link order of the run the kernel has."""
    layouts: int
    """Link orders of each variant in the run; 0: layout wasn't sampled."""
    margin: Fraction
    alpha: Fraction
    confidence: Fraction
    correction: Correction
    scope: str
    overall: OverallVerdict | None
    """None for the baseline itself, and where nothing could be compared."""
    benchmarks: tuple[BenchmarkVerdict, ...]
    notices: tuple[str, ...]
    checks: tuple[str, ...]
    """The results of the kernel's own tests (KUnit); empty: none were run."""
    processor: OnProcessor | None
    """The confirmation on a processor; None if none is on record."""
    command_line: tuple[str, ...]
    """Words of the kernel command line that the verdicts are about; the package doesn't set them."""


class Configuration(Frozen):
    """The configuration of the kernel, and what it protects against."""

    base: str
    sha256: Sha256
    asked: dict[str, str]
    """By symbol: the values that the recipe and kdyno asked for."""
    changed: dict[str, tuple[str, str]]
    """By symbol: the value in the base and in the kernel. Empty unless the base is a whole configuration."""
    protections_on: tuple[str, ...]
    protections_off: tuple[str, ...]
    traded: tuple[str, ...]
    """Protections that the baseline of the run has and this kernel lacks."""


class ProfileUsed(Frozen):
    """The profile feedback in the kernel."""

    use: tuple[str, ...]
    trained_on: tuple[str, ...]
    """Tests, suites and workloads; empty for a profile that was given as a file."""
    seeds: int
    trainee: str | None
    """The variant that was booted for the training."""


class Soaked(Frozen):
    """A soak of the judged image."""

    id: str
    verdict: str
    hours: Finite
    loads: tuple[str, ...]


class CardImage(Frozen):
    """The file that a machine boots."""

    path: str
    """Its path once it is installed."""
    sha256: Sha256
    size: Annotated[int, Field(ge=0)]
    build_id: Annotated[str, Field(pattern=r"^([0-9a-f]{2}){0,64}$")]
    """The digits of its GNU build ID, which /sys/kernel/notes of a running kernel has, too; empty: it has none."""
    is_signed: bool
    """Whether it has a signature for Secure Boot; `sbverify --cert CERTIFICATE FILE` shows by whom."""


class JudgedImage(Frozen):
    """The image of the run: the same recipe under another release."""

    key: Sha256
    sha256: Sha256 | None
    """SHA-256 of its bzImage."""
    code: CodeComparison


class Card(Frozen):
    """`kdyno card --json`, and the file that a package has of its kernel."""

    v: Literal[1] = 1
    release: Release
    package: str
    version: str
    epoch: Annotated[int, Field(ge=0, lt=2**40)]
    """The time of the package's files, in seconds since 1970."""
    image: CardImage
    judged: JudgedImage
    source: SourceIdentity
    patches: tuple[str, ...]
    """SHA-256 of each patch, in order."""
    patch_names: tuple[str, ...]
    compiler: ToolchainIdentity
    objects: dict[str, int]
    """By compiler: the number of its objects, if a delegation shared them out."""
    make: tuple[str, ...]
    environment: dict[str, str]
    inputs: dict[str, str]
    """By name: SHA-256 of the files that the words of make name, or of everything that decides them."""
    recipe: dict[str, JsonValue]
    """The knobs that are set; of paths only the last part."""
    configuration: Configuration
    profile: ProfileUsed | None
    cpu_flags: tuple[Annotated[str, Field(pattern=r"^[a-z0-9_]{1,40}$")], ...]
    """Flags of /proc/cpuinfo without which the kernel meets an illegal instruction."""
    verdicts: Verdicts
    soak: Soaked | None
    """None: no soak was named to `kdyno ship`."""
    kdyno: str

    def written(self) -> bytes:
        """Return the card as the package has it."""
        return f"{self.model_dump_json(indent=1)}\n".encode()


def parse_card(content: bytes, path: Path) -> Card:
    """Return the card in a file of unknown origin. Raise CardUnreadable."""
    if len(content) > MOST_BYTES:
        raise CardUnreadable(path=path, why=f"it is larger than {MOST_BYTES:,} bytes")
    try:
        return Card.model_validate_json(content)
    except ValidationError as error:
        raise CardUnreadable(path=path, why=first_fault(error, "the card")) from None


def read_card(path: Path) -> Card:
    """Read the file of a card. Raise CardUnreadable."""
    try:
        return parse_card(read_whole(path, MOST_BYTES), path)
    except OSError as error:
        raise CardUnreadable(path=path, why=error.strerror) from error
