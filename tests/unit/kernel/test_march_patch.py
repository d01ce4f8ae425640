"""The patch that adds CPU families: right for every series that is known, refused for trees that are not."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from kdyno.base.cpu import read_cpu
from kdyno.base.cpu_families import table
from kdyno.base.files import NotWritable
from kdyno.base.state import State
from kdyno.cli.main import main
from kdyno.kernel.image import SourceIdentity
from kdyno.kernel.knobs import KnobContext, march
from kdyno.kernel.march.kernel_tree import KCONFIG, MACROS, MAKEFILE, VERMAGIC, AlreadyPatched, UnknownStructure
from kdyno.kernel.march.patch import (
    READ,
    CommitterUnknown,
    GitRefused,
    NotARepository,
    as_mail,
    commit,
    patch_of,
    symbol_in,
    write,
)
from kdyno.kernel.source import KernelSource
from kdyno.kernel.toolchain import Toolchain, ToolchainIdentity
from tests.unit.kernel_toy import git, toy_tree

DATA = Path(__file__).parents[2] / "data" / "march"
SERIES = sorted((path.name for path in DATA.iterdir() if path.is_dir()), key=lambda name: [*map(int, name.split("."))])


def files_of(series: str) -> dict[str, str]:
    return {path: (DATA / series / path).read_text() for path in READ if (DATA / series / path).is_file()}


def tree_of(series: str, folder: Path) -> Path:
    """As much of a tree as the patch needs."""
    tree = folder / "linux"
    version, patchlevel = series.split(".")
    texts = files_of(series) | {
        "Makefile": f"VERSION = {version}\nPATCHLEVEL = {patchlevel}\nSUBLEVEL = 0\nEXTRAVERSION =\n",
        "Kconfig": "",
        "scripts/kconfig/merge_config.sh": "",
    }
    for path, text in texts.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    return tree


def repository_of(series: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A Tester")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "tester@example.org")
    tree = tree_of(series, folder)
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "as it was")
    return tree


def test_the_series_go_from_4_18_to_the_newest() -> None:
    assert SERIES[0] == "4.18" and int(SERIES[-1].split(".")[0]) >= 7 and len(SERIES) >= 10


@pytest.mark.parametrize("series", SERIES)
def test_git_am_takes_the_patch_and_the_tree_then_has_every_family(
    series: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = repository_of(series, tmp_path, monkeypatch)
    subject = commit(tree, patch_of(tree))
    assert subject.endswith("x86/Kconfig: choose the CPU that 64-bit code is compiled for")
    kconfig = (tree / KCONFIG).read_text()
    for name, row in table().items():
        if name != "x86-64":
            assert f"\nconfig {row.symbol}\n" in kconfig
            assert f"\tdepends on $(march-known,{name})\n" in kconfig
            assert f'\tdefault "{name}" if {row.symbol}\n' in kconfig
            assert f"Needs {row.needed}." in " ".join(kconfig.split())
    assert (
        kconfig.count("\nchoice\n")
        == kconfig.count("\nendchoice\n")
        == files_of(series)[KCONFIG].count("\nchoice\n") + 1
    )
    assert git(tree, "status", "--porcelain") == ""


@pytest.mark.parametrize("series", SERIES)
def test_patch_takes_it_too_and_it_comes_out_again(series: str, tmp_path: Path) -> None:
    tree = tree_of(series, tmp_path)
    before = {path: (tree / path).read_text() for path in files_of(series)}
    text = patch_of(tree)
    for direction in ([], ["-R"]):
        subprocess.run(["patch", "-p1", "-s", "-F0", *direction], cwd=tree, input=text.encode(), check=True)
    assert {path: (tree / path).read_text() for path in before} == before


@pytest.mark.parametrize("series", SERIES)
def test_the_flags_come_after_all_that_the_tree_says_about_cpus_itself(series: str, tmp_path: Path) -> None:
    tree = tree_of(series, tmp_path)
    subprocess.run(["patch", "-p1", "-s"], cwd=tree, input=patch_of(tree).encode(), check=True)
    makefile = (tree / MAKEFILE).read_text()
    ours = makefile.index("ifdef CONFIG_X86_64_MARCH\n")
    after = makefile[makefile.index("\nendif\n", ours) :]
    assert "-march=" not in after and "-mtune=" not in after and "$(rustflags-y)" not in after
    assert ("KBUILD_RUSTFLAGS += -Ctarget-cpu=$(subst" in makefile) == ("RUSTFLAGS" in files_of(series)[MAKEFILE])
    assert ("config X86_64_MARCH_RUST\n" in (tree / KCONFIG).read_text()) == ("RUSTFLAGS" in files_of(series)[MAKEFILE])


@pytest.mark.parametrize("series", SERIES)
def test_modules_for_another_cpu_are_told_by_their_version_magic(series: str, tmp_path: Path) -> None:
    """The header is preprocessed: with a family, without one, and for 32 bits, where it must say what it did."""
    tree = tree_of(series, tmp_path)
    [header] = [path for path in VERMAGIC if (tree / path).is_file()]
    request = ["gcc", "-E", "-P", "-include", str(tree / header), "-x", "c", "-"]

    def magic(*defines: str) -> str:
        text = (
            "MODULE_ARCH_VERMAGIC"
            if "X86_32" in defines[0]
            else "\n#ifdef MODULE_ARCH_VERMAGIC\nMODULE_ARCH_VERMAGIC\n#endif"
        )
        fake = [f"-I{tree / 'fake'}"]
        done = subprocess.run([*request, *fake, *defines], input=text, capture_output=True, text=True, check=True)
        return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""

    for include in re.findall(r"#include <(.*)>", (tree / header).read_text()):
        (tree / "fake" / include).parent.mkdir(parents=True, exist_ok=True)
        (tree / "fake" / include).write_text("")
    before = magic("-DCONFIG_X86_32", "-DCONFIG_M686")
    generic = magic("-DCONFIG_X86_64")
    subprocess.run(["patch", "-p1", "-s"], cwd=tree, input=patch_of(tree).encode(), check=True)
    assert magic("-DCONFIG_X86_64", '-DCONFIG_X86_64_MARCH="znver4"') == '"march=" "znver4" " "'
    assert magic("-DCONFIG_X86_32", "-DCONFIG_M686") == before != ""
    assert magic("-DCONFIG_X86_64") == generic


def test_a_tree_with_a_choice_for_its_own_cpu_keeps_it() -> None:
    new = as_mail(files_of(SERIES[-1]), "x", "7")
    assert "+\tdepends on X86_64 && !X86_NATIVE_CPU\n" in new and "config MARCH_NATIVE\n" not in new
    old = as_mail(files_of("6.12"), "x", "6.12")
    assert "+\tdepends on GENERIC_CPU\n" in old and "+config MARCH_NATIVE\n" in old


def test_names_of_symbols_are_those_of_the_tree(tmp_path: Path) -> None:
    old, new = tree_of("6.12", tmp_path / "old"), tree_of(SERIES[-1], tmp_path / "new")
    assert (symbol_in(old, "native"), symbol_in(new, "native")) == ("MARCH_NATIVE", "X86_NATIVE_CPU")
    assert symbol_in(old, "x86-64-v3") == "MARCH_X86_64_V3"
    assert symbol_in(old, "x86-64") == "MARCH_ANY"
    assert symbol_in(old, "corei7-avx") == "MARCH_SANDYBRIDGE"
    assert symbol_in(old, "no-such-cpu") is None


def context(tree: Path, state: Path) -> KnobContext:
    identity = ToolchainIdentity(name="gcc", family="gcc", version="12.2.0", banner="", digest="")
    source = KernelSource(identity=SourceIdentity(spec="x", identity="tree:0", version="6.12", origin="x"), tree=tree)
    return KnobContext(
        source=source,
        toolchain=Toolchain(identity=identity, command="gcc", make=("CC=gcc",)),
        cpu=read_cpu,
        state=State(state / "state"),
    )


def test_the_knob_asks_for_the_symbol_and_brings_the_patch_along(tmp_path: Path) -> None:
    tree = tree_of("6.12", tmp_path)
    made = march.contribute("patch:x86-64-v3", context(tree, tmp_path))
    assert made.kcflags == () and made.needs == march.contribute("x86-64-v3", context(tree, tmp_path)).needs
    assert [(request.symbol, request.value) for request in made.asks] == [("MARCH_X86_64_V3", "y")]
    [patch] = made.patches
    assert patch.path.read_text() == patch_of(tree)
    subprocess.run(["patch", "-p1", "-s", "-i", patch.path], cwd=tree, check=True)
    again = march.contribute("patch:x86-64-v3", context(tree, tmp_path))
    assert (again.asks, again.patches) == (made.asks, ()), "a tree that has it already needs no patch"


def test_the_knob_refuses_a_name_that_the_compiler_knows_and_the_table_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(march, "check_cpu", lambda *_: None)
    with pytest.raises(march.NotInPatch, match='march = "patch:x86-64-v5": the patch has no entry for x86-64-v5'):
        march.contribute("patch:x86-64-v5", context(tree_of("6.12", tmp_path), tmp_path))


def test_a_tree_that_has_the_patch_is_told_from_one_with_another_patch(tmp_path: Path) -> None:
    tree = tree_of("6.12", tmp_path)
    text = patch_of(tree)
    subprocess.run(["patch", "-p1", "-s"], cwd=tree, input=text.encode(), check=True)
    with pytest.raises(AlreadyPatched, match="defines X86_64_MARCH, as kdyno's own patch does"):
        patch_of(tree)
    files = files_of("6.12")
    files[KCONFIG] += '\nconfig MZEN4\n\tbool "AMD Zen 4"\n'
    with pytest.raises(AlreadyPatched, match="defines MZEN4, which no series of Linux has by itself"):
        as_mail(files, "x", "6.12")


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (MAKEFILE, "-mno-red-zone", "-mred-zone", r"arch/x86/Makefile has no line `KBUILD_CFLAGS \+= -mno-red-zone`"),
        (KCONFIG, "\nendchoice\n", "\n", "arch/x86/Kconfig.cpu has no end of the choice"),
        (KCONFIG, "\nendchoice\n", "\nendchoice\nchoice\nendchoice\n", "has the line `choice` 2 times"),
        (MACROS, "success = ", "fortune = ", "scripts/Kconfig.include has no macro `success`"),
        (VERMAGIC[0], "MODULE_ARCH_VERMAGIC MODULE_PROC_FAMILY", "MODULE_ARCH_VERMAGIC 1", "vermagic.h has no line"),
    ],
)
def test_a_tree_of_another_structure_is_refused(file: str, old: str, new: str, message: str) -> None:
    files = files_of("6.12")
    assert old in files[file]
    files[file] = files[file].replace(old, new)
    with pytest.raises(UnknownStructure, match=message):
        as_mail(files, "x", "6.12")


@pytest.mark.parametrize("file", [KCONFIG, MAKEFILE, MACROS])
def test_a_tree_without_a_file_is_refused(file: str) -> None:
    files = files_of("6.12")
    del files[file]
    with pytest.raises(UnknownStructure, match=f"{file} is not there"):
        as_mail(files, "x", "6.12")


def test_a_tree_that_is_not_for_x86_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownStructure, match=r"arch/x86/Kconfig.cpu is not there"):
        patch_of(toy_tree(tmp_path))


def test_git_must_be_there_and_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotARepository):
        commit(tree_of("6.12", tmp_path / "none"), "")
    tree = repository_of("6.12", tmp_path / "some", monkeypatch)
    text = patch_of(tree)
    (tree / MAKEFILE).write_text("all:\n")
    with pytest.raises(GitRefused):
        commit(tree, text)
    assert (tree / MAKEFILE).read_text() == "all:\n", "what is under way stays"
    assert not (tree / ".git" / "rebase-apply").exists()


def test_a_committer_without_a_name_is_told_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = repository_of("6.12", tmp_path, monkeypatch)
    for name in ("GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    git(tree, "config", "user.useConfigOnly", "true")
    with pytest.raises(CommitterUnknown) as raised:
        commit(tree, patch_of(tree))
    assert "git config --global user.name" in raised.value.advice


def test_a_tree_whose_files_are_not_utf_8_gets_a_patch_that_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    tree = repository_of("6.12", tmp_path, monkeypatch)
    text = (tree / KCONFIG).read_bytes()
    (tree / KCONFIG).write_bytes(text.replace(b"endchoice\n", b"endchoice\n# caf\xe9\n", 1))
    git(tree, "commit", "-qam", "a name in Latin-1")
    assert main(["march", "patch", "--tree", str(tree), "-o", str(tmp_path / "a.patch")]) == 0
    capfdbinary.readouterr()
    assert main(["march", "patch", "--tree", str(tree)]) == 0
    printed = capfdbinary.readouterr().out
    assert b"\n # caf\xe9\n" in printed
    assert printed == (tmp_path / "a.patch").read_bytes()
    assert "choose the CPU" in commit(tree, patch_of(tree))


def test_what_is_staged_stays_staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = repository_of("6.12", tmp_path, monkeypatch)
    (tree / "notes").write_text("mine\n")
    git(tree, "add", "notes")
    with pytest.raises(GitRefused):
        commit(tree, patch_of(tree))
    assert git(tree, "status", "--porcelain") == "A  notes\n"


def test_a_git_am_that_is_under_way_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = repository_of("6.12", tmp_path, monkeypatch)
    text = patch_of(tree)
    theirs = text.replace("KBUILD_CFLAGS += -mno-red-zone", "KBUILD_CFLAGS += -mred-zone")
    done = subprocess.run(["git", "am", "-q"], cwd=tree, input=theirs.encode(), capture_output=True, check=False)
    assert done.returncode != 0
    assert (tree / ".git" / "rebase-apply").exists()
    with pytest.raises(GitRefused, match="a `git am` or `git rebase` is under way there"):
        commit(tree, text)
    assert (tree / ".git" / "rebase-apply").exists()


def test_a_file_that_cant_be_written_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(NotWritable):
        write("x", tmp_path / "nowhere" / "x.patch")
    (tmp_path / "dir").mkdir()
    with pytest.raises(NotWritable):
        write("x", tmp_path / "dir")
    assert [path.name for path in tmp_path.iterdir()] == ["dir"]
