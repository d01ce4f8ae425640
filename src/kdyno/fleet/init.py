"""Makes the directory of a fleet: certificates, fleet.toml, and the queue's tables. Whole, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import tomli_w

from kdyno.fleet.blobs import Blobs
from kdyno.fleet.certificates import make_certificates
from kdyno.fleet.errors import FleetThere
from kdyno.fleet.fleet_file import FILE, Fleet, FleetFile, read_fleet


def init_fleet(directory: Path, *, database: str, blobs: str, scheduler: str, lease_seconds: float) -> Fleet:
    """Make the directory of a fleet, and the tables of its queue.

    Raises FleetThere, OtherFleet, BlobStoreFailed, and what opening a queue raises.
    """
    if os.path.lexists(directory):
        raise FleetThere(path=directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{directory.name}-", dir=directory.parent) as made:
        partial = Path(made) / "fleet"
        partial.mkdir(mode=0o700)
        identity = make_certificates(partial)
        file = FleetFile(id=identity, scheduler=scheduler, database=database, blobs=blobs, lease_seconds=lease_seconds)
        (partial / FILE).write_text(tomli_w.dumps(file.model_dump()), encoding="utf-8")
        (partial / FILE).chmod(0o600)  # the URL of the database may hold a password
        if database.startswith("@"):
            source = Path(database[1:])
            shutil.copy(source, partial / source.name)
        fleet = read_fleet(partial)
        Blobs(blobs).check()
        with fleet.queue() as queue:
            queue.migrate(identity)
        partial.rename(directory)
    return read_fleet(directory)
