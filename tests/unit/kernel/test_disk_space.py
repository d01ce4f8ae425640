"""Before something large is unpacked or copied the disk is looked at: it is refused, and nothing of it was written."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kdyno.base.state import NoSpace, State
from kdyno.kernel import images
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import fetch
from tests.unit import disk_space, specimen
from tests.unit.kernel_toy import silent, toy_repository


@pytest.mark.parametrize("kind", ["plain", "packed", "commit", "directory"])
def test_a_source_that_the_disk_has_no_room_for_is_not_begun(
    tmp_path: Path, state: State, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = toy_repository(tmp_path)
    for suffix in ("", ".xz"):
        subprocess.run(["tar", "-caf", f"linux.tar{suffix}", "--exclude=.git", "linux"], cwd=tmp_path, check=True)
    sources = {"plain": f"{tree}.tar", "packed": f"{tree}.tar.xz", "commit": f"git:{tree}", "directory": str(tree)}
    size = sum(file.stat().st_size for file in tree.rglob("*") if ".git" not in file.parts and file.is_file())
    disk_space.leave(min(size, 8 * Path(f"{tree}.tar.xz").stat().st_size) - 1, monkeypatch)
    with pytest.raises(NoSpace, match="MB needed") as refused:
        fetch(sources[kind], state, silent)
    assert "kdyno store gc" in refused.value.advice
    assert not list(state.sources.iterdir())
    disk_space.leave(10**9, monkeypatch)
    assert fetch(sources[kind], state, silent).tree.is_dir()


def test_an_image_that_the_disk_has_no_room_for_is_not_stored(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    disk_space.leave(999, monkeypatch)
    with pytest.raises(NoSpace):
        images.store_files(specimen.image("a", Recipe()), {"bzImage": b"k" * 600, "vmlinux": b"m" * 400}, state)
    assert not list(state.images.iterdir())
