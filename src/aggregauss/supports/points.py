"""Points: the value of the function at a place."""

from typing import Any

import numpy as np

from aggregauss.checks import as_matrix
from aggregauss.supports.support import Support, single_atoms


def Points(X: Any) -> Support:
    """One point per row of `X`, shape (n, d); a flat list is n points in one dimension.

    >>> Points([[18.0, 1.0], [25.0, 2.0]])
    Points(2 in 2-d)
    """
    center = as_matrix(X, "Points", "X")
    return single_atoms(center, np.zeros_like(center), "total", "Points")
