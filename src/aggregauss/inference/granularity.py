"""Is a summary by representative points fine enough for a kernel? The numbers of `representative` in plain words."""

import dataclasses
from typing import Any, Literal, NamedTuple

import numpy as np

from aggregauss.checks import as_matrix, as_vector, first_bad
from aggregauss.inference.representative import difference, interpolation
from aggregauss.kernels.covariance import variances
from aggregauss.kernels.kernel import Kernel
from aggregauss.kernels.white import continuous
from aggregauss.supports.bags import Bags
from aggregauss.supports.boxes import Boxes
from aggregauss.supports.nodes import at_nodes
from aggregauss.supports.points import Points
from aggregauss.supports.support import Support, concatenate, draw

FINE, COARSE = 0.2, 0.45  # η up to which points do as well as regions, and from which they clearly do not
HIDDEN = 0.3  # of the noise of a summary: a smaller error does not show
PLACES = 600  # at most so many stand for all: eigenvalues cost their number cubed
WORDS = {
    "fine": "Fine enough",
    "borderline": "Borderline",
    "coarse": "Too coarse for this kernel",
}


@dataclasses.dataclass(frozen=True)
class Granularity:
    """How much a summary by representative points hides, in units of the function's prior standard deviation.

    `eta` bounds what the points do to the marginal likelihood and to predictions (Theorem 4.6 of Shikuri 2024): near
    zero nothing, at one it promises nothing. `place_error` is how far the function at a place is from its value at the
    representative point (root mean square), `summary_error` how far its mean over a region is from that value, and
    `noise` the standard deviation of the noise of a summary, where known. `beta`, `gamma`, `kappa`, `lambda1`,
    `lambda2` and `eta_printed` are the quantities of the paper; the printed bound is far above one in most cases.
    """

    eta: float
    place_error: float
    summary_error: float
    noise: float | None
    beta: float
    gamma: float
    kappa: float
    lambda1: float
    lambda2: float
    eta_printed: float
    summaries: int
    individuals: float | None

    @property
    def level(self) -> Literal["fine", "borderline", "coarse"]:
        """In one word."""
        return level(self.eta)

    @property
    def verdict(self) -> str:
        """In one or two sentences."""
        beside = "" if self.noise is None else f", beside noise of {self.noise:.2g}"
        return (
            f"{WORDS[self.level]} (eta {self.eta:.2g}): the function differs by {self.place_error:.2g} prior standard "
            f"deviations between a place and its representative point, and by {self.summary_error:.2g} between the "
            f"mean over a region and that point{beside}.{self._advice}"
        )

    @property
    def _advice(self) -> str:
        if self.level != "fine" and self.noise is not None and self.summary_error < HIDDEN * self.noise:
            return " Beside the noise of the summaries this is little: points will do."
        return ADVICE[self.level]

    def __repr__(self) -> str:
        rows = {
            "eta": f"{self.eta:.3g} (as printed in the paper: {self.eta_printed:.3g})",
            "place error, summary error": f"{self.place_error:.3g}, {self.summary_error:.3g} prior standard deviations",
            "beta, gamma, kappa": f"{self.beta:.3g}, {self.gamma:.3g}, {self.kappa:.3g}",
            "lambda1, lambda2": f"{self.lambda1:.3g}, {self.lambda2:.3g}",
        }
        body = "\n".join(f"  {name:<27} {text}" for name, text in rows.items())
        of = "" if self.individuals is None else f" of {self.individuals:,.0f} individuals"
        return f"Granularity({self.summaries:,} summaries{of})\n{body}\n  {self.verdict}"


REGIONS = " Fit the places (Bags) where they are known, or regions (Boxes, Polygons) that are evenly inhabited."
ADVICE = {
    "fine": "",
    "borderline": REGIONS,
    "coarse": f"{REGIONS} Or ask for a finer summary: plan_grid finds one.",
}


def level(eta: float) -> Literal["fine", "borderline", "coarse"]:
    """What η says, in one word."""
    return "fine" if eta <= FINE else "borderline" if eta < COARSE else "coarse"


