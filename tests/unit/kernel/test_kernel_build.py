"""Builds of the toy kernel: what comes out, what is left behind when it goes wrong, and that nothing is built twice."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from kdyno.base.errors import KdynoError
from kdyno.base.state import DiskFull, NoSpace, State
from kdyno.kernel import build as build_module
from kdyno.kernel import build_directory, estimate, kconfig_check
from kdyno.kernel.build import BuildFailed, BuildKilled, build, check_configuration, configured
from kdyno.kernel.images import load_image
from kdyno.kernel.loaded_modules import NoModuleKept
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource
from tests.unit.kernel_toy import (
    TINY,
    build_elsewhere,
    built,
    local_base,
    no_progress,
    plan,
    processes_naming,
    snapshot,
    toy_source,
    toy_tree,
    wait_for_line,
)

SLOW = Recipe(kconfig={"FAKE_SLOW": 1})
PATCH = """\
--- a/init/main.c
+++ b/init/main.c
@@ -1,3 +1,4 @@
 const char linux_banner[] = BANNER;
+int one_more_line = 1;

 extern int sys_open(int flags);
"""


@pytest.fixture(autouse=True)
def _own_ccache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path_factory.getbasetemp() / "ccache"))


def left_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_an_image_has_a_kernel_its_symbols_its_config_and_a_record(source: KernelSource, state: State) -> None:
    image = built(Recipe(opt="Os"), source, state)
    record = image.record
    assert left_in(image.directory) == ["System.map", "build.log", "bzImage", "config", "image.json", "vmlinux"]
    assert "CONFIG_CC_OPTIMIZE_FOR_SIZE=y" in image.config.read_text()
    assert "start_kernel" in image.symbols.read_text()
    assert record.release == "6.12.1-fake"
    assert record.sizes.bzimage == image.program.stat().st_size
    assert 0 < record.sizes.text < record.sizes.vmlinux
    log = (image.directory / "build.log").read_text().splitlines()
    assert record.steps == sum("  CC " in line for line in log) + len(("vmlinux", "bzImage"))
    assert load_image(record.key, state) == image
    assert left_in(state.builds) == []


def test_every_command_is_in_the_log(source: KernelSource, state: State) -> None:
    log = (built(Recipe(), source, state).directory / "build.log").read_text()
    commands = [line for line in log.splitlines() if line.startswith("+ env -i ")]
    assert "tinyconfig" in commands[0]
    assert commands[-1].endswith("-j4 vmlinux bzImage")


def test_the_same_plan_is_never_built_twice(source: KernelSource, state: State) -> None:
    first = built(Recipe(), source, state)
    again = plan(Recipe(cmdline=("quiet",)), source, state)
    assert again.cached

    def progress(_done: int, _total: int | None, line: str) -> None:
        raise AssertionError(line)

    assert build(again, state, progress) == first


def test_an_image_that_another_version_recorded_is_built_anew(source: KernelSource, state: State) -> None:
    image = built(Recipe(), source, state)
    record = image.directory / "image.json"
    written = record.read_text()
    record.write_text(written.replace('"steps"', '"lines_of_output"'))
    assert not plan(Recipe(), source, state).cached
    again = built(Recipe(), source, state)
    assert again.directory == image.directory
    assert again.record.files["vmlinux"] == image.record.files["vmlinux"]
    assert "lines_of_output" not in record.read_text()
    assert plan(Recipe(), source, state).cached


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(lines=True)], ids=["plain", "with line tables"])
def test_two_state_directories_get_the_same_bytes(
    tmp_path: Path, source: KernelSource, state: State, recipe: Recipe
) -> None:
    first = built(recipe, source, state)
    elsewhere = State(tmp_path / "some" / "where" / "else")
    second = built(recipe, toy_source(tmp_path / "again", elsewhere), elsewhere)
    for name in ("vmlinux", "bzImage", "config"):
        assert (first.directory / name).read_bytes() == (second.directory / name).read_bytes()
    assert b"kdyno@kdyno #1 Thu Jan" in first.vmlinux.read_bytes()


def test_the_users_environment_does_not_get_into_an_image(
    tmp_path: Path, source: KernelSource, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = built(Recipe(), source, state)
    for name, value in {"KCFLAGS": "-O0", "LLVM": "1", "LOCALVERSION": "-mine", "MAKEFLAGS": "-k", "O": "/x"}.items():
        monkeypatch.setenv(name, value)
    elsewhere = State(tmp_path / "elsewhere")
    second = built(Recipe(), toy_source(tmp_path / "again", elsewhere), elsewhere)
    assert first.vmlinux.read_bytes() == second.vmlinux.read_bytes()
    assert second.record.release == "6.12.1-fake"


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(lines=True)], ids=["plain", "with line tables"])
def test_another_host_gets_the_same_bytes(tmp_path: Path, source: KernelSource, state: State, recipe: Recipe) -> None:
    """Another user, host name, language, time zone, home and umask, no ccache, one job, and a Rust compiler."""
    first = built(recipe, source, state)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "rustc").write_text("#!/bin/sh\necho rustc 1.99.0\n")
    (tools / "rustc").chmod(0o755)
    elsewhere = State(tmp_path / "some" / "where" / "else")
    theirs = {
        "USER": "someone",
        "LOGNAME": "someone",
        "HOSTNAME": "somewhere",
        "LANG": "de_DE.UTF-8",
        "TZ": "Asia/Tokyo",
    }
    theirs |= {"HOME": str(tmp_path), "CCACHE_DISABLE": "1", "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    tree = toy_tree(tmp_path / "again")
    words = ["env", *(f"{name}={value}" for name, value in theirs.items())]
    child = build_elsewhere(tree, elsewhere, recipe, 1, *words, "sh", "-c", 'umask 077; exec "$@"', "sh")
    output, _ = child.communicate(timeout=120)
    assert child.returncode == 0, output
    second = load_image(first.record.key, elsewhere)
    for name in ("vmlinux", "bzImage", "config"):
        assert (first.directory / name).read_bytes() == (second.directory / name).read_bytes()
    assert second.record.files == {**first.record.files, "build.log": second.record.files["build.log"]}


def test_neither_the_users_tree_nor_the_copy_changes(tmp_path: Path, state: State) -> None:
    source = toy_source(tmp_path, state)
    users, ours = snapshot(tmp_path / "linux"), snapshot(source.tree)
    built(Recipe(), source, state)
    with pytest.raises(BuildFailed):
        built(Recipe(kconfig={"FAKE_BREAK": True}), source, state)
    assert snapshot(tmp_path / "linux") == users
    assert snapshot(source.tree) == ours


def test_a_patched_image_is_another_image(tmp_path: Path, source: KernelSource, state: State) -> None:
    (tmp_path / "one.patch").write_text(PATCH)
    plain = built(Recipe(), source, state)
    patched = built(Recipe(patches=(str(tmp_path / "one.patch"),)), source, state)
    assert plain.record.key != patched.record.key
    assert "one_more_line" in patched.symbols.read_text()
    assert "one_more_line" not in plain.symbols.read_text()


@pytest.mark.parametrize("toolchain", ["gcc", "clang-19"])
def test_ccache_hits_in_a_patched_copy(
    tmp_path: Path, source: KernelSource, state: State, toolchain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("ccache") is None or shutil.which(toolchain) is None:
        pytest.skip(f"needs ccache and {toolchain}")
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "ccache"))
    (tmp_path / "one.patch").write_text(PATCH)
    built(Recipe(toolchain=toolchain), source, state)
    subprocess.run(["ccache", "-z"], check=True, capture_output=True)
    built(Recipe(toolchain=toolchain, patches=(str(tmp_path / "one.patch"),)), source, state)
    counted = subprocess.run(["ccache", "--print-stats"], check=True, capture_output=True, text=True).stdout
    stats = dict(line.split("\t") for line in counted.splitlines())
    hits = int(stats["direct_cache_hit"]) + int(stats["preprocessed_cache_hit"])
    assert (hits, int(stats["cache_miss"])) == (2, 1)  # fs/open.c and lib/crc32.c; init/main.c is what was patched


@pytest.mark.parametrize(
    ("base", "config"),
    [
        ("dyno", "CONFIG_SMP=y"),
        ("make:defconfig", "CONFIG_INET=y"),
        ("make:localmodconfig?lsmod={folder}/lsmod&config={folder}/config", "CONFIG_NET=y"),
        ("file:{folder}/config", "CONFIG_EXT4=y"),
    ],
)
def test_every_base_gives_a_config_with_what_was_asked_on_top(
    tmp_path: Path, source: KernelSource, state: State, base: str, config: str
) -> None:
    (tmp_path / "config").write_text("CONFIG_NET=y\nCONFIG_EXT4=y\n")
    (tmp_path / "lsmod").write_text("Module Size Used by\n")
    image = built(Recipe(kconfig={"PCI": True}), source, state, base.format(folder=tmp_path))
    lines = image.config.read_text().splitlines()
    assert config in lines
    assert "CONFIG_PCI=y" in lines
    assert "# CONFIG_LOCALVERSION_AUTO is not set" in lines
    assert ("CONFIG_EXT4=y" in lines) == base.startswith("file:")


def test_a_module_that_is_loaded_stays_in_a_local_configuration(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    """localmodconfig looks for modules in the source tree itself, and follows no links."""
    base = local_base(tmp_path, "CONFIG_NET=y\nCONFIG_EXT4=y\n", "ext4 1003520 1\n")
    image = built(Recipe(kconfig={"PCI": True}), source, state, base)
    lines = image.config.read_text().splitlines()
    assert "CONFIG_EXT4=y" in lines and "CONFIG_PCI=y" in lines


def test_loaded_modules_that_a_local_configuration_lacks_are_named(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    base = local_base(tmp_path, "CONFIG_NET=y\nCONFIG_EXT4=y\n", "ext4 1003520 1\nzfs 1 0\nnvidia 1 0\n")
    notes = built(Recipe(), source, state, base).record.notes
    assert "2 loaded modules not in this source, so the kernel lacks them: nvidia, zfs" in notes


@pytest.mark.parametrize(
    ("config", "lsmod", "why"),
    [
        ("CONFIG_EXT4=y", "zfs 1 0\n", "1 loaded module not in this source, so the kernel lacks them: zfs"),
        ("CONFIG_NET=y", "ext4 1 0\n", "1 loaded module without a symbol in the configuration"),
        ("CONFIG_EXT4=y", "PRETTY_NAME=Debian\n\nID=debian\n", "2 loaded modules not in this source"),
    ],
    ids=["of another source", "of another configuration", "not lsmod's output"],
)
def test_a_local_configuration_without_any_loaded_module_is_refused(
    tmp_path: Path, source: KernelSource, state: State, config: str, lsmod: str, why: str
) -> None:
    base = local_base(tmp_path, config + "\n", lsmod)
    with pytest.raises(NoModuleKept, match=re.escape(why)):
        built(Recipe(), source, state, base)
    assert left_in(state.images) == []


def test_what_dyno_asks_in_vain_is_only_noted(source: KernelSource, state: State) -> None:
    notes = built(Recipe(), source, state, "dyno").record.notes
    assert any("CONFIG_64BIT" in note or "(asked by base dyno:" in note for note in notes)


def test_a_choice_of_the_base_that_was_overruled_is_not_noted(source: KernelSource, state: State) -> None:
    dyno = check_configuration(plan(Recipe(), source, state, "dyno"), state)
    overruled = check_configuration(plan(Recipe(opt="Os"), source, state, "dyno"), state)
    by_choice = check_configuration(plan(Recipe(kconfig={"CC_OPTIMIZE_FOR_SIZE": True}), source, state, "dyno"), state)
    assert overruled == by_choice == dyno


def test_a_config_that_was_refused_stops_the_build_with_every_reason(source: KernelSource, state: State) -> None:
    recipe = Recipe(kconfig={"NET": True, "VIRTIO_NET": True, "CRC32": True})
    for attempt in (
        lambda: built(recipe, source, state),
        lambda: check_configuration(plan(recipe, source, state), state),
    ):
        with pytest.raises(kconfig_check.ConfigRefused) as raised:
            attempt()
        lines = str(raised.value).splitlines()
        assert len(lines) == 3
        assert "CONFIG_VIRTIO_NET=y (asked by kconfig) is n: unmet dependency: PCI (PCI is n); INET" in lines[1]
        assert "CONFIG_CRC32=y (asked by kconfig) is n: it has no prompt" in lines[2]
    assert left_in(state.images) == []


def test_a_configuration_can_be_checked_without_a_build(source: KernelSource, state: State) -> None:
    assert check_configuration(plan(Recipe(), source, state), state) == ()
    assert left_in(state.builds) == left_in(state.images) == []


def test_what_kconfig_makes_of_a_plan_can_be_asked_with_all_that_is_asked_in_vain(
    source: KernelSource, state: State
) -> None:
    made = configured(plan(Recipe(kconfig={"EXT4": True, "VIRTIO_NET": True, "CRC32": False}), source, state), state)
    assert made.config["EXT4"] == made.config["CRC32"] == "y"
    assert {miss.request.symbol: miss.why for miss in made.unmet} == {
        "VIRTIO_NET": "unmet dependency: NET (NET is n); PCI (PCI is n); INET (INET is n) (net/Kconfig:9)",
        "CRC32": "it is selected by EXT4",
    }
    assert left_in(state.builds) == left_in(state.images) == []
    image = built(Recipe(), source, state)
    again = configured(plan(Recipe(), source, state), state)
    assert (again.config, again.unmet) == (kconfig_check.read_config(image.config.read_text()), ())


@pytest.mark.parametrize(
    ("symbol", "message"),
    [
        ("FAKE_BREAK", r"doesn't build: fs/open\.c:13:16: error: .undeclared_file. undeclared"),
        ("FAKE_UNDEFINED", "undefined reference to `nowhere_to_be_found'"),
        ("FAKE_NO_RULE", "No rule to make target 'net/nowhere.o'"),
    ],
)
def test_a_failed_build_shows_the_first_error_and_keeps_its_log(
    source: KernelSource, state: State, symbol: str, message: str
) -> None:
    failing = plan(Recipe(kconfig={symbol: True}), source, state)
    with pytest.raises(BuildFailed, match=message) as raised:
        build(failing, state, no_progress)
    log = build_directory.log_file(failing.key, state)
    assert str(log) in raised.value.advice
    assert log.is_file()
    assert left_in(state.builds) == [log.name]
    assert left_in(state.images) == []


def test_a_compiler_on_a_full_disk_is_not_taken_for_a_broken_kernel(source: KernelSource, state: State) -> None:
    with pytest.raises(DiskFull):
        built(Recipe(kconfig={"FAKE_DISK_FULL": True}), source, state)
    assert left_in(state.builds) == left_in(state.images) == []


@pytest.mark.parametrize("kilobytes", [40, 120, 140])
def test_a_file_system_that_fills_up_is_said_wherever_it_happens(tmp_path: Path, kilobytes: int) -> None:
    root = tmp_path / "small"
    root.mkdir()
    inside = f'mount -t tmpfs -o size={kilobytes}k none {root} && exec "$@"'
    if subprocess.run(
        ["unshare", "-rm", "sh", "-c", inside, "sh", "true"], check=False, capture_output=True
    ).returncode:
        pytest.skip("can't mount a small file system here")
    child = build_elsewhere(toy_tree(tmp_path), State(root), Recipe(), 1, "unshare", "-rm", "sh", "-c", inside, "sh")
    output = child.communicate(timeout=60)[0]
    assert child.returncode == 1, output
    assert output.splitlines()[-1].startswith(f"DiskFull the disk that holds {root}"), output


def test_too_little_space_is_said_before_the_build(
    source: KernelSource, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_module, "NEEDED_MB", 10**9)
    with pytest.raises(NoSpace):
        built(Recipe(), source, state)


@pytest.mark.parametrize(
    ("name", "why"), [("with space", "no spaces"), ("a:b", "no :"), ("a,b c", "no spaces and no ,"), ("a$b", r"no \$")]
)
def test_a_path_that_kbuild_cant_take_is_said_before_a_source_is_copied(tmp_path: Path, name: str, why: str) -> None:
    state = State(tmp_path / name)
    with pytest.raises(build_directory.PathUnfit, match=f"{re.escape(name)}: Kbuild takes {why} in paths"):
        toy_source(tmp_path, state)
    assert not state.root.exists()


def test_a_path_with_other_characters_will_do(tmp_path: Path) -> None:
    state = State(tmp_path / "ü+@#{}~")
    assert built(Recipe(), toy_source(tmp_path, state), state).program.is_file()


def test_ctrl_c_ends_make_and_leaves_nothing(source: KernelSource, state: State) -> None:
    slow = plan(SLOW, source, state)

    def progress(_done: int, _total: int | None, line: str) -> None:
        if line.startswith("CC"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(slow, state, progress)
    assert processes_naming(slow.key) == []
    assert left_in(state.builds) == left_in(state.images) == []


def test_a_make_that_was_killed_from_outside_is_no_broken_kernel(source: KernelSource, state: State) -> None:
    slow = plan(SLOW, source, state)

    def progress(_done: int, _total: int | None, line: str) -> None:
        if line.startswith("CC"):
            for path in Path("/proc").glob("[0-9]*"):
                words = (path / "cmdline").read_bytes() if (path / "cmdline").exists() else b""
                if words.startswith(b"make\0") and f"builds/{slow.key}\0".encode() in words:
                    os.kill(int(path.name), signal.SIGKILL)

    with pytest.raises(BuildKilled, match="by signal 9"):
        build(slow, state, progress)
    assert processes_naming(slow.key) == []


def test_after_kill_9_the_same_build_starts_afresh_and_is_right(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    slow = plan(SLOW, source, state)
    child = build_elsewhere(tmp_path / "linux", state, SLOW, 1)
    wait_for_line(child, "CC      fs/open.o")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    objects = build_directory.directory(slow.key, state) / build_directory.OBJECTS
    assert (objects / "init/main.o").exists()
    for half_written in ("fs/open.o", "init/main.o"):  # newer than its source: make would take it for finished
        (objects / half_written).write_bytes((objects / "init/main.o").read_bytes()[:200])
    image = build(slow, state, no_progress, jobs=4)
    elsewhere = State(tmp_path / "elsewhere")
    clean = built(SLOW, toy_source(tmp_path / "again", elsewhere), elsewhere)
    assert image.vmlinux.read_bytes() == clean.vmlinux.read_bytes()
    assert processes_naming(str(state.root)) == []


def test_what_other_killed_builds_left_is_swept(source: KernelSource, state: State) -> None:
    (state.builds / f"{64 * 'a'}/o").mkdir(parents=True)
    built(Recipe(), source, state)
    assert left_in(state.builds) == []


def test_of_two_builds_at_once_one_waits_and_takes_the_others_image(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    slow = plan(SLOW, source, state)
    child = build_elsewhere(tmp_path / "linux", state, SLOW, 1)
    wait_for_line(child, "CC ")
    messages: list[str] = []
    image = build(slow, state, lambda _done, _total, line: messages.append(line))
    assert messages == ["waiting for another kdyno that builds the same image"]
    assert f"built {image.record.key}" in child.communicate(timeout=30)[0]


def test_progress_counts_files_up_to_a_guess_from_the_config_and_then_to_those_of_the_last_image_of_the_base(
    source: KernelSource, state: State
) -> None:
    steps: list[tuple[int, int | None, str]] = []
    first = build(plan(Recipe(), source, state), state, lambda *step: steps.append(step))
    assert steps[0] == (0, None, "configuring")
    assert [done for done, _, _ in steps[1:]] == list(range(1, first.record.steps + 1))
    options = estimate.options_on(first.config.read_text())
    assert {total for _, total, _ in steps[1:]} == {estimate.lines(options)}
    steps.clear()
    build(plan(Recipe(opt="O3"), source, state), state, lambda *step: steps.append(step))
    assert {total for done, total, _ in steps if done} == {first.record.steps}


def test_every_failure_is_one_that_can_be_shown(source: KernelSource, state: State) -> None:
    with pytest.raises(KdynoError) as raised:
        built(Recipe(kconfig={"FAKE_BREAK": True}), source, state, TINY)
    assert raised.value.advice.startswith("see the whole log in ")
