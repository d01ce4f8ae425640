"""CPUs that a kernel doesn't see: refused before the build where recipe or base say it, else before the first boot."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.platforms import CpusMissing
from kdyno.runs.experiment.resolve import load_experiment
from kdyno.runs.prepare import prepare
from kdyno.runs.run import run_experiment
from kdyno.runs.session import Session
from kdyno.store.store import Store
from kdyno.store.url import sqlite_file
from tests.unit.fake_qemu import FakeQemu
from tests.unit.kernel_toy import toy_tree

EXPERIMENT = """
name = "toy"
source = "linux"
config = "{base}"
baseline = "plain"
blocks = 2

[variants.plain]
{recipe}

[machine]
lane = "wall"
accel = "tcg"
cpus = {cpus}
"""


@pytest.fixture
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeQemu:
    toy_tree(tmp_path)
    (tmp_path / "one.config").write_text("CONFIG_64BIT=y\n# CONFIG_SMP is not set\n")
    (tmp_path / "four.config").write_text("CONFIG_64BIT=y\nCONFIG_SMP=y\nCONFIG_NR_CPUS=4\n")
    return FakeQemu(tmp_path, monkeypatch)


def written(folder: Path, *, base: str = "make:tinyconfig", recipe: str = "", cpus: int = 2) -> Path:
    path = folder / "toy.toml"
    path.write_text(EXPERIMENT.format(base=base, recipe=recipe, cpus=cpus))
    return path


@pytest.mark.usefixtures("qemu")
@pytest.mark.parametrize(
    ("base", "recipe", "cpus", "why"),
    [
        ("make:tinyconfig", "kconfig = { SMP = false }", 2, "can use only 1: it has no SMP"),
        ("make:tinyconfig", "kconfig = { SMP = true, NR_CPUS = 2 }", 3, "can use only 2: CONFIG_NR_CPUS=2"),
        ("file:one.config", "", 2, "can use only 1: it has no SMP"),
        ("file:four.config", "", 5, "can use only 4: CONFIG_NR_CPUS=4"),
        ("file:four.config", "kconfig = { NR_CPUS = 8 }", 5, ""),
        ("file:one.config", "kconfig = { SMP = true, NR_CPUS = 8 }", 5, ""),
        ("dyno", "kconfig = { SMP = false }", 1, ""),
    ],
)
def test_what_an_experiment_asks_for_is_known_not_to_fit_before_anything_is_built(
    tmp_path: Path, base: str, recipe: str, cpus: int, why: str
) -> None:
    experiment = load_experiment(written(tmp_path, base=base, recipe=recipe, cpus=cpus))
    if why:
        with pytest.raises(CpusMissing, match=f"has {cpus} CPUs, but the kernel of variant plain {why}"):
            prepare(experiment, State(tmp_path / "state"), Talk(quiet=True))
    else:
        prepare(experiment, State(tmp_path / "state"), Talk(quiet=True))


def test_what_only_the_finished_configuration_tells_is_refused_before_the_first_boot(
    tmp_path: Path, qemu: FakeQemu
) -> None:
    experiment = load_experiment(written(tmp_path, base="make:tinyconfig"))
    state = State(tmp_path / "state")
    with Store(sqlite_file(state.store_file)) as store:
        with pytest.raises(CpusMissing, match="the kernel of variant plain can use only 1: it has no SMP"):
            run_experiment(experiment, Session(state, store, Talk(quiet=True)), again=False)
        assert store.runs() == []
    assert not [words for words in qemu.commands if "-kernel" in words], "it was booted"
