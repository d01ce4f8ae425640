"""`kdyno plan` for a box that can be reached, and for one that can't."""

from __future__ import annotations

import json

import jsonschema
import pytest

from kdyno.boot.metal.settings import MetalConfig
from kdyno.cli.schemas import schema
from kdyno.measure.workload.needs import Needs
from tests.cli.conftest import Lab
from tests.unit.boot.fake_box import FakeBox
from tests.unit.kernel_toy import toy_tree

EXPERIMENT = """\
name = "metal"
source = "linux"
config = "make:tinyconfig"
baseline = "plain"
blocks = 2
[variants.plain]
[variants.other]
opt = "O3"
[workload]
tests = ["lat_pipe"]
[machine]
type = "metal"
host = "box"
"""


@pytest.fixture
def box(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> FakeBox:
    fake = FakeBox(lab.directory / "box")
    monkeypatch.setenv("PATH", fake.path)
    toy_tree(lab.directory)
    (lab.directory / "metal.toml").write_text(EXPERIMENT)
    return fake


def test_a_plan_for_a_box_that_is_out_of_reach_shows_the_builds_and_says_what_it_needs(lab: Lab, box: FakeBox) -> None:
    box.plan({"in": "", "message": "ssh: connect to host box port 22: No route to host"})
    result = lab("plan", str(lab.directory / "metal.toml"))
    assert result.status == 0
    assert result.out.startswith("experiment metal, run not known yet, lane wall, baseline plain\n")
    assert "boots: 4 to do, 0 on record" in result.out
    [line] = [line for line in result.out.splitlines() if line.startswith("needs: ")]
    assert line.startswith("needs: box, a box of x86_64 with systemd and kexec that ssh reaches as root; ")
    assert line.endswith("; box cannot be reached: ssh: connect to host box port 22: No route to host")
    document = json.loads(lab("plan", str(lab.directory / "metal.toml"), "--json").out)
    jsonschema.Draft202012Validator(schema("plan")).validate(document)
    assert (document["run"], f"needs: {document['requirement']}") == ("", line)


@pytest.mark.usefixtures("box")
def test_a_plan_for_a_box_that_is_there_has_the_run(lab: Lab) -> None:
    document = json.loads(lab("plan", str(lab.directory / "metal.toml"), "--json").out)
    assert len(document["run"]) == 12
    assert document["requirement"] == ""
    assert "needs: " not in lab("plan", str(lab.directory / "metal.toml")).out


def test_a_run_on_a_box_that_is_out_of_reach_is_refused_before_anything_is_built(lab: Lab, box: FakeBox) -> None:
    box.plan({"in": "", "message": "ssh: connect to host box port 22: No route to host"})
    result = lab("run", str(lab.directory / "metal.toml"))
    assert (result.status, result.out) == (3, "")
    assert "box cannot be reached: ssh: connect to host box port 22: No route to host" in result.err
    assert not list(lab.state.glob("images/*"))


def test_a_run_in_the_lane_of_the_core_pmu_is_refused_before_anything_is_built(lab: Lab, box: FakeBox) -> None:
    (lab.directory / "metal.toml").write_text(f'{EXPERIMENT}lane = "pmu"\n')
    result = lab("run", str(lab.directory / "metal.toml"))
    assert (result.status, result.out) == (1, "")
    assert "the lane pmu needs a PMU of the processor, and the kernel of box drives none" in result.err
    assert not list(lab.state.glob("images/*"))
    assert box.text("restarts") == "0"


def test_the_requirement_names_the_packages_of_the_load() -> None:
    needs = Needs(packages=("nginx-light", "wrk"))
    assert MetalConfig(host="box").requirement(needs).endswith(", with the Debian packages nginx-light, wrk")
