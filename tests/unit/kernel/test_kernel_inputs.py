"""Files that a build takes: the content is in the key, where it lies is not, and the compiler really reads it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kdyno.base import process
from kdyno.base.state import State
from kdyno.kernel import ccache, knobs
from kdyno.kernel.build import build_layouts
from kdyno.kernel.environment import nothing_but, passed_on
from kdyno.kernel.image import Image
from kdyno.kernel.inputs import InputMissing, InputUnreadable, read_input
from kdyno.kernel.knobs.base import Contribution, Knob, KnobContext
from kdyno.kernel.plan import BuildPlan
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource
from tests.unit.kernel_toy import built, no_progress, plan, toy_source


class HeaderRecipe(Recipe):
    """A recipe with two files: every object includes one, the other is for the link alone."""

    header: str | None = None
    link_order: str | None = None


def header(value: str | None, context: KnobContext) -> Contribution:
    if value is None:
        return Contribution()
    file = read_input("header", Path(value), context.state)
    return Contribution(kcflags=("-include", file.placeholder), inputs=(file,))


def link_order(value: str | None, context: KnobContext) -> Contribution:
    if value is None:
        return Contribution()
    file = read_input("link_order", Path(value), context.state)
    return Contribution(environment={"LINK_ORDER": file.placeholder}, inputs=(file,))


@pytest.fixture(autouse=True)
def _knobs(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = (Knob("header", header), Knob("link_order", link_order))
    monkeypatch.setattr(knobs, "KNOBS", (*knobs.KNOBS, *ours))


def marked(path: Path, text: str) -> str:
    """A header that leaves a text in every object."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'static const char mark[] __attribute__((used)) = "{text}";\n')
    return str(path)


def planned(source: KernelSource, state: State, **files: str) -> BuildPlan:
    return plan(HeaderRecipe(**files), source, state)


def image_of(source: KernelSource, state: State, **files: str) -> Image:
    return built(HeaderRecipe(**files), source, state)


