"""How much work a build is, before anything like it was built: against what was counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.kernel import estimate
from kdyno.kernel.kconfig import Base, resolve_base

WHOLE = "# Automatically generated file; DO NOT EDIT.\nCONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\nCONFIG_D=y\n"


@pytest.mark.parametrize(
    ("base", "counted"),
    [
        ("make:tinyconfig", 506),
        ("make:allnoconfig", 696),
        ("dyno", 748),
        ("make:defconfig", 2875),
        ("make:allyesconfig", 24_300),
    ],
)
def test_the_files_of_a_base_are_guessed_within_13_percent(base: str, counted: int) -> None:
    options = estimate.options_of(resolve_base(base))
    assert options is not None
    assert estimate.files(options) == pytest.approx(counted, rel=0.13)


def test_the_lines_of_dyno_are_guessed_within_5_percent() -> None:
    assert estimate.lines(524) == pytest.approx(1315, rel=0.05)


def test_the_files_and_lines_of_a_kernel_that_is_a_program_are_guessed_within_5_percent() -> None:
    assert estimate.options_of(resolve_base("make:defconfig"), "um") is None
    options = estimate.options_of(resolve_base("paths"), "um")
    assert options is not None
    assert estimate.files(options, "um") == pytest.approx(717, rel=0.05)
    assert estimate.lines(options, "um") == pytest.approx(1234, rel=0.05)


def test_a_whole_config_tells_its_options_and_modules_dont_count(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(WHOLE)
    assert estimate.options_of(resolve_base(f"file:{tmp_path / 'config'}")) == 2
    local = Base(spec="make:localmodconfig", kind="make", target="localmodconfig", lsmod="x", text=WHOLE)
    assert estimate.options_of(local) == 2


def test_a_list_of_differences_or_an_unknown_target_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "defconfig").write_text("CONFIG_A=y\n")
    assert estimate.options_of(resolve_base(f"file:{tmp_path / 'defconfig'}")) is None
    assert estimate.options_of(resolve_base("make:randconfig")) is None


def test_a_build_takes_as_long_as_its_files_on_all_cores_and_what_no_core_can_share() -> None:
    assert estimate.seconds(730, "gcc", 2) == 365 + 20
    assert estimate.seconds(730, "clang", 2) > 1.8 * estimate.seconds(730, "gcc", 2)
