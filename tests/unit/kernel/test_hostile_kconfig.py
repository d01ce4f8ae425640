"""Values of the kernel configuration that a build would run, and configurations that are no files of text."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from kdyno.base.names import LeadsNowhere, absolute
from kdyno.base.state import State
from kdyno.kernel import kconfig, kconfig_check
from kdyno.kernel.kconfig import resolve_base
from kdyno.kernel.kconfig_check import read_config, refuse_unknown, refuse_what_runs
from kdyno.kernel.kconfig_tree import read_tree
from kdyno.kernel.knobs.base import KconfigRequest
from kdyno.kernel.knobs.kconfig import MOST_BYTES, FragmentMissing, ValueRuns, read_fragment, read_fragments, why_runs
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import fetch
from tests.unit.growth import repeated, too_steep
from tests.unit.kernel_toy import built, silent, toy_source, toy_tree

RUNS = [
    "$(shell touch RAN)",
    "${shell touch RAN}",
    "$X",
    "`touch RAN`",
    "x; touch RAN;",
    "x | sh",
    "x & touch RAN",
    "x > RAN",
    "< RAN",
    "x\\",
]


@pytest.mark.parametrize("value", RUNS)
def test_a_value_that_make_or_a_shell_would_run_is_refused_before_anything_is_built(tmp_path: Path, value: str) -> None:
    state = State(tmp_path / "state")
    with pytest.raises(ValueRuns, match="kconfig sets CONFIG_INITRAMFS_SOURCE to"):
        built(Recipe(kconfig={"INITRAMFS_SOURCE": value}), toy_source(tmp_path, state), state)


@pytest.mark.parametrize("value", RUNS)
@pytest.mark.parametrize("quoted", ['"{}"', "{}"])
def test_the_same_in_a_fragment_and_in_a_base(tmp_path: Path, value: str, quoted: str) -> None:
    line = f"CONFIG_LOCALVERSION={quoted.format(value)}\n"
    (tmp_path / "config").write_text("CONFIG_SMP=y\n" + line)
    with pytest.raises(ValueRuns, match="fragment config:2 sets CONFIG_LOCALVERSION to"):
        read_fragments([str(tmp_path / "config")])
    for spec in ("file:{}/config", "make:localmodconfig?lsmod={}/config&config={}/config"):
        with pytest.raises(ValueRuns, match=r"line 2 of .* sets CONFIG_LOCALVERSION to"):
            resolve_base(spec.format(tmp_path, tmp_path))


@pytest.mark.parametrize("end", ["\x0c", "\x0b", "\x1c", "\x85", "\u2028", "\r"])
def test_what_only_python_takes_for_the_end_of_a_line_hides_nothing(tmp_path: Path, end: str) -> None:
    text = f'CONFIG_LOCALVERSION="{end}$(shell id)"\n'
    (tmp_path / "config").write_bytes(text.encode())
    with pytest.raises(ValueRuns):
        resolve_base(f"file:{tmp_path}/config")
    with pytest.raises(ValueRuns):
        refuse_what_runs(read_config(text))


@pytest.mark.parametrize(
    ("symbol", "value"),
    [
        ("CC_VERSION_TEXT", '"gcc (Debian 12.2.0-14+deb12u1) 12.2.0"'),
        ("CC_VERSION_TEXT", '"Android (11368308, +pgo, -mlgo, based on r510928) clang version 18.0.0 (https://x.y/z)"'),
        ("CMDLINE", '"dyndbg=\\"file a.c +p\\" console=ttyS0,115200n8 -- x"'),
        ("DEFAULT_HOSTNAME", '"(none)"'),
        ("LOCALVERSION", '"-tuned"'),
        ("NR_CPUS", "4"),
        ("INITRAMFS_SOURCE", '"/some/where/list another-one"'),
    ],
)
def test_values_as_configurations_have_them_are_fine(symbol: str, value: str) -> None:
    assert why_runs(symbol, value) == ""


def test_an_option_of_a_script_that_writes_files_is_refused() -> None:
    assert "option" in why_runs("INITRAMFS_SOURCE", '"x -o /root/.profile"')
    assert "option" in why_runs("INITRAMFS_SOURCE", '"-o /root/.profile"')


def test_a_value_that_the_tree_itself_brings_is_refused_before_make_reads_it(tmp_path: Path) -> None:
    state = State(tmp_path / "state")
    tree = toy_tree(tmp_path)
    with (tree / "kernel/configs/tiny.config").open("a") as config:
        config.write(f'CONFIG_LOCALVERSION="$(shell touch {tmp_path}/ran)"\n')
    with pytest.raises(ValueRuns, match=r"^\.config sets CONFIG_LOCALVERSION"):
        built(Recipe(), fetch(str(tree), state, silent), state)
    assert not (tmp_path / "ran").exists()


def test_the_name_of_a_fragment_adds_no_line_to_what_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "x\nCONFIG_Y=y\n.config"
    path.write_text("CONFIG_SMP=y\n")
    [request] = read_fragment(path)
    assert kconfig.fragment([request]).count("\n") == 2


def test_an_option_of_make_is_no_target() -> None:
    for target in ("-fconfig", "-Cconfig", ".config"):
        with pytest.raises(kconfig.UnknownBase):
            resolve_base(f"make:{target}")


def test_pipes_devices_bombs_and_broken_archives_are_no_configurations(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"\n" * 20 * MOST_BYTES, 1, mtime=0))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"CONFIG_A=y\n" * 1000, mtime=0)[:-9])
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", MOST_BYTES + 1)
    for name in ("pipe", "bomb.gz", "cut.gz", "huge", "/dev/zero"):
        with pytest.raises(kconfig.BaseMissing):
            resolve_base(f"file:{tmp_path / name}")
        with pytest.raises(kconfig.BaseMissing):
            resolve_base(f"make:localmodconfig?lsmod={tmp_path / name}&config={tmp_path}/cut.gz")
    for name in ("pipe", "huge", "/dev/zero"):
        with pytest.raises(FragmentMissing):
            read_fragment(tmp_path / name)


@pytest.mark.parametrize("unit", ['a\\"', "\\", '"', "a "])
def test_a_value_is_looked_at_in_time_in_proportion_to_its_length(unit: str) -> None:
    def look(text: str) -> None:
        why_runs("INITRAMFS_SOURCE", text)

    assert too_steep(look, repeated('"', unit, ""), 100_000) == ""


def test_a_path_leads_from_the_file_from_the_root_or_from_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert absolute("~/linux#v6.12", tmp_path) == f"{tmp_path}/home/linux#v6.12"
    assert absolute("linux", tmp_path) == f"{tmp_path}/linux"
    (tmp_path / "loop").symlink_to("loop")
    for name in ("a\0b", "~nobody-is-called-so/x", "loop/x"):
        with pytest.raises(LeadsNowhere):
            absolute(name, tmp_path)


def test_the_check_of_the_final_configuration_stands_before_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = State(tmp_path / "state")
    source = toy_source(tmp_path, state)
    monkeypatch.setattr(kconfig_check, "read_config", lambda _text: {"A": '"`id`"'})
    with pytest.raises(ValueRuns):
        built(Recipe(), source, state)
    assert not list(state.images.iterdir())


@pytest.mark.parametrize(
    "files",
    [
        {"Kconfig": 'source "Kconfig"\n'},
        {"Kconfig": 'source "Kconfig"\n' * 3},
        {"Kconfig": "endif\nendmenu\nconfig A\n\tbool\n"},
        {"Kconfig": 'source "a"\n' * 9, "a": 'source "Kconfig"\n' * 9},
    ],
)
def test_files_that_source_each_other_for_ever_come_to_an_end(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    read_tree(tmp_path)


def test_a_tree_sources_nothing_outside_of_it(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("config SECRET\n\tbool\n")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "Kconfig").write_text(f'source "{tmp_path}/outside"\nsource "../outside"\nconfig A\n\tbool\n')
    assert list(read_tree(tree).entries) == ["A"]


def test_a_tree_that_was_not_read_whole_refuses_nothing(tmp_path: Path) -> None:
    (tmp_path / "Kconfig").write_text('source "Kconfig"\n')
    refuse_unknown([KconfigRequest(symbol="A", value="y", by="kconfig")], tmp_path)
