"""The costly instructions of CPU families, or of a processor that was measured: data/costly.toml."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from kdyno.base import toml
from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.measure.cycles.instruction_costs import InstructionCosts

Form = Literal["any", "wide", "half", "bit-of-memory", "three-parts", "repeated"]
"""The form of operands: crates/lint/src/costly.rs."""


class NothingKnown(UserError):
    message = "kdyno has no list of costly instructions of {family}"
    hint = "choose one of {known}"


class NothingCostly(UserError):
    message = "{path} has no instruction that kdyno can find in a kernel and that has a better sequence there"
    hint = "use --family NAME for the costs that are known of a CPU family"


class CostlyRule(Frozen):
    name: str
    mnemonics: Annotated[tuple[str, ...], Field(min_length=1)]
    form: Form = "any"
    loop: str | None = None
    """The loop of data/lab/instructions.toml that has its cost on a processor that was measured."""
    cost: dict[str, str] = {}
    """The cost by family."""
    source: str = ""
    advice: str = ""


class CostlyFile(Frozen):
    rule: tuple[CostlyRule, ...]


@cache
def costly_rules() -> tuple[CostlyRule, ...]:
    """Return all rules of data/costly.toml."""
    text = (files("kdyno") / "data" / "costly.toml").read_text(encoding="utf-8")
    return CostlyFile.model_validate(toml.parse(text)).rule


def rules_for(family: str) -> list[dict[str, object]]:
    """Return the rules of a family in the format of kdyno-lint. Raises NothingKnown."""
    rules = [rule for rule in costly_rules() if family in rule.cost]
    if not rules:
        known = sorted({name for rule in costly_rules() for name in rule.cost})
        raise NothingKnown(family=family, known=", ".join(known))
    return [_record(rule, rule.cost[family], rule.source, rule.advice) for rule in rules]


def measured_rules(costs: InstructionCosts, path: Path) -> list[dict[str, object]]:
    """Return the rules of a processor that was measured, in the format of kdyno-lint. Raises NothingCostly."""
    bad = {cost.name: cost for cost in costs.instructions if cost.is_bad}
    rules = []
    for rule in costly_rules():
        cost = bad.get(rule.loop or "")
        if cost and cost.better_cycles is not None:
            text = f"{cost.cycles:.1f} cycles, {cost.better}: {cost.better_cycles:.1f}"
            record = _record(rule, text, "measured", cost.because)
            rules.append(record | {"saves": max(cost.cycles - cost.better_cycles, 0.0)})
    if not rules:
        raise NothingCostly(path=path)
    return rules


def _record(rule: CostlyRule, cost: str, source: str, advice: str) -> dict[str, object]:
    return {
        "name": rule.name,
        "mnemonics": rule.mnemonics,
        "form": rule.form,
        "cost": cost,
        "source": source,
        "advice": advice,
    }
