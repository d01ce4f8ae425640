"""Kernels that somebody else built: what is read of them, what is refused and how, and what starts their guests."""

from __future__ import annotations

import gzip
import lzma
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kdyno.base.errors import UserError
from kdyno.base.state import State
from kdyno.boot.initramfs import loader
from kdyno.boot.platforms import KernelNotStartable, require_startable
from kdyno.kernel import images
from kdyno.kernel.built_kernels import adopt, debian, header, packed
from kdyno.kernel.built_kernels import modules as kernel_modules
from kdyno.kernel.built_kernels.configuration import configuration_in
from kdyno.kernel.built_kernels.kallsyms import kallsyms, system_map
from kdyno.kernel.built_kernels.plan import NotInThisKernel, plan_given
from kdyno.kernel.files_of import config_of, module_directory, system_maps_of
from kdyno.kernel.recipe import Recipe
from kdyno.runs.experiment.errors import BadExperiment, LayoutOfBuiltKernel
from kdyno.runs.experiment.resolve import load_experiment
from kdyno.runs.experiment.variants import TraineeIsBuilt
from kdyno.runs.given import unmet
from tests.unit.bounded import kdyno, python, require_one_message
from tests.unit.built_kernel import BANNER, TEXT, bz_image, module, vmlinux, vmlinux_of_7
from tests.unit.experiment_files import written

CONFIG = (
    'CONFIG_CC_VERSION_TEXT="gcc-12 (Debian) 12.2.0"\nCONFIG_GCC_VERSION=120200\n'
    "CONFIG_X86=y\nCONFIG_X86_64=y\nCONFIG_VIRTIO_PCI=m\nCONFIG_VIRTIO_CONSOLE=m\n"
)
SYMBOLS = [
    (TEXT, "T_text"),
    *((TEXT + 16 * number, f"tfunction_{number}") for number in range(1, 600)),
    (TEXT + 16 * 600, "T_etext"),
]
RELEASE = BANNER.split()[0]
MINE = 'name = "mine"\nbaseline = "theirs"\n\n[variants.theirs]\nimage = "vmlinuz"\n'


def kernel_in(directory: Path, config: str = CONFIG, inner: bytes | None = None) -> Path:
    """boot/vmlinuz-RELEASE with its configuration beside it, and no modules."""
    boot = directory / "boot"
    boot.mkdir()
    path = boot / f"vmlinuz-{RELEASE}"
    path.write_bytes(bz_image(gzip.compress(vmlinux(SYMBOLS) if inner is None else inner, mtime=0)))
    (boot / f"config-{RELEASE}").write_text(config, encoding="utf-8")
    return path


def with_modules(directory: Path) -> None:
    place = directory / "lib" / "modules" / RELEASE / "kernel" / "drivers"
    place.mkdir(parents=True)
    for name, depends in (("virtio-pci", ("virtio", "virtio_ring")), ("virtio_console", ("virtio",)), ("virtio", ())):
        (place / f"{name}.ko.xz").write_bytes(lzma.compress(module(name, depends)))
    (place / "virtio_ring.ko").write_bytes(module("virtio_ring", ["virtio"]))


def why(path: Path, content: bytes) -> str:
    with pytest.raises(header.NotABootableKernel) as caught:
        header.read_header(content, path)
    return str(caught.value)


def test_the_head_of_a_kernel_says_its_release_and_where_vmlinux_is_packed() -> None:
    kernel = bz_image(b"payload")
    read = header.read_header(kernel, Path("k"))
    assert (read.release, read.version, read.banner) == (RELEASE, "6.1.0", BANNER)
    assert kernel[read.payload.start : read.payload.stop] == b"payload"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"\x7fELF" + bytes(600), "it is an ELF file"),
        (b"\x1f\x8b" + bytes(600), "packed by gzip"),
        (b"!<arch>\n" + bytes(600), "it is a Debian package"),
        (bytes(0x38) + b"ARM\x64" + bytes(600), "for another architecture"),
        (b"text" * 200, "no head of a bzImage"),
        (bz_image(b"payload")[:-1], "it is cut short"),
        (bz_image(b"payload", protocol=0x020B), "older than 2.12"),
        (bz_image(b"payload", flags=0), "32-bit x86"),
        (bz_image(b"payload", banner="\x1b[31mred"), "names no release of Linux"),
    ],
)
def test_what_is_no_kernel_for_this_machine_is_said_to_be_what_it_is(content: bytes, reason: str) -> None:
    assert reason in why(Path("k"), content)


