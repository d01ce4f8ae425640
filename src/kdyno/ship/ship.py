"""Ships a variant of a judged run: packages with its card, written whole or not at all."""

from __future__ import annotations

import hashlib
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from pydantic import ValidationError

from kdyno.base import process
from kdyno.base.errors import UserError
from kdyno.base.files import make_directory, read_whole, require_directory, sync
from kdyno.base.frozen import Frozen
from kdyno.base.mistakes import first_fault
from kdyno.base.packages import way_to_install
from kdyno.base.state import require_space, translate_disk_full
from kdyno.kernel import images
from kdyno.runs.session import Session
from kdyno.runs.soak.record import SoakRecord
from kdyno.ship.build import require_packagers
from kdyno.ship.card import Card
from kdyno.ship.lint import LINTERS, PackagingFinding, lint
from kdyno.ship.package_content import PackageKind
from kdyno.ship.packager import INITRD_MB
from kdyno.ship.packagers import PACKAGERS
from kdyno.ship.packages import FinishedPackages, finished_packages, packaged_kernel
from kdyno.ship.plan import ShipPlan, plan_ship, ready_image
from kdyno.ship.secure_boot import SecureBootKey
from kdyno.store.records import RunRecord

MOST_SOAK = 50_000_000
BOOT = Path("/boot")


class OtherFileThere(UserError):
    message = "{path} is there already, and is another file than the package that was built"
    hint = "move it away, or name another directory with --output DIR"


class SoakUnfit(UserError):
    message = "{path} is not the record of a soak of this image: {why}"
    hint = "run `kdyno soak {key} -o FILE`, and name that file"


class SignerMissing(UserError):
    message = "packages can't be signed: {program} is not installed"
    hint = "{way}"


class ShippedPackage(Frozen):
    """A package that was written."""

    path: Path
    sha256: str
    size: int
    signature: Path | None
    """The file with its signature by minisign; None unless a key was named."""


class Shipped(Frozen):
    """`kdyno ship --json`."""

    v: Literal[1] = 1
    release: str
    kind: PackageKind
    packages: tuple[ShippedPackage, ...]
    card: Card
    linter: str | None
    """The program that checked the packages; None: there is none for this kind of package."""
    lint: tuple[PackagingFinding, ...] | None
    """None: the linter isn't installed, or there is none."""
    notes: tuple[str, ...]


class ShipAhead(Frozen):
    """`kdyno ship --dry-run --json`: what would be done."""

    v: Literal[1] = 1
    release: str
    image: str
    """The key of the judged image."""
    image_is_built: bool
    training_inputs: int
    """The inputs that would be made from boots first."""
    packages: tuple[Path, ...]
    """The files that would be written."""
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ShipOrder:
    """What to ship, and where to."""

    run: RunRecord
    variant: str
    layout: int
    kind: PackageKind
    output: Path
    soak: Path | None
    """The record of a soak of the image."""
    key: Path | None
    """A secret key of minisign's."""
    secure_boot: SecureBootKey | None
    """What the kernel is signed with for Secure Boot."""
    uses_ccache: bool


def look_ahead(order: ShipOrder, session: Session) -> ShipAhead:
    """Check everything that can be checked without a build, and return what would be done."""
    plan = _checked(order, session)
    packager, kernel = PACKAGERS[order.kind], packaged_kernel(plan)
    image_name, headers_name = packager.names(kernel)
    names = [image_name, *([headers_name] if kernel.has_modules else [])]
    version = packager.version(kernel.source_version)
    return ShipAhead(
        release=plan.release,
        image=plan.judged.key,
        image_is_built=images.is_built(plan.judged.key, session.state),
        training_inputs=len(plan.trainings),
        packages=tuple(order.output / packager.file_name(name, version) for name in names),
        notes=(*plan.notes, *_room(plan.judged.sizes.bzimage or 0)),
    )


