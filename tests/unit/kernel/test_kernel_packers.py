"""Programs beside the compiler that decide an image: whose digests are in its key, and whose aren't."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.kernel.packers import PACKERS, digests
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource
from tests.unit.kernel_toy import plan


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that programs are looked for in first."""
    directory = tmp_path / "tools"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    return directory


def program(directory: Path, name: str, text: str) -> None:
    path = directory / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_another_packer_makes_another_image(tools: Path, source: KernelSource, state: State) -> None:
    recipe = Recipe(kconfig={"KERNEL_LZ4": True})
    keys = set()
    for version in ("1.9.4", "1.10.0"):
        program(tools, "lz4", f"echo {version}")
        keys.add(plan(recipe, source, state).key)
    assert len(keys) == 2
    program(tools, "zstd", "echo another packer, which this kernel isn't packed with")
    assert plan(recipe, source, state).key in keys


def test_a_packer_that_nobody_named_may_be_any(tools: Path, state: State) -> None:
    before = digests({}, True, state)
    assert list(before) == sorted(PACKERS.values())
    program(tools, "zstd", "echo 9")
    after = digests({}, True, state)
    assert {name for name in before if before[name] != after[name]} == {"zstd"}


def test_pahole_counts_where_types_or_the_configuration_are_in_the_kernel(tools: Path, state: State) -> None:
    program(tools, "pahole", "echo v1.24")
    asked = {"KERNEL_LZ4": "y"}
    assert list(digests(asked, True, state)) == ["lz4"]
    for symbol, value in (("DEBUG_INFO_BTF", "y"), ("IKCONFIG", "m")):
        assert list(digests({**asked, symbol: value}, True, state)) == ["lz4", "pahole"]
    assert list(digests({**asked, "DEBUG_INFO_BTF": "n"}, True, state)) == ["lz4"]


def test_a_program_that_is_not_there_is_none_and_no_error(
    tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert digests({"KERNEL_XZ": "y"}, True, state) == {"xz": None}


def test_a_kernel_that_is_a_program_is_not_packed_so_that_no_new_packer_makes_it_another(state: State) -> None:
    assert digests({}, False, state) == {}
    assert list(digests({"IKCONFIG": "y"}, False, state)) == ["pahole"]
