"""Shipping a judged run of toy kernels: the packages, their card, that they are the same each time, and refusals."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kdyno.base.files import DirectoryNotWritable
from kdyno.runs.session import Session
from kdyno.ship.build import PackagersMissing
from kdyno.ship.find_card import find_card
from kdyno.ship.plan import (
    NoImageInRun,
    NoSuchLayout,
    OtherImageNow,
    ProcessNotShipped,
    ReleaseRuns,
    ReleaseUnfit,
    SignatureForced,
    _initrd_notes,
)
from kdyno.ship.read_package import read_package
from kdyno.ship.ship import OtherFileThere, Shipped, look_ahead, ship
from kdyno.ship.terminal import card_lines, shipped_lines, verification_lines
from kdyno.ship.verify import OtherKernel, verify
from kdyno.store.records import RunRecord
from tests.unit.kernel_toy import local_base
from tests.unit.ship_specimen import BASELINE, TUNED, experiment_of, judged_run, order_of

TOOLS = ("dpkg-buildpackage", "dpkg-deb", "dh_builddeb", "rsync", "depmod", "cpio")
pytestmark = pytest.mark.skipif(
    any(shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None for tool in TOOLS),
    reason="a program of the kernel's packaging is missing",
)


@pytest.fixture(scope="module")
def shipped(place: Path, run: RunRecord, session: Session) -> Shipped:
    """The packages of the tuned variant, built once for all tests."""
    return ship(order_of(run, place / "packages"), session)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    directory = tmp_path / "packages"
    directory.mkdir()
    return directory


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_variant_becomes_packages_with_its_card(run: RunRecord, session: Session, shipped: Shipped) -> None:
    key = next(variant for variant in run.variants if variant.name == TUNED).images[0].key
    release = f"6.12.1-fake-kdyno-{key[:12]}"
    names = [f"linux-{part}-{release}_6.12.1-fake-1_amd64.deb" for part in ("image", "headers")]
    image, headers = (package.path for package in shipped.packages)
    assert [image.name, headers.name] == names
    assert names_in(image.parent) == sorted(names)
    content = read_package(image)
    expected = {f"boot/vmlinuz-{release}", f"boot/config-{release}", f"usr/share/kdyno/cards/{release}.json"}
    expected.add(f"usr/lib/kdyno/{release}/kdyno-try")
    assert expected <= set(content.files)
    card = find_card(str(image), None).card
    assert card == shipped.card
    assert card.image.sha256 == content.files[f"boot/vmlinuz-{release}"]
    assert card.judged.key == key
    assert card.judged.code.is_same
    assert card.judged.code.functions > 0
    assert card.verdicts.overall is not None
    assert card.verdicts.command_line == ("quiet",)
    assert any("quiet" in note for note in shipped.notes)
    assert list(session.state.builds.iterdir()) == []


def test_what_was_shipped_is_shown_with_its_verdict(shipped: Shipped) -> None:
    image = shipped.packages[0].path
    text = " ".join("\n".join(shipped_lines(shipped) + card_lines(find_card(str(image), None))).split())
    assert "kdyno verify ./linux-image-" in text
    assert shipped.card.verdicts.overall
    assert shipped.card.verdicts.overall.sentence in text


def test_a_card_names_no_directory_of_the_builder(shipped: Shipped, place: Path) -> None:
    assert str(place) not in shipped.card.written().decode()
    assert shipped.card.source.spec == "linux"


def test_a_card_says_what_a_local_configuration_differs_in_from_that_of_the_distribution(
    tmp_path: Path, session: Session, output: Path
) -> None:
    local = local_base(tmp_path, "CONFIG_NET=y\nCONFIG_EXT4=y\n", "ext4 1003520 1\n")
    run = judged_run(experiment_of(tmp_path, {"PCI": True}, config=local), session, run_id="5" * 64)
    configuration = ship(order_of(run, output), session).card.configuration
    assert configuration.base == "make:localmodconfig?lsmod=lsmod&config=config"
    assert configuration.changed["PCI"] == ("n", "y")
    assert not {"NET", "EXT4"} & configuration.changed.keys()


def test_headers_name_their_compiler_and_have_the_configuration(shipped: Shipped) -> None:
    image, headers = (package.path for package in shipped.packages)
    control = subprocess.run(["dpkg-deb", "--field", headers], check=True, capture_output=True, text=True).stdout
    major = shipped.card.compiler.version.partition(".")[0]
    assert f"Recommends: gcc-{major}\n" in control
    assert shipped.card.compiler.banner in control
    files = read_package(headers).files
    config = f"usr/src/linux-headers-{shipped.release}/.config"
    assert files[config] == read_package(image).files[f"boot/config-{shipped.release}"]
    assert not [name for name, digest in files.items() if digest.startswith("link /")]


def compiler_of_modules(package: Path, directory: Path, *words: str) -> list[str]:
    """Return the compiler and the linker that modules are built by with these words of make, and of makes below."""
    subprocess.run(["dpkg-deb", "--extract", package, directory], check=True)
    [headers] = (directory / "usr/src").iterdir()
    below = directory / "below.mk"
    below.write_text("show: ; @echo $(CC) $(LD)\n")
    rule = f"show: ; @echo $(CC) $(LD); $(MAKE) -s -f {below} show"
    command = ["make", "-s", "-C", str(headers), f"--eval={rule}", "--eval=export CC LD", *words, "show"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    return done.stdout.splitlines()


def test_modules_are_compiled_by_the_compiler_of_the_kernel(shipped: Shipped, tmp_path: Path) -> None:
    headers = shipped.packages[1].path
    major = shipped.card.compiler.version.partition(".")[0]
    assert compiler_of_modules(headers, tmp_path / "plain") == [f"gcc-{major} ld"] * 2
    assert compiler_of_modules(headers, tmp_path / "other", "CC=gcc-99") == ["gcc-99 ld"] * 2


@pytest.mark.skipif(shutil.which("clang-19") is None, reason="clang-19 is not installed")
def test_a_kernel_of_clang_is_packed_with_headers_that_name_clang(
    tmp_path: Path, session: Session, output: Path
) -> None:
    experiment = experiment_of(tmp_path, {"MODULES": True}, toolchain="clang-19")
    shipped = ship(order_of(judged_run(experiment, session, run_id="c1a9" * 16), output), session)
    headers = shipped.packages[1].path
    assert shipped.card.compiler.family == "clang"
    control = subprocess.run(["dpkg-deb", "--field", headers], check=True, capture_output=True, text=True).stdout
    assert "Recommends: clang-19, lld-19, llvm-19\n" in control
    assert compiler_of_modules(headers, tmp_path / "plain") == ["clang-19 ld.lld-19"] * 2
    dkms = compiler_of_modules(headers, tmp_path / "dkms", "CC=clang", "LD=ld.lld")
    assert dkms == ["clang-19 ld.lld-19"] * 2
    assert compiler_of_modules(headers, tmp_path / "other", "CC=clang-99") == ["clang-99 ld.lld-19"] * 2


@pytest.mark.parametrize(
    ("action", "free", "running", "why"),
    [
        ("install", 10**9, "6.1.0", ""),
        ("upgrade", 10**9, "RELEASE", ""),
        ("install", 100, "6.1.0", "/boot has 100 KiB free"),
        ("install", 10**9, "RELEASE", "boot another one first"),
    ],
)
def test_a_package_checks_the_machine_before_it_is_unpacked(
    shipped: Shipped, tmp_path: Path, action: str, free: int, running: str, why: str
) -> None:
    subprocess.run(["dpkg-deb", "--control", shipped.packages[0].path, tmp_path / "control"], check=True)
    for program, line in {"df": f"x x x {free} x", "uname": running.replace("RELEASE", shipped.release)}.items():
        stub = tmp_path / program
        stub.write_text(f"#!/bin/sh\necho head\necho {line}\n" if program == "df" else f"#!/bin/sh\necho {line}\n")
        stub.chmod(0o755)
    script = tmp_path / "control" / "preinst"
    script.write_text(script.read_text().replace("/sys/firmware", str(tmp_path)))  # Secure Boot of this host
    done = subprocess.run(
        ["sh", script, action],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == (why == "")
    assert why in done.stderr


def test_an_installation_arms_nothing_and_a_removal_undoes_what_was_armed(shipped: Shipped, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "--control", shipped.packages[0].path, tmp_path / "control"], check=True)
    scripts = {name: (tmp_path / "control" / name).read_text() for name in ("preinst", "postinst", "prerm")}
    program = f"/usr/lib/kdyno/{shipped.release}/kdyno-try"
    assert (
        f"update-alternatives --quiet --install /usr/sbin/kdyno-try kdyno-try {program} 6012001" in scripts["postinst"]
    )
    assert f"{program} --forget" in scripts["prerm"]
    assert [name for name, text in scripts.items() if re.search(rf"^\s*{program}", text, re.MULTILINE)] == ["prerm"]
    assert all((tmp_path / "control" / name).stat().st_mode & 0o111 for name in scripts)


def test_packages_are_equal_to_the_byte_on_another_day_under_another_umask(shipped: Shipped, session: Session) -> None:
    before = os.umask(0o077)  # the toy writes the second of its build into its packages, as the kernel does
    try:
        done = verify([package.path for package in shipped.packages], None, None, session, uses_ccache=False)
    finally:
        os.umask(before)
    assert done.is_same
    assert [package.built_sha256 for package in done.packages] == [package.sha256 for package in shipped.packages]
    assert "verified" in verification_lines(done)[-1]


def test_another_file_of_the_name_is_not_overwritten(run: RunRecord, session: Session, output: Path) -> None:
    target = look_ahead(order_of(run, output), session).packages[1]
    target.write_text("mine")
    with pytest.raises(OtherFileThere, match="linux-headers"):
        ship(order_of(run, output), session)
    assert names_in(output) == [target.name]
    assert target.read_text() == "mine"


def changed(package: Path, to: Path, change: Callable[[Path], object]) -> Path:
    """The package after a change of its tree."""
    tree = to / "tree"
    subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
    change(tree)
    result = to / package.name
    subprocess.run(["dpkg-deb", "-Zxz", "--root-owner-group", "--build", tree, result], check=True, capture_output=True)
    return result


def test_verify_names_a_file_that_was_added_and_a_claim_that_is_not_true(
    shipped: Shipped, session: Session, tmp_path: Path
) -> None:
    def change(tree: Path) -> None:
        (tree / "lib/modules/evil.ko").write_text("evil")
        [card] = (tree / "usr/share/kdyno/cards").iterdir()
        card.write_text(card.read_text().replace('"blocks": 12', '"blocks": 96'))

    done = verify([changed(shipped.packages[0].path, tmp_path, change)], None, None, session, uses_ccache=False)
    assert not done.is_same
    assert done.packages[0].differing == ("lib/modules/evil.ko",)
    assert done.card == ("verdicts.blocks: the card has 96, and here it is 12",)
    assert "NOT verified" in verification_lines(done)[-1]


def test_verify_refuses_a_run_of_another_image(shipped: Shipped, session: Session, tmp_path: Path) -> None:
    other = judged_run(experiment_of(tmp_path, {"MODULES": True, "SMP": True}), session, run_id="5" * 64)
    with pytest.raises(OtherKernel, match=f"run {other.id[:12]} judged"):
        verify([shipped.packages[0].path], other.id, None, session, uses_ccache=False)


def test_a_kernel_without_modules_has_no_headers(tmp_path: Path, session: Session, output: Path) -> None:
    run = judged_run(experiment_of(tmp_path, {}), session, run_id="1" * 64)
    assert [path.name[:12] for path in look_ahead(order_of(run, output), session).packages] == ["linux-image-"]


def test_a_kernel_that_unpacks_no_initrd_of_debians_has_a_note() -> None:
    assert list(_initrd_notes({"BLK_DEV_INITRD": "y", "RD_GZIP": "y"})) == []
    assert list(_initrd_notes({})) == []
    [note] = _initrd_notes({"BLK_DEV_INITRD": "y", "RD_LZ4": "y"})
    assert "RD_ZSTD and RD_GZIP" in note


def test_looking_ahead_writes_and_builds_nothing(run: RunRecord, session: Session, output: Path) -> None:
    ahead = look_ahead(order_of(run, output), session)
    assert names_in(output) == []
    assert [path.name.partition("_")[0] for path in ahead.packages] == [
        f"linux-{part}-{ahead.release}" for part in ("image", "headers")
    ]
    assert ahead.image_is_built


def test_no_key_is_made_to_sign_modules(tmp_path: Path, session: Session, output: Path) -> None:
    kconfig = {"MODULES": True, "MODULE_SIG": True, "MODULE_SIG_ALL": True, "MODULE_SIG_KEY": "certs/signing_key.pem"}
    run = judged_run(experiment_of(tmp_path, kconfig), session, run_id="2" * 64)
    card = ship(order_of(run, output), session).card
    assert card.configuration.asked["MODULE_SIG_KEY"] == '""'
    assert card.configuration.asked["MODULE_SIG_ALL"] == "n"


def test_a_kernel_that_loads_signed_modules_only_is_refused(tmp_path: Path, session: Session, output: Path) -> None:
    kconfig = {"MODULES": True, "MODULE_SIG": True, "MODULE_SIG_FORCE": True}
    run = judged_run(experiment_of(tmp_path, kconfig), session, run_id="3" * 64)
    with pytest.raises(SignatureForced):
        ship(order_of(run, output), session)
    assert names_in(output) == []


def with_images(run: RunRecord, **changes: Any) -> RunRecord:
    """The run with other facts on record of its images."""
    variants = tuple(
        variant.model_copy(update={"images": tuple(image.model_copy(update=changes) for image in variant.images)})
        for variant in run.variants
    )
    return run.model_copy(update={"variants": variants})


def test_a_kernel_that_is_a_process_is_never_shipped(run: RunRecord, session: Session, output: Path) -> None:
    with pytest.raises(ProcessNotShipped, match="ARCH=um") as refused:
        look_ahead(order_of(with_images(run, arch="um"), output), session)
    assert 'config = "running"' in refused.value.advice


def test_a_variant_without_an_image_is_refused(run: RunRecord, session: Session, output: Path) -> None:
    variants = tuple(variant.model_copy(update={"images": ()}) for variant in run.variants)
    with pytest.raises(NoImageInRun):
        look_ahead(order_of(run.model_copy(update={"variants": variants}), output), session)


def test_an_image_that_this_host_cannot_build_again_is_refused(run: RunRecord, session: Session, output: Path) -> None:
    other = with_images(run, key="0" * 64, make=("ARCH=x86_64", "LOCALVERSION=", "CC=gcc-99"))
    with pytest.raises(OtherImageNow, match="the words of make differ"):
        look_ahead(order_of(other, output), session)


def test_a_link_order_that_the_run_does_not_have_is_refused(run: RunRecord, session: Session, output: Path) -> None:
    with pytest.raises(NoSuchLayout):
        look_ahead(order_of(run, output, layout=1), session)


def test_the_release_of_the_running_kernel_is_refused(
    run: RunRecord, session: Session, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = look_ahead(order_of(run, output), session).release
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=release))
    with pytest.raises(ReleaseRuns):
        look_ahead(order_of(run, output), session)


def test_a_release_that_no_package_can_have_is_refused(tmp_path: Path, session: Session, output: Path) -> None:
    run = judged_run(experiment_of(tmp_path, {"LOCALVERSION": "-Big_One"}), session, run_id="4" * 64)
    with pytest.raises(ReleaseUnfit, match="lower-case"):
        look_ahead(order_of(run, output), session)


def test_an_output_that_is_not_a_directory_is_refused_before_a_build(
    run: RunRecord, session: Session, output: Path
) -> None:
    (output / "file").touch()
    for place in ("missing/too", "file", "file/below"):
        with pytest.raises(DirectoryNotWritable):
            ship(order_of(run, output / place), session)


def test_missing_packagers_are_named_with_the_way_to_install_them(
    run: RunRecord, session: Session, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, **words: None if name == "rsync" else which(name, **words))
    with pytest.raises(PackagersMissing, match="rsync") as refused:
        ship(order_of(run, output), session)
    assert "rsync" in refused.value.advice


def test_a_signed_baseline_without_modules_has_no_verdicts_and_no_headers(
    tmp_path: Path, session: Session, output: Path
) -> None:
    if shutil.which("minisign") is None:
        pytest.skip("minisign is not installed")
    run = judged_run(experiment_of(tmp_path, {}), session, run_id="6" * 64)
    public, secret = tmp_path / "key.pub", tmp_path / "key"
    subprocess.run(["minisign", "-G", "-W", "-p", public, "-s", secret], check=True, capture_output=True)
    shipped = ship(order_of(run, output, BASELINE, key=secret), session)
    [package] = shipped.packages
    assert package.signature
    subprocess.run(["minisign", "-V", "-p", public, "-m", package.path, "-x", package.signature], check=True)
    assert hashlib.sha256(package.path.read_bytes()).hexdigest() == package.sha256
    assert shipped.card.verdicts.overall is None
    assert any("it is the baseline of the run" in line for line in card_lines(find_card(str(package.path), None)))
