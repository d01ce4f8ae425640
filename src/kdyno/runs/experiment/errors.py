"""Errors of an experiment as a whole; variants.py has the errors of its variants."""

from __future__ import annotations

from kdyno.base.errors import UserError


class NoExperiment(UserError):
    message = "the experiment {path} cannot be read: {why}"
    hint = "`kdyno init FILE` writes one to start from"


class NotToml(UserError):
    message = "{path}: not TOML: {why}"
    hint = "see docs/formats.md for what an experiment looks like"


class BadExperiment(UserError):
    message = "{problems}"
    hint = "see docs/formats.md, or `kdyno schema experiment` for editors"


class BadRecordedExperiment(UserError):
    message = "standard input is not an experiment as a run records it: {why}"
    hint = "`kdyno show RUN --reproduce` prints one"


class NoTuning(UserError):
    message = "{path} has no table [tune]"
    hint = "add the table, which names the choices for a file: see docs/tuning.md"


class NoRecipeSpace(UserError):
    message = "{path} has no table [space]"
    hint = "add the table, which names the knobs and their choices: see docs/tuning.md"


class NoBaseline(UserError):
    message = "{path}:{line}: the baseline {baseline} is not a variant"
    hint = "variants: {known}"


class UnknownVariant(UserError):
    message = "the experiment has no variant {name}"
    hint = "variants: {known}"


class TooManyLayouts(UserError):
    message = "{path}:{line}: {layouts} layouts need as many blocks, but the experiment has {blocks}"
    hint = "each block boots one layout: set blocks = {layouts} or more"


class OneLayout(UserError):
    message = "{path}:{line}: one layout does not show how much layouts differ"
    hint = "set layouts = 6 or more; or leave it out, and use `layout_seed = SEED` in a variant for one link order"


class LayoutOfBuiltKernel(UserError):
    message = "{path}:{line}: variant {variant} is a built kernel, which has the one link order that it was built with"
    hint = "remove `layouts`: verdicts are then about these images, with one link order each"


class NotToConfirm(UserError):
    message = "{path}:{line}: {why}"
    hint = "remove `confirm`; `kdyno validate --paths` compares both lanes of a machine whose kernels are processes"


class TooManyBoots(UserError):
    message = "{path}:{line}: {why}"
    hint = "split the experiment, or use fewer blocks or variants"
