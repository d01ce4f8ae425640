"""The builds of a run on a fleet, as tasks of its queue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event

from kdyno.base.errors import Unbuildable
from kdyno.base.files import write_whole
from kdyno.base.frozen import digest
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.base.text import format_count
from kdyno.fleet.blobs import Blobs
from kdyno.fleet.carried_tasks import CarriedTasks
from kdyno.fleet.carry_build import PLANS
from kdyno.fleet.connection import FleetConnection
from kdyno.fleet.errors import AnotherImage, BuildQuarantined, NobodyOffers, RefusedByFleet
from kdyno.fleet.messages import BuildFailure, BuildResult, BuildSpec
from kdyno.fleet.queue.model import EndedTask, Task, Worker
from kdyno.fleet.tree_archive import store_tree
from kdyno.kernel import packers
from kdyno.kernel.build import BuildFailed, BuildPlan
from kdyno.kernel.build_directory import log_file
from kdyno.kernel.images import RECORD, is_built, read_record, receive_image
from kdyno.runs.images import Images, Plans, build_images


@dataclass(frozen=True)
class BuildGroup:
    """The plans of one object directory that have no image here."""

    variants: str
    """The names of their variants, for people."""
    plans: tuple[BuildPlan, ...]

    @property
    def key(self) -> str:
        return digest([plan.key for plan in self.plans])


def build_on_fleet(
    plans: Plans, connection: FleetConnection, workers: Callable[[], Sequence[Worker]], state: State, talk: Talk
) -> Images:
    """Have workers build what isn't built yet; what none of them can build is built here. Return all images.

    Raises BuildFailed, RefusedByFleet, BuildQuarantined, AnotherImage, and what the queue and the blob store raise.
    """
    groups = []
    for group in missing_groups(plans, state):
        if why := why_not_carried(group):
            talk.say(f"note: {group.variants}: this host builds it: {why}")
        else:
            groups.append(group)
    builders = [worker for worker in workers() if worker.offer.slots.get("build")] if groups else []
    if builders:
        builds = CarriedBuilds(connection.blobs, state, talk, digest([group.key for group in groups])[:12])
        with CarriedTasks(connection, builds.run, "build", builders, talk) as tasks:
            builds.carry_all(groups, tasks)
    elif groups:
        talk.say("note: no worker of the fleet builds (kdyno worker --builds N): this host builds the kernels")
    return build_images(plans, state, talk)


def missing_groups(plans: Plans, state: State) -> list[BuildGroup]:
    """Return what isn't built here, by object directory."""
    by_objects: dict[str, dict[str, BuildPlan]] = defaultdict(dict)
    variants: dict[str, dict[str, None]] = defaultdict(dict)
    for variant, layouts in plans.items():
        for plan in layouts:
            if isinstance(plan, BuildPlan) and not is_built(plan.key, state):
                by_objects[plan.objects_key][plan.key] = plan
                variants[plan.objects_key][variant] = None
    return [BuildGroup(", ".join(variants[key]), tuple(group.values())) for key, group in by_objects.items()]


def why_not_carried(group: BuildGroup) -> str | None:
    """Return why only the client can build a group; None if a worker can."""
    if any(plan.delegation for plan in group.plans):
        return "it has several compilers, or a profile for each file"
    return None


class CarriedBuilds:
    """Builds that a fleet carries out."""

    def __init__(self, blobs: Blobs, state: State, talk: Talk, name: str) -> None:
        self._blobs, self._state, self._talk = blobs, state, talk
        self.run = f"build-{name}"

    def carry_all(self, groups: Sequence[BuildGroup], tasks: CarriedTasks) -> None:
        """Have all groups built, and keep their images here. What all workers refuse is left, with a note."""
        queued = {group.key: self._task(group) for group in groups}
        tasks.put(list(queued.values()))
        what = f"building {format_count(len(groups), 'kernel')} on the fleet"
        with self._talk.working(what, is_estimate=True) as advance:
            for done, group in enumerate(groups):
                advance(done, len(groups), group.variants)
                task = queued[group.key]
                try:
                    ended = tasks.carry(task.name, [task], Event())
                except NobodyOffers as error:
                    self._talk.say(f"note: {group.variants}: this host builds it: {error.facts['missing']}")
                    continue
                assert ended is not None, "nobody cancels a build"
                self._keep(group, ended, task.subject)
                self._talk.on_images_built(len(group.plans))

    def _task(self, group: BuildGroup) -> Task:
        first = group.plans[0]
        inputs = {file.file_name: file for plan in group.plans for file in plan.inputs}
        spec = BuildSpec(
            plans=self._stored(PLANS.dump_json(group.plans)),
            tree=store_tree(first.tree, self._blobs, self._state, self._talk.say),
            inputs={name: self._blobs.put(file.path) for name, file in inputs.items()},
            packers=packers.digests(first.asked, first.arch.is_packed, self._state),
        )
        return Task(
            key=group.key,
            run=self.run,
            kind="build",
            subject=f"build-{group.key[:12]}",
            spec=spec.model_dump(mode="json"),
        )

    def _stored(self, content: bytes) -> str:
        with self._state.scratch("plans") as place:
            write_whole(place / "plans.json", content)
            return self._blobs.put(place / "plans.json")

    def _keep(self, group: BuildGroup, ended: EndedTask, subject: str) -> None:
        if ended.result is None:
            raise BuildQuarantined(variants=group.variants, why=ended.reason, subject=subject)
        result = BuildResult.model_validate(ended.result)
        if result.failure:
            raise self._failed(group.plans[0], result.failure, ended.host)
        for plan, record in zip(group.plans, result.records, strict=True):
            with self._state.scratch("image") as place:
                self._blobs.get(record, place / RECORD)
                image = read_record(place)
            if image.key != plan.key:
                raise AnotherImage(host=ended.host, built=image.key[:12], planned=plan.key[:12])
            receive_image(image, self._blobs.get, self._state)

    def _failed(self, plan: BuildPlan, failure: BuildFailure, host: str) -> Unbuildable:
        if failure.log is None:
            return RefusedByFleet(error=failure.error, advice=failure.advice, host=host)
        log = log_file(plan.objects_key, self._state)
        self._blobs.get(failure.log, log)
        return BuildFailed(what=f"{plan.source.spec} ({plan.source.version})", error=failure.error, log=log)
