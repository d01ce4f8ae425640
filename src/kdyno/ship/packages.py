"""The finished packages of a shipment: what `ship` writes, and what `verify` compares with."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kdyno.base.files import read_whole
from kdyno.judge.verdicts.model import RunReport
from kdyno.kernel.built_kernels.header import MOST_KERNEL
from kdyno.kernel.image import Image
from kdyno.kernel.images import configuration_of
from kdyno.runs.session import Session
from kdyno.runs.soak.record import SoakRecord
from kdyno.ship.build import built_trees
from kdyno.ship.card import DIRECTORY, Card, CardImage
from kdyno.ship.make_card import BuildFacts, asked_of, make_card
from kdyno.ship.packager import PackagedKernel, Packager
from kdyno.ship.plan import ShipPlan, packages_plan, signing_requests, suffix_of
from kdyno.ship.secure_boot import is_signed
from kdyno.understand.reported_run import reported_run

CardOf = Callable[[Card], bytes]
"""From the card of the kernel that was built to the card that the package gets."""
ChangeKernel = Callable[[Path], object]
"""What is done to the kernel's file before the card is made: it is signed."""


@dataclass(frozen=True)
class FinishedPackages:
    """The packages of a kernel, in a directory that is removed."""

    image: Path
    headers: Path | None
    card: Card
    """The card of this build."""

    @property
    def files(self) -> list[Path]:
        return [self.image, *([self.headers] if self.headers else [])]


def report_of(ship: ShipPlan, session: Session) -> RunReport:
    """Return the judgement of the run, with what a processor made of its gains. Raises the store's errors."""
    return reported_run(session.store, ship.run.id, session.artefacts, analysed=True)


@contextmanager
def finished_packages(
    ship: ShipPlan,
    layout: int,
    image: Image,
    soak: SoakRecord | None,
    session: Session,
    packager: Packager,
    *,
    purpose: str,
    uses_ccache: bool,
    card_of: CardOf = Card.written,
    change_kernel: ChangeKernel = lambda _: None,
) -> Iterator[FinishedPackages]:
    """Build and finish the packages, and yield them for as long as the body takes. Raise the errors of built_trees, and
    SignatureForced.
    """
    extra = signing_requests(configuration_of(image), ship.variant.name)
    plan = packages_plan(ship.judged_plan, extra, purpose)
    report = report_of(ship, session)
    kernel = packaged_kernel(ship)
    with built_trees(plan, image, kernel, packager, session, uses_ccache=uses_ccache) as made:
        with session.talk.working("finishing the packages") as advance:
            tree, headers = made.trees.image, made.trees.headers
            name, headers_name = packager.names(kernel)
            advance(0, None, name)
            change_kernel(tree / packager.kernel_path(kernel.release))
            built = BuildFacts(
                package=name,
                version=packager.version(kernel.source_version),
                image=_card_image(tree, packager.kernel_path(kernel.release), made.build_id),
                config=made.config,
                config_sha256=_sha256(tree / packager.config_path(kernel.release)),
                code=made.code,
                asked=asked_of(plan),
            )
            card = make_card(ship, report, layout, built, soak, session.state)
            place = f"{DIRECTORY}/{kernel.release}.json"
            image_package = packager.pack_image(tree, card_of(card), place, kernel, made.scratch)
            headers_package = None
            if headers:
                advance(0, None, headers_name)
                headers_package = packager.pack_headers(headers, kernel, made.scratch)
        yield FinishedPackages(image_package, headers_package, card)


def packaged_kernel(ship: ShipPlan) -> PackagedKernel:
    """Return what packages are told of the kernel of a shipment."""
    asked = ship.judged_plan.asked
    return PackagedKernel(
        release=ship.release,
        suffix=suffix_of(ship.judged.key),
        source_version=ship.judged.source.version,
        epoch=ship.epoch,
        cpu_flags=ship.judged.needs,
        compiler=ship.judged.toolchain,
        has_modules=asked.get("MODULES") == "y",
        has_initrd=asked.get("BLK_DEV_INITRD") == "y",
    )


def _card_image(tree: Path, path: str, build_id: str) -> CardImage:
    kernel = tree / path
    return CardImage(
        path=f"/{path}",
        sha256=_sha256(kernel),
        size=kernel.stat().st_size,
        build_id=build_id,
        is_signed=is_signed(read_whole(kernel, MOST_KERNEL)),
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
