"""An assignment as a delegation plan: for a recipe, and as files for people. Pure."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from kdyno.kernel.delegation.globs import escaped
from kdyno.kernel.delegation.plan_file import DelegationPlan, DelegationRule
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.toolchain import family_of
from kdyno.runs.experiment.tune import CompilerChoice
from kdyno.tune.delegation.trial import Assignment

COLUMNS = ("file", "compiler", "add", "remove", "choice", "cost_reference", "cost_choice")
EVERY_FILE = "**/*.c"


def plan_of(
    assignment: Assignment, choices: Mapping[str, CompilerChoice], compilers: Iterable[str] = ()
) -> DelegationPlan:
    """Return the delegation plan. The configuration must suit all `compilers`, even those that no rule names."""
    files: dict[str, list[str]] = defaultdict(list)
    for file, choice in sorted(assignment.items()):
        files[choice].append(escaped(file))
    return DelegationPlan(
        compilers=tuple(compilers), rule=tuple(_rule(choices[choice], files[choice]) for choice in sorted(files))
    )


def whole_kernel(recipe: Recipe, choice: CompilerChoice) -> Recipe:
    """Return the recipe of the kernel with one choice for all files, configured for its compiler.

    zig is not a toolchain of a recipe. It compiles every file that a rule may choose, and the recipe's compiler the
    rest. A compiler of another family than the recipe's has neither its profile nor its link-time optimisation.
    """
    if choice.compiler == "zig":
        return recipe.model_copy(update={"delegation": DelegationPlan(rule=(_rule(choice, [EVERY_FILE]),))})
    rule = DelegationRule(files=(EVERY_FILE,), add=choice.add, remove=choice.remove)
    delegation = DelegationPlan(rule=(rule,)) if choice.add or choice.remove else None
    update: dict[str, Any] = {"toolchain": choice.compiler, "delegation": delegation}
    if family_of(choice.compiler) != family_of(recipe.toolchain):
        update |= {name: Recipe.model_fields[name].get_default() for name in ("lto", "profile")}
    return recipe.model_copy(update=update)


def plan_text(table: str, remarks: Iterable[str]) -> str:
    """Return the plan as TOML, which refers to a table in the same directory."""
    comments = "".join(f"# {remark}\n" for remark in remarks)
    return f'{comments}\n[[rule]]\ntable = "{table}"\n'


def table_text(
    assignment: Assignment, choices: Mapping[str, CompilerChoice], costs: Mapping[str, tuple[float, float]]
) -> str:
    """Return the measured table as CSV, the largest saving first.

    `costs` has for each file the cost in the reference and with its choice, as parts of the reference's modelled
    cycles.
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for file in sorted(assignment, key=lambda file: (costs[file][1] - costs[file][0], file)):
        choice, (reference_cost, choice_cost) = choices[assignment[file]], costs[file]
        rows.writerow(
            [
                file,
                choice.compiler,
                " ".join(choice.add),
                " ".join(choice.remove),
                assignment[file],
                f"{reference_cost:.6f}",
                f"{choice_cost:.6f}",
            ]
        )
    return text.getvalue()


def _rule(choice: CompilerChoice, files: Iterable[str]) -> DelegationRule:
    return DelegationRule(files=tuple(files), compiler=choice.compiler, add=choice.add, remove=choice.remove)
