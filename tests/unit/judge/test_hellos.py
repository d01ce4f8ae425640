"""What agents say of a kernel: those that align returns are named where it matters, and those that aren't at rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kdyno.base.lanes import LaneName
from kdyno.judge.verdicts.hellos import find_aligning, find_busy, read_hellos
from kdyno.judge.verdicts.looks import look_of
from kdyno.judge.verdicts.notices import run_notices
from kdyno.measure.guest.stream_records import HelloRecord
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import BootRecord
from tests.unit import specimen

ALIGNS = "Mitigation: Aligned branch/return thunks"
BASELINE, SECOND, THIRD = specimen.VARIANTS


def hello(**fields: Any) -> bytes:
    record = {"type": "hello", "agent": "0", "kernel": "6", "lane": "model", "icount_shift": 5, "cpus": 1, "init": True}
    return json.dumps({"v": 1, **record, **fields}).encode() + b"\n"


def boots(directory: Path, streams: dict[str, bytes]) -> tuple[list[BootRecord], Artefacts]:
    """A boot of each variant; `streams` by variant is what it left."""
    artefacts, kept = Artefacts(directory / "artefacts"), []
    for boot in specimen.boot_records(specimen.run_record(blocks=1), iterations=1, failed=None):
        path = directory / "stream"
        path.write_bytes(streams.get(boot.variant, hello()))
        kept.append(boot.model_copy(update={"stream": artefacts.put(path)}))
    return kept, artefacts


def test_the_variants_whose_kernels_align_returns_are_named(tmp_path: Path) -> None:
    kept, artefacts = boots(
        tmp_path,
        {
            BASELINE: hello(indirect_target_selection=ALIGNS),
            SECOND: hello(indirect_target_selection="Vulnerable"),
            THIRD: hello(indirect_target_selection="Not affected"),
        },
    )
    assert find_aligning(read_hellos(kept, artefacts)) == (BASELINE,)


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        b"\n",
        b"{}\n",
        b"\xff\xfe\n",
        hello()[:-1],
        hello(indirect_target_selection=7),
        hello(indirect_target_selection="aligned " * 1000),
        b'{"v":1,"type":"end","records":0}\n',
        b"aligned" * 1_000_000,
    ],
)
def test_a_stream_that_is_no_agents_says_nothing_and_is_no_error(tmp_path: Path, stream: bytes) -> None:
    kept, artefacts = boots(tmp_path, {BASELINE: stream})
    assert find_aligning(read_hellos(kept, artefacts)) == ()


def test_a_stream_that_is_gone_or_damaged_says_nothing(tmp_path: Path) -> None:
    kept, artefacts = boots(tmp_path, dict.fromkeys(specimen.VARIANTS, hello(indirect_target_selection=ALIGNS)))
    first, *_ = (boot for boot in kept if boot.variant == BASELINE and boot.stream)
    assert first.stream is not None
    file = artefacts.get(first.stream)
    file.chmod(0o600)
    file.write_bytes(b"other")
    assert find_aligning(read_hellos(kept, artefacts)) == ()
    assert find_aligning(read_hellos(kept, Artefacts(tmp_path / "elsewhere"))) == ()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ((BASELINE,), f"too: {BASELINE} aligns returns against indirect target selection"),
        ((BASELINE, SECOND), f"too: {BASELINE}, {SECOND} align returns"),
    ],
)
def test_a_run_without_layouts_says_that_counts_depend_on_them(names: tuple[str, ...], words: str) -> None:
    [notice] = notices(names, "model", 0)
    assert words in notice and notice.startswith("layout wasn't sampled") and "`layouts = 6`" in notice


def notices(names: tuple[str, ...], lane: LaneName, layouts: int) -> list[str]:
    run = specimen.run_record(blocks=1, lane=lane).model_copy(update={"layouts": layouts})
    kept = specimen.boot_records(run, iterations=1, failed=None)
    hellos = {name: HelloRecord.model_validate_json(hello(indirect_target_selection=ALIGNS)) for name in names}
    return run_notices(run, kept, look_of(run, kept), (), [], hellos)


def test_nothing_is_said_of_addresses_where_they_do_not_decide_what_is_measured() -> None:
    """Not of times, not where layouts are sampled, and not where no kernel aligns anything."""
    assert notices((BASELINE,), "model", 6) == []
    for said in (notices((BASELINE,), "wall", 0), notices((), "model", 0)):
        assert len(said) == 1 and "indirect" not in said[0]


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ({BASELINE: 1}, f"{BASELINE}: a task of the kernel's was still at work when the benchmarks began"),
        ({BASELINE: 3, SECOND: 2}, f"{BASELINE}, {SECOND}: 3 tasks of the kernel's were still at work"),
    ],
)
def test_a_guest_that_is_not_at_rest_is_named(tmp_path: Path, tasks: dict[str, int], words: str) -> None:
    kept, artefacts = boots(tmp_path, {name: hello(busy_tasks=number) for name, number in tasks.items()})
    hellos = read_hellos(kept, artefacts)
    assert find_busy(hellos) == tasks
    run = specimen.run_record(blocks=1).model_copy(update={"layouts": 6})
    [notice] = run_notices(run, kept, look_of(run, kept), (), [], hellos)
    assert notice.startswith(words)
