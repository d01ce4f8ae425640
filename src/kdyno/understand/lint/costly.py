"""The costly instructions of CPU families: data/costly.toml."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import Field

from kdyno.base import toml
from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen

Form = Literal["any", "wide", "bit-of-memory", "three-parts", "repeated"]
"""The form of operands: crates/lint/src/costly.rs."""


class NothingKnown(UserError):
    message = "kdyno has no list of costly instructions of {family}"
    hint = "choose one of {known}"


class CostlyRule(Frozen):
    name: str
    mnemonics: Annotated[tuple[str, ...], Field(min_length=1)]
    form: Form = "any"
    cost: dict[str, str]
    """The cost by family."""
    source: str
    advice: str


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
    return [rule.model_dump() | {"cost": rule.cost[family]} for rule in rules]
