"""A box behind a worker: it boots there, on one host, and others may have it soon after."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdyno.base.frozen import digest
from kdyno.base.state import State
from kdyno.boot.base import BootLimits
from kdyno.boot.metal.settings import MetalConfig
from kdyno.fleet.carrier import FleetCarrier
from kdyno.fleet.errors import NobodyOffers
from kdyno.fleet.queue.queue import Queue
from kdyno.kernel.image import Image, ImageSizes
from kdyno.kernel.images import RECORD
from kdyno.kernel.recipe import Recipe
from kdyno.measure.guest.job import Job
from kdyno.measure.workload.needs import Needs
from kdyno.runs.one_boot import BootRequest
from kdyno.runs.session import Session
from kdyno.runs.single_boots import boot_once, open_equipped_machine
from kdyno.store.records import Boot
from kdyno.store.store import Store
from kdyno.store.url import sqlite_file
from tests.unit import specimen
from tests.unit.base.test_process import wait_until
from tests.unit.boot.conftest import quick_box
from tests.unit.boot.fake_box import HELLO, OWN_WORDS, FakeBox, bzimage
from tests.unit.fleet.test_builds import FleetOfBuilders

FILES = ("bzImage", "vmlinux", "System.map", "config", "build.log")
SETTINGS = MetalConfig(host="box", limits=BootLimits(boot=3, total=20))


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeBox:
    return quick_box(tmp_path / "box", monkeypatch)


@pytest.fixture
def fleet(tmp_path: Path, queue: Queue) -> Iterator[FleetOfBuilders]:
    fleet = FleetOfBuilders(tmp_path, queue)
    for name in ("one", "two"):
        fleet.start_worker(name, wall=1)
    yield fleet
    fleet.stop()


@pytest.fixture
def image(tmp_path: Path) -> Image:
    place = tmp_path / "image"
    place.mkdir()
    for name in FILES:
        (place / name).write_bytes(bzimage() if name == "bzImage" else b"")
    files = {name: hashlib.sha256((place / name).read_bytes()).hexdigest() for name in FILES}
    sizes = ImageSizes(bzimage=len(bzimage()), vmlinux=0, text=1)
    record = specimen.image("gcc-12", Recipe(toolchain="gcc-12")).model_copy(update={"files": files, "sizes": sizes})
    (place / RECORD).write_text(record.model_dump_json())
    return Image(directory=place, record=record)


def test_a_box_behind_a_worker_boots_and_is_free_when_the_worker_lets_it_go(
    fleet: FleetOfBuilders, image: Image, box: FakeBox, tmp_path: Path
) -> None:
    assert [boot.status for boot in booted(fleet, image, tmp_path)] == ["ok", "ok"]
    assert {boot.host for boot in booted(fleet, image, tmp_path)} == {"one"}
    assert box.text("proc/cmdline") == OWN_WORDS
    assert "lease" in box.stored, "the worker keeps it for a while: the next boot may be soon"
    fleet.attendants["one"].let_boxes_go()
    wait_until(lambda: not box.stored)


def test_a_box_that_nobody_reaches_is_said_before_anything_is_booted(
    fleet: FleetOfBuilders, image: Image, box: FakeBox, tmp_path: Path
) -> None:
    box.plan({"in": "", "message": "ssh: connect to host box port 22: No route to host"})
    with pytest.raises(NobodyOffers, match=r"one: box cannot be reached: .*No route to host; two: "):
        booted(fleet, image, tmp_path)


def booted(fleet: FleetOfBuilders, image: Image, place: Path) -> list[Boot]:
    """Two boots of an image in different blocks, on the fleet."""
    carrier = FleetCarrier(fleet.connection, fleet.talk)
    job = Job(lane="wall", iterations=1, programs=(HELLO,))
    requests = {
        digest(block): BootRequest(f"plain, block {block}", image, (), job, block, "plain", block) for block in range(2)
    }
    with Store(sqlite_file(place / "store.sqlite")) as store:
        session = Session(State(place / "client"), store, fleet.talk, carrier)
        machine = open_equipped_machine(SETTINGS, Needs(), session.state, session.talk, carrier.open_machine)
        return [boot for boot, _ in boot_once(requests, machine, session).values()]
