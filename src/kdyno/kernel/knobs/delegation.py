"""delegation = "plan.toml" or a table: the compiler, the flags and the way of each file; see docs/delegation.md."""

from __future__ import annotations

from pathlib import Path

from kdyno.installed import find_program
from kdyno.kernel.delegation.ccd import COMPILER_WORD
from kdyno.kernel.delegation.plan_file import DelegationPlan, load, whole
from kdyno.kernel.delegation.resolve import resolve
from kdyno.kernel.delegation.resolved import Delegation
from kdyno.kernel.knobs.base import Context, Contribution, Knob
from kdyno.kernel.lkd import BINARY
from kdyno.names import absolute


def contribute(value: str | DelegationPlan | None, context: Context) -> Contribution:
    """The plan that ccd reads, as an input. Rules may differ between images of one object directory; compilers not."""
    if value is None:
        return Contribution()
    find_program(BINARY, "a delegation")
    plan = load(Path(value)) if isinstance(value, str) else whole(value)
    resolution = resolve(plan, context.source.tree, context.source.identity.spec, context.toolchain, context.state)
    return Contribution(
        make=(COMPILER_WORD,),
        inputs=(resolution.input,),
        facts=resolution.compilers,
        delegation=Delegation(plan=resolution.plan, strict=plan.strict),
    )


def located(value: str | DelegationPlan | None, base: Path) -> str | DelegationPlan | None:
    """The plan's path, or the paths in it, made absolute; relative ones start from `base`. Raises NameUnfit."""
    if isinstance(value, str):
        return absolute(value, base)
    return value and value.located(base)


KNOB = Knob("delegation", contribute, in_matrix=True, located=located)
