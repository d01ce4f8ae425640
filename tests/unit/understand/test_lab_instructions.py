"""Costs of instructions: all loops are timed, bad instructions have a better sequence beside them."""

from __future__ import annotations

import json
import tomllib

import jsonschema
import pytest
from pydantic import ValidationError

from kdyno.base.talk import Talk
from kdyno.cli.schemas import schema
from kdyno.measure.cycles.instruction_costs import costs_toml
from kdyno.understand.lab.instructions import (
    _InstructionFile,
    cost_lines,
    costs_of,
    instruction_loops,
    time_instructions,
)

EQUAL = {loop.name: 2.0 for loop in instruction_loops()}


def test_all_loops_are_timed_on_this_processor() -> None:
    costs = {cost.name: cost.cycles for cost in time_instructions(Talk(quiet=True), passes=1).instructions}
    assert costs.keys() == EQUAL.keys()
    assert all(cycles > 0 for cycles in costs.values())
    assert costs["div-64"] > 2 * costs["add"]
    assert costs["rep-movsb-4096"] > costs["rep-movsb-16"]


def test_an_instruction_is_bad_where_the_better_one_costs_much_less() -> None:
    costs = {cost.name: cost for cost in costs_of(EQUAL | {"bsf": 2.9, "failed-forward": 18.6}, "a CPU").instructions}
    assert not costs["bsf"].is_bad
    assert costs["failed-forward"].is_bad
    assert (costs["failed-forward"].better, costs["failed-forward"].better_cycles) == ("forwarded-load", 2.0)
    assert not costs["add"].is_bad


def test_costs_are_printed_and_written_with_their_processor() -> None:
    report = costs_of(EQUAL | {"pushf-popf": 17.5}, "a CPU")
    text = "\n".join(cost_lines(report))
    assert "setc-and-add: 2.0; popf is microcode: keep a condition in a register" in text
    assert "lane wall: cycles of the core per operation, on a CPU" in text
    table = tomllib.loads(costs_toml(report))
    assert table["cpu"] == "a CPU"
    assert table["instruction"]["pushf-popf"]["better"] == "setc-and-add"
    assert "better" not in table["instruction"]["bsf"]
    jsonschema.validate(json.loads(report.model_dump_json()), schema("lab-instructions"))


def test_a_better_loop_must_exist() -> None:
    row = {"name": "a", "what": "a", "group": "latency", "operations": 1, "body": "nop", "better": "b"}
    with pytest.raises(ValidationError, match="missing: \\['b'\\]"):
        _InstructionFile.model_validate({"loop": [row]})
