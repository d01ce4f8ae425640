"""The recipe: everything that makes a kernel what it is, and how it is started.

A RecipeSpec is what a user may write. A Recipe is what that has become when an experiment was loaded: its profile knows
the kernel that it is trained on, which is a Recipe as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from kdyno.base.frozen import Frozen
from kdyno.kernel.delegation.plan_file import PlanOrPath
from kdyno.measure.workload.needs import Load

KconfigValue = str | int | bool


ProfileUse = Literal["order", "autofdo", "propeller", "pgo"]
USES: tuple[ProfileUse, ...] = ("pgo", "autofdo", "propeller", "order")
"""In the order in which they are made: each is made from boots of a kernel that has those before it."""

BASE_PAGE, HUGE_PAGE = "4k", "2M"
PAGE_SIZES = (BASE_PAGE, "16k", "32k", "64k", "128k", "256k", "512k", "1M", HUGE_PAGE)
"""Sizes that anonymous memory of x86-64 can have; no huge page has two pages."""

PAGE_BLOCK = "page-block"
"""Our own patch for kernels without multi-size THP: a fault maps 2^N pages, by page_block=N."""


def page_size_words(page_size: str | None, patches: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the kernel command line for a size of pages, for a kernel with these patches."""
    has_blocks = PAGE_BLOCK in patches
    match page_size:
        case None:
            return ()
        case "madvise":
            return ("transparent_hugepage=madvise",)
        case "always":
            return ("transparent_hugepage=always",)
        case size if has_blocks:
            return ("transparent_hugepage=never", f"page_block={(_bytes(size) // _bytes(BASE_PAGE)).bit_length() - 1}")
        case "2M":
            return ("transparent_hugepage=always",)
        case "4k":
            return ("transparent_hugepage=never",)
        case size:
            return ("transparent_hugepage=never", f"thp_anon={size.upper()}:always")


def _bytes(size: str) -> int:
    return int(size[:-1]) << {"k": 10, "M": 20}[size[-1]]


def _listed(value: Any) -> Any:
    """Return a list of one for a single name."""
    return (value,) if isinstance(value, str) else value


class ProfileSettings(Frozen):
    """The settings for the use of a trained profile."""

    hot: Annotated[int, Field(ge=1)] = 1000
    """Executions, in a profile of 1,000,000,000 instructions, from which on code is hot."""
    cold: Annotated[int, Field(ge=0)] = 20
    """Executions up to which code is cold, though it ran."""
    families: Annotated[tuple[str, ...], Field(min_length=1)] = ("znver4", "sapphirerapids")
    """CPU families whose caches an order is made for: each counts the same."""
    guard: Annotated[float, Field(gt=0, lt=1)] | None = 0.01
    """No benchmark may lose more than this, as a fraction, by an order; None: only the mean counts."""


class ProfileSpec(ProfileSettings):
    """Profile feedback: what a kernel is tuned by, and what is made of that."""

    use: Annotated[
        tuple[ProfileUse, ...],
        BeforeValidator(_listed, json_schema_input_type=ProfileUse | tuple[ProfileUse, ...]),
    ]
    """`order`: functions are linked in the order that suits the caches; `autofdo`: clang compiles by a sample profile;
    `propeller`: clang lays out the blocks of hot functions; `pgo`: gcc or clang compiles by what a kernel counted that
    it had instrumented."""
    train: Annotated[
        tuple[str, ...] | None, BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...] | None)
    ] = None
    """The load to train with: tests, suites (`general`, `lmbench`), workloads by name or file, or experiment files
    whose workload it is. None: `general`.
    """
    seeds: Annotated[int, Field(ge=1, le=100)] = 3
    """Boots that a profile is made of, each with a seed of its own."""
    rounds: Annotated[int, Field(ge=1, le=5)] = 1
    """With 2 the kernel that `autofdo` compiled is trained again, and compiled by that profile. Every layout is made
    for the kernel that it lays out in any case."""
    on: str | None = None
    """The variant that is booted for training, where it is to be another than this one without its profile: another
    version or configuration. Not for `propeller`."""
    from_: Annotated[str | None, Field(alias="from")] = None
    """Instead of training: the file of a profile that exists, for one `use`: clang's sample profile, clusters of
    blocks, an order of functions; for `pgo` what `kdyno profile pull` wrote, or clang's indexed profile."""

    model_config = ConfigDict(populate_by_name=True)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not self.use and not self._may_use_nothing:
            raise PydanticCustomError("profile", "`use` is empty")
        if len(set(self.use)) < len(self.use):
            raise PydanticCustomError("profile", "`use` has a name twice")
        if {"pgo", "autofdo"} <= set(self.use):
            raise PydanticCustomError("profile", "`pgo` and `autofdo` can't be combined: compilers take one profile")
        if self.train == ():
            raise PydanticCustomError("profile", "`train` is empty")
        if self.from_ is not None and (len(self.use) > 1 or self.train or self.on):
            raise PydanticCustomError("profile", "`from` is one file for one use, and leaves nothing to train")
        if self.on is not None and "propeller" in self.use:
            raise PydanticCustomError(
                "profile", "`propeller` lays out the blocks of the kernel that was booted: `on` can name no other"
            )
        if self.rounds > 1 and ("autofdo" not in self.use or self.on or self.from_):
            raise PydanticCustomError("profile", "`rounds` is for `autofdo` that trains on its own kernel")
        if self.cold >= self.hot:
            raise PydanticCustomError("profile", "`cold` must be less than `hot`")
        return self

    @property
    def _may_use_nothing(self) -> bool:
        return False


