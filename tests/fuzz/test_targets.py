"""A second with every reader of foreign bytes, and three in `make test-long`; `make fuzz` lets coverage lead."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.check import Target, Trespass, check
from tests.fuzz.mutations import mutated
from tests.fuzz.targets import CORPUS, FINDINGS, TARGETS, findings, starts

NAMES = sorted(TARGETS)


@pytest.mark.parametrize("name", NAMES)
def test_a_reader_of_foreign_bytes_reads_them_or_says_why_not(name: str) -> None:
    try_out(TARGETS[name], share=3)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_reader_of_foreign_bytes_takes_three_times_as_many(name: str) -> None:
    try_out(TARGETS[name])


def try_out(target: Target, share: int = 1) -> None:
    """Let a reader read inputs that Hypothesis makes of what it starts from, which is looked up once: one of `share` of
    the target's examples.
    """
    inputs = mutated(starts(target), target.words)

    # The same inputs each time: a test that fails now and then tells nothing to who reads it.
    @settings(
        max_examples=target.examples // share,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def reads(data: st.DataObject) -> None:
        content = data.draw(inputs)
        with tempfile.TemporaryDirectory() as directory:
            check(target, content, Path(directory))

    reads()


def test_inputs_are_made_of_what_was_there_at_the_start_whatever_becomes_of_it_meanwhile() -> None:
    """Files that come to the tree while the test runs would let Hypothesis find its own draws inconsistent."""
    seeds: list[bytes] = []

    def more_each_time() -> list[bytes]:
        seeds.append(b"seed" * len(seeds))
        return list(seeds)

    try_out(Target("growing", lambda _path: None, more_each_time))


@pytest.mark.parametrize("name", NAMES)
def test_what_a_reader_starts_from_is_the_same_at_any_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = TARGETS[name].seeds()
    monkeypatch.setattr("time.time", lambda: 1e9)
    assert TARGETS[name].seeds() == seeds


@pytest.mark.parametrize("name", NAMES)
def test_what_a_reader_starts_from_is_sound(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    assert target.seeds()
    for seed in target.seeds():
        (tmp_path / target.file).write_bytes(seed)
        target.read(tmp_path / target.file)
        (tmp_path / target.file).unlink()


def test_the_corpus_in_the_tree_is_small_and_of_readers_that_there_are() -> None:
    kept = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert {path.relative_to(CORPUS).parts[0] for path in kept} <= TARGETS.keys()
    assert sum(path.stat().st_size for path in kept) < 300_000


@pytest.mark.parametrize("path", findings(), ids=lambda path: str(path.relative_to(FINDINGS)))
def test_what_once_broke_a_reader_does_so_no_more(path: Path, tmp_path: Path) -> None:
    check(TARGETS[path.parent.name], path.read_bytes(), tmp_path)


def _hogs(_path: Path) -> None:
    bytearray(1 << 30)


def _hangs(_path: Path) -> None:
    while True:
        pass


@pytest.mark.parametrize(
    ("read", "trespass"),
    [
        (_hogs, "more than 512 MB of memory"),
        (_hangs, "more than 0.1 s of CPU time"),
        (lambda path: (path.parent / "left").touch(), "it left"),
    ],
)
def test_a_reader_that_takes_too_much_is_found_out(
    read: Callable[[Path], object], trespass: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.fuzz.check.MOST_SECONDS", 0.1)
    with pytest.raises(Trespass, match=trespass):
        check(Target("bad", read, lambda: (b"",)), b"", tmp_path)
