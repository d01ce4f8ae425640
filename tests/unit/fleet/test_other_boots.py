"""Boots for training and for a kernel's own tests that workers carry out: a real queue, and a QEMU that is made up."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.qemu_config import QemuConfig
from kdyno.fleet.carrier import FleetCarrier
from kdyno.fleet.queue.queue import Queue
from kdyno.kernel.image import Image, ImageSizes
from kdyno.kernel.images import RECORD
from kdyno.kernel.recipe import Recipe, Training
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.workload.needs import Load
from kdyno.runs import checks
from kdyno.runs.carrier import Carrier, ThisHost
from kdyno.runs.session import Session
from kdyno.runs.single_boots import BootForFileFailed, SingleBoots
from kdyno.store.store import Store
from kdyno.store.url import sqlite_file
from tests.unit import specimen as made_up
from tests.unit.boot.test_pmu_machine import TEST, ready
from tests.unit.fake_qemu import FakeQemu, stream_of
from tests.unit.fleet.test_builds import FleetOfBuilders
from tests.unit.measure.test_pmu_symbols import ENTRIES, linked
from tests.unit.runs.test_checks import PASSING
from tests.unit.runs.test_forecast import prepared

SEEDS = (1, 2, 3)
FILES = ("vmlinux", "bzImage", "System.map", "config", "build.log")


@pytest.fixture
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeQemu:
    return FakeQemu(tmp_path, monkeypatch)


@pytest.fixture
def fleet(tmp_path: Path, queue: Queue) -> Iterator[FleetOfBuilders]:
    fleet = FleetOfBuilders(tmp_path, queue)
    for name in ("one", "two"):
        fleet.start_worker(name)
    yield fleet
    fleet.stop()


@pytest.fixture
def image(tmp_path: Path) -> Image:
    """An image that can be sent: its files are those of its record."""
    place = tmp_path / "image"
    place.mkdir()
    linked(place, *ENTRIES)
    for name in FILES[1:]:
        (place / name).write_bytes(b"")
    files = {name: hashlib.sha256((place / name).read_bytes()).hexdigest() for name in FILES}
    sizes = ImageSizes(bzimage=0, vmlinux=(place / "vmlinux").stat().st_size, text=1)
    record = made_up.image("gcc-12", Recipe(toolchain="gcc-12")).model_copy(update={"files": files, "sizes": sizes})
    (place / RECORD).write_text(record.model_dump_json())
    return Image(directory=place, record=record)


def trained(image: Image, carrier: Carrier, place: Path) -> tuple[list[bytes], list[str]]:
    """The files of a training's boots, and the hosts that carried these out."""
    training = Training(variant="plain", recipe=Recipe(), load=Load(tests=(TEST,)), seeds=SEEDS)
    place.mkdir()
    with Store(sqlite_file(place / "store.sqlite")) as store:
        session = Session(State(place / "state"), store, Talk(quiet=True), carrier)
        files = [file.read_bytes() for file in SingleBoots(session).train(image, training, "edges", place, cmdline=())]
        return files, hosts(store)


def hosts(store: Store) -> list[str]:
    """The hosts that carried out the boots on record."""
    boots = [boot for key in [*store.keys()] if (boot := store.boot(key))]
    return sorted(boot.host for boot, _ in boots)


def test_training_on_workers_counts_what_it_counts_here(
    fleet: FleetOfBuilders, image: Image, qemu: FakeQemu, tmp_path: Path
) -> None:
    ready(qemu)
    carried, on = trained(image, FleetCarrier(fleet.connection, fleet.talk), tmp_path / "carried")
    assert qemu.boots == len(SEEDS)
    assert len(on) == len(SEEDS) and set(on) <= {"one", "two"}
    here, on = trained(image, ThisHost(), tmp_path / "here")
    assert carried == here and on == [""] * len(SEEDS)
    assert not list(fleet.queue.documents()), "nothing is left in the queue"


def test_a_boot_for_training_that_fails_on_a_worker_fails_as_here_with_its_console(
    fleet: FleetOfBuilders, image: Image, qemu: FakeQemu, tmp_path: Path
) -> None:
    qemu.leaves(stream=b"", console=b"Kernel panic - not syncing: no such luck\n")
    with pytest.raises(BootForFileFailed, match="no such luck") as caught:
        trained(image, FleetCarrier(fleet.connection, fleet.talk), tmp_path / "carried")
    assert "no such luck" in Path(str(caught.value.facts["console"])).read_text()


def test_the_tests_of_a_kernel_run_on_workers_and_are_not_counted(
    fleet: FleetOfBuilders, image: Image, qemu: FakeQemu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "has_kunit", lambda _: True)
    qemu.leaves(stream=stream_of([], []), console=PASSING.encode())
    carrier = FleetCarrier(fleet.connection, fleet.talk)
    of = replace(prepared(), settings=QemuConfig(pmu=PmuConfig(family="znver4")))
    with Store(sqlite_file(tmp_path / "store.sqlite")) as store:
        session = Session(State(tmp_path / "client"), store, fleet.talk, carrier)
        images = {"plain": (image,), "off": (image,)}
        assert checks.check_kernels(of, images, session) == {}
        assert len(hosts(store)) == 2 and set(hosts(store)) <= {"one", "two"}
        assert checks.check_kernels(of, images, session) == {}
    assert qemu.boots == 2
    assert not any(",out=" in command for command in qemu.commands if "-initrd" in command), (
        "the emulated PMU doesn't count"
    )
