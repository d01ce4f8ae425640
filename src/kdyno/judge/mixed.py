"""A mixed model for runs with holes: it also uses the boots whose partner in the block is missing."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import stats

from kdyno.judge.blocks import in_blocks
from kdyno.judge.estimate import exp
from kdyno.judge.observations import Labels, Observations, Values
from kdyno.judge.tables import MixedEffect, MixedTable

MOST = 2000
"""Values; the fit takes seconds for more."""


def has_holes(observed: Observations) -> bool:
    """Whether some variant lacks a block that another one has."""
    found = in_blocks(observed)
    if found is None or len(found.names) < 2:
        return False
    return len(found.logs) < len(found.names) * (int(found.blocks.max()) + 1)


def mixed(observed: Observations, baseline: str, alpha: float) -> MixedTable:
    """Fit log value ~ variant with a random intercept for each block, and each variant's layout where known, by REML.

    Intervals and p are from the normal distribution (Wald), which with few blocks is a little too sure: read them
    beside the paired ones. Never raises for a fit that fails: the table says so.
    """
    found = in_blocks(observed)
    blank = MixedTable(confidence=1 - alpha)
    if found is None or baseline not in found.names or len(found.names) < 2:
        return blank.model_copy(update={"reason": "needs values in blocks, of the baseline and another variant"})
    if len(found.logs) > MOST:
        return blank.model_copy(update={"reason": f"not fitted to more than {MOST} values"})
    others = [name for name in found.names if name != baseline]
    design = np.column_stack(
        [np.ones(len(found.logs)), *(found.variants == found.names.index(name) for name in others)]
    ).astype(float)
    # REML climbs a surface whose steepness goes with the values' scale: fitted in units of their spread
    centre, scale = float(found.logs.mean()), float(found.logs.std())
    if scale == 0 or np.ptp(found.logs) == 0:
        return blank.model_copy(update={"reason": "all values agree"})
    try:
        params, errors, converged = _fitted((found.logs - centre) / scale, design, found.blocks, _images(observed))
    except (np.linalg.LinAlgError, ValueError) as error:
        return blank.model_copy(update={"reason": f"no fit: {error}"})
    effects, errors = scale * params[1:], scale * errors[1:]
    if not (np.isfinite(effects).all() and np.isfinite(errors).all() and (errors > 0).all()):
        return blank.model_copy(update={"reason": "no fit: the noise can't be told from nothing"})
    reach = float(stats.norm.isf(alpha / 2))
    return MixedTable(
        confidence=1 - alpha,
        converged=converged,
        reason="" if converged else "the fit did not converge: don't rely on it",
        effects=tuple(
            MixedEffect(
                variant=name,
                ratio=exp(float(effect)),
                low=exp(float(effect - reach * error)),
                high=exp(float(effect + reach * error)),
                p=float(2 * stats.norm.sf(abs(effect) / error)),
            )
            for name, effect, error in zip(others, effects, errors, strict=True)
        ),
    )


def _images(observed: Observations) -> Labels | None:
    """The image of each value in the order of `in_blocks`, if layout was sampled: each variant has its own layouts."""
    found = [sample.clusters for name in observed.groups if (sample := observed.sample(name))]
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    pairs = np.column_stack([np.repeat(np.arange(len(known)), [len(each) for each in known]), np.concatenate(known)])
    return np.unique(pairs, axis=0, return_inverse=True)[1].astype(np.int64)


def _fitted(values: Values, design: Values, blocks: Labels, images: Labels | None) -> tuple[Values, Values, bool]:
    """Fixed effects, their standard errors, and whether the fit converged."""
    # brings pandas, which takes seconds to import: only who has holes pays for it
    from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec  # type: ignore[import-untyped]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a variance on its boundary, 0, is an answer too
        if images is None:
            found = MixedLM(values, design, groups=blocks).fit(reml=True, method="lbfgs")
        else:
            parts = {"block": blocks, "layout": images}
            columns = [[np.eye(len(set(each)))[np.unique(each, return_inverse=True)[1]]] for each in parts.values()]
            names = [[[str(label) for label in np.unique(each)]] for each in parts.values()]
            spec = VCSpec(list(parts), names, columns)
            found = MixedLM(values, design, groups=np.zeros(len(values)), exog_re=None, exog_vc=spec).fit(reml=True)
        return np.asarray(found.fe_params), np.asarray(found.bse_fe), bool(found.converged)
