"""The record of an input that was made of boots."""

from __future__ import annotations

from typing import Any

from kdyno.base.frozen import Frozen, digest


class Derivation(Frozen):
    """All that decides the content of an input that is made of boots."""

    exporter: str
    version: int
    """The exporter's."""
    image: str
    """Key of the image that is booted."""
    boots: tuple[str, ...]
    """Key of each boot, in the order of the seeds: image, command line, job, machine and seed decide it."""
    settings: dict[str, Any]
    """Those that the exporter heeds."""
    families: dict[str, str] = {}
    """SHA-256 of what is known of each CPU family that it makes something for."""

    @property
    def digest(self) -> str:
        return digest(self.model_dump())
