"""Products: a place and a time, each with its own support, such as district x month."""

import numpy as np

from aggregauss.supports.support import Support


def Product(space: Support, time: Support) -> Support:
    """Every support of `space` with every support of `time`: row i * len(time) + j is (space[i], time[j]).

    Index the result to keep only the pairs that were observed. Inputs are the columns of `space`, then of `time`. The
    measure of each factor is kept: a total over the district and a mean over the month, if they were made so.

    >>> import aggregauss as ag
    >>> months = ag.Intervals([0, 31], [31, 59], measure="total")
    >>> ag.Product(ag.Boxes([[0, 0]], [[2, 1]]), months).mass.tolist()
    [62.0, 56.0]
    """
    same = space.measure == time.measure
    w_space, w_time = (f.weight if same else f.effective_weight for f in (space, time))
    pairs = [(i, j) for i in range(len(space)) for j in range(len(time))]
    members_space, members_time = _members(space), _members(time)
    left = np.concatenate([np.repeat(members_space[i], len(members_time[j])) for i, j in pairs])
    right = np.concatenate([np.tile(members_time[j], len(members_space[i])) for i, j in pairs])
    count = [len(members_space[i]) * len(members_time[j]) for i, j in pairs]
    return Support(
        center=np.concatenate([space.center[left], time.center[right]], axis=1),
        width=np.concatenate([space.width[left], time.width[right]], axis=1),
        owner=np.repeat(np.arange(len(pairs)), count),
        weight=w_space[left] * w_time[right],
        size=len(pairs),
        measure=space.measure if same else "total",
        kind="Product",
    )


def _members(support: Support) -> list[np.ndarray]:
    return np.split(np.arange(len(support.owner)), np.cumsum(support.atom_counts)[:-1])
