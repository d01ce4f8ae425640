"""Build images: configure, compile, link, keep. The same plan is never built twice, not even by two kdynos at once."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from kdyno.base.files import read_whole
from kdyno.base.state import State, StateNotWritable, unwritable_reason
from kdyno.base.version import __version__
from kdyno.kernel import build_directory, build_log, estimate, hardening, images, inputs, kconfig, kconfig_check, lkd
from kdyno.kernel.delegation import ccd, held, records
from kdyno.kernel.delegation.records import Records
from kdyno.kernel.image import Image, ImageRecord
from kdyno.kernel.images import load_image
from kdyno.kernel.knobs.kconfig import MOST_BYTES, parse_fragment
from kdyno.kernel.loaded_modules import check_loaded_modules
from kdyno.kernel.make import BuildFailed, BuildKilled, BuildWork, build_workspace, sweep
from kdyno.kernel.plan import BuildPlan, plan_build
from kdyno.kernel.source_trees import Say, remove_tree
from kdyno.kernel.toolchain import ToolchainIdentity

__all__ = [
    "BuildFailed",
    "BuildKilled",
    "BuildPlan",
    "Configured",
    "Progress",
    "build",
    "build_layouts",
    "check_configuration",
    "check_delegated",
    "configure",
    "configured",
    "guess_steps",
    "load_image",
    "make_targets",
    "plan_build",
]

Progress = Callable[[int, int | None, str], None]
"""Lines of output so far, lines expected (None: unknown), the current line."""

NEEDED_MB = 2500
"""Megabytes of free space for a build of a trimmed configuration: objects, then vmlinux with its debug information."""
LAYOUT_MB = 120
"""Megabytes for each further layout: its bzImage and vmlinux."""
LINKED = "vmlinux.unstripped"
"""The file that vmlinux is made from since 6.15; only its absence makes Kbuild link anew."""


def build(plan: BuildPlan, state: State, progress: Progress, jobs: int | None = None) -> Image:
    """Return the image of the plan, built now unless it was built before. Ctrl-C leaves nothing half-written."""
    return build_layouts([plan], state, progress, jobs)[0]


def build_layouts(
    plans: Sequence[BuildPlan],
    state: State,
    progress: Progress,
    jobs: int | None = None,
    say: Say = lambda _: None,
    heard: Say = lambda _: None,
    others: Sequence[BuildPlan] = (),
) -> list[Image]:
    """Return the images of plans that differ in nothing but layout and delegation, in the order of the plans.

    What isn't built yet is compiled once and linked once for each layout. If a delegation differs from the one before,
    only the objects with another choice are compiled again. An image is kept as soon as it is there: Ctrl-C loses only
    the one under way. `heard` gets each line of the build's output; `others` are further plans that are carried out.
    """
    objects_key = plans[0].objects_key
    assert all(plan.objects_key == objects_key for plan in plans), "these plans can't share their objects"
    if _missing(plans, state):
        waiting = "waiting for another kdyno that builds the same image"
        with state.lock(f"image-{objects_key}", on_wait=lambda: progress(0, None, waiting)):
            if missing := _missing(plans, state):
                if why := unwritable_reason(state.images):  # said before the build, not after it
                    raise StateNotWritable(path=state.images, why=why)
                sweep(objects_key, state)
                state.require_space(NEEDED_MB + LAYOUT_MB * (len(missing) - 1))
                is_first = _is_first(plans[0], others, state)
                with build_workspace(missing[0], state, say, heard, is_first=is_first) as work:
                    objects = Objects(work, jobs or os.cpu_count() or 1)
                    for plan in missing:
                        objects.make_image(plan, progress)
    return [load_image(plan.key, state) for plan in plans]


def check_configuration(plan: BuildPlan, state: State) -> tuple[str, ...]:
    """Configure only, which takes seconds. Raise the errors of `build` about Kconfig; return the notes that it would
    record.
    """
    if images.is_built(plan.key, state):
        return load_image(plan.key, state).record.notes
    with state.lock(f"image-{plan.objects_key}"), build_workspace(plan, state) as work:
        return configure(work)


@dataclass(frozen=True)
class Configured:
    """The result of Kconfig for a plan."""

    config: dict[str, str]
    unmet: tuple[kconfig_check.Unmet, ...]
    """Requests that had no effect, and why."""


def configured(plan: BuildPlan, state: State) -> Configured:
    """Configure only, which takes seconds, and refuse no request without effect. Raise ValueRuns and the errors of
    make.
    """
    if images.is_built(plan.key, state):
        text = read_whole(load_image(plan.key, state).config, MOST_BYTES).decode(errors="replace")
        config = kconfig_check.read_config(text)
    else:
        with state.lock(f"image-{plan.objects_key}"), build_workspace(plan, state) as work:
            config, _ = _made_config(work)
    return Configured(config, tuple(kconfig_check.unmet(plan.asks, config, plan.tree, plan.arch.source)))


def _missing(plans: Sequence[BuildPlan], state: State) -> list[BuildPlan]:
    """Return the plans without an image, each once."""
    return list({plan.key: plan for plan in plans if not images.is_built(plan.key, state)}.values())


def _is_first(plan: BuildPlan, others: Sequence[BuildPlan], state: State) -> bool:
    """Return whether no image was built with the compiler and the flags of a plan, and none with another configuration
    is about to be.
    """

    def flags(of: BuildPlan) -> tuple[ToolchainIdentity, tuple[str, ...]]:
        return of.toolchain.identity, of.make

    configuration = plan.base, plan.asks
    about_to_be = (other for other in others if (other.base, other.asks) != configuration)
    was_built = any((record.toolchain, record.make) == flags(plan) for record in images.records(state))
    return not was_built and all(flags(other) != flags(plan) for other in about_to_be)


class Objects:
    """One object directory, in which images are made one after the other; their plans share its key.

    Keeping an image moves vmlinux, bzImage and System.map away, which is what makes the next make link again. The log
    of an image holds what made the objects, and its own links.
    """

    def __init__(self, work: BuildWork, jobs: int) -> None:
        self._work, self._jobs = work, jobs
        self._before: BuildPlan | None = None
        """The plan that the objects are of, as far as they are there."""
        self._is_whole = False
        """Whether all of them are there."""
        self._notes: tuple[str, ...] = ()
        self._steps = 0
        self._logged = 0

    def make_image(self, plan: BuildPlan, progress: Progress) -> None:
        """Make the missing objects of the plan, link them, and keep the image.

        After a BuildFailed the next plan can be made all the same.
        """
        started = time.monotonic()
        work = replace(self._work, plan=plan)
        expected = None
        if self._before is None:
            progress(0, None, "configuring")
            self._notes = configure(work)
            expected = images.expected_steps(plan.base.spec, work.state) or guess_steps(work)
        else:
            work.written.seek(self._logged)
            work.written.truncate()
            self._is_whole = not _forget_changed(work, self._before) and self._is_whole
        self._before = plan
        self._logged = self._logged or work.written.tell()
        is_compiled, self._is_whole = self._is_whole, False
        make = work.make_again if is_compiled else work.make
        steps = make_targets(work, make, ("vmlinux", plan.arch.target), progress, expected, self._jobs)
        self._is_whole = True
        if not self._steps:
            self._steps, self._logged = steps, work.written.tell()
        _keep(work, self._notes, self._steps, started)


def _forget_changed(work: BuildWork, before: BuildPlan) -> bool:
    """Remove the objects that the plan's delegation makes in another way than the one before; return whether there are
    any.
    """
    if not (before.delegation and work.plan.delegation):
        return False
    return bool(ccd.forget_changed(work.objects, before.delegation.plan, work.plan.delegation.plan))


def configure(work: BuildWork) -> tuple[str, ...]:
    """Make .config, and stop unless it holds what was requested. Return notes on requests of the base without
    effect.
    """
    plan = work.plan
    config, left_out = _made_config(work)
    kconfig_check.refuse(kconfig_check.unmet(plan.asks, config, plan.tree, plan.arch.source))
    notes = (*plan.notes, *left_out, *_held(work, config))
    if plan.base.kind != "fragment":
        return notes
    overruled = {request.symbol for request in plan.asks}
    wished = parse_fragment(plan.base.text, f"base {plan.base.spec}")
    lines = {request.symbol: request for request in wished if request.symbol not in overruled}
    expected = hardening.to_be_met(list(lines.values()), config, overruled, plan.tree)
    misses = kconfig_check.unmet(expected, config, plan.tree, plan.arch.source)
    return (*notes, *(miss.text for miss in misses if miss.instead not in overruled))


def _made_config(work: BuildWork) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the .config that the kernel's own tools make now, and notes on loaded modules that it lacks. Raise
    ValueRuns and NoModuleKept.
    """
    lines: list[str] = []
    for command in kconfig.steps(work.plan.base, work.plan.asks, work.objects, work.make):
        work.run(command, lines.append)
    config = kconfig_check.read_config(_config_text(work))
    kconfig_check.refuse_what_runs(config)
    return config, check_loaded_modules(work.plan.base, lines)


