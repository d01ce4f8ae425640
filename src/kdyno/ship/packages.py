"""The finished packages of a shipment: what `ship` writes, and what `verify` compares with."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kdyno.judge.verdicts.assemble import assemble
from kdyno.judge.verdicts.model import RunReport
from kdyno.kernel.image import Image
from kdyno.runs.session import Session
from kdyno.runs.soak.record import SoakRecord
from kdyno.ship import deb
from kdyno.ship.build import KernelPackages, kernel_packages, package_version
from kdyno.ship.card import DIRECTORY, Card, CardImage
from kdyno.ship.make_card import BuildFacts, asked_of, make_card
from kdyno.ship.plan import ShipPlan, config_of, packages_plan, signing_requests
from kdyno.understand.confirm import with_confirmation
from kdyno.understand.explain.budgets import with_budgets

CardOf = Callable[[Card], bytes]
"""From the card of the kernel that was built to the card that the package gets."""


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
    report = assemble(session.store, ship.run.id, session.artefacts, analysed=False)
    return with_budgets(with_confirmation(report, session.store, session.artefacts), session.artefacts)


@contextmanager
def finished_packages(
    ship: ShipPlan,
    layout: int,
    image: Image,
    soak: SoakRecord | None,
    session: Session,
    *,
    purpose: str,
    uses_ccache: bool,
    card_of: CardOf = Card.written,
) -> Iterator[FinishedPackages]:
    """Build and finish the packages, and yield them for as long as the body takes. Raise the errors of kernel_packages,
    and SignatureForced.
    """
    extra = signing_requests(config_of(image), ship.variant.name)
    plan = packages_plan(ship.judged_plan, extra, purpose)
    report = report_of(ship, session)
    with kernel_packages(plan, image, ship.release, ship.epoch, session, uses_ccache=uses_ccache) as made:
        with session.talk.working("finishing the packages") as advance:
            advance(0, None, made.image.name)
            tree = made.scratch / "image"
            deb.unpack(made.image, tree)
            built = BuildFacts(
                image=_card_image(tree, ship.release, made.build_id),
                config=made.config,
                config_sha256=_sha256(tree / "boot" / f"config-{ship.release}"),
                code=made.code,
                asked=asked_of(plan),
            )
            card = make_card(ship, report, layout, built, soak, session.state)
            place = f"{DIRECTORY}/{ship.release}.json"
            deb.finish_image(tree, card_of(card), place, ship.release, ship.judged.needs)
            finished = _finished(tree, f"linux-image-{ship.release}", ship, made.scratch)
            headers = _headers(made, ship, advance)
        yield FinishedPackages(finished, headers, card)


def _headers(made: KernelPackages, ship: ShipPlan, advance: Callable[[int, int | None, str], None]) -> Path | None:
    if made.headers is None:
        return None
    advance(0, None, made.headers.name)
    tree = made.scratch / "headers"
    deb.unpack(made.headers, tree)
    deb.finish_headers(tree, made.config_file, ship.judged.toolchain, ship.release)
    return _finished(tree, f"linux-headers-{ship.release}", ship, made.scratch)


def _finished(tree: Path, package: str, ship: ShipPlan, scratch: Path) -> Path:
    version = package_version(ship.judged.source.version)
    deb.settle(tree, package, version, ship.epoch)
    file = scratch / f"{package}_{version}_amd64.deb"
    deb.pack(tree, file, ship.epoch)
    return file


def _card_image(tree: Path, release: str, build_id: str) -> CardImage:
    kernel = tree / "boot" / f"vmlinuz-{release}"
    return CardImage(path=f"/boot/{kernel.name}", sha256=_sha256(kernel), size=kernel.stat().st_size, build_id=build_id)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
