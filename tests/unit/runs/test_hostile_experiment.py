"""Experiments of strangers, as files and as recorded: read with limits, whatever they hold."""

from __future__ import annotations

import io
import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kdyno.base import mistakes
from kdyno.base.errors import UserError
from kdyno.base.toml import DEEP_KEY
from kdyno.runs.experiment import file
from kdyno.runs.experiment.errors import BadExperiment, BadRecordedExperiment, NoExperiment, NotToml, TooManyBoots
from kdyno.runs.experiment.models import MOST_ENTRIES, MOST_VARIANTS, Experiment, VariantSpec
from kdyno.runs.experiment.resolve import load_experiment, read_experiment
from kdyno.runs.experiment.toml_lines import line_of
from kdyno.runs.experiment.variants import TooManyVariants, VariantTooLarge, expand
from tests.unit.experiment_files import MINIMAL, written
from tests.unit.growth import repeated, seconds, too_steep


@pytest.fixture
def little_memory() -> Any:
    """Of 2 GB more than there is in use, so that what eats the memory ends as a failure of its test."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + 2_000_000_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def test_pipes_devices_and_huge_files_are_no_experiments(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", file.MOST_BYTES + 1)
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path / "huge", tmp_path):
        with pytest.raises(NoExperiment):
            load_experiment(path)


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 5000 + "]" * 5000,
        "a = " + "{a = " * 5000,
        "seed = " + "9" * 5000,
        ".".join(["a"] * 100_000) + " = 1",
        "[" + ".".join(['"a"'] * 100_000) + "]",
        "a = {" + " . ".join(["'a'"] * 100_000) + " = 1}",
    ],
)
@pytest.mark.usefixtures("little_memory")
def test_what_would_fill_memory_or_stack_is_no_toml(tmp_path: Path, text: str) -> None:
    with pytest.raises(NotToml):
        load_experiment(written(tmp_path, MINIMAL + text))


def test_to_look_for_deep_keys_takes_time_in_proportion() -> None:
    """Beyond the longest text that a match can have, of 16 parts."""
    near = "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1\n"
    for unit in ("a.", "'a'.", "a", "'", '"', '\\"', " ", ".", '"\\', near, "a" * 199 + ". "):
        text = repeated("a = '", unit, "")
        once, fourfold = (seconds(DEEP_KEY.search, text(size), 1) for size in (30_000, 120_000))
        assert fourfold < max(8 * once, 0.05), unit


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("seed = 0x" + "f" * 10_000, "experiment.toml:1: `seed`: a number of more than 64 bits"),
        ("layouts = 9223372036854775808", "experiment.toml:1: `layouts`: a number of more than 64 bits"),
        ('config = "file:a\\u0000b"', "experiment.toml:1: `config`: a NUL character"),
        ('"a\\u0000b" = 1', "a NUL character"),
    ],
)
def test_numbers_and_texts_that_nothing_can_take_are_named_with_their_line(
    tmp_path: Path, line: str, complaint: str
) -> None:
    with pytest.raises(BadExperiment) as raised:
        load_experiment(written(tmp_path, f"{line}\n{MINIMAL}"))
    assert complaint in str(raised.value)


def test_of_many_mistakes_the_first_are_shown(tmp_path: Path) -> None:
    text = MINIMAL + "".join(f"mistake{number} = 1\n" for number in range(20_000))
    with pytest.raises(BadExperiment) as raised:
        load_experiment(written(tmp_path, text))
    assert str(raised.value).count("\n") == mistakes.SHOWN
    assert str(raised.value).endswith("... and 19,980 more")


def test_to_find_the_line_of_a_key_takes_time_in_proportion() -> None:
    for unit in ("a", "a = 1\n", "[a]\n", " ", "a ", '"', "[", "a.", "]"):

        def look(text: str) -> None:
            line_of(text, ("x", "y"))

        assert too_steep(look, repeated("a", unit, ""), 20_000) == ""


@pytest.mark.usefixtures("little_memory")
def test_a_matrix_of_a_billion_variants_is_refused_before_they_are_made() -> None:
    spec = VariantSpec(
        matrix={knob: tuple(f"x{number}" for number in range(1000)) for knob in ("march", "mtune", "source")}
    )
    with pytest.raises(TooManyVariants, match="with variant a there are 1,000,000,000 variants"):
        expand({"a": spec})
    wide = VariantSpec(matrix={"march": tuple(f"x{number}" for number in range(MOST_VARIANTS))})
    assert len(expand({"a": wide})) == MOST_VARIANTS
    with pytest.raises(TooManyVariants, match="with variant b there are 1,001 variants"):
        expand({"a": wide, "b": VariantSpec()})


@pytest.mark.usefixtures("little_memory")
def test_variants_that_extend_each_other_a_thousand_deep_are_as_good_as_others() -> None:
    last = MOST_VARIANTS - 1
    specs = {
        f"v{last - number}": VariantSpec(extends=f"v{last - number - 1}", cmdline=("x",)) for number in range(last)
    }
    recipes = expand({**specs, "v0": VariantSpec(opt="O3")})
    assert recipes[f"v{last}"].opt == "O3"
    assert len(recipes[f"v{last}"].cmdline) == last


@pytest.mark.usefixtures("little_memory")
def test_what_variants_have_from_each_other_does_not_grow_without_end() -> None:
    root = VariantSpec(cmdline=("x",) * MOST_ENTRIES)
    children = {f"c{number}": VariantSpec(extends="root") for number in range(MOST_VARIANTS - 1)}
    with pytest.raises(VariantTooLarge, match="more than 10,000,000 bytes"):
        expand({"root": root, **children})
    with pytest.raises(VariantTooLarge, match="`cmdline` has more than 5,000 entries"):
        expand({"root": root, "a": VariantSpec(extends="root", cmdline=("y",))})


def test_a_run_of_too_many_boots_is_refused(tmp_path: Path) -> None:
    many = "".join(f"[variants.v{number}]\n" for number in range(20))
    for blocks, judge in (("blocks = 10000\n", ""), ('blocks = "auto"\n', "[judge]\nmost_blocks = 10000\n")):
        with pytest.raises(TooManyBoots, match="21 variants in 10,000 blocks are 210,000 boots, of at most 100,000"):
            load_experiment(written(tmp_path, blocks + MINIMAL + many + judge))


@pytest.mark.parametrize("path", ["~nobody-is-called-so/linux", "loop/linux"])
def test_a_path_that_leads_nowhere_is_said(tmp_path: Path, path: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UserError, match="can't be a path"):
        load_experiment(written(tmp_path, MINIMAL.replace('"linux"', f'"{path}"')))


@pytest.fixture
def recorded(tmp_path: Path) -> dict[str, Any]:
    experiment = load_experiment(written(tmp_path, MINIMAL))
    value = json.loads(experiment.model_dump_json())
    assert isinstance(value, dict)
    return value


class Stdin:
    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


def fed(monkeypatch: pytest.MonkeyPatch, content: str) -> Experiment:
    monkeypatch.setattr(sys, "stdin", Stdin(content.encode()))
    return read_experiment("-")


def test_a_recorded_experiment_is_taken_as_it_was(recorded: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert json.loads(fed(monkeypatch, json.dumps(recorded)).model_dump_json()) == recorded


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e.update(blocks=10**9),
        lambda e: e.update(blocks=-1),
        lambda e: e.update(blocks=10_000, variants={f"v{n}": {} for n in range(900)} | e["variants"]),
        lambda e: e.update(layouts=10**9),
        lambda e: e.update(seed=2**63),
        lambda e: e.update(baseline="nobody"),
        lambda e: e.update(variants={}),
        lambda e: e.update(variants={"plain": {}, "\x1b[31m": {}}),
        lambda e: e.update(variants={"plain": {}} | {f"v{n}": {} for n in range(MOST_VARIANTS)}),
        lambda e: e.update(source="a\0b"),
        lambda e: e["variants"]["plain"].update(toolchain="/tmp/evil"),
        lambda e: e["variants"]["plain"].update(opt="O9"),
        lambda e: e["variants"]["plain"].update(layout_seed=2**63),
        lambda e: e["variants"]["plain"].update(patches=["a\0b"]),
        lambda e: e.update(more=1),
    ],
)
def test_a_recorded_experiment_that_was_changed_is_refused(
    recorded: dict[str, Any], monkeypatch: pytest.MonkeyPatch, change: Callable[[dict[str, Any]], None]
) -> None:
    change(recorded)
    with pytest.raises(BadRecordedExperiment):
        fed(monkeypatch, json.dumps(recorded))


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"seed": ' + "9" * 5000 + "}", '{"name": "\\ud800"}', "", "null", "{" * 9]
)
def test_what_is_no_json_of_an_experiment_is_refused(monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    with pytest.raises(BadRecordedExperiment):
        fed(monkeypatch, content)


def test_standard_input_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless:
        def read(self, size: int = -1) -> bytes:
            assert size >= 0, "it reads to the end"
            return b" " * size

    monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": Endless()}))
    with pytest.raises(BadRecordedExperiment, match="larger than"):
        read_experiment("-")
