"""`kdyno judge FILE`, from files to the report."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from kdyno.base.lanes import LaneName
from kdyno.base.measurement import Direction
from kdyno.cli.main import main
from kdyno.judge.foreign.caveats import COLD_P, count_cold
from kdyno.judge.foreign.parts import mark_parts
from kdyno.judge.stats.observations import Observations, ReplicateSample
from kdyno.judge.verdicts.model import FileReport, to_json
from kdyno.judge.verdicts.of_files import MOST_VALUES, judge_files
from kdyno.measure.readers import errors
from kdyno.measure.readers.request import JudgeRequest
from kdyno.report.data import write_csv
from tests.unit import specimen
from tests.unit.growth import calls

DATA = Path(__file__).parents[2] / "data" / "foreign"


def judged(tmp_path: Path, text: str, **options: object) -> FileReport:
    file = tmp_path / "data.csv"
    file.write_text(text)
    return judge_files([str(file)], JudgeRequest(**options))  # type: ignore[arg-type]


def noisy(variants: dict[str, float], n: int = 12, seed: int = 1) -> str:
    """CSV with a block column; each variant is so many times 100 ns."""
    random = np.random.default_rng(seed)
    lines = [
        f"{block},{name},{100 * factor * random.normal(1, 0.003):.6f}\n"
        for block in range(n)
        for name, factor in variants.items()
    ]
    return "block,variant,time_ns\n" + "".join(lines)


def has(report: FileReport, *words: str) -> bool:
    return any(all(word in notice for word in words) for notice in report.notices)


@pytest.mark.parametrize("lane", ["model", "wall"])
def test_kdyno_s_own_csv_is_read_back_to_the_same_verdicts(tmp_path: Path, lane: LaneName) -> None:
    run = specimen.run_record(lane=lane)
    kept = {"lat_syscall.null", "lat_pipe.roundtrip", "lat_proc.fork", "bw_pipe.64k", "bw_unix.64k"}
    boots = [
        boot.model_copy(update={"samples": tuple(sample for sample in boot.samples if sample.benchmark in kept)})
        for boot in specimen.boot_records(run)
    ]
    own = specimen.report(tmp_path, run, boots)
    text = io.StringIO()
    write_csv(own, text)
    report = judged(tmp_path, text.getvalue(), baseline=own.baseline, margin=own.margin, alpha=own.alpha)
    measured = {comparison.benchmark for comparison in report.comparisons}
    ours = [comparison for comparison in own.comparisons if comparison.benchmark in measured]
    theirs = {(comparison.variant, comparison.benchmark): comparison for comparison in report.comparisons}
    assert len(ours) == len(theirs) == len(kept) * 2
    for expected in ours:
        again = theirs[expected.variant, expected.benchmark]
        assert (again.verdict, again.direction, again.dropped) == (
            expected.verdict,
            expected.direction,
            expected.dropped,
        )
        assert again.estimate == expected.estimate
        assert again.p_adjusted == expected.p_adjusted
    assert not has(report, "boot to boot")


def test_the_published_table_is_analysed_and_the_qs_that_do_not_follow_are_flagged() -> None:
    report = judge_files([str(DATA / "compiler_patch.csv")], JudgeRequest(), [str(DATA / "compiler_patch_claims.csv")])
    wrong = [notice for notice in report.notices if "does not follow" in notice]
    assert [notice.split(":")[0].split(", ", 1)[1] for notice in wrong] == [
        "line 4, Ryzen 5950X",
        *(f"line {line}, i7-4790K" for line in (5, 6, 7)),
    ]
    assert "Ryzen 5950X: x86-64-v3 against Zen 3: Q 9.6524 does not follow" in wrong[0]
    assert "this Q would fit N100, x86-64-v3 against Alder Lake" in wrong[0]
    assert has(report, "5 of 9 published statistics follow")
    assert report.baseline == "generic"
    f = {analysis.benchmark: analysis.one_way.rows[0].f for analysis in report.analyses}
    means = {
        "Ryzen 5950X": (79.8, 79.456, 79.44),
        "i7-4790K": (344.28, 342.035, 342.189),
        "N100": (589.457, 589.217, 588.797),
    }
    sds = {
        "Ryzen 5950X": (0.1076, 0.0772, 0.0912),
        "i7-4790K": (0.6455, 0.4971, 0.2415),
        "N100": (0.1596, 0.1382, 0.1532),
    }
    for machine, three in means.items():
        between = 12 * np.var(three, ddof=1)
        assert f[machine] == pytest.approx(between / np.mean(np.square(sds[machine])))
    for analysis in report.analyses:
        [tukey] = (pair for pair in analysis.pairs if pair.method == "tukey")
        assert len(tukey.tests) == 3
    [alike] = (
        test for test in report.analyses[0].pairs[0].tests if {test.first, test.second} == {"x86-64-v3", "CPU family"}
    )
    assert alike.statistic == pytest.approx(0.597, abs=0.001)
    assert alike.p == pytest.approx(0.907, abs=0.001)


def test_the_same_table_in_markdown_says_the_same() -> None:
    report = judge_files([str(DATA / "compiler_patch.md")], JudgeRequest(n="12", unit="s"))
    plain = judge_files([str(DATA / "compiler_patch.csv")], JudgeRequest())
    assert [comparison.estimate for comparison in report.comparisons] == [
        comparison.estimate for comparison in plain.comparisons
    ]
    assert has(report, "line 15", "Zen 3", "does not follow")
    assert has(report, "5 of 9 published statistics follow")


def timed(path: Path, real: float) -> None:
    """What `time` prints of five runs."""
    path.write_text("".join(f"\nreal\t0m{real + i / 99:.3f}s\nuser\t0m3.{i}00s\nsys\t0m0.2{i}0s\n" for i in range(5)))


def test_processor_time_is_a_part_of_the_time_that_a_program_took(tmp_path: Path) -> None:
    timed(tmp_path / "a", 4.0)
    timed(tmp_path / "b", 5.0)
    report = judge_files([str(tmp_path / "a"), str(tmp_path / "b")], JudgeRequest())
    [mean] = report.geometric_means
    assert mean.left_out == ("time user", "time sys")
    assert mean.estimate and mean.estimate.ratio == pytest.approx(0.8, abs=0.01)
    assert not has(report, "geometric mean")  # one benchmark is left, and no mean is shown


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        ("build real,build sys,video real,video user", ["build sys", "video user"]),
        ("elapsed,user time,system time", ["user time", "system time"]),
        ("Elapsed Time,System Time", ["System Time"]),
        ("build real,video sys", []),
        ("user,sys", []),
        ("elapsed,system calls,users", []),
    ],
)
def test_a_part_is_known_by_its_name_beside_the_name_of_the_whole(names: str, parts: list[str]) -> None:
    observed = [Observations(name, "s", "lower", name, {}) for name in names.split(",")]
    assert [one.benchmark for one in mark_parts(observed) if one.is_part] == parts


def test_a_mean_without_the_parts_says_so(tmp_path: Path) -> None:
    names = ("build real", "build sys", "video real")
    rows = [f"{b},{v},{n},{100 + b + 0.1 * len(n)}" for b in range(5) for v in ("a", "b") for n in names]
    report = judged(tmp_path, "\n".join(["block,variant,benchmark,time_s", *rows]) + "\n")
    assert has(report, "build sys is a part of what other benchmarks measure, and not in the geometric mean")


def test_claims_are_recognised_among_the_files() -> None:
    report = judge_files([str(DATA / "compiler_patch.csv"), str(DATA / "compiler_patch_claims.csv")], JudgeRequest())
    assert has(report, "5 of 9 published statistics follow")


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("5950X,v3 vs Zen 9,1.0,0.5", "no variant like 'Zen 9' in Ryzen 5950X"),
        ("M1,v3 vs Zen 3,1.0,0.5", "no benchmark like 'M1'"),
        ("5950X,v3,1.0,0.5", "not a pair"),
        ("5950X,v3 vs Zen 3,big,0.5", "Q 'big' or p '0.5' is not a number"),
    ],
)
def test_a_claim_that_is_not_understood_is_named(tmp_path: Path, row: str, says: str) -> None:
    file = tmp_path / "claims.csv"
    file.write_text(f"machine,pair,Q,p\n{row}\n")
    with pytest.raises(errors.NoClaim) as caught:
        judge_files([str(DATA / "compiler_patch.csv")], JudgeRequest(), [str(file)])
    assert "line 2" in str(caught.value)
    assert says in str(caught.value)


def test_claims_without_means_are_refused() -> None:
    with pytest.raises(errors.OnlyStatistics):
        judge_files([str(DATA / "compiler_patch_claims.csv")], JudgeRequest())


def test_the_published_gains_of_stress_ng_come_out() -> None:
    report = judge_files([str(DATA / "stress_ng_published.csv")], JudgeRequest())
    gain = {
        comparison.benchmark: comparison.estimate.ratio - 1 for comparison in report.comparisons if comparison.estimate
    }
    assert gain["af-alg"] == pytest.approx(0.027, abs=0.0005)
    assert gain["mmap"] == pytest.approx(0.016, abs=0.0006)
    assert gain["pipe"] == pytest.approx(0.013, abs=0.0005)
    verdict = {comparison.benchmark: comparison.verdict for comparison in report.comparisons}
    assert verdict == {"af-alg": "faster", "pipe": "faster", "mmap": "faster", "fork": "equivalent"}
    [fork] = (comparison for comparison in report.comparisons if comparison.benchmark == "fork")
    assert fork.p_adjusted is not None
    assert fork.p_adjusted > 0.05


def test_a_report_is_json_without_nan() -> None:
    report = judge_files([str(DATA / "lmbench-before-1.txt"), str(DATA / "lmbench-after-1.txt")], JudgeRequest())
    assert '"schema_version": 1' in to_json(report)
    assert all(comparison.verdict == "undecided" for comparison in report.comparisons)


def test_three_runs_of_lmbench_show_what_five_percent_are() -> None:
    files = [f"{name}={DATA}/lmbench-{name}-{number}.txt" for name in ("after", "before") for number in (1, 2, 3)]
    report = judge_files(files, JudgeRequest())
    assert report.baseline == "before"
    assert report.read_as.startswith("lmbench output (recognised; else --format); baseline before: by its name")
    [mean] = report.geometric_means
    assert mean.estimate is not None
    assert mean.estimate.ratio == pytest.approx(1 / 0.95, abs=0.004)
    assert mean.verdict == "faster"


def test_a_block_in_which_one_variant_is_missing_is_dropped_for_its_pair_and_said(tmp_path: Path) -> None:
    lines = noisy({"base": 1, "v": 0.97, "w": 1.02}).splitlines(keepends=True)
    report = judged(tmp_path, "".join(line for line in lines if not line.startswith("3,v,")))
    v, w = report.comparisons
    assert (v.dropped, w.dropped) == (1, 0)
    assert v.estimate is not None
    assert (v.estimate.blocks, v.verdict, w.verdict) == (11, "faster", "slower")
    assert has(report, "1 block without v or without the baseline: dropped for this pair (time_ns)")


def test_times_that_all_are_equal_decide_nothing_since_rounding_hides_their_spread(tmp_path: Path) -> None:
    report = judged(tmp_path, "variant,time_ns\n" + "a,5\n" * 6 + "b,5\n" * 6)
    assert report.comparisons[0].verdict == "undecided"
    assert has(report, "all values of time_ns agree exactly in a (5)", "rounding hides their spread")


def test_a_single_value_decides_nothing(tmp_path: Path) -> None:
    report = judged(tmp_path, "variant,time_ns\na,5\nb,6\n")
    assert report.comparisons[0].verdict == "undecided"
    assert has(report, "1 value of time_ns")


def test_one_variant_can_t_be_compared(tmp_path: Path) -> None:
    with pytest.raises(errors.OneVariant, match="only one variant: a"):
        judged(tmp_path, "variant,value\na,5\na,6\n")


def test_a_baseline_that_is_not_there_is_hinted_at(tmp_path: Path) -> None:
    with pytest.raises(errors.NoSuchBaseline) as caught:
        judged(tmp_path, "variant,value\ngeneric,5\nv3,6\n", baseline="genric")
    assert caught.value.advice == "did you mean 'generic'? variants: generic, v3"


@pytest.mark.parametrize(
    ("variants", "baseline"),
    [(("v3", "generic"), "generic"), (("x", "linux-6.1-old"), "linux-6.1-old"), (("x", "y"), "x")],
)
def test_the_baseline_is_known_by_its_name_or_is_the_first(
    tmp_path: Path, variants: tuple[str, str], baseline: str
) -> None:
    report = judged(tmp_path, "variant,time_ns\n" + "".join(f"{name},5\n{name},6\n" for name in variants))
    assert report.baseline == baseline


def test_files_of_two_formats_are_not_judged_together() -> None:
    with pytest.raises(errors.MixedFormats, match=r"hyperfine output, .* is lmbench output"):
        judge_files([str(DATA / "hyperfine-one.json"), str(DATA / "lmbench-before-1.txt")], JudgeRequest())


def test_a_file_that_is_not_there_is_a_user_error() -> None:
    with pytest.raises(errors.Unreadable, match="No such file"):
        judge_files(["v=/nonexistent/file"], JudgeRequest())


def test_boots_that_nobody_wrote_down_are_warned_of(tmp_path: Path) -> None:
    lone = "variant,time_ns\n" + "".join(f"{name},{100 + n}\n" for name in "ab" for n in range(6))
    assert has(judged(tmp_path, lone), "nothing says how many boots these values come from")
    assert has(judged(tmp_path, noisy({"a": 1, "b": 1})), "nothing says whether each block is another boot")
    boots = "variant,boot,time_ns\n" + "".join(f"{name},{n // 6},{100 + n}\n" for name in "ab" for n in range(6))
    assert has(judged(tmp_path, boots), "only one boot each of a, b")
    many = "variant,boot,time_ns\n" + "".join(f"{name},{n},{100 + n}\n" for name in "ab" for n in range(6))
    assert not has(judged(tmp_path, many), "boot to boot")


def test_a_layout_column_with_several_layouts_ends_the_warning(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    rows = [(name, layout, block) for block in range(12) for layout in (block % 4,) for name in ("a", "b")]
    text = "".join(f"{name},{layout},{block},{random.normal(100, 1):.4f}\n" for name, layout, block in rows)
    report = judged(tmp_path, "variant,layout,block,time_ns\n" + text)
    assert not has(report, "layout wasn't sampled")
    assert report.comparisons[0].estimate is not None
    assert (report.comparisons[0].estimate.method, report.comparisons[0].estimate.units) == ("layouts", 4)
    one = judged(tmp_path, noisy({"a": 1, "b": 1}))
    assert has(one, "layout wasn't sampled")


def test_drift_is_warned_of(tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    text = "".join(f"{'ab'[n % 2]},{n},{100 + 0.3 * n + random.normal(0, 0.3):.4f}\n" for n in range(40))
    assert has(judged(tmp_path, "variant,order,time_ns\n" + text), "time_ns drifts by +", "in 100 measurements")
    still = "".join(f"{'ab'[n % 2]},{n},{100 + random.normal(0, 0.3):.4f}\n" for n in range(40))
    assert not has(judged(tmp_path, "variant,order,time_ns\n" + still), "drifts")


def test_variants_measured_on_different_days_are_warned_of(tmp_path: Path) -> None:
    def text(days: str) -> str:
        lines = [f"{name},2025-03-0{days[at]},{100 + n}\n" for at, name in enumerate("ab") for n in range(6)]
        return "variant,date,time_ns\n" + "".join(lines)

    assert has(judged(tmp_path, text("12")), "b was measured on other days than a")
    assert not has(judged(tmp_path, text("11")), "days")


def test_variants_measured_one_after_the_other_are_warned_of(tmp_path: Path) -> None:
    text = "".join(f"{name},{6 * at + n},{100 + n % 3}\n" for at, name in enumerate("ab") for n in range(6))
    assert has(judged(tmp_path, "variant,order,time_ns\n" + text), "b and a weren't interleaved")


def cold(factor: float, n: int, *, of: int | Sequence[int] = 0, spread: float = 0.005) -> str:
    """hyperfine's JSON of two commands; the values at the places `of` are so many times as long as they would be."""
    random = np.random.default_rng(n)
    results = []
    for command, mean in (("gcc", 10.0), ("clang", 10.4)):
        times = mean * random.normal(1, spread, n)
        times[np.array(of)] *= factor
        results.append({"command": command, "times": times.tolist()})
    return json.dumps({"results": results})


