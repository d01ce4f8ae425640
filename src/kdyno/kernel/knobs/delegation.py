"""delegation = "plan.toml" or a table: the compiler, the flags and the way of each file; see docs/delegation.md."""

from __future__ import annotations

from pathlib import Path

from kdyno.base.installed import find_program
from kdyno.base.names import absolute
from kdyno.kernel.delegation.ccd import COMPILER_WORD
from kdyno.kernel.delegation.plan_file import DelegationPlan, load, whole
from kdyno.kernel.delegation.resolve import resolve
from kdyno.kernel.delegation.resolved import Delegation
from kdyno.kernel.knobs.base import Contribution, Host, Knob, KnobContext, combined
from kdyno.kernel.lkd import BINARY


def check(value: str | DelegationPlan | None, host: Host) -> None:  # noqa: ARG001
    """Raise the errors of reading a plan."""
    if value is not None:
        written(value)


def contribute(value: str | DelegationPlan | None, context: KnobContext) -> Contribution:  # noqa: ARG001
    """Return the plan as written; `delegated` checks it against the host and the tree, together with profiles."""
    if value is None:
        return Contribution()
    return Contribution(delegation=written(value))


def written(value: str | DelegationPlan) -> DelegationPlan:
    """Return the plan with those that it extends. Raise PlanUnreadable, BadPlan and CyclicExtends."""
    return load(Path(value)) if isinstance(value, str) else whole(value)


def delegated(contribution: Contribution, context: KnobContext, tree: Path) -> tuple[Contribution, Delegation | None]:
    """Return the whole contribution with ccd's needs for its plan and its profiles, and ccd's input; None if there are
    neither. `tree` is the source with the recipe's patches, whose files rules may name. Rules may differ between images
    of one object directory; compilers and profiles may not.
    """
    if contribution.delegation is None and not contribution.profiles:
        return contribution, None
    find_program(BINARY, "a delegation")
    plan = contribution.delegation or DelegationPlan()
    spec = context.source.identity.spec
    resolution = resolve(plan, tree, spec, context.toolchain, context.state, contribution.profiles)
    ours = Contribution(make=(COMPILER_WORD,), inputs=(resolution.input,), facts=resolution.compilers)
    return combined([contribution, ours]), Delegation(plan=resolution.plan, strict=plan.strict)


def located(value: str | DelegationPlan | None, base: Path) -> str | DelegationPlan | None:
    """Return the plan's path, or the paths in it, made absolute; relative ones start from `base`. Raise NameUnfit."""
    if isinstance(value, str):
        return absolute(value, base)
    return value and value.located(base)


KNOB = Knob("delegation", contribute, check, in_matrix=True, located=located)
