"""Trials: images that are asked for one after the other, each made from what is there of the one before."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from kdyno.base.state import State, StateNotWritable, unwritable_reason
from kdyno.kernel import images
from kdyno.kernel.build import NEEDED_MB, Objects, Progress
from kdyno.kernel.image import Image
from kdyno.kernel.images import load_image
from kdyno.kernel.make import build_workspace, sweep
from kdyno.kernel.plan import BuildPlan
from kdyno.kernel.source_trees import Say


class Trials:
    """Builds images whose plans differ in layout and in the rules of their delegation; see `open_trials`."""

    def __init__(self, state: State, stack: ExitStack, say: Say) -> None:
        self._state, self._stack, self._say = state, stack, say
        self._objects: Objects | None = None
        self._objects_key = ""

    def build(self, plans: Sequence[BuildPlan], progress: Progress) -> list[Image]:
        """Return the images of the plans, in their order; what was built before, by whomever, is not built again.

        The first one that is missing opens the object directory, which the following ones share: only objects that a
        plan chooses otherwise for are compiled again. Raise what `build` raises; another plan may follow that.
        """
        for plan in plans:
            if images.is_built(plan.key, self._state):
                continue
            self._state.require_space(NEEDED_MB)
            self._open(plan, progress).make_image(plan, progress)
        return [load_image(plan.key, self._state) for plan in plans]

    def _open(self, plan: BuildPlan, progress: Progress) -> Objects:
        if self._objects is None:
            if why := unwritable_reason(self._state.images):
                raise StateNotWritable(path=self._state.images, why=why)
            waiting = "waiting for another kdyno that builds the same images"
            lock = self._state.lock(f"image-{plan.objects_key}", on_wait=lambda: progress(0, None, waiting))
            self._stack.enter_context(lock)
            sweep(plan.objects_key, self._state)
            work = self._stack.enter_context(build_workspace(plan, self._state, self._say))
            self._objects, self._objects_key = Objects(work, os.cpu_count() or 1), plan.objects_key
        assert plan.objects_key == self._objects_key, "these plans can't share their objects"
        return self._objects


@contextmanager
def open_trials(state: State, say: Say = lambda _: None) -> Iterator[Trials]:
    """Yield trials; the object directory is removed at the end, and the images stay.

    Until then another kdyno that wants images of these objects waits.
    """
    with ExitStack() as stack:
        yield Trials(state, stack, say)
