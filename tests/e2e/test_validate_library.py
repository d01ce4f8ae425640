"""Functions of a real kernel's lib/, compiled with its own flags, timed here and counted under QEMU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kdyno.base import process
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.measure.cycles.family import load_family
from kdyno.measure.cycles.measure import QEMU_USER
from kdyno.understand.validate.library import measure_library
from kdyno.understand.validate.library_build import UNITS, OptionSet
from kdyno.understand.validate.library_compare import compare_library

SETS = (OptionSet("gcc -O2", "gcc"), OptionSet("gcc -Os", "gcc", ("-Os",)))
NAMES = ("list_sort", "lz4")


def test_list_sort_and_lz4_of_debian_s_kernel_are_measured_both_ways(state: Path) -> None:
    """Timed on whatever host this is: only a model of another processor altogether is off by four times."""
    if "plugin" not in process.output([QEMU_USER, "--help"]):
        pytest.skip(f"{QEMU_USER} was built without plugins, as Debian 13's is")
    report = measure_library(
        "debian:linux-source-6.12",
        load_family("generic"),
        State(state),
        Talk(quiet=True),
        sets=SETS,
        units=[unit for unit in UNITS if unit.name in NAMES],
        times=10,
        passes=3,
    )
    assert report.notes == ()
    assert [name.split("-")[0] for name in report.measured.loads] == [
        *["list_sort"] * 3,
        *["lz4_compress"] * 2,
        *["lz4_decompress"] * 2,
    ]
    for flag in ("-O2", "-fno-strict-aliasing", "-mno-sse", "-mcmodel=kernel", "-mno-red-zone"):
        assert all(flag in flags for flags in report.flags.values()), flag
    off = np.log(report.measured.modelled / report.measured.native.min(axis=0))
    assert (np.abs(off) < np.log(4)).all()
    assert compare_library(report).agreement.effects == 7
