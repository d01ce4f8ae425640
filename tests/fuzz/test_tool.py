"""What tools/fuzz does around the fuzzer: a process for each reader, and few small inputs in the tree."""

from __future__ import annotations

import os
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = spec_from_loader("fuzz_tool", SourceFileLoader("fuzz_tool", str(CHECKOUT / "tools" / "fuzz")))
    assert spec and spec.loader
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fuzz_tool", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(module, "CHECKOUT", tmp_path)
    return module


def test_the_newest_small_inputs_go_into_the_tree_as_many_as_fit(tool: ModuleType, tmp_path: Path) -> None:
    corpus = tmp_path / "kept" / "corpus" / "stream"
    corpus.mkdir(parents=True)
    sizes = {
        "oldest": 901,
        "old": 100,
        "large": tool.LONGEST_KEPT + 1,
        "seed-0": 1,
        "empty": 0,
        "new": 1000,
        "newer": 999,
    }
    for age, (name, size) in enumerate({**sizes, "newest": 101}.items()):
        (corpus / name).write_bytes(b"x" * size)
        os.utime(corpus / name, (age, age))
    place = tmp_path / "tests" / "fuzz" / "corpus" / "stream"
    place.mkdir(parents=True)
    (place / "before").touch()
    assert tool.keep("stream") == "4 inputs of 2,200 bytes"
    assert {path.name for path in place.iterdir()} == {"old", "new", "newer", "newest"}


def test_a_reader_that_was_never_fuzzed_keeps_nothing(tool: ModuleType) -> None:
    assert tool.keep("stream") == "0 inputs of 0 bytes"


def test_all_readers_get_their_turn_and_what_breaks_one_ends_no_other(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fuzz(name: str, options: list[str]) -> None:
        os.write(1, f"fuzzed {' '.join(options)}\n".encode())
        if name == "bad":
            raise ValueError("planted")

    module = ModuleType("tests.fuzz.led_by_coverage")
    module.fuzz = fuzz  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tests.fuzz.led_by_coverage", module)
    ends = {turn.name: status for turn, status in tool.in_turn(["a", "bad", "c"], lambda name: [f"-{name}"], 2)}
    assert ends == {"a": 0, "bad": 1, "c": 0}
    for name in ends:
        log = (tool.KEPT / f"{name}.log").read_text()
        assert f"fuzzed -artifact_prefix={tool.KEPT}/findings/{name}/ -{name}" in log
        assert ("ValueError: planted" in log) == (name == "bad")
