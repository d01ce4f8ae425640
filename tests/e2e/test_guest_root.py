"""A workload that is data, in a guest with a root file system of Debian packages."""

from __future__ import annotations

import json

from tests.e2e.conftest import WITH_ROOT, Kdyno

WORKLOAD = """\
name = "greeting"
description = "a program of a package writes files, starts another and leaves it behind"
packages = ["hello"]
runs = 2
set_up = "mkdir -p /tmp/greeting /root/layer; sleep 1000 &"
command = '''
grep -q postgres /etc/passwd
hello --greeting="value $value" | tee /tmp/greeting/out /usr/share/written
'''
tear_down = "rm -r /tmp/greeting"

[parameters]
value = 41

[metrics]
value = { pattern = '^value ([0-9]+)$', unit = "x", direction = "lower" }
elapsed = { time = "elapsed" }
"""
FILLER = """\
name = "filler"
description = "a program fills the layer that takes what is written, and /tmp"
packages = ["hello"]
command = '''
dd if=/dev/zero of=/tmp/filler bs=1M 2>/dev/null || true
exec dd if=/dev/zero of=/usr/filler bs=1M status=none
'''

[metrics]
elapsed = { time = "elapsed" }
"""
# The seed makes its objects those of the tests of link orders. It has Unix sockets, by which the agent hears whether a
# program could be started.
EXPERIMENT = f"""\
[variants.a]
{WITH_ROOT}
layout_seed = 1
[variants.b]
extends = "a"
cmdline = ["mitigations=off"]
[workload]
type = "programs"
use = ["./filler.toml", "./hello.toml"]
tests = ["lat_pipe"]
[workload.parameters.greeting]
value = 42
"""


def test_a_program_of_a_debian_package_runs_in_a_guest_and_the_same_boot_gives_the_same_samples(kdyno: Kdyno) -> None:
    (kdyno.directory / "hello.toml").write_text(WORKLOAD)
    (kdyno.directory / "filler.toml").write_text(FILLER)
    experiment = kdyno.experiment("greeting", EXPERIMENT, baseline="a", blocks=1)
    kdyno("run", experiment)
    [run] = json.loads(kdyno("runs", "--json").stdout)
    shown = json.loads(kdyno("show", run["id"], "--json").stdout)
    boots = {boot["variant"]: boot for boot in shown["boots"]}
    samples = {
        variant: [(sample["benchmark"], sample["iteration"], sample["value"]) for sample in boot["samples"]]
        for variant, boot in boots.items()
    }
    for boot in boots.values():
        assert list(boot["broken"]) == ["filler.elapsed"], boot["broken"]
        assert "No space left on device" in boot["broken"]["filler.elapsed"]
    for of_variant in samples.values():
        assert [sample for sample in of_variant if sample[0] == "greeting.value"] == [
            ("greeting.value", 0, 42.0),
            ("greeting.value", 1, 42.0),
        ]
        assert len([sample for sample in of_variant if sample[0] == "lat_pipe"]) == 7
    image = next(iter(json.loads(kdyno("build", experiment, "--json").stdout).values()))[0]
    trial = ["workload", "try", str(kdyno.directory / "hello.toml"), "--kernel", image["key"], "--lane", "model"]
    one, other = (json.loads(kdyno(*trial, "--json").stdout) for _ in range(2))
    assert one == other and one["left_processes"] == 1 and one["metrics"]["value"]["values"] == [41.0, 41.0]
