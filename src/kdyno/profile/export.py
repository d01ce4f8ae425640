"""The formats that a record can be exported to, by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.measure.guest.pmu_parts import Region
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.edges import edge_profile
from kdyno.profile.export_autofdo import autofdo
from kdyno.profile.export_lbr import lbr
from kdyno.profile.export_llvm import unsymbolized
from kdyno.profile.propeller import cluster_file
from kdyno.profile.select import WORK
from kdyno.profile.stacks import collapsed
from kdyno.profile.vmlinux import load_address, require_same

FORMATS = ("llvm", "autofdo", "lbr", "collapsed", "propeller")
NEED_VMLINUX = {
    "autofdo": "has addresses relative to where vmlinux is loaded, which the record doesn't say",
    "propeller": "names basic blocks, of which the record knows only the addresses",
}


class VmlinuxNeeded(UserError):
    message = "the format {form} {why}"
    hint = "add --vmlinux FILE: the vmlinux of the image that was recorded"


class NoStacks(UserError):
    message = "the record {record} has no call stacks"
    hint = "record it with --events all: --events edges leaves them out"


def export(
    record: PmuRecord,
    path: Path,
    form: str,
    regions: Sequence[Region],
    contexts: Sequence[str] = WORK,
    vmlinux: Path | None = None,
) -> str:
    """The record, read from `path`, in one of FORMATS."""
    if vmlinux:
        require_same(record, path, vmlinux)
    if form == "collapsed":
        if regions and not any(region.stacks for region in regions):
            raise NoStacks(record=path)
        return collapsed(record, regions, contexts)
    edges = edge_profile(record, regions, contexts)
    if form in NEED_VMLINUX:
        if vmlinux is None:
            raise VmlinuxNeeded(form=form, why=NEED_VMLINUX[form])
        return autofdo(edges, load_address(vmlinux)) if form == "autofdo" else cluster_file(edges, vmlinux)
    return lbr(edges) if form == "lbr" else unsymbolized(edges)
