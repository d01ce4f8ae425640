"""The record of an input that was made from boots."""

from __future__ import annotations

from typing import Any

from kdyno.base.frozen import Frozen, digest


class Derivation(Frozen):
    """All that decides the content of an input that is made from boots."""

    exporter: str
    version: int
    """The version of the exporter."""
    image: str
    """The key of the image that is booted."""
    boots: tuple[str, ...]
    """The key of each boot, in the order of the seeds: image, command line, job, machine and seed decide it."""
    settings: dict[str, Any]
    """The settings that the exporter uses."""
    families: dict[str, str] = {}
    """The SHA-256 of the known facts about each CPU family that it makes the input for."""

    @property
    def digest(self) -> str:
        return digest(self.model_dump())
