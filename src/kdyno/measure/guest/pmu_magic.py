"""The first bytes of a PMU record: a module of its own, as what reads the rest takes long to import."""

from __future__ import annotations

MAGIC = b"kdyno-pmu "
