"""Kernels that workers build: a real queue, the toy Kbuild, and a scheduler that brings tickets at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Lock, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.fleet.blobs import Blobs
from kdyno.fleet.carried_builds import build_on_fleet
from kdyno.fleet.errors import AnotherImage, RefusedByFleet
from kdyno.fleet.messages import MachineAnswer, MachineQuestion, Ticket
from kdyno.fleet.package_digest import this_kdyno
from kdyno.fleet.queue.model import Kind, Offer, Worker
from kdyno.fleet.queue.queue import Queue
from kdyno.fleet.tree_archive import receive_tree, store_tree
from kdyno.fleet.worker import Attendant
from kdyno.kernel.build import BuildFailed, build
from kdyno.kernel.image import Image
from kdyno.kernel.images import is_built
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource
from kdyno.runs.images import Plan
from tests.unit.base.test_process import wait_until
from tests.unit.kernel_toy import no_progress, plan, silent, toy_source

OWN_OF_A_BUILD = {"build.log", "image.json"}
SLOW = Recipe(kconfig={"FAKE_SLOW": 3})


class Heard(Talk):
    """What a client says."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


class FleetOfBuilders:
    """Workers with states of their own, and a client's connection to them."""

    def __init__(self, directory: Path, queue: Queue) -> None:
        self.directory, self.queue, self.blobs = directory, queue, Blobs(str(directory / "blobs"))
        (directory / "blobs").mkdir()
        self.attendants: dict[str, Attendant] = {}
        self.talk = Heard()
        self.client = State(directory / "client")
        carriage = SimpleNamespace(
            outstanding=lambda _kind, _alive: 0,
            void=lambda _kind: None,
            connect=lambda: None,
            send=self._send,
            workers=lambda: list(self.attendants),
            ask=self._ask,
        )
        self.connection: Any = SimpleNamespace(queue=queue, blobs=self.blobs, carriage=carriage, lock=Lock())

    def start_worker(self, name: str, builds: int = 1, wall: int = 0) -> State:
        """Start a worker, and return its state."""
        slots: dict[Kind, int] = {"build": builds, "boot-model": 1, "boot-wall": wall}
        offer = Offer(
            slots=slots, kvm=False, family="", cpu="", memory_mb=1, disk_mb=1, toolchains=(), machines=("qemu",)
        )
        worker = Worker(f"id-{name}", name, name, offer, this_kdyno())
        state = State(self.directory / name)
        self.attendants[name] = Attendant(worker, self.queue, self.blobs, state, Talk(quiet=True))
        self.attendants[name].start()
        return state

    def build(self, **plans: Plan) -> dict[str, Image]:
        workers = [attendant.worker for attendant in self.attendants.values()]
        images = build_on_fleet(
            {name: (one,) for name, one in plans.items()}, self.connection, lambda: workers, self.client, self.talk
        )
        return {name: image for name, [image] in images.items()}

    def _send(self, run: str, kind: Kind, preferred: str, workers: Sequence[Worker]) -> None:
        ticket = Ticket(package=this_kdyno(), run=run, kind=kind, preferred=preferred).model_dump_json()
        Thread(target=self.attendants[workers[0].name].carry_out, args=(ticket,), daemon=True).start()

    def _ask(self, question: MachineQuestion, names: Sequence[str]) -> dict[str, MachineAnswer]:
        answers = {name: self.attendants[name].answer(question.model_dump_json()) for name in names}
        return {name: MachineAnswer.model_validate_json(answer) for name, answer in answers.items()}

    def stop(self) -> None:
        for attendant in self.attendants.values():
            attendant.stop()
            attendant.wait(10)


@pytest.fixture
def fleet(tmp_path: Path, queue: Queue) -> Iterator[FleetOfBuilders]:
    builders = FleetOfBuilders(tmp_path, queue)
    yield builders
    builders.stop()


@pytest.fixture
def source(fleet: FleetOfBuilders, tmp_path: Path) -> KernelSource:
    return toy_source(tmp_path, fleet.client)


@pytest.fixture
def planned(fleet: FleetOfBuilders, source: KernelSource) -> Callable[[Recipe], Plan]:
    return lambda recipe: plan(recipe, source, fleet.client)


def results(image: Image) -> dict[str, str]:
    """The digests of an image's files, without those that say when and where it was built."""
    return {name: digest for name, digest in image.record.files.items() if name not in OWN_OF_A_BUILD}


