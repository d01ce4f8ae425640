"""The formats of this room that cross a process boundary, by the names that `kdyno schema` has for them."""

from __future__ import annotations

from kdyno.base.formats import Format

FORMATS = {
    "build": Format("kdyno.kernel.image:ImagesByVariant", "`kdyno build --json`"),
    "delegation": Format("kdyno.kernel.delegation.show:PlanView", "`kdyno delegation show PLAN --json`"),
    "delegation-image": Format("kdyno.kernel.delegation.show:ImageView", "`kdyno delegation show IMAGE --json`"),
    "delegation-plan": Format(
        "kdyno.kernel.delegation.plan_file:DelegationPlan", "a delegation plan", mode="validation"
    ),
    "delegation-record": Format(
        "kdyno.kernel.delegation.records:Line", "what ccd records, each line", mode="validation"
    ),
    "delegation-resolved": Format(
        "kdyno.kernel.delegation.resolved:Resolved", "the plan that ccd reads", mode="validation"
    ),
    "image": Format("kdyno.kernel.image:ImageRecord", "image.json, beside an image", mode="validation"),
    "march": Format("kdyno.kernel.march.report:MarchReport", "`kdyno march --json`"),
    "march-list": Format("kdyno.base.cpu_families:Marches", "`kdyno march list --json`", mode="validation"),
    "section": Format(
        "kdyno.kernel.vmlinux.sections:GroupedSection",
        "what lkd lists of hot and cold functions, each line",
        mode="validation",
    ),
}
