"""What names a load: one table for all places where a user names one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.base.errors import KdynoError
from kdyno.measure.workload.definition import NoSuchWorkload, NotAWorkload, WorkloadUnfit, definition, own_text
from kdyno.measure.workload.lmbench import LmbenchWorkload
from kdyno.measure.workload.named import (
    ExperimentBesideOthers,
    NoTrainingLoad,
    UnknownLoad,
    load_named,
    training_load,
)
from kdyno.runs.soak.loads import loads_of

EXPERIMENT = 'name = "e"\nsource = "s"\nbaseline = "a"\n[variants.a]\n'


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.toml").write_text(own_text("redis").replace('"redis"', '"mine"', 1))
    (tmp_path / "programs.toml").write_text(EXPERIMENT + '[workload]\ntype = "programs"\nuse = ["./mine.toml"]\n')
    (tmp_path / "tests.toml").write_text(
        EXPERIMENT + '[workload]\ntests = ["lat_ctx"]\nparams = { lat_ctx = { processes = 4 } }\n'
    )
    (tmp_path / "plain.toml").write_text(EXPERIMENT)
    (tmp_path / "bad.toml").write_text(EXPERIMENT + '[workload]\ntype = "programs"\nusing = ["redis"]\n')
    (tmp_path / "type.toml").write_text(EXPERIMENT + '[workload]\ntype = "program"\n')
    (tmp_path / "neither.toml").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def counted(name: str) -> tuple[str, ...]:
    return training_load((name,)).names


def fitted(name: str) -> tuple[str, ...]:
    return load_named([name]).load().names


def soaked(name: str) -> tuple[str, ...]:
    return tuple(load.workload.name for load in loads_of([name]))


def judged(name: str) -> tuple[str, ...]:
    return (definition(name).name,)


Outcome = tuple[str, ...] | type[KdynoError]
TABLE: list[tuple[str, Outcome, Outcome, Outcome]] = [
    # what is named, trained on or counted, fitted to, soaked or judged
    ("lat_pipe", ("lat_pipe",), ("lat_pipe",), NoSuchWorkload),
    ("redis", ("redis",), ("redis",), ("redis",)),
    ("rediss", ("rediss",), UnknownLoad, NoSuchWorkload),  # the agent says later that it has no such test
    ("mine.toml", ("mine",), ("mine",), ("mine",)),
    ("./mine.toml", ("mine",), ("mine",), ("mine",)),
    ("programs.toml", ("mine",), ("mine",), NotAWorkload),
    ("tests.toml", ("lat_ctx",), ("lat_ctx",), NotAWorkload),
    ("bad.toml", WorkloadUnfit, WorkloadUnfit, NotAWorkload),
    ("type.toml", WorkloadUnfit, WorkloadUnfit, NotAWorkload),
    ("neither.toml", WorkloadUnfit, WorkloadUnfit, WorkloadUnfit),
    ("gone.toml", WorkloadUnfit, WorkloadUnfit, WorkloadUnfit),
    ("./gone", WorkloadUnfit, WorkloadUnfit, WorkloadUnfit),
]


@pytest.mark.parametrize(("name", "train", "fit", "one"), TABLE)
def test_a_name_means_the_same_everywhere(name: str, train: Outcome, fit: Outcome, one: Outcome) -> None:
    for verb, outcome in ((counted, train), (fitted, fit), (soaked, one), (judged, one)):
        if isinstance(outcome, tuple):
            assert verb(name) == outcome
        else:
            with pytest.raises(outcome):
                verb(name)


def test_an_experiment_without_a_workload_means_the_default_one() -> None:
    assert load_named(["plain.toml"]) == LmbenchWorkload()
    assert len(counted("plain.toml")) == 19


def test_tests_of_an_experiment_keep_their_parameters() -> None:
    assert training_load(("tests.toml", "lat_pipe")).params == {"lat_ctx": {"processes": 4}}


def test_what_is_wrong_in_an_experiments_workload_is_said_with_what_was_meant() -> None:
    with pytest.raises(WorkloadUnfit, match=r"bad.toml can't be used: \[workload\]: .*unknown key `using`"):
        counted("bad.toml")
    with pytest.raises(WorkloadUnfit, match=r"no `type` that there is: lmbench, command, programs"):
        counted("type.toml")


def test_an_experiment_is_fitted_to_alone() -> None:
    with pytest.raises(ExperimentBesideOthers, match=r"programs\.toml is an experiment file"):
        load_named(["lat_pipe", "programs.toml"])
    assert load_named(["lat_pipe", "again=./mine.toml"]).load().names == ("lat_pipe", "again")


def test_a_workload_that_nothing_counts_trains_nothing() -> None:
    with pytest.raises(NoTrainingLoad, match="trained on sysbench") as refused:
        training_load(("sysbench",))
    trainable = refused.value.advice.rpartition("one of ")[2].split(", ")
    assert {"web", "redis"} <= set(trainable)
    assert "sysbench" not in trainable
    for name in trainable:
        assert training_load((name,)).names


@pytest.mark.parametrize(("line", "why"), [("x = 99999999999999999999", "64 bits"), (r'x = "\u0000"', "NUL character")])
def test_values_that_nothing_can_hold_are_refused_in_a_workload(directory: Path, line: str, why: str) -> None:
    (directory / "w.toml").write_text(f"{line}\n")
    with pytest.raises(WorkloadUnfit, match=why):
        definition("w.toml")
