"""The formats of this room that cross a process boundary, by the names that `kdyno schema` has for them."""

from __future__ import annotations

from kdyno.base.formats import Format

FORMATS = {
    "blockmap": Format("kdyno.boot.blockmap.model:BlockMap", "`kdyno blockmap --json`"),
    "doctor-host": Format("kdyno.boot.host.look:HostReport", "`kdyno doctor --host --json`"),
    "doctor-set": Format("kdyno.boot.host.turn:Turned", "`kdyno doctor --host --set --json`, and --restore"),
}
