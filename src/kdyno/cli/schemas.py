"""The JSON schemas of everything that crosses a process boundary: each room lists its formats."""

from __future__ import annotations

import pkgutil
from itertools import chain
from typing import TYPE_CHECKING, Any

from kdyno.base.formats import Format
from kdyno.boot.formats import FORMATS as BOOT
from kdyno.judge.formats import FORMATS as JUDGE
from kdyno.kernel.formats import FORMATS as KERNEL
from kdyno.measure.formats import FORMATS as MEASURE
from kdyno.profile.formats import FORMATS as PROFILE
from kdyno.report.formats import FORMATS as REPORT
from kdyno.runs.formats import FORMATS as RUN
from kdyno.ship.formats import FORMATS as SHIP
from kdyno.store.formats import FORMATS as STORE
from kdyno.tune.formats import FORMATS as TUNE
from kdyno.understand.formats import FORMATS as UNDERSTAND
from kdyno.understand.lab.formats import FORMATS as LAB

if TYPE_CHECKING:
    from pydantic import TypeAdapter

DIALECT = "https://json-schema.org/draft/2020-12/schema"
CLI = {"error": Format("kdyno.cli.failure:FailedCommand", "every command with `--json` that fails")}
ROOMS = (CLI, MEASURE, KERNEL, PROFILE, BOOT, STORE, JUDGE, RUN, UNDERSTAND, TUNE, SHIP, LAB, REPORT)
FORMATS = dict(sorted(chain.from_iterable(room.items() for room in ROOMS)))


def schema(name: str) -> dict[str, Any]:
    """Return the self-contained schema of a format. Raises KeyError."""
    return headed(name, closed(type_of(name).json_schema(mode=FORMATS[name].mode)))


def type_of(name: str) -> TypeAdapter[Any]:
    """Return the type of a format. Raises KeyError."""
    from pydantic import TypeAdapter

    return TypeAdapter(pkgutil.resolve_name(FORMATS[name].type))


def headed(name: str, format_schema: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": DIALECT, "title": f"kdyno {name}"} | format_schema


def closed(value: Any) -> Any:
    """Forbid additional properties wherever properties are named: models and dataclasses have no others."""
    if isinstance(value, list):
        return [closed(part) for part in value]
    if not isinstance(value, dict):
        return value
    parts = {key: closed(part) for key, part in value.items()}
    if isinstance(parts.get("properties"), dict):
        parts.setdefault("additionalProperties", False)
    return parts