def test_a_built_kernel_is_kept_as_an_image_with_its_modules_and_its_own_symbols(tmp_path: Path) -> None:
    path, state = kernel_in(tmp_path), State(tmp_path / "state")
    with_modules(tmp_path)
    messages: list[str] = []
    image = adopt.adopted(str(path), state, messages.append)
    record = image.record
    assert record.release == RELEASE and record.banner == BANNER and messages == [f"reading {path}: Linux {RELEASE}"]
    assert record.toolchain.banner == "gcc-12 (Debian) 12.2.0" and record.toolchain.version == "12.2.0"
    assert sorted(record.modules) == ["virtio", "virtio_console", "virtio_pci", "virtio_ring"]
    order = list(record.modules)
    assert order.index("virtio") < order.index("virtio_ring") < order.index("virtio_pci")
    assert record.sizes.text == 9600
    assert record.notes == (adopt.ITS_OWN_SYMBOLS,)
    assert image.symbols.read_text().startswith(f"{TEXT:016x} T _text\n")
    assert images.load_image(record.key, state) == image
    assert adopt.adopted(str(path), state, messages.append) == image and len(messages) == 1, "it is read once"


def test_the_same_kernel_elsewhere_is_the_same_image_and_other_modules_make_another(tmp_path: Path) -> None:
    state, directories = State(tmp_path / "state"), [tmp_path / name for name in ("a", "b", "c")]
    for place in directories:
        place.mkdir()
        kernel_in(place)
        with_modules(place)
    (place / "lib/modules" / RELEASE / "kernel/drivers/virtio_ring.ko").write_bytes(module("virtio_ring"))
    keys = [
        adopt.adopted(str(place / "boot" / f"vmlinuz-{RELEASE}"), state, lambda _: None).record.key
        for place in directories
    ]
    assert keys[0] == keys[1] != keys[2]


def test_a_configuration_inside_the_kernel_will_do_and_none_at_all_will_not(tmp_path: Path) -> None:
    state, path = State(tmp_path / "state"), kernel_in(tmp_path)
    beside = path.with_name(f"config-{RELEASE}")
    beside.unlink()
    with pytest.raises(adopt.ConfigMissing):
        adopt.adopted(str(path), state, lambda _: None)
    path.write_bytes(bz_image(gzip.compress(vmlinux(SYMBOLS, CONFIG), mtime=0)))
    assert adopt.adopted(str(path), state, lambda _: None).config.read_text() == CONFIG
    assert configuration_in(b"IKCFG_ST\x1f\x8b\x08brokenIKCFG_ED") is None


def test_a_missing_file_a_damaged_payload_and_a_missing_module_are_named(tmp_path: Path) -> None:
    state, path = State(tmp_path / "state"), kernel_in(tmp_path)
    with pytest.raises(adopt.BuiltKernelMissing):
        adopt.adopted(str(tmp_path / "none"), state, lambda _: None)
    with_modules(tmp_path)
    (tmp_path / "lib/modules" / RELEASE / "kernel/drivers/virtio_ring.ko").unlink()
    with pytest.raises(kernel_modules.ModuleMissing, match="virtio_ring"):
        adopt.adopted(str(path), state, lambda _: None)
    shutil.rmtree(tmp_path / "lib")
    path.write_bytes(bz_image(gzip.compress(vmlinux(SYMBOLS), mtime=0)[:-20]))
    with pytest.raises(packed.NotUnpackable, match="damaged"):
        adopt.adopted(str(path), state, lambda _: None)
    path.write_bytes(bz_image(b"\0" * 100))
    with pytest.raises(packed.NotUnpackable, match="format"):
        adopt.adopted(str(path), state, lambda _: None)
    path.write_bytes(bz_image(gzip.compress(b"no ELF at all", mtime=0)))
    with pytest.raises(header.NotABootableKernel, match="not a vmlinux"):
        adopt.adopted(str(path), state, lambda _: None)


