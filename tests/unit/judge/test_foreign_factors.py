"""Columns that nobody used: what they would turn around if they were pooled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kdyno.cli.main import main
from kdyno.judge.foreign.gathered import Gathered
from kdyno.judge.stats.observations import Summary
from kdyno.judge.stats.verdict import BETTER
from kdyno.judge.verdicts.model import FileReport
from kdyno.judge.verdicts.of_files import gather, judge_files
from kdyno.measure.readers import errors
from kdyno.measure.readers.formats.registry import BY_NAME
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.source import FileSource


def judged(tmp_path: Path, text: str, **options: object) -> FileReport:
    file = tmp_path / "data.csv"
    file.write_text(text)
    return judge_files([str(file)], JudgeRequest(**options))  # type: ignore[arg-type]


def rows(*texts: str, form: str = "csv", names: tuple[str, ...] = ("a", "b"), **options: object) -> Gathered:
    sources = [FileSource(f"{name}.csv", name, text.encode()) for name, text in zip(names, texts, strict=False)]
    return gather(sources, BY_NAME[form], JudgeRequest(**options))  # type: ignore[arg-type]


def benchmarks(gathered: Gathered) -> list[str]:
    return [observed.benchmark for observed in gathered.observations]


def two_hosts(column: str = "host") -> str:
    """The new kernel is 1 % slower on each of two hosts, but more of its rows are from the faster one."""
    random = np.random.default_rng(5)
    lines = [f"kernel,{column},test,time\n"]
    for kernel, factor, runs in (("old", 1.0, {"fast": 10, "slow": 30}), ("new", 1.01, {"fast": 30, "slow": 10})):
        for host, middle in (("fast", 8.0), ("slow", 11.2)):
            lines += [
                f"{kernel},{host},pipe,{middle * factor * random.normal(1, 0.003):.5f}\n" for _ in range(runs[host])
            ]
    return "".join(lines)


def test_a_kernel_that_is_slower_on_each_of_two_hosts_is_never_called_faster(tmp_path: Path) -> None:
    report = judged(tmp_path, two_hosts())
    effects = {
        comparison.benchmark: comparison.estimate.ratio - 1 for comparison in report.comparisons if comparison.estimate
    }
    assert effects == {
        "pipe, host fast": pytest.approx(0.01, abs=0.003),
        "pipe, host slow": pytest.approx(0.01, abs=0.003),
    }
    assert not {comparison.verdict for comparison in (*report.comparisons, *report.geometric_means)} & BETTER
    assert any("each value of host is compared separately (fast, slow)" in notice for notice in report.notices)


def test_hosts_are_pooled_where_the_user_says_so_and_then_they_turn_the_verdict_around(tmp_path: Path) -> None:
    [pooled] = judged(tmp_path, two_hosts(), pooled=("host",)).comparisons
    assert pooled.estimate is not None
    # Half of the rows change hosts: 1.01 * (8 / 11.2) ** 0.5
    assert pooled.estimate.ratio - 1 == pytest.approx(-0.147, abs=0.003)


def test_marches_are_compared_within_each_of_three_machines(tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    machines = {"atom": 90.0, "i7": 31.0, "ryzen": 12.0}
    lines = [
        f"{host},{march},{middle * factor * random.normal(1, 0.002):.4f}\n"
        for at, (host, middle) in enumerate(machines.items())
        for march, factor in (("generic", 1.0), ("v3", 0.98))
        for _ in range(6 if (march == "v3") == (at == 2) else 12)
    ]
    report = judged(tmp_path, "hostname,march,time\n" + "".join(lines))
    assert report.variants == ("generic", "v3")
    effects = {
        comparison.benchmark: comparison.estimate.ratio - 1 for comparison in report.comparisons if comparison.estimate
    }
    assert list(effects) == ["time, hostname atom", "time, hostname i7", "time, hostname ryzen"]
    assert list(effects.values()) == [pytest.approx(-0.02, abs=0.004)] * 3


def test_a_column_of_unknown_meaning_that_varies_within_a_variant_is_refused_with_both_options(tmp_path: Path) -> None:
    with pytest.raises(errors.UndecidedColumn) as caught:
        judged(tmp_path, two_hosts("rack place"))
    assert str(caught.value) == "column 'rack place' has 2 values (fast, slow) within variant 'old' of 'pipe'"
    assert caught.value.advice == (
        "choose: --benchmark 'test,rack place' compares each of its values separately, "
        "--pool 'rack place' takes them all together"
    )


def test_both_options_that_the_error_names_are_obeyed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "data.csv"
    file.write_text(two_hosts("rack"))
    assert main(["judge", str(file)]) == 1
    assert (
        "choose: --benchmark test,rack compares each of its values separately, --pool rack" in capsys.readouterr().err
    )
    assert main(["judge", str(file), "--benchmark", "test,rack"]) == 0
    assert "pipe, rack slow" in capsys.readouterr().out
    assert main(["judge", str(file), "--pool", "rack"]) == 0
    assert "rack slow" not in capsys.readouterr().out


def test_without_a_column_for_the_benchmark_the_option_names_the_one_column() -> None:
    text = "kernel,mood,time\n" + "".join(f"{kernel},{mood},1\n" for kernel in "ab" for mood in "xyxy")
    with pytest.raises(errors.UndecidedColumn, match="2 values") as caught:
        rows(text)
    assert "--benchmark mood compares" in caught.value.advice
    assert benchmarks(rows(text, columns={"benchmark": "mood"})) == ["x", "y"]


def test_groups_that_belong_to_one_variant_each_are_taken_for_boots_by_the_error() -> None:
    lines = [f"{kernel},{kernel}{session},{run}.5\n" for kernel in "ab" for session in range(3) for run in range(1, 5)]
    with pytest.raises(errors.UndecidedColumn) as caught:
        rows("kernel,session,time\n" + "".join(lines))
    assert caught.value.advice.startswith("choose: --boot session counts each of its values once, --pool session")


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("attempt", [str(number) for number in range(1, 7)]),  # counts
        ("token", ["x1", "x2", "x3", "x4", "x5", "x6"]),  # unique
        ("distro", ["debian"] * 6),  # constant
        ("load", ["0.31", "0.32", "0.31", "0.30", "0.31", "0.32"]),  # measured
        ("rss_kb", ["4", "4", "8", "8", "4", "4"]),  # measured, by its unit
        ("page-faults", ["1", "2", "1", "2", "1", "2"]),  # counted
        ("comment", ["", "", "odd", "", "odd", ""]),
    ],
)
def test_columns_that_are_no_factors_stop_nobody(column: str, values: list[str]) -> None:
    lines = [f"{kernel},{text},{100 + at}\n" for kernel in "ab" for at, text in enumerate(values)]
    gathered = rows(f"kernel,{column},time\n" + "".join(lines), columns={"variant": "kernel"}, values=("time",))
    assert benchmarks(gathered) == ["time"]
    assert f"columns that weren't used: {column}" in gathered.notes


def test_numbers_that_begin_anew_in_each_boot_are_no_factor() -> None:
    lines = [f"{kernel},{boot},{at},{100 + at}\n" for kernel in "ab" for boot in range(6) for at in range(1, 5)]
    assert benchmarks(rows("kernel,boot,turn,time\n" + "".join(lines))) == ["time"]


def test_what_is_one_value_in_each_block_is_compared_within_it_anyway() -> None:
    lines = [f"{kernel},{block},{'ab'[block % 2]},{100 + block}\n" for kernel in "xy" for block in range(8)]
    assert benchmarks(rows("kernel,block,host,time\n" + "".join(lines))) == ["time"]


@pytest.mark.parametrize("column", ["threads", "clients", "size", "stride", "cpu", "cflags", "Host Name"])
def test_known_circumstances_become_part_of_the_benchmark_s_name(column: str) -> None:
    lines = [f"{kernel},pipe,{level},1.5\n" for kernel in "ab" for level in (1, 8) for _ in range(4)]
    column = column.replace("Host Name", "Hostname")
    gathered = rows(f"kernel,test,{column},time\n" + "".join(lines))
    assert benchmarks(gathered) == [f"pipe, {column} 1", f"pipe, {column} 8"]
    assert f"--pool {column} takes all together" in gathered.notes[0]


def test_one_row_for_each_host_may_be_a_block_as_the_note_says() -> None:
    text = "kernel,host,time\n" + "".join(f"{kernel},h{host},{host + 2}\n" for kernel in "ab" for host in range(5))
    assert "--block host compares within each" in rows(text).notes[0]
    assert rows(text, columns={"block": "host"}).observations[0].benchmark == "time"


def test_a_command_is_the_benchmark_where_something_else_is_the_variant() -> None:
    assert benchmarks(rows("kernel,command,time\na,ls,1\nb,ls,2\n")) == ["ls"]
    assert rows("command,time\nls,1\ndir,2\n").variants == ("ls", "dir")


def test_several_files_are_variants_even_if_each_has_marches_in_it() -> None:
    text = "march,time\n" + "v1,1.5\nv2,1.25\n" * 4
    gathered = rows(text, text)
    assert gathered.variants == ("a", "b")
    assert benchmarks(gathered) == ["time, march v1", "time, march v2"]
    assert rows(text, text, columns={"variant": "march"}).variants == ("v1", "v2")


def test_a_file_that_does_not_say_its_host_is_not_compared_with_hosts_without_a_word() -> None:
    text = "host,time\n" + "x,1.5\ny,2.5\n" * 3
    gathered = rows(text, "time\n1.5\n1.6\n")
    assert gathered.confounded == (
        "host differs from variant to variant (a only with x, y; b only with (none)): its effect can't be told from "
        "theirs",
    )


def test_the_column_with_a_unit_is_the_value_among_several_numbers() -> None:
    lines = [f"{kernel},{jobs},{jobs * 10}\n" for kernel in "ab" for jobs in (1, 2) for _ in range(3)]
    gathered = rows("kernel,phase,ops_per_sec\n" + "".join(lines), pooled=("phase",))
    assert (gathered.observations[0].unit, gathered.columns["pooled"]) == ("ops/s", "phase")
    with pytest.raises(errors.UndecidedColumn, match="column 'phase'"):
        rows("kernel,phase,ops_per_sec\n" + "".join(lines))


def test_hosts_that_differ_with_the_variant_are_the_first_caveat_but_for_boots(tmp_path: Path) -> None:
    lines = [f"{kernel},{host},{100 + at}\n" for kernel, host in (("A", "x"), ("B", "y")) for at in range(6)]
    report = judged(tmp_path, "kernel,host,time\n" + "".join(lines))
    assert report.notices[0].startswith("replicates may be of one boot: nothing says")
    assert report.notices[1] == (
        "host differs from variant to variant (A only with x, B only with y): its effect can't be told from theirs"
    )
    assert [comparison.benchmark for comparison in report.comparisons] == ["time"]


def test_a_cell_without_a_value_is_a_value_of_its_own() -> None:
    lines = [f"{kernel},{host},1.5\n" for kernel in "ab" for host in ("", "x") for _ in range(4)]
    assert benchmarks(rows("kernel,host,time\n" + "".join(lines))) == ["time, host (none)", "time, host x"]


def test_several_columns_of_a_benchmark_need_values_in_all_of_them() -> None:
    with pytest.raises(errors.EmptyCell, match="line 3, column 'mode'"):
        rows("kernel,test,mode,time\na,t,x,1\nb,t,,1\n", columns={"benchmark": "test,mode"})


MEANS = "kernel,test,host,mean,sd,n,unit\na,x,h,10,1,9,s\na,x,i,20,1,9,s\nb,x,h,11,1,9,s\nb,x,i,22,1,9,s\n"


def test_a_table_of_means_is_compared_within_each_host() -> None:
    gathered = rows(MEANS, form="table")
    assert benchmarks(gathered) == ["x, host h", "x, host i"]
    assert gathered.observations[1].groups == {"a": Summary(20, 1, 9), "b": Summary(22, 1, 9)}


def test_rows_of_means_that_differ_in_an_unknown_column_are_refused_with_the_option() -> None:
    with pytest.raises(errors.SummaryColumn) as caught:
        rows(MEANS.replace("host", "mood"), form="table")
    assert caught.value.advice == "give --benchmark test,mood to compare each of its values separately"
    gathered = rows(MEANS.replace("host", "mood"), form="table", columns={"benchmark": "test,mood"})
    assert benchmarks(gathered) == ["x, mood h", "x, mood i"]


def test_a_table_of_means_says_which_hosts_differ_with_the_variant() -> None:
    apart = "kernel,test,host,mean,sd,n\na,x,h,10,1,9\nb,x,i,20,1,9\n"
    assert rows(apart, form="table").confounded[0].startswith("host differs from variant to variant (a only with h")
    of_tests = "kernel,test,host,mean,sd,n\na,x,h,10,1,9\nb,x,h,20,1,9\na,y,i,20,1,9\n"
    assert rows(of_tests, form="table").confounded == ()


def test_cells_of_means_are_told_apart_by_all_columns_before_them() -> None:
    text = (
        "| test | host | a | b |\n|--|--|--|--|\n| x | h | 1.0 (0.1) | 1.1 (0.1) |\n| x | i | 2.0 (0.1) | 2.2 (0.1) |\n"
    )
    assert benchmarks(rows(text, form="table", n="9")) == ["x, host h", "x, host i"]
    with pytest.raises(errors.SummaryColumn) as caught:
        rows(text.replace("host", "mood"), form="table", n="9")
    assert "--benchmark test,mood" in caught.value.advice
    gathered = rows(text.replace("host", "mood"), form="table", n="9", columns={"benchmark": "test,mood"})
    assert benchmarks(gathered) == ["x, mood h", "x, mood i"]


def test_only_a_benchmark_may_have_several_columns() -> None:
    with pytest.raises(errors.NoSuchColumn, match="no column 'kernel,cc'"):
        rows("kernel,cc,time\na,gcc,1\nb,gcc,2\n", columns={"variant": "kernel,cc"})


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"columns": {"benchmark": "cc"}, "pooled": ("cc",)}, "by --benchmark and by --pool"),
        ({"columns": {"variant": "cc", "block": "cc"}}, "by --variant and by --block"),
        ({"columns": {"variant": "kernel"}, "values": ("time", "time")}, "by --value and by --value"),
    ],
)
def test_a_column_that_is_named_twice_is_refused(options: dict[str, Any], names: str) -> None:
    with pytest.raises(errors.TwoMeanings, match=names):
        rows("kernel,cc,time\na,gcc,1\nb,gcc,2\n", **options)
