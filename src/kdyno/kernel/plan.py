"""The plan of a build: every check that can be made beforehand, and the key that says whether it was built before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from kdyno.base.cpu import Cpu, read_cpu
from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen, digest
from kdyno.base.state import State
from kdyno.kernel import images, inputs, kconfig, knobs, packers, patches, paths, toolchain
from kdyno.kernel.arch import ARCHES, X86_64, Arch
from kdyno.kernel.delegation.resolved import Delegation
from kdyno.kernel.image import ArchName, SourceIdentity
from kdyno.kernel.inputs import Input
from kdyno.kernel.kconfig_check import read_config, refuse_unknown
from kdyno.kernel.knobs import Host, KconfigRequest, KnobContext
from kdyno.kernel.knobs.base import Trained, no_boots
from kdyno.kernel.knobs.delegation import delegated
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource
from kdyno.kernel.source_trees import Say
from kdyno.kernel.toolchain import Toolchain

BUILD_FORMAT = 3
"""Part of every key; raised when the same inputs would give another image."""
LOCAL_FORMAT = 2
"""The same for configurations by localmodconfig."""

ENVIRONMENT = {
    "KBUILD_BUILD_HOST": "kdyno",
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER": "kdyno",
    "KBUILD_BUILD_VERSION": "1",
    "LC_ALL": "C",
    "PYTHONDONTWRITEBYTECODE": "1",
    "TZ": "UTC",
}
"""Set for every make: who, when and where would make each image different, and messages are parsed."""
NO_DIRECTORY = "-fdebug-prefix-map=$(CURDIR)=."
"""For make. Debug information names the directory that a compiler works in, and a kernel's build ID, which every image
has, is a digest of that, too. With the preprocessor's flags it reaches C and assembly alike."""
NO_RUST = "RUSTC=false"
"""Kconfig asks the rustc that happens to be on the PATH for its version, and writes down what it can. No key has that
compiler: kdyno's kernels have no Rust."""

OWN_ASKS = (KconfigRequest(symbol="LOCALVERSION_AUTO", value="n", by="kdyno"),)
"""The release must not depend on a repository that happens to be around the source."""
UNSIGNED = {"MODULE_SIG_ALL": "n", "MODULE_SIG_KEY": '""'}
"""A build that signs its modules makes a key, which the kernel has in it: each build would be another one."""


class BaseOfOtherArch(UserError):
    message = "the base configuration {spec} is one for ARCH={other}, and the kernel is built for ARCH={arch}"
    hint = "remove `config` to have `{base}`, or name a .config of a kernel for ARCH={arch}"


class BuildPlan(Frozen):
    """All that decides an image, resolved; building it needs nothing else."""

    key: str
    objects_key: str
    """The key without what only the environment decides, such as the seed of the layout, and without the rules of a
    delegation: images that differ only in those are made in one object directory."""
    cached: bool
    recipe: Recipe
    source: SourceIdentity
    tree: Path
    """The path of the sources, patches applied."""
    base: kconfig.Base
    arch_name: ArchName = "x86_64"
    toolchain: Toolchain
    asks: tuple[KconfigRequest, ...]
    make: tuple[str, ...]
    """The words of every make, without ccache, -j and O=."""
    environment: dict[str, str]
    inputs: tuple[Input, ...] = ()
    """The files that words of make and the environment name by `@NAME@`."""
    delegation: Delegation | None = None
    """The input of ccd, if it stands in for the compiler. Its rules are in the key, and not in that of the objects:
    objects for which another plan chooses otherwise are made again.
    """
    patches: tuple[str, ...] = ()
    """SHA-256 of each patch."""
    facts: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """Flags of /proc/cpuinfo that a machine must have to run it."""
    notes: tuple[str, ...] = ()

    @property
    def arch(self) -> Arch:
        return ARCHES[self.arch_name]

    @property
    def asks_for_kunit(self) -> bool:
        """Return whether the kernel is to contain KUnit, which runs its suites in every boot unless a parameter turns
        it off.
        """
        return self.asked.get("KUNIT") == "y"

    @property
    def asked(self) -> dict[str, str]:
        """Return symbols and values, as far as they are known before the configuration is made: those of the base
        configuration's text, with the recipe's in their place. Kconfig may decide otherwise.
        """
        return {**read_config(self.base.text), **{request.symbol: request.value for request in self.asks}}


def check_early(recipes: Iterable[Recipe], config: str, state: State, arch: Arch = X86_64) -> None:
    """Refuse what is missing on this host, and what knobs refuse, before a source is unpacked: that may take a minute.

    `config` is the base configuration of recipes that name none.
    """
    recipes = list(recipes)
    for base in dict.fromkeys(recipe.config or config for recipe in recipes):
        _resolve_base(base, arch)
    for recipe in recipes:
        knobs.check(recipe, Host(toolchain.find(recipe.toolchain, state), state))


