"""The plan: what goes into an image's key, and what doesn't."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kdyno.base.state import State
from kdyno.kernel import knobs
from kdyno.kernel.kconfig_check import ConfigRefused
from kdyno.kernel.plan import UNSIGNED
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource
from kdyno.kernel.toolchain import installed
from tests.unit.kernel_toy import TINY, plan, toy_source

PATCH = """\
--- a/lib/crc32.c
+++ b/lib/crc32.c
@@ -5,3 +5,3 @@
-\tfor (bit = 0; bit < 8; bit++)
+\tfor (bit = 0; bit < 9; bit++)
 \t\tseed = seed >> 1 ^ (seed & 1 ? 0xedb88320u : 0);
 \treturn seed;
"""

VERSIONED_GCC = next(name for name in installed() if name.startswith("gcc-"))
"""Debian's gcc is a link to one."""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> State:
    return State(tmp_path_factory.mktemp("plan") / "state")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, state: State) -> KernelSource:
    return toy_source(tmp_path_factory.mktemp("source"), state)


def key(source: KernelSource, state: State, base: str = TINY, **recipe: Any) -> str:
    return plan(Recipe(**recipe), source, state, base).key


def test_the_command_line_does_not_change_the_key(source: KernelSource, state: State) -> None:
    assert key(source, state, cmdline=("mitigations=off",)) == key(source, state)


def test_variants_that_differ_in_what_a_running_kernel_can_be_told_share_their_image() -> None:
    recipe = Recipe(page_size="64k", sysctl={"vm.swappiness": 10}, cmdline=("quiet",))
    assert recipe.words == ("transparent_hugepage=never", "thp_anon=64K:always", "sysctl.vm.swappiness=10", "quiet")
    assert recipe.built == Recipe()


@pytest.mark.parametrize(
    ("lines", "recipe", "expected"),
    [
        ("CONFIG_MODULE_SIG=y\n", {}, {"MODULE_SIG_ALL": "n", "MODULE_SIG_KEY": '""'}),
        (
            "CONFIG_MODULE_SIG=y\n",
            {"kconfig": {"MODULE_SIG_ALL": True}},
            {"MODULE_SIG_ALL": "y", "MODULE_SIG_KEY": '""'},
        ),
        ("CONFIG_MODULE_SIG=y\nCONFIG_MODULE_SIG_FORCE=y\n", {}, {}),
        ("CONFIG_NET=y\n", {}, {}),
    ],
)
def test_no_key_is_made_for_modules_that_a_base_configuration_signs(
    lines: str, recipe: dict[str, Any], expected: dict[str, str], tmp_path: Path, source: KernelSource, state: State
) -> None:
    """A key of its own would make each build of an image another."""
    (tmp_path / "theirs.config").write_text(lines)
    asked = plan(Recipe(**recipe), source, state, f"file:{tmp_path / 'theirs.config'}").asked
    assert {symbol: value for symbol, value in asked.items() if symbol in UNSIGNED} == expected


def test_everything_else_changes_the_key(tmp_path: Path, source: KernelSource, state: State) -> None:
    (tmp_path / "a.patch").write_text(PATCH)
    (tmp_path / "a.config").write_text("CONFIG_NET=y\n")
    (tmp_path / "an.order").write_text("f\n")
    recipes: list[dict[str, Any]] = [
        {},
        {"opt": "O2"},
        {"opt": "O3"},
        {"march": "x86-64-v3"},
        {"mtune": "haswell"},
        {"toolchain": VERSIONED_GCC},
        {"layout_seed": 0},
        {"layout_seed": 1},
        {"order": str(tmp_path / "an.order")},
        {"order": str(tmp_path / "an.order"), "layout_seed": 1},
        {"kconfig": {"SMP": True}},
        {"fragments": (str(tmp_path / "a.config"),)},
        {"patches": (str(tmp_path / "a.patch"),)},
    ]
    keys = [key(source, state, **recipe) for recipe in recipes]
    keys += [key(source, state, base) for base in ("dyno", "make:defconfig")]
    assert len(set(keys)) == len(keys)


def test_content_counts_and_not_how_it_is_spelled(tmp_path: Path, source: KernelSource, state: State) -> None:
    for name in ("a.config", "b.config"):
        (tmp_path / name).write_text("CONFIG_SMP=y\n")
    same = {
        key(source, state, kconfig={"SMP": True}),
        key(source, state, kconfig={"CONFIG_SMP": "y"}),
        key(source, state, fragments=(str(tmp_path / "a.config"),)),
        key(source, state, fragments=(str(tmp_path / "b.config"),)),
    }
    assert len(same) == 1
    assert key(source, state, kconfig={"SMP": True, "NET": True}) == key(
        source, state, kconfig={"NET": True, "SMP": "y"}
    )


def test_the_key_does_not_depend_on_the_state_directory(tmp_path: Path, source: KernelSource, state: State) -> None:
    elsewhere = State(tmp_path / "elsewhere")
    assert key(toy_source(tmp_path, elsewhere), elsewhere) == key(source, state)


def test_ccache_does_not_change_the_key(source: KernelSource, state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(source, state)
    monkeypatch.setenv("CCACHE_DISABLE", "1")
    assert key(source, state) == before


def test_make_gets_the_compiler_and_its_flags(source: KernelSource, state: State) -> None:
    words = plan(Recipe(opt="O3", march="x86-64-v3"), source, state).make
    assert words[:3] == ("ARCH=x86_64", "LOCALVERSION=", "RUSTC=false")
    assert words[3:] == ("CC=gcc", "KCFLAGS=-O3 -march=x86-64-v3", "KCPPFLAGS=-fdebug-prefix-map=$(CURDIR)=.")


def test_contradictions_come_out_before_anything_is_built(source: KernelSource, state: State) -> None:
    with pytest.raises(knobs.ContradictoryAsks):
        plan(Recipe(opt="Os", kconfig={"CC_OPTIMIZE_FOR_PERFORMANCE": True}), source, state)
    assert list(state.builds.iterdir()) == []


def test_a_symbol_that_the_source_has_not_got_is_refused_before_anything_is_built(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    with pytest.raises(ConfigRefused, match=r"CONFIG_ETX4=y \(asked by kconfig\).*did you mean EXT4"):
        plan(Recipe(kconfig={"ETX4": True}), source, state)
    fragment = tmp_path / "small.config"
    fragment.write_text("CONFIG_NO_SUCH_THING=y\n")
    with pytest.raises(ConfigRefused, match=r"asked by fragment small\.config:1"):
        plan(Recipe(fragments=(str(fragment),)), source, state)
    assert plan(Recipe(kconfig={"ETX4": False}), source, state).asks, "what isn't there is n already"
