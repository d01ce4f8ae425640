"""Exporting a record to one of several formats, by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.kernel.vmlinux.checks import load_address, require_same
from kdyno.measure.guest.pmu_parts import Region
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.edges import edge_profile
from kdyno.profile.export_autofdo import autofdo
from kdyno.profile.export_lbr import lbr
from kdyno.profile.export_llvm import unsymbolized
from kdyno.profile.propeller import cluster_file
from kdyno.profile.select import WORK
from kdyno.profile.stacks import collapse_stacks

FORMATS = ("llvm", "autofdo", "lbr", "collapsed", "propeller")
NEED_VMLINUX = {
    "autofdo": "has addresses relative to the load address of vmlinux, which the record does not contain",
    "propeller": "names basic blocks by ids, but the record contains only their addresses",
}


class VmlinuxNeeded(UserError):
    message = "the format {form} {why}"
    hint = "add --vmlinux FILE with the vmlinux of the recorded image"


class NoStacks(UserError):
    message = "the record {record} has no call stacks"
    hint = "record it with --events all: --events edges omits them"


def export(
    record: PmuRecord,
    path: Path,
    form: str,
    regions: Sequence[Region],
    contexts: Sequence[str] = WORK,
    vmlinux: Path | None = None,
) -> str:
    """Return the record, which was read from `path`, in one of FORMATS."""
    if vmlinux:
        require_same(record, path, vmlinux)
    if form == "collapsed":
        if regions and not any(region.stacks for region in regions):
            raise NoStacks(record=path)
        return collapse_stacks(record, regions, contexts)
    edges = edge_profile(record, regions, contexts)
    if form in NEED_VMLINUX:
        if vmlinux is None:
            raise VmlinuxNeeded(form=form, why=NEED_VMLINUX[form])
        return autofdo(edges, load_address(vmlinux)) if form == "autofdo" else cluster_file(edges, vmlinux)
    return lbr(edges) if form == "lbr" else unsymbolized(edges)
