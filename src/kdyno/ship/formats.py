"""The formats of this room that cross a process boundary, by their names in `kdyno schema`."""

from __future__ import annotations

from kdyno.base.formats import Format

FORMATS = {
    "card": Format("kdyno.ship.card:Card", "`kdyno card --json`, and the card in a package"),
    "ship": Format("kdyno.ship.ship:Shipped", "`kdyno ship --json`"),
    "ship-ahead": Format("kdyno.ship.ship:ShipAhead", "`kdyno ship --dry-run --json`"),
    "verify": Format("kdyno.ship.verify:Verification", "`kdyno verify --json`"),
}