def test_what_comes_out_of_a_file_is_bounded() -> None:
    bomb = gzip.compress(bytes(10_000_000), mtime=0)
    with pytest.raises(packed.NotUnpackable, match="more than 1,000,000 bytes"):
        packed.unpacked(bomb, 1_000_000, "it")
    assert packed.unpacked(b"plain", 10, "it") == b"plain"


def adopted_in_bounds(tmp_path: Path, path: Path) -> subprocess.CompletedProcess[str]:
    """What reading a built kernel comes to with a gigabyte of memory."""
    (tmp_path / "experiment.toml").write_text(MINE.replace("vmlinuz", str(path)))
    return kdyno("plan", tmp_path / "experiment.toml", "--state", tmp_path / "state")


def test_modules_that_unfold_together_are_refused(tmp_path: Path) -> None:
    path = kernel_in(tmp_path)
    with_modules(tmp_path)
    place = tmp_path / "lib" / "modules" / RELEASE / "kernel" / "drivers"
    names = [f"m{number}" for number in range(40)]
    (place / "virtio.ko.xz").write_bytes(lzma.compress(module("virtio", names)))
    packed_module = lzma.compress(module("m") + bytes(60_000_000), preset=0)
    for name in names:
        (place / f"{name}.ko.xz").write_bytes(packed_module)
    require_one_message(adopted_in_bounds(tmp_path, path), 1, "with what it needs it has more than 64,000,000 bytes")


def test_a_module_with_much_to_say_of_itself_is_refused(tmp_path: Path) -> None:
    path = kernel_in(tmp_path)
    with_modules(tmp_path)
    place = tmp_path / "lib" / "modules" / RELEASE / "kernel" / "drivers"
    (place / "virtio_ring.ko").unlink()
    (place / "virtio_ring.ko.xz").write_bytes(lzma.compress(module("virtio_ring", ["a"] * 15_000_000), preset=0))
    require_one_message(adopted_in_bounds(tmp_path, path), 1, "virtio_ring", "more than 1,048,576 bytes")


def test_a_kernel_that_unfolds_is_refused(tmp_path: Path) -> None:
    path = kernel_in(tmp_path)
    path.write_bytes(bz_image(gzip.compress(b"\x7fELF\x02" + bytes(500_000_000), 1)))
    require_one_message(adopted_in_bounds(tmp_path, path), 1, "more than 200,000,000 bytes")


