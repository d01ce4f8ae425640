"""tools/setup, with stand-ins for apt-get, dpkg-query, cargo and Python that only say what they were asked for."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

from tests.unit.os_release import DEBIAN, FEDORA, JAMMY, MINT, UBUNTU

ROOT = Path(__file__).parent.parent.parent
INSTALLER = "requirements/uv.txt"
LOCK = "requirements/dev.txt"
PAGES = "requirements/pages.txt"
TABLE, UBUNTU_TABLE = "src/kdyno/data/debian-packages.txt", "src/kdyno/data/ubuntu-24.04-packages.txt"
PYTHON = """\
case "$*" in
    --version) echo Python 3.11.0 ;;
    "-m venv --clear .venv")
        rm -rf .venv
        mkdir -p .venv/bin
        cp "$0" .venv/bin/python
        cp "${0%/*}/uv" .venv/bin/uv ;;
    "-m pip --version") ;;
    "-m pip config list") cat pip-settings ;;
    "-m pip install"*)
        if [ -e no-network ]; then exit 1; fi
        mkdir -p .venv/lib/python3.11/site-packages
        echo "$PWD/src" > .venv/lib/python3.11/site-packages/__editable__.kdyno-0.1.0.pth ;;
esac
"""


class Checkout:
    """A checkout with what set-up reads, and stand-ins for the programs that it calls."""

    def __init__(self, directory: Path) -> None:
        self.home, self.stubs = directory / "home", directory / "stubs"
        self.place = directory / "kernels für alle"
        self.calls_file = directory / "calls"
        self.os_release = directory / "os-release"
        for name in (
            "tools/setup",
            "tools/build-rust",
            TABLE,
            UBUNTU_TABLE,
            INSTALLER,
            LOCK,
            PAGES,
            "pyproject.toml",
            "Cargo.toml",
            "Cargo.lock",
        ):
            (self.place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.place / name)
        self.edit("tools/setup", "/etc/os-release", f"{self.os_release}")
        self.os_release.write_text(DEBIAN)
        (self.place / "crates").mkdir()
        self.home.mkdir()
        self.stubs.mkdir()
        self.stub("git", "exit 1")
        self.stub("sudo", '"$@"')
        self.stub("apt-get", "")
        self.stub("dpkg-query", f'case " $(cat {self.stubs}/missing) " in *" $4 "*) exit 1 ;; esac; echo installed')
        self.stub("cargo", "echo cargo 1.90.0")
        self.stub("python3", PYTHON)
        self.stub("uv", 'echo "$UV_DEFAULT_INDEX $SSL_CERT_FILE" > uv-settings')
        (self.place / "pip-settings").write_text("")
        self.without_packages("cargo-web", "rustc-web")

    def stub(self, program: str, script: str) -> None:
        path = self.stubs / program
        path.unlink(missing_ok=True)  # it may be a link to the host's program
        path.write_text(f'#!/bin/sh\necho "{program} $*" >> {self.calls_file}\n{script}\n')
        path.chmod(0o755)

    def edit(self, name: str, pattern: str, new: str) -> None:
        path = self.place / name
        text, count = re.subn(pattern, new, path.read_text(), flags=re.MULTILINE)
        assert count
        path.write_text(text)

    def without_programs(self, *programs: str) -> None:
        for program in programs:
            self.edit(TABLE, rf"^(\w+ +\S+ +){program} ", rf"\1{program}-that-is-not-here ")

    def without_packages(self, *packages: str) -> None:
        (self.stubs / "missing").write_text(" ".join(packages))

    def setup(self, goal: str = "demo") -> subprocess.CompletedProcess[str]:
        self.calls_file.write_text("")
        return subprocess.run(
            [self.place / "tools/setup", goal],
            env={"PATH": f"{self.stubs}:/usr/bin:/bin", "HOME": str(self.home), "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self, program: str) -> list[str]:
        lines = self.calls_file.read_text().splitlines()
        return [line.partition(" ")[2] for line in lines if line.startswith(f"{program} ")]

    def environments_made(self) -> int:
        return self.calls("python3").count("-m venv --clear .venv")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_the_first_set_up_makes_the_environment_and_the_second_does_nothing(checkout: Checkout) -> None:
    first = checkout.setup()
    assert (first.returncode, checkout.environments_made()) == (0, 1), first.stderr
    assert "installing kdyno" in first.stderr
    assert "tools/build-rust" in checkout.calls("python3")
    second = checkout.setup()
    assert (second.returncode, second.stderr, checkout.environments_made()) == (0, "", 0)


def test_the_environment_finds_the_sources_by_a_path_that_python_can_read_in_every_locale(checkout: Checkout) -> None:
    assert checkout.setup().returncode == 0
    packages = checkout.place / ".venv/lib/python3.11/site-packages"
    path = (packages / "__editable__.kdyno-0.1.0.pth").read_text(encoding="ascii").strip()
    assert (packages / path).resolve() == checkout.place / "src"


def test_set_up_does_not_call_git(checkout: Checkout) -> None:
    assert checkout.setup("test").returncode == 0
    assert checkout.calls("git") == []


def test_an_installation_that_failed_is_begun_anew(checkout: Checkout) -> None:
    (checkout.place / "no-network").write_text("")
    assert checkout.setup().returncode != 0
    (checkout.place / "no-network").unlink()
    assert (checkout.setup().returncode, checkout.environments_made()) == (0, 1)


def test_an_environment_that_was_left_unfinished_is_made_anew(checkout: Checkout) -> None:
    (checkout.place / ".venv/bin").mkdir(parents=True)
    (checkout.place / ".venv/bin/python").symlink_to("/usr/bin/python3")
    assert (checkout.setup().returncode, checkout.environments_made()) == (0, 1)


def test_a_moved_checkout_gets_a_new_environment(checkout: Checkout) -> None:
    assert checkout.setup().returncode == 0
    checkout.place = checkout.place.rename(checkout.place.with_name("elsewhere"))
    assert (checkout.setup().returncode, checkout.environments_made()) == (0, 1)


def test_changed_sources_of_rust_programs_are_installed_without_a_new_environment(checkout: Checkout) -> None:
    assert checkout.setup().returncode == 0
    (checkout.place / "crates/new.rs").write_text("fn main() {}\n")
    changed = checkout.setup()
    assert (changed.returncode, checkout.environments_made()) == (0, 0)
    assert "installing kdyno" in changed.stderr


def test_libraries_are_those_of_the_lock_and_kdyno_brings_no_others(checkout: Checkout) -> None:
    assert checkout.setup().returncode == 0
    installer, kdyno = (call for call in checkout.calls("python3") if " install " in call)
    assert f"--require-hashes -r {INSTALLER}" in installer
    (lock,) = checkout.calls("uv")
    assert "--require-hashes" in lock
    assert lock.endswith(f"-r {LOCK}")
    assert "--no-deps --no-build-isolation -e ." in kdyno


def test_a_new_lock_is_installed_without_a_new_environment(checkout: Checkout) -> None:
    assert checkout.setup().returncode == 0
    with (checkout.place / LOCK).open("a", encoding="utf-8") as lock:
        lock.write("# another\n")
    assert (checkout.setup().returncode, checkout.environments_made()) == (0, 0)
    assert len(checkout.calls("uv")) == 1


@pytest.mark.parametrize(
    ("settings", "uv"),
    [
        ("", " \n"),
        (":env:.index-url='https://a.example/simple'\nglobal.timeout='9'\n", "https://a.example/simple \n"),
        ("global.cert='/etc/my own.pem'\n", " /etc/my own.pem\n"),
    ],
)
def test_the_index_and_the_certificates_that_pip_was_given_are_used(checkout: Checkout, settings: str, uv: str) -> None:
    (checkout.place / "pip-settings").write_text(settings)
    assert checkout.setup().returncode == 0
    assert (checkout.place / "uv-settings").read_text() == uv


def test_only_missing_packages_are_installed_and_by_one_call(checkout: Checkout) -> None:
    checkout.without_packages("flex", "bison", "clang-19", "cargo-web")
    assert checkout.setup().returncode == 0
    update, install = checkout.calls("apt-get")
    assert update.startswith("update")
    assert install.endswith(" bison flex")
    assert checkout.setup("test").returncode == 0
    assert checkout.calls("apt-get")[-1].endswith(" clang-19")


def test_without_cargo_debians_newest_is_installed_and_nothing_removed_for_it(checkout: Checkout) -> None:
    checkout.stub("cargo", "echo cargo 1.63.0")
    done = checkout.setup()
    assert "needs Rust 1.88 or newer" in done.stderr
    install = checkout.calls("apt-get")[-1]
    assert install.endswith("--no-remove cargo-web rustc-web")
    assert (checkout.place / ".venv/bin/cargo").readlink() == Path("/usr/bin/cargo")


def test_lints_are_installed_beside_debians_rust_only(checkout: Checkout) -> None:
    checkout.without_packages("cargo-web", "rustfmt-web", "rust-web-clippy")
    assert checkout.setup("check").returncode == 0
    assert checkout.calls("apt-get") == []
    checkout.without_packages("rustfmt-web", "rust-web-clippy")
    assert checkout.setup("check").returncode == 0
    assert checkout.calls("apt-get")[-1].endswith(" rust-web-clippy rustfmt-web")


def test_without_sudo_an_ordinary_user_is_told_the_command(checkout: Checkout) -> None:
    for program in Path("/usr/bin").iterdir():
        if program.name != "sudo" and not (checkout.stubs / program.name).exists():
            (checkout.stubs / program.name).symlink_to(program)
    (checkout.stubs / "sudo").unlink()
    checkout.stub("id", "echo 1000")
    checkout.without_packages("flex")
    done = subprocess.run(
        [checkout.place / "tools/setup"],
        env={"PATH": str(checkout.stubs), "HOME": str(checkout.home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "this needs root, and sudo is not installed; as root: apt-get update" in done.stderr


def test_an_unknown_goal_is_refused(checkout: Checkout) -> None:
    done = checkout.setup("everything")
    assert (done.returncode, "no such goal: everything" in done.stderr) == (1, True)


@pytest.mark.parametrize("os_release", [UBUNTU, MINT], ids=["Ubuntu", "Mint"])
def test_on_ubuntu_packages_have_ubuntus_names(checkout: Checkout, os_release: str) -> None:
    checkout.os_release.write_text(os_release)
    checkout.without_packages(
        "flex", "mmdebstrap", "debian-archive-keyring", "linux-source-6.12", "chromium", "cargo-web"
    )
    checkout.without_programs("/usr/src/linux-source-6.12.tar.xz", "chromium")
    done = checkout.setup("test")
    assert done.returncode == 0, done.stderr
    _update, for_the_demo, for_the_tests = checkout.calls("apt-get")
    assert for_the_demo.endswith(" --no-install-recommends flex")
    assert for_the_tests.endswith(" --no-install-recommends mmdebstrap debian-archive-keyring")
    assert "no package linux-source-6.12 here (the kernel of the demo): kernel.org has tarballs" in done.stderr
    assert "no package chromium here" in done.stderr
    assert "sudo snap install chromium" in done.stderr


def test_on_ubuntu_rust_has_a_version_in_its_name_and_a_directory_of_its_own(checkout: Checkout) -> None:
    checkout.os_release.write_text(UBUNTU)
    checkout.without_packages("cargo-1.89", "rustc-1.89")
    checkout.stub("cargo", "echo cargo 1.75.0")
    assert checkout.setup().returncode == 0
    assert checkout.calls("apt-get")[-1].endswith("--no-remove cargo-1.89 rustc-1.89")
    assert (checkout.place / ".venv/bin/cargo").readlink() == Path("/usr/lib/rust-1.89/bin/cargo")


@pytest.mark.parametrize("os_release", [FEDORA, JAMMY, ""], ids=["Fedora", "Ubuntu 22.04", "none"])
def test_where_names_are_unknown_what_is_missing_is_described_and_nothing_installed(
    checkout: Checkout, os_release: str
) -> None:
    checkout.os_release.write_text(os_release)
    checkout.without_programs("flex", "ccache")
    done = checkout.setup()
    assert done.returncode == 1
    assert "flex-that-is-not-here (builds the kernel's Kconfig reader; Debian's package flex has it)" in done.stderr
    assert "ccache-that-is-not-here (" in done.stderr
    assert (checkout.calls("apt-get"), checkout.environments_made()) == ([], 0)


def test_where_names_are_unknown_set_up_goes_on_without_what_it_can_do_without(checkout: Checkout) -> None:
    checkout.os_release.write_text(FEDORA)
    checkout.without_programs("ccache")
    done = checkout.setup()
    assert (done.returncode, checkout.environments_made(), checkout.calls("apt-get")) == (0, 1, []), done.stderr
    assert "ccache-that-is-not-here (" in done.stderr
    checkout.stub("cargo", "echo cargo 1.63.0")
    done = checkout.setup()
    assert done.returncode == 1
    assert "needs Rust 1.88 or newer (here: cargo 1.63.0): install cargo and rustc by hand" in done.stderr


def cargo_features(*packages: str) -> set[str]:
    """Each library that these packages are built with, and its features."""
    command = ["cargo", "tree", "--locked", "--edges=normal,build", "--prefix=none", "--format={p} {f}"]
    selected = [f"--package={package}" for package in packages]
    tree = subprocess.run([*command, *selected], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {line.removesuffix(" (*)") for line in tree.splitlines()}


def test_programs_that_are_built_together_have_the_libraries_that_each_has_alone() -> None:
    """Otherwise setuptools-rust, which builds each alone, would compile again what tools/build-rust has built."""
    loader = SourceFileLoader("build_rust", str(ROOT / "tools/build-rust"))
    spec = spec_from_loader("build_rust", loader)
    assert spec is not None
    build_rust = module_from_spec(spec)
    loader.exec_module(build_rust)
    for command in build_rust.cargo_commands():
        packages = [word.removeprefix("--package=") for word in command if word.startswith("--package=")]
        together = cargo_features(*packages)
        for package in packages:
            assert cargo_features(package) <= together, package
