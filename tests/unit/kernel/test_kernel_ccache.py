"""ccache that can't work: it is found out before a build or in the middle of it, and the build goes on without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kdyno.base import process
from kdyno.base.state import State
from kdyno.kernel import ccache
from kdyno.kernel.build import build_layouts
from kdyno.kernel.environment import nothing_but, passed_on
from kdyno.kernel.image import Image
from kdyno.kernel.make import CcacheFailed
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource
from tests.unit.kernel_toy import no_progress, plan

WORKS_AT_FIRST = """\
#!/bin/sh
case "$*:$CCACHE_DISABLE" in
    *ccache-probe.c*|*:1) exec "$@";;
    *open.c*) echo "ccache: error: Failed to create temporary file for /cache/0/1: Permission denied" >&2; exit 1;;
    *) exec "$@";;
esac
"""
NEVER_WORKS_AFTER_THE_PROBE = """\
#!/bin/sh
case "$*" in
    *open.c*) echo "ccache: error: /etc/ccache.conf:1: missing equal sign" >&2; exit 1;;
    *) exec "$@";;
esac
"""

TELLS_ITS_MODE = """\
#!/bin/sh
for source; do :; done
echo "$CCACHE_DEPEND:$CCACHE_NODEPEND ${source##*/}" >>"$CCACHE_DIR.log"
exec "$@"
"""


@pytest.fixture(autouse=True)
def _ccache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ccache with a cache of its own, which needn't be installed: it calls the compiler."""
    monkeypatch.delenv("CCACHE_DISABLE", raising=False)
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "ccache"))


def use(script: str, folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Let this script be ccache."""
    folder.mkdir()
    (folder / "ccache").write_text(script)
    (folder / "ccache").chmod(0o755)
    patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def needs_ccache() -> None:
    if not ccache.is_installed():
        pytest.skip("needs ccache")


def built(source: KernelSource, state: State) -> tuple[Image, list[str]]:
    """The toy's image, and what was said while it was built."""
    notes: list[str] = []
    [image] = build_layouts([plan(Recipe(), source, state)], state, no_progress, jobs=2, say=notes.append)
    return image, notes


def log_of(image: Image) -> str:
    return (image.directory / "build.log").read_text()


def test_where_ccache_works_nothing_is_said(source: KernelSource, state: State, tmp_path: Path) -> None:
    needs_ccache()
    assert ccache.why_not("gcc", tmp_path) is None
    image, notes = built(source, state)
    assert notes == []
    assert "CC=ccache gcc" in log_of(image)


def test_a_second_probe_finds_a_cache_that_was_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_ccache()
    assert ccache.why_not("gcc", tmp_path) is None
    (tmp_path / "file").touch()
    monkeypatch.setenv("CCACHE_TEMPDIR", str(tmp_path / "file" / "tmp"))
    assert "Not a directory" in str(ccache.why_not("gcc", tmp_path))


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [("CCACHE_DIR", "{file}/cache", "Not a directory"), ("CCACHE_MAXSIZE", "much", "invalid size")],
)
def test_a_build_goes_on_without_a_ccache_that_cannot_work(
    source: KernelSource,
    state: State,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    why: str,
) -> None:
    needs_ccache()
    (tmp_path / "file").touch()
    monkeypatch.setenv(variable, value.format(file=tmp_path / "file"))
    image, notes = built(source, state)
    [note] = notes
    assert note.startswith("note: ccache can't be used (")
    assert note.endswith("): the build goes on without it")
    assert why in note
    assert "ccache" not in log_of(image)


def test_a_compiler_that_fails_is_not_put_down_to_ccache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use('#!/bin/sh\nexec "$@"\n', tmp_path / "bin", monkeypatch)
    assert ccache.why_not("false", tmp_path) is None