@pytest.mark.parametrize("n", [4, 5, 10, 30])
def test_a_first_value_far_above_the_others_is_said_to_look_cold_and_changes_no_verdict(tmp_path: Path, n: int) -> None:
    report = judged(tmp_path, cold(1.6, n))
    assert has(report, "the first value is far from all others", "gcc (+", "clang (+", "a cold cache")
    assert not has(report, "if the rows are in the order")
    assert report.comparisons[0].verdict == "undecided"


@pytest.mark.parametrize(("n", "count"), [(8, 2), (10, 2), (20, 2), (20, 5), (100, 25)])
def test_several_first_values_far_above_the_others_are_counted(tmp_path: Path, n: int, count: int) -> None:
    report = judged(tmp_path, cold(1.6, n, of=range(count)))
    assert has(report, "the first values are far from all others of their variant", f"gcc ({count} of them, +")
    assert not has(report, "drifts by")


@pytest.mark.parametrize("of", [(0, 2), (1, 2), range(10), (18, 19)])
def test_slow_values_that_are_not_the_first_few_do_not_look_cold(tmp_path: Path, of: Sequence[int]) -> None:
    assert not has(judged(tmp_path, cold(1.6, 20, of=of)), "cold")


@pytest.mark.parametrize("direction", ["lower", None])
def test_random_values_look_cold_as_rarely_as_the_level_says(direction: Direction | None) -> None:
    """Normal values with a spread above LEAST_COLD: the level is of each side."""
    random = np.random.default_rng(18)
    tries, sides = 20_000, 1 if direction else 2
    found = sum(
        count_cold(ReplicateSample(np.exp(random.normal(0, 0.05, n))), direction) is not None
        for n in random.integers(4, 41, tries)
    )
    assert found <= binom.ppf(1 - 1e-6, tries, sides * COLD_P)