def ship(order: ShipOrder, session: Session) -> Shipped:
    """Build the packages of a variant, lint them and write them. Ctrl-C leaves nothing half-written."""
    plan = _checked(order, session)
    soak = soak_of(order.soak, plan.judged.key) if order.soak else None
    with session.state.hold_shared():
        image = ready_image(plan, session)
        with finished_packages(
            plan,
            order.layout,
            image,
            soak,
            session,
            PACKAGERS[order.kind],
            purpose="ship",
            uses_ccache=order.uses_ccache,
            change_kernel=order.secure_boot.sign if order.secure_boot else lambda _: None,
        ) as made:
            findings = lint(made.files, order.kind)
            packages = _write(made, order)
    return Shipped(
        release=plan.release,
        kind=order.kind,
        packages=packages,
        card=made.card,
        linter=LINTERS.get(order.kind),
        lint=findings,
        notes=(*plan.notes, *_room(made.card.image.size)),
    )


def _checked(order: ShipOrder, session: Session) -> ShipPlan:
    """Return the plan, after everything was checked that can be before a build."""
    require_directory(order.output)
    require_packagers(PACKAGERS[order.kind])
    if order.key and shutil.which("minisign") is None:
        raise SignerMissing(program="minisign", way=way_to_install("minisign"))
    if order.secure_boot:
        order.secure_boot.require_usable()
    return plan_ship(order.run, order.variant, order.layout, session)


def soak_of(path: Path, key: str) -> SoakRecord:
    """Read the record of a soak of the image with this key. Raise SoakUnfit."""
    try:
        soak = SoakRecord.model_validate_json(read_whole(path, MOST_SOAK))
    except OSError as error:
        raise SoakUnfit(path=path, why=error.strerror, key=key[:12]) from None
    except ValidationError as error:
        raise SoakUnfit(path=path, why=first_fault(error), key=key[:12]) from None
    if key not in (soak.kernel.image, soak.kernel.variant_of):
        raise SoakUnfit(path=path, why=f"it is one of the image {soak.kernel.image[:12]}", key=key[:12])
    return soak


def _room(kernel: int) -> tuple[str, ...]:
    """Return a note if /boot of this host lacks room for a kernel of this size and its initrd."""
    with suppress(OSError):
        initrds = [path.stat().st_size for path in BOOT.glob("initrd.img-*")]
        needed = kernel + max(initrds, default=INITRD_MB << 20)
        free = shutil.disk_usage(BOOT).free
        if free < needed:
            return (
                f"/boot of this host has {free // 10**6:,} MB free, and the kernel with its initrd needs about "
                f"{needed // 10**6:,} MB: the package would refuse to be installed here",
            )
    return ()


def _write(made: FinishedPackages, order: ShipOrder) -> tuple[ShippedPackage, ...]:
    """Copy the packages to the output directory: all under their names, or none."""
    written = []
    make_directory(order.output)
    with translate_disk_full(order.output):
        require_space(order.output, sum(path.stat().st_size for path in made.files))
        with TemporaryDirectory(prefix=".kdyno-ship-", dir=order.output) as partial:
            for path in made.files:
                target = order.output / path.name
                copy = Path(partial, path.name)
                shutil.copyfile(path, copy)
                digest = _sha256(copy)
                if target.exists() and (not target.is_file() or _sha256(target) != digest):
                    raise OtherFileThere(path=target)
                signature = _sign(copy, order.key) if order.key else None
                sync(copy)
                written.append((copy, target, digest, signature))
            for copy, target, _, signature in written:
                copy.replace(target)
                if signature:
                    signature.replace(order.output / signature.name)
        sync(order.output)
    return tuple(
        ShippedPackage(
            path=target,
            sha256=digest,
            size=target.stat().st_size,
            signature=signature and order.output / signature.name,
        )
        for _, target, digest, signature in written
    )


def _sign(package: Path, key: Path) -> Path:
    """Sign a package with the user's key: minisign asks for its password on the terminal, if it has one."""
    signature = package.with_name(f"{package.name}.minisig")
    words = ["minisign", "-S", "-W", "-s", str(key), "-m", str(package), "-x", str(signature)]
    process.output(words)
    return signature


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
