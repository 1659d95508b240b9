"""Sentences for what the baselines cannot use."""

from typing import Any

import numpy as np

from aggregauss.checks import first_bad, whole_number
from aggregauss.inference.data import Observations, observe
from aggregauss.supports.support import Support


def observed(support: Any, y: Any, likelihood: str, who: str = "fit", dim: int | None = None) -> Observations:
    """Checked responses of bags of individuals, all of them points; counts must not be negative."""
    try:
        observations = observe(support, y, None)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("fit:", f"{who}:", 1)) from None
    individuals(support, who, dim)
    bad = observations.y < 0
    if likelihood == "poisson" and bad.any():
        row = first_bad(bad)[0]
        raise ValueError(
            f'{who}: "y" must not be negative under likelihood="poisson", but row {row} is {observations.y[row]}. '
            'Use likelihood="normal".'
        )
    return observations


def individuals(support: Any, who: str, dim: int | None = None) -> Support:
    """`support`, when it is made of points, in `dim` dimensions."""
    if not isinstance(support, Support):
        raise TypeError(
            f'{who}: "support" must be a batch of supports such as Points or Bags, but got {type(support).__name__}. '
            "Wrap point locations as Points(X)."
        )
    if support.width.any():
        raise ValueError(
            f"{who}: the baselines see individuals, which are points, but these {support.kind} have width. "
            "Use Bags of points inside them."
        )
    if dim is not None and support.dim != dim:
        raise ValueError(f"{who}: the supports must have {dim} dimension(s) as in fit, but have {support.dim}.")
    return support


def pair(validation: Any, likelihood: str, dim: int, who: str = "fit") -> Observations | None:
    """The validation bags with their responses, if any are given."""
    if validation is None:
        return None
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        raise ValueError(f'{who}: "validation" must be a pair (supports, y), but got {type(validation).__name__}.')
    support, y = validation
    return observed(support, y, likelihood, f"{who}, validation", dim)


def number(value: Any, who: str, name: str, positive: bool = False) -> float:
    """`value` as a finite float that is not negative, or is positive."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not np.isfinite(value) or value < 0 or (positive and value == 0):
        wanted = "a positive number" if positive else "a number that is not negative"
        raise ValueError(f'{who}: "{name}" must be {wanted}, but got {value!r}.')
    return float(value)


def optional_number(value: Any, who: str, name: str) -> float | None:
    """None, or a positive number."""
    return None if value is None else number(value, who, name, positive=True)


def optional_whole_number(value: Any, who: str, name: str) -> int | None:
    """None, or a whole number of at least one."""
    return None if value is None else whole_number(value, who, name)
