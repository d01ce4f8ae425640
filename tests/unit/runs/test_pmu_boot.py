"""A boot for its PMU record: done once, kept, made anew when damaged, and said with its console when it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import Recipe
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.measure.workload.needs import Load
from kdyno.runs.session import Session
from kdyno.runs.single_boots import BootForFileFailed, PmuRun, SingleBoots
from kdyno.store.store import Store
from kdyno.store.url import sqlite_file
from tests.unit import specimen as made_up
from tests.unit.boot.test_pmu_machine import TEST, of_specimen, ready
from tests.unit.fake_qemu import FakeQemu, stream_of
from tests.unit.measure.test_pmu_symbols import ENTRIES, linked
from tests.unit.pmu_specimen import specimen


@pytest.fixture
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeQemu:
    fake = FakeQemu(tmp_path, monkeypatch)
    ready(fake)
    return fake


@pytest.fixture
def image(tmp_path: Path) -> Image:
    place = tmp_path / "image"
    place.mkdir()
    linked(place, *ENTRIES)
    (place / "bzImage").write_bytes(b"")
    (place / "config").write_text("CONFIG_X86=y\nCONFIG_CRYPTO_SELFTESTS=y\n")
    return Image(directory=place, record=made_up.image("gcc-12", Recipe(toolchain="gcc-12")))


def booted(image: Image, state: State, *, seed: int = 1) -> PmuRun:
    with Store(sqlite_file(state.store_file)) as store:
        return SingleBoots(Session(state, store, Talk(quiet=True))).count(
            image,
            Load(tests=(TEST,)),
            seed=seed,
            events="all",
            family="znver4",
        )


def test_a_boot_is_done_once_and_its_record_names_its_benchmarks(qemu: FakeQemu, image: Image, state: State) -> None:
    first = booted(image, state)
    assert booted(image, state) == first
    assert qemu.boots == 1
    benchmarks, samples = of_specimen(specimen())
    assert (
        first.benchmarks
        == read_pmu_record(first.record).benchmarks
        == tuple(benchmark.name for benchmark in benchmarks)
    )
    assert first.work == {
        name: [sample.work for sample in samples if sample.benchmark == name]
        for name in {sample.benchmark for sample in samples}
    }


def test_a_kernel_does_not_test_itself_while_it_is_counted(qemu: FakeQemu, image: Image, state: State) -> None:
    booted(image, state)
    [command] = [command for command in qemu.commands if "-initrd" in command]
    assert "cryptomgr.notests=1" in command


def test_another_seed_is_another_boot(qemu: FakeQemu, image: Image, state: State) -> None:
    booted(image, state)
    booted(image, state, seed=2)
    assert qemu.boots == 2


@pytest.mark.parametrize("damage", ["cut", "removed"])
def test_a_record_that_was_damaged_is_made_anew(qemu: FakeQemu, image: Image, state: State, damage: str) -> None:
    first = booted(image, state)
    file = first.record
    whole = file.read_bytes()
    if damage == "cut":
        file.chmod(0o644)
        file.write_bytes(whole[:-3])
    else:
        file.unlink()
    assert booted(image, state) == first
    assert file.read_bytes() == whole
    assert qemu.boots == 2


def test_a_boot_that_fails_names_its_console_and_is_tried_again(qemu: FakeQemu, image: Image, state: State) -> None:
    qemu.leaves(console=b"no more to say", stream=stream_of(*of_specimen(specimen()), whole=False))
    with pytest.raises(BootForFileFailed, match="failed: the guest ended before the agent was done") as failed:
        booted(image, state)
    assert str(state.artefacts) in failed.value.advice
    ready(qemu)
    assert booted(image, state).record.exists()


def test_nothing_is_left_beside_what_is_kept(qemu: FakeQemu, image: Image, state: State) -> None:
    record = booted(image, state).record
    assert record.is_relative_to(state.artefacts)
    assert list((state.root / "boots").iterdir()) == []
    assert qemu.boots == 1
