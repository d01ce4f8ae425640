"""A mixed model for runs with holes: it also uses the boots whose partner in the block is missing."""

from __future__ import annotations

import numpy as np
import scipy

from kdyno.base.arrays import Labels, Values
from kdyno.judge.stats.diagnostics import reml
from kdyno.judge.stats.diagnostics.blocks import block_values, centre
from kdyno.judge.stats.diagnostics.tables import MixedEffect, MixedTable
from kdyno.judge.stats.estimate import exp
from kdyno.judge.stats.observations import Observations

MOST = 2000
"""Values; the fit takes seconds for more."""


def has_holes(observed: Observations) -> bool:
    """Return whether some variant lacks a block that another one has."""
    table = block_values(observed)
    if table is None or len(table.names) < 2:
        return False
    return len(table.logs) < len(table.names) * (int(table.blocks.max()) + 1)


def fit_mixed(observed: Observations, baseline: str, alpha: float) -> MixedTable:
    """Fit log value ~ variant with a random intercept for each block, and each variant's layout where known, by REML.

    Intervals and p are from t with the degrees of freedom of the effects (containment): those that blocks leave or, if
    layout was sampled, those of the images within blocks. How often these intervals hold is simulated in
    tests/judge_simulation. A failed fit is no error: the table says so.
    """
    table = block_values(observed)
    blank = MixedTable(confidence=1 - alpha)
    if table is None or baseline not in table.names or len(table.names) < 2:
        return blank.model_copy(update={"reason": "needs values in blocks, of the baseline and another variant"})
    if len(table.logs) > MOST:
        return blank.model_copy(update={"reason": f"not fitted to more than {MOST} values"})
    others = [name for name in table.names if name != baseline]
    design = np.column_stack(
        [np.ones(len(table.logs)), *(table.variants == table.names.index(name) for name in others)]
    ).astype(float)
    # REML climbs a surface whose steepness goes with the values' scale: fitted in units of their spread
    centre, scale = float(table.logs.mean()), float(table.logs.std())
    if scale == 0 or np.ptp(table.logs) == 0:
        return blank.model_copy(update={"reason": "all values agree"})
    images = _images(observed)
    df = _df(design, table.blocks, images)
    if df < 1:
        return blank.model_copy(update={"reason": "too few values: variants and blocks explain all of them"})
    try:
        levels = [table.blocks] if images is None else [table.blocks, images]
        fit = reml.fit_reml((table.logs - centre) / scale, design, levels)
    except np.linalg.LinAlgError as error:
        return blank.model_copy(update={"reason": f"no fit: {error}"})
    effects, errors = scale * fit.effects[1:], scale * fit.errors[1:]
    if not (np.isfinite(effects).all() and np.isfinite(errors).all() and (errors > 0).all()):
        return blank.model_copy(update={"reason": "no fit: the noise can't be distinguished from nothing"})
    reach = float(scipy.stats.t.isf(alpha / 2, df))
    return MixedTable(
        confidence=1 - alpha,
        converged=fit.converged,
        reason="" if fit.converged else "the fit did not converge: don't rely on it",
        effects=tuple(
            MixedEffect(
                variant=name,
                ratio=exp(float(effect)),
                low=exp(float(effect - reach * error)),
                high=exp(float(effect + reach * error)),
                p=float(2 * scipy.stats.t.sf(abs(effect) / error, df)),
            )
            for name, effect, error in zip(others, effects, errors, strict=True)
        ),
    )


def _images(observed: Observations) -> Labels | None:
    """Return the image of each value in the order of `block_values`, if layout was sampled: each variant has its own
    layouts.
    """
    clusters = [sample.clusters for name in observed.groups if (sample := observed.sample(name))]
    layouts = [labels for labels in clusters if labels is not None]
    if not layouts or len(layouts) < len(clusters):
        return None
    pairs = np.column_stack(
        [np.repeat(np.arange(len(layouts)), [len(labels) for labels in layouts]), np.concatenate(layouts)]
    )
    return np.unique(pairs, axis=0, return_inverse=True)[1].astype(np.int64)


def _df(design: Values, blocks: Labels, images: Labels | None) -> int:
    """Return the degrees of freedom of the variants' effects: those that are left, or those of images, besides the
    blocks.
    """
    variants = int(np.linalg.matrix_rank(centre(design, blocks)))
    if images is None:
        return len(design) - int(blocks.max()) - 1 - variants
    within = centre(np.eye(int(images.max()) + 1)[images], blocks)
    return int(np.linalg.matrix_rank(within)) - variants