def test_the_content_of_a_file_decides_the_key_and_its_path_does_not(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    here = planned(source, state, header=marked(tmp_path / "a.h", "one"))
    there = planned(source, state, header=marked(tmp_path / "elsewhere" / "b.h", "one"))
    other = planned(source, state, header=marked(tmp_path / "a.h", "two"))
    assert here.key == there.key != other.key
    assert "KCFLAGS=-include @header@" in here.make
    assert planned(source, state).key not in {here.key, other.key}


def test_every_object_has_what_is_in_the_file_and_the_record_names_it_by_its_digest(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    image = image_of(source, state, header=marked(tmp_path / "a.h", "seen by the compiler"))
    assert image.vmlinux.read_bytes().count(b"seen by the compiler") == 3
    [file] = planned(source, state, header=str(tmp_path / "a.h")).inputs
    assert image.record.inputs == {"header": file.digest}
    assert str(state.inputs) not in image.record.model_dump_json()


def test_a_build_takes_what_was_planned_even_if_the_file_is_another_by_then(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    before = planned(source, state, header=marked(tmp_path / "a.h", "as planned"))
    marked(tmp_path / "a.h", "too late")
    [image] = build_layouts([before], state, no_progress, jobs=2)
    assert b"as planned" in image.vmlinux.read_bytes()


def test_commands_name_the_file_by_a_path_that_is_the_same_in_every_state_directory(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    image = image_of(source, state, header=marked(tmp_path / "a.h", "one"))
    elsewhere = State(tmp_path / "other")
    (tmp_path / "again").mkdir()
    again = image_of(toy_source(tmp_path / "again", elsewhere), elsewhere, header=str(tmp_path / "a.h"))
    assert again.vmlinux.read_bytes() == image.vmlinux.read_bytes()
    log = (image.directory / "build.log").read_text()
    assert f"-include ../inputs/header-{image.record.inputs['header'][:16]}" in log
    assert "@header@" not in log


@pytest.mark.skipif(shutil.which("ccache") is None, reason="needs ccache")
def test_ccache_never_takes_an_object_of_another_content(
    tmp_path: Path, source: KernelSource, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """-Wa,@FILE is an option whose file ccache doesn't hash: only its name tells one content from another."""
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "ccache"))

    def assembled(value: str | None, context: KnobContext) -> Contribution:
        assert value
        file = read_input("header", Path(value), context.state)
        return Contribution(kcflags=(f"-Wa,@{file.placeholder}",), inputs=(file,))

    monkeypatch.setattr(knobs, "KNOBS", (*knobs.KNOBS[:-2], Knob("header", assembled)))
    for number in (1, 2):
        options = tmp_path / "options"
        options.write_text(f"--defsym MARK_{number}=0\n")
        assert f"MARK_{number}" in image_of(source, state, header=str(options)).symbols.read_text()


@pytest.mark.skipif(shutil.which("ccache") is None, reason="needs ccache")
@pytest.mark.parametrize("chosen_in", ["file", "environment"])
def test_ccache_sees_what_assembly_includes_whatever_mode_the_user_chose(
    chosen_in: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bzImage has the kernel by `.incbin`: a hit of another link order would be another kernel."""
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "ccache"))
    monkeypatch.delenv("CCACHE_DISABLE", raising=False)
    if chosen_in == "environment":
        monkeypatch.setenv("CCACHE_DEPEND", "1")
    else:
        (tmp_path / "ccache").mkdir()
        (tmp_path / "ccache/ccache.conf").write_text("depend_mode = true\n")
    (tmp_path / "piggy.S").write_text('.incbin "kernel"\n')
    for kernel in (b"first kernel", b"other kernel"):
        (tmp_path / "kernel").write_bytes(kernel)
        variables = {**passed_on(tmp_path), **ccache.environment(tmp_path)}
        command = [ccache.COMMAND, "gcc", "-Wp,-MMD,piggy.d", "-c", "-o", "piggy.o", "piggy.S"]
        process.output([*nothing_but(variables), *command], cwd=tmp_path, env=variables)
        assert kernel in (tmp_path / "piggy.o").read_bytes()


def test_a_file_that_only_the_environment_names_decides_the_link_and_no_object(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    tree = source.tree / "Makefile"
    text = tree.read_text()
    tree.unlink()
    tree.write_text(text.replace('@echo "  LD      $@"', '@echo "  LD      $@ by `cat $(LINK_ORDER)`"'))
    plans = []
    for content in ("start first", "crc32 first"):
        (tmp_path / "order").write_text(content)
        plans.append(planned(source, state, link_order=str(tmp_path / "order")))
    assert plans[0].key != plans[1].key
    assert plans[0].objects_key == plans[1].objects_key == planned(source, state).key
    images = build_layouts(plans, state, no_progress, jobs=2)
    logs = [(image.directory / "build.log").read_text() for image in images]
    assert [log.rpartition("vmlinux by ")[2].splitlines()[0] for log in logs] == ["start first", "crc32 first"]
    assert logs[1].count("  CC      init/main.o") == 1


def test_a_file_that_cannot_be_read_is_said_before_anything_is_built(source: KernelSource, state: State) -> None:
    with pytest.raises(InputUnreadable, match=r"can't read /nowhere/a\.h, which the recipe names as its header: No su"):
        planned(source, state, header="/nowhere/a.h")


def test_a_kept_file_that_was_deleted_since_is_said_by_name(tmp_path: Path, source: KernelSource, state: State) -> None:
    before = planned(source, state, header=marked(tmp_path / "a.h", "one"))
    before.inputs[0].path.unlink()
    with pytest.raises(InputMissing, match="from which the header of this build comes"):
        build_layouts([before], state, no_progress, jobs=2)


def test_a_recipe_without_inputs_has_the_key_that_it_always_had(source: KernelSource, state: State) -> None:
    assert planned(source, state).key == plan(HeaderRecipe(), source, state).objects_key
    assert "inputs" not in {path.name for path in state.root.iterdir()}