@pytest.mark.parametrize(("factor", "of"), [(1.0, 0), (0.6, 0), (1.6, 1), (1.6, -1), (1.01, 0)])
def test_a_first_value_that_is_like_the_others_or_better_does_not_look_cold(
    tmp_path: Path, factor: float, of: int
) -> None:
    assert not has(judged(tmp_path, cold(factor, 10, of=of)), "cold")


def test_what_was_measured_first_is_told_by_the_order_and_else_by_the_rows(tmp_path: Path) -> None:
    values = [160.0, 100.0, 100.5, 99.5, 100.2, 99.8]
    rows = [(name, number, value) for number, value in enumerate(values) for name in "ab"]
    ordered = "".join(f"{name},{2 * number + (name == 'b')},{value}\n" for name, number, value in reversed(rows))
    report = judged(tmp_path, "variant,order,time_ns\n" + ordered)
    assert has(report, "cold") and not has(report, "if the rows are in the order")
    assert has(
        judged(tmp_path, "variant,time_ns\n" + "".join(f"{name},{value}\n" for name, _, value in rows)),
        "far from all others of its variant, if the rows are in the order of measuring: a (+60.0 %), b (+60.0 %)",
    )
    backwards = "".join(f"{name},{value}\n" for name, _, value in reversed(rows))
    assert not has(judged(tmp_path, "variant,time_ns\n" + backwards), "cold")


