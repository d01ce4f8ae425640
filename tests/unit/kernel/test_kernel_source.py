"""Sources: every way to name one, what it is called, and that the user's own files stay as they are."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kdyno.base.digests import file_digest
from kdyno.base.packages import install_advice, way_to_install
from kdyno.base.state import State
from kdyno.kernel import source, unpack
from kdyno.kernel.source import fetch
from kdyno.kernel.version import NotAKernelTree, kernel_version
from tests.unit.bounded import python
from tests.unit.kernel_toy import commit, git, silent, snapshot, toy_repository, toy_source, toy_tree


def tarball_of(tree: Path, name: str) -> Path:
    path = tree.parent / name
    subprocess.run(["tar", "-caf", path, "-C", tree.parent, tree.name], check=True)
    return path


def test_a_directory_is_copied_and_named_by_its_content(tmp_path: Path, state: State) -> None:
    tree = toy_tree(tmp_path)
    fetched = fetch(str(tree), state, silent)
    assert fetched.identity.identity.startswith("tree:")
    assert fetched.identity.version == "6.12.1-fake"
    assert fetched.tree.is_relative_to(state.sources)
    assert (fetched.tree / "fs/open.c").read_bytes() == (tree / "fs/open.c").read_bytes()


def test_the_same_content_has_the_same_identity_wherever_it_is(tmp_path: Path, state: State) -> None:
    first = fetch(f"dir:{toy_tree(tmp_path / 'a')}", state, silent)
    second = fetch(f"dir:{toy_tree(tmp_path / 'b')}", state, silent)
    assert first.identity.identity == second.identity.identity
    assert first.tree == second.tree


def test_a_changed_line_and_a_changed_mode_change_the_identity(tmp_path: Path, state: State) -> None:
    tree = toy_tree(tmp_path)
    identities = {fetch(str(tree), state, silent).identity.identity}
    (tree / "fs/open.c").write_text("/* nothing */\n")
    identities.add(fetch(str(tree), state, silent).identity.identity)
    (tree / "fs/open.c").chmod(0o755)
    identities.add(fetch(str(tree), state, silent).identity.identity)
    assert len(identities) == 3


def test_fetching_writes_nothing_into_the_users_tree(tmp_path: Path, state: State) -> None:
    tree = toy_repository(tmp_path)
    before = snapshot(tree)
    index = (tree / ".git/index").read_bytes()
    fetch(str(tree), state, silent)
    fetch(f"git:{tree}", state, silent)
    assert snapshot(tree) == before
    assert (tree / ".git/index").read_bytes() == index


def test_of_a_work_tree_only_what_git_tracks_or_would_add_is_copied(tmp_path: Path, state: State) -> None:
    tree = toy_repository(tmp_path)
    (tree / "fs/open.o").write_text("an object of an old build")
    (tree / "fs/new.c").write_text("int new;\n")
    (tree / "lib/crc32.c").unlink()
    fetched = fetch(str(tree), state, silent)
    assert not (fetched.tree / "fs/open.o").exists()
    assert not (fetched.tree / ".git").exists()
    assert not (fetched.tree / "lib/crc32.c").exists()
    assert (fetched.tree / "fs/new.c").exists()


def test_a_tree_that_was_built_in_is_refused_unless_git_can_tell(tmp_path: Path, state: State) -> None:
    tree = toy_tree(tmp_path)
    (tree / ".config").write_text("")
    with pytest.raises(unpack.TreeNotClean, match=r"it holds \.config"):
        fetch(str(tree), state, silent)


def test_object_directories_inside_a_tree_are_left_out(tmp_path: Path, state: State) -> None:
    tree = toy_tree(tmp_path)
    (tree / "build").mkdir()
    (tree / "build/.config").write_text("")
    (tree / "build/source").symlink_to("..")
    assert not (fetch(str(tree), state, silent).tree / "build").exists()


def test_symlinks_stay_symlinks(tmp_path: Path, state: State) -> None:
    tree = toy_tree(tmp_path)
    (tree / "scripts/dtc").symlink_to("kconfig")
    fetched = fetch(str(tree), state, silent)
    assert (fetched.tree / "scripts/dtc").readlink() == Path("kconfig")


def test_an_unchanged_directory_is_not_read_again(
    tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdyno.base.digests.SETTLED_SECONDS", -1.0)
    tree = toy_tree(tmp_path)
    first = fetch(str(tree), state, silent)
    messages: list[str] = []
    assert fetch(str(tree), state, messages.append) == first
    assert messages == []


@pytest.mark.parametrize("name", ["linux.tar", "linux.tar.xz", "linux.tar.gz", "linux.tar.bz2", "linux.tar.zst"])
def test_a_tarball_is_unpacked_without_its_top_directory(tmp_path: Path, state: State, name: str) -> None:
    path = tarball_of(toy_tree(tmp_path), name)
    fetched = fetch(str(path), state, silent)
    assert fetched.identity.identity == f"tarball:{file_digest(path, state)}"
    assert fetched.identity.origin == name
    assert (fetched.tree / "Makefile").is_file()


@pytest.mark.parametrize(("name", "package"), [("linux.tar.bz2", "bzip2"), ("linux.tar.zst", "zstd")])
def test_a_tarball_whose_decompressor_is_missing_names_the_package_that_has_it(
    tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    path = tarball_of(toy_tree(tmp_path), name)
    monkeypatch.setattr("shutil.which", lambda program: None if program == package else f"/usr/bin/{program}")
    with pytest.raises(unpack.DecompressorMissing, match=f"{package} is not installed") as caught:
        fetch(str(path), state, silent)
    assert caught.value.advice == install_advice(package)
    assert list(state.sources.iterdir()) == []


def test_a_broken_tarball_is_said_and_leaves_nothing(tmp_path: Path, state: State) -> None:
    path = tarball_of(toy_tree(tmp_path), "linux.tar.gz")
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(unpack.TarballBroken, match="unexpected end of file"):
        fetch(f"tarball:{path}", state, silent)
    assert list(state.sources.iterdir()) == []


def test_a_tarball_of_something_else_is_no_kernel_tree(tmp_path: Path, state: State) -> None:
    (tmp_path / "hello").mkdir()
    (tmp_path / "hello/Makefile").write_text("all:\n")
    with pytest.raises(NotAKernelTree, match="sets no VERSION"):
        fetch(str(tarball_of(tmp_path / "hello", "hello.tar.gz")), state, silent)
    assert list(state.sources.iterdir()) == []


def test_a_git_revision_is_taken_without_a_checkout(tmp_path: Path, state: State) -> None:
    tree = toy_repository(tmp_path)
    first = git(tree, "rev-parse", "HEAD").strip()
    git(tree, "tag", "v6.12.1")
    (tree / "fs/open.c").write_text("int broken;\n")
    second = commit(tree, "break it")
    old, new = fetch(f"git:{tree}#v6.12.1", state, silent), fetch(f"git:{tree}", state, silent)
    assert (old.identity.identity, new.identity.identity) == (f"git:{first}", f"git:{second}")
    assert old.identity.origin == "v6.12.1"
    assert "allowed" in (old.tree / "fs/open.c").read_text()
    assert "broken" in (new.tree / "fs/open.c").read_text()


def test_a_missing_revision_is_named(tmp_path: Path, state: State) -> None:
    tree = toy_repository(tmp_path)
    with pytest.raises(source.RevisionMissing, match="no revision `v9`"):
        fetch(f"git:{tree}#v9", state, silent)


@pytest.mark.parametrize("name", ["linux-source-0.1.tar.xz", "linux-source-0.1.tar.bz2"])
def test_a_package_of_debian_or_ubuntu_is_found_by_name(
    tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    tarball_of(toy_tree(tmp_path), name)
    monkeypatch.setattr(source, "USR_SRC", tmp_path)
    fetched = fetch("debian:linux-source-0.1", state, silent)
    assert fetched.identity.spec == "debian:linux-source-0.1"
    assert fetched.identity.origin == name


def test_a_missing_package_comes_with_the_line_that_installs_it(state: State) -> None:
    with pytest.raises(source.PackageMissing) as raised:
        fetch("debian:linux-source-0.0", state, silent)
    assert raised.value.advice.startswith(f"{way_to_install('linux-source-0.0')}; another source is a directory")


@pytest.mark.parametrize("spec", ["/nowhere", "nowhere", "dir:/nowhere", "tarball:/nowhere.tar.xz", "git:/nowhere#v6"])
def test_a_missing_path_is_said(state: State, spec: str) -> None:
    with pytest.raises(source.SourceMissing, match=r"no kernel source at .*nowhere"):
        fetch(spec, state, silent)


@pytest.mark.parametrize("spec", ["debian:", "debian:../x", "debian:--admindir=x", "", "svn:/x"])
def test_what_names_no_source_is_said(state: State, spec: str) -> None:
    with pytest.raises(source.UnknownSource):
        fetch(spec, state, silent)


@pytest.mark.parametrize(
    "spec", ["https://kernel.org/linux.git", "git:https://kernel.org/linux.git#v6.6", "git@kernel.org:linux"]
)
def test_an_address_is_told_from_a_path(state: State, spec: str, tmp_path: Path) -> None:
    with pytest.raises(source.SourceIsAddress, match="fetches no source"):
        fetch(spec, state, silent)
    with pytest.raises(source.SourceIsAddress):
        source.located(spec, tmp_path)


@pytest.mark.parametrize(
    ("makefile", "version"),
    [
        ("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\n", "6.12.117"),
        ("VERSION = 7\nPATCHLEVEL = 2\nSUBLEVEL = 0\nEXTRAVERSION = -rc3\n", "7.2.0-rc3"),
    ],
)
def test_the_version_is_read_from_the_makefile(tmp_path: Path, makefile: str, version: str) -> None:
    tree = toy_tree(tmp_path)
    (tree / "Makefile").write_text(makefile)
    assert kernel_version(tree, "x") == version


def test_a_full_disk_is_said_and_leaves_no_tree(tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def opened(self: Path, mode: str = "r", *more: Any, **options: Any) -> Any:
        return real(Path("/dev/full") if self.name == "open.c" and mode == "wb" else self, mode, *more, **options)

    monkeypatch.setattr(Path, "open", opened)
    with pytest.raises(Exception, match=r"the disk that holds .* is full"):
        toy_source(tmp_path, state)
    assert list(state.sources.iterdir()) == []


def test_an_unpacking_that_was_killed_is_done_again(tmp_path: Path, state: State) -> None:
    path = tarball_of(toy_tree(tmp_path), "linux.tar")
    script = """
