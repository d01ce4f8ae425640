"""The plan of a shipment: which image of a run becomes packages, under which release, and what stands against it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kdyno.base.errors import UserError
from kdyno.base.frozen import digest
from kdyno.base.regex import compile_pattern
from kdyno.base.text import format_list
from kdyno.kernel import images
from kdyno.kernel.image import Image, ImageRecord
from kdyno.kernel.inputs import digests
from kdyno.kernel.knobs.base import KconfigRequest
from kdyno.kernel.plan import UNSIGNED, BuildPlan
from kdyno.runs.derive import PlannedTraining
from kdyno.runs.images import build_images
from kdyno.runs.prepare import plan_builds
from kdyno.runs.session import Session
from kdyno.runs.silicon import recorded_experiment
from kdyno.runs.train import make_inputs
from kdyno.store.named_run import require_variant
from kdyno.store.records import RunRecord, VariantRecord

FORMAT = 2
"""Part of the key of every package build; raised when the same image would give other packages."""
KEY_DIGITS = 12
"""Digits of the image's key in the release."""
NO_SUFFIX = "LOCALVERSION="
"""The word of make by which kdyno's images have the release of their source."""
MOST_RELEASE = 64
"""Characters of a release (__NEW_UTS_LEN in include/uapi/linux/utsname.h)."""
RELEASE = compile_pattern(r"^[0-9]+\.[0-9]+[a-z0-9.+~-]*$")
"""A release that can be a part of a Debian package's name."""
INITRD_FORMS = ("RD_ZSTD", "RD_GZIP")
"""What unpacks the initrds that Debian's initramfs-tools makes."""
GUESTS_ONLY = "dyno"
"""The base configuration that has drivers for guests of kdyno, and none for a real machine."""


class ProcessNotShipped(UserError):
    message = (
        "variant {variant} of run {run} is a kernel for ARCH=um: a program of its host, which boots no machine, and is "
        "never shipped"
    )
    hint = (
        'build the same recipe for x86: remove `type = "uml"` from [machine] of the experiment, set config = "running" '
        'or "file:/boot/config-RELEASE", run it, and ship that run'
    )


class NoImageInRun(UserError):
    message = "variant {variant} of run {run} has no image: the machine `{machine}` builds no kernel"
    hint = 'set type = "qemu" in [machine] of the experiment, run it, and ship that run'


class BuiltElsewhere(UserError):
    message = "variant {variant} is the built kernel {image}: kdyno can't package what it didn't build"
    hint = "install the package that the kernel is from"


class RunNotReadable(UserError):
    message = "this kdyno can't read the experiment of run {run}, which kdyno {version} made"
    hint = "run the experiment with this kdyno, and ship that run"


class NoSuchLayout(UserError):
    message = "variant {variant} of run {run} has {count} images, one for each link order; there is no number {number}"
    hint = "name one by --layout N, from 0 to {last}"


class OtherImageNow(UserError):
    message = (
        "the image {judged} that run {run} judged can't be built again here: the same recipe now gives {planned}; {why}"
    )
    hint = "run the experiment again to judge the kernel that this host builds, and ship that run"


class ReleaseUnfit(UserError):
    message = "the release {release} can't be a part of a package's name: {why}"
    hint = 'set kconfig = {{ LOCALVERSION = "" }} in the recipe, or another short text in lower case'


class ReleaseRuns(UserError):
    message = "this host runs the kernel {release}: its packages would be installed over the files of the running one"
    hint = "boot another kernel first; `kdyno verify PACKAGE` builds the packages again without installing them"


class SignatureForced(UserError):
    message = "the kernel of variant {variant} loads signed modules only (MODULE_SIG_FORCE), and kdyno signs no modules"
    hint = "set kconfig = {{ MODULE_SIG_FORCE = false }} in the recipe, run it, and ship that run"


@dataclass(frozen=True)
class ShipPlan:
    """A shipment that has been checked, before anything is built."""

    run: RunRecord
    variant: VariantRecord
    judged: ImageRecord
    """The image that the run judged."""
    judged_plan: BuildPlan
    plan: BuildPlan
    """The build of the packages."""
    trainings: tuple[PlannedTraining, ...]
    """The inputs that are made before."""
    release: str
    notes: tuple[str, ...]

    @property
    def epoch(self) -> int:
        """The time of all files in the packages: that of the run, in seconds since 1970."""
        return int(self.run.created.timestamp())


def plan_ship(run: RunRecord, variant: str, layout: int, session: Session, *, may_run: bool = False) -> ShipPlan:
    """Check that a variant of a run can be shipped from here, and plan the build of its packages.

    With `may_run` the kernel may be the one that runs here: the packages are not for installing. Raises the errors
    above, NoSuchVariant and those of plan_builds.
    """
    require_variant(run.id, variant, [one.name for one in run.variants])
    chosen = next(one for one in run.variants if one.name == variant)
    judged = _judged(run, chosen, layout)
    experiment = recorded_experiment(run)
    if experiment is None:
        raise RunNotReadable(run=run.id[:KEY_DIGITS], version=run.kdyno)
    builds = plan_builds(experiment, session.state, session.talk, [variant])
    planned = builds.plans[variant][layout]
    assert isinstance(planned, BuildPlan), "a built kernel was refused above"
    if planned.key != judged.key:
        raise OtherImageNow(
            judged=judged.key[:KEY_DIGITS],
            run=run.id[:KEY_DIGITS],
            planned=planned.key[:KEY_DIGITS],
            why=format_list(list(_differences(planned, judged))),
        )
    release = release_of(judged)
    _require_fit(release, may_run=may_run)
    return ShipPlan(
        run=run,
        variant=chosen,
        judged=judged,
        judged_plan=planned,
        plan=packages_plan(planned),
        trainings=builds.trainings,
        release=release,
        notes=(*_notes(chosen, judged, layout), *_initrd_notes(planned.asked)),
    )


