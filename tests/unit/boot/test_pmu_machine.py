"""The machine with the emulated PMU: what is refused, what QEMU is told, and how a boot ends by its record."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from kdyno.base.errors import KdynoError
from kdyno.base.installed import ProgramMissing
from kdyno.base.measurement import Benchmark, Sample
from kdyno.boot.base import BootEnd, BootOrder
from kdyno.boot.pmu import (
    CyclesNeedAllEvents,
    Pmu,
    PmuOutsideModelLane,
    QemuWithoutPlugins,
    UserCodeNeedsAllEvents,
    VmlinuxMissing,
)
from kdyno.boot.qemu import QemuMachine
from kdyno.boot.qemu_config import QemuConfig
from kdyno.boot.qemu_options import QUICK_TIMER
from kdyno.measure.cycles.family import load_family
from kdyno.measure.guest.agent import catalogue
from kdyno.measure.guest.job import Job, TestOrder
from kdyno.measure.guest.pmu import PmuConfig, find_plugin
from kdyno.measure.guest.pmu_record import PmuRecord
from tests.unit.fake_qemu import FakeQemu, stream_of
from tests.unit.measure.test_pmu_symbols import ENTRIES, linked
from tests.unit.pmu_specimen import encode, encoded, specimen

TEST = "lat_syscall"


@pytest.fixture
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeQemu:
    return FakeQemu(tmp_path, monkeypatch)


def of_specimen(record: PmuRecord) -> tuple[list[Benchmark], list[Sample]]:
    """Benchmarks and samples that a boot with this record has."""
    benchmarks = list(catalogue().benchmarks([TEST], "model"))
    samples = [
        Sample(benchmark=benchmarks[number].name, iteration=iteration, elapsed=1_000_000, work=10)
        for number, region in record.regions.items()
        for iteration in region.iterations
    ]
    return benchmarks, samples


def ready(qemu: FakeQemu, record: PmuRecord | None = None) -> PmuRecord:
    """Let QEMU leave a sound boot."""
    record = record or specimen()
    qemu.leaves(stream=stream_of(*of_specimen(record)), record=encode(record))
    return record


def order(tmp_path: Path) -> BootOrder:
    directory = tmp_path / "boot"
    directory.mkdir()
    job = Job(lane="model", icount_shift=5, iterations=7, tests=(TestOrder(name=TEST),))
    return BootOrder("x", Path("/k"), (), job, 1, directory, vmlinux=linked(tmp_path, *ENTRIES))


def boot(tmp_path: Path, **config: object) -> BootEnd:
    return QemuMachine(QemuConfig(pmu=PmuConfig(**config))).boot(order(tmp_path))


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"lane": "wall", "pmu": PmuConfig()}, PmuOutsideModelLane),
        ({"pmu": PmuConfig(events="edges")}, CyclesNeedAllEvents),
        ({"pmu": PmuConfig(events="edges", clock="instructions", scope="all")}, UserCodeNeedsAllEvents),
    ],
)
def test_what_does_not_go_together_is_refused(config: dict[str, object], error: type[KdynoError]) -> None:
    with pytest.raises(error):
        QemuMachine(QemuConfig(**config))


def test_a_plugin_that_is_not_installed_is_said_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KDYNO_PMU_PLUGIN", str(tmp_path / "none.so"))
    with pytest.raises(ProgramMissing) as missing:
        QemuMachine(QemuConfig(pmu=PmuConfig())).describe()
    assert "none.so" in str(missing.value) and "pip install ." in missing.value.advice


def test_the_installed_plugin_lies_in_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KDYNO_PMU_PLUGIN", raising=False)
    try:
        assert find_plugin().parent.name == "kdyno"
    except ProgramMissing as missing:
        assert "kdyno/kdyno_pmu" in str(missing)


@pytest.mark.parametrize("new", ["kdyno_pmu.abi3.so", "kdyno_pmu.cpython-311-x86_64-linux-gnu.so"])
def test_the_plugin_of_a_wheel_or_a_checkout_wins_over_what_an_older_installation_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, new: str
) -> None:
    monkeypatch.delenv("KDYNO_PMU_PLUGIN", raising=False)
    monkeypatch.setattr("kdyno.measure.guest.pmu.PACKAGE", tmp_path)
    (tmp_path / new).write_bytes(b"new")
    assert find_plugin() == tmp_path / new
    for old in ("kdyno_pmu.cpython-310-x86_64-linux-gnu.so", "kdyno_pmu.cpython-312-x86_64-linux-gnu.so"):
        (tmp_path / old).write_bytes(b"old")
        os.utime(tmp_path / old, (0, 0))
    assert find_plugin() == tmp_path / new


@pytest.mark.parametrize("output", ["-plugin: invalid option", "plugin interface not enabled in this build"])
def test_a_qemu_without_plugins_is_said_once_and_before_any_boot(qemu: FakeQemu, output: str) -> None:
    qemu.probe(output)
    with pytest.raises(QemuWithoutPlugins, match=f"{output}$") as refused:
        QemuMachine(QemuConfig(pmu=PmuConfig())).describe()
    assert "--enable-plugins" in refused.value.advice


@pytest.mark.usefixtures("qemu")
def test_the_guests_cpu_is_that_of_the_family_unless_the_user_names_one() -> None:
    family = load_family("znver4").cpu
    about = QemuMachine(QemuConfig(pmu=PmuConfig(family="znver4"))).describe()
    assert about.facts["cpu"] == family.qemu and about.facts["cmdline"][-len(family.cmdline) :] == list(family.cmdline)
    assert QemuMachine(QemuConfig(pmu=PmuConfig(family="haswell"))).cpu_model.startswith("Haswell")
    assert QemuMachine(QemuConfig(cpu="max", pmu=PmuConfig())).cpu_model == "max"
    named = QemuMachine(QemuConfig(cpu="max")).describe()
    assert named.facts["cpu"] == "max" and named.facts["cmdline"][-1] == QUICK_TIMER[-1]


@pytest.mark.usefixtures("qemu")
def test_the_lane_model_has_one_default_cpu_with_and_without_the_emulated_pmu() -> None:
    default = load_family(PmuConfig().family).cpu
    plain, counting = (QemuMachine(QemuConfig(pmu=pmu)).describe() for pmu in (None, PmuConfig()))
    assert plain.facts["cpu"] == counting.facts["cpu"] == default.qemu
    assert plain.facts["cmdline"] == counting.facts["cmdline"]
    assert plain.facts["cmdline"][-len(default.cmdline) :] == list(default.cmdline)
    assert "indirect_target_selection=off" in plain.facts["cmdline"]
    wall = QemuMachine(QemuConfig(lane="wall", accel="tcg")).describe()
    assert wall.facts["cpu"] == "max" and not set(default.cmdline) & set(wall.facts["cmdline"])


@pytest.mark.parametrize(
    ("family", "vendor", "has_smap", "message"),
    [
        ("znver4", "GenuineIntel", False, "of GenuineIntel, not of AuthenticAMD"),
        ("znver4", "AuthenticAMD", False, "it lacks SMAP, which they have"),
        ("haswell", "GenuineIntel", True, "it has SMAP, and they don't"),
        ("sapphirerapids", "GenuineIntel", True, "it gets isolated page tables, and they don't"),
        ("haswell", "AuthenticAMD", False, "it gets no isolated page tables"),
    ],
)
def test_a_cpu_whose_kernel_paths_are_not_the_familys_is_said(
    family: str, vendor: str, has_smap: bool, message: str
) -> None:
    notice = Pmu(PmuConfig(family=family)).unlike("mine", vendor, has_smap)
    assert notice is not None and message in notice and f"cycles of {family}'s" in notice


@pytest.mark.parametrize("family", ["znver4", "haswell"])
def test_a_cpu_whose_kernel_paths_are_the_familys_is_nothing_to_speak_of(family: str) -> None:
    own = load_family(family).cpu
    assert Pmu(PmuConfig(family=family)).unlike("mine", own.vendor, own.smap) is None


def test_the_facts_of_the_machine_name_all_that_decides_the_counts(qemu: FakeQemu) -> None:
    plain = QemuMachine(QemuConfig()).describe()
    about = QemuMachine(QemuConfig(pmu=PmuConfig())).describe()
    assert about.facts.keys() - plain.facts.keys() == {
        *("pmu_plugin", "pmu_events", "pmu_clock", "pmu_family", "pmu_family_file")
    }
    assert (about.facts["pmu_family"], about.facts["pmu_clock"]) == ("sapphirerapids", "cycles")
    assert not any("-initrd" in command for command in qemu.commands)
    assert plain.notices == ()


def test_user_code_is_another_scope_which_the_plugin_is_told_and_a_reader_too(qemu: FakeQemu, tmp_path: Path) -> None:
    pmu = PmuConfig(scope="all", clock="instructions")
    about = QemuMachine(QemuConfig(pmu=pmu)).describe()
    assert about.facts["pmu_scope"] == "all"
    assert about.notices[1] == "user code's accesses share the modelled caches and TLBs, and are in no sample of time"
    assert ",scope=all," in Pmu(pmu).words(order(tmp_path))[1]
    assert qemu.commands


def test_modelled_cycles_are_the_first_thing_said(qemu: FakeQemu) -> None:
    cycles, gains = QemuMachine(QemuConfig(pmu=PmuConfig())).describe().notices
    assert cycles.startswith("cycles are modelled, sapphirerapids-")
    assert gains == load_family("sapphirerapids").gains_note()
    assert qemu.commands


def test_an_ok_boot_has_the_counts_as_samples_and_its_record(qemu: FakeQemu, tmp_path: Path) -> None:
    record = ready(qemu)
    end = boot(tmp_path, clock="instructions")
    assert (end.status, end.reason) == ("ok", "")
    assert end.pmu and end.pmu.name == "pmu.kpmu"
    [first, *_] = end.report.samples
    task, exception, _ = record.regions[0].iterations[first.iteration]
    column = record.names.index("instructions")
    assert (first.benchmark, first.elapsed) == ("lat_syscall.null", int(task[column] + exception[column]))
    plugin = end.command[end.command.index("-plugin") + 1]
    assert "scope=kernel,events=all,symbols=" in plugin and plugin.endswith("sapphirerapids.toml")
    assert (tmp_path / "boot" / "pmu.symbols").read_text().startswith("ffffffff81000000 1 syscall entry_SYSCALL_64\n")


def test_a_boot_that_times_nothing_needs_no_regions(qemu: FakeQemu, tmp_path: Path) -> None:
    qemu.leaves(stream=stream_of([], []), record=encode(replace(specimen(), regions={}, opened=0)))
    plain = order(tmp_path)
    end = QemuMachine(QemuConfig(pmu=PmuConfig())).boot(replace(plain, job=plain.job.model_copy(update={"tests": ()})))
    assert (end.status, end.reason, end.report.samples) == ("ok", "", ())
    assert end.pmu and end.pmu.name == "pmu.kpmu"


def test_edges_need_no_geometry(qemu: FakeQemu, tmp_path: Path) -> None:
    ready(qemu)
    end = boot(tmp_path, clock="instructions", events="edges")
    assert end.status == "ok"
    assert "events=edges" in " ".join(end.command) and "geometry=" not in " ".join(end.command)


def test_cycles_have_units_of_their_own_in_failed_boots_too(qemu: FakeQemu, tmp_path: Path) -> None:
    record = ready(qemu)
    benchmarks, samples = of_specimen(record)
    qemu.leaves(stream=stream_of(benchmarks, samples, whole=False))
    end = boot(tmp_path)
    assert end.status == "failed"
    assert {benchmark.unit for benchmark in end.report.benchmarks} == {"cycles"}
    assert end.pmu is None


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"", "the PMU record pmu.kpmu is cut short after 0 bytes"),
        (b"ELF, or what else", "pmu.kpmu is not a PMU record"),
        (encode(specimen())[:-4], "the PMU record pmu.kpmu is cut short"),
        (encode(replace(specimen(), opened=0)), "pmu.kpmu has no regions"),
    ],
)
def test_a_boot_without_a_sound_record_is_lost_for_the_instrument_failed(
    qemu: FakeQemu, tmp_path: Path, record: bytes, reason: str
) -> None:
    ready(qemu)
    qemu.leaves(record=record)
    end = boot(tmp_path)
    assert end.status == "lost"
    assert end.reason.startswith(reason)
    assert end.pmu is None


def test_a_boot_that_leaves_no_record_is_lost(qemu: FakeQemu, tmp_path: Path) -> None:
    qemu.leaves(stream=stream_of(*of_specimen(specimen())))
    assert boot(tmp_path).reason == "the PMU plugin wrote no record"


def test_a_boot_whose_record_lacks_a_region_is_lost(qemu: FakeQemu, tmp_path: Path) -> None:
    record = ready(qemu)
    benchmarks, samples = of_specimen(record)
    qemu.leaves(stream=stream_of(benchmarks, [*samples, samples[0].model_copy(update={"iteration": 6})]))
    end = boot(tmp_path)
    assert (end.status, end.reason) == ("lost", "the PMU counted nothing for lat_syscall.null, iteration 6")


def test_a_region_that_was_never_closed_fails_the_boot(qemu: FakeQemu, tmp_path: Path) -> None:
    record = ready(qemu)
    qemu.leaves(record=encode(replace(record, unclosed=(min(record.regions), 3))))
    end = boot(tmp_path)
    assert end.status == "failed"
    assert end.reason == "pmu.kpmu: the region of benchmark lat_syscall.null, iteration 3, was never closed"


def test_a_guest_that_the_plugin_could_not_keep_up_with_fails_the_boot(qemu: FakeQemu, tmp_path: Path) -> None:
    record = ready(qemu)
    before, header, _ = encode(record).split(b"\n", 2)
    gave_up = json.loads(header) | {"bytes": 2, "opened": 65536, "gave_up": {"of": "iterations", "most": 65536}}
    assert before == b"kdyno-pmu 2"
    qemu.leaves(record=encoded(gave_up, b"\0\0"))
    end = boot(tmp_path)
    assert (end.status, end.reason) == ("failed", "pmu.kpmu: the PMU plugin gave up: more than 65,536 iterations")
    assert end.pmu is None


def test_a_kernel_without_its_vmlinux_is_refused(qemu: FakeQemu, tmp_path: Path) -> None:
    machine = QemuMachine(QemuConfig(pmu=PmuConfig()))
    with pytest.raises(VmlinuxMissing):
        machine.boot(replace(order(tmp_path), vmlinux=None))
    assert qemu.directory.exists()
