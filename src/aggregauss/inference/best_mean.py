"""The mean of q that is best with a covariance that is kept.

Bags that are linearised about the mean of q give it the covariance and the hyper-parameters. But where f is uncertain,
so is every term of Σ_i w_i g(f_i), and for a convex g the sum at the mean is less than the mean of the sum. With the
covariance kept, the mean climbs the matched bound, so that the fitted totals are those that were observed.
"""

import dataclasses
from collections.abc import Iterable

from tqdm.auto import tqdm

from aggregauss.inference import ascent
from aggregauss.inference.climb import climb
from aggregauss.inference.passes import Passes
from aggregauss.inference.sparse import Group
from aggregauss.inference.variational import Moments2, by_moments


def with_best_mean(
    passes: Passes, held: Iterable[Group], state: ascent.State, tolerance: float, most: int, progress: bool = False
) -> Moments2:
    """μ as above, found in at most so many passes, and the state's Σ."""
    settings = dataclasses.replace(passes.settings, bound="matched", natural=True)
    state = state._replace(q=by_moments(ascent.moments(state, passes.settings.natural)))
    passes = dataclasses.replace(passes, settings=settings)
    with tqdm(desc="mean", unit="pass", delay=2.0, leave=False, disable=not progress) as bar:
        at = passes.with_q(state, held, covariance_kept=True)

        def look(state: ascent.State) -> ascent.Slopes:
            bar.update()
            return at(state)

        top, _ = climb(look, state, tolerance, keep_covariance=True, most=most)
    return ascent.moments(top, natural=True)