def test_a_spread_too_wide_for_a_summary_is_warned_of(tmp_path: Path) -> None:
    report = judged(tmp_path, "kernel,mean,sd,n,unit\na,10,5,12,s\nb,10,1,12,s\n")
    assert has(report, "the standard deviation is 50.0 % of the mean")
    assert report.comparisons[0].verdict == "undecided"


def test_more_values_than_a_plot_needs_are_thinned_and_said(tmp_path: Path) -> None:
    n = MOST_VALUES
    values = np.random.default_rng(8).normal(100, 1, 2 * n).round(3).tolist()
    text = "variant,time_ns\n" + "".join(f"{'ab'[at % 2]},{value}\n" for at, value in enumerate(values))
    report = judged(tmp_path, text)
    assert len(report.values) == MOST_VALUES
    assert has(report, "plots show 20,000 of 40,000 values")
    assert report.comparisons[0].estimate is not None
    assert report.comparisons[0].estimate.units == n


def test_the_correction_reaches_the_judge(tmp_path: Path) -> None:
    text = noisy({"base": 1, "v": 1.002, "w": 1.003, "x": 1.001})
    holm, bh = (judged(tmp_path, text, correction=name) for name in ("holm", "bh"))
    ps = [[comparison.p_adjusted for comparison in report.comparisons] for report in (holm, bh)]
    assert ps[0] != ps[1]
    assert bh.correction == "bh"