def _judged(run: RunRecord, variant: VariantRecord, layout: int) -> ImageRecord:
    """Return the image of the variant. Raise the reason why it can't be shipped."""
    facts = {"variant": variant.name, "run": run.id[:KEY_DIGITS]}
    if not variant.images:
        raise NoImageInRun(**facts, machine=run.machine.get("type", "unknown"))
    if layout >= len(variant.images):
        count = len(variant.images)
        raise NoSuchLayout(**facts, count=count, number=layout, last=count - 1)
    image = variant.images[layout]
    if image.recipe.image is not None:
        raise BuiltElsewhere(**facts, image=image.recipe.image)
    if image.arch == "um":
        raise ProcessNotShipped(**facts)
    return image


def _differences(plan: BuildPlan, image: ImageRecord) -> Iterator[str]:
    """Yield what decides an image and isn't what it was."""
    compared = {
        "source": (plan.source.identity, image.source.identity),
        "compiler": (plan.toolchain.identity.digest, image.toolchain.digest),
        "words of make": (plan.make, image.make),
        "patches": (plan.patches, image.patches),
        "inputs": (digests(plan.inputs), image.inputs),
        "facts of this host": (plan.facts, image.facts),
    }
    differing = [f"the {name} differ{'' if name[-1] == 's' else 's'}" for name, (a, b) in compared.items() if a != b]
    yield from differing or ["the base configuration, a tool or kdyno's own rules have changed"]


def release_of(judged: ImageRecord) -> str:
    """Return the release of the packages' kernel: that of the judged image and the start of its key."""
    return f"{judged.release}{suffix_of(judged.key)}"


def suffix_of(key: str) -> str:
    return f"-kdyno-{key[:KEY_DIGITS]}"


def _require_fit(release: str, *, may_run: bool) -> None:
    if len(release) > MOST_RELEASE:
        raise ReleaseUnfit(release=release, why=f"it has more than {MOST_RELEASE} characters")
    if not RELEASE.search(release):
        raise ReleaseUnfit(release=release, why="it has characters other than lower-case letters, digits and `.+~-`")
    if release == os.uname().release and not may_run:
        raise ReleaseRuns(release=release)


def packages_plan(plan: BuildPlan, extra: tuple[KconfigRequest, ...] = (), purpose: str = "ship") -> BuildPlan:
    """Return the plan of the packages of an image: the same build, under a release of its own, in a directory of its
    own for each `purpose`. Pure.
    """
    make = tuple(f"{NO_SUFFIX}{suffix_of(plan.key)}" if word == NO_SUFFIX else word for word in plan.make)
    assert make != plan.make, "the image was planned without a suffix of its release"
    asks = {request.symbol: request for request in (*plan.asks, *extra)}
    key = digest([FORMAT, plan.key, purpose])
    return plan.model_copy(
        update={"make": make, "asks": tuple(asks.values()), "key": key, "objects_key": key, "cached": False}
    )


def signing_requests(config: Mapping[str, str], variant: str) -> tuple[KconfigRequest, ...]:
    """Return what must change if the recipe asks for signed modules, so that no key is made. Raise SignatureForced."""
    if config.get("MODULE_SIG") != "y":
        return ()
    if config.get("MODULE_SIG_FORCE") == "y":
        raise SignatureForced(variant=variant)
    return tuple(
        KconfigRequest(symbol=symbol, value=value, by="kdyno ship")
        for symbol, value in UNSIGNED.items()
        if config.get(symbol, value) != value
    )


def _notes(variant: VariantRecord, image: ImageRecord, layout: int) -> Iterator[str]:
    if image.base == GUESTS_ONLY:
        yield (
            f"the base configuration is `{GUESTS_ONLY}`, which has drivers for kdyno's guests only: build with "
            'config = "running" or "file:/boot/config-RELEASE" for a real machine'
        )
    if words := variant.recipe.words:
        yield f"the verdicts are about the kernel command line `{' '.join(words)}`, which the package doesn't set"
    if len(variant.images) > 1:
        yield (
            f"the run judged {len(variant.images)} link orders together; number {layout} is shipped, whose own effect "
            "differs from their mean"
        )


def _initrd_notes(asked: Mapping[str, str]) -> Iterator[str]:
    if asked.get("BLK_DEV_INITRD") == "y" and not any(asked.get(form) == "y" for form in INITRD_FORMS):
        yield (
            f"the kernel has none of {' and '.join(INITRD_FORMS)}: it can't unpack the initrd that distributions make, "
            "and the installation will fail where initramfs-tools is installed, which refuses to make it"
        )


def ready_image(ship: ShipPlan, session: Session) -> Image:
    """Return the judged image, with everything that the build of the packages takes from boots; built now if need
    be.
    """
    make_inputs(ship.trainings, session)
    if images.is_built(ship.judged.key, session.state):
        return images.load_image(ship.judged.key, session.state)
    [image] = build_images({ship.variant.name: (ship.judged_plan,)}, session.state, session.talk)[ship.variant.name]
    return image
