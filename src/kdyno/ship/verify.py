"""Verifies packages: builds them again in another directory, and compares byte by byte.

What a package says of itself only chooses what is built: the run must be in the store of whoever verifies. Nothing of a
package is unpacked or run, and no recipe is taken from a card.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.base.text import cut
from kdyno.runs.session import Session
from kdyno.runs.subject import find_run
from kdyno.ship.card import Card
from kdyno.ship.find_card import FoundCard, of_package
from kdyno.ship.package_content import PackageContent
from kdyno.ship.packagers import PACKAGERS
from kdyno.ship.packages import finished_packages, packaged_kernel
from kdyno.ship.plan import plan_ship, ready_image
from kdyno.ship.read_package import read_package
from kdyno.ship.secure_boot import take_signature
from kdyno.ship.ship import soak_of

FILES_SHOWN = 20
VALUE_SHOWN = 80
DEPTH = 3
"""Levels of a card whose differences are named one by one."""


class NoImagePackage(UserError):
    message = "none of {names} is the package of a kernel"
    hint = "name the package that has /usr/share/kdyno/cards, and after it that of the headers"


class OtherKernel(UserError):
    message = "{path} is of the image {claimed}, and run {run} judged {judged} as variant {variant}"
    hint = "name the run that the package is from with --run RUN"


class NotOfThisKernel(UserError):
    message = "{path} is the package {name}, which doesn't belong to the kernel {release}"
    hint = "name only the packages of one kernel"


class ComparedPackage(Frozen):
    """A package, and the one that was built to compare it with."""

    path: Path
    package: str
    sha256: str
    built_sha256: str
    files: int
    """The number of files in it."""
    differing: tuple[str, ...]
    """Files that differ, or that only one of the two has."""

    @property
    def is_same(self) -> bool:
        return self.sha256 == self.built_sha256


class Verification(Frozen):
    """`kdyno verify --json`."""

    v: Literal[1] = 1
    release: str
    run: str
    packages: tuple[ComparedPackage, ...]
    card: tuple[str, ...]
    """Claims of the card that differ from what this host finds."""
    used_ccache: bool

    @property
    def is_same(self) -> bool:
        """Return whether packages and card are what they claim to be."""
        return all(package.is_same for package in self.packages) and not self.card


def verify(
    paths: Sequence[Path], run: str | None, soak: Path | None, session: Session, *, uses_ccache: bool
) -> Verification:
    """Build the packages again and compare. Raise the errors above, and those of plan_ship and of builds."""
    contents = [read_package(path) for path in paths]
    found, written, signed = _card(paths, contents)
    card = found.card
    record = find_run(run or card.verdicts.run, session.state, session.store)
    layout = card.verdicts.layout
    plan = plan_ship(record, card.verdicts.variant, layout, session, may_run=True)
    if plan.judged.key != card.judged.key:
        raise OtherKernel(
            path=paths[0],
            claimed=card.judged.key[:12],
            run=record.id[:12],
            judged=plan.judged.key[:12],
            variant=plan.variant.name,
        )
    assert found.package_kind, "the card is from a package"
    packager = PACKAGERS[found.package_kind]
    names = packager.names(packaged_kernel(plan))
    for path, content in zip(paths, contents, strict=True):
        if content.name not in names or content.kind != packager.kind:
            raise NotOfThisKernel(path=path, name=content.name, release=card.release)
    soaked = soak_of(soak, plan.judged.key) if soak else None
    with session.state.hold_shared():
        image = ready_image(plan, session)
        with finished_packages(
            plan,
            layout,
            image,
            soaked,
            session,
            packager,
            purpose="verify",
            uses_ccache=uses_ccache,
            card_of=lambda _: written,
            change_kernel=lambda kernel: take_signature(kernel, signed),
        ) as made:
            built = {content.name: content for content in map(read_package, made.files)}
            compared = tuple(
                _compare(path, content, built[content.name]) for path, content in zip(paths, contents, strict=True)
            )
    return Verification(
        release=card.release,
        run=record.id,
        packages=compared,
        card=tuple(differences(card, made.card)),
        used_ccache=uses_ccache,
    )


def _card(paths: Sequence[Path], contents: Sequence[PackageContent]) -> tuple[FoundCard, bytes, bytes]:
    """Return the card in the packages, its bytes, and those of the kernel."""
    for path, content in zip(paths, contents, strict=True):
        if content.kernels or content.cards:
            card = of_package(content, path)
            return card, next(iter(content.cards.values())), next(iter(content.kernels.values()))
    raise NoImagePackage(names=", ".join(path.name for path in paths))


def _compare(path: Path, content: PackageContent, built: PackageContent) -> ComparedPackage:
    names = sorted({*content.files, *built.files})
    return ComparedPackage(
        path=path,
        package=content.name,
        sha256=content.sha256,
        built_sha256=built.sha256,
        files=len(content.files),
        differing=tuple(name for name in names if content.files.get(name) != built.files.get(name))[:FILES_SHOWN],
    )


def differences(claimed: Card, found: Card) -> Iterator[str]:
    """Yield the claims of a card that differ from those of another, each with both values. Pure."""
    yield from _differences("", claimed.model_dump(mode="json"), found.model_dump(mode="json"), DEPTH)


def _differences(place: str, claimed: Any, found: Any, depth: int) -> Iterator[str]:
    if claimed == found:
        return
    if depth and isinstance(claimed, dict) and isinstance(found, dict):
        for key in [*claimed, *(key for key in found if key not in claimed)]:
            yield from _differences(f"{place}.{key}".lstrip("."), claimed.get(key), found.get(key), depth - 1)
    else:
        shown = [cut(str(value), VALUE_SHOWN) for value in (claimed, found)]
        yield f"{place}: the card has {shown[0]}, and here it is {shown[1]}"
