"""The formats of this room that cross a process boundary, by the names that `kdyno schema` has for them."""

from __future__ import annotations

from kdyno.base.formats import Format

FORMATS = {
    "notification": Format("kdyno.report.notification:Notification", "what the program of `kdyno run --notify` reads"),
}