def _held(work: BuildWork, config: Mapping[str, str]) -> tuple[str, ...]:
    """Return the effects of several compilers on the configuration: refused, or listed, by configuring for the
    reference alone.
    """
    if work.plan.delegation is None:
        return ()
    plan = work.plan.delegation.plan
    held.refuse_unshared(config, plan)
    if not plan.held:
        return ()
    plain = work.objects.parent / build_directory.PLAIN
    plain.mkdir(exist_ok=True)  # of a configuration that failed, where trials go on
    shutil.copyfile(work.objects / ".config", plain / ".config")
    work.run([*work.make_plain(plain), "olddefconfig"])
    alone = kconfig_check.read_config((plain / ".config").read_text(encoding="utf-8", errors="replace"))
    remove_tree(plain)
    return (held.note(held.held_symbols(alone, config), plan),)


def _config_text(work: BuildWork) -> str:
    """Return the .config as it is, whatever it holds: no line end but the kernel's is made one."""
    return (work.objects / ".config").read_bytes().decode(errors="replace")


def guess_steps(work: BuildWork) -> int:
    """Return how many lines a build of the .config just made should have, if no image of its base is there to tell."""
    return estimate.lines(estimate.options_on(_config_text(work)), work.plan.arch_name)


def make_targets(
    work: BuildWork, make: Sequence[str], targets: Sequence[str], progress: Progress, expected: int | None, jobs: int
) -> int:
    """Run this make to the end, and be sure of the layout; return how many files it made."""
    done = 0
    seed = work.plan.recipe.layout_seed
    about = "" if seed is None else f"layout {seed}: "

    def on_line(line: str) -> None:
        nonlocal done
        if build_log.is_step(line):
            done += 1
            progress(done, max(expected, done) if expected else None, about + line.strip())

    lkd.forget(work.objects)
    work.run([*make, f"-j{jobs}", *targets], on_line)
    lkd.check(work.objects, work.environment, work.log)
    return done