def test_a_worker_s_image_is_the_client_s_to_the_byte(
    fleet: FleetOfBuilders, planned: Callable[[Recipe], Plan], tmp_path: Path
) -> None:
    state = fleet.start_worker("one")
    plans = {"fast": planned(Recipe(opt="O2")), "small": planned(Recipe(opt="Os"))}
    images = fleet.build(**plans)
    assert all(is_built(one.key, state) for one in plans.values()), "the worker has built them"
    alone = State(tmp_path / "alone")
    here = {name: build(one, alone, no_progress) for name, one in plans.items()}  # type: ignore[arg-type]
    assert {name: results(image) for name, image in images.items()} == {
        name: results(image) for name, image in here.items()
    }
    assert not list(fleet.queue.documents()), "nothing is left in the queue"


def test_link_orders_of_one_kernel_are_built_together_with_their_input(
    fleet: FleetOfBuilders, planned: Callable[[Recipe], Plan]
) -> None:
    state = fleet.start_worker("one")
    layouts = tuple(planned(Recipe(layout_seed=seed)) for seed in (1, 2))
    images = build_on_fleet(
        {"plain": layouts}, fleet.connection, lambda: [fleet.attendants["one"].worker], fleet.client, fleet.talk
    )
    assert [image.record.key for image in images["plain"]] == [one.key for one in layouts]
    assert all(is_built(one.key, state) for one in layouts)


def test_a_kernel_that_does_not_build_fails_as_it_does_here_with_its_log(
    fleet: FleetOfBuilders, planned: Callable[[Recipe], Plan]
) -> None:
    fleet.start_worker("one")
    with pytest.raises(BuildFailed) as caught:
        fleet.build(broken=planned(Recipe(kconfig={"FAKE_BREAK": True})))
    log = Path(str(caught.value.facts["log"]))
    assert log.is_relative_to(fleet.client.root) and str(caught.value.facts["error"]) in log.read_text()
    assert not fleet.queue.quarantined()


def test_what_kconfig_refuses_is_refused_in_the_same_words(
    fleet: FleetOfBuilders, planned: Callable[[Recipe], Plan]
) -> None:
    fleet.start_worker("one")
    with pytest.raises(RefusedByFleet, match=r"MODULE_SIG(.|\n)*said by one"):
        fleet.build(signed=planned(Recipe(kconfig={"MODULE_SIG": True})))


def test_what_no_worker_can_build_as_planned_is_built_here_and_said(
    fleet: FleetOfBuilders, planned: Callable[[Recipe], Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = fleet.start_worker("one")
    one = planned(Recipe())
    monkeypatch.setattr("kdyno.fleet.carry_build.packers.digests", lambda *_: {"gzip": "another"})
    monkeypatch.setattr(
        "kdyno.fleet.carried_builds.packers", SimpleNamespace(digests=lambda *_: {"gzip": "the client's"})
    )
    image = fleet.build(plain=one)["plain"]
    assert image.record.key == one.key and not is_built(one.key, state)
    assert any("this host builds it" in line and "gzip" in line for line in fleet.talk.lines)


def test_another_image_than_the_planned_one_is_not_taken(
    fleet: FleetOfBuilders, planned: Callable[[Recipe], Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.start_worker("one")
    one = planned(Recipe())
    other = SimpleNamespace(key="0" * 64)
    monkeypatch.setattr("kdyno.fleet.carried_builds.read_record", lambda _: other)
    with pytest.raises(AnotherImage, match="one built the image 000000000000"):
        fleet.build(plain=one)
    assert not is_built(one.key, fleet.client)


def test_without_a_worker_that_builds_this_host_does(fleet: FleetOfBuilders, planned: Callable[[Recipe], Plan]) -> None:
    fleet.start_worker("one", builds=0)
    one = planned(Recipe())
    assert fleet.build(plain=one)["plain"].record.key == one.key
    assert any("no worker of the fleet builds" in line for line in fleet.talk.lines)


def test_the_build_of_a_worker_that_ends_is_another_one_s(
    fleet: FleetOfBuilders, planned: Callable[[Recipe], Plan]
) -> None:
    slow = planned(SLOW)
    first, second = fleet.start_worker("one"), fleet.start_worker("two")
    client = Thread(target=fleet.build, kwargs={"slow": slow})
    client.start()
    wait_until(lambda: any(first.builds.iterdir()))
    fleet.attendants["one"].stop()
    client.join(120)
    assert is_built(slow.key, second) and not is_built(slow.key, first)
    assert is_built(slow.key, fleet.client)


def test_a_source_is_packed_once_and_its_archive_is_the_same_again(
    fleet: FleetOfBuilders, source: KernelSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = store_tree(source.tree, fleet.blobs, fleet.client, silent)
    elsewhere = receive_tree(archive, fleet.blobs, State(tmp_path / "other"))
    assert store_tree(elsewhere, fleet.blobs, State(tmp_path / "other"), silent) == archive
    monkeypatch.setattr("kdyno.fleet.tree_archive.PACK", ("false",))
    assert store_tree(source.tree, fleet.blobs, fleet.client, silent) == archive, "it is remembered"