def test_tables_of_a_kernel_whose_names_unfold_tell_nothing() -> None:
    code = """
from kdyno.kernel.built_kernels.kallsyms import kallsyms
from tests.unit.built_kernel import TEXT, vmlinux
symbols = [(TEXT, "T_text"), *((TEXT + 16 * number, "t" + 100 * chr(255)) for number in range(1, 30_000))]
assert kallsyms(vmlinux(symbols, last=b"x"))
assert not kallsyms(vmlinux(symbols, last=500 * b"x"))
"""
    done = python(code, cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stderr[-300:]


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x02\x01", module("a")[:-10], b"text" * 30])
def test_what_is_no_whole_module_is_refused(content: bytes) -> None:
    with pytest.raises(kernel_modules.ModuleUnfit):
        kernel_modules.needs(content, "a")


def test_what_a_module_depends_on_must_look_like_a_modules_name() -> None:
    assert kernel_modules.needs(module("a", ["b-c", "8021q"]), "a") == ["b_c", "8021q"]
    with pytest.raises(kernel_modules.ModuleUnfit):
        kernel_modules.needs(module("a", ["../../init"]), "a")


def test_a_kernels_own_tables_tell_its_functions_and_damaged_ones_tell_nothing() -> None:
    whole = vmlinux(SYMBOLS)
    assert [(symbol.address, symbol.kind + symbol.name) for symbol in kallsyms(whole)] == SYMBOLS
    assert system_map(whole).splitlines()[-1] == f"{TEXT + 9600:016x} T _etext"
    assert kallsyms(b"\x7fELF" + bytes(5000)) == []
    for at in range(80, len(whole) - 100, 97):
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        assert len(kallsyms(bytes(damaged))) in (0, *range(len(SYMBOLS) - 2, len(SYMBOLS) + 1))


@pytest.mark.parametrize("number", range(4))
def test_offsets_that_count_from_their_own_places_are_read(number: int) -> None:
    symbols = [*SYMBOLS, *((TEXT + 20_000 + 16 * more, f"tf{more}") for more in range(number))]
    whole = vmlinux_of_7(symbols)
    assert [(symbol.address, symbol.kind + symbol.name) for symbol in kallsyms(whole)] == symbols
    assert kallsyms(whole[:32] + b"\xff" * 8 + whole[40:]) == [], "headers outside of the file"
    assert kallsyms(whole[:-4]) == [], "cut off"


@pytest.mark.parametrize("data", [1, 2])
def test_names_and_addresses_keep_together_with_an_even_and_an_odd_number_of_them(data: int) -> None:
    behind = [(TEXT + 20_000 + number, f"Bdata_{number}") for number in range(data)]
    found = kallsyms(vmlinux([*SYMBOLS, *behind]))
    assert [(symbol.address, symbol.kind + symbol.name) for symbol in found] == SYMBOLS


def test_a_package_is_what_apt_says_and_its_members_go_only_where_they_belong() -> None:
    depends = "linux-image-6.1.0-9-amd64 (= 6.1.1-1), a | b"
    stanza = f"Package: linux-image-amd64\nVersion: 6.1.1-1\nDepends: {depends}\nDescription: x\n y: z\n"
    assert debian.parsed(stanza, "p") == debian.Package(
        "linux-image-amd64", "6.1.1-1", ("linux-image-6.1.0-9-amd64", "a")
    )
    with pytest.raises(debian.UnknownKernelPackage):
        debian.parsed("Package: ../x\nVersion: 1\n", "p")
    expected = {
        "./boot/vmlinuz-6.1": "boot/vmlinuz-6.1",
        "./usr/lib/modules/6.1/kernel/virtio.ko.xz": "lib/modules/6.1/kernel/virtio.ko.xz",
        "./boot/../etc/passwd": None,
        "./etc/passwd": None,
        "./lib/modules/6.1/kernel/other.ko": None,
        "./usr/lib/modules/7.2/vmlinuz": "lib/modules/7.2/vmlinuz",
        "./usr/lib/modules/7.2/config": "lib/modules/7.2/config",
        "./usr/lib/modules/7.2/modules.builtin": None,
        "./usr/lib/modules/vmlinuz": None,
    }
    assert {
        name: place and str(place) for name in expected for place in [debian.placed(name, ["virtio"], with_boot=True)]
    } == expected


def test_the_kernel_of_a_package_may_lie_in_another_one_beside_its_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = ("linux-base-7.2-amd64", "linux-binary-7.2-amd64", "linux-modules-7.2-amd64")
    known = {
        "linux-image-amd64": debian.Package(
            "linux-image-amd64", "7.2-1", ("linux-base-amd64", "linux-image-7.2-amd64")
        ),
        "linux-image-7.2-amd64": debian.Package("linux-image-7.2-amd64", "7.2-1", ("dracut", *parts)),
        **{name: debian.Package(name, "7.2-1", ()) for name in parts},
    }
    monkeypatch.setattr(debian, "known_package", known.__getitem__)
    wanted: list[str] = []

    @contextmanager
    def downloaded(packages: Sequence[debian.Package]) -> Iterator[list[Path]]:
        wanted.extend(package.name for package in packages)
        yield [package_file(tmp_path / "linux-binary.deb", {"./usr/lib/modules/7.2-amd64/vmlinuz": b"kernel"})]

    monkeypatch.setattr(debian, "_downloaded", downloaded)
    tree, origin = debian.package_tree("linux-image-amd64", State(tmp_path / "state"), lambda _: None)
    assert wanted == ["linux-image-7.2-amd64", *parts] and origin == "linux-image-7.2-amd64 7.2-1"
    kernel = debian.kernel_in(tree, "linux-image-amd64")
    assert kernel.relative_to(tree) == Path("lib/modules/7.2-amd64/vmlinuz")
    assert module_directory(kernel, "7.2-amd64") == kernel.parent


def package_file(path: Path, content: dict[str, bytes]) -> Path:
    """A Debian package of these files."""
    root = path.with_suffix("")
    for name, data in content.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN" / "control").write_text(
        f"Package: {path.stem}\nVersion: 7.2-1\nArchitecture: amd64\nMaintainer: a <a@example.org>\nDescription: x\n"
    )
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", root, path], check=True, capture_output=True)
    return path


