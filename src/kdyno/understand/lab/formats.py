"""The formats of this room that cross a process boundary, by their names in `kdyno schema`."""

from __future__ import annotations

from kdyno.base.formats import Format

FORMATS = {
    "lab-time": Format("kdyno.understand.lab.verdicts:LabTimes", "`kdyno lab time --json`"),
    "lab-instructions": Format(
        "kdyno.measure.cycles.instruction_costs:InstructionCosts", "`kdyno lab instructions --json`"
    ),
    "lab-sizes": Format("kdyno.understand.lab.sizes:CallSizes", "`kdyno lab sizes --json`"),
    "lab-prove": Format("kdyno.understand.lab.prove:LabProofs", "`kdyno lab prove --json`"),
}
