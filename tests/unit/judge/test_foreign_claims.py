"""`kdyno judge --claims`: published means and statistics held against the values that they are of."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from kdyno.base.measurement import Direction
from kdyno.judge.foreign.check import check_claims
from kdyno.judge.stats.observations import Observations, ReplicateSample
from kdyno.judge.verdicts.of_files import judge_files
from kdyno.measure.readers import errors
from kdyno.measure.readers.claims import MOST_CLAIMS, Claim, match_name
from kdyno.measure.readers.readings import PublishedValue
from kdyno.measure.readers.request import JudgeRequest
from tests.unit.judge_data import STATISTICS

DATA = Path(__file__).parents[2] / "data" / "foreign"
MEANS, CLAIMS = DATA / "compiler_patch.csv", DATA / "compiler_patch_claims.csv"
BEHIND = {
    "Ryzen 5950X": {"generic": (79.800918, 0.1076), "x86-64-v3": (79.455822, 0.0772), "Zen 3": (79.44, 0.0912)},
    "i7-4790K": {"generic": (344.113, 0.328), "x86-64-v3": (341.868892, 0.224020), "Haswell": (342.189, 0.2415)},
    "N100": {"generic": (589.456476, 0.1596), "x86-64-v3": (589.217035, 0.1382), "Alder Lake": (588.7974, 0.1532)},
}
"""Mean and sd (s) that the published Qs imply, but for the one that slipped into the wrong row: of values made up."""


def twelve(mean: float, sd: float) -> list[float]:
    """Twelve values with this mean and standard deviation."""
    steps = np.arange(12) - 5.5
    return [float(value) for value in mean + sd * steps / np.std(steps, ddof=1)]


def values_file(
    directory: Path, behind: Mapping[str, Mapping[str, tuple[float, float]]] = BEHIND, unit: str = "s", scale: float = 1
) -> str:
    file = directory / "values.csv"
    with file.open("w", newline="") as text:
        rows = csv.writer(text)
        rows.writerow(["machine", "kernel", "value", "unit"])
        for machine, groups in behind.items():
            for kernel, (mean, sd) in groups.items():
                rows.writerows([machine, kernel, f"{scale * value:.9f}", unit] for value in twelve(mean, sd))
    return str(file)


def notices(file: str, *claims: Path | str, **options: object) -> tuple[str, ...]:
    return judge_files([file], JudgeRequest(**options), [str(name) for name in claims]).notices  # type: ignore[arg-type]


def test_the_nine_statistics_are_as_published() -> None:
    with CLAIMS.open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert tuple((row["Q"], row["p"]) for row in rows) == STATISTICS


def test_values_show_which_of_statistic_and_summary_is_the_wrong_one(tmp_path: Path) -> None:
    notes = notices(values_file(tmp_path), MEANS, CLAIMS)
    assert notes[0] == "i7-4790K, generic: mean 344.280 (sd 0.6455) is not that of the values, 344.113 (0.3280)"
    assert notes[1] == "i7-4790K, x86-64-v3: mean 342.035 (sd 0.4971) is not that of the values, 341.869 (0.2240)"
    [slipped] = (note for note in notes if "line 4, Ryzen 5950X: x86-64-v3 against Zen 3: Q 9.6524" in note)
    assert "follows neither from the means and sds, which give 0.597 (" in slipped
    assert "nor from the values, which give 0.59" in slipped
    assert ": the statistic is wrong; p 0.8999947 is not that of Q 9.6524, but of Q 0.597" in slipped
    assert slipped.endswith("this Q would fit N100, x86-64-v3 against Alder Lake")
    for line, q in ((5, "28.9652"), (6, "24.8335"), (7, "4.1317")):
        [right] = (note for note in notes if f"line {line}, i7-4790K" in note)
        assert f"Q {q} follows from the values, not from the means and sds, which give" in right
        assert right.endswith(": the summary is wrong, not the statistic")
    assert "5 of 9 published statistics follow from the means published with them, 8 of 9 from the values" in notes
    assert "7 of 9 published means and standard deviations match the values" in notes


def test_statistics_alone_are_checked_against_values(tmp_path: Path) -> None:
    notes = notices(values_file(tmp_path), CLAIMS)
    assert "8 of 9 published statistics follow from the values" in notes
    [wrong] = (note for note in notes if "does not follow" in note)
    assert "line 4, Ryzen 5950X: x86-64-v3 against Zen 3: Q 9.6524 does not follow from the values" in wrong


def test_means_alone_are_checked_against_values_in_whatever_unit(tmp_path: Path) -> None:
    notes = notices(values_file(tmp_path, unit="ms", scale=1000), MEANS)
    assert "7 of 9 published means and standard deviations match the values" in notes
    assert not any("statistics follow" in note for note in notes)


def test_a_markdown_file_brings_means_and_statistics_together(tmp_path: Path) -> None:
    notes = notices(values_file(tmp_path), DATA / "compiler_patch.md", n="12")
    assert "5 of 9 published statistics follow from the means published with them, 8 of 9 from the values" in notes
    assert "7 of 9 published means and standard deviations match the values" in notes


def test_names_that_are_only_alike_are_paired_and_said(tmp_path: Path) -> None:
    longer = {
        "bzImage, Ryzen 5950X": {
            "Generic x86-64": (79.800918, 0.1076),
            "AMD-x86-64-v3": (79.455822, 0.0772),
            "AMD Zen 3": (79.44, 0.0912),
        }
    }
    notes = notices(values_file(tmp_path, longer), MEANS, CLAIMS)
    assert "3 of 3 published means and standard deviations match the values" in notes
    assert "5 of 9 published statistics follow from the means published with them, 2 of 3 from the values" in notes
    [renamed] = (note for note in notes if note.startswith("names of values were taken for published ones: "))
    assert "'AMD Zen 3' for 'Zen 3'" in renamed
    assert "'bzImage, Ryzen 5950X' for 'Ryzen 5950X'" in renamed
    [missing] = (note for note in notes if note.startswith("no values were found of these published means: "))
    assert "i7-4790K, generic; i7-4790K, x86-64-v3; i7-4790K, Haswell; N100, generic" in missing


def test_a_name_that_could_mean_two_variants_is_paired_with_none() -> None:
    values = {name: ReplicateSample(np.array(twelve(10.0, 1.0))) for name in ("generic a", "generic b", "x86-64-v3")}
    published = [PublishedValue("m", name, "", "10.0", "1.0", 12, "s", "") for name in ("generic", "x86-64-v3")]
    notes = check_claims([], published, [Observations("m", "s", "lower", "m", values)])
    assert notes == (
        "no values were found of these published means: m, generic",
        "1 of 1 published means and standard deviations match the values",
    )


@pytest.mark.parametrize(
    ("text", "meaning"),
    [("Zen 3", "z"), ("zen 3", "z"), ("AMD Zen 3", "z"), ("v3", "v"), ("Zen", None), ("en 3", "z"), ("Zen 33", None)],
)
def test_a_name_means_what_it_is_part_of_or_whose_words_it_has(text: str, meaning: str | None) -> None:
    assert match_name(text, {"Zen 3": "z", "CPU family": "z", "x86-64-v3": "v", "Zen 4": "four"}) == meaning


def observed(groups: Mapping[str, Sequence[float]], direction: Direction = "lower") -> list[Observations]:
    samples = {name: ReplicateSample(np.asarray(values)) for name, values in groups.items()}
    return [Observations("m", "s", direction, "m", samples)]


def test_the_variance_is_of_the_variants_that_were_published() -> None:
    groups = {"a": twelve(10, 1), "b": twelve(13, 1), "wild": twelve(10, 40)}
    published = [
        PublishedValue("m", "a", "", "10.0", "1.0", 12, "s", ""),
        PublishedValue("m", "b", "", "13.0", "1.0", 12, "s", ""),
    ]
    q = f"{3 / np.sqrt(1 / 12):.3f}"
    with_means = check_claims([Claim("f", 2, "m", "a", "b", q, "")], published, observed(groups))
    assert "1 of 1 published statistics follow from the means published with them, 1 of 1 from the values" in with_means
    alone = check_claims([Claim("f", 2, "m", "a", "b", q, "")], [], observed(groups))
    assert alone[-1] == "0 of 1 published statistics follow from the values"


def test_values_that_were_rounded_allow_for_it() -> None:
    groups = {name: np.round(twelve(mean, 0.04), 1) for name, mean in (("a", 10.0), ("b", 10.1))}
    exact = 0.1 / np.sqrt(0.04**2 / 12)
    claim = [Claim("f", 2, "m", "a", "b", f"{exact:.2f}", "")]
    samples = {name: ReplicateSample(values) for name, values in groups.items()}
    for step, right in ((0.0, 0), (0.1, 1)):
        notes = check_claims(claim, [], [Observations("m", "s", "lower", "m", samples, step=step)])
        assert notes[-1] == f"{right} of 1 published statistics follow from the values"


def test_a_file_in_which_nothing_was_published_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "odd.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(errors.NoClaim, match="neither a pair with its Q nor a mean with its sd"):
        notices(values_file(tmp_path), file)


def test_means_are_not_checked_against_means() -> None:
    with pytest.raises(errors.NoClaim, match="only values can show whether its means are right"):
        notices(str(MEANS), DATA / "stress_ng_published.csv")


def test_a_claim_of_a_benchmark_that_nobody_measured_names_those_that_are_there(tmp_path: Path) -> None:
    file = tmp_path / "claims.csv"
    file.write_text("machine,pair,Q,p\nM1,generic vs v3,1.0,0.5\n")
    with pytest.raises(errors.NoClaim, match="no benchmark like 'M1': there is Ryzen 5950X, i7-4790K, N100"):
        notices(values_file(tmp_path), file)


def test_more_means_than_anybody_publishes_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "means.csv"
    file.write_text("machine,kernel,mean,sd,n\n" + "".join(f"m{row},a,1,1,5\n" for row in range(MOST_CLAIMS + 1)))
    with pytest.raises(errors.TooLarge, match="more than 1,000 published means"):
        notices(values_file(tmp_path), file)


SINGLE = {
    "lmbench_icc_published.csv": ("lower", 19),
    "page_granularity_published.csv": (None, 4),
    "smp_published.csv": (None, 10),
}


@pytest.mark.parametrize("name", SINGLE)
def test_published_single_figures_decide_nothing(name: str) -> None:
    direction, benchmarks = SINGLE[name]
    report = judge_files([str(DATA / name)], JudgeRequest(direction=direction))  # type: ignore[arg-type]
    assert len(report.comparisons) == benchmarks
    assert {comparison.verdict for comparison in report.comparisons} == {"undecided"}
    assert {(mean.verdict, mean.reason) for mean in report.geometric_means} == {
        ("undecided", "one value: no spread known")
    }


def test_the_published_mean_gain_of_the_other_compiler_is_not_that_of_its_table() -> None:
    report = judge_files([str(DATA / "lmbench_icc_published.csv")], JudgeRequest(direction="lower"))
    gains = [100 * (1 - comparison.estimate.ratio) for comparison in report.comparisons if comparison.estimate]
    assert len(gains) == 19
    assert np.mean(gains) == pytest.approx(7.37, abs=0.005)  # published: 8.7
    speeds = [-np.log(comparison.estimate.ratio) for comparison in report.comparisons if comparison.estimate]
    assert np.expm1(np.mean(speeds)) == pytest.approx(0.0890, abs=0.00005)  # nor is it the geometric mean of the speeds