def check_delegated(work: BuildWork) -> Records:
    """Return what made the objects, after it was checked; nothing if ccd had no part in it."""
    delegation = work.plan.delegation
    return ccd.check(work.objects, delegation.plan, strict=delegation.strict) if delegation else Records()


def _keep(work: BuildWork, notes: tuple[str, ...], steps: int, started: float) -> None:
    """Store the image; the remaining files make the next make link again."""
    made, ordered = check_delegated(work), lkd.notes(work.objects)
    for note in ordered:
        work.say(note)
    record = _record(work, (*notes, *ordered, *_unused(work, made)), steps, time.monotonic() - started)
    record = record.model_copy(update={"objects": made.counts})
    images.store_image(record, work.objects, work.log, work.state, records.written(made))
    (work.objects / LINKED).unlink(missing_ok=True)


def _unused(work: BuildWork, made: Records) -> tuple[str, ...]:
    """Return a note on the rules of a delegation that had no file in this configuration."""
    if work.plan.delegation is None:
        return ()
    unused = ccd.unused_rules(work.plan.delegation.plan, made)
    return (f"{', '.join(unused)} of the delegation plan had no file in this configuration",) if unused else ()


def _record(work: BuildWork, notes: tuple[str, ...], steps: int, seconds: float) -> ImageRecord:
    plan = work.plan
    return ImageRecord(
        key=plan.key,
        source=plan.source,
        recipe=plan.recipe.built,
        base=plan.base.spec,
        arch=plan.arch.name,
        toolchain=plan.toolchain.identity,
        release=(work.objects / "include/config/kernel.release").read_text(encoding="utf-8").strip(),
        sizes=images.sizes(work.objects, plan.arch),
        build_seconds=round(seconds, 1),
        steps=steps,
        make=plan.make,
        environment=plan.environment,
        inputs=inputs.digests(plan.inputs),
        config_sha256=images.content_digest(work.objects / ".config"),
        kdyno=__version__,
        patches=plan.patches,
        facts=plan.facts,
        needs=plan.needs,
        notes=notes,
    )
