"""clang's sample profile of records: made by the real llvm-profgen, balanced, and cut by source files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from kdyno.kernel.image import Image
from kdyno.kernel.recipe import ProfileSettings
from kdyno.kernel.vmlinux.checks import NoLineTables, OtherVmlinux
from kdyno.profile.autofdo import sample_profile, with_files
from kdyno.profile.balance import TOTAL
from kdyno.profile.coverage import ProfileNothingRan
from tests.unit.pmu_specimen import context, write
from tests.unit.profile.test_profile_coverage import build, record_of, toy

assert toy, "the fixture `vmlinux`"


def image_of(vmlinux: Path) -> Image:
    return cast("Image", SimpleNamespace(vmlinux=vmlinux))


def test_a_profile_names_the_source_of_each_function_and_has_a_fixed_number_of_instructions(
    vmlinux: Path, tmp_path: Path
) -> None:
    record = record_of(vmlinux)
    path = write(tmp_path / "r.kpmu", record)
    once = sample_profile([path], image_of(vmlinux), ProfileSettings()).decode()
    assert once.count("# file toy.c\n") == 3 and "\nouter:" in once and "bare" not in once
    assert sample_profile([path, path], image_of(vmlinux), ProfileSettings()).decode() == once
    calls = int(once.partition("\ninner:")[2].partition("\n")[0].rpartition(":")[2])
    executed = sum(int(row["instructions"]) * int(row["count"]) for row in record.regions[0].contexts[0].blocks)
    assert calls == pytest.approx(1000 * TOTAL / executed, abs=1)


def test_a_profile_of_another_kernel_or_of_nothing_or_without_lines_is_refused(vmlinux: Path, tmp_path: Path) -> None:
    record = record_of(vmlinux)
    plain = build(tmp_path)
    with pytest.raises(OtherVmlinux):
        sample_profile([write(tmp_path / "r", record)], image_of(plain), ProfileSettings())
    with pytest.raises(NoLineTables):
        sample_profile([write(tmp_path / "p", record_of(plain))], image_of(plain), ProfileSettings())
    with pytest.raises(ProfileNothingRan):
        nothing = replace(record.regions[0], contexts=(context(), context(), context()))
        empty = write(tmp_path / "e", replace(record, regions={0: nothing}))
        sample_profile([empty], image_of(vmlinux), ProfileSettings())


PROFILE = "do_open:30:2\n 1: 2\n 2: vfs_open:20\n  1: 20\nhelper.llvm.123:5:5\n 1: 5\nvdso_only:1:1\n 1: 1\n"


def test_files_stand_before_their_functions_and_what_has_none_is_left_out() -> None:
    files = {"do_open": ("fs/open.c",), "helper": ("mm/a.c",), "helper.cold": ("mm/b.c",)}
    assert with_files(PROFILE, files) == (
        "# file fs/open.c\ndo_open:30:2\n 1: 2\n 2: vfs_open:20\n  1: 20\n"
        "# file mm/a.c mm/b.c\nhelper.llvm.123:5:5\n 1: 5\n"
    )
    assert with_files("", files) == "" and with_files(PROFILE, {}) == ""
