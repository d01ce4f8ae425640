"""The plan of a kernel that is built already: by then it is an image."""

from __future__ import annotations

from kdyno.base.cpu import read_cpu
from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.base.state import State
from kdyno.kernel import kconfig, knobs
from kdyno.kernel.built_kernels.adopt import adopted
from kdyno.kernel.image import ImageRecord, SourceIdentity
from kdyno.kernel.inputs import Input
from kdyno.kernel.kconfig_check import is_met, read_config
from kdyno.kernel.knobs import KnobContext
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource
from kdyno.kernel.source_trees import Say
from kdyno.kernel.toolchain import Toolchain


class NotInThisKernel(UserError):
    message = "{by} requires CONFIG_{symbol}={value}, but {image} has it {actual}"
    hint = "leave it out, or use a kernel that kdyno builds"


class GivenPlan(Frozen):
    """A kernel that is built and kept as an image: it answers the questions that a plan is asked before a build."""

    recipe: Recipe
    record: ImageRecord
    base: kconfig.Base
    """Its own configuration."""
    notes: tuple[str, ...] = ()
    cached: bool = True
    inputs: tuple[Input, ...] = ()
    needs: tuple[str, ...] = ()
    """Always empty: the flags of its compiler are unknown."""

    @property
    def key(self) -> str:
        return self.record.key

    @property
    def objects_key(self) -> str:
        """Return the key; no other image shares its objects."""
        return self.record.key

    @property
    def source(self) -> SourceIdentity:
        return self.record.source

    @property
    def asked(self) -> dict[str, str]:
        """Return the symbols of its configuration, and their values."""
        return read_config(self.base.text)

    @property
    def asks_for_kunit(self) -> bool:
        return self.asked.get("KUNIT") == "y"


def plan_given(recipe: Recipe, state: State, say: Say) -> GivenPlan:
    """Return the plan of a recipe that names a built kernel. Raise the errors of `adopted` and of the knobs of its
    start.
    """
    assert recipe.image is not None
    image = adopted(recipe.image, state, say)
    base = kconfig.Base(spec="its own", kind="config", text=image.config.read_bytes().decode(errors="replace"))
    context = KnobContext(
        source=KernelSource(identity=image.record.source, tree=image.directory),
        toolchain=Toolchain(identity=image.record.toolchain, command="", make=()),
        cpu=read_cpu,
        state=state,
    )
    contribution = knobs.contributions(recipe, context, only_runtime=True)
    config = read_config(base.text)
    for request in contribution.asks:
        if not is_met(request, config):
            actual = config.get(request.symbol, "not at all")
            raise NotInThisKernel(
                by=request.by, symbol=request.symbol, value=request.value, image=recipe.image, actual=actual
            )
    return GivenPlan(recipe=recipe, record=image.record, base=base, notes=(*contribution.notes, *image.record.notes))
