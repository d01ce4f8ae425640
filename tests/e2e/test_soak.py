"""A soak of a real kernel for a minute: loads side by side, one of which fails."""

from __future__ import annotations

import json

import pytest

from tests.e2e.conftest import Kdyno

PIPES = """\
name = "pipes"
description = "a shell and its children pass text through a pipe"
set_up = "mkdir -p /tmp/pipes; sleep 1000 &"
command = "seq 500 | tr 1 2 | sort > /tmp/pipes/out; test -s /tmp/pipes/out"
tear_down = "rm -r /tmp/pipes"
[metrics]
elapsed = { time = "elapsed" }
"""
FAILING = """\
name = "failing"
description = "fails in its third round, is set up again, and goes on"
set_up = "rm -f /tmp/failing"
command = "echo x >> /tmp/failing; sleep 1; test $(wc -l < /tmp/failing) != 3 || { echo why >&2; exit 5; }"
[metrics]
elapsed = { time = "elapsed" }
"""
BROKEN = """\
name = "broken"
description = "can't be set up"
set_up = "no-such-program"
command = "true"
[metrics]
elapsed = { time = "elapsed" }
"""
EXPERIMENT = """\
[variants.a]
"""


@pytest.mark.long
@pytest.mark.parametrize("cpus", ["1", "2"])
def test_a_kernel_lives_under_loads_side_by_side_and_the_record_says_what_each_did(kdyno: Kdyno, cpus: str) -> None:
    files = {"pipes": PIPES, "failing": FAILING, "broken": BROKEN}
    for name, text in files.items():
        (kdyno.directory / f"{name}.toml").write_text(text)
    experiment = kdyno.experiment("soak", EXPERIMENT, baseline="a", blocks=1)
    [image] = next(iter(json.loads(kdyno("build", experiment, "--json").stdout).values()))

    def soak(*names: str, status: int) -> dict[str, dict[str, object]]:
        use = [word for name in names for word in ("--use", str(kdyno.directory / f"{name}.toml"))]
        words = ["soak", image["key"][:12], "--hours", "0.01", "--cpus", cpus, *use, "--json"]
        record = json.loads(kdyno(*words, status=status).stdout)
        assert record["boot"] == "ok" and record["machine"]["cpus_online"] == int(cpus)
        assert record["console"] == [] and record["memory"]["after"]["tainted"] == 0
        assert record["kernel"]["release"] == image["release"]
        return {load["load"]: load for load in record["loads"]}

    passed = soak("pipes", status=0)["pipes"]
    assert isinstance(passed["rounds"], int) and passed["rounds"] > 5 and passed["failures"] == 0
    loads = soak("pipes", "failing", "broken", status=2)
    assert loads["broken"]["progress"] == "left-out"
    assert loads["failing"]["told"][0] == {"phase": "command", "round": 2, "status": 5, "said": "why"}  # type: ignore[index]
    assert loads["pipes"]["progress"] == "over"
