"""Images on disk: whole, or refused with the way out."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.kernel import images
from kdyno.kernel.image import Image
from kdyno.kernel.images import find_image, load_image
from kdyno.kernel.plan import NO_DIRECTORY
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource
from tests.unit.kernel_toy import built, toy_source


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Image:
    state = State(tmp_path_factory.mktemp("images") / "state")
    return built(Recipe(), toy_source(tmp_path_factory.mktemp("source"), state), state)


@pytest.fixture
def copied(finished: Image, tmp_path: Path) -> tuple[Image, State]:
    state = State(tmp_path / "state")
    shutil.copytree(finished.directory, state.images / finished.record.key)
    return finished, state


def test_an_image_is_found_by_its_key(copied: tuple[Image, State]) -> None:
    image, state = copied
    assert load_image(image.record.key, state).record == image.record


def test_a_user_names_an_image_by_its_key_its_start_its_directory_or_a_file_in_that(
    copied: tuple[Image, State], monkeypatch: pytest.MonkeyPatch
) -> None:
    image, state = copied
    key, folder = image.record.key, state.images / image.record.key
    for named in (key, key[:6], str(folder), str(folder / "vmlinux")):
        assert find_image(named, state).directory == folder
    monkeypatch.chdir(folder)
    assert find_image(".", state).directory == folder


def test_a_name_that_is_no_images_or_that_of_two_is_refused(tmp_path: Path) -> None:
    state = State(tmp_path)
    for key in ("abcdef11", "abcdef22"):
        (state.images / key).mkdir()
    for named in ("abcdef", "abc", "nothing", "/", str(tmp_path)):
        with pytest.raises(images.NoSuchImage, match="is not the key of one image"):
            find_image(named, state)


def test_an_image_keeps_the_notes_of_its_objects_where_gcc_compiled_for_gcov(tmp_path: Path) -> None:
    state = State(tmp_path / "state")
    source = toy_source(tmp_path / "source", state)
    makefile = source.tree / "Makefile"
    makefile.write_text(makefile.read_text().replace("-D__KERNEL__", "-D__KERNEL__ -ftest-coverage"))
    kernel = KernelSource(identity=toy_source(tmp_path / "plain", state).identity, tree=source.tree)
    image = built(Recipe(), kernel, state)
    with tarfile.open(image.directory / images.NOTES) as notes:
        assert "fs/open.gcno" in notes.getnames()
    assert load_image(image.record.key, state).record.files[images.NOTES]
    (image.directory / images.NOTES).unlink()
    with pytest.raises(images.ImageCorrupt, match=r"notes\.tar\.xz"):
        load_image(image.record.key, state)


def test_a_missing_image_is_said(tmp_path: Path) -> None:
    with pytest.raises(images.ImageMissing):
        load_image("0" * 64, State(tmp_path))


@pytest.mark.parametrize("damage", ["", "{", "[1,"])
def test_a_corrupt_record_comes_with_the_way_out(copied: tuple[Image, State], damage: str) -> None:
    image, state = copied
    place = state.images / image.record.key
    (place / "image.json").write_text(damage)
    with pytest.raises(images.ImageCorrupt, match="can't be used") as raised:
        load_image(image.record.key, state)
    assert raised.value.advice.startswith(f"remove it (rm -r {place})")


@pytest.mark.parametrize("record", ["{}", '{"key": 1}'])
def test_a_record_of_another_version_is_no_image_yet(copied: tuple[Image, State], record: str) -> None:
    image, state = copied
    assert images.is_built(image.record.key, state)
    (state.images / image.record.key / "image.json").write_text(record)
    assert not images.is_built(image.record.key, state)
    with pytest.raises(images.ImageOfAnotherVersion, match="of another version of kdyno") as raised:
        load_image(image.record.key, state)
    assert raised.value.advice == "`kdyno run` or `kdyno build` of its experiment builds it anew"


def test_a_truncated_or_missing_kernel_is_corrupt(copied: tuple[Image, State]) -> None:
    image, state = copied
    kernel = state.images / image.record.key / "bzImage"
    kernel.write_bytes(kernel.read_bytes()[:-1])
    with pytest.raises(images.ImageCorrupt, match="bzImage"):
        load_image(image.record.key, state)
    kernel.unlink()
    with pytest.raises(images.ImageCorrupt, match="bzImage"):
        load_image(image.record.key, state)


def test_a_record_of_another_image_is_corrupt(copied: tuple[Image, State]) -> None:
    image, state = copied
    (state.images / image.record.key).rename(state.images / ("0" * 64))
    with pytest.raises(images.ImageCorrupt, match="is that of"):
        load_image("0" * 64, state)


def test_the_total_of_a_base_ignores_what_cant_be_read(copied: tuple[Image, State]) -> None:
    image, state = copied
    (state.images / "broken").mkdir()
    (state.images / "broken/image.json").write_text("{")
    assert images.expected_steps(image.record.base, state) == image.record.steps
    assert images.expected_steps("dyno", state) is None


def test_a_record_is_readable_json_with_all_that_repeats_the_build(finished: Image) -> None:
    record = json.loads((finished.directory / "image.json").read_text())
    assert record["make"] == ["ARCH=x86_64", "LOCALVERSION=", "RUSTC=false", "CC=gcc", f"KCPPFLAGS={NO_DIRECTORY}"]
    assert record["environment"]["KBUILD_BUILD_USER"] == "kdyno"
    assert record["source"]["identity"].startswith("tree:")
    assert record["toolchain"]["family"] == "gcc"
    assert record["recipe"]["cmdline"] == []


def test_the_size_of_text_is_that_of_functions_without_padding() -> None:
    symbols = """\
ffffffff81000000 T _text
ffffffff81000000 0000000000000040 T startup_64
ffffffff81000100 0000000000000010 t first
ffffffff81000100 0000000000000010 t alias_of_first
ffffffff81200000 0000000000000005 W weak
ffffffff81200010 0000000000000008 D data
ffffffff812fffe0 0000000000000010 t __pfx_padded
ffffffff81400000 T _etext
ffffffff82000000 0000000000000100 t init_only
"""
    assert images.text_size(symbols) == 0x40 + 0x10 + 5