def test_files_of_a_kernel_are_found_in_either_layout(tmp_path: Path) -> None:
    boot, modules = tmp_path / "boot", tmp_path / "usr/lib/modules" / RELEASE
    boot.mkdir()
    modules.mkdir(parents=True)
    copied, own = boot / f"vmlinuz-{RELEASE}", modules / "vmlinuz"
    for kernel in (copied, own):
        kernel.touch()
    (tmp_path / "vmlinuz").symlink_to(copied)
    (modules / "config").write_text(CONFIG)
    assert [config_of(kernel) for kernel in (copied, own, tmp_path / "vmlinuz")] == [modules / "config"] * 3
    assert {module_directory(kernel, RELEASE) for kernel in (copied, own, tmp_path / "vmlinuz")} == {modules}
    (boot / f"config-{RELEASE}").write_text(CONFIG)
    assert config_of(copied) == boot / f"config-{RELEASE}" and config_of(own) == modules / "config"
    assert system_maps_of(copied) == [
        boot / f"System.map-{RELEASE}",
        *(tmp_path / below / RELEASE / "System.map" for below in ("lib/modules", "usr/lib/modules")),
    ]
    assert module_directory(copied, "9.9") is None


def test_beside_a_built_kernel_there_may_be_only_what_concerns_its_start(tmp_path: Path) -> None:
    assert load_experiment(written(tmp_path, MINE + 'cmdline = ["quiet"]\n')).variants["theirs"].image == str(
        tmp_path / "vmlinuz"
    )
    with pytest.raises(BadExperiment, match="`opt`, `kconfig` would build it otherwise"):
        load_experiment(written(tmp_path, MINE + 'opt = "O3"\nkconfig = { PCI = true }\n'))
    with pytest.raises(LayoutOfBuiltKernel):
        load_experiment(written(tmp_path, "layouts = 6\nblocks = 6\n" + MINE))
    trained = (
        '[variants.mine]\ntoolchain = "clang-19"\nprofile = { train = "lmbench", use = ["autofdo"], on = "theirs" }\n'
    )
    with pytest.raises(TraineeIsBuilt):
        load_experiment(written(tmp_path, f'source = "linux"\n{MINE}{trained}'))


