"""Import, gc, rm and export at once, each with pauses before names change: what one says is done stays done."""

from __future__ import annotations

import json
import random
import subprocess

from kdyno.store.store import Store
from tests.cli.conftest import Lab
from tests.cli.replay import slower

PAUSES = """
import os, random, time
dice = random.Random({seed})
def pausing(call):
    def paused(*args, **named):
        time.sleep(dice.uniform(0, 0.03))
        return call(*args, **named)
    return paused
for name in ("rename", "replace", "unlink", "link", "fsync"):
    setattr(os, name, pausing(getattr(os, name)))
"""
ROUNDS = 2


def test_import_gc_rm_and_export_at_once_each_do_their_work_or_say_why_not(lab: Lab) -> None:
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    elsewhere = str(lab.directory / "elsewhere")
    packed = {}
    for name, variants in (("coming", ()), ("going", ("slow",))):
        assert lab("run", lab.experiment(*variants, blocks=2), "-q", "--state", elsewhere).status == 0
        packed[name] = str(lab.directory / f"{name}.kdyno")
        assert lab("store", "export", "latest", packed[name], "--state", elsewhere).status == 0
    dice = random.Random(3)
    for _ in range(ROUNDS):
        ids = {name: lab("store", "import", path).out.split()[2] for name, path in packed.items()}
        assert lab("store", "rm", ids["coming"], "--yes").status == 0
        written = lab.directory / "written.kdyno"
        commands = {
            "import": ("import", packed["coming"]),
            "gc": ("gc", "--yes", "-q"),
            "rm": ("rm", ids["going"], "--yes"),
            "export": ("export", ids["going"], str(written)),
        }
        children = {
            name: lab.start("store", *words, script=PAUSES.format(seed=dice.randrange(1000)))
            for name, words in dice.sample(list(commands.items()), len(commands))
        }
        ended = {name: require_said(child) for name, child in children.items()}
        with Store(f"sqlite:///{lab.state / 'store.sqlite'}") as store:
            assert store.has_run(ids["coming"]) == (ended["import"] == 0)
            assert store.has_run(ids["going"]) == (ended["rm"] != 0)
            kept = {path.name for path in (lab.state / "artefacts").glob("??/*")}
            assert store.artefacts() <= kept
        if written.exists():
            fresh = ["--state", str(lab.directory / "fresh")]
            assert lab("store", "import", str(written), *fresh).status == 0
            assert lab("store", "rm", ids["going"], "--yes", *fresh).status == 0
            written.unlink()
        assert not list(lab.directory.glob(".written*"))
        for one in json.loads(lab("runs", "--json").out):
            assert lab("store", "rm", one["id"], "--yes").status == 0


def require_said(child: subprocess.Popen[str]) -> int:
    _, err = child.communicate(timeout=60)
    assert "Traceback" not in err
    assert child.returncode == 0 or (child.returncode in (1, 3) and err.startswith("kdyno: ")), err
    return child.returncode
