"""What several loads need together: each requirement, for loads that run one after the other, and at once."""

from __future__ import annotations

from functools import reduce
from operator import or_

import pytest

from kdyno.measure.workload.definition import Definition, definition, own_names
from kdyno.measure.workload.needs import OF_PROGRAMS, OF_ROOT, Load, Needs

REDIS = Needs(packages=("redis", "procps"), unpack={"usr/a": "x"}, kconfig={"INET": True, "HZ": 250}, memory_mb=300)
BUILD = Needs(packages=("gcc", "procps"), unpack={"usr/b": "y"}, kconfig={"HZ": 1000}, memory_mb=200)


@pytest.mark.parametrize(("joined", "memory_mb"), [(REDIS | BUILD, 300), (REDIS.at_once(BUILD), 500)])
def test_loads_need_all_packages_archives_and_symbols_and_the_larger_memory_or_at_once_the_sum(
    joined: Needs, memory_mb: int
) -> None:
    assert joined == Needs(
        packages=("redis", "procps", "gcc"),
        unpack={"usr/a": "x", "usr/b": "y"},
        kconfig={"INET": True, "HZ": 1000},
        memory_mb=memory_mb,
    )


def test_a_load_that_says_nothing_of_memory_adds_none() -> None:
    silent = Needs()
    assert (silent | silent).memory_mb == silent.at_once(silent).memory_mb == 0
    assert (silent | REDIS) == (REDIS | silent) == REDIS == REDIS.at_once(silent)


def test_every_requirement_is_joined() -> None:
    """One that `_joined` left out would be lost wherever two loads meet."""
    said = set(REDIS.model_dump(exclude_defaults=True))
    assert said == set(Needs.model_fields)
    assert set((REDIS | Needs()).model_dump(exclude_defaults=True)) == said


def test_what_starts_programs_and_holds_packages_is_asked_of_the_kernel() -> None:
    assert Needs().of_programs().kconfig == OF_PROGRAMS.kconfig
    assert REDIS.of_programs().kconfig == OF_PROGRAMS.kconfig | OF_ROOT.kconfig | REDIS.kconfig
    assert Needs(kconfig={"NET": "m"}).of_programs().kconfig["NET"] == "m"


def test_a_workload_and_a_load_are_needs() -> None:
    workloads = [definition(name) for name in own_names()]
    together = reduce(or_, workloads, Needs())
    load = Load(tests=("lat_pipe",), **dict(together))
    assert load.needs == together
    assert type(load.needs) is Needs
    assert set(together.packages) == {package for workload in workloads for package in workload.packages}


def test_what_is_on_record_lies_flat_under_the_same_keys() -> None:
    """Whoever renames or nests one of these breaks the records of runs."""
    needs: dict[str, object] = {"packages": [], "unpack": {}, "kconfig": {}}
    assert Load(tests=("lat_pipe",)).model_dump(mode="json") == {
        **needs,
        "memory_mb": 0,
        "tests": ["lat_pipe"],
        "params": {},
        "programs": [],
        "runner": "agent",
    }
    workload = Definition.model_validate(
        {
            "name": "w",
            "description": "d",
            "command": "true",
            "metrics": {"m": {"pattern": "(1)", "unit": "s", "direction": "lower"}},
        }
    )
    assert {key: workload.model_dump(mode="json")[key] for key in (*needs, "memory_mb")} == {**needs, "memory_mb": None}