def test_a_knob_that_asks_for_a_symbol_is_held_against_the_kernels_own_configuration(tmp_path: Path) -> None:
    path, state = kernel_in(tmp_path, CONFIG + "# CONFIG_TRANSPARENT_HUGEPAGE is not set\n"), State(tmp_path / "state")
    with_modules(tmp_path)
    assert plan_given(Recipe(image=str(path), cmdline=("quiet",)), state, lambda _: None).cached
    with pytest.raises(NotInThisKernel):
        plan_given(Recipe(image=str(path), page_size="always"), state, lambda _: None)


def test_a_kernel_without_virtio_is_refused_and_modules_at_hand_will_do() -> None:
    config = {"PCI": "y", "VIRTIO_PCI": "m", "VIRTIO_CONSOLE": "m", "BINFMT_ELF": "y", "BINFMT_SCRIPT": "y"}
    config |= {"BLK_DEV_INITRD": "y", "RD_GZIP": "y", "SERIAL_8250": "y", "SERIAL_8250_CONSOLE": "y", "ACPI": "y"}
    config |= {"X86_64": "y", "SYSFS": "y"}
    at_hand = ("virtio_pci", "virtio_console")
    require_startable(config, at_hand, "q35", (), "variant a", "its configuration", is_whole=True)
    for lacking, modules in (({**config, "VIRTIO_PCI": "n"}, at_hand), (config, ("virtio_console",))):
        with pytest.raises(KernelNotStartable, match="VIRTIO_PCI"):
            require_startable(lacking, modules, "q35", (), "variant a", "its configuration", is_whole=True)
    with pytest.raises(KernelNotStartable, match="BINFMT_SCRIPT"):
        require_startable({**config, "BINFMT_SCRIPT": "m"}, at_hand, "q35", (), "a", "b", is_whole=True)


def test_a_workload_is_met_by_a_module_only_if_it_is_at_hand() -> None:
    config = {"SQUASHFS": "m", "AIO": "n"}
    assert unmet({"SQUASHFS": True}, config, ("squashfs",)) == []
    assert unmet({"SQUASHFS": True, "AIO": True}, config, ()) == [
        "  CONFIG_SQUASHFS=y (here: m)",
        "  CONFIG_AIO=y (here: n)",
    ]


def test_modules_are_loaded_in_their_order_before_the_agent_starts() -> None:
    entries = {entry.name: entry for entry in loader({"virtio": b"1", "virtio_pci": b"2"})}
    script = entries["kdyno/start"].data.decode().splitlines()
    assert script[0] == "#!/bin/sh"
    assert [line.rpartition("/")[2] for line in script if "insmod" in line] == ["virtio.ko", "virtio_pci.ko"]
    assert script[-1].endswith(" /init")
    assert entries["kdyno/modules/virtio_pci.ko"].data == b"2"


@pytest.mark.parametrize("name", ["-x", "a b", "linux image", "../x", ""])
def test_what_is_no_name_of_a_package_never_reaches_apt(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a valid name of a package"):
        debian.package_tree(name, State(tmp_path / "state"), lambda _: None)


@pytest.mark.skipif(os.getuid() != 0, reason="only root's apt has another user to download as")
def test_root_has_apt_download_as_its_own_user_who_reaches_nothing_of_kdyno(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where that user can't write, apt downloads as root, and only warns."""
    tmp_path.chmod(0o700)
    user = pwd.getpwnam(debian.APT_USER).pw_uid
    seen: list[bool] = []

    def download(command: Sequence[str], *, cwd: Path, **_: Any) -> subprocess.CompletedProcess[str]:
        assert command[:2] == ["apt-get", "download"]
        for place in (cwd, tmp_path):
            done = subprocess.run(["touch", str(place / "linux.deb")], user=user, check=False, capture_output=True)
            seen.append(done.returncode == 0)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr("kdyno.base.process.attempt", download)
    with debian._downloaded([debian.Package("linux", "1", ())]) as [archive]:
        assert archive.name == "linux.deb"
        assert archive.parent.stat().st_uid == 0, "what was downloaded can't be replaced any more"
    assert seen == [True, False]