class Profile(ProfileSpec):
    """Profile feedback with the kernel that is trained on: what a kernel is built by. It is recorded without short
    forms.
    """

    use: tuple[ProfileUse, ...]
    train: tuple[str, ...] | None = None
    trainee: Trainee | None = None
    """The recipe that is booted for training; None for a profile that exists."""
    trained_for: ProfileUse | None = None
    """For stages that are booted on the way: the use that the image is booted for. None: it is the tuned one."""

    @property
    def _may_use_nothing(self) -> bool:
        return self.trained_for is not None


@dataclass(frozen=True)
class Runtime:
    """Marks a field of the recipe that only starts an image: a kernel that runs, or is built, can be told it, too."""

    words: Callable[[Any, RecipeSpec], Iterable[str]]
    """The kernel command line for a value of it."""


def _planned(profile: Any) -> Any:
    """Check that a profile as written is complete."""
    return profile.model_dump(exclude_unset=True) if type(profile) is ProfileSpec else profile


def _assignments(prefix: str) -> Runtime:
    return Runtime(lambda value, _: (f"{prefix}.{name}={setting}" for name, setting in value.items()))


class RecipeSpec(Frozen):
    """The recipe of a variant. The defaults are the kernel's own; a knob left alone changes nothing."""

    image: str | None = None
    """A kernel that is built already: the path of a bzImage such as `/boot/vmlinuz-RELEASE`, or `debian:PACKAGE`.
    Beside it only what concerns its start can be said."""
    source: str | None = None
    """The kernel source, where it is to be another than the experiment's."""
    config: str | None = None
    """The base configuration, where it is to be another than the experiment's."""
    toolchain: Annotated[str, Field(pattern=r"^(gcc|clang)(-\d+)?$")] = "gcc"
    """The compiler by name: `gcc`, `gcc-12`, `clang`, `clang-19`. clang brings the whole LLVM (ld.lld, llvm-ar ...)."""
    opt: Literal["O1", "O2", "O3", "Os"] | None = None
    """Optimisation level; None leaves what Kconfig chose."""
    march: str | None = None
    """The CPU that kernel code is compiled for: an ISA level or a family as the compiler spells it, `native`, or `auto`
    for the best that the compiler knows of this host's. `patch:NAME` goes through Kconfig instead of KCFLAGS."""
    mtune: str | None = None
    """-mtune for kernel code, as the compiler spells it, where it is to be another than `march` brings along."""
    lto: Literal["none", "thin", "full"] = "none"
    """clang's link-time optimisation, through Kconfig."""
    lines: bool = False
    """Line tables in vmlinux, for profiles: which source line and which inlined function an instruction is of."""
    delegation: PlanOrPath | None = None
    """The compiler, flags and way for each file: a delegation plan, or the path of one. None: one for all."""
    layout_seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """Seed of the link order: how the kernel's functions lie, and how aligned. None: as the linker has them."""
    order: str | None = None
    """A file of functions that come first in the kernel's text, in its order. The rest follows as the linker has them,
    or as the seed has them if there is one."""
    profile: ProfileSpec | None = None
    """Profile feedback: what the kernel is trained on, and what is made of that."""
    cflags: tuple[Annotated[str, Field(max_length=200)], ...] = ()
    """Arguments for the compiler, last on its command, for which there is no knob: `-fno-ipa-cp`,
    `--param=NAME=VALUE`.
    """
    kconfig: dict[str, KconfigValue] = Field(default_factory=dict)
    """Kconfig symbols without CONFIG_ and the value each must have: true/false, "y"/"m"/"n", a number or a text."""
    fragments: tuple[str, ...] = ()
    """Files of Kconfig fragments, merged in order after `kconfig`."""
    routines: dict[
        Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    ] = Field(default_factory=dict)
    """Library routines (`memset`, `strlen`) and the candidate of `kdyno lab` that each is replaced by."""
    patches: tuple[str, ...] = ()
    """Files of patches (git apply semantics, -p1), applied in order to a private copy of the source; a word without a
    dot and a slash is a patch of kdyno's own."""
    page_size: Annotated[
        Annotated[str, Field(pattern=r"^(always|madvise|[1-9][0-9]{0,3}[kM])$")] | None,
        Runtime(lambda value, recipe: page_size_words(value, recipe.patches)),
    ] = None
    """The pages of anonymous memory: `4k` for no huge ones, `2M` (the same as `always`), a size between them, `madvise`
    for memory that requests it. With the patch page-block sizes are blocks of small pages.
    """
    sysctl: Annotated[
        dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+([./][A-Za-z0-9_-]+){1,5}$")], str | int],
        _assignments("sysctl"),
    ] = Field(default_factory=dict)
    """Settings of the running kernel, as `sysctl` names them, and the value each gets."""
    block: Annotated[
        dict[
            Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+\.(scheduler|read_ahead_kb)$")],
            Annotated[str, Field(pattern=r"^[a-z0-9-]{1,32}$")] | Annotated[int, Field(ge=0, lt=2**31)],
        ],
        _assignments("block"),
    ] = Field(default_factory=dict)
    """Settings of disks of the host itself, `vda.scheduler` and `vda.read_ahead_kb`, and the value each gets. A guest
    can't be told them."""
    cmdline: Annotated[tuple[str, ...], Runtime(lambda value, _: value)] = ()
    """Words added to the kernel command line. They don't change the image."""

    @model_validator(mode="after")
    def _is_built_once(self) -> Self:
        if self.image is not None:
            fields = RecipeSpec.model_fields.items()
            fields_set = [name for name, field in fields if getattr(self, name) != _default(field)]
            if knobs := [name for name in fields_set if name not in ("image", *RUNTIME)]:
                raise PydanticCustomError(
                    "image",
                    "`image` names a kernel that is built already, and {knobs} would build it otherwise; beside it "
                    "there may be {runtime}",
                    {"knobs": ", ".join(f"`{name}`" for name in knobs), "runtime": ", ".join(RUNTIME)},
                )
        return self


