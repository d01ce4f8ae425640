"""Records merged to one: every count is there once, and what can't be added up is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kdyno.kernel.vmlinux.checks import RecordOfNoImage
from kdyno.measure.guest.pmu_limits import MOST
from kdyno.measure.guest.pmu_parts import BLOCK, ContextCounts, Function, Region
from kdyno.measure.guest.pmu_record import PmuRecord, read_pmu_record
from kdyno.measure.guest.pmu_write import encode, encode_body, write_pmu_record
from kdyno.profile.balance import weights
from kdyno.profile.flat import flat, totals
from kdyno.profile.merge import MergedTooLarge, NoBenchmarkNames, NotAlike, Read, merge
from kdyno.profile.select import sum_contexts
from kdyno.profile.stacks import stacks
from tests.unit import pmu_specimen
from tests.unit.pmu_specimen import FUNCTIONS, WORK, iteration, specimen

HERE = Path("r.kpmu")


def merged(*records: PmuRecord) -> PmuRecord:
    return merge([Read(HERE, record) for record in records])


def other(**changes: Any) -> PmuRecord:
    return replace(specimen(), **changes)


def all_regions(record: PmuRecord) -> list[Region]:
    return list(record.regions.values())


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    write_pmu_record(replace(specimen(), merged=3, qemu_api=4), tmp_path / "r")
    record = read_pmu_record(tmp_path / "r")
    assert (record.merged, record.qemu_api) == (3, 4)
    assert encode_body(record) == pmu_specimen.encode_body(specimen())
    assert encode(record) == (tmp_path / "r").read_bytes()


def test_two_records_of_one_kernel_add_up_by_benchmark() -> None:
    once, twice = merged(specimen()), merged(specimen(), specimen())
    assert twice.merged == 2 and twice.opened == 6
    for index, region in once.regions.items():
        sums = {
            context: {event: 2 * count for event, count in row.items()} for context, row in totals(once, region).items()
        }
        assert totals(twice, twice.regions[index]) == sums
        assert list(twice.regions[index].iterations) == list(range(2 * len(region.iterations)))
    of_one, of_two = sum_contexts(all_regions(once)), sum_contexts(all_regions(twice))
    assert np.array_equal(of_two.blocks["count"], 2 * of_one.blocks["count"])
    assert np.array_equal(of_two.branches["count"], 2 * of_one.branches["count"])
    assert stacks(twice, all_regions(twice)) == {path: 2 * n for path, n in stacks(once, all_regions(once)).items()}
    assert [row.share for row in flat(twice, all_regions(twice))] == [
        row.share for row in flat(once, all_regions(once))
    ]


def test_sequences_of_blocks_are_left_out_and_the_rest_adds_up(tmp_path: Path) -> None:
    write_pmu_record(merged(pmu_specimen.traced(), pmu_specimen.traced()), tmp_path / "r")
    record = read_pmu_record(tmp_path / "r")
    assert record.events == "all" and not any(region.trace for region in record.regions.values())
    assert record.opened == 2 * specimen().opened


def test_what_ran_outside_of_regions_adds_up_if_all_records_know_it(tmp_path: Path) -> None:
    blocks = np.array([(WORK, 3, 6, 8, 5), (WORK + 8, 1, 0, 5, 2)], BLOCK)
    one, another = other(unmeasured=blocks), other(unmeasured=blocks[1:])
    both = merged(one, another)
    assert both.unmeasured is not None and both.unmeasured["count"].tolist() == [5, 4]
    write_pmu_record(both, tmp_path / "r")
    again = read_pmu_record(tmp_path / "r")
    assert again.unmeasured is not None and np.array_equal(again.unmeasured, both.unmeasured)
    assert merged(one, specimen()).unmeasured is None


def test_merging_merged_records_counts_their_boots() -> None:
    assert merged(merged(specimen(), specimen()), specimen()).merged == 3


def test_benchmarks_go_by_name_and_functions_by_place() -> None:
    """The other record numbers both otherwise, and has another test."""
    pipe = specimen().regions[2]
    functions = (FUNCTIONS[0], FUNCTIONS[2], Function(FUNCTIONS[6].address + 0x1000, 0x10, "more"))
    context = ContextCounts(pipe.contexts[0].blocks, pipe.contexts[0].branches, {1: pipe.contexts[0].functions[2]})
    region = Region(0, pipe.iterations, (context, *pipe.contexts[1:]), (replace(pipe.stacks[0], function=1),))
    record = merged(
        specimen(), other(functions=functions, regions={0: region}, benchmarks=("lat_pipe.roundtrip", "bw_pipe"))
    )
    assert record.benchmarks == ("lat_syscall.null", "lat_syscall.read", "lat_pipe.roundtrip", "bw_pipe")
    assert [function.name for function in record.functions] == [*(known.name for known in FUNCTIONS), "more"]
    assert {index: len(region.iterations) for index, region in record.regions.items()} == {0: 2, 2: 2}
    assert flat(record, [record.regions[2]])[0].events["instructions"] == 24


def test_a_benchmark_weighs_the_same_however_often_it_was_recorded() -> None:
    (by_region,) = weights([merged(specimen(), other(regions={0: specimen().regions[0]}))])
    (once,) = weights([specimen()])
    assert by_region[0] == once[0] / 2 and by_region[2] == once[2]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"image": "cd" * 32}, "the vmlinux of r.kpmu is abababababab, of r.kpmu it is cdcdcdcdcdcd"),
        ({"family": "znver4"}, "the CPU family"),
        ({"events": "all"}, "--events"),
        ({"names": ("instructions", "calls", "returns")}, "the list of events"),
        ({"plugin": "9.9.9"}, "the plugin of"),
        ({"qemu_api": 4}, "QEMU's plugin interface"),
    ],
)
def test_records_that_were_not_made_alike_are_refused(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(NotAlike, match=what):
        merged(specimen(), other(**changes))


def test_records_of_no_kernel_or_without_names_are_refused() -> None:
    with pytest.raises(RecordOfNoImage):
        merged(other(image=None))
    with pytest.raises(NoBenchmarkNames):
        merged(specimen(), other(benchmarks=("lat_syscall.null",)))


def test_more_than_a_reader_takes_is_refused() -> None:
    region = specimen().regions[0]
    many = {number: iteration((1, 0, 0), (0, 0, 0), (0, 0, 0)) for number in range(MOST["iterations"] // 2 + 1)}
    record = other(regions={0: replace(region, iterations=many)})
    with pytest.raises(MergedTooLarge, match="have 65,538 iterations: at most 65,536 are possible"):
        merged(record, record)


def test_a_body_that_a_reader_would_not_inflate_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MOST, "body_bytes", 100)
    with pytest.raises(MergedTooLarge, match="body bytes"):
        merged(specimen())


def test_empty_contexts_stay_empty() -> None:
    context = merged(specimen(), specimen()).regions[2].contexts[1]
    assert not len(context.blocks) and context.blocks.dtype == BLOCK and not context.functions
