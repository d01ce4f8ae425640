"""`kdyno bisect debian:linux-image-A..B`: packages that a stand-in for apt has, and boots that are replayed."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from kdyno.boot.base import Description
from kdyno.boot.fake import FakeMachine
from tests.cli.conftest import CommandResult, Lab
from tests.cli.replay import slower
from tests.unit.built_kernel import TEXT, bz_image, vmlinux

REPLAYED = FakeMachine.describe
CONFIG = 'CONFIG_CC_VERSION_TEXT="gcc-12 (Debian) 12.2.0"\nCONFIG_X86=y\nCONFIG_X86_64=y\n'
NUMBERS = (7, 8, 9, 10, 11)
APT_CACHE = """\
#!/bin/sh
cd {archive}
case "$1" in
pkgnames) ls | sed -n 's/\\.stanza$//p';;
show) cat "$3.stanza" 2>/dev/null || {{ echo "E: No packages found" >&2; exit 100; }};;
esac
"""
APT_GET = """\
#!/bin/sh
echo "$3" >> {archive}/downloaded
cp {archive}/"${{3%%=*}}".deb .
"""


def name_of(number: int, flavour: str = "amd64") -> str:
    return f"6.1.0-{number}-{flavour}"


class ToyArchive:
    """Packages with kernels that are made by hand."""

    def __init__(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lab, self.place = lab, lab.directory / "archive"
        self.place.mkdir()
        programs = lab.directory / "programs"
        programs.mkdir()
        for program, text in (("apt-cache", APT_CACHE), ("apt-get", APT_GET)):
            (programs / program).write_text(text.format(archive=self.place))
            (programs / program).chmod(0o755)
        monkeypatch.setenv("PATH", str(programs), prepend=":")

    def add(self, release: str, percent: int = 0, *, kernel: bytes | None = None) -> None:
        """Add a package, whose pipes are so many percent slower than those of the first."""
        tree = self.lab.directory / f"tree-{release}"
        (tree / "boot").mkdir(parents=True)
        (tree / "DEBIAN").mkdir()
        package, version = f"linux-image-{release}", f"6.1.{len(release)}-{release.split('-')[1]}"
        stanza = f"Package: {package}\nVersion: {version}\nArchitecture: amd64\nMaintainer: a\nDescription: b\n"
        (tree / "DEBIAN" / "control").write_text(stanza)
        inner = gzip.compress(vmlinux([(TEXT, "T_text"), (TEXT + 16 + len(release) * 16, "T_etext")]), mtime=0)
        banner = f"{release} (a@b) #1 SMP {version}"
        (tree / "boot" / f"vmlinuz-{release}").write_bytes(bz_image(inner, banner) if kernel is None else kernel)
        (tree / "boot" / f"config-{release}").write_text(CONFIG)
        command = ("dpkg-deb", "--root-owner-group", "--build", str(tree), str(self.place / f"{package}.deb"))
        subprocess.run(command, check=True, capture_output=True)
        (self.place / f"{package}.stanza").write_text(stanza)
        recording = self.lab.recording.directory / release
        shutil.copytree(self.lab.recording.directory / "baseline" / "0", recording)
        if percent:
            slower("lat_pipe", percent)(recording)

    def downloaded(self) -> list[str]:
        return [line.partition("=")[0] for line in (self.place / "downloaded").read_text().split()]

    def bisect(self, named: str, *words: str) -> CommandResult:
        machine = f"fake,recording={self.lab.recording.directory}"
        return self.lab("bisect", named, "--json", "--benchmark", "lat_pipe", "--machine", machine, *words)


@pytest.fixture
def archive(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> ToyArchive:
    """Five packages of one series, from the fourth on slower, and one of another series. The machine needs images."""

    def describe(machine: FakeMachine) -> Description:
        return replace(REPLAYED(machine), needs_images=True)

    monkeypatch.setattr(FakeMachine, "describe", describe)
    made = ToyArchive(lab, monkeypatch)
    for number in NUMBERS:
        made.add(name_of(number), 2 if number >= 10 else 0)
    made.add(name_of(9, "rt-amd64"))
    return made


def result_of(done: CommandResult) -> dict[str, Any]:
    assert done.out, done.err
    found = json.loads(done.out)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("bad", [name_of(11), f"linux-image-{name_of(11)}"])
def test_the_package_that_made_pipes_slower_is_found_without_a_build(archive: ToyArchive, bad: str) -> None:
    done = archive.bisect(f"debian:linux-image-{name_of(7)}..{bad}")
    found = result_of(done)
    assert (done.status, found["kind"], found["steps"]) == (0, "packages", 4), done.err
    [culprit] = found["culprits"]
    assert [change["name"] for change in culprit["changes"]] == [name_of(10)]
    assert (culprit["before"], culprit["confirmed"], culprit["layouts"]) == (name_of(9), True, 0)
    assert f"apt-get changelog linux-image-{name_of(10)}" in culprit["advice"]
    assert "later packages contain it" in culprit["revert_reason"]
    downloaded = archive.downloaded()
    assert len(downloaded) == len(set(downloaded)) == found["builds"]
    assert not any("rt" in package for package in downloaded)


def test_a_package_whose_kernel_cannot_be_read_is_skipped(archive: ToyArchive) -> None:
    place = archive.lab.directory
    for path in (place / f"tree-{name_of(9)}", archive.lab.recording.directory / name_of(9)):
        shutil.rmtree(path)
    archive.add(name_of(9), kernel=b"\x7fELF" + bytes(600))
    found = result_of(archive.bisect(f"debian:linux-image-{name_of(7)}..{name_of(11)}"))
    [skipped] = [kernel for kernel in found["kernels"] if kernel["answer"] == "skipped"]
    assert (skipped["name"], "it is an ELF file" in skipped["reason"]) == (name_of(9), True)
    [culprit] = found["culprits"]
    assert [change["name"] for change in culprit["changes"]] == [name_of(9), name_of(10)]


def test_packages_of_another_version_than_before_are_refused(archive: ToyArchive) -> None:
    named = f"debian:linux-image-{name_of(7)}..{name_of(11)}"
    assert archive.bisect(named).status == 0
    stanza = archive.place / f"linux-image-{name_of(8)}.stanza"
    stanza.write_text(stanza.read_text().replace("Version: 6.1", "Version: 6.2"))
    done = archive.bisect(named)
    assert (done.status, "has changed since this bisection began" in done.err) == (1, True), done.err


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        (name_of(7), name_of(7), "are the same package"),
        (name_of(11), name_of(7), "is reversed"),
        (name_of(7), name_of(9, "rt-amd64"), "their names differ in more than numbers"),
        (name_of(7), name_of(12), f"apt knows no package linux-image-{name_of(12)} with a kernel"),
        (name_of(7), "; rm -r", "that is not a valid name of a package"),
    ],
)
def test_packages_that_cannot_be_bisected_are_refused_before_a_download(
    archive: ToyArchive, good: str, bad: str, message: str
) -> None:
    done = archive.bisect(f"debian:linux-image-{good}..{bad}")
    assert (done.status, message in done.err) == (1, True), done.err
    assert not (archive.place / "downloaded").exists()


def test_the_word_that_made_a_built_kernel_slower_is_found_without_other_link_orders(archive: ToyArchive) -> None:
    for name, percent in (("good", 0), ("1-quiet", 0), ("2-nosmt", 3)):
        place = archive.lab.recording.directory / name
        shutil.copytree(archive.lab.recording.directory / "baseline" / "0", place)
        if percent:
            slower("lat_pipe", percent)(place)
    image = f"image=debian:linux-image-{name_of(7)}"
    machine = f"fake,recording={archive.lab.recording.directory}"
    words = ("--json", "--benchmark", "lat_pipe", "--machine", machine, "--no-revert")
    done = archive.lab("bisect", image, f"{image},cmdline=quiet,cmdline=nosmt", *words)
    [culprit] = result_of(done)["culprits"]
    assert [change["name"] for change in culprit["changes"]] == ["2-nosmt"]
    assert culprit["confirmed"] and culprit["layouts"] == 0


def test_packages_have_no_script(archive: ToyArchive) -> None:
    done = archive.bisect(f"debian:linux-image-{name_of(7)}..{name_of(11)}", "--script", "script")
    assert (done.status, "packages are not commits" in done.err) == (1, True), done.err