import os, signal, sys
from pathlib import Path
from kdyno.kernel import source
from kdyno.base.state import State
source.kernel_version = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # unpacked, not yet renamed
source.fetch(sys.argv[1], State(Path(sys.argv[2])), print)
"""
    killed = subprocess.run([sys.executable, "-c", script, path, state.root], check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    assert [entry.name[0] for entry in state.sources.iterdir()] == ["."]
    fetch(str(path), state, silent)
    assert [entry.name[:8] for entry in state.sources.iterdir()] == ["tarball-"]


# What is small as it is sent and large on the disk.


def refused(spec: Path | str, state: State, why: str) -> None:
    with pytest.raises(unpack.SourceTooLarge, match=why):
        fetch(str(spec), state, silent)
    assert list(state.sources.iterdir()) == []


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test reaches without filling a disk."""
    for name, limit in {"MOST_BYTES": 50_000_000, "MOST_FILE": 30_000_000, "MOST_ENTRIES": 300}.items():
        monkeypatch.setattr(unpack, name, limit)


@pytest.mark.usefixtures("small")
def test_a_tarball_that_unfolds_is_refused_while_it_does(tmp_path: Path, state: State) -> None:
    tree = toy_tree(tmp_path)
    for number in range(20):
        (tree / f"zeros{number}").write_bytes(bytes(10_000_000))
    path = tarball_of(tree, "linux.tar.gz")
    assert path.stat().st_size < 1_000_000
    refused(path, state, r"linux\.tar\.gz is too large .* more than 50,000,000 bytes")


