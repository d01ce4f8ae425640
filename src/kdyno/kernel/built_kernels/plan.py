"""What stands in the place of a build's plan where a kernel is built already: by then it is an image."""

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
from kdyno.kernel.knobs import Context
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import Source
from kdyno.kernel.source_trees import Say
from kdyno.kernel.toolchain import Toolchain


class NotInThisKernel(UserError):
    message = "{by} needs a kernel with CONFIG_{symbol}={value}, and {image} has it {actual}"
    hint = "leave it out, or take a kernel that kdyno builds"


class GivenPlan(Frozen):
    """A kernel that is built and kept as an image: it answers what is asked of a plan before a build."""

    recipe: Recipe
    record: ImageRecord
    base: kconfig.Base
    """Its own configuration."""
    notes: tuple[str, ...] = ()
    cached: bool = True
    inputs: tuple[Input, ...] = ()
    needs: tuple[str, ...] = ()
    """Nothing is known of the flags that its compiler was given."""

    @property
    def key(self) -> str:
        return self.record.key

    @property
    def objects_key(self) -> str:
        """Nothing shares its objects."""
        return self.record.key

    @property
    def source(self) -> SourceIdentity:
        return self.record.source

    @property
    def asked(self) -> dict[str, str]:
        """The symbols of its configuration, and their values."""
        return read_config(self.base.text)

    @property
    def asks_for_kunit(self) -> bool:
        return self.asked.get("KUNIT") == "y"


def plan_given(recipe: Recipe, state: State, say: Say) -> GivenPlan:
    """Return the plan of a recipe that names a built kernel; raises what `adopted` and the knobs of its start raise."""
    assert recipe.image is not None
    image = adopted(recipe.image, state, say)
    base = kconfig.Base(spec="its own", kind="config", text=image.config.read_bytes().decode(errors="replace"))
    context = Context(
        source=Source(identity=image.record.source, tree=image.directory),
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
