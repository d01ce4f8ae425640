"""A boot is known by what decides it: what is on record is not booted again, whichever run it was booted for."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Lab


def booted(lab: Lab, *words: str) -> list[tuple[str, int]]:
    """Variant and block of each boot that a command carried out."""
    orders = lab.on_boot([])
    result = lab(*words)
    assert result.status == 0, result.err
    return sorted((order.variant, order.block) for order in orders)


def test_more_blocks_boot_only_the_new_ones(lab: Lab) -> None:
    lab.recording.add("same")
    assert len(booted(lab, "run", lab.experiment("same", blocks=2))) == 4
    assert booted(lab, "run", lab.experiment("same", blocks=3)) == [("baseline", 2), ("same", 2)]


def test_one_more_variant_boots_only_itself(lab: Lab) -> None:
    lab.recording.add("same")
    lab.recording.add("other")
    booted(lab, "run", lab.experiment("same"))
    assert booted(lab, "run", lab.experiment("same", "other")) == [("other", block) for block in range(3)]


def test_two_experiments_that_share_a_variant_share_its_boots(lab: Lab) -> None:
    lab.recording.add("one")
    lab.recording.add("two")
    booted(lab, "run", lab.experiment("one"))
    assert booted(lab, "run", lab.experiment("two")) == [("two", block) for block in range(3)]


def test_another_margin_alpha_correction_name_or_number_of_looks_boots_nothing(lab: Lab) -> None:
    lab.recording.add("same")
    experiment = lab.experiment("same")
    booted(lab, "run", experiment)
    for setting in ("margin = 0.02", "alpha = 0.01", 'correction = "bh"', "looks = 3"):
        assert booted(lab, "run", lab.experiment("same", more=f"[judge]\n{setting}\n")) == []
    path = lab.directory / "named.toml"
    path.write_text((lab.directory / "experiment.toml").read_text().replace('"replay"', '"another"'))
    assert booted(lab, "run", str(path)) == []
    assert len(json.loads(lab("runs", "--json").out)) == 6


def test_again_boots_all_of_it(lab: Lab) -> None:
    lab.recording.add("same")
    booted(lab, "run", lab.experiment("same"))
    assert len(booted(lab, "run", "--again", lab.experiment("same"))) == 6


def test_blocks_that_were_added_after_verdicts_could_be_seen_are_said_to_be_so_for_good(lab: Lab) -> None:
    lab.recording.add("same")
    lab.recording.add("other")
    lab("run", lab.experiment("same", blocks=2))
    added = lab("run", lab.experiment("same", blocks=3)).out
    assert "note: 1 block was added after 2 could be judged" in added
    judged_otherwise = lab("run", lab.experiment("same", blocks=3, more="[judge]\nmargin = 0.02\n")).out
    assert "1 block was added after 2 could be judged" in judged_otherwise
    one_more = lab("run", lab.experiment("same", "other", blocks=3)).out
    assert "1 block was added after 2 could be judged" in one_more
    planned = lab("run", lab.experiment("same", blocks=3, more="[judge]\nlooks = 3\n")).out
    assert "could be judged" not in planned


def test_a_variant_alone_tells_no_verdict_so_that_blocks_may_be_added_to_it(lab: Lab) -> None:
    lab.recording.add("one")
    lab.recording.add("two")
    lab("run", lab.experiment("one", blocks=2))
    assert "could be judged" not in lab("run", lab.experiment("two", blocks=3)).out


def test_two_runs_at_once_that_share_boots_lose_none_and_keep_each_once(lab: Lab) -> None:
    lab.recording.add("one")
    lab.recording.add("two")
    experiments = []
    for variant in ("one", "two"):
        path = lab.directory / f"{variant}.toml"
        path.write_text(Path(lab.experiment(variant)).read_text())
        experiments.append(str(path))
    running = [lab.start("run", experiment, "-q") for experiment in experiments]
    assert [process.wait(timeout=120) for process in running] == [0, 0]
    runs = json.loads(lab("runs", "--json").out)
    assert [(run["status"], run["done"]) for run in runs] == [("complete", 6), ("complete", 6)]
    keys = [boot.key for boot in lab.boots()]
    assert (len(keys), len(set(keys))) == (12, 9)


def test_a_report_judges_again_without_a_boot_and_says_so(lab: Lab) -> None:
    lab.recording.add("same")
    lab("run", lab.experiment("same"))
    orders = lab.on_boot([])
    again = json.loads(
        lab("report", "latest", "--json", "--margin", "0.05", "--alpha", "0.01", "--correction", "bh").out
    )
    assert (again["margin"], again["alpha"], again["correction"]) == (0.05, 0.01, "bh")
    assert any("judged with margin 0.05, alpha 0.01, correction bh; " in notice for notice in again["notices"])
    own = json.loads(lab("report", "latest", "--json", "--margin", "0.01").out)
    assert not any("judged with" in notice for notice in own["notices"])
    assert orders == []


def test_a_margin_that_is_no_fraction_is_refused(lab: Lab) -> None:
    result = lab("report", "latest", "--margin", "2")
    assert (result.status, result.err.splitlines()[-1]) == (
        1,
        "kdyno report: argument --margin: '2' is not a fraction between 0 and 1",
    )
