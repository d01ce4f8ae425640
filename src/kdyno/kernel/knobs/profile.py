"""profile = { train = "general", use = ["autofdo", "order"] }: profile feedback; see docs/feedback.md.

A profile is made of boots of the same kernel without it, in stages: clang's sample profile of the plain kernel, the
clusters of blocks of the kernel that was compiled by that, the order of the functions that both left. The kernel of a
stage is the same recipe with the uses before it, so that planning a stage plans those that it needs.
"""

from __future__ import annotations

from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.names import absolute
from kdyno.base.packages import install_advice
from kdyno.kernel import lkd
from kdyno.kernel.delegation import resolved
from kdyno.kernel.inputs import DIRECTORY, Input, read_input
from kdyno.kernel.knobs import profile_given, profile_pgo
from kdyno.kernel.knobs.base import Contribution, Host, Knob, KnobContext, combined
from kdyno.kernel.knobs.layout_seed import ordered
from kdyno.kernel.recipe import USES, Profile, ProfileSettings, ProfileSpec, ProfileUse, Recipe, Training
from kdyno.kernel.toolchain import Toolchain
from kdyno.measure.workload.definition import is_file

NAME = "profile"
OLDEST_CLANG = {"autofdo": 17, "propeller": 19}
"""The versions that the kernel's own makefiles require (Kconfig's AUTOFDO_CLANG and PROPELLER_CLANG, since 6.13)."""
BLOCK_MAP = "-fbasic-block-address-map"
"""The blocks of each function, with the numbers that clusters name them by (clang 19)."""


class NeedsClang(UserError):
    message = 'use = ["{use}"] needs clang: {why}'
    hint = 'set toolchain = "clang-19" in the same variant; `order` is for gcc as well'


class ClangTooOld(UserError):
    message = 'use = ["{use}"] needs clang {oldest}, and {name} is version {version}'
    hint = "{way}"


WHY_NOT_GCC = {
    "autofdo": (
        "the sampled profiles that gcc reads name static functions without their file, and kernels have many of one "
        "name"
    ),
    "propeller": "gcc can't place the blocks of a function",
}


def check(value: Profile | None, host: Host) -> None:
    """Raise NeedsClang, ClangTooOld or NotCounting for uses that the compiler doesn't support, and the refusal of a
    given file.
    """
    if value is None:
        return
    for use in (*value.use, value.trained_for):
        _require(use, host.toolchain)
    if value.from_ is not None:
        for use in value.use:
            profile_given.check(use, Path(value.from_), host.toolchain)


def contribute(value: Profile | None, context: KnobContext) -> Contribution:
    """Return the contribution of all uses. The inputs that are made from boots are planned here, with all that has to
    come before them.
    """
    if value is None:
        return Contribution()
    makers = {"pgo": _pgo, "autofdo": _autofdo, "propeller": _propeller, "order": _order}
    parts = [makers[use](value, _input(value, use, context), context) for use in USES if use in value.use]
    if value.trained_for == "pgo":
        parts.append(profile_pgo.counting(context.toolchain))
    if value.trained_for == "propeller" and "autofdo" not in value.use:
        words = lkd.lto_words(context.toolchain, "map", "--lto-basic-block-address-map")
        parts.append(Contribution(kcflags=(BLOCK_MAP,), environment=words))
    return combined([_laid_out(context), *parts])


def _laid_out(context: KnobContext) -> Contribution:
    """Give each function a section, which lkd places: by an order, or as the compiler says that it is hot or cold. So a
    kernel without an order has the very objects that an order is made for.
    """
    return ordered("profile", context).model_copy(update={"environment": lkd.environment(context.linker)})


def _require(use: ProfileUse | None, toolchain: Toolchain) -> None:
    """Raise NeedsClang, ClangTooOld or NotCounting for what the compiler can't do."""
    if use == "pgo":
        profile_pgo.require(toolchain)
    if use not in OLDEST_CLANG:
        return
    if not toolchain.is_clang:
        raise NeedsClang(use=use, why=WHY_NOT_GCC[use])
    identity = toolchain.identity
    if int(identity.version.split(".")[0]) < OLDEST_CLANG[use]:
        way = install_advice("clang-19", "lld-19", "llvm-19")
        raise ClangTooOld(use=use, oldest=OLDEST_CLANG[use], name=identity.name, version=identity.version, way=way)


def _thresholds(value: Profile) -> tuple[str, ...]:
    """Return LLVM's words for what is hot and cold; empty for a profile from elsewhere, whose counts have another
    scale.
    """
    if value.from_ is not None:
        return ()
    return (f"-profile-summary-hot-count={value.hot}", f"-profile-summary-cold-count={value.cold}")


