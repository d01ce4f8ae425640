"""mitigations = "off": what a kernel does against faults of CPUs. It doesn't change the image."""

from __future__ import annotations

from kdyno.kernel.knobs.base import Context, Contribution, Knob


def contribute(value: str | None, context: Context) -> Contribution:  # noqa: ARG001
    return Contribution()


KNOB = Knob("mitigations", contribute, in_matrix=True)
