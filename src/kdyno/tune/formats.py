"""The formats of this room that cross a process boundary, by their names in `kdyno schema`."""

from __future__ import annotations

from kdyno.base.formats import Format

FORMATS = {
    "fit-config": Format("kdyno.tune.fit.model:Fitted", "`kdyno fit-config --json`"),
    "tune": Format("kdyno.tune.delegation.tuned:Tuned", "`kdyno tune delegation --json`"),
}