def granularity(kernel: Kernel, Z: Any, regions: Support, counts: Any = None, noise: Any = None) -> Granularity:
    """The numbers for points `Z`, the regions that they stand for, and how many individuals each region has.

    A region counts by its `counts`, or else by its mass. White parts of the kernel are left out: no summary, however
    fine, shows a value that belongs to one place alone.

    >>> import aggregauss as ag
    >>> cells = ag.Intervals([0.0, 1.0, 2.0], [1.0, 2.0, 3.0], measure="mean")
    >>> fine, coarse = (granularity(ag.RBF(scale, 1.0), [0.5, 1.5, 2.5], cells) for scale in (9.0, 0.5))
    >>> fine.level, coarse.level, fine.eta < coarse.eta
    ('fine', 'coarse', True)
    """
    kept = continuous(kernel)
    if kept is None:
        raise TypeError("granularity: a White kernel has no value in common between two places. Add another kernel.")
    points = as_matrix(Z, "granularity", "Z")
    regions = regions.with_measure("mean")
    each = regions.mass if counts is None else as_vector(counts, "granularity", "counts", len(regions))
    share = each / each.sum()
    X, owner, p = _places(regions, share)
    apart = difference(kept, X, points[owner], p)
    total = None if counts is None else float(each.sum())
    printed = interpolation(kept, X, points, owner, p, total or float(len(p)))
    scale = np.sqrt(apart.variance)
    return Granularity(
        eta=apart.eta,
        place_error=apart.error,
        summary_error=_root_mean(_summary_variance(kept, points, regions), share) / scale,
        noise=None if noise is None else _root_mean(np.asarray(noise), share) / scale,
        beta=apart.beta,
        gamma=printed.gamma,
        kappa=printed.kappa,
        lambda1=printed.lambda1,
        lambda2=printed.lambda2,
        eta_printed=printed.eta,
        summaries=len(points),
        individuals=total,
    )


class Represented(NamedTuple):
    """Which summaries stand for something, their points, and the regions they stand for."""

    rows: np.ndarray
    Z: np.ndarray
    regions: Support


def represented(support: Support, X: Any, widths: Any) -> Represented:
    """Representative points, and the regions they stand for, from whichever of these the user has.

    `X` are places (each belongs to the nearest point) or supports, one for each point; `widths` are those of boxes
    about the points. A support that has regions of its own is represented by their centres of mass.
    """
    Z = support.with_measure("mean").integrate(support.center)
    if X is not None and widths is not None:
        raise ValueError('granularity: give "X" or "widths", not both.')
    every = np.arange(len(Z))
    if isinstance(X, Support):
        return Represented(every, Z, _matching(X, support))
    if X is not None:
        return _nearest(Z, as_matrix(X, "granularity", "X"))
    if widths is not None:
        sides = _sides(widths, support.dim)
        return Represented(every, Z, Boxes(Z - sides / 2, Z + sides / 2, measure="mean"))
    if (support.atom_counts == 1).all() and not any(support.wide):
        raise ValueError(
            "granularity: the summaries are at points, so what they stand for is not known. Give the places of the "
            "individuals as X=places, or the sides of the cells as widths=[...]."
        )
    return Represented(every, Z, support)


def _places(regions: Support, share: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    nodes = at_nodes(regions)
    weight = nodes.effective_weight * share[nodes.owner]
    chosen = draw(len(weight), PLACES, seed=0)
    return nodes.center[chosen], nodes.owner[chosen], weight[chosen] / weight[chosen].sum()


def _summary_variance(kernel: Kernel, Z: np.ndarray, regions: Support) -> np.ndarray:
    """Var(mean of f over the region - f(z)): the variance of a support whose last atom has weight minus one."""
    both = concatenate([regions, Points(Z)])
    order = np.argsort(both.owner % len(Z), kind="stable")
    signed = dataclasses.replace(
        both,
        center=both.center[order],
        width=both.width[order],
        owner=(both.owner % len(Z))[order],
        weight=np.where(both.owner < len(Z), both.effective_weight, -1.0)[order],
        size=len(Z),
        measure="total",
        labels=None,
        geometry=None,
    )
    return np.maximum(np.asarray(variances(kernel, signed)), 0.0)


def _root_mean(variance: np.ndarray, share: np.ndarray) -> float:
    return float(np.sqrt(np.sum(share * variance)))


def _nearest(Z: np.ndarray, X: np.ndarray) -> Represented:
    from scipy.spatial import KDTree  # slow to import

    if X.shape[1] != Z.shape[1]:
        raise ValueError(f'granularity: "X" must have {Z.shape[1]} column(s) like the summaries, but has {X.shape[1]}.')
    owner = KDTree(Z).query(X)[1]
    used = np.unique(owner)
    return Represented(used, Z[used], Bags(X, owner, measure="mean"))


def _matching(X: Support, support: Support) -> Support:
    if len(X) != len(support) or X.dim != support.dim:
        raise ValueError(
            f'granularity: supports given as "X" must be one for each of the {len(support)} summaries in {support.dim} '
            f"dimension(s), but are {len(X)} in {X.dim}."
        )
    return X


def _sides(widths: Any, dim: int) -> np.ndarray:
    sides = as_vector(widths, "granularity", "widths")
    if len(sides) not in (1, dim):
        raise ValueError(f'granularity: "widths" must be one number or {dim}, but has {len(sides)}.')
    if (sides <= 0).any():
        row = first_bad(sides <= 0)[0]
        raise ValueError(f'granularity: "widths" must be positive, but number {row} is {sides[row]}.')
    return np.broadcast_to(sides, dim)
