"""Simplices: volumes, moments, uniform points, and cuts by axis-parallel planes, in any number of dimensions.

A batch of simplices is an array of shape (N, d + 1, d). Algorithm 1 of Smith, Alvarez and Lawrence (2019) is here with
its corrections: the volume takes the absolute value of the determinant, and the weights of a random point are
(1 - l_i) Π_{j<i} l_j with l_i = U_i^{1/(n-i)}, l_n = 0, which makes them Dirichlet(1, ..., 1).
"""

import functools
import itertools
import math

import numpy as np


def volume(simplices: np.ndarray) -> np.ndarray:
    """|det[v_1 - v_0, ..., v_d - v_0]| / d!"""
    edges = simplices[:, 1:] - simplices[:, :1]
    return np.abs(np.linalg.det(edges)) / math.factorial(simplices.shape[2])


def moments(simplices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and per-axis variance of the uniform distribution on each simplex.

    The variance is Σ_i (v_i - mean)² / ((d + 1)(d + 2)).
    """
    d = simplices.shape[2]
    mean = simplices.mean(axis=1)
    variance = ((simplices - mean[:, None]) ** 2).sum(axis=1) / ((d + 1) * (d + 2))
    return mean, variance


def map_unit_cube(simplices: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Uniform numbers `u`, shape (N, d), to uniform points, one in each simplex."""
    n = simplices.shape[1]
    stay = np.concatenate([u ** (1.0 / (n - np.arange(1, n))), np.zeros((len(u), 1))], axis=1)
    reach = np.concatenate([np.ones((len(u), 1)), np.cumprod(stay[:, :-1], axis=1)], axis=1)
    return np.einsum("nv,nvd->nd", (1.0 - stay) * reach, simplices)


def cut(simplices: np.ndarray, axis: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut each simplex by its own plane x[axis] = at.

    Returns the pieces as simplices, the index of the simplex each came from, and whether it lies above the plane.
    """
    n = simplices.shape[1]
    height = np.take_along_axis(simplices, axis[:, None, None], axis=2)[:, :, 0] - at[:, None]
    above = (height > 0).sum(axis=1)
    order = np.argsort(height, axis=1)
    simplices = np.take_along_axis(simplices, order[:, :, None], axis=1)
    height = np.take_along_axis(height, order, axis=1)
    pieces, origin, side = [], [], []
    for count in range(n + 1):
        rows = np.flatnonzero(above == count)
        for upper in (False, True):
            table = _pieces(n - count, count, upper)
            if len(rows) == 0 or len(table) == 0:
                continue
            made = _corners(simplices[rows], height[rows], table)
            pieces.append(made.reshape(-1, n, n - 1))
            origin.append(np.repeat(rows, len(table)))
            side.append(np.full(len(rows) * len(table), upper))
    return np.concatenate(pieces), np.concatenate(origin), np.concatenate(side)


def _corners(simplices: np.ndarray, height: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Vertices named by pairs (i, j): the vertex i itself if i = j, else where edge i-j meets the plane."""
    i, j = table[..., 0], table[..., 1]
    hi, hj = height[:, i], height[:, j]
    share = np.where(i == j, 0.0, hi / np.where(i == j, 1.0, hi - hj))[..., None]
    return simplices[:, i] * (1.0 - share) + simplices[:, j] * share


@functools.cache
def _pieces(below: int, above: int, upper: bool) -> np.ndarray:
    """How the part of a simplex below (or above) a plane splits into simplices.

    With vertices l_1..l_a on this side and u_1..u_b on the other, the part is the union over i of the joins of
    {l_1, ..., l_i} with the staircase triangulation of the cross-section {l_i, ..., l_a} x {u_1, ..., u_b}.
    """
    near, far = list(range(below)), list(range(below, below + above))
    if upper:
        near, far = far, near
    if not near:
        return np.zeros((0, below + above, 2), int)
    if not far:
        return np.array([[(v, v) for v in near]])
    simplices = [
        [(v, v) for v in near[: i + 1]] + path for i in range(len(near)) for path in _staircases(near[i:], far)
    ]
    return np.array(simplices)


def _staircases(rows: list[int], columns: list[int]) -> list[list[tuple[int, int]]]:
    """Monotone lattice paths over rows x columns: the simplices of a product of two simplices."""
    steps = len(rows) + len(columns) - 2
    paths = []
    for rises in itertools.combinations(range(steps), len(rows) - 1):
        i = j = 0
        path = [(rows[0], columns[0])]
        for step in range(steps):
            i, j = (i + 1, j) if step in rises else (i, j + 1)
            path.append((rows[i], columns[j]))
        paths.append(path)
    return paths
