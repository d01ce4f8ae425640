"""Whether the libraries of a fleet are installed: they are an extra of kdyno."""

from __future__ import annotations

from importlib.util import find_spec

from kdyno.fleet.errors import FleetExtraMissing

LIBRARIES = ("psycopg", "alembic", "cryptography", "distributed", "fsspec")


def missing_libraries() -> list[str]:
    """Return the libraries of the extra that are not installed."""
    return [library for library in LIBRARIES if find_spec(library) is None]


def require_extra() -> None:
    """Raise FleetExtraMissing unless the libraries are installed."""
    if missing := missing_libraries():
        raise FleetExtraMissing(library=missing[0])
