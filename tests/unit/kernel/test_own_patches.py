"""kdyno's own patches: by name, for the versions of Linux that they were made for."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.kernel import own_patches
from kdyno.kernel.image import SourceIdentity
from kdyno.kernel.knobs import page_size
from kdyno.kernel.knobs.patches import located
from kdyno.kernel.patches import read_patch
from kdyno.kernel.plan import check_early, plan_build
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource
from tests.unit.kernel_toy import TINY


def of_version(source: KernelSource, version: str) -> KernelSource:
    return source.model_copy(update={"identity": source.identity.model_copy(update={"version": version})})


def identity(version: str) -> SourceIdentity:
    return SourceIdentity(spec="linux", identity="tree:0", version=version, origin="x")


def test_every_file_of_the_series_is_a_patch_that_adds_what_is_asked_for_and_no_file_is_left_over() -> None:
    listed = set()
    for patch in own_patches.series().values():
        for row in patch.versions:
            path = Path(str(files("kdyno") / "data" / "patches" / row.file))
            assert read_patch(path).digest
            assert all(f"\n+config {symbol}\n" in path.read_text() for symbol in patch.config)
            assert row.oldest < row.below
            listed.add(row.file)
    root = Path(str(files("kdyno") / "data" / "patches"))
    assert {str(path.relative_to(root)) for path in root.rglob("*.patch")} == listed


@pytest.mark.parametrize("version", ["6.1", "6.1.0-rc4", "6.1.159"])
def test_a_version_that_the_patch_is_for_gets_its_file(version: str) -> None:
    assert own_patches.file_of("page-block", identity(version)).name == "6.1.patch"


@pytest.mark.parametrize("version", ["5.10.221", "6.0.19", "6.2", "6.12.74", "x"])
def test_another_version_is_refused_with_those_that_there_are(version: str) -> None:
    with pytest.raises(own_patches.NotForVersion) as refused:
        own_patches.file_of("page-block", identity(version))
    assert str(refused.value).startswith(
        f"the patch page-block is for Linux from 6.1, below 6.2, and linux is {version}"
    )


def test_an_unknown_name_is_refused_before_a_source_is_unpacked_with_the_names_that_there_are(state: State) -> None:
    with pytest.raises(own_patches.UnknownPatch, match=r"name page-blok; it has page-block"):
        check_early([Recipe(patches=("page-blok",))], TINY, state)
    check_early([Recipe(patches=("page-block",))], TINY, state)


@pytest.mark.parametrize("version", ["5.10.221", "6.12.74"])
def test_a_plan_for_another_version_is_refused(source: KernelSource, state: State, version: str) -> None:
    with pytest.raises(own_patches.NotForVersion, match=r"from 6\.1, below 6\.2"):
        plan_build(Recipe(patches=("page-block",)), of_version(source, version), TINY, state)


def test_names_stay_and_files_become_absolute() -> None:
    assert located(("page-block", "fix.patch", "./page-block", "fix.diff"), Path("/a")) == (
        "page-block",
        "/a/fix.patch",
        "/a/page-block",
        "/a/fix.diff",
    )


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ("4k", ("transparent_hugepage=never", "page_block=0")),
        ("16k", ("transparent_hugepage=never", "page_block=2")),
        ("64k", ("transparent_hugepage=never", "page_block=4")),
        ("1M", ("transparent_hugepage=never", "page_block=8")),
        ("2M", ("transparent_hugepage=never", "page_block=9")),
        ("always", ("transparent_hugepage=always",)),
        ("madvise", ("transparent_hugepage=madvise",)),
    ],
)
def test_with_the_patch_a_size_of_pages_is_an_order_of_blocks(size: str, words: tuple[str, ...]) -> None:
    assert Recipe(patches=("/x/a.patch", "page-block"), page_size=size).words == words


@pytest.mark.parametrize("size", ["8k", "48k", "4M", "1k"])
def test_a_size_that_memory_can_not_have_is_refused_with_those_that_there_are(
    source: KernelSource, state: State, size: str
) -> None:
    with pytest.raises(page_size.UnknownSize, match=rf'"{size}": there are "4k", "16k", "32k", .*"2M", "always"'):
        plan_build(Recipe(page_size=size), of_version(source, "6.12"), TINY, state)


def test_without_the_patch_linux_6_1_has_no_sizes_and_the_hint_names_it(source: KernelSource, state: State) -> None:
    with pytest.raises(page_size.NoSuchSizes) as refused:
        plan_build(Recipe(page_size="64k"), of_version(source, "6.1.159"), TINY, state)
    assert 'patches = ["page-block"]' in refused.value.hint