def test_a_build_goes_on_where_ccache_fails_in_the_middle(
    source: KernelSource, state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(WORKS_AT_FIRST, tmp_path / "bin", monkeypatch)
    image, notes = built(source, state)
    assert notes == [
        "note: ccache can't be used (Failed to create temporary file for /cache/0/1: Permission denied): "
        "the build goes on without it"
    ]
    log = log_of(image)
    assert log.count(" vmlinux bzImage\n") == 2, "make is called once more"
    assert log.count("  CC      init/main.o") == 1, "and compiles only what isn't there"


def test_a_ccache_that_fails_even_if_it_is_told_not_to_cache_is_named(
    source: KernelSource, state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(NEVER_WORKS_AFTER_THE_PROBE, tmp_path / "bin", monkeypatch)
    with pytest.raises(CcacheFailed, match=r"ccache: error: /etc/ccache\.conf:1: missing equal sign") as raised:
        built(source, state)
    assert raised.value.advice.startswith("set CCACHE_DISABLE=1 to build without it; the whole log is in ")


def modes_in(folder: Path) -> dict[str, str]:
    """By file: the mode in which TELLS_ITS_MODE was called last."""
    rows = (line.split(" ") for line in (folder / "ccache.log").read_text().splitlines())
    return {file: {"1:": "depend", ":1": "preprocess"}[mode] for mode, file in rows}


@pytest.fixture
def tells_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(TELLS_ITS_MODE, tmp_path / "bin", monkeypatch)


@pytest.mark.usefixtures("tells_its_mode")
def test_the_first_compilation_with_some_flags_preprocesses_nothing(
    source: KernelSource, state: State, tmp_path: Path
) -> None:
    image, notes = built(source, state)
    assert modes_in(tmp_path)["open.c"] == "depend"
    assert notes == [] and "CC=ccache gcc" in log_of(image)
    build_layouts([plan(Recipe(kconfig={"NET": True}), source, state)], state, no_progress, jobs=2)
    assert modes_in(tmp_path)["open.c"] == "preprocess", "the first configuration's flags were built"
    build_layouts([plan(Recipe(opt="O3"), source, state)], state, no_progress, jobs=2)
    assert modes_in(tmp_path)["open.c"] == "depend", "other flags share nothing"


@pytest.mark.usefixtures("tells_its_mode")
@pytest.mark.parametrize(
    ("other", "mode"),
    [
        (Recipe(kconfig={"NET": True}), "preprocess"),
        (Recipe(opt="O3", kconfig={"NET": True}), "depend"),
        (Recipe(), "depend"),
    ],
)
def test_what_is_built_besides_decides_whether_sources_are_preprocessed(
    other: Recipe, mode: str, source: KernelSource, state: State, tmp_path: Path
) -> None:
    plans = [plan(recipe, source, state) for recipe in (Recipe(), other)]
    build_layouts(plans[:1], state, no_progress, jobs=2, others=plans)
    assert modes_in(tmp_path)["open.c"] == mode


@pytest.mark.usefixtures("tells_its_mode")
def test_a_source_whose_headers_include_binaries_is_preprocessed(
    source: KernelSource, state: State, tmp_path: Path
) -> None:
    assert not ccache.includes_binaries(source.tree)
    (source.tree / "include/blob.h").write_text('#define BLOB asm(".incbin \\"blob\\"")\n')
    assert ccache.includes_binaries(source.tree)
    built(source, state)
    assert modes_in(tmp_path)["open.c"] == "preprocess"


@pytest.mark.parametrize(
    ("name", "text"),
    [("piggy.S", '.incbin "kernel"\n'), ("configs.c", 'asm(".incbin \\"kernel\\"");\n')],
)
def test_an_object_with_another_included_binary_is_never_taken_from_depend_mode(
    name: str, text: str, tmp_path: Path
) -> None:
    needs_ccache()
    (tmp_path / name).write_text(text)
    variables = {**passed_on(tmp_path), **ccache.environment(tmp_path), **ccache.in_depend_mode(tmp_path)}
    for kernel in (b"first kernel", b"other kernel"):
        (tmp_path / "kernel").write_bytes(kernel)
        command = [*nothing_but(variables), ccache.COMMAND, "gcc", "-Wp,-MMD,made.d", "-c", "-o", "made.o", name]
        process.output(command, cwd=tmp_path, env=variables)
        assert kernel in (tmp_path / "made.o").read_bytes()


def test_objects_of_depend_mode_are_found_without_it_and_the_other_way_round(tmp_path: Path) -> None:
    needs_ccache()
    as_usual = {**passed_on(tmp_path), **ccache.environment(tmp_path)}
    first = {**as_usual, **ccache.in_depend_mode(tmp_path)}
    for name, variables in (("one", (first, as_usual)), ("other", (as_usual, first))):
        (tmp_path / f"{name}.c").write_text(f"int {name};\n")
        for place, mode in enumerate(variables):
            process.output(["ccache", "-z"], env=mode)
            command = [*nothing_but(mode), "ccache", "gcc", f"-Wp,-MMD,{name}.d", "-c", "-o", f"{name}.o", f"{name}.c"]
            process.output(command, cwd=tmp_path, env=mode)
            counted = process.output(["ccache", "--print-stats"], env=mode)
            assert f"direct_cache_hit\t{place}\n" in counted
            assert f"preprocessed_cache_miss\t{int(mode is as_usual and place == 0)}\n" in counted
