"""The directory of a fleet: fleet.toml, which names scheduler, queue and blob store, and the certificates."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, ValidationError

from kdyno.base.files import read_whole
from kdyno.base.frozen import Frozen
from kdyno.base.mistakes import first_fault
from kdyno.fleet.blobs import Blobs
from kdyno.fleet.errors import NotAFleet
from kdyno.fleet.queue.queue import LEASE_SECONDS, Queue

if TYPE_CHECKING:
    from distributed import Security

FILE = "fleet.toml"
AUTHORITY = "ca.pem"
MOST_BYTES = 100_000
Role = Literal["scheduler", "worker", "client"]


class FleetFile(Frozen):
    """The content of fleet.toml."""

    id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    """The start of the SHA-256 of the certificate authority."""
    scheduler: Annotated[str, Field(pattern=r"^tls://[^\s/]+:[0-9]{1,5}$")]
    database: str
    """PostgreSQL by URL, or `@FILE` with the URL."""
    blobs: str
    """A directory, or a URL of fsspec: `s3://bucket/prefix`."""
    lease_seconds: Annotated[float, Field(ge=1, le=3600)] = LEASE_SECONDS
    """After so many seconds of silence a worker loses its tasks."""


@dataclass(frozen=True)
class Fleet:
    """A fleet, by its directory."""

    directory: Path
    file: FleetFile

    def queue(self) -> Queue:
        """Return the queue; nothing is opened yet. Raises NotPostgresql, StoreUrlInvalid and StoreFileUnfit."""
        named = self.file.database
        if named.startswith("@"):
            named = f"@{self.directory / named[1:]}"
        return Queue(named, self.file.lease_seconds)

    def blobs(self) -> Blobs:
        """Return the blob store."""
        return Blobs(self.file.blobs)

    def security(self, role: Role) -> Security:
        """Return the certificates of a role for Dask, which refuses everybody without one of this fleet.

        Raises NotAFleet if a file is missing.
        """
        from distributed import Security

        files = {"tls_ca_file": AUTHORITY, f"tls_{role}_cert": f"{role}.pem", f"tls_{role}_key": f"{role}.key"}
        for name in files.values():
            if not (self.directory / name).is_file():
                raise NotAFleet(path=self.directory, why=f"it has no {name}")
        paths = {option: str(self.directory / name) for option, name in files.items()}
        return Security(require_encryption=True, **paths)


def read_fleet(directory: Path) -> Fleet:
    """Return the fleet of a directory. Raises NotAFleet."""
    try:
        text = read_whole(directory / FILE, MOST_BYTES).decode()
        return Fleet(directory.absolute(), FleetFile.model_validate(tomllib.loads(text)))
    except OSError as error:
        raise NotAFleet(path=directory, why=f"{FILE}: {error.strerror}") from error
    except ValidationError as error:
        raise NotAFleet(path=directory, why=f"{FILE}: {first_fault(error)}") from error
    except ValueError as error:
        raise NotAFleet(path=directory, why=f"{FILE}: {error}") from error