def plan_build(
    recipe: Recipe,
    source: KernelSource,
    base: str,
    state: State,
    say: Say = lambda _: None,
    cpu: Callable[[], Cpu] = read_cpu,
    trained: Trained = no_boots,
    arch: Arch = X86_64,
) -> BuildPlan:
    """Check that the recipe can be had from this source, and name the image that it becomes. Builds nothing.

    Patches are applied here, to a copy that is kept. Symbols that the source hasn't got are refused here; what else
    Kconfig refuses comes out only when it is run, which is the first thing that a build does. `cpu` reads the CPU of
    the host that will boot the image; `trained` plans what an input is made of.
    """
    compiler = toolchain.find(recipe.toolchain, state)
    context = KnobContext(
        source=source, toolchain=compiler, arch=arch, cpu=cpu, state=state, trained=trained, patches=recipe.patches
    )
    own = (knobs.Contribution(asks=OWN_ASKS), paths.contribution(arch, context))
    contribution = knobs.combined([*own, knobs.contributions(recipe, context)])
    patched = patches.patched(source, contribution.patches, state, say)
    contribution, delegation = delegated(contribution, context, patched.tree)
    asks = knobs.decided(contribution)
    start = _resolve_base(base, arch)
    asked = {**read_config(start.text), **{symbol: request.value for symbol, request in asks.items()}}
    asks = {**_unsigned(asked), **asks}
    digests = tuple(patch.digest for patch in contribution.patches)
    decides = {
        "format": BUILD_FORMAT,
        "source": source.identity.identity,
        "patches": digests,
        "base": start.model_dump(exclude={"spec"}),
        "asks": {symbol: request.value for symbol, request in asks.items()},
        "kcflags": contribution.kcflags,
        "kcppflags": contribution.kcppflags,
        "make": contribution.make,
        "facts": contribution.facts,
        "toolchain": compiler.identity.model_dump(),
        "packers": packers.digests(asked, arch.is_packed, state),
        **({} if arch is X86_64 else {"arch": arch.make(compiler)}),
        **({"localmodconfig": LOCAL_FORMAT} if start.lsmod else {}),
    }
    make = _make_words(contribution, arch.make(compiler))
    compiled = [file for file in contribution.inputs if any(file.placeholder in word for word in make)]
    objects_key = digest({**decides, **_inputs_part(compiled)})
    environment = {"environment": contribution.environment} if contribution.environment else {}
    key = digest({**decides, **environment, **_inputs_part(contribution.inputs)})
    cached = images.is_built(key, state)
    if not cached:
        refuse_unknown(asks.values(), patched.tree, arch.source)
    return BuildPlan(
        key=key,
        objects_key=objects_key,
        cached=cached,
        recipe=recipe,
        source=source.identity,
        tree=patched.tree,
        base=start,
        arch_name=arch.name,
        toolchain=compiler,
        asks=tuple(asks.values()),
        make=make,
        environment={**ENVIRONMENT, **contribution.environment},
        inputs=contribution.inputs,
        delegation=delegation,
        patches=digests,
        facts=contribution.facts,
        needs=contribution.needs,
        notes=(*contribution.notes, *patched.notes),
    )


def _unsigned(asked: Mapping[str, str]) -> dict[str, KconfigRequest]:
    """Return the requests by which no module is signed; none for a kernel that loads signed modules only."""
    if asked.get("MODULE_SIG") != "y" or asked.get("MODULE_SIG_FORCE") == "y":
        return {}
    return {symbol: KconfigRequest(symbol=symbol, value=value, by="kdyno") for symbol, value in UNSIGNED.items()}


def _resolve_base(spec: str, arch: Arch) -> kconfig.Base:
    """Read a base configuration. Raise BaseOfOtherArch, and what reading it raises."""
    base = kconfig.resolve_base(spec)
    symbols = read_config(base.text) if base.kind == "config" else {}
    for other in ARCHES.values():
        has_its_symbol = symbols.get(other.symbol) == "y" and symbols.get(arch.symbol) != "y"
        if other is not arch and (spec == other.base or has_its_symbol):
            raise BaseOfOtherArch(spec=spec, other=other.name, arch=arch.name, base=arch.base)
    return base


def _inputs_part(of: Sequence[Input]) -> dict[str, dict[str, str]]:
    """Return the part of a key for inputs: nothing if there are none, so that older keys stay valid."""
    by_name = inputs.digests(of)
    assert len(by_name) == len(of), "two inputs share a name"
    return {"inputs": by_name} if by_name else {}


def _make_words(contribution: knobs.Contribution, arch: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments of make, equal for configuration and build: the compiler and its flags decide Kconfig
    symbols too.
    """
    flags = {"KCFLAGS": contribution.kcflags, "KCPPFLAGS": (*contribution.kcppflags, NO_DIRECTORY)}
    set_flags = [f"{name}={' '.join(words)}" for name, words in flags.items() if words]
    return (*arch, "LOCALVERSION=", NO_RUST, *contribution.make, *set_flags)
