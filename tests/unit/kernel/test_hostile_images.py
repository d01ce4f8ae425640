"""Images whose files or records are not what was built: none is booted, and none is read."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kdyno.base import digests
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.kernel import images
from kdyno.kernel.image import Image
from kdyno.kernel.images import ImageCorrupt, find_image, load_image
from kdyno.kernel.recipe import Recipe
from kdyno.runs import bootone
from kdyno.runs.experiment.resolve import load_experiment
from kdyno.runs.images import build_images
from kdyno.runs.prepare import prepare
from kdyno.runs.run import run_experiment
from kdyno.runs.session import Session
from kdyno.store.store import Store
from kdyno.store.url import sqlite_file
from tests.unit.fake_qemu import FakeQemu
from tests.unit.kernel_toy import built, toy_source, toy_tree

FILES = ("bzImage", "vmlinux", "System.map", "config", "build.log")
EXPERIMENT = """
name = "toy"
source = "linux"
config = "make:tinyconfig"
baseline = "plain"
blocks = 2
[variants.plain]
[variants.tuned]
kconfig = { LOCALVERSION = "-x" }
[machine]
type = "qemu"
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Image:
    state = State(tmp_path_factory.mktemp("images") / "state")
    return built(Recipe(), toy_source(tmp_path_factory.mktemp("source"), state), state)


@pytest.fixture
def state(finished: Image, tmp_path: Path) -> State:
    state = State(tmp_path / "state")
    shutil.copytree(finished.directory, state.images / finished.record.key)
    return state


@pytest.fixture
def place(finished: Image, state: State) -> Path:
    return state.images / finished.record.key


def rewrite(place: Path, change: Callable[[dict[str, Any]], None]) -> None:
    record = json.loads((place / "image.json").read_text())
    change(record)
    (place / "image.json").write_text(json.dumps(record))


