"""What a guest can be given: an empty disk for one boot."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path

import pytest
from pydantic import ValidationError

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootOrder
from kdyno.boot.disk import DISK, MIB, DiskNotDirect, NoRoomForDisk, new_disk
from kdyno.boot.platforms import NEEDS, KernelLacks, Platform
from kdyno.boot.qemu import QemuMachine
from kdyno.boot.qemu_config import DiskOutsideWallLane, QemuConfig
from kdyno.measure.guest.job import Job, Program
from kdyno.measure.workload.programs import ProgramsWorkload
from kdyno.runs.bootone import boot_command
from kdyno.runs.experiment.resolve import load_experiment
from tests.unit.fake_qemu import FakeQemu

JOB = Job(lane="wall", iterations=1, programs=(Program(name="x", command=("true",)),))
Usage = namedtuple("Usage", "total used free")


def order(directory: Path) -> BootOrder:
    return BootOrder("a boot", Path("/k"), (), JOB, 1, directory)


def machine(**settings: object) -> QemuMachine:
    return QemuMachine(QemuConfig.model_validate({"lane": "wall", "accel": "tcg", **settings}))


def test_a_disk_is_an_empty_file_that_takes_no_room_and_ends_with_the_boot(state: State) -> None:
    with state.scratch("disk") as directory:
        with new_disk(directory, 100, 0):
            status = (directory / DISK).stat()
            assert (status.st_size, status.st_blocks, status.st_mode & 0o777) == (100 * MIB, 0, 0o600)
        assert not (directory / DISK).exists()
        with pytest.raises(ZeroDivisionError), new_disk(directory, 1, 0):
            _ = 1 / 0
        assert not (directory / DISK).exists()


def test_a_disk_that_could_fill_the_hosts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdyno.boot.disk.shutil.disk_usage", lambda _path: Usage(0, 0, 512 * MIB))
    with pytest.raises(NoRoomForDisk, match=r"a disk of 512 MiB .* which has 512 MiB free"), new_disk(tmp_path, 512, 1):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_direct_access_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_words: object) -> int:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr("kdyno.boot.disk.os.open", refuse)
    with (
        pytest.raises(DiskNotDirect, match=r"does not support O_DIRECT \(Invalid argument\)"),
        new_disk(tmp_path, 1, 0),
    ):
        pass


@pytest.mark.parametrize(("platform", "device"), [("microvm", "virtio-blk-device"), ("q35", "virtio-blk-pci")])
def test_the_disk_is_on_virtio_and_passes_the_hosts_page_cache(tmp_path: Path, platform: Platform, device: str) -> None:
    of_qemu = machine(disk_mb=512, platform=platform)
    words = " ".join(of_qemu.command(order(tmp_path), Path("/i"), serial="null", stream=Path("/s")))
    assert f"filename={tmp_path}/{DISK},cache.direct=on" in words
    assert f"-device {device},drive=disk,serial=scratch," in words


def test_the_disk_decides_a_boot_and_no_disk_is_not_mentioned() -> None:
    with_disk, without = machine(disk_mb=64).describe().facts, machine().describe().facts
    assert with_disk == without | {"disk_mb": 64, "disk_cache": "none"}
    assert {"disk_mb", "disk_cache"}.isdisjoint(without)


def test_the_model_lane_has_no_disk() -> None:
    with pytest.raises(DiskOutsideWallLane) as refused:
        machine(lane="model", accel="auto", disk_mb=64)
    assert "/dev/ram0" in refused.value.advice


@pytest.mark.parametrize("size", [0, -1, 1 << 21, "512M"])
def test_a_disk_has_a_size_that_a_host_could_have(size: object) -> None:
    with pytest.raises(ValidationError, match="disk_mb"):
        machine(disk_mb=size)


def test_qemu_may_write_its_disk_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files have a limit, which a disk may be larger than."""
    qemu = FakeQemu(tmp_path, monkeypatch)
    script = qemu.directory / "qemu-system-x86_64"
    fill = 'for word; do case "$word" in *filename=*) disk="${word#*filename=}"; sleep 0.3; '
    fill += 'echo full | dd of="${disk%%,*}" bs=1M seek=299 conv=notrunc 2>/dev/null; '
    fill += f'stat -c %s "${{disk%%,*}}" > {tmp_path}/size;; esac; done\n'
    script.write_text(script.read_text() + fill)
    here = tmp_path / "boot"
    here.mkdir()
    of_qemu = machine(disk_mb=300)
    assert of_qemu.boot(order(here)).status == "failed"  # nothing was booted
    assert (tmp_path / "size").read_text().strip() == str(300 * MIB)
    assert not (here / DISK).exists()


def test_a_kernel_without_virtio_blk_is_not_booted_with_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qemu = FakeQemu(tmp_path, monkeypatch)
    kernel = tmp_path / "vmlinuz-6.1"
    kernel.write_bytes(bytes(0x202) + b"HdrS")
    symbols = {"X86", *(need.symbol for need in NEEDS["microvm"])}
    config = "".join(f"\nCONFIG_{symbol}=y" for symbol in symbols) + "\n"
    (tmp_path / "config-6.1").write_text(config)
    settings = QemuConfig(lane="wall", accel="tcg", disk_mb=64)
    state, talk = State(tmp_path / "state"), Talk(quiet=True)
    with pytest.raises(KernelLacks) as refused:
        boot_command(settings, kernel, ("true",), words=(), seed=1, console=None, state=state, talk=talk)
    assert "CONFIG_VIRTIO_BLK=y (here: not set): the disk of `disk_mb` is on virtio-blk" in str(refused.value)
    assert not (qemu.directory / "commands").exists()
    machine().require_options(kernel, "stream")


def test_the_loop_experiments_do_the_same_on_another_disk() -> None:
    """What is counted is what is timed."""
    files = Path(__file__).parents[3] / "experiments"
    timed, counted = (load_experiment(files / name) for name in ("loop.toml", "loop-counted.toml"))
    of_timed, of_counted = timed.workload, counted.workload
    assert isinstance(of_timed, ProgramsWorkload) and isinstance(of_counted, ProgramsWorkload)
    assert of_timed.definitions == of_counted.definitions
    assert of_timed.parameters == {"loop": {"disk": "/dev/vda"}}
    assert of_counted.parameters == {"loop": {"disk": "/dev/ram0"}}
    assert {name: recipe.built for name, recipe in timed.variants.items()} == {
        name: recipe.built for name, recipe in counted.variants.items()
    }
