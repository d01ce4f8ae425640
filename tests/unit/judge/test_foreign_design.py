"""How others measured: what a table says of boots, of the order of measuring, and of rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kdyno.base.arrays import Labels
from kdyno.judge.foreign.gathered import Gathered
from kdyno.judge.stats.observations import ReplicateSample
from kdyno.judge.verdicts.model import FileReport
from kdyno.judge.verdicts.of_files import gather, judge_files
from kdyno.measure.readers.formats.registry import BY_NAME
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.source import FileSource


def judged(tmp_path: Path, text: str, **options: object) -> FileReport:
    file = tmp_path / "data.csv"
    file.write_text(text)
    return judge_files([str(file)], JudgeRequest(**options))  # type: ignore[arg-type]


def rows(*texts: str, **options: object) -> Gathered:
    sources = [FileSource(f"file{number}.csv", f"file{number}", text.encode()) for number, text in enumerate(texts)]
    return gather(sources, BY_NAME["csv"], JudgeRequest(**options))  # type: ignore[arg-type]


def has(report: FileReport, words: str) -> bool:
    return any(words in notice for notice in report.notices)


def boots(gathered: Gathered, benchmark: int, variant: str) -> Labels | None:
    group = gathered.observations[benchmark].groups[variant]
    assert isinstance(group, ReplicateSample)
    return group.boots


def one_after_the_other(column: str, texts: list[str]) -> str:
    """Six rows of variant a, then six of b; the column says when."""
    lines = [f"{'ab'[at // 6]},{text},{100 + at % 3}.5\n" for at, text in enumerate(texts)]
    return f"kernel,{column},time_ns\n" + "".join(lines)


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        *[(name, [str(at) for at in range(12)]) for name in ("order", "position", "sequence", "seq")],
        ("timestamp", [str(1_700_000_000 + 60 * at) for at in range(12)]),
        ("started", [f"2025-03-01T10:{at:02d}:00" for at in range(12)]),
        ("date", [f"2025-03-01 10:{at:02d}" for at in range(12)]),
        ("time", [f"10:{at:02d}:07" for at in range(12)]),
        ("when", [str(1_700_000_000 + 60 * at) for at in range(12)]),
    ],
)
def test_runs_one_after_the_other_are_told_from_any_column_that_says_when(
    tmp_path: Path, column: str, texts: list[str]
) -> None:
    report = judged(tmp_path, one_after_the_other(column, texts))
    assert has(report, "b and a weren't interleaved, but one after the other")
    assert not has(report, "other days")
    taking_turns = [text for pair in zip(texts[:6], texts[6:], strict=True) for text in pair]
    assert not has(judged(tmp_path, one_after_the_other(column, taking_turns)), "interleaved")


def test_a_date_does_not_silence_that_the_rows_are_one_after_the_other(tmp_path: Path) -> None:
    report = judged(tmp_path, one_after_the_other("date", ["2025-03-01"] * 12))
    assert has(report, "the rows of b and a are one after the other: if the rows are in the order of measuring")


def test_rows_one_after_the_other_are_pointed_out_where_nothing_else_tells_the_order(tmp_path: Path) -> None:
    apart = "kernel,time_ns\n" + "".join(f"{kernel},{100 + at}\n" for kernel in "ab" for at in range(6))
    assert has(judged(tmp_path, apart), "if the rows are in the order of measuring, they weren't interleaved")
    in_turns = "kernel,time_ns\n" + "".join(f"{kernel},{100 + at}\n" for at in range(6) for kernel in "ab")
    assert not has(judged(tmp_path, in_turns), "interleaved")
    blocks = "kernel,block,time_ns\n" + "".join(f"{kernel},{at},{100 + at}\n" for kernel in "ab" for at in range(6))
    assert not has(judged(tmp_path, blocks), "interleaved")


def readings(count: int) -> list[tuple[str, int, float]]:
    """(variant, boot, value): 24 values of each of two variants that differ by 2 %, of so many boots each."""
    random = np.random.default_rng(9)
    return [
        (kernel, at * count // 24, float(f"{middle * random.normal(1, 0.003):.4f}"))
        for kernel, middle in (("a", 100.0), ("b", 98.0))
        for at in range(24)
    ]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_few_boots_come_with_every_reading_as_if_nothing_were_known_of_boots(count: int) -> None:
    lines = readings(count)
    with_boots = rows("kernel,boot,time_ns\n" + "".join(f"{kernel},{boot},{value}\n" for kernel, boot, value in lines))
    untold = rows("kernel,time_ns\n" + "".join(f"{kernel},{value}\n" for kernel, _, value in lines))
    [observed], [plain] = with_boots.observations, untold.observations
    assert observed.readings is not None
    assert len(observed.groups["a"].values) == count  # type: ignore[union-attr]
    for variant in "ab":
        group = plain.groups[variant]
        assert isinstance(group, ReplicateSample)
        assert observed.readings[variant].values.tolist() == group.values.tolist()
        assert observed.readings[variant].boots is None


@pytest.mark.parametrize("count", [1, 4, 8])
def test_a_truthful_boot_column_costs_no_verdict(tmp_path: Path, count: int) -> None:
    lines = readings(count)
    untold = judged(tmp_path, "kernel,time_ns\n" + "".join(f"{kernel},{value}\n" for kernel, _, value in lines))
    with_boots = judged(
        tmp_path, "kernel,boot,time_ns\n" + "".join(f"{kernel},{boot},{value}\n" for kernel, boot, value in lines)
    )
    assert untold.comparisons[0].verdict == with_boots.comparisons[0].verdict == "faster"


def test_five_boots_need_no_readings() -> None:
    text = "".join(f"{kernel},{at // 2},{100 + at}\n" for kernel in "ab" for at in range(10))
    assert rows("kernel,boot,time_ns\n" + text).observations[0].readings is None


def test_a_boot_has_one_label_in_all_benchmarks_and_its_own() -> None:
    lines = [f"{kernel},{boot},{test},1.5\n" for kernel in "ab" for test in "xy" for boot in (1, 2) for _ in range(3)]
    gathered = rows("kernel,boot,test,time_ns\n" + "".join(lines))
    first, other = boots(gathered, 0, "a"), boots(gathered, 0, "b")
    assert first is not None
    assert other is not None
    assert boots(gathered, 1, "a").tolist() == first.tolist()  # type: ignore[union-attr]
    assert len({*first.tolist(), *other.tolist()}) == 4
    assert boots(rows("kernel,time_ns\na,1\nb,2\n"), 0, "a") is None


def test_boots_of_different_files_are_different_boots() -> None:
    text = "kernel,boot,time_ns\na,1,1\na,1,3\nb,1,5\n"
    [observed] = rows(text, text.replace("3", "7")).observations
    group = observed.groups["a"]
    assert isinstance(group, ReplicateSample)
    assert group.values.tolist() == [2, 4]


def test_a_verdict_is_about_boots_images_or_kernels_as_far_as_the_table_says() -> None:
    def table(column: str, labels: list[int]) -> Gathered:
        lines = [f"{kernel},{label},{100 + at}\n" for kernel in "ab" for at, label in enumerate(labels)]
        return rows(f"kernel,{column},time_ns\n" + "".join(lines))

    assert table("note", [1, 1, 1, 1, 1, 1]).scope == "boots"
    assert table("boot", [1, 1, 1, 1, 1, 1]).scope == "boots"
    assert table("boot", [1, 2, 3, 4, 5, 6]).scope == "images"
    both = "".join(f"{k},{n},{n % 3},{100 + n}\n" for k in "ab" for n in range(6))
    assert rows("kernel,boot,layout,time_ns\n" + both).scope == "kernels"


def test_that_replicates_may_be_of_one_boot_comes_first(tmp_path: Path) -> None:
    text = "kernel,time_ns\n" + "".join(f"{kernel},{100 + at}\n" for at in range(6) for kernel in "ab")
    assert judged(tmp_path, text).notices[0] == (
        "replicates may be of one boot: nothing says how many boots these values come from. What changes from boot to "
        "boot isn't in the interval, and verdicts are about these boots; a column `boot` says more"
    )


@pytest.mark.parametrize(
    ("values", "step"),
    [
        (["0.31", "0.32", "0.30"], 0.01),
        (["0.30", "0.30", "0.30"], 0.1),  # a zero at the end may be rounding or not: what is certain
        (["8", "120", "31"], 1),
        (["1.5", "2.25", "1000.125"], 0.001),
        (["0.000000000001"], 1e-12),
        (["0.1234567890123456", "3.3333333333333335"], 0),  # nobody rounded these
    ],
)
def test_the_rounding_step_is_told_from_the_values_as_printed(values: list[str], step: float) -> None:
    text = "kernel,time_us\n" + "".join(f"{kernel},{value}\n" for kernel in "ab" for value in values)
    assert rows(text).observations[0].step == pytest.approx(step, rel=1e-9, abs=0)


def test_the_step_is_that_of_the_rows_and_in_the_benchmark_s_unit() -> None:
    text = "kernel,boot,value,unit\na,1,1.25,us\na,1,1.5,us\nb,1,1300,ns\nb,1,1355,ns\n"
    [observed] = rows(text).observations
    assert observed.unit == "us"
    assert observed.step == pytest.approx(0.01)


def test_values_of_kdyno_s_own_table_were_never_rounded() -> None:
    header = "run,variant,block,layout,position,seed,lane,benchmark,iteration,elapsed,work,value,unit\n"
    lines = [f"r,{name},{n},0,0,{n},wall,pipe,0,{n + 3},2,{(n + 3) / 2},ns\n" for name in "ab" for n in range(6)]
    gathered = rows(header + "".join(lines))
    assert gathered.observations[0].step == 0
    assert (gathered.scope, gathered.notes) == ("images", ())


def test_whole_numbers_of_things_are_exact_and_whole_microseconds_are_rounded() -> None:
    lines = "a,12\na,13\nb,14\nb,15\n"
    counts, times = (rows(f"kernel,{name}\n{lines}").observations[0] for name in ("instructions", "time_us"))
    assert (counts.quantity, counts.step) == ("count", 0)
    assert (times.quantity, times.step) == ("speed", 1)
