"""Who carries a run out: the largest group of workers that describe its machine alike."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kdyno.boot.fake import FakeConfig
from kdyno.boot.metal.settings import MetalConfig
from kdyno.fleet.errors import NobodyOffers
from kdyno.fleet.fleet_file import read_fleet
from kdyno.fleet.machine import Crew, choose_crew
from kdyno.fleet.messages import MachineAnswer
from kdyno.fleet.queue.model import HostCheck, Kind, Offer, Worker

HERE = Path("/recording")
NO_CHECKS: Mapping[str, HostCheck] = {}


def worker(name: str, boots: int = 2, wall: int = 0) -> Worker:
    slots: dict[Kind, int] = {"boot-model": boots, "boot-wall": wall}
    offer = Offer(slots=slots, kvm=False, family="", cpu="", memory_mb=1, disk_mb=1, toolchains=(), machines=("fake",))
    return Worker(name, name, f"host-{name}", offer, "kdyno")


def answer(qemu: str = "7", cpu: str = "a", memory: int = 100) -> MachineAnswer:
    return MachineAnswer(
        lane="model", facts={"type": "fake", "qemu": qemu}, host={"cpu": cpu, "memory_mb": memory}, notices=()
    )


def chosen(
    lane: str, answers: dict[str, MachineAnswer], wall: int = 1, checks: Mapping[str, HostCheck] = NO_CHECKS
) -> tuple[Crew, list[str]]:
    said: list[str] = []
    settings = FakeConfig.model_validate({"recording": HERE, "lane": lane})
    crew = choose_crew(settings, [worker(name, wall=wall) for name in answers], answers, said.append, checks)
    return crew, said


def names(crew: Crew) -> list[str]:
    return [worker.name for worker in crew.workers]


def test_workers_with_the_facts_of_most_carry_a_run_out_and_the_others_are_named() -> None:
    crew, said = chosen("model", {"a": answer("9"), "b": answer(), "c": answer(cpu="other")})
    assert names(crew) == ["b", "c"]
    assert crew.slots == 4
    assert said == ["note: not used, because their machine or host differs from that of most others: a"]


def test_hosts_of_the_wall_lane_are_alike_but_for_their_memory() -> None:
    crew, said = chosen("wall", {"a": answer(), "b": answer(memory=101), "c": answer(cpu="other")})
    assert names(crew) == ["a", "b"]
    assert crew.kind == "boot-wall"
    assert crew.slots == 2
    assert crew.host == {"cpu": "a"}, "the keys of boots are the same whichever host is asked first"
    assert len(said) == 1


def test_a_host_that_failed_its_check_does_not_count_in_the_wall_lane() -> None:
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    checks = {"host-a": HostCheck(False, "lat_pipe +3 %", noon), "host-b": HostCheck(True, "", noon)}
    crew, said = chosen("wall", {"a": answer(), "b": answer()}, checks=checks)
    assert names(crew) == ["b"]
    assert said == ["note: not used: a: host-a failed its A/A of 2026-01-02: lat_pipe +3 %"]
    assert names(chosen("model", {"a": answer(), "b": answer()}, checks=checks)[0]) == ["a", "b"]


def test_one_host_carries_out_the_boots_of_a_box() -> None:
    said: list[str] = []
    workers = [worker(name, wall=1) for name in ("b", "a")]
    crew = choose_crew(MetalConfig(host="box"), workers, {"a": answer(), "b": answer()}, said.append, {})
    assert (names(crew), crew.slots) == (["a"], 1)
    assert said == ["note: not used: b: one host carries out the boots of a box, host-a"]


def test_a_worker_that_refuses_is_named_with_its_reason() -> None:
    crew, said = chosen("model", {"a": MachineAnswer(refusal="there is no QEMU"), "b": answer()})
    assert names(crew) == ["b"]
    assert said == ["note: not used: a: there is no QEMU"]


def test_what_nobody_offers_is_said_with_all_reasons() -> None:
    refusals = {name: MachineAnswer(refusal=f"no QEMU on {name}") for name in "ab"}
    with pytest.raises(NobodyOffers, match="a: no QEMU on a; b: no QEMU on b") as refused:
        chosen("model", refusals)
    assert refused.value.exit_code == 1
    with pytest.raises(NobodyOffers, match="1 workers are there, and none has a slot boot-wall"):
        chosen("wall", {"a": answer()}, wall=0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "No such file"),
        ("id = 1", "id"),
        ("id = ", "Invalid value"),
        (
            'id = "0123456789abcdef"\nscheduler = "tcp://127.0.0.1:1"\ndatabase = "x"\nblobs = "y"',
            "scheduler",
        ),
    ],
)
def test_a_directory_that_is_not_a_fleets_is_refused_with_the_reason(
    tmp_path: Path, text: str | None, reason: str
) -> None:
    from kdyno.fleet.errors import NotAFleet

    if text is not None:
        (tmp_path / "fleet.toml").write_text(text)
    with pytest.raises(NotAFleet, match=reason):
        read_fleet(tmp_path)
