"""The formats of this room that cross a process boundary, by their names in `kdyno schema`."""

from __future__ import annotations

from kdyno.base.formats import Format

FORMATS = {
    "bisect": Format("kdyno.tune.bisect.model:Bisection", "`kdyno bisect --json`"),
    "confirm": Format("kdyno.tune.confirm:ConfirmedWinner", "`kdyno confirm --json`"),
    "fit-config": Format("kdyno.tune.fit.model:Fitted", "`kdyno fit-config --json`"),
    "search": Format("kdyno.tune.space.model:SearchResult", "`kdyno tune space --json`"),
    "tune": Format("kdyno.tune.delegation.tuned:Tuned", "`kdyno tune delegation --json`"),
}
