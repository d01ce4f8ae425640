"""Builds the images of one object directory for a fleet on this host."""

from __future__ import annotations

from pathlib import Path
from threading import Event

from pydantic import TypeAdapter

from kdyno.base.errors import Unbuildable, UserError
from kdyno.base.files import read_whole
from kdyno.base.state import State
from kdyno.fleet.blobs import Blobs
from kdyno.fleet.carry_boot import CannotCarryOut
from kdyno.fleet.messages import BuildFailure, BuildResult, BuildSpec
from kdyno.fleet.tree_archive import receive_tree
from kdyno.kernel import packers, toolchain
from kdyno.kernel.build import BuildFailed, BuildPlan, build_layouts
from kdyno.kernel.images import RECORD
from kdyno.kernel.inputs import Input

MOST_BYTES = 100_000_000
"""Bytes of plans: each has a whole .config."""
PLANS = TypeAdapter(tuple[BuildPlan, ...])


class BuildCancelled(Exception):
    """The build is another worker's by now, or this worker ends."""


def carry_build(spec: BuildSpec, state: State, blobs: Blobs, jobs: int, cancelled: Event) -> BuildResult:
    """Build, and bring the images into the blob store. An image that is here already is not built again.

    Raises CannotCarryOut, BuildCancelled, and InfrastructureError.
    """

    def heard(_: str) -> None:
        if cancelled.is_set():
            raise BuildCancelled

    with state.scratch("build") as place:
        blobs.get(spec.plans, place / "plans.json")
        plans = PLANS.validate_json(read_whole(place / "plans.json", MOST_BYTES))
        _require_same_programs(plans[0], spec, state)
        tree = receive_tree(spec.tree, blobs, state)
        for name, digest in spec.inputs.items():
            blobs.get(digest, place / name)
        placed = [
            plan.model_copy(update={"tree": tree, "inputs": tuple(_moved(file, place) for file in plan.inputs)})
            for plan in plans
        ]
        try:
            images = build_layouts(placed, state, lambda _done, _total, _note: None, jobs, heard=heard)
        except BuildFailed as error:
            return BuildResult(failure=_failure(error, blobs.put(Path(str(error.facts["log"])))))
        except Unbuildable as error:
            return BuildResult(failure=_failure(error, None))
    for image in images:
        for name in image.record.files:
            blobs.put(image.directory / name)
    return BuildResult(records=tuple(blobs.put(image.directory / RECORD) for image in images))


def _require_same_programs(plan: BuildPlan, spec: BuildSpec, state: State) -> None:
    """Raise CannotCarryOut unless the programs here make the planned image: its key has their digests."""
    name, planned = plan.recipe.toolchain, plan.toolchain.identity
    try:
        here = toolchain.find(name, state).identity
    except UserError as error:
        raise CannotCarryOut(str(error)) from error
    if here != planned:
        raise CannotCarryOut(f"its {name} is another one ({here.version}, and the client's is {planned.version})")
    own = packers.digests(plan.asked, plan.arch.is_packed, state)
    if others := sorted(name for name in {*own, *spec.packers} if own.get(name) != spec.packers.get(name)):
        raise CannotCarryOut(f"other programs than the client's: {', '.join(others)}")


def _moved(file: Input, place: Path) -> Input:
    return file.model_copy(update={"path": place / file.file_name})


def _failure(error: Unbuildable, log: str | None) -> BuildFailure:
    return BuildFailure(error=str(error.facts.get("error", error)), advice=error.advice, log=log)
