"""Warnings about covariates that a kernel cannot make sense of as they come."""

from collections.abc import Iterator, Sequence

import numpy as np

from aggregauss.checks import warn
from aggregauss.kernels.algebra import Product, Sum
from aggregauss.kernels.kernel import Kernel
from aggregauss.supports.support import Support

UNEQUAL = 1e3


def warn_of_scales(support: Support, kernels: Sequence[Kernel], remedy: str) -> None:
    """Say so, once, when a lengthscale belongs to constant covariates alone, or is far too small for its covariates."""
    if len(support) < 2:
        return
    low, high = support.bounding_box()
    seen = support.sample()
    sd = np.where(high > low, np.hypot(seen.center.std(axis=0), seen.width.max(axis=0)), 0.0)
    parts = [leaf for kernel in kernels for leaf in _leaves(kernel)]
    for message in dict.fromkeys(said for part in parts for said in _of_one(part, high == low, sd, remedy)):
        warn(message)


def _of_one(part: Kernel, same: np.ndarray, sd: np.ndarray, remedy: str) -> Iterator[str]:
    lengthscale = getattr(part, "lengthscale", None)
    if lengthscale is None:
        return
    columns = np.arange(len(sd)) if part.active_dims is None else np.array(part.active_dims)
    constant = columns[same[columns]]
    if len(constant) and (np.ndim(lengthscale) or len(constant) == len(columns)):
        yield (
            f"{type(part).__name__}: column(s) {', '.join(map(str, constant))} of the data are constant, so "
            "nothing is learned about their lengthscale. Leave them out with active_dims."
        )
    varying = sd[columns][sd[columns] > 0]
    if np.ndim(lengthscale) == 0 and len(varying) and varying.max() > UNEQUAL * varying.min():
        yield (
            f"{type(part).__name__}: one lengthscale for columns whose standard deviations range from "
            f"{varying.min():.3g} to {varying.max():.3g}. {remedy} a list of lengthscales."
        )
    elif np.ndim(lengthscale) and len(lengthscale) == len(columns) > 1:
        yield from _of_far_start(part, columns, sd[columns], remedy)


def _of_far_start(part: Kernel, columns: np.ndarray, sd: np.ndarray, remedy: str) -> Iterator[str]:
    """From lengthscales at which all individuals look unrelated a search finds no way."""
    lengthscale = np.asarray(part.lengthscale)  # pyright: ignore[reportAttributeAccessIssue]
    far = np.flatnonzero(sd > UNEQUAL * lengthscale)
    if len(far) and not dict(part.marks)["lengthscale"].fixed:
        j = far[0]
        yield (
            f"{type(part).__name__}: the lengthscale of column {columns[j]} starts at {lengthscale[j]:.3g}, but the "
            f"column's standard deviation is {sd[j]:.3g}. {remedy} a start near that."
        )


def _leaves(kernel: Kernel) -> list[Kernel]:
    if isinstance(kernel, Sum | Product):
        return [leaf for part in kernel.parts for leaf in _leaves(part)]
    return [kernel]
