"""A boot that other work on the host disturbed is run again: by what the host did, never by its samples."""

from __future__ import annotations

import json

from tests.cli.conftest import DISTURBED, Lab


def ends(lab: Lab) -> list[tuple[int, str, bool]]:
    """Attempt, status, and whether it has samples, of each boot of the first block of the baseline."""
    return [
        (boot.attempt, boot.status, bool(boot.samples))
        for boot in lab.boots()
        if (boot.variant, boot.block) == ("baseline", 0)
    ]


def test_a_disturbed_boot_is_run_again_and_the_report_says_so_first(lab: Lab) -> None:
    orders = lab.on_boot([DISTURBED, DISTURBED, None, DISTURBED])
    result = lab("run", lab.experiment())
    assert result.status == 0, result.err
    assert "note: 2 boots were run again (3 reruns) because other work was on their core" in result.out
    assert "lost" not in result.out + result.err
    assert [order.block for order in orders] == [0, 0, 0, 1, 1, 2], "a rerun comes in its place of the order"
    assert ends(lab) == [(0, "lost", False), (1, "lost", False), (2, "ok", True)]
    shown = lab("show", "latest").out
    assert "baseline: 3 ok, 3 run again of 3" in shown
    assert f"baseline/0: run again: {DISTURBED}" in shown
    assert "3/3" in lab("runs").out


def test_a_boot_that_stays_disturbed_is_kept_after_two_reruns(lab: Lab) -> None:
    orders = lab.on_boot([DISTURBED] * 9)
    result = lab("run", lab.experiment())
    assert result.status == 0, result.err
    assert len(orders) == 9
    assert ends(lab) == [(0, "lost", False), (1, "lost", False), (2, "ok", True)]
    assert lab.boots()[2].conditions == {"disturbed_paths": 2}


def test_reruns_of_an_interrupted_command_count_for_the_next_one(lab: Lab) -> None:
    experiment = lab.experiment()
    lab.on_boot([DISTURBED, KeyboardInterrupt()])
    assert lab("run", experiment).status == 130
    assert ends(lab) == [(0, "lost", False)]
    orders = lab.on_boot([DISTURBED, DISTURBED])
    assert lab("run", experiment).status == 0
    assert [order.block for order in orders] == [0, 0, 1, 2]
    assert ends(lab) == [(0, "lost", False), (1, "lost", False), (2, "ok", True)]


def test_a_boot_that_is_lost_as_well_has_all_its_attempts(lab: Lab) -> None:
    lab.on_boot([DISTURBED, DISTURBED, "killed", "killed", None])
    result = lab("run", lab.experiment())
    assert (result.status, len(ends(lab))) == (0, 5), result.err


def test_the_run_of_a_file_keeps_its_reruns(lab: Lab) -> None:
    lab.on_boot([DISTURBED])
    lab("run", lab.experiment())
    file, other = str(lab.directory / "run.kdyno"), f"sqlite:///{lab.directory}/other.sqlite"
    assert lab("store", "export", "latest", file).status == 0
    taken_in = lab("store", "import", file, "--store", other)
    assert taken_in.status == 0, taken_in.err
    report = json.loads(lab("report", "latest", "--json", "--store", other).out)
    assert any(
        "1 boot was run again (1 rerun) because other work was on its core" in note for note in report["notices"]
    )
