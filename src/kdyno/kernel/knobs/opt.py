"""opt = "O3": the optimisation level. -O2 and -Os are Kconfig's own choice; the others go after it in KCFLAGS."""

from __future__ import annotations

from kdyno.kernel.knobs.base import Contribution, KconfigRequest, Knob, KnobContext

SIZE, PERFORMANCE = "CC_OPTIMIZE_FOR_SIZE", "CC_OPTIMIZE_FOR_PERFORMANCE"


def contribute(value: str | None, context: KnobContext) -> Contribution:  # noqa: ARG001
    """Ask for an optimisation level; O1 and O3 ask for PERFORMANCE too, so that the base's choice has no effect."""
    if value is None:
        return Contribution()
    chosen, other = (SIZE, PERFORMANCE) if value == "Os" else (PERFORMANCE, SIZE)
    by = f'opt = "{value}"'
    return Contribution(
        kcflags=(f"-{value}",) if value in ("O1", "O3") else (),
        asks=(KconfigRequest(symbol=other, value="n", by=by), KconfigRequest(symbol=chosen, value="y", by=by)),
    )


KNOB = Knob("opt", contribute, in_matrix=True)
