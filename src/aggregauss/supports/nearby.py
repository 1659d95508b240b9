"""An order of points in which those that lie close to each other come close to each other."""

import numpy as np

LEAF = 4  # points whose order does not matter


def nearby(X: np.ndarray) -> np.ndarray:
    """Points (n, d) halved again and again along their widest side; the first part has a power of two of them.

    Any 2^k points that begin at a multiple of 2^k are therefore one box of a k-d tree.

    >>> nearby(np.array([[0.0], [9.0], [1.0], [8.0], [2.0], [7.0], [3.0], [6.0]]))[:4].tolist()
    [0, 2, 4, 6]
    """
    order, waiting = np.arange(len(X)), [(0, len(X))]
    while waiting:
        start, stop = waiting.pop()
        if stop - start <= LEAF or X.shape[1] == 0:
            continue
        rows = order[start:stop]
        own, half = X[rows], 1 << (stop - start - 1).bit_length() - 1
        widest = int(np.argmax(np.ptp(own, axis=0)))
        order[start:stop] = rows[np.argpartition(own[:, widest], half - 1)]
        waiting += [(start, start + half), (start + half, stop)]
    return order