@pytest.mark.usefixtures("small")
def test_a_tarball_of_many_files_or_a_file_with_a_hole_is_refused(tmp_path: Path, state: State) -> None:
    tree = toy_tree(tmp_path)
    with (tree / "hole").open("wb") as file:
        file.truncate(10**12)
    path = tmp_path / "sparse.tar"
    subprocess.run(["tar", "-cSf", path, tree.name], cwd=tree.parent, check=True)
    refused(path, state, r"sparse\.tar is too large .* hole in it has 1,000,000,000,000 bytes")
    (tree / "hole").unlink()
    for number in range(301):
        (tree / f"empty{number}").touch()
    refused(tarball_of(tree, "many.tar"), state, "it has more than 300 files")


@pytest.mark.usefixtures("small")
def test_a_commit_of_a_tree_that_multiplies_is_refused(tmp_path: Path, state: State) -> None:
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", repository], check=True)

    def git(*words: str, text: str = "") -> str:
        command = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout.strip()

    inner, kind = git("hash-object", "-w", "--stdin", text="VERSION = 6\n"), "100644 blob"
    for _ in range(9):
        inner = git("mktree", text="".join(f"{kind} {inner}\t{name}\n" for name in "abcdefghij"))
        kind = "040000 tree"
    refused(f"git:{repository}#{git('commit-tree', inner, '-m', 'x')}", state, "it has more than 300 files")


@pytest.mark.parametrize(("size", "why"), [(10**12, "hole in it has 1,000,000,000,000 bytes"), (600_000_000, "")])
def test_a_file_with_a_hole_in_a_directory_is_refused_or_copied_piece_by_piece(
    tmp_path: Path, state: State, size: int, why: str
) -> None:
    tree = toy_tree(tmp_path)
    with (tree / "hole").open("wb") as file:
        file.truncate(size)
    if why:
        refused(tree, state, why)
        return
    code = """
import sys
from pathlib import Path
from kdyno.kernel import source
from kdyno.base.state import State
source.fetch(sys.argv[1], State(Path(sys.argv[2])), lambda _: None)
"""
    done = python(code, tree, state.root)
    assert done.returncode == 0, done.stderr