class Recipe(RecipeSpec):
    """The recipe of a variant, as it is built and started."""

    profile: Annotated[Profile | None, BeforeValidator(_planned)] = None
    """Profile feedback: what the kernel is trained on, and what is made of that."""

    @property
    def built(self) -> Self:
        """Return the recipe without the knobs that only start the image."""
        return self.model_copy(update={name: _default(Recipe.model_fields[name]) for name in RUNTIME})

    @property
    def compiled(self) -> Self:
        """Return the recipe with line tables if an order of functions is made for it from boots: its objects are then
        those of the kernel that these boots trained on, which ccache has.
        """
        if self.profile is None or self.profile.from_ is not None or "order" not in self.profile.use:
            return self
        return self.model_copy(update={"lines": True})

    @property
    def words(self) -> tuple[str, ...]:
        """Return all words that the recipe adds to the kernel command line; only the machine `local` understands those
        of `block`.
        """
        return tuple(word for name, mark in RUNTIME.items() for word in mark.words(getattr(self, name), self))


RUNTIME = {
    name: mark
    for name, field in RecipeSpec.model_fields.items()
    for mark in field.metadata
    if isinstance(mark, Runtime)
}
"""The fields that only start an image, in the order of the recipe."""


def _default(field: FieldInfo) -> Any:
    return field.get_default(call_default_factory=True)


class Training(Frozen):
    """An input of a build that is made of boots: which kernel, under what load and seeds, is recorded."""

    variant: str
    """The name of the kernel in messages."""
    recipe: Recipe
    """The kernel that is booted, with source and configuration named."""
    load: Load
    seeds: Annotated[tuple[Annotated[int, Field(ge=0, lt=2**31)], ...], Field(min_length=1)] = (1,)
    """One boot for each."""
    settings: ProfileSettings = ProfileSettings()


class Trainee(Frozen):
    """The kernel that a profile is trained on, before it has one."""

    variant: str
    """The name of the variant that it is of."""
    recipe: Recipe
    """With source and configuration named."""
    load: Load
    """The workloads of the training."""


Profile.model_rebuild()
Recipe.model_rebuild()
