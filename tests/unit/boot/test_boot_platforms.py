"""`kdyno boot`: what a kernel lacks for a platform is known from its configuration, or from what the agent says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.platforms import NEEDS, CpusMissing, KernelLacks, Output, Platform, lacks, require_cpus, require_options
from kdyno.boot.qemu import QemuMachine
from kdyno.boot.qemu_config import QemuConfig
from kdyno.kernel.files_of import config_of
from kdyno.kernel.kconfig import resolve_base
from kdyno.kernel.kconfig_check import read_config
from kdyno.runs.bootone import BootNeedsMore, boot_command
from tests.unit.fake_qemu import FakeQemu

STREAM = {need.symbol for needs in NEEDS.values() for need in needs if need.output == "stream"}


@pytest.fixture
def debian(data: Path) -> str:
    return (data / "kconfig" / "debian-6.1.config").read_text()


def kernel(folder: Path, config: str | None, name: str = "vmlinuz-6.1") -> Path:
    """A bzImage as an installed kernel has it, with its configuration beside it."""
    path = folder / name
    path.write_bytes(bytes(0x202) + b"HdrS")
    if config is not None:
        (folder / name.replace("vmlinuz", "config")).write_text(config)
    return path


def refusal(path: Path, platform: Platform, output: Output) -> KernelLacks:
    with pytest.raises(KernelLacks) as refused:
        require_options(path, platform, output)
    return refused.value


def test_all_that_debians_kernel_lacks_is_named_for_each_platform(tmp_path: Path, debian: str) -> None:
    refused = refusal(kernel(tmp_path, debian), "microvm", "stream")
    lines = str(refused).splitlines()
    assert lines[0].endswith(f"cannot run a command on microvm: options are missing in {tmp_path}/config-6.1")
    assert [line.rpartition(": ")[0] or line for line in lines[1:]] == [
        "microvm requires",
        "  CONFIG_VIRTIO_CONSOLE=y (here: module)",
        "  CONFIG_VIRTIO_MMIO=y (here: module)",
        "  CONFIG_VIRTIO_MMIO_CMDLINE_DEVICES=y (here: not set)",
        "q35 requires",
        "  CONFIG_VIRTIO_CONSOLE=y (here: module)",
        "  CONFIG_VIRTIO_PCI=y (here: module)",
    ]
    assert refused.exit_code == 1
    assert refused.advice.startswith("build a kernel with all options of one platform")


def test_a_shell_needs_the_console_and_no_virtio(tmp_path: Path, debian: str) -> None:
    for platform in NEEDS:
        require_options(kernel(tmp_path, debian), platform, "console")
    assert "`kdyno boot` without a command works" in refusal(tmp_path / "vmlinuz-6.1", "q35", "stream").advice
    silent = kernel(tmp_path, debian.replace("CONFIG_SERIAL_8250_CONSOLE=y", "# CONFIG_SERIAL_8250_CONSOLE is not set"))
    refused = refusal(silent, "microvm", "console")
    assert "cannot run a shell on microvm" in str(refused)
    assert "CONFIG_SERIAL_8250_CONSOLE=y (here: not set)" in str(refused)
    assert "without a command" not in refusal(silent, "microvm", "stream").advice


def test_the_platform_that_will_do_is_named(tmp_path: Path, debian: str) -> None:
    built_in = debian.replace("VIRTIO_CONSOLE=m", "VIRTIO_CONSOLE=y").replace("VIRTIO_PCI=m", "VIRTIO_PCI=y")
    path = kernel(tmp_path, built_in)
    require_options(path, "q35", "stream")
    refused = refusal(path, "microvm", "stream")
    assert refused.advice == "use --platform q35: this kernel has all options for it"
    assert "q35 requires" not in str(refused)


def test_a_symbol_that_a_configuration_does_not_name_is_not_set() -> None:
    states = {lack.need.symbol: lack.state for lack in lacks({"VIRTIO_CONSOLE": "m"}, "q35", "stream")}
    assert states["VIRTIO_CONSOLE"] == "module"
    assert states["BLK_DEV_INITRD"] == states["X86_64"] == "not set"


@pytest.mark.parametrize("output", ["stream", "console"])
def test_kdynos_own_configuration_asks_for_all_that_a_microvm_needs(output: Output) -> None:
    config = read_config(resolve_base("dyno").text)
    implied = {"X86_64": config["64BIT"]}
    assert lacks(config | implied, "microvm", output) == []


@pytest.mark.parametrize(
    ("config", "cpus", "usable"),
    [
        ({"SMP": "n", "NR_CPUS": "1"}, 1, None),
        ({"SMP": "y", "NR_CPUS": "8"}, 8, None),
        ({"SMP": "y", "NR_CPUS": "1"}, 2, None),  # of a configuration without SMP, to which SMP was added
        ({}, 64, None),
        ({"SMP": "n", "NR_CPUS": "8"}, 2, "1: it has no SMP"),
        ({"SMP": "y", "NR_CPUS": "8"}, 9, "8: CONFIG_NR_CPUS=8"),
        ({"NR_CPUS": "4"}, 5, "4: CONFIG_NR_CPUS=4"),
    ],
)
def test_a_kernel_for_fewer_cpus_than_the_machine_has_is_refused(
    config: dict[str, str], cpus: int, usable: str | None
) -> None:
    if usable is None:
        require_cpus(config, cpus, "it")
        return
    with pytest.raises(CpusMissing) as refused:
        require_cpus(config, cpus, "it")
    assert str(refused.value).startswith(f"the machine has {cpus} CPUs, but it can use only {usable}")
    assert f"CONFIG_NR_CPUS={cpus} or more" in refused.value.advice


def test_kdyno_boot_looks_at_the_configuration_for_cpus_too(tmp_path: Path, debian: str) -> None:
    built_in = debian.replace("VIRTIO_CONSOLE=m", "VIRTIO_CONSOLE=y").replace("VIRTIO_PCI=m", "VIRTIO_PCI=y")
    path = kernel(tmp_path, built_in + "# CONFIG_SMP is not set\n")
    QemuMachine(QemuConfig(lane="wall", platform="q35")).require_options(path, "stream")
    with pytest.raises(CpusMissing, match="it has no SMP"):
        QemuMachine(QemuConfig(lane="wall", platform="q35", cpus=2)).require_options(path, "stream")


def test_the_configuration_is_that_beside_the_kernel(tmp_path: Path, debian: str) -> None:
    assert config_of(kernel(tmp_path, debian)) == tmp_path / "config-6.1"
    assert config_of(kernel(tmp_path, None, "vmlinuz-6.2")) is None
    image = tmp_path / "image"
    image.mkdir()
    (image / "config").write_text(debian)
    assert config_of(kernel(image, None, "bzImage")) == image / "config"


def test_a_file_called_config_that_is_none_of_a_kernel_is_left_alone(tmp_path: Path) -> None:
    assert config_of(kernel(tmp_path, "[core]\n\tbare = false\n")) is None
    require_options(tmp_path / "vmlinuz-6.1", "microvm", "stream")


def test_the_configuration_of_a_build_tree_counts_unless_it_was_changed_after_the_build(
    tmp_path: Path, debian: str
) -> None:
    boot = tmp_path / "arch" / "x86" / "boot"
    boot.mkdir(parents=True)
    config, path = tmp_path / ".config", kernel(boot, None, "bzImage")
    config.write_text(debian)
    built = path.stat().st_mtime
    os.utime(config, (built - 60, built - 60))
    assert config_of(path) == config
    os.utime(config, (built + 60, built + 60))
    assert config_of(path) is None


def boot(path: Path, folder: Path, platform: Platform) -> int:
    config = QemuConfig(lane="wall", accel="tcg", platform=platform)
    state, talk = State(folder / "state"), Talk(quiet=True)
    return boot_command(config, path, ("true",), words=(), seed=1, console=None, state=state, talk=talk)


def test_a_kernel_that_is_known_not_to_do_is_not_booted(
    tmp_path: Path, debian: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    qemu = FakeQemu(tmp_path, monkeypatch)
    with pytest.raises(KernelLacks):
        boot(kernel(tmp_path, debian), tmp_path, "microvm")
    assert not (qemu.directory / "commands").exists()


def test_where_the_configuration_is_not_known_all_that_the_port_needs_is_named_after_the_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    qemu = FakeQemu(tmp_path, monkeypatch)
    qemu.leaves(console=b"kdyno-agent: no virtio port org.kdyno.agent\n")
    with pytest.raises(BootNeedsMore) as failed:
        boot(kernel(tmp_path, None), tmp_path, "microvm")
    assert qemu.boots == 1
    assert failed.value.exit_code == 3
    message = str(failed.value) + failed.value.advice
    assert "microvm requires CONFIG_SYSFS=y, CONFIG_VIRTIO_CONSOLE=y" in str(failed.value)
    assert "q35 requires" in failed.value.advice
    assert all(f"CONFIG_{symbol}=y" in message for symbol in STREAM)