def test_the_verb_prints_the_report_and_what_is_wrong_with_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    table, claims = str(DATA / "compiler_patch.csv"), str(DATA / "compiler_patch_claims.csv")
    assert main(["judge", table, "--claims", claims, "--margin", "0.003"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("x86-64-v3 (these boots): 2 faster, 1 equivalent; mean +0.38 %, not judged\n")
    assert "does not follow" in output
    assert "x86-64-v3 against generic" in output
    assert "Tukey" not in output
    assert main(["judge", table, "--claims", claims, "--margin", "0.003", "--analysis"]) == 0
    long_output = capsys.readouterr().out
    assert long_output.startswith(output)
    assert "Tukey" in long_output
    assert main(["judge", table, "--baseline", "CPU family", "--higher", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["baseline"], report["comparisons"][0]["direction"]) == ("CPU family", "higher")
    assert main(["judge", str(DATA / "nothing.csv")]) == 1
    assert "hint: name an existing file" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--margin", "2"], ["--alpha", "x"], ["--lower", "--higher"], ["--format", "xml"]])
def test_options_that_make_no_sense_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["judge", "file", *words])
    assert left.value.code == 1
    assert words[0] in capsys.readouterr().err


def combined(
    boots: int | None, readings: int, layouts: int | None, order: Sequence[float] | None, effect: float, cold: bool
) -> str:
    """CSV of two variants with this much known of each value."""
    random = np.random.default_rng(boots or 0)
    columns = [
        *(["boot"] if boots else []),
        *(["layout"] if layouts else []),
        *(["order"] if order else []),
        "variant,time_ns",
    ]
    lines = [",".join(columns)]
    for number, (boot, reading) in enumerate(product(range(boots or 1), range(readings))):
        for variant, factor in (("a", 1.0), ("b", 1 + effect)):
            first = 1.5 if cold and (boot, reading) == (0, 0) else 1.0
            place = {"a": order[0], "b": order[1]}[variant] + number if order else 0
            cells = [
                *([f"{variant}{boot}"] if boots else []),
                *([str(boot % layouts)] if layouts else []),
                *([f"{place:g}"] if order else []),
                f"{variant},{100 * factor * first * random.normal(1, 0.002):.5f}",
            ]
            lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


DENIED = (
    ("order", "were measured on other days", ("weren't interleaved, but one after", "if the rows are in the order")),
    ("order", "weren't interleaved, but one after", ("if the rows are in the order",)),
    ("first value", "far from all others", ("drifts by",)),
    ("boot column", "a column `boot` says more", ("each boot counts once", "only one boot each")),
    ("values", "so few hardly know", ("instead of a median for each boot",)),
)
"""What a note is about, words of it, and words of notes that must not stand beside it."""


@pytest.mark.parametrize("boots", [None, 1, 2, 6])
@pytest.mark.parametrize("order", [None, (0, 0.5), (0, 100)])
def test_no_two_notes_contradict_each_other_or_say_one_thing_twice(
    tmp_path: Path, boots: int | None, order: tuple[float, float] | None
) -> None:
    for readings, layouts, effect, cold in product((3, 8), (None, 2), (0.0, 0.05), (False, True)):
        report = judged(tmp_path, combined(boots, readings, layouts if boots else None, order, effect, cold))
        notices = report.notices
        where = f"{boots=} {readings=} {layouts=} {order=} {effect=} {cold=}: {notices}"
        assert len(set(notices)) == len(notices), where
        for about, words, others in DENIED:
            if has(report, words):
                assert not any(has(report, other) for other in others), f"{about}: {where}"
        [comparison] = report.comparisons
        by_reading = has(report, "the single readings were judged instead")
        assert by_reading == bool(
            comparison.estimate and boots and comparison.estimate.units > boots and comparison.scope == "boots"
        ), where
        assert sum("about these boots" in notice or "says something about" in notice for notice in notices) <= 1, where
        assert has(report, "replicates may be of one boot") <= (comparison.scope == "boots"), where
        assert has(report, "layout wasn't sampled") == (comparison.scope != "kernels" or not layouts or not boots), (
            where
        )


def test_a_hint_has_the_user_s_own_names_for_files_columns_and_variants(tmp_path: Path) -> None:
    for name in ("33", "34"):
        (tmp_path / f"fb {name}.csv").write_text("project,real1,user1\nlinux,3.5,1.25\ngit,2.5,0.75\n")
    files = [f"k{name}={tmp_path}/fb {name}.csv" for name in ("33", "34")]
    with pytest.raises(errors.NoColumn) as caught:
        judge_files(files, JudgeRequest())
    quoted = " ".join(f"'{file}'" for file in files)
    assert caught.value.advice.endswith(f"kdyno judge {quoted} --block project --value real1,user1")


TABLE = "{column},alpha,beta\nfork,3.5,1.25\nexec,2.5,7.75\npipe,12.5,70.75\n"


@pytest.mark.parametrize("column", ["project", "case", "scenario", "program", "what"])
def test_no_hint_makes_a_variant_of_what_may_be_a_benchmark(tmp_path: Path, column: str) -> None:
    with pytest.raises(errors.FileError) as caught:
        judged(tmp_path, TABLE.format(column=column))
    assert f"--variant {column}" not in caught.value.advice


@pytest.mark.parametrize("column", ["test", "benchmark", "workload"])
def test_benchmarks_are_not_compared_with_each_other(tmp_path: Path, column: str) -> None:
    assert judged(tmp_path, TABLE.format(column=column)).variants == ("alpha", "beta")


@pytest.mark.parametrize("cold_share", [0.0, 0.2])
def test_a_file_of_any_length_is_judged_by_arrays_and_not_row_by_row(tmp_path: Path, cold_share: float) -> None:
    def judging(rows: int) -> int:
        random = np.random.default_rng(9)
        values = random.lognormal(0, 0.05, rows) * np.where(np.arange(rows) < cold_share * rows, 5.0, 1.0)
        text = "".join(f"{'ab'[n % 2]},{value}\n" for n, value in enumerate(values))
        return calls(lambda: judged(tmp_path, f"variant,time_ns\n{text}"))

    few, many = judging(20_000), judging(100_000)  # the beginning of both, by which the format is told, is as long
    assert many <= 1.1 * few


def test_cold_values_are_counted_by_arrays() -> None:
    def counting(size: int) -> int:
        sample = ReplicateSample(np.exp(np.random.default_rng(4).normal(0, 0.05, size)))
        return calls(lambda: count_cold(sample, "lower"))

    counting(1000)
    assert counting(100_000) <= 1.1 * counting(1000)
