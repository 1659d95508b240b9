"""Bags: a total or a mean over a group of weighted points, such as the pixels of a district."""

from typing import Any

import numpy as np

from aggregauss.checks import as_matrix, as_names, as_vector, first_bad
from aggregauss.supports.support import Measure, Support


def Bags(X: Any, bag: Any, weights: Any = None, measure: Measure = "total", labels: Any = None) -> Support:
    """Groups of the points `X`, shape (N, d); `bag` names the group of each point, `weights` its share.

    Rows come in the sorted order of the names, which are kept in `labels`; give `labels` to choose the order.
    A total is Σ w_i f(x_i), a mean divides it by Σ w_i.

    >>> districts = Bags([[0.0], [1.0], [5.0]], bag=["north", "north", "south"], weights=[2.0, 1.0, 4.0])
    >>> districts.labels.tolist(), districts.mass.tolist()
    (['north', 'south'], [3.0, 4.0])
    """
    center = as_matrix(X, "Bags", "X")
    names = as_names(bag, "Bags", "bag")
    if names.shape != (len(center),):
        raise ValueError(
            f'Bags: "bag" must name the group of each of the {len(center)} rows of "X", but has shape {names.shape}.'
        )
    weight = np.ones(len(center)) if weights is None else as_vector(weights, "Bags", "weights", len(center))
    if (weight < 0).any():
        row = first_bad(weight < 0)[0]
        raise ValueError(f'Bags: "weights" must not be negative, but row {row} is {weight[row]}.')
    order, owner = _owners(names, labels)
    sort = np.argsort(owner, kind="stable")
    support = Support(
        center[sort],
        np.zeros_like(center),
        owner[sort],
        weight[sort],
        len(order),
        measure,
        "Bags",
        labels=order,
    )
    if (support.mass <= 0).any():
        row = first_bad(support.mass <= 0)[0]
        raise ValueError(f'Bags: every bag needs positive total weight, but bag "{order[row]}" has none.')
    return support


def _owners(names: np.ndarray, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    found, owner = np.unique(names, return_inverse=True)
    if labels is None:
        return found, owner
    order = as_names(labels, "Bags", "labels")
    if len(np.unique(order)) != len(order):
        raise ValueError('Bags: "labels" must name each bag once.')
    missing = np.setdiff1d(order, found)
    unknown = np.setdiff1d(found, order)
    if len(missing) or len(unknown):
        side, name = ("no points", missing[0]) if len(missing) else ('no place in "labels"', unknown[0])
        raise ValueError(f'Bags: "labels" and "bag" must name the same bags, but "{name}" has {side}.')
    return order, np.argsort(order)[owner]