def _pgo(value: Profile, profile: Input, context: KnobContext) -> Contribution:
    return profile_pgo.compiled_by(profile, context.toolchain, _thresholds(value))


def _autofdo(value: Profile, profile: Input, context: KnobContext) -> Contribution:
    thresholds = _thresholds(value)
    words = tuple(word for threshold in thresholds for word in ("-mllvm", threshold))
    mapped = (BLOCK_MAP,) if value.trained_for == "propeller" else ()
    linked = " ".join(
        (
            f"--lto-sample-profile={profile.placeholder}",
            *(f"--mllvm={word}" for word in thresholds),
            *(["--lto-basic-block-address-map"] if mapped else []),
        )
    )
    return _compiled_by(profile, "-fprofile-sample-use=", (*words, *mapped), linked, context)


def _propeller(_: Profile, profile: Input, context: KnobContext) -> Contribution:
    linked = f"--lto-basic-block-sections={profile.placeholder} --lto-unique-basic-block-section-names"
    return _compiled_by(profile, "-fbasic-block-sections=list=", (), linked, context)


def _compiled_by(profile: Input, option: str, add: tuple[str, ...], linked: str, context: KnobContext) -> Contribution:
    """Return the contribution of a profile that ccd cuts for each source; the link is told of it if that compiles."""
    use = resolved.ProfileUse(name=profile.name, file=f"../{DIRECTORY}/{profile.file_name}", option=option, add=add)
    return Contribution(
        inputs=(profile,),
        profiles=(use,),
        facts=(f"profile {profile.name} {profile.digest} {option} {' '.join(add)}; {linked}",),
        environment=lkd.lto_words(context.toolchain, profile.name, linked),
    )


def _order(_: Profile, functions: Input, __: KnobContext) -> Contribution:
    return Contribution(environment={lkd.ORDER: functions.placeholder}, inputs=(functions,))


def _input(value: Profile, use: ProfileUse, context: KnobContext) -> Input:
    if value.from_ is not None:
        path = Path(value.from_)
        if use == "autofdo":
            profile_given.require_known(path, context.source.tree)
        return read_input(use, path, context.state)
    assert value.trainee, "load_experiment names it"
    training = Training(
        variant=f"{value.trainee.variant} (for {use})",
        recipe=_booted(value, use, value.trainee.recipe),
        load=value.trainee.load,
        seeds=tuple(range(1, value.seeds + 1)),
        settings=ProfileSettings.model_validate(value.model_dump(include=set(ProfileSettings.model_fields))),
    )
    return context.trained(use, training, _exporter(use, context))


def _exporter(use: ProfileUse, context: KnobContext) -> str:
    """Return the name of what makes it, in runs/exporters.py: compilers count each in their own way."""
    if use != "pgo":
        return use
    return "pgo-clang" if context.toolchain.is_clang else "pgo-gcc"


def _booted(value: Profile, use: ProfileUse, trainee: Recipe) -> Recipe:
    """Return the kernel that a use is trained on: the recipe with the uses that come before it.

    The code of the next round's sample profile is that of the last round's, without its layout: what llvm-profgen makes
    of functions in pieces is less.
    """
    plain = trainee.model_copy(update={"layout_seed": None, "order": None, "lines": True})
    if use == "pgo":
        return plain.model_copy(update={"profile": value.model_copy(update={"use": (), "trained_for": "pgo"})})
    if use == "autofdo":
        if value.rounds == 1 or value.on:
            return plain
        before = value.model_copy(update={"use": ("autofdo",), "rounds": value.rounds - 1, "trained_for": "autofdo"})
        return plain.model_copy(update={"profile": before})
    # Another variant is trained on with its own profile, if it has one.
    profile = (plain.profile if value.on else None) or value.model_copy(update={"use": () if value.on else value.use})
    uses = tuple(other for other in USES[: USES.index(use)] if other in profile.use)
    return plain.model_copy(update={"profile": profile.model_copy(update={"use": uses, "trained_for": use})})


def located(value: ProfileSpec | None, base: Path) -> ProfileSpec | None:
    if value is None:
        return None
    train = value.train and tuple(absolute(name, base) if is_file(name) else name for name in value.train)
    from_ = None if value.from_ is None else absolute(value.from_, base)
    families = tuple(_located_family(name, base) for name in value.families)
    return value.model_copy(update={"train": train, "from_": from_, "families": families})


def _located_family(name: str, base: Path) -> str:
    path = name.removeprefix("file:")
    return name if path == name else f"file:{absolute(path, base)}"


KNOB = Knob(NAME, contribute, check, located=located)
