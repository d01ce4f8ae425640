"""Source and base configuration may be a variant's own: they are in the plan, the keys, and the record."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Lab
from tests.unit.kernel_toy import TINY, toy_tree

EXPERIMENT = """\
name = "origins"
source = "one/linux"
config = "make:tinyconfig"
baseline = "one"
[variants.one]
[variants.two]
source = "two/linux"
[variants.defaults]
config = "make:defconfig"
[variants.both]
matrix = { source = ["one/linux", "two/linux"] }
[workload]
tests = ["lat_pipe"]
"""


def written(lab: Lab) -> str:
    toy_tree(lab.directory / "one")
    makefile = toy_tree(lab.directory / "two") / "Makefile"
    makefile.write_text(makefile.read_text().replace("SUBLEVEL = ", "SUBLEVEL = 1", 1))
    path = lab.directory / "origins.toml"
    path.write_text(EXPERIMENT)
    return str(path)


def test_a_plan_has_another_image_for_another_source_or_configuration_and_names_both(lab: Lab) -> None:
    experiment = written(lab)
    builds = {build["variant"]: build for build in json.loads(lab("plan", experiment, "--json").out)["builds"]}
    assert len({builds[name]["key"] for name in ("one", "two", "defaults")}) == 3
    assert builds["one"]["kernel"] != builds["two"]["kernel"] == builds["both-two_linux"]["kernel"]
    assert builds["both-one_linux"]["key"] == builds["one"]["key"]
    assert builds["both-two_linux"]["key"] == builds["two"]["key"]
    assert (builds["one"]["config"], builds["defaults"]["config"]) == (TINY, "make:defconfig")
    printed = lab("plan", experiment).out
    assert f"linux {builds['two']['kernel']}, configuration {TINY}" in printed


def test_a_source_that_is_not_there_is_named(lab: Lab) -> None:
    path = Path(written(lab))
    path.write_text(path.read_text().replace('source = "two/linux"', 'source = "three"'))
    result = lab("plan", str(path))
    assert (result.status, result.err.splitlines()[-2]) == (
        1,
        f"kdyno: there is no kernel source at {lab.directory / 'three'}",
    )


def test_a_configuration_that_is_not_there_is_named(lab: Lab) -> None:
    path = Path(written(lab))
    path.write_text(path.read_text().replace('config = "make:defconfig"', 'config = "tuned"'))
    result = lab("plan", str(path))
    assert result.status == 1
    assert "`tuned` names no base configuration" in result.err
