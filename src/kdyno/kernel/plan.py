"""The plan of a build: every check that can be made beforehand, and the key that says whether it was built before."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from kdyno import toolchain
from kdyno.frozen import Frozen, digest
from kdyno.kernel import images, kconfig, knobs, patches
from kdyno.kernel.image import SourceIdentity
from kdyno.kernel.knobs import Ask, Context
from kdyno.kernel.knobs.kconfig import read_fragments
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import Source
from kdyno.kernel.trees import Say
from kdyno.state import State
from kdyno.toolchain import Toolchain

BUILD_FORMAT = 1
"""Part of every key; raised when the same inputs would give another image."""

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

OWN_ASKS = (Ask(symbol="LOCALVERSION_AUTO", value="n", by="kdyno"),)
"""The release must not depend on a repository that happens to be around the source."""


class BuildPlan(Frozen):
    """All that decides an image, resolved; building it needs nothing else."""

    key: str
    objects_key: str
    """The key without the seed of the layout: images that differ only in that are linked from the same objects."""
    cached: bool
    recipe: Recipe
    source: SourceIdentity
    tree: Path
    """Where the sources are, patches applied."""
    base: kconfig.Base
    toolchain: Toolchain
    asks: tuple[Ask, ...]
    make: tuple[str, ...]
    """The words of every make, without ccache, -j and O=."""
    environment: dict[str, str]
    cmdline: tuple[str, ...]
    patches: tuple[str, ...] = ()
    """SHA-256 of each patch."""
    facts: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """Flags of /proc/cpuinfo that a machine must have to run it."""
    notes: tuple[str, ...] = ()


def check_without_source(recipes: Collection[Recipe], base: str, state: State) -> None:
    """Refuse what is missing on this host, before a source is unpacked for it: that may take a minute."""
    kconfig.resolve_base(base)
    for name in {recipe.toolchain for recipe in recipes}:
        toolchain.find(name, state)
    for recipe in recipes:
        patches.read_patches(recipe.patches)
        read_fragments(recipe.fragments)


def plan_build(recipe: Recipe, source: Source, base: str, state: State, say: Say = lambda _: None) -> BuildPlan:
    """Check that the recipe can be had from this source, and name the image that it becomes. Builds nothing.

    Patches are applied here, to a copy that is kept. What Kconfig refuses comes out only when it is run, which is
    the first thing that a build does.
    """
    compiler = toolchain.find(recipe.toolchain, state)
    contribution = knobs.contributions(recipe, Context(source=source, toolchain=compiler, state=state))
    contribution = knobs.combined([knobs.Contribution(asks=OWN_ASKS), contribution])
    asks = knobs.decided(contribution)
    start = kconfig.resolve_base(base)
    patched = patches.patched(source, contribution.patches, state, say)
    digests = tuple(patch.digest for patch in contribution.patches)
    decides = {
        "format": BUILD_FORMAT,
        "source": source.identity.identity,
        "patches": digests,
        "base": start.model_dump(exclude={"spec"}),
        "asks": {symbol: ask.value for symbol, ask in asks.items()},
        "kcflags": contribution.kcflags,
        "kcppflags": contribution.kcppflags,
        "make": contribution.make,
        "facts": contribution.facts,
        "toolchain": compiler.identity.model_dump(),
    }
    objects_key = digest(decides)
    key = digest({**decides, "environment": contribution.environment}) if contribution.environment else objects_key
    return BuildPlan(
        key=key,
        objects_key=objects_key,
        cached=images.directory(key, state).is_dir(),
        recipe=recipe,
        source=source.identity,
        tree=patched.tree,
        base=start,
        toolchain=compiler,
        asks=tuple(asks.values()),
        make=_make_words(contribution),
        environment={**ENVIRONMENT, **contribution.environment},
        cmdline=contribution.cmdline,
        patches=digests,
        facts=contribution.facts,
        needs=contribution.needs,
        notes=(*contribution.notes, *patched.notes),
    )


def _make_words(contribution: knobs.Contribution) -> tuple[str, ...]:
    """The same for configuration and build: the compiler and its flags decide Kconfig symbols too."""
    flags = {"KCFLAGS": contribution.kcflags, "KCPPFLAGS": contribution.kcppflags}
    set_flags = [f"{name}={' '.join(words)}" for name, words in flags.items() if words]
    return ("ARCH=x86_64", "LOCALVERSION=", *contribution.make, *set_flags)