def flip(file: Path) -> None:
    """Change one byte; the size stays."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_a_record_has_the_digest_of_every_file(finished: Image) -> None:
    assert (
        set(finished.record.files) == {*FILES} == {file.name for file in finished.directory.iterdir()} - {"image.json"}
    )
    for name, digest in finished.record.files.items():
        assert hashlib.sha256((finished.directory / name).read_bytes()).hexdigest() == digest
    assert json.loads((finished.directory / "image.json").read_text())["files"] == finished.record.files


def test_a_run_whose_variant_has_the_baselines_kernel_ends_before_its_first_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    qemu = FakeQemu(tmp_path, monkeypatch)
    toy_tree(tmp_path)
    (tmp_path / "toy.toml").write_text(EXPERIMENT)
    state, talk = State(tmp_path / "state"), Talk(quiet=True)
    experiment = load_experiment(tmp_path / "toy.toml")
    made = build_images(prepare(experiment, state, talk).plans, state, talk)
    [plain], [tuned] = made["plain"], made["tuned"]
    for image in (plain, tuned):  # bzImages are padded: kernels that differ have one size
        os.truncate(image.program, 1 << 20)
        sizes = image.record.sizes.model_copy(update={"bzimage": 1 << 20})
        digest = {"bzImage": images.content_digest(image.program)}
        changed = image.record.model_copy(update={"sizes": sizes, "files": image.record.files | digest})
        (image.directory / "image.json").write_text(changed.model_dump_json())
    shutil.copyfile(plain.program, tuned.program)
    refused = pytest.raises(ImageCorrupt, match="bzImage is not the file that was built")
    with Store(sqlite_file(state.store_file)) as store, refused as raised:
        run_experiment(experiment, Session(state, store, talk), again=False)
    assert str(tuned.directory) in str(raised.value)
    assert not [words for words in qemu.commands if "-kernel" in words], "it was booted"
    assert f"rm -r {tuned.directory}" in raised.value.advice and "kdyno run" in raised.value.advice


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_another_content_of_the_same_size_is_named(state: State, place: Path, name: str) -> None:
    flip(place / name)
    with pytest.raises(ImageCorrupt, match=f"{name} is not the file that was built"):
        load_image(place.name, state)
    for named in (place.name, str(place), str(place / "vmlinux")):
        with pytest.raises(ImageCorrupt):
            find_image(named, state)


@pytest.mark.parametrize("name", FILES)
def test_a_link_or_a_pipe_in_place_of_a_file_is_refused(state: State, place: Path, tmp_path: Path, name: str) -> None:
    (place / name).rename(tmp_path / name)
    (place / name).symlink_to(tmp_path / name)
    with pytest.raises(ImageCorrupt, match=f"{name} is not a regular file"):
        load_image(place.name, state)
    (place / name).unlink()
    os.mkfifo(place / name)
    with pytest.raises(ImageCorrupt, match=f"{name} is not a regular file"):
        load_image(place.name, state)


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["files"].update({"../../secret": "0" * 64}),
        lambda record: record["files"].update({"/etc/passwd": "0" * 64}),
        lambda record: record["files"].update({"bzImage": "nothing"}),
        lambda record: record["files"].pop("bzImage"),
        lambda record: record.update({"files": [1]}),
        lambda record: record.update({"key": "../" + "0" * 61}),
        lambda record: record["sizes"].update({"bzimage": -1}),
        lambda record: record.update({"directory": "/etc"}),
    ],
)
def test_a_record_with_other_fields_is_refused(
    state: State, place: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    rewrite(place, change)
    with pytest.raises(ImageCorrupt):
        load_image(place.name, state)


def test_a_record_that_is_no_record_is_refused(state: State, place: Path) -> None:
    record = place / "image.json"
    deep = "[" * 100_000
    for text in (deep, '{"build_seconds": ' + "9" * 5000 + "}", "\udcff", " " * (images.MOST_BYTES + 1)):
        record.write_bytes(text.encode(errors="surrogateescape"))
        with pytest.raises(ImageCorrupt):
            load_image(place.name, state)
    record.unlink()
    os.mkfifo(record)
    with pytest.raises(ImageCorrupt):
        load_image(place.name, state)
    assert images.expected_steps("dyno", state) is None


def test_an_image_whose_record_has_no_digests_is_not_used(state: State, place: Path) -> None:
    rewrite(place, lambda record: record.pop("files"))
    with pytest.raises(ImageCorrupt, match="its record has no digest of bzImage"):
        load_image(place.name, state)


def test_a_second_look_hashes_nothing_and_a_replaced_file_is_seen_all_the_same(
    state: State, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "SETTLED_SECONDS", -1.0)
    load_image(place.name, state)
    real = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *_: pytest.fail("it hashes again"))
    load_image(place.name, state)
    monkeypatch.setattr(hashlib, "file_digest", real)
    times = (place / "bzImage").stat()
    flip(place / "bzImage")
    os.utime(place / "bzImage", ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(ImageCorrupt, match="bzImage is not the file that was built"):
        load_image(place.name, state)


def with_magic(place: Path) -> None:
    """Make the toy's bzImage one that `kdyno boot` takes, and its record fit."""
    content = bytearray((place / "bzImage").read_bytes().ljust(0x300, b"\0"))
    content[0x202:0x206] = b"HdrS"
    (place / "bzImage").write_bytes(content)

    def change(record: dict[str, Any]) -> None:
        record["sizes"]["bzimage"] = len(content)
        record["files"]["bzImage"] = hashlib.sha256(content).hexdigest()

    rewrite(place, change)


def test_boot_takes_no_kernel_that_its_record_is_not_of(state: State, place: Path, tmp_path: Path) -> None:
    with_magic(place)
    named = (str(place), str(place / "bzImage"), place.name)
    assert {bootone.find_kernel(name, state) for name in named} == {place / "bzImage"}
    shutil.copytree(place, tmp_path / "copy")
    assert bootone.find_kernel(str(tmp_path / "copy"), state) == tmp_path / "copy/bzImage"
    content = (place / "bzImage").read_bytes()
    for folder in (place, tmp_path / "copy"):
        (folder / "bzImage").write_bytes(content[:-1] + b"\x55")
    for name in named:
        with pytest.raises(ImageCorrupt, match="bzImage is not the file that was built"):
            bootone.find_kernel(name, state)
    with pytest.raises(bootone.NotOfItsRecord, match="bzImage is not the file") as raised:
        bootone.find_kernel(str(tmp_path / "copy"), state)
    assert "rm -r" not in raised.value.advice, "the directory is the user's own"


def test_boot_does_not_follow_a_link_from_one_image_to_another_kernel(
    state: State, place: Path, tmp_path: Path
) -> None:
    with_magic(place)
    (place / "bzImage").rename(tmp_path / "bzImage")
    (place / "bzImage").symlink_to(tmp_path / "bzImage")
    with pytest.raises(ImageCorrupt, match="bzImage is not a regular file"):
        bootone.find_kernel(str(place), state)
