"""RPM packages and packages for pacman of toy kernels, read by kdyno and by the tools of their distributions."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kdyno.runs.session import Session
from kdyno.ship.find_card import find_card
from kdyno.ship.lint import lint
from kdyno.ship.package_content import PackageKind
from kdyno.ship.packagers import PACKAGERS
from kdyno.ship.read_package import read_package
from kdyno.ship.ship import Shipped, look_ahead, ship
from kdyno.ship.terminal import shipped_lines
from kdyno.ship.verify import NotOfThisKernel, verify
from kdyno.store.records import RunRecord
from tests.unit.ship_specimen import TUNED, experiment_of, judged_run, order_of

KINDS: tuple[PackageKind, ...] = ("rpm", "pacman")


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skip a test where a program is missing."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    missing = [program for program in programs if shutil.which(program, path=path) is None]
    return pytest.mark.skipif(bool(missing), reason=f"missing: {', '.join(missing)}")


pytestmark = needs(*(program for kind in KINDS for program in PACKAGERS[kind].programs))
both = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def shipments(place: Path, run: RunRecord, session: Session) -> dict[PackageKind, Shipped]:
    """The packages of the tuned variant, built once for all tests."""
    made = {}
    for kind in KINDS:
        directory = place / kind
        directory.mkdir()
        made[kind] = ship(order_of(run, directory, kind=kind), session)
    return made


def output_of(*words: str | Path, **options: object) -> str:
    done = subprocess.run(words, check=False, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return str(done.stdout)


def suffix_of(run: RunRecord) -> str:
    return f"-kdyno-{next(one for one in run.variants if one.name == TUNED).images[0].key[:12]}"


@both
def test_a_variant_becomes_packages_with_its_card(
    kind: PackageKind, shipments: dict[PackageKind, Shipped], run: RunRecord, session: Session
) -> None:
    shipped = shipments[kind]
    image, headers = (package.path for package in shipped.packages)
    assert [image, headers] == list(look_ahead(order_of(run, image.parent, kind=kind), session).packages)
    assert sorted(image.parent.iterdir()) == sorted([image, headers])
    content = read_package(image)
    release = f"6.12.1-fake{suffix_of(run)}"
    modules = {"rpm": "lib/modules", "pacman": "usr/lib/modules"}[kind]
    kernel = f"{modules}/{release}/vmlinuz"
    assert {kernel, f"{modules}/{release}/kernel/open.ko", f"usr/share/kdyno/cards/{release}.json"} <= set(
        content.files
    )
    assert f"{modules}/{release}/build" not in content.files
    card = find_card(str(image), None).card
    assert card == shipped.card
    assert (card.package, card.version) == (content.name, content.version)
    assert card.image.path == f"/{kernel}"
    assert card.image.sha256 == content.files[kernel]
    assert card.judged.code.is_same


@both
def test_headers_have_the_configuration_and_lead_to_it(
    kind: PackageKind, shipments: dict[PackageKind, Shipped]
) -> None:
    image, headers = (read_package(package.path).files for package in shipments[kind].packages)
    release = shipments[kind].release
    place = {"rpm": f"usr/src/kernels/{release}", "pacman": f"usr/lib/modules/{release}/build"}[kind]
    config = {"rpm": f"lib/modules/{release}/config", "pacman": f"usr/lib/modules/{release}/config"}[kind]
    assert headers[f"{place}/.config"] == image[config]
    assert f"{place}/Makefile" in headers
    if kind == "rpm":
        assert headers[f"lib/modules/{release}/build"] == f"link /usr/src/kernels/{release}"


@needs("clang-19")
def test_headers_of_a_kernel_by_clang_choose_clang(tmp_path: Path, session: Session) -> None:
    experiment = experiment_of(tmp_path, {"MODULES": True}, toolchain="clang-19")
    run = judged_run(experiment, session, run_id="c1a8" * 16)
    shipped = ship(order_of(run, tmp_path, kind="pacman"), session)
    output_of("bsdtar", "-xf", shipped.packages[1].path, "-C", tmp_path)
    headers = tmp_path / f"usr/lib/modules/{shipped.release}/build"
    show = ["make", "-s", "-C", str(headers), "--eval=show: ; @echo $(CC) $(LD)", "show"]
    assert output_of(*show) == "clang ld.lld\n"
    assert output_of(*show, "LLVM=-19") == "clang-19 ld.lld-19\n"


@both
def test_packages_are_equal_to_the_byte_under_another_umask(
    kind: PackageKind, shipments: dict[PackageKind, Shipped], session: Session
) -> None:
    before = os.umask(0o077)
    try:
        paths = [package.path for package in shipments[kind].packages]
        done = verify(paths, None, None, session, uses_ccache=False)
    finally:
        os.umask(before)
    assert [package.built_sha256 for package in done.packages] == [
        package.sha256 for package in shipments[kind].packages
    ]
    assert done.is_same


@both
def test_what_was_shipped_is_installed_by_the_tool_of_its_kind(
    kind: PackageKind, shipments: dict[PackageKind, Shipped]
) -> None:
    text = "\n".join(shipped_lines(shipments[kind]))
    assert {"rpm": "sudo dnf install ./kernel-", "pacman": "sudo pacman -U ./linux-"}[kind] in text
    assert "apt-get" not in text


def test_packages_of_two_kinds_are_not_verified_together(
    shipments: dict[PackageKind, Shipped], session: Session
) -> None:
    paths = [shipments["rpm"].packages[0].path, shipments["pacman"].packages[1].path]
    with pytest.raises(NotOfThisKernel, match="-headers"):
        verify(paths, None, None, session, uses_ccache=False)


@needs("rpm")
def test_rpm_reads_its_packages_and_finds_their_digests_right(
    shipments: dict[PackageKind, Shipped], tmp_path: Path
) -> None:
    shipped = shipments["rpm"]
    database = ["--dbpath", str(tmp_path)]
    for package in shipped.packages:
        assert "digests OK" in output_of("rpm", *database, "-K", package.path)
    image, headers = (package.path for package in shipped.packages)
    query = ["rpm", *database, "-qp", "--qf"]
    tags = output_of(*query, "%{NAME}|%{VERSION}|%{RELEASE}|%{ARCH}|%{BUILDHOST}|%{BUILDTIME}", image)
    assert tags == f"{shipped.card.package}|6.12.1_fake|1|x86_64|localhost|{shipped.card.epoch}"
    listed = output_of("rpm", *database, "-qpl", image).split()
    assert f"/boot/vmlinuz-{shipped.release}" in listed
    assert {f"/{name}" for name in read_package(image).files} <= set(listed)
    scripts = output_of("rpm", *database, "-qp", "--scripts", image)
    assert "another one first" in scripts
    assert f"/usr/lib/kdyno/{shipped.release}/kdyno-try --forget" in scripts
    assert shipped.card.compiler.banner in output_of("rpm", *database, "-qpi", headers)
    owners = output_of(*query, "[%{FILEUSERNAME}:%{FILEGROUPNAME} ]", image).split()
    assert set(owners) == {"root:root"}


@pytest.mark.parametrize(
    ("first", "free", "running", "why"),
    [
        ("1", 10**9, "6.1.0", ""),
        ("2", 10**9, "RELEASE", ""),
        ("1", 100, "6.1.0", "/boot has 100 KiB free"),
        ("1", 10**9, "RELEASE", "boot another one first"),
    ],
)
@needs("rpm")
def test_an_rpm_package_checks_the_machine_before_it_is_unpacked(
    shipments: dict[PackageKind, Shipped], tmp_path: Path, first: str, free: int, running: str, why: str
) -> None:
    shipped = shipments["rpm"]
    script = output_of("rpm", "--dbpath", tmp_path / "db", "-qp", "--qf", "%{PREIN}", shipped.packages[0].path)
    for program, line in {"df": f"x x x {free} x", "uname": running.replace("RELEASE", shipped.release)}.items():
        stub = tmp_path / program
        stub.write_text(f"#!/bin/sh\necho head\necho {line}\n" if program == "df" else f"#!/bin/sh\necho {line}\n")
        stub.chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", script.replace("/sys/firmware", str(tmp_path)), "prein", first],  # Secure Boot of this host
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == (why == "")
    assert why in done.stderr


@needs("pacman")
def test_pacman_reads_its_packages(shipments: dict[PackageKind, Shipped], tmp_path: Path) -> None:
    (tmp_path / "pacman.conf").write_text("[options]\nArchitecture = auto\n")
    pacman: list[str | Path] = [
        "pacman",
        "--config",
        tmp_path / "pacman.conf",
        "--dbpath",
        tmp_path,
        "--root",
        tmp_path,
        "-Qp",
    ]
    image, headers = (package.path for package in shipments["pacman"].packages)
    card = shipments["pacman"].card
    assert output_of(*pacman, image) == f"{card.package} {card.version}\n"
    listed = output_of(*pacman, "-lq", image).split()
    assert f"{tmp_path}{card.image.path}" in listed
    assert card.compiler.banner in output_of(*pacman, "-i", headers, env={**os.environ, "COLUMNS": "1000"})


@needs("pacman", "fakeroot")
def test_pacman_installs_its_package_and_finds_nothing_altered(
    shipments: dict[PackageKind, Shipped], tmp_path: Path
) -> None:
    root = tmp_path / "root"
    (root / "var/lib/pacman").mkdir(parents=True)
    (tmp_path / "pacman.conf").write_text("[options]\nArchitecture = auto\nSigLevel = Never\n")
    options: list[str | Path] = [
        "--config",
        tmp_path / "pacman.conf",
        "--dbpath",
        root / "var/lib/pacman",
        "--root",
        root,
    ]
    options += ["--hookdir", root, "--logfile", tmp_path / "log", "--noconfirm", "--cachedir", tmp_path]
    files = [package.path for package in shipments["pacman"].packages]
    output_of("fakeroot", "pacman", *options, "-U", "-dd", "--noscriptlet", *files)
    card = shipments["pacman"].card
    assert find_card(f"{root}{card.image.path}", None).card == card
    assert "0 altered files" in output_of("fakeroot", "pacman", *options, "-Qkk", card.package)


@needs("bsdtar")
def test_the_list_of_files_of_a_package_for_pacman_has_their_digests(
    shipments: dict[PackageKind, Shipped], tmp_path: Path
) -> None:
    image = shipments["pacman"].packages[0].path
    names = output_of("bsdtar", "-tf", image).split()
    assert names[:3] == [".MTREE", ".PKGINFO", ".INSTALL"]
    subprocess.run(["bsdtar", "-xf", image, "-C", tmp_path, ".MTREE", ".INSTALL"], check=True)
    mtree = output_of("zcat", "-f", tmp_path / ".MTREE")
    for name, digest in read_package(image).files.items():
        if name != ".MTREE":
            assert f"./{name} " in mtree
            assert digest in mtree
    output_of("bash", "-n", tmp_path / ".INSTALL")


@needs("rpmlint")
def test_rpmlint_finds_no_errors_but_those_of_the_toy(shipments: dict[PackageKind, Shipped]) -> None:
    of_the_toy = {"zero-length", "non-executable-script"}
    findings = lint([package.path for package in shipments["rpm"].packages], "rpm")
    assert findings is not None
    assert {finding.tag for finding in findings if finding.level == "E"} == of_the_toy
    assert {finding.package for finding in findings} == {
        "".join((shipments["rpm"].card.package, end)) for end in ("", "-devel")
    }
